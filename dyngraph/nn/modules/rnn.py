"""Recurrent networks over sequences: RNN, LSTM and GRU, each layer and direction one operator."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

from dyngraph import modes
from dyngraph.nn import init
from dyngraph.nn.modules.module import Module
from dyngraph.nn.parameter import Parameter
from dyngraph.nn.utils.rnn import PackedSequence
from dyngraph.ops.filled import empty, zeros
from dyngraph.ops.recurrent import gru, lstm, rnn_relu, rnn_tanh
from dyngraph.ops.shape import squeeze, unsqueeze
from dyngraph.ops.slices import index_select
from dyngraph.tensor import Tensor

_FUNCTIONS = {"RNN_TANH": rnn_tanh, "RNN_RELU": rnn_relu, "GRU": gru, "LSTM": lstm}
_GATES = {"RNN_TANH": 1, "RNN_RELU": 1, "GRU": 3, "LSTM": 4}


class RNNBase(Module):
    """What RNN, LSTM and GRU share: parameters, their names, and what inputs must be.

    `weight_ih_l0`, `weight_hh_l0`, `bias_ih_l0`, `bias_hh_l0` and, with `proj_size`,
    `weight_hr_l0` are those of layer 0, with `_reverse` after them those of its other direction.
    """

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        _check_options(input_size, hidden_size, num_layers, bias, batch_first, dropout, proj_size)
        if mode not in _GATES:
            raise ValueError(f"Unrecognized RNN mode: {mode}, expected one of {[*_GATES]}")
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._all_weights = []
        directions = 2 if bidirectional else 1
        gates, output = _GATES[mode] * hidden_size, proj_size or hidden_size
        for place in range(num_layers * directions):
            layer, direction = divmod(place, directions)
            suffix = f"l{layer}{'_reverse' if direction else ''}"
            read = output * directions if layer else input_size
            shapes: dict[str, tuple[int, ...]] = {
                "weight_ih": (gates, read),
                "weight_hh": (gates, output),
            }
            if bias:
                shapes |= {"bias_ih": (gates,), "bias_hh": (gates,)}
            if proj_size:
                shapes["weight_hr"] = (proj_size, hidden_size)
            for name, shape in shapes.items():
                weight = Parameter(empty(shape, dtype=dtype, device=device))
                self.register_parameter(f"{name}_{suffix}", weight)
            self._all_weights.append([f"{name}_{suffix}" for name in shapes])
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws every parameter from -1 / sqrt(hidden_size) to 1 / sqrt(hidden_size)."""
        bound = 1 / math.sqrt(self.hidden_size)
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def flatten_parameters(self) -> None:
        """Does nothing: XLA lays the parameters out in memory by itself."""

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Raises ValueError for another dtype than the weights', RuntimeError for another shape."""
        wanted = getattr(self, self._all_weights[0][0]).dtype
        if input.dtype != wanted and not modes.get_flags() & modes.AUTOCAST:
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({wanted}). Convert "
                f"input: input.to({wanted}), or convert model: model.to({input.dtype})"
            )
        dims = 3 if batch_sizes is None else 2
        if input.dim() != dims:
            raise RuntimeError(f"input must have {dims} dimensions, got {input.dim()}")
        if self.input_size != input.size(-1):
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got "
                f"{input.size(-1)}"
            )

    def get_expected_hidden_size(
        self, input: Tensor, batch_sizes: Tensor | None
    ) -> tuple[int, int, int]:
        """(layers * directions, batch, hidden), which a state must have."""
        return self._sizes(self._batch(input, batch_sizes))[0]

    def check_hidden_size(
        self,
        hx: Tensor,
        expected_hidden_size: tuple[int, int, int],
        msg: str = "Expected hidden size {}, got {}",
    ) -> None:
        """Raises RuntimeError where the state has another shape."""
        if tuple(hx.size()) != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.size())))

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Raises where the input or the state does not fit."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """The state with its sequences in another order."""
        return _ordered([hx], permutation)[0]

    def _batch(self, input: Tensor, batch_sizes: Tensor | None) -> int:
        if batch_sizes is not None:
            return int(batch_sizes[0])
        return input.size(0 if self.batch_first else 1)

    def _sizes(self, batch: int) -> list[tuple[int, int, int]]:
        """The shape of each part of the state."""
        places = len(self._all_weights)
        sizes = [(places, batch, self.proj_size or self.hidden_size)]
        if self.mode == "LSTM":
            sizes.append((places, batch, self.hidden_size))
        return sizes

    def _zeros(self, input: Tensor, batch: int) -> list[Tensor]:
        sizes = self._sizes(batch)
        parts = [zeros(sizes[0], dtype=input.dtype, device=input.device)]
        for size in sizes[1:]:
            same = size == sizes[0]
            parts.append(parts[0] if same else zeros(size, dtype=input.dtype, device=input.device))
        return parts

    def _run(self, input: Any, parts: Sequence[Tensor] | None) -> tuple[Any, Sequence[Tensor]]:
        """`forward`, for states that are lists of their parts."""
        if isinstance(input, PackedSequence):
            return self._run_packed(input, parts)
        name = self.mode.partition("_")[0]
        dims = input.dim()
        if dims not in (2, 3):
            raise ValueError(f"{name}: Expected input to be 2D or 3D, got {dims}D instead")
        if parts is not None:
            self._check_dims(dims, [part.dim() for part in parts])
        batch_dim = 0 if self.batch_first else 1
        if dims == 2:
            input = unsqueeze(input, batch_dim)
            if parts is not None:
                parts = [unsqueeze(part, 1) for part in parts]
        if parts is None:
            parts = self._zeros(input, self._batch(input, None))
        self.check_forward_args(input, self._state(parts), None)
        output, *last = self._call(input, self._state(parts), batch_first=self.batch_first)
        if dims == 2:
            return squeeze(output, batch_dim), [squeeze(part, 1) for part in last]
        return output, last

    def _run_packed(
        self, input: PackedSequence, parts: Sequence[Tensor] | None
    ) -> tuple[PackedSequence, Sequence[Tensor]]:
        data, batch_sizes, order, back = input
        if parts is None:
            parts = self._zeros(data, self._batch(data, batch_sizes))
        else:
            parts = _ordered(parts, order)
        self.check_forward_args(data, self._state(parts), batch_sizes)
        output, *last = self._call(data, batch_sizes, self._state(parts))
        packed = PackedSequence(output, batch_sizes, order, back)
        return packed, _ordered(last, back)

    def _state(self, parts: Sequence[Tensor]) -> Any:
        return tuple(parts) if self.mode == "LSTM" else parts[0]

    def _check_dims(self, dims: int, found: Sequence[int]) -> None:
        """Raises RuntimeError for a batched state of an unbatched input, or the other way."""
        if all(n == dims for n in found):
            return
        what = "batched 3-D" if dims == 3 else "unbatched 2-D"
        names = "hx and cx" if len(found) > 1 else "hx"
        got = f"{found[0]}-D tensor" if len(found) == 1 else f"({found[0]}-D, {found[1]}-D) tensors"
        raise RuntimeError(f"For {what} input, {names} should also be {dims}-D but got {got}")

    def _call(self, *inputs: Any, **options: Any) -> tuple[Tensor, ...]:
        return _FUNCTIONS[self.mode](
            *inputs,
            [weight for weights in self.all_weights for weight in weights],
            self.bias,
            self.num_layers,
            self.dropout,
            self.training,
            self.bidirectional,
            **options,
        )

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        defaults = {
            "proj_size": 0,
            "num_layers": 1,
            "bias": True,
            "batch_first": False,
            "dropout": 0,
            "bidirectional": False,
        }
        for name, default in defaults.items():
            if (value := getattr(self, name)) != default:
                text += f", {name}={value}"
        return text


def _ordered(parts: Sequence[Tensor], permutation: Tensor | None) -> Sequence[Tensor]:
    """The parts of a state with its sequences in another order."""
    return parts if permutation is None else [index_select(part, 1, permutation) for part in parts]


def _check_options(
    input_size: Any,
    hidden_size: Any,
    num_layers: int,
    bias: Any,
    batch_first: Any,
    dropout: Any,
    proj_size: int,
) -> None:
    if isinstance(dropout, bool) or not isinstance(dropout, (int, float)) or not 0 <= dropout <= 1:
        raise ValueError(
            "dropout should be a number in range [0, 1] representing the probability of an element "
            f"being zeroed, got {dropout!r}"
        )
    if dropout > 0 and num_layers == 1:
        warnings.warn(
            "dropout option adds dropout after all but last recurrent layer, so non-zero dropout "
            f"expects num_layers greater than 1, but got dropout={dropout} and "
            f"num_layers={num_layers}",
            stacklevel=4,
        )
    for name, value in {"bias": bias, "batch_first": batch_first}.items():
        if not isinstance(value, bool):
            raise TypeError(f"{name} should be of type bool, got: {type(value).__name__}")
    for name, value in {"input_size": input_size, "hidden_size": hidden_size}.items():
        if not isinstance(value, int):
            raise TypeError(f"{name} should be of type int, got: {type(value).__name__}")
        if value <= 0:
            raise ValueError(f"{name} must be greater than zero, got {value}")
    if num_layers <= 0:
        raise ValueError(f"num_layers must be greater than zero, got {num_layers}")
    if proj_size < 0:
        raise ValueError(
            "proj_size should be a positive integer or zero to disable projections, got "
            f"{proj_size}"
        )
    if proj_size >= hidden_size:
        raise ValueError(
            f"proj_size has to be smaller than hidden_size, got {proj_size} and {hidden_size}"
        )


class RNN(RNNBase):
    """Layers of cells with `tanh` or, as `nonlinearity`, `relu`: every hidden state, and the last.

    `input` is (time, batch, input_size), with `batch_first` (batch, time, input_size), without a
    batch (time, input_size), or a PackedSequence. The state `hx` is (layers * directions, batch,
    hidden_size), zeros by default. `dropout` falls between layers in training. Elman 1990,
    https://doi.org/10.1207/s15516709cog1402_1. Raises ValueError, TypeError and RuntimeError for
    options, inputs and states that do not fit.

    >>> rnn = dg.nn.RNN(2, 3)
    >>> output, last = rnn(dg.ones(5, 1, 2))
    >>> output.shape, last.shape
    (dyngraph.Size([5, 1, 3]), dyngraph.Size([1, 1, 3]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        *args: Any,
        **kwargs: Any,
    ) -> None:
        _refuse_projection(kwargs)
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(
                f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'."
            )
        super().__init__(
            f"RNN_{nonlinearity.upper()}", input_size, hidden_size, num_layers, *args, **kwargs
        )
        self.nonlinearity = nonlinearity

    def forward(self, input: Any, hx: Tensor | None = None) -> tuple[Any, Tensor]:
        output, (last,) = self._run(input, None if hx is None else [hx])
        return output, last


class GRU(RNNBase):
    """Layers of gated recurrent units; inputs and results as of `RNN`.

    Cho et al. 2014, https://arxiv.org/abs/1406.1078, with the reset gate after the linear map.

    >>> gru = dg.nn.GRU(2, 3, num_layers=2, bidirectional=True)
    >>> output, last = gru(dg.ones(5, 1, 2))
    >>> output.shape, last.shape
    (dyngraph.Size([5, 1, 6]), dyngraph.Size([4, 1, 3]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse_projection(kwargs)
        super().__init__("GRU", *args, **kwargs)

    def forward(self, input: Any, hx: Tensor | None = None) -> tuple[Any, Tensor]:
        output, (last,) = self._run(input, None if hx is None else [hx])
        return output, last


class LSTM(RNNBase):
    """Layers of long short-term memory; inputs as of `RNN`, the state a pair of hidden and cell.

    With `proj_size` hidden states are projected to that size, cells keep `hidden_size`. Hochreiter
    and Schmidhuber 1997, https://doi.org/10.1162/neco.1997.9.8.1735.

    >>> lstm = dg.nn.LSTM(2, 3, batch_first=True)
    >>> output, (hidden, cell) = lstm(dg.ones(1, 5, 2))
    >>> output.shape, cell.shape
    (dyngraph.Size([1, 5, 3]), dyngraph.Size([1, 1, 3]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(
        self, input: Tensor, batch_sizes: Tensor | None
    ) -> tuple[int, int, int]:
        """(layers * directions, batch, hidden_size), which a cell must have."""
        return self._sizes(self._batch(input, batch_sizes))[1]

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        self.check_input(input, batch_sizes)
        sizes = self._sizes(self._batch(input, batch_sizes))
        for i, size in enumerate(sizes):
            self.check_hidden_size(hidden[i], size, f"Expected hidden[{i}] size {{}}, got {{}}")

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        return tuple(_ordered(hx, permutation))

    def forward(
        self, input: Any, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Any, tuple[Tensor, Tensor]]:
        output, (hidden, cell) = self._run(input, hx)
        return output, (hidden, cell)


def _refuse_projection(options: dict[str, Any]) -> None:
    if "proj_size" in options:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")


__all__ = ["GRU", "LSTM", "RNN", "RNNBase"]
