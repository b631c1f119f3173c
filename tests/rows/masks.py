"""Rows of the operators in `dyngraph/ops/masks.py`."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from tests.opinfo import OpInfo, booleans, call, normal

ROWS: list[OpInfo] = [
    OpInfo(
        "masked_fill",
        [
            call(normal(2, 3), booleans(2, 3), 1.5),
            call(normal(2, 3), booleans(3), normal()),
            call(normal(2, 1), booleans(2, 3), -1),
        ],
        lambda x, mask, value: jnp.where(mask, value, x),
    ),
    OpInfo(
        "masked_select",
        [call(normal(2, 3), np.array([[True, False, True], [False, False, True]]))],
        lambda x, mask: x[(np.array([0, 0, 1]), np.array([0, 2, 2]))],
        no_empty="the twin is written for this mask",
    ),
    OpInfo(
        "masked_scatter",
        [call(normal(2, 2), np.array([[True, False], [True, True]]), normal(4))],
        lambda x, mask, source: jnp.array([[source[0], x[0, 1]], [source[1], source[2]]]),
        no_empty="the twin is written for this mask",
    ),
]
