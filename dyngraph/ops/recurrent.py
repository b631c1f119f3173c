"""Recurrent networks over whole sequences: layers of cells, in one or two directions.

Sequences are packed: the steps of all of them follow each other in one matrix, first every
sequence's first step, then the second of those that have one, with the longest sequence first. A
batch of equal lengths is the special case in which all steps have the same number of sequences.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from dyngraph.ops.affine import linear
from dyngraph.ops.arguments import titled
from dyngraph.ops.arithmetic import add
from dyngraph.ops.cells import gru_step, lstm_step
from dyngraph.ops.dropouts import dropout
from dyngraph.ops.host_values import array_of, on_host
from dyngraph.ops.joining import cat, stack
from dyngraph.ops.parts import narrow, split_with_sizes, unbind
from dyngraph.ops.permutation import transpose
from dyngraph.ops.piecewise_linear import relu
from dyngraph.ops.shape import reshape
from dyngraph.ops.trigonometry import tanh
from dyngraph.tensor import Tensor

State = tuple[Tensor, ...]
"""What a step hands on to the next: (hidden,), or (hidden, cell) of an LSTM."""


class _Weights(NamedTuple):
    """The parameters of one layer in one direction."""

    w_ih: Tensor
    w_hh: Tensor
    b_ih: Tensor | None = None
    b_hh: Tensor | None = None
    w_hr: Tensor | None = None


class _Kind(NamedTuple):
    """One sort of recurrent network: its name, its gates, and one step."""

    name: str
    gates: int
    step: Callable[[Tensor, State, _Weights], State]


# --- steps: from the input's part of the gates and the state to the next state -------------------


def _of_hidden(state: State, weights: _Weights) -> Tensor:
    return linear(state[0], weights.w_hh, weights.b_hh)


def _tanh_step(of_input: Tensor, state: State, weights: _Weights) -> State:
    return (tanh(add(of_input, _of_hidden(state, weights))),)


def _relu_step(of_input: Tensor, state: State, weights: _Weights) -> State:
    return (relu(add(of_input, _of_hidden(state, weights))),)


def _gru_step(of_input: Tensor, state: State, weights: _Weights) -> State:
    return (gru_step(of_input, _of_hidden(state, weights), state[0]),)


def _lstm_step(of_input: Tensor, state: State, weights: _Weights) -> State:
    hidden, cell = lstm_step(of_input, _of_hidden(state, weights), state[1])
    if weights.w_hr is not None:
        hidden = linear(hidden, weights.w_hr)
    return hidden, cell


# --- layers -----------------------------------------------------------------------------------


def _rows(state: State, start: int, end: int) -> State:
    """The state of the sequences from `start` to before `end`."""
    return tuple(narrow(part, 0, start, end - start) for part in state)


def _forward(
    kind: _Kind, steps: Sequence[Tensor], sizes: Sequence[int], state: State, weights: _Weights
) -> tuple[list[Tensor], State]:
    """The hidden state after each step, and the state with which each sequence ended."""
    hidden: list[Tensor] = []
    ended: list[State] = []
    count = sizes[0]
    for of_input, size in zip(steps, sizes, strict=True):
        if size < count:
            ended.append(_rows(state, size, count))
            state, count = _rows(state, 0, size), size
        state = kind.step(of_input, state, weights)
        hidden.append(state[0])
    return hidden, _joined([state, *reversed(ended)])


def _backward(
    kind: _Kind, steps: Sequence[Tensor], sizes: Sequence[int], first: State, weights: _Weights
) -> tuple[list[Tensor], State]:
    """The same from the last step to the first: sequences join in as they begin."""
    hidden: list[Tensor] = []
    count = sizes[-1]
    state = _rows(first, 0, count)
    for of_input, size in zip(reversed(steps), reversed(sizes), strict=True):
        if size > count:
            state, count = _joined([state, _rows(first, count, size)]), size
        state = kind.step(of_input, state, weights)
        hidden.append(state[0])
    return hidden[::-1], state


def _joined(states: Sequence[State]) -> State:
    if len(states) == 1:
        return states[0]
    return tuple(cat(list(parts)) for parts in zip(*states, strict=True))


def _layers(
    kind: _Kind,
    data: Tensor,
    sizes: Sequence[int],
    first: State,
    weights: Sequence[_Weights],
    directions: int,
    dropout_p: float,
) -> tuple[Tensor, State]:
    """The last layer's hidden states, packed, and the last state of each layer and direction."""
    firsts = list(zip(*(unbind(part) for part in first), strict=True))
    lasts: list[State] = []
    for layer in range(0, len(weights), directions):
        if layer and dropout_p:
            data = dropout(data, dropout_p)
        outputs: list[Tensor] = []
        for place in range(layer, layer + directions):
            own = weights[place]
            steps = split_with_sizes(linear(data, own.w_ih, own.b_ih), list(sizes))
            run = _backward if place > layer else _forward
            hidden, last = run(kind, steps, sizes, firsts[place], own)
            outputs.append(cat(hidden))
            lasts.append(last)
        data = outputs[0] if directions == 1 else cat(outputs, 1)
    return data, tuple(stack(list(parts)) for parts in zip(*lasts, strict=True))


# --- arguments --------------------------------------------------------------------------------


def _grouped(
    kind: _Kind, params: Sequence[Tensor], has_biases: bool, projected: bool, count: int
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
    kind: _Kind, size: int, batch: int, first: State, weights: Sequence[_Weights], directions: int
) -> None:
    """Raises RuntimeError where sizes of input, states and weights do not fit."""
    for part in first:
        shape = array_of(part).shape
        if len(shape) != 3 or shape[:2] != (len(weights), batch):
            raise RuntimeError(
                f"{kind.name}: Expected hidden size ({len(weights)}, {batch}, hidden), got "
                f"{list(shape)}"
            )
    hidden, width = array_of(first[0]).shape[-1], array_of(first[-1]).shape[-1]
    for place, own in enumerate(weights):
        read = size if place < directions else hidden * directions
        wanted = ((kind.gates * width, read), (kind.gates * width, hidden))
        found = (array_of(own.w_ih).shape, array_of(own.w_hh).shape)
        if found != wanted:
            raise RuntimeError(
                f"{kind.name}: expected weights {wanted} in layer {place // directions}, for "
                f"{read} inputs and {hidden} hidden units, got {found}"
            )


def _run(kind: _Kind, first: State, args: Sequence[Any], data: Tensor, sizes: Any) -> Any:
    """Runs a network over packed data; `args` begin with the parameters."""
    params, has_biases, num_layers, dropout_p, train, bidirectional = args
    directions = 2 if bidirectional else 1
    projected = array_of(first[0]).shape[-1] != array_of(first[-1]).shape[-1]
    weights = _grouped(kind, params, bool(has_biases), projected, num_layers * directions)
    _check(kind, array_of(data).shape[-1], sizes[0], first, weights, directions)
    p = float(dropout_p) if train else 0.0
    output, last = _layers(kind, data, sizes, first, weights, directions, p)
    return (output, *last)


def _run_packed(kind: _Kind, data: Tensor, batch_sizes: Any, first: State, *args: Any) -> Any:
    sizes = [int(n) for n in on_host(kind.name, batch_sizes)]
    if array_of(data).ndim != 2 or not sizes or sum(sizes) != array_of(data).shape[0]:
        raise RuntimeError(
            f"{kind.name}: expected data of {sum(sizes)} rows, the sum of batch_sizes, got shape "
            f"{list(array_of(data).shape)}"
        )
    if sorted(sizes, reverse=True) != sizes or sizes[-1] < 1:
        raise RuntimeError(
            f"{kind.name}: batch_sizes must be positive and not grow, got {sizes}. Sort sequences "
            "by length, the longest first."
        )
    return _run(kind, first, args, data, sizes)


def _run_padded(
    kind: _Kind, input: Tensor, first: State, *args: Any, batch_first: bool = False
) -> Any:
    if array_of(input).ndim != 3:
        raise RuntimeError(
            f"{kind.name}: input must have 3 dimensions, (time, batch, size), got "
            f"{array_of(input).ndim}. Add a batch by unsqueeze(1)."
        )
    if batch_first:
        input = transpose(input, 0, 1)
    times, batch, size = array_of(input).shape
    if times == 0:
        raise RuntimeError(f"{kind.name}: Expected sequence length to be larger than 0")
    flat = reshape(input, (times * batch, size))
    output, *last = _run(kind, first, args, flat, [batch] * times)
    output = reshape(output, (times, batch, -1))
    return (transpose(output, 0, 1) if batch_first else output, *last)


# --- functions --------------------------------------------------------------------------------


def _one_state(kind: _Kind, doc: str) -> Callable[..., tuple[Tensor, Tensor]]:
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
    _Kind("gru", 3, _gru_step),
    """Gated recurrent units over a batch of sequences: every hidden state, and the last ones.

    Arguments as in `rnn_tanh`, weights as in `gru_cell`.

    >>> params = [dg.ones(3, 2), dg.zeros(3, 1)]
    >>> x, h = dg.zeros(2, 1, 2), dg.ones(1, 1, 1)
    >>> dg.gru(x, h, params, False, 1, 0.0, False, False, False)[0].flatten()
    tensor([0.5000, 0.2500])
    """,
)
rnn_relu = _one_state(
    _Kind("rnn_relu", 1, _relu_step),
    """`rnn_tanh` with `relu` in place of `tanh`.

    >>> params = [dg.ones(1, 1), dg.ones(1, 1)]
    >>> x, h = dg.ones(3, 1, 1), dg.zeros(1, 1, 1)
    >>> dg.rnn_relu(x, h, params, False, 1, 0.0, False, False, False)[0].flatten()
    tensor([1., 2., 3.])
    """,
)
rnn_tanh = _one_state(
    _Kind("rnn_tanh", 1, _tanh_step),
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

_LSTM = _Kind("lstm", 4, _lstm_step)


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
        return _run_packed(_LSTM, input, hx, tuple(states), *rest)
    rest = (params, has_biases, num_layers, dropout, train, bidirectional)
    return _run_padded(_LSTM, input, tuple(states), *rest, batch_first=batch_first)


__all__ = [
    "gru",
    "lstm",
    "rnn_relu",
    "rnn_tanh",
]
METHODS = ()
"""The functions of this file that are methods of Tensor too."""
