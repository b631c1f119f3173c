"""Figures: what is told of an array in a few numbers."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp


class Figures(NamedTuple):
    """Norm, largest absolute value; how many elements are 0, NaN and infinite."""

    norm: float
    largest: float
    zeros: float
    nan: float
    inf: float


def measured(array: jax.Array) -> jax.Array:
    """The figures of an array, as one array; it may be traced."""
    size = jnp.abs(array)
    size = size.astype(jnp.promote_types(size.dtype, jnp.float32))
    largest = size.max(initial=0.0)
    # scaled, so that the square of a large element does not overflow, nor a small one's vanish
    scale = jnp.where(jnp.isfinite(largest) & (largest > 0), largest, 1.0)
    norm = jnp.sqrt(((size / scale) ** 2).sum()) * scale
    counts = [(size == 0).sum(), jnp.isnan(size).sum(), jnp.isinf(size).sum()]
    return jnp.stack([norm, largest, *[count.astype(size.dtype) for count in counts]])
