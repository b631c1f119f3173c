"""Rows of the operators in `dyngraph/ops/choosing.py`."""

from __future__ import annotations

import jax.numpy as jnp

from tests.opinfo import OpInfo, between, binary, booleans, call, normal, spread, unary
from tests.references import clip

NO_TIES = spread(2, 3)

ROWS: list[OpInfo] = [
    binary("maximum", jnp.maximum, spread(2, 3), spread(2, 3) + 0.05),
    binary("minimum", jnp.minimum, spread(2, 3), spread(2, 3) + 0.05),
    binary("fmax", jnp.fmax, spread(2, 3), spread(2, 3) + 0.05),
    binary("fmin", jnp.fmin, spread(2, 3), spread(2, 3) + 0.05),
    OpInfo(
        "clamp",
        [
            call(NO_TIES, -0.2, 0.2),
            call(NO_TIES, min=0.1),
            call(NO_TIES, max=0.1),
            call(NO_TIES, between(-0.3, -0.1, 3), between(0.1, 0.3, 2, 1)),
        ],
        clip,
        broadcasts=True,
    ),
    OpInfo("clamp_min", [call(NO_TIES, 0.1)], jnp.maximum),
    OpInfo("clamp_max", [call(NO_TIES, 0.1)], jnp.minimum),
    OpInfo(
        "where",
        [
            call(booleans(2, 3), normal(2, 3), normal(3)),
            call(booleans(2, 3), normal(2, 3), 0.0),
            call(booleans(2, 1), 1.5, normal(3)),
        ],
        jnp.where,
    ),
    unary("nan_to_num", jnp.nan_to_num, normal(2, 3)),
]
