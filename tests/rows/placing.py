"""Rows of the operators in `dyngraph/ops/placing.py`."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from tests.opinfo import OpInfo, call, normal


def strided(size: Any, stride: Any, offset: int) -> np.ndarray:
    """The positions of a strided view, (size)."""
    steps = np.indices(size).reshape(len(size), -1)
    return (offset + np.asarray(stride) @ steps).reshape(size)


def by_mask(x: Any, src: Any, offset: int, dim1: int, dim2: int) -> Any:
    """`diagonal_scatter` of a (2, 3, 4) tensor along its last two dims, by a sum of outer parts."""
    assert (offset, dim1, dim2) == (1, -2, -1)
    one = jnp.eye(3, 4, 1, dtype=x.dtype)
    return x * (1 - one) + one * jnp.concatenate([jnp.zeros((2, 1), x.dtype), src], 1)[:, None, :]


ROWS: list[OpInfo] = [
    OpInfo(
        "diagonal_scatter",
        [call(normal(2, 3, 4), normal(2, 3), 1, -2, -1)],
        by_mask,
        no_empty="the twin is written for some elements",
    ),
    OpInfo(
        "select_scatter",
        [call(normal(3, 4), normal(3), 1, -1)],
        lambda x, src, dim, index: x.at[:, index].set(src),
    ),
    OpInfo(
        "slice_scatter",
        [call(normal(2, 5), normal(2, 2), 1, -4, None, 2)],
        lambda x, src, dim, start, end, step: x.at[:, start:end:step].set(src),
        refuses_empty="size equal to the slice",
    ),
    OpInfo(
        "as_strided",
        [call(normal(3, 4), (2, 3), (4, 1), 1), call(normal(5), (3, 2), (1, 1))],
        lambda x, size, stride, offset=0: x.reshape(-1)[strided(size, stride, offset)],
    ),
    OpInfo(
        "as_strided_scatter",
        [call(normal(3, 4), normal(2, 2), (2, 2), (4, 2), 1)],
        lambda x, src, size, stride, offset: (
            x.reshape(-1).at[strided(size, stride, offset)].set(src).reshape(x.shape)
        ),
        refuses_empty="but the tensor has 0",
    ),
    OpInfo(
        "put",
        [
            call(normal(2, 3), np.array([[0, -1]], np.int32), normal(2, 1)),
            call(normal(2, 3), np.array([1, 1, 4], np.int32), normal(3), accumulate=True),
        ],
        lambda x, index, source, accumulate=False: getattr(
            x.reshape(-1).at[index.reshape(-1)], "add" if accumulate else "set"
        )(source.reshape(-1)).reshape(x.shape),
        refuses_empty="on a tensor of 0 elements",
    ),
    OpInfo(
        "fill",
        [call(normal(2, 3), 2.5), call(normal(2, 3), normal())],
        lambda x, value: jnp.full_like(x, value),
    ),
]
