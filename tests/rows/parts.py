"""Rows of the operators in `dyngraph/ops/parts.py`."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from tests.opinfo import OpInfo, call, normal


def windows(x: Any, dimension: int, size: int, step: int) -> Any:
    starts = range(0, x.shape[dimension] - size + 1, step)
    parts = [
        jnp.moveaxis(jnp.take(x, np.arange(s, s + size), dimension), dimension, -1) for s in starts
    ]
    return jnp.stack(parts, dimension)


def in_parts(x: Any, size: Any, dim: int = 0) -> Any:
    length = x.shape[dim]
    stops = np.cumsum(size)[:-1] if isinstance(size, list) else np.arange(size, length, size)
    return jnp.split(x, stops, dim)


def cut_before(x: Any, indices: Any, dim: int = 0) -> Any:
    """jnp.array_split, which refuses indices beyond the end; here they cut off nothing."""
    if not isinstance(indices, int):
        indices = np.minimum(indices, x.shape[dim])
    return jnp.array_split(x, indices, dim)


matrix, cube, vector, scalar = normal(2, 3), normal(2, 3, 4), normal(4), np.array(0.7, np.float32)

ROWS: list[OpInfo] = [
    OpInfo("split", [call(normal(5, 2), 2), call(normal(2, 5), [1, 4], 1)], in_parts),
    OpInfo(
        "split_with_sizes",
        [call(normal(5), [2, 3])],
        in_parts,
        refuses_empty="sum exactly to 0",
    ),
    OpInfo(
        "chunk",
        [call(normal(2, 5), 2, 1), call(normal(4), 3)],
        lambda x, n, dim=0: in_parts(x, math.ceil(x.shape[dim] / n), dim),
        no_empty="the twin is written for some elements",
    ),
    OpInfo(
        "tensor_split",
        [call(normal(7), 3), call(normal(2, 5), (1, 3), 1), call(normal(4), np.array([1, 3]))],
        cut_before,
        second=False,
    ),
    OpInfo("hsplit", [call(normal(2, 4), 2)], jnp.hsplit),
    OpInfo("vsplit", [call(normal(2, 4), 2)], jnp.vsplit),
    OpInfo("dsplit", [call(normal(1, 2, 4), 2)], jnp.dsplit),
    OpInfo(
        "unbind",
        [call(matrix), call(matrix, dim=-1)],
        lambda x, dim=0: list(jnp.moveaxis(x, dim, 0)),
    ),
    OpInfo(
        "narrow",
        [call(normal(5, 2), 0, 1, 3), call(normal(2, 5), -1, -2, 2)],
        lambda x, dim, start, n: jnp.take(
            x, np.arange(start % x.shape[dim], start % x.shape[dim] + n), dim
        ),
    ),
    OpInfo(
        "select",
        [call(matrix, 0, 1), call(cube, -2, -1)],
        lambda x, dim, index: jnp.take(x, index % x.shape[dim], dim),
    ),
    OpInfo("unfold", [call(normal(5), 0, 2, 2), call(normal(2, 5), 1, 3, 1)], windows),
]
