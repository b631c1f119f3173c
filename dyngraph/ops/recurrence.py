"""One layer of a recurrent network in one direction, over all steps, as one operator.

Sequences are padded to the longest, (time, batch, size); `sizes` says how many of them have each
step, the longest standing first. Where a sequence has no step its state stays as it is: so it ends
with the state of its last step, and, from the other end, begins with the first.

# Note [Derivatives of all steps at once]
Backward saves every state and nothing of what lies between them. From the states it computes the
gates of all steps, and their derivatives, side by side; what has to go step by step is only a
product with these derivatives and one with `w_hh`. Gradients of weights are one product each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from dyngraph.kernels import JointRule
from dyngraph.ops.cells import gru_gates, lstm_gates
from dyngraph.ops.operator import define

State = tuple[Any, ...]
"""What a step hands on to the next: (hidden,), or (hidden, cell) of an LSTM."""


class Kind(NamedTuple):
    """One sort of recurrent network: its name, its gates, and what a step makes of them."""

    name: str
    gates: int
    step: Callable[..., State]
    """From the input's part of the gates, the hidden state's, and the state."""
    reads_sum: bool
    """Whether a step reads only the sum of both parts."""


def _linear(x: Any, weight: Any, bias: Any) -> Any:
    product = x @ weight.T
    return product if bias is None else product + bias


def _active(sizes: Any, batch: int) -> Any:
    """Which sequences have a step: (time, batch, 1); None where all have all."""
    return None if sizes is None else jnp.arange(batch)[:, None] < sizes[:, None, None]


def _chosen(active: Any, there: State, elsewhere: State) -> State:
    if active is None:
        return there
    return tuple(jnp.where(active, a, b) for a, b in zip(there, elsewhere, strict=True))


def _run(
    kind: Kind,
    reverse: bool,
    input: Any,
    first: State,
    w_ih: Any,
    w_hh: Any,
    b_ih: Any,
    b_hh: Any,
    w_hr: Any,
    sizes: Any,
) -> State:
    """Every hidden state (and cell), and the last ones: (output, hy), (output, hy, cells, cy)."""

    def step(state: State, at: tuple[Any, Any]) -> tuple[State, State]:
        of_input, active = at
        new = kind.step(of_input, _linear(state[0], w_hh, b_hh), *state)
        if w_hr is not None:
            new = (new[0] @ w_hr.T, new[1])
        new = _chosen(active, new, state)
        return new, new

    steps = (_linear(input, w_ih, b_ih), _active(sizes, input.shape[1]))
    last, states = jax.lax.scan(step, first, steps, reverse=reverse)
    return tuple(part for pair in zip(states, last, strict=True) for part in pair)


def _before(first: Any, states: Any, reverse: bool) -> Any:
    """The state that each step began with."""
    parts = (states[1:], first[None]) if reverse else (first[None], states[:-1])
    return jnp.concatenate(parts)


def _differentiate(
    kind: Kind,
    reverse: bool,
    grads: State,
    input: Any,
    first: State,
    w_ih: Any,
    w_hh: Any,
    b_ih: Any,
    b_hh: Any,
    w_hr: Any,
    sizes: Any,
    states: State,
) -> dict[str, Any]:
    """The gradient of every input, by name. See Note [Derivatives of all steps at once]."""
    before = tuple(_before(f, s, reverse) for f, s in zip(first, states, strict=True))
    of_input, of_hidden = _linear(input, w_ih, b_ih), _linear(before[0], w_hh, b_hh)
    made, derivatives = jax.vmap(lambda *at: jax.vjp(kind.step, *at))(of_input, of_hidden, *before)

    def step_back(later: State, at: tuple[Any, ...]) -> tuple[State, tuple[Any, ...]]:
        derivative, own, active = at
        later = tuple(a + b for a, b in zip(later, own, strict=True))
        nothing = tuple(jnp.zeros_like(part) for part in later)
        new = _chosen(active, later, nothing)
        output = new[0]
        if w_hr is not None:
            new = (output @ w_hr, new[1])
        of_input, of_hidden, *earlier = derivative(new)
        earlier[0] = earlier[0] + of_hidden @ w_hh
        if active is not None:
            kept = _chosen(active, nothing, later)
            earlier = [a + b for a, b in zip(earlier, kept, strict=True)]
        kept = None if w_hr is None else output
        return tuple(earlier), (of_input, None if kind.reads_sum else of_hidden, kept)

    steps = (derivatives, tuple(grads[::2]), _active(sizes, input.shape[1]))
    start, (of_input, of_hidden, output) = jax.lax.scan(
        step_back, tuple(grads[1::2]), steps, reverse=not reverse
    )
    if of_hidden is None:
        of_hidden = of_input
    found = {
        "input": of_input @ w_ih,
        "hx": start[0],
        "w_ih": _summed_product(of_input, input),
        "w_hh": _summed_product(of_hidden, before[0]),
        "b_ih": of_input.sum((0, 1)),
        "b_hh": of_hidden.sum((0, 1)),
    }
    if len(start) > 1:
        found["cx"] = start[1]
        found["w_hr"] = None if w_hr is None else _summed_product(output, made[0])
    return found


def _summed_product(left: Any, right: Any) -> Any:
    """The sum over steps and sequences of their outer products: (..., m), (..., n) -> (m, n)."""
    return jnp.tensordot(left, right, ((0, 1), (0, 1)))


_DIFFERENTIABLE = ("input", "hx", "w_ih", "w_hh", "b_ih", "b_hh")


def _define_one_state(kind: Kind) -> Callable[..., Any]:
    def forward(
        input: Any,
        hx: Any,
        w_ih: Any,
        w_hh: Any,
        b_ih: Any = None,
        b_hh: Any = None,
        sizes: Any = None,
        *,
        reverse: bool,
    ) -> State:
        return _run(kind, reverse, input, (hx,), w_ih, w_hh, b_ih, b_hh, None, sizes)

    def backward(
        grads: Any,
        input: Any,
        hx: Any,
        w_ih: Any,
        w_hh: Any,
        b_ih: Any,
        b_hh: Any,
        sizes: Any,
        output: Any,
        reverse: bool,
    ) -> dict[str, Any]:
        return _differentiate(
            kind, reverse, grads, input, (hx,), w_ih, w_hh, b_ih, b_hh, None, sizes, (output,)
        )

    return define(
        f"{kind.name}_layer",
        forward,
        signature="input, hx, w_ih, w_hh, b_ih, b_hh, sizes, reverse",
        outputs=("output", "hy"),
        sizes=None,
        **dict.fromkeys(_DIFFERENTIABLE, JointRule(backward)),
    )


def _define_lstm(kind: Kind) -> Callable[..., Any]:
    def forward(
        input: Any,
        hx: Any,
        cx: Any,
        w_ih: Any,
        w_hh: Any,
        b_ih: Any = None,
        b_hh: Any = None,
        w_hr: Any = None,
        sizes: Any = None,
        *,
        reverse: bool,
    ) -> State:
        return _run(kind, reverse, input, (hx, cx), w_ih, w_hh, b_ih, b_hh, w_hr, sizes)

    def backward(
        grads: Any,
        input: Any,
        hx: Any,
        cx: Any,
        w_ih: Any,
        w_hh: Any,
        b_ih: Any,
        b_hh: Any,
        w_hr: Any,
        sizes: Any,
        output: Any,
        cells: Any,
        reverse: bool,
    ) -> dict[str, Any]:
        states = (output, cells)
        return _differentiate(
            kind, reverse, grads, input, (hx, cx), w_ih, w_hh, b_ih, b_hh, w_hr, sizes, states
        )

    return define(
        f"{kind.name}_layer",
        forward,
        signature="input, hx, cx, w_ih, w_hh, b_ih, b_hh, w_hr, sizes, reverse",
        outputs=("output", "hy", "cells", "cy"),
        sizes=None,
        **dict.fromkeys((*_DIFFERENTIABLE, "cx", "w_hr"), JointRule(backward)),
    )


def _activated(activation: Callable[[Any], Any]) -> Callable[..., State]:
    return lambda of_input, of_hidden, h: (activation(of_input + of_hidden),)


RNN_TANH = Kind("rnn_tanh", 1, _activated(jnp.tanh), True)
RNN_RELU = Kind("rnn_relu", 1, _activated(jax.nn.relu), True)
GRU = Kind("gru", 3, lambda of_input, of_hidden, h: (gru_gates(of_input, of_hidden, h),), False)
LSTM = Kind("lstm", 4, lambda of_input, of_hidden, h, c: lstm_gates(of_input, of_hidden, c), True)

LAYERS: dict[str, Callable[..., Any]] = {
    **{kind.name: _define_one_state(kind) for kind in (RNN_TANH, RNN_RELU, GRU)},
    LSTM.name: _define_lstm(LSTM),
}
"""The operator of each kind. Outputs are every hidden state and the last, then, of an LSTM, every
cell and the last."""

__all__: list[str] = []  # `ops.recurrent` calls them
METHODS: tuple[str, ...] = ()
