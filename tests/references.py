"""Functions in JAX that the references of several files of rows are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp


def varargs(function: Callable[..., Any]) -> Callable[..., Any]:
    """A jnp function of an array and ints, which come one by one or as a tuple."""
    return lambda x, *ints: function(x, ints[0] if isinstance(ints[0], (tuple, list)) else ints)


def numpy_names(function: Callable[..., Any]) -> Callable[..., Any]:
    """A jnp reduction, called with `dim`, `keepdim` and a dtype of ours."""

    def reference(x: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
        dims = tuple(dim) if isinstance(dim, list) else dim
        extra = {} if dtype is None else {"dtype": dtype.dtype}
        return function(x, axis=dims or (0 if dims == 0 else None), keepdims=keepdim, **extra)

    return reference


def clip(x: Any, min: Any = None, max: Any = None) -> Any:
    """Both bounds, or the one that is given."""
    return jnp.minimum(
        jnp.maximum(x, -jnp.inf if min is None else min), jnp.inf if max is None else max
    )


def grid_along(index: Any, dim: int) -> tuple[Any, ...]:
    """The index that `index` means along `dim`."""
    grid = list(jnp.meshgrid(*(jnp.arange(n) for n in index.shape), indexing="ij"))
    grid[dim] = index
    return tuple(grid)


def reduced(loss: Any, reduction: str = "mean") -> Any:
    """The mean or sum of a loss, or each ("none")."""
    return loss if reduction == "none" else getattr(jnp, reduction)(loss)


def scaled(x: Any, weight: Any = None, bias: Any = None) -> Any:
    """`x * weight + bias`, as far as they are given."""
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


def by_channel(x: Any, weight: Any = None, bias: Any = None) -> Any:
    """`scaled`, with one weight and bias a channel."""

    def shape(p: Any) -> Any:
        return None if p is None else p.reshape(-1, *[1] * (x.ndim - 2))

    return scaled(x, shape(weight), shape(bias))
