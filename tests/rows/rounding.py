"""Rows of the operators in `dyngraph/ops/rounding.py`."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from tests.opinfo import OpInfo, call, integers, normal, positive, unary

ROWS: list[OpInfo] = [
    unary("floor", jnp.floor, normal(2, 3), second=False),  # the second derivative is zero too
    unary("ceil", jnp.ceil, normal(2, 3), second=False),
    unary("round", jnp.round, normal(2, 3), second=False),
    unary("trunc", jnp.trunc, normal(2, 3), second=False),
    unary("frac", lambda x: x - jnp.trunc(x), normal(2, 3)),
    OpInfo(
        "nextafter",
        [call(normal(2, 3), normal(2, 3))],
        lambda x, y: (
            x + (jnp.nextafter(*map(jax.lax.stop_gradient, (x, y))) - jax.lax.stop_gradient(x))
        ),
        broadcasts=True,
    ),
    OpInfo(
        "frexp",
        [call(positive(2, 3))],
        lambda x: (x * jnp.asarray(2, x.dtype) ** -jnp.frexp(x)[1], jnp.frexp(x)[1]),
    ),
    OpInfo(
        "ldexp",
        [call(normal(2, 3), integers(4, 3))],
        lambda x, other: x * jnp.asarray(2, x.dtype) ** other,
        broadcasts=True,
    ),
]
