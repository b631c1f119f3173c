"""Rows of the operators in `dyngraph/ops/random_slopes.py`."""

from __future__ import annotations

import jax.numpy as jnp

from tests.opinfo import OpInfo, call, functional, spread

ROWS: list[OpInfo] = [
    functional(
        "rrelu",
        [call(spread(2, 3), 0.1, 0.3)],
        lambda x, low, high: jnp.where(x > 0, x, (low + high) / 2 * x),
    ),
]
