"""Rows of the operators in `dyngraph/ops/cells.py`."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from tests.opinfo import OpInfo, call, normal


def affine(x: Any, w: Any, b: Any = None) -> Any:
    return x @ w.T if b is None else x @ w.T + b


def lstm(x: Any, state: Any, w: Any, u: Any, b: Any = None, c: Any = None) -> Any:
    i, f, g, o = jnp.split(affine(x, w, b) + affine(state[0], u, c), 4, 1)
    cell = jax.nn.sigmoid(f) * state[1] + jax.nn.sigmoid(i) * jnp.tanh(g)
    return jax.nn.sigmoid(o) * jnp.tanh(cell), cell


def gru(x: Any, h: Any, w: Any, u: Any, b: Any = None, c: Any = None) -> Any:
    xs, hs = jnp.split(affine(x, w, b), 3, 1), jnp.split(affine(h, u, c), 3, 1)
    r, z = jax.nn.sigmoid(xs[0] + hs[0]), jax.nn.sigmoid(xs[1] + hs[1])
    return (1 - z) * jnp.tanh(xs[2] + r * hs[2]) + z * h


def weights(gates: int) -> tuple[Any, ...]:
    """Weights and biases for 3 inputs and 2 hidden units."""
    return (
        normal(2 * gates, 3),
        normal(2 * gates, 2),
        normal(2 * gates),
        normal(2 * gates),
    )


ROWS: list[OpInfo] = [
    OpInfo(
        "rnn_tanh_cell",
        [call(normal(2, 3), normal(2, 2), *weights(1))],
        lambda x, h, w, u, b, c: jnp.tanh(affine(x, w, b) + affine(h, u, c)),
        refuses_empty="inconsistent hidden_size",
    ),
    OpInfo(
        "rnn_relu_cell",
        [call(normal(2, 3), normal(2, 2), *weights(1)[:2])],
        lambda x, h, w, u: jax.nn.relu(affine(x, w) + affine(h, u)),
        refuses_empty="inconsistent hidden_size",
    ),
    OpInfo("lstm_cell", [call(normal(2, 3), [normal(2, 2), normal(2, 2)], *weights(4))], lstm),
    OpInfo("gru_cell", [call(normal(2, 3), normal(2, 2), *weights(3))], gru),
]
