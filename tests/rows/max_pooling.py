"""Rows of the operators in `dyngraph/ops/max_pooling.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from tests.opinfo import OpInfo, call, functional, spread
from tests.references import adaptive_pool, pool_windows, windows_folded, with_positions


def max_pool(dims: int) -> Callable[..., Any]:
    return lambda x, kernel, stride=None, padding=0, dilation=1, ceil_mode=False: windows_folded(
        x, dims, pool_windows(kernel, stride, padding, dilation, ceil_mode), jnp.max
    )


ROWS: list[OpInfo] = [
    functional(
        "max_pool1d",
        [call(spread(2, 7), 2, 3, 1, 2, True)],
        max_pool(1),
        refuses_empty="non-zero channels and sizes",
    ),
    functional(
        "max_pool2d",
        [call(spread(1, 2, 5, 4), 3, 2, 1)],
        max_pool(2),
        refuses_empty="non-zero channels and sizes",
    ),
    functional(
        "max_pool3d",
        [call(spread(1, 3, 3, 4), 2, 1)],
        max_pool(3),
        refuses_empty="non-zero channels and sizes",
    ),
    functional(
        "adaptive_max_pool1d",
        [call(spread(2, 5), 3)],
        adaptive_pool(1, jnp.max),
        refuses_empty="non-zero channels and sizes",
    ),
    functional(
        "adaptive_max_pool2d",
        [call(spread(1, 5, 4), (3, None))],
        adaptive_pool(2, jnp.max),
        refuses_empty="non-zero channels and sizes",
    ),
    functional(
        "adaptive_max_pool3d",
        [call(spread(1, 3, 2, 4), 2)],
        adaptive_pool(3, jnp.max),
        refuses_empty="non-zero channels and sizes",
    ),
    functional(
        "max_pool1d_with_indices",
        [call(spread(2, 7), 2, 3, 1, 2, True)],
        with_positions(max_pool(1), 1),
        refuses_empty="non-zero channels and sizes",
    ),
    functional(
        "max_pool2d_with_indices",
        [call(spread(1, 5, 4), 3, 2, 1)],
        with_positions(max_pool(2), 2),
        refuses_empty="non-zero channels and sizes",
    ),
    functional(
        "max_pool3d_with_indices",
        [call(spread(1, 3, 3, 4), 2, 1)],
        with_positions(max_pool(3), 3),
        refuses_empty="non-zero channels and sizes",
    ),
    functional(
        "adaptive_max_pool2d_with_indices",
        [call(spread(1, 5, 4), (3, None))],
        with_positions(adaptive_pool(2, jnp.max), 2),
        refuses_empty="non-zero channels and sizes",
    ),
]
