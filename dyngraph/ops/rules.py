"""Pieces of gradient rules that several families of operators share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from dyngraph.ops.arguments import reduced_dims, restore_dims


def zero_gradient(grad: Any) -> Any:
    """The gradient of a function made of steps: zero wherever it exists."""
    return jnp.zeros_like(grad)


def direction(self: Any) -> Any:
    """x / |x|, 0 at 0. `jnp.sign` says so too, but JAX takes it for constant on complex numbers."""
    if not jnp.iscomplexobj(self):
        return jnp.sign(self)
    return jnp.where(self == 0, 0, self / jnp.abs(jnp.where(self == 0, 1, self)))


def share_ties(grad: Any, self: Any, result: Any, dim: Any) -> Any:
    """The gradient of an extreme, in equal parts to the elements that have its value."""
    value = restore_dims(result, self.shape, dim)
    ties = (self == value) | (jnp.isnan(self) & jnp.isnan(value))
    count = jnp.sum(ties, reduced_dims(dim, self.ndim), dtype=grad.dtype, keepdims=True)
    return jnp.where(ties, restore_dims(grad, self.shape, dim) / count, 0)


def transposed(function: Callable[[Any], Any], shape: tuple[int, ...], grad: Any) -> Any:
    """What a function, linear in an input of `shape`, does to gradients of its result."""
    (result,) = jax.linear_transpose(function, jax.ShapeDtypeStruct(shape, grad.dtype))(grad)
    return result
