"""Rows of the operators in `dyngraph/ops/rounding.py`."""

from __future__ import annotations

import jax.numpy as jnp

from tests.opinfo import OpInfo, normal, unary

ROWS: list[OpInfo] = [
    unary("floor", jnp.floor, normal(2, 3), second=False),  # the second derivative is zero too
    unary("ceil", jnp.ceil, normal(2, 3), second=False),
    unary("round", jnp.round, normal(2, 3), second=False),
    unary("trunc", jnp.trunc, normal(2, 3), second=False),
    unary("frac", lambda x: x - jnp.trunc(x), normal(2, 3)),
]
