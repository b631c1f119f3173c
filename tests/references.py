"""Functions in JAX that the references of several files of rows are made of."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np


def varargs(function: Callable[..., Any]) -> Callable[..., Any]:
    """A jnp function of an array and ints, which come one by one or as a tuple."""
    return lambda x, *ints: function(x, ints[0] if isinstance(ints[0], (tuple, list)) else ints)


def kept_dtype(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, its result in the dtype of its first argument."""
    return lambda x, *rest: function(x, *rest).astype(x.dtype)


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


def standard(x: Any, axes: Any, eps: float = 1e-5) -> Any:
    """Mean 0 and deviation 1 along axes."""
    return (x - x.mean(axes, keepdims=True)) / jnp.sqrt(x.var(axes, keepdims=True) + eps)


def statistics(x: Any, axis: int, eps: float) -> tuple[Any, Any]:
    """Mean and reciprocal deviation."""
    return x.mean(axis, keepdims=True), 1 / jnp.sqrt(x.var(axis, keepdims=True) + eps)


def windows_folded(
    x: Any, dims: int, starts_and_ends: Callable[[int, int], list[tuple[int, int, int]]], fold: Any
) -> Any:
    """Windows (start, end, step) of each of the last dims reduced by `fold`, dim after dim."""
    for i in range(dims):
        axis = x.ndim - dims + i
        cuts = [
            fold(jnp.take(x, np.arange(*cut), axis=axis), axis=axis, keepdims=True)
            for cut in starts_and_ends(i, x.shape[axis])
        ]
        x = jnp.concatenate(cuts, axis)
    return x


def pool_windows(
    kernel: int, stride: int | None, padding: int, dilation: int, ceil_mode: bool
) -> Any:
    """The windows of a pooling function, cut to the elements there are."""
    step, span = stride or kernel, dilation * (kernel - 1) + 1

    def cut(_: int, n: int) -> list[tuple[int, int, int]]:
        last = n + padding - (1 if ceil_mode else span)
        starts = [s for s in range(-padding, last + 1, step) if s < n + padding]
        return [
            (s if s >= 0 else s + -(s // dilation) * dilation, min(s + span, n), dilation)
            for s in starts
        ]

    return cut


def adaptive_pool(dims: int, fold: Any) -> Callable[..., Any]:
    """An adaptive pooling of the last `dims` dims."""

    def reference(x: Any, out: Any) -> Any:
        sizes = out if isinstance(out, tuple) else (out,) * dims

        def cut(i: int, n: int) -> list[tuple[int, int, int]]:
            m = sizes[i] or n
            return [(j * n // m, -(-(j + 1) * n // m), 1) for j in range(m)]

        return windows_folded(x, dims, cut, fold)

    return reference


def positions_of(values: Any, x: Any, dims: int) -> Any:
    """Where in the last `dims` dims of `x`, flattened, its values are: no two are equal."""
    lead = x.shape[:-dims]
    lines = x.reshape(*lead, 1, math.prod(x.shape[-dims:]))
    wanted = values.reshape(*lead, math.prod(values.shape[-dims:]), 1)
    found = jnp.argmax(lines == wanted, -1)
    return found.reshape(values.shape)


def with_positions(reference: Callable[..., Any], dims: int) -> Callable[..., Any]:
    """A pooling by maxima, and where the maxima were."""

    def both(x: Any, *rest: Any) -> Any:
        values = reference(x, *rest)
        return values, positions_of(values, x, dims)

    return both
