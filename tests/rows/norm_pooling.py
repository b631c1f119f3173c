"""Rows of the operators in `dyngraph/ops/norm_pooling.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from tests.opinfo import OpInfo, call, functional, positive
from tests.references import pool_windows, windows_folded


def lp_pool(dims: int) -> Callable[..., Any]:
    return lambda x, p, kernel: (
        windows_folded(x**p, dims, pool_windows(kernel, None, 0, 1, False), jnp.sum) ** (1 / p)
    )


ROWS: list[OpInfo] = [
    functional(
        "lp_pool1d",
        [call(positive(2, 5), 2, 2)],
        lp_pool(1),
        refuses_empty="non-zero channels and sizes",
    ),
    functional(
        "lp_pool2d",
        [call(positive(1, 4, 3), 3, 2)],
        lp_pool(2),
        refuses_empty="non-zero channels and sizes",
    ),
    functional(
        "lp_pool3d",
        [call(positive(1, 2, 3, 2), 2, 2)],
        lp_pool(3),
        refuses_empty="non-zero channels and sizes",
    ),
]
