"""Cells: one step of a recurrent network."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from dyngraph.nn import init
from dyngraph.nn.modules.module import Module
from dyngraph.nn.parameter import Parameter
from dyngraph.ops.cells import gru_cell, lstm_cell, rnn_relu_cell, rnn_tanh_cell
from dyngraph.ops.filled import empty, zeros
from dyngraph.ops.shape import squeeze, unsqueeze
from dyngraph.tensor import Tensor

__all__ = ["GRUCell", "LSTMCell", "RNNCell", "RNNCellBase"]


class RNNCellBase(Module):
    """What cells share: `weight_ih`, `weight_hh`, `bias_ih` and `bias_hh`.

    All are drawn from -1 / sqrt(hidden_size) to 1 / sqrt(hidden_size).
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        gates = num_chunks * hidden_size
        shapes = {"weight_ih": (gates, input_size), "weight_hh": (gates, hidden_size)}
        biases = dict.fromkeys(("bias_ih", "bias_hh"), (gates,) if bias else None)
        for name, shape in (shapes | biases).items():
            made = None if shape is None else Parameter(empty(shape, device=device, dtype=dtype))
            self.register_parameter(name, made)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the initial values anew."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0.0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if not self.bias:
            text += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            text += f", nonlinearity={self.nonlinearity}"
        return text

    def _step(
        self, function: Any, input: Tensor, parts: Sequence[Tensor] | None, names: Sequence[str]
    ) -> list[Tensor]:
        """The next state, in its parts, of an input with a batch or without one."""
        for name, value in [("input", input), *zip(names, parts or (), strict=False)]:
            if value.dim() not in (1, 2):
                raise ValueError(
                    f"{self._get_name()}: Expected {name} to be 1D or 2D, got {value.dim()}D "
                    "instead"
                )
        batched = input.dim() == 2
        if not batched:
            input = unsqueeze(input, 0)
        if parts is None:
            size = (input.size(0), self.hidden_size)
            parts = [zeros(size, dtype=input.dtype, device=input.device)] * len(names)
        elif not batched:
            parts = [unsqueeze(part, 0) for part in parts]
        state = parts[0] if len(names) == 1 else parts
        made = function(input, state, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        made = [made] if len(names) == 1 else list(made)
        return made if batched else [squeeze(part, 0) for part in made]


class RNNCell(RNNCellBase):
    """`tanh` or `relu` of two linear maps: input: (batch, input_size), hx: (batch, hidden_size) ->
    the next state. Both may be without a batch; `hx` is zeros by default.

    Raises ValueError for other dims and RuntimeError for other sizes.

    >>> dg.nn.RNNCell(2, 3)(dg.ones(1, 2)).shape
    dyngraph.Size([1, 3])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        functions = {"tanh": rnn_tanh_cell, "relu": rnn_relu_cell}
        if self.nonlinearity not in functions:
            raise RuntimeError(
                f"Unknown nonlinearity: {self.nonlinearity}. Expected 'tanh' or 'relu'."
            )
        parts = None if hx is None else [hx]
        return self._step(functions[self.nonlinearity], input, parts, ["hidden"])[0]


class LSTMCell(RNNCellBase):
    """A step of long short-term memory, from the pair of hidden state and cell to the next.

    >>> hidden, cell = dg.nn.LSTMCell(2, 3)(dg.ones(1, 2))
    >>> hidden.shape, cell.shape
    (dyngraph.Size([1, 3]), dyngraph.Size([1, 3]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(
        self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        hidden, cell = self._step(lstm_cell, input, hx, ["hx[0]", "hx[1]"])
        return hidden, cell


class GRUCell(RNNCellBase):
    """A step of a gated recurrent unit.

    >>> dg.nn.GRUCell(2, 3)(dg.ones(1, 2)).shape
    dyngraph.Size([1, 3])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._step(gru_cell, input, None if hx is None else [hx], ["hidden"])[0]
