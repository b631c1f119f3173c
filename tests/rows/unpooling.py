"""Rows of the operators in `dyngraph/ops/unpooling.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from tests.opinfo import OpInfo, call, functional, normal


def unpool(dims: int) -> Callable[..., Any]:
    def reference(x: Any, places: Any, kernel: int) -> Any:
        sizes = [n * kernel for n in x.shape[-dims:]]
        rows = int(np.prod(x.shape[:-dims]))
        hot = places.reshape(rows, -1)[..., None] == jnp.arange(np.prod(sizes))
        return (x.reshape(rows, -1, 1) * hot).sum(1).reshape(*x.shape[:-dims], *sizes)

    return reference


ROWS: list[OpInfo] = [
    functional(
        "max_unpool1d",
        [call(normal(2, 2), np.array([[1, 2], [0, 3]], np.int32), 2)],
        unpool(1),
        refuses_empty="non-zero channels and sizes",
        no_empty="the twin reshapes to a size that it divides out",
    ),
    functional(
        "max_unpool2d",
        [call(normal(1, 1, 1, 2), np.array([[[[5, 2]]]], np.int32), 2)],
        unpool(2),
        refuses_empty="non-zero channels and sizes",
        no_empty="the twin reshapes to a size that it divides out",
    ),
    functional(
        "max_unpool3d",
        [call(normal(1, 1, 1, 2), np.array([[[[5, 11]]]], np.int32), 2)],
        unpool(3),
        refuses_empty="non-zero channels and sizes",
        no_empty="the twin reshapes to a size that it divides out",
    ),
]
