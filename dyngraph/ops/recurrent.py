"""Recurrent networks over whole sequences: layers of cells, in one or two directions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dyngraph.ops.arguments import titled
from dyngraph.ops.dropouts import dropout
from dyngraph.ops.host_values import described, from_host, on_host
from dyngraph.ops.joining import cat, stack
from dyngraph.ops.packing import pack_rows, pad_rows, places_of, rows_of
from dyngraph.ops.parts import unbind
from dyngraph.ops.permutation import transpose
from dyngraph.ops.recurrence import GRU, LAYERS, LSTM, RNN_RELU, RNN_TANH, Kind
from dyngraph.ops.shape import unsqueeze
from dyngraph.tensor import Tensor

State = tuple[Tensor, ...]
"""(hidden,), or (hidden, cell) of an LSTM: each (layers * directions, batch, size)."""


class _Weights(NamedTuple):
    """The parameters of one layer in one direction."""

    w_ih: Tensor
    w_hh: Tensor
    b_ih: Tensor | None = None
    b_hh: Tensor | None = None
    w_hr: Tensor | None = None


def _layers(
    kind: Kind,
    input: Tensor,
    sizes: Tensor | None,
    first: State,
    weights: Sequence[_Weights],
    directions: int,
    dropout_p: float,
) -> tuple[Tensor, State]:
    """The last layer's hidden states, and the last state of each layer and direction."""
    run = LAYERS[kind.name]
    firsts = list(zip(*(unbind(part) for part in first), strict=True))
    lasts: list[State] = []
    for layer in range(0, len(weights), directions):
        if layer and dropout_p:
            input = dropout(input, dropout_p)
        outputs: list[Tensor] = []
        for place in range(layer, layer + directions):
            own = weights[place] if kind is LSTM else weights[place][:4]
            output, hidden, *cells = run(input, *firsts[place], *own, sizes, place > layer)
            outputs.append(output)
            lasts.append((hidden, *cells[1:]))
        input = outputs[0] if directions == 1 else cat(outputs, 2)
    parts = zip(*lasts, strict=True)
    if len(lasts) == 1:
        return input, tuple(unsqueeze(part, 0) for (part,) in parts)
    return input, tuple(stack(list(part)) for part in parts)


# --- arguments --------------------------------------------------------------------------------


def _grouped(
    kind: Kind, params: Sequence[Tensor], has_biases: bool, projected: bool, count: int
) -> list[_Weights]:
    each = 2 + 2 * has_biases + projected
    if len(params) != each * count:
        raise RuntimeError(
            f"{kind.name} expects {each} parameters for each of {count} layers and directions, got "
            f"{len(params)}"
        )
    groups = [params[i : i + each] for i in range(0, len(params), each)]
    if not has_biases and projected:
        return [_Weights(w_ih, w_hh, w_hr=w_hr) for w_ih, w_hh, w_hr in groups]
    return [_Weights(*group) for group in groups]


def _check(
    kind: Kind, size: int, batch: int, first: State, weights: Sequence[_Weights], directions: int
) -> None:
    """Raises RuntimeError where sizes of input, states and weights do not fit."""
    for part in first:
        shape = described(part).shape
        if len(shape) != 3 or shape[:2] != (len(weights), batch):
            raise RuntimeError(
                f"{kind.name}: Expected hidden size ({len(weights)}, {batch}, hidden), got "
                f"{list(shape)}"
            )
    hidden, width = described(first[0]).shape[-1], described(first[-1]).shape[-1]
    for place, own in enumerate(weights):
        read = size if place < directions else hidden * directions
        wanted = ((kind.gates * width, read), (kind.gates * width, hidden))
        found = (described(own.w_ih).shape, described(own.w_hh).shape)
        if found != wanted:
            raise RuntimeError(
                f"{kind.name}: expected weights {wanted} in layer {place // directions}, for "
                f"{read} inputs and {hidden} hidden units, got {found}"
            )


def _run(
    kind: Kind, first: State, args: Sequence[Any], input: Tensor, sizes: Tensor | None
) -> tuple[Tensor, ...]:
    """Runs a network over (time, batch, size); `args` begin with the parameters."""
    params, has_biases, num_layers, dropout_p, train, bidirectional = args
    directions = 2 if bidirectional else 1
    projected = described(first[0]).shape[-1] != described(first[-1]).shape[-1]
    weights = _grouped(kind, params, bool(has_biases), projected, num_layers * directions)
    _, batch, size = described(input).shape
    _check(kind, size, batch, first, weights, directions)
    p = float(dropout_p) if train else 0.0
    output, last = _layers(kind, input, sizes, first, weights, directions, p)
    return (output, *last)


def _run_packed(kind: Kind, data: Tensor, batch_sizes: Any, first: State, *args: Any) -> Any:
    sizes = [int(n) for n in on_host(kind.name, batch_sizes)]
    if described(data).ndim != 2 or not sizes or sum(sizes) != described(data).shape[0]:
        raise RuntimeError(
            f"{kind.name}: expected data of {sum(sizes)} rows, the sum of batch_sizes, got shape "
            f"{list(described(data).shape)}"
        )
    if sorted(sizes, reverse=True) != sizes or sizes[-1] < 1:
        raise RuntimeError(
            f"{kind.name}: batch_sizes must be positive and not grow, got {sizes}. Sort sequences "
            "by length, the longest first."
        )
    counts = np.asarray(sizes, np.int32)
    padded = pad_rows(data, from_host(rows_of(counts, len(sizes)), data), 0)
    output, *last = _run(kind, first, args, padded, from_host(counts, data))
    return (pack_rows(output, from_host(places_of(counts), data)), *last)


def _run_padded(
    kind: Kind, input: Tensor, first: State, *args: Any, batch_first: bool = False
) -> Any:
    if described(input).ndim != 3:
        raise RuntimeError(
            f"{kind.name}: input must have 3 dimensions, (time, batch, size), got "
            f"{described(input).ndim}. Add a batch by unsqueeze(1)."
        )
    if batch_first:
        input = transpose(input, 0, 1)
    if described(input).shape[0] == 0:
        raise RuntimeError(f"{kind.name}: Expected sequence length to be larger than 0")
    output, *last = _run(kind, first, args, input, None)
    return (transpose(output, 0, 1) if batch_first else output, *last)


# --- functions --------------------------------------------------------------------------------


def _one_state(kind: Kind, doc: str) -> Callable[..., tuple[Tensor, Tensor]]:
    def function(
        input: Tensor,
        hx: Tensor,
        params: Any,
        has_biases: Any,
        num_layers: Any,
        dropout: Any,
        train: Any,
        bidirectional: Any,
        batch_first: bool = False,
    ) -> tuple[Tensor, Tensor]:
        if isinstance(params, Tensor):  # (data, batch_sizes, hx, params, ...), without batch_first
            rest = (has_biases, num_layers, dropout, train, bidirectional, batch_first)
            return _run_packed(kind, input, hx, (params,), *rest)
        rest = (params, has_biases, num_layers, dropout, train, bidirectional)
        return _run_padded(kind, input, (hx,), *rest, batch_first=batch_first)

    return titled(function, kind.name, doc)


gru = _one_state(
    GRU,
    """Gated recurrent units over a batch of sequences: every hidden state, and the last ones.

    Arguments as in `rnn_tanh`, weights as in `gru_cell`.

    >>> params = [dg.ones(3, 2), dg.zeros(3, 1)]
    >>> x, h = dg.zeros(2, 1, 2), dg.ones(1, 1, 1)
    >>> dg.gru(x, h, params, False, 1, 0.0, False, False, False)[0].flatten()
    tensor([0.5000, 0.2500])
    """,
)
rnn_relu = _one_state(
    RNN_RELU,
    """`rnn_tanh` with `relu` in place of `tanh`.

    >>> params = [dg.ones(1, 1), dg.ones(1, 1)]
    >>> x, h = dg.ones(3, 1, 1), dg.zeros(1, 1, 1)
    >>> dg.rnn_relu(x, h, params, False, 1, 0.0, False, False, False)[0].flatten()
    tensor([1., 2., 3.])
    """,
)
rnn_tanh = _one_state(
    RNN_TANH,
    """`rnn_tanh_cell` over a batch of sequences: every hidden state, and the last of each layer.

    `input` is (time, batch, size), or (batch, time, size) with `batch_first`; `hx` is (layers *
    directions, batch, hidden). `params` are each layer's w_ih, w_hh and, with `has_biases`, b_ih
    and b_hh, a reverse direction's after the forward one's. When `train`, `dropout` falls between
    layers. Sequences of unequal lengths are packed: `rnn_tanh(data, batch_sizes, hx, params, ...)`,
    data being (steps of all, size), in order of time, and batch_sizes the number of sequences that
    have each step. Raises RuntimeError where sizes do not fit.

    >>> params = [dg.ones(1, 1), dg.zeros(1, 1)]
    >>> x, h = dg.zeros(2, 1, 1), dg.zeros(1, 1, 1)
    >>> output, last = dg.rnn_tanh(x, h, params, False, 1, 0.0, False, False, False)
    >>> output.shape, last.shape
    (dyngraph.Size([2, 1, 1]), dyngraph.Size([1, 1, 1]))
    """,
)


def lstm(
    input: Tensor,
    hx: Any,
    params: Any,
    has_biases: Any,
    num_layers: Any,
    dropout: Any,
    train: Any,
    bidirectional: Any,
    batch_first: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """An LSTM over a batch of sequences: every hidden state, and the last hidden states and cells.

    `hx` is the pair of both that it starts with; the rest as in `rnn_tanh`, weights as in
    `lstm_cell`. Where the hidden state is smaller than the cell, each layer's parameters end with
    the matrix that projects it. Raises RuntimeError where sizes do not fit.

    >>> params = [dg.ones(4, 2), dg.ones(4, 1)]
    >>> x, start = dg.zeros(1, 1, 2), (dg.zeros(1, 1, 1), dg.ones(1, 1, 1))
    >>> dg.lstm(x, start, params, False, 1, 0.0, False, False, False)[2]
    tensor([[[0.5000]]])
    """
    packed = isinstance(hx, Tensor)  # (data, batch_sizes, hx, params, ...), without batch_first
    states = params if packed else hx
    if len(states) != 2:
        raise RuntimeError(f"lstm expects two hidden states, got {len(states)}")
    if packed:
        rest = (has_biases, num_layers, dropout, train, bidirectional, batch_first)
        return _run_packed(LSTM, input, hx, tuple(states), *rest)
    rest = (params, has_biases, num_layers, dropout, train, bidirectional)
    return _run_padded(LSTM, input, tuple(states), *rest, batch_first=batch_first)


__all__ = [
    "gru",
    "lstm",
    "rnn_relu",
    "rnn_tanh",
]
METHODS = ()
"""The functions of this file that are methods of Tensor too."""
