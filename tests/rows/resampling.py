"""Rows of the operators in `dyngraph/ops/resampling.py`."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.ndimage import map_coordinates

from tests.opinfo import OpInfo, between, call, functional, normal

OUTSIDE = {
    ("zeros", False): "constant",
    ("zeros", True): "constant",
    ("border", False): "nearest",
    ("reflection", False): "reflect",
    ("reflection", True): "mirror",
}


def sampled(
    x: Any, grid: Any, mode: str = "bilinear", padding: str = "zeros", aligned: bool = False
) -> Any:
    """By `map_coordinates`, with the grid's positions in elements."""
    sizes = np.array(x.shape[:1:-1])
    places = (grid + 1) / 2 * (sizes - 1) if aligned else ((grid + 1) * sizes - 1) / 2
    order, outside = int(mode == "bilinear"), OUTSIDE[padding, aligned]

    def channel(image: Any, place: Any) -> Any:
        lines = [place[..., i] for i in reversed(range(len(sizes)))]
        return map_coordinates(image, lines, order, outside)

    return jax.vmap(jax.vmap(channel, (0, None)))(x, places)


def affine_grid(theta: Any, size: Any, aligned: bool) -> Any:
    lines = [np.linspace(-1, 1, n) * (1 if aligned else (n - 1) / n) for n in size[2:]]
    places = jnp.stack([*jnp.meshgrid(*lines, indexing="ij")[::-1], jnp.ones(size[2:])], -1)
    return jnp.einsum("...j,nij->n...i", places.astype(theta.dtype), theta)


ROWS: list[OpInfo] = [
    functional(
        "grid_sample",
        [
            call(normal(2, 2, 3, 4), between(-1.2, 1.2, 2, 2, 2, 2)),
            call(normal(1, 1, 3, 4), between(-2, 2, 1, 2, 3, 2), "bilinear", "reflection", True),
            call(normal(1, 1, 2, 3, 2), between(-1.2, 1.2, 1, 1, 2, 2, 3), "nearest", "border"),
        ],
        sampled,
    ),
    OpInfo(
        "grid_sampler",
        [
            call(normal(1, 1, 2, 3), between(-0.9, 0.9, 1, 2, 2, 2), 0, 0, False),
            call(normal(1, 2, 2, 3, 2), between(-1.2, 1.2, 1, 1, 2, 2, 3), 0, 0, True),
        ],
        lambda x, grid, mode, padding, aligned: sampled(x, grid, aligned=aligned),
    ),
    functional(
        "affine_grid",
        [
            call(normal(2, 2, 3), (2, 1, 3, 2), True),
            call(normal(1, 3, 4), (1, 1, 2, 3, 2), False),
        ],
        affine_grid,
        refuses_empty="Expected a batch of 2D affine matrices",
    ),
]
