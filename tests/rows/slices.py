"""Rows of the operators in `dyngraph/ops/slices.py`."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from tests.opinfo import OpInfo, call, integers, normal, spread


def rows(index: Any, dim: int) -> tuple[Any, ...]:
    return (*[slice(None)] * dim, index)


ROWS: list[OpInfo] = [
    OpInfo(
        "index_select",
        [call(normal(3, 4), 1, integers(4, 6)), call(normal(3, 4), -2, integers(3, 2))],
        lambda x, dim, index: jnp.take(x, index, axis=dim),
        refuses_empty="Index to scalar can have only 1 value|index out of range",
    ),
    OpInfo(
        "index_add",
        [call(normal(2, 3), 1, integers(3, 5), normal(2, 5), alpha=2.0)],
        lambda x, dim, index, source, alpha: x.at[rows(index, dim)].add(alpha * source),
        refuses_empty="index out of range in self",
    ),
    OpInfo(
        "index_fill",
        [
            call(normal(2, 3), 1, np.array([0, 2, 0], np.int32), 3.0),
            call(normal(2, 3), 0, np.array([-1], np.int32), normal()),
        ],
        lambda x, dim, index, value: x.at[rows(index, dim)].set(value),
    ),
    OpInfo(
        "index_copy",
        [call(normal(2, 3), 1, np.array([2, 0], np.int32), normal(2, 2))],
        lambda x, dim, index, source: x.at[rows(index, dim)].set(source),
        refuses_empty="out of bounds for dimension|Number of indices .0. should be equal",
    ),
    OpInfo(
        "index_reduce",
        [
            call(spread(3, 2), 0, np.array([0, 2, 0], np.int32), 1.3 * spread(3, 2), "amax"),
            call(spread(3, 2), 0, np.array([0, 2, 0], np.int32), 1.3 * spread(3, 2), "mean"),
        ],
        lambda x, dim, index, source, reduce: jnp.stack(
            [
                jnp.mean(rows_, 0) if reduce == "mean" else jnp.max(rows_, 0)
                for rows_ in (
                    jnp.stack([x[0], source[0], source[2]]),
                    x[1:2],
                    jnp.stack([x[2], source[1]]),
                )
            ]
        ),
        no_empty="the twin is written for some elements",
    ),
    OpInfo(
        "index_select",
        [call(normal(), 0, np.array([0], np.int32))],
        lambda x, dim, index: x,
        refuses_empty="Index to scalar can have only 1 value|index out of range",
    ),
]
