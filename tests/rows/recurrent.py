"""Rows of the operators in `dyngraph/ops/recurrent.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tests.opinfo import OpInfo, call, normal
from tests.rows.cells import affine, gru, lstm


def weights(gates: int, inputs: int, hidden: int = 2) -> list[Any]:
    """One layer of one direction, without biases."""
    return [normal(gates * hidden, inputs), normal(gates * hidden, hidden)]


def network(step: Callable[..., Any]) -> Callable[..., Any]:
    """Layers of a cell whose state is one array, in one direction."""

    def run(x: Any, h: Any, params: Any, *options: Any) -> Any:
        lasts = []
        for layer, state in enumerate(h):
            outputs = []
            for row in x:
                state = step(row, state, *params[2 * layer : 2 * layer + 2])
                outputs.append(state)
            x = jnp.stack(outputs)
            lasts.append(state)
        return x, jnp.stack(lasts)

    return run


def both_directions(x: Any, state: Any, params: Any, *options: Any) -> Any:
    """One layer of an LSTM, from either end."""
    outputs, lasts = [], []
    for i, rows in enumerate((x, x[::-1])):
        own = (state[0][i], state[1][i])
        hidden = []
        for row in rows:
            own = lstm(row, own, *params[2 * i : 2 * i + 2])
            hidden.append(own[0])
        outputs.append(jnp.stack(hidden if i == 0 else hidden[::-1]))
        lasts.append(own)
    hs, cs = (jnp.stack(parts) for parts in zip(*lasts, strict=True))
    return jnp.concatenate(outputs, -1), hs, cs


def packed(x: Any, sizes: Any, h: Any, params: Any, *options: Any) -> Any:
    """One layer with tanh over each sequence by itself."""
    sizes = np.asarray(sizes).tolist()
    starts = np.cumsum([0, *sizes])
    outputs = list(x)
    lasts = []
    for i in range(sizes[0]):
        state = h[0, i]
        for start, size in zip(starts, sizes, strict=False):
            if i < size:
                state = jnp.tanh(affine(x[start + i], params[0]) + affine(state, params[1]))
                outputs[start + i] = state
        lasts.append(state)
    return jnp.stack(outputs), jnp.stack(lasts)[None]


# Second derivatives are those of the cells, which have their own rows.
ROWS: list[OpInfo] = [
    OpInfo(
        "rnn_tanh",
        [
            call(
                normal(3, 3),
                np.array([2, 1]),
                normal(1, 2, 2),
                weights(1, 3),
                False,
                1,
                0.0,
                False,
                False,
            )
        ],
        packed,
        second=False,
        no_empty="the twin stacks steps that are not there",
    ),
    OpInfo(
        "rnn_relu",
        [
            call(
                normal(2, 2, 3),
                normal(2, 2, 2),
                [*weights(1, 3), *weights(1, 2)],
                False,
                2,
                0.0,
                False,
                False,
                False,
            )
        ],
        network(lambda x, h, w, u: jax.nn.relu(affine(x, w) + affine(h, u))),
        second=False,
    ),
    OpInfo(
        "gru",
        [call(normal(2, 2, 3), normal(1, 2, 2), weights(3, 3), False, 1, 0.0, False, False, False)],
        network(gru),
        second=False,
    ),
    OpInfo(
        "lstm",
        [
            call(
                normal(2, 2, 3),
                (normal(2, 2, 2), normal(2, 2, 2)),
                [*weights(4, 3), *weights(4, 3)],
                False,
                1,
                0.0,
                False,
                True,
                False,
            )
        ],
        both_directions,
        second=False,
    ),
]
