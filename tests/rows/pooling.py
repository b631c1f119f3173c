"""Rows of the operators in `dyngraph/ops/pooling.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from tests.opinfo import OpInfo, call, functional, normal
from tests.references import adaptive_pool, pool_windows, windows_folded


def avg_pool(dims: int, *, count_pad: bool) -> Callable[..., Any]:
    def reference(x: Any, kernel: int, stride: Any = None, padding: int = 0, *_: Any) -> Any:
        if not count_pad:
            return windows_folded(
                x, dims, pool_windows(kernel, stride, padding, 1, False), jnp.mean
            )
        x = jnp.pad(x, [(0, 0)] * (x.ndim - dims) + [(padding, padding)] * dims)
        return windows_folded(x, dims, pool_windows(kernel, stride, 0, 1, False), jnp.mean)

    return reference


ROWS: list[OpInfo] = [
    functional(
        "avg_pool1d",
        [call(normal(2, 5), 3, 2, 1)],
        avg_pool(1, count_pad=True),
        refuses_empty="non-zero channels and sizes",
    ),
    functional(
        "avg_pool2d",
        [call(normal(1, 1, 5, 4), 3, 2, 1, False, False)],
        avg_pool(2, count_pad=False),
        refuses_empty="non-zero channels and sizes",
    ),
    functional(
        "avg_pool3d",
        [call(normal(1, 3, 4, 2), 2)],
        avg_pool(3, count_pad=True),
        refuses_empty="non-zero channels and sizes",
    ),
    functional(
        "adaptive_avg_pool1d",
        [call(normal(2, 5), 3)],
        adaptive_pool(1, jnp.mean),
        refuses_empty="non-zero channels and sizes",
    ),
    functional(
        "adaptive_avg_pool2d",
        [call(normal(1, 5, 4), (3, None))],
        adaptive_pool(2, jnp.mean),
        refuses_empty="non-zero channels and sizes",
    ),
    functional(
        "adaptive_avg_pool3d",
        [call(normal(1, 3, 2, 4), 2)],
        adaptive_pool(3, jnp.mean),
        refuses_empty="non-zero channels and sizes",
    ),
]
