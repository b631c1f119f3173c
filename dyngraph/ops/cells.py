"""One step of a recurrent network: cells with tanh or relu, LSTM and GRU cells.

The two linear maps are recorded as such; what follows them, element by element, is one node.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from dyngraph.ops.affine import linear
from dyngraph.ops.arithmetic import add
from dyngraph.ops.host_values import described
from dyngraph.ops.operator import define
from dyngraph.ops.piecewise_linear import relu
from dyngraph.ops.trigonometry import tanh
from dyngraph.tensor import Tensor


def _check(where: str, input: Any, hx: Any, w_ih: Any, w_hh: Any, gates: int) -> None:
    x, h = described(input), described(hx)
    size = described(w_hh).shape[1]
    if x.shape[-1] != described(w_ih).shape[1]:
        raise RuntimeError(
            f"{where}: input has inconsistent input_size: got {x.shape[-1]} expected "
            f"{described(w_ih).shape[1]}"
        )
    if h.shape[-1] != size or described(w_hh).shape[0] != gates * size:
        raise RuntimeError(
            f"{where}: hidden has inconsistent hidden_size: got {h.shape[-1]}, expected {size}, "
            f"and w_hh of shape [{gates * size}, {size}]"
        )
    if x.shape[:-1] != h.shape[:-1]:
        raise RuntimeError(
            f"{where}: Input batch size {list(x.shape[:-1])} doesn't match hidden batch size "
            f"{list(h.shape[:-1])}"
        )


def rnn_tanh_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    """`tanh(linear(input, w_ih, b_ih) + linear(hx, w_hh, b_hh))`: the next state (batch, hidden).

    Raises RuntimeError where sizes do not fit.

    >>> dg.rnn_tanh_cell(dg.zeros(1, 2), dg.zeros(1, 1), dg.ones(1, 2), dg.ones(1, 1))
    tensor([[0.]])
    """
    _check("rnn_tanh_cell", input, hx, w_ih, w_hh, 1)
    return tanh(add(linear(input, w_ih, b_ih), linear(hx, w_hh, b_hh)))


def rnn_relu_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    """`rnn_tanh_cell` with `relu` in place of `tanh`.

    >>> dg.rnn_relu_cell(dg.ones(1, 2), dg.zeros(1, 1), dg.ones(1, 2), dg.ones(1, 1))
    tensor([[2.]])
    """
    _check("rnn_relu_cell", input, hx, w_ih, w_hh, 1)
    return relu(add(linear(input, w_ih, b_ih), linear(hx, w_hh, b_hh)))


def _lstm_parts(of_input: Any, of_hidden: Any) -> tuple[Any, Any, Any, Any]:
    """The input, forget, cell and output gates."""
    gates = of_input + of_hidden
    i, f, g, o = jnp.split(gates, 4, -1)
    return jax.nn.sigmoid(i), jax.nn.sigmoid(f), jnp.tanh(g), jax.nn.sigmoid(o)


def lstm_gates(of_input: Any, of_hidden: Any, cx: Any) -> tuple[Any, Any]:
    i, f, g, o = _lstm_parts(of_input, of_hidden)
    cy = f * cx + i * g
    return o * jnp.tanh(cy), cy


lstm_step = define(
    "thnn_fused_lstm_cell",
    lstm_gates,
    outputs=("hy", "cy"),
    node="ThnnFusedLstmCellBackward0",
)


def lstm_cell(
    input: Tensor,
    hx: Sequence[Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The next state and cell (batch, hidden) of an LSTM from `hx`, the pair of both.

    Weights are (4 * hidden, ...), for the input, forget, cell and output gates in this order.
    Hochreiter and Schmidhuber 1997, https://doi.org/10.1162/neco.1997.9.8.1735. Raises RuntimeError
    where sizes do not fit.

    >>> h, c = dg.zeros(1, 1), dg.ones(1, 1)
    >>> dg.lstm_cell(dg.zeros(1, 2), (h, c), dg.ones(4, 2), dg.ones(4, 1))[1]
    tensor([[0.5000]])
    """
    if len(hx) != 2:
        raise RuntimeError(f"lstm_cell expects two hidden states, got {len(hx)}")
    _check("lstm_cell", input, hx[0], w_ih, w_hh, 4)
    of_input, of_hidden = linear(input, w_ih, b_ih), linear(hx[0], w_hh, b_hh)
    hy, cy = lstm_step(of_input, of_hidden, hx[1])
    return hy, cy


def gru_gates(of_input: Any, of_hidden: Any, hx: Any) -> Any:
    reset_x, update_x, new_x = jnp.split(of_input, 3, -1)
    reset_h, update_h, new_h = jnp.split(of_hidden, 3, -1)
    reset = jax.nn.sigmoid(reset_x + reset_h)
    update = jax.nn.sigmoid(update_x + update_h)
    new = jnp.tanh(new_x + reset * new_h)
    return new + update * (hx - new)


gru_step = define("thnn_fused_gru_cell", gru_gates, node="ThnnFusedGruCellBackward0")


def gru_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    """The next state (batch, hidden) of a gated recurrent unit.

    Weights are (3 * hidden, ...), for the reset, update and new gates in this order. Cho et al.
    2014, https://arxiv.org/abs/1406.1078, with the reset gate after the linear map. Raises
    RuntimeError where sizes do not fit.

    >>> dg.gru_cell(dg.zeros(1, 2), dg.ones(1, 1), dg.ones(3, 2), dg.zeros(3, 1))
    tensor([[0.5000]])
    """
    _check("gru_cell", input, hx, w_ih, w_hh, 3)
    return gru_step(linear(input, w_ih, b_ih), linear(hx, w_hh, b_hh), hx)


__all__ = [
    "gru_cell",
    "lstm_cell",
    "rnn_relu_cell",
    "rnn_tanh_cell",
]
METHODS: tuple[str, ...] = ()
"""The functions of this file that are methods of Tensor too."""
