"""Rows of the operators in `dyngraph/ops/interpolation.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tests.opinfo import OpInfo, call, functional, normal

METHODS = {"nearest": "nearest", "nearest-exact": "nearest"}


def resized(x: Any, size: Any, factor: Any = None, mode: str = "nearest", **options: Any) -> Any:
    """By `jax.image`, whose elements are areas too, or line by line where corners are aligned."""
    sizes = tuple(size) if size else tuple(int(n * factor) for n in x.shape[2:])
    if options.get("align_corners"):
        return aligned(x, sizes)
    return jax.image.resize(
        x,
        (*x.shape[:2], *sizes),
        METHODS.get(mode, "linear"),
        antialias=options.get("antialias", False),
    )


def aligned(x: Any, sizes: Sequence[int]) -> Any:
    for axis, out in enumerate(sizes, 2):
        n = x.shape[axis]
        hats = [jnp.interp(np.linspace(0, n - 1, out), np.arange(n), row) for row in np.eye(n)]
        weights = jnp.stack(hats).astype(x.dtype)
        x = jnp.moveaxis(jnp.tensordot(x, weights, (axis, 0)), -1, axis)
    return x


ROWS: list[OpInfo] = [
    functional(
        "interpolate",
        [
            call(normal(1, 1, 3), None, 2, mode="linear"),
            call(normal(1, 2, 3, 4), (5, 7), mode="bilinear", align_corners=True),
            call(normal(1, 1, 6, 5), (3, 4), mode="bilinear", antialias=True),
            call(normal(1, 1, 3, 2), (5, 4), mode="nearest-exact"),
        ],
        resized,
        refuses_empty="sizes should be greater than 0",
    ),
    functional(
        "upsample",
        [call(normal(1, 1, 2, 2, 2), None, 2, "trilinear")],
        resized,
        refuses_empty="sizes should be greater than 0",
    ),
    functional("upsample_nearest", [call(normal(1, 1, 3), (6,))], resized),
    functional("upsample_bilinear", [call(normal(1, 1, 2, 3), (3, 4))], aligned),
]
