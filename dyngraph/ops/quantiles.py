"""Medians and quantiles: elements by their rank, whose gradient goes to those elements."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import lax

from dyngraph.ops.extremes import selection
from dyngraph.ops.operator import define
from dyngraph.ops.out import takes_out
from dyngraph.ops.rules import share_ties
from dyngraph.tensor import Tensor, canonical_dim


def _middle(array: Any, axis: int, *, skip_nan: bool) -> Any:
    """The index of the lower median along a dim, of the first NaN where there is one.

    With `skip_nan` NaNs do not count, unless nothing else is there.
    """
    order = jnp.argsort(array, axis, stable=True)  # NaNs come last
    length = array.shape[axis]
    numbers = jnp.sum(~jnp.isnan(array), axis, keepdims=True)
    if skip_nan:
        rank = jnp.maximum(numbers - 1, 0) // 2
    else:
        rank = jnp.where(numbers < length, numbers, (length - 1) // 2)
    return jnp.take_along_axis(order, rank, axis)


def _median_of_all(self: Any, *, skip_nan: bool) -> Any:
    if not self.size:
        return jnp.full((), math.nan, self.dtype)
    flat = self.reshape(-1)
    return flat[_middle(flat, 0, skip_nan=skip_nan)[0]]


def _median(name: str, *, skip_nan: bool) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The operators of the median of all elements, and along a dim."""

    def kernel(self: Any) -> Any:
        return _median_of_all(self, skip_nan=skip_nan)

    of_all = define(
        name, kernel, self=lambda grad, self, result: share_ties(grad, self, result, None)
    )
    along = selection(
        name,
        lambda array, axis: _middle(array, axis, skip_nan=skip_nan),
        node=of_all.spec.node_name.replace("0", "1"),  # type: ignore[attr-defined]
    )
    return of_all, along


_median_all, _median_along = _median("median", skip_nan=False)
_nanmedian_all, _nanmedian_along = _median("nanmedian", skip_nan=True)


@takes_out
def median(
    input: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    axis: int | None = None,
    keepdims: bool = False,
) -> Any:
    """The median, the lower one of two; with `dim`, values and indices along it. NaN wins.

    Elements equal to the median of all share its gradient; along `dim` it goes to the index that is
    returned.

    >>> dg.median(dg.tensor([4.0, 1.0, 3.0, 2.0]))
    tensor(2.)
    """
    dim = axis if dim is None else dim
    return _median_all(input) if dim is None else _median_along(input, dim, keepdim or keepdims)


@takes_out
def nanmedian(
    input: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    axis: int | None = None,
    keepdims: bool = False,
) -> Any:
    """The median of the elements that are not NaN; otherwise as `median`.

    >>> dg.nanmedian(dg.tensor([4.0, 1.0, float("nan"), 2.0]))
    tensor(2.)
    """
    dim = axis if dim is None else dim
    if dim is None:
        return _nanmedian_all(input)
    return _nanmedian_along(input, dim, keepdim or keepdims)


def _quantile(ignore_nan: bool) -> Callable[..., Any]:
    function = jnp.nanquantile if ignore_nan else jnp.quantile

    def kernel(self: Any, q: Any, *, dim: int | None, keepdim: bool, interpolation: str) -> Any:
        if not jnp.issubdtype(self.dtype, jnp.floating):
            raise RuntimeError(
                f"quantile() input tensor must be either float or double dtype, got {self.dtype}. "
                "Convert it by .float()."
            )
        if not self.size:
            raise RuntimeError(
                f"quantile() input tensor must be non-empty, got shape {list(self.shape)}"
            )
        if interpolation not in ("linear", "lower", "higher", "midpoint", "nearest"):
            raise RuntimeError(
                "quantile() interpolation must be one of linear, lower, higher, midpoint or "
                f"nearest, but got {interpolation}"
            )
        axis = None if dim is None else canonical_dim(dim, self.ndim)
        array = self if self.ndim else self[None]
        quantiles = function(array, q, axis=axis, method=interpolation, keepdims=keepdim)
        return quantiles if self.ndim else quantiles.reshape(jnp.shape(q))

    return kernel


_quantile_of = define("quantile", _quantile(ignore_nan=False), q=None)
_nanquantile_of = define("nanquantile", _quantile(ignore_nan=True), q=None)


def _check_fraction(q: Any) -> Any:
    if isinstance(q, (int, float)):
        if not 0 <= q <= 1:
            raise RuntimeError(f"quantile() q must be in the range [0, 1] but got {q}")
        return float(q)
    return q


@takes_out
def quantile(
    input: Any,
    q: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Tensor:
    """The value below which the fraction `q` of the elements lies, in all or along `dim`.

    A 1-d tensor `q` adds a dim in front. `interpolation` between two elements is linear, lower,
    higher, midpoint or nearest. A gradient goes to `input` only.

    >>> dg.quantile(dg.tensor([0.0, 1.0, 2.0, 3.0]), 0.5)
    tensor(1.5000)
    """
    return _quantile_of(input, _check_fraction(q), dim, keepdim, interpolation)


@takes_out
def nanquantile(
    input: Any,
    q: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Tensor:
    """The quantile of the elements that are not NaN; otherwise as `quantile`.

    >>> dg.nanquantile(dg.tensor([0.0, float("nan"), 2.0]), 0.5)
    tensor(1.)
    """
    return _nanquantile_of(input, _check_fraction(q), dim, keepdim, interpolation)


def _most_frequent(array: Any, axis: int) -> Any:
    """The index of the last occurrence of the most frequent value, the smallest of several."""
    order = jnp.argsort(array, axis, stable=True)
    ordered = jnp.moveaxis(jnp.take_along_axis(array, order, axis), axis, -1)
    starts = jnp.concatenate(
        [jnp.ones_like(ordered[..., :1], bool), ordered[..., 1:] != ordered[..., :-1]], -1
    )
    along = jnp.arange(array.shape[axis])
    before = along - lax.cummax(jnp.where(starts, along, 0), starts.ndim - 1)
    end = jnp.argmax(before, -1, keepdims=True)
    return jnp.take_along_axis(order, jnp.moveaxis(end, -1, axis), axis)


_mode_along = selection("mode", _most_frequent)


@takes_out
def mode(input: Any, dim: int = -1, keepdim: bool = False) -> Any:
    """The most frequent value along `dim`, the smallest of several, and its last index.

    A named tuple (values, indices). The gradient goes to the element at that index.

    >>> dg.mode(dg.tensor([1, 3, 3, 2, 1])).values
    tensor(1)
    """
    return _mode_along(input, dim, keepdim)


__all__ = [
    "median",
    "mode",
    "nanmedian",
    "nanquantile",
    "quantile",
]

METHODS = tuple(__all__)
"""The functions of this file that are methods of Tensor too."""
