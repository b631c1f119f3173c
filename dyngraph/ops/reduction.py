"""Operators that make fewer elements of many: sums, extremes, moments, norms; and running ones.

A gradient comes with the reduced dims missing or of length 1; `restore_dims` gives both the same
shape, which broadcasts against the input.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy import special

from dyngraph import dtypes
from dyngraph.kernels import fit
from dyngraph.ops import pointwise
from dyngraph.ops.arguments import (
    as_ints,
    is_inexact,
    reduced_count,
    reduced_dims,
    restore_dims,
    spread,
    summed_dtype,
)
from dyngraph.ops.operator import define
from dyngraph.tensor import Tensor, canonical_dim

# --- sums and products ------------------------------------------------------------------------


def _sum(self: Any, *, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    return jnp.sum(
        self, reduced_dims(dim, self.ndim), dtype=summed_dtype(self, dtype), keepdims=keepdim
    )


sum = define(
    "sum",
    _sum,
    self=lambda grad, self_shape, dim: spread(grad, self_shape, dim),
    doc="""The sum of all elements, or along `dim`, an int or several.

    Integers and bools give the default integer type, unless `dtype` says which.

    >>> dg.sum(dg.tensor([[1.0, 2.0], [3.0, 4.0]]), dim=0)
    tensor([4., 6.])
    """,
)


def _nansum(self: Any, *, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    return _sum(jnp.where(jnp.isnan(self), 0, self), dim=dim, keepdim=keepdim, dtype=dtype)


nansum = define(
    "nansum",
    _nansum,
    self=lambda grad, self, dim: jnp.where(jnp.isnan(self), 0, spread(grad, self.shape, dim)),
    doc="""The sum of the elements that are not NaN.

    >>> dg.nansum(dg.tensor([1.0, float("nan"), 2.0]))
    tensor(3.)
    """,
)


def _mean(self: Any, *, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    array = self if dtype is None else self.astype(dtypes.as_dtype(dtype).dtype)
    _require_inexact("mean(): could not infer output dtype. Input dtype", array)
    return jnp.mean(array, reduced_dims(dim, self.ndim), keepdims=keepdim)


def _require_inexact(what: str, array: Any) -> None:
    if not is_inexact(array):
        raise RuntimeError(
            f"{what} must be either a floating point or complex dtype. Got: {array.dtype}. Convert "
            "it first, for example by .float()."
        )


mean = define(
    "mean",
    _mean,
    self=lambda grad, self_shape, dim: (
        spread(grad, self_shape, dim) / builtins.max(reduced_count(dim, self_shape), 1)
    ),
    doc="""The mean of all elements, or along `dim`, an int or several.

    Raises RuntimeError for integers, whose mean has no dtype unless `dtype` says which.

    >>> dg.mean(dg.tensor([[1.0, 2.0], [3.0, 4.0]]), dim=1)
    tensor([1.5000, 3.5000])
    """,
)


def nanmean(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The mean of the elements that are not NaN.

    >>> dg.nanmean(dg.tensor([1.0, float("nan"), 2.0]))
    tensor(1.5000)
    """
    _require_inexact("nanmean(): dtype", input)
    counted = sum(pointwise.logical_not(pointwise.isnan(input)), dim, keepdim)
    return pointwise.true_divide(nansum(input, dim, keepdim, dtype), counted)


def _prod(self: Any, *, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    return jnp.prod(
        self, reduced_dims(dim, self.ndim), dtype=summed_dtype(self, dtype), keepdims=keepdim
    )


prod = define(
    "prod",
    _prod,
    doc="""The product of all elements, or along `dim`; its gradient is right where factors are 0.

    Integers and bools give the default integer type, unless `dtype` says which.

    >>> dg.prod(dg.tensor([2.0, 3.0, 4.0]))
    tensor(24.)
    """,
)

count_nonzero = define(
    "count_nonzero",
    lambda self, *, dim=None: jnp.count_nonzero(self, reduced_dims(dim, self.ndim)).astype(
        dtypes.default_int().dtype
    ),
    differentiable=False,
    doc="""How many elements are not 0, in all or along `dim`.

    >>> dg.count_nonzero(dg.tensor([1.0, 0.0, 2.0]))
    tensor(2)
    """,
)


def _sum_to_size(self: Any, *, size: Any) -> Any:
    wanted = as_ints(size)
    extra = self.ndim - len(wanted)
    if extra < 0 or _any_differs(wanted, self.shape[extra:]):
        raise RuntimeError(
            f"size {{{list(wanted)}}} is not expandable to size {{{list(self.shape)}}}. Each dim "
            "of the smaller size is to be 1 or that of the tensor."
        )
    return fit(self, wanted, self.dtype)


def _any_differs(small: tuple[int, ...], large: tuple[int, ...]) -> bool:
    """Whether a dim of `small` is neither 1 nor that of `large`."""
    return builtins.any(m not in (1, n) for m, n in zip(small, large, strict=True))


sum_to_size = define(
    "sum_to_size",
    _sum_to_size,
    signature="self, *size",
    node="SumBackward0",
    self=lambda grad, self_shape: jnp.broadcast_to(grad, self_shape),
    doc="""The sum over the dims that broadcasting `size` to the tensor's shape would stretch.

    >>> dg.ones(2, 3).sum_to_size(1, 3)
    tensor([[2., 2., 2.]])
    """,
)

# --- extremes ---------------------------------------------------------------------------------


def _require_elements(where: str, array: Any, dim: Any) -> None:
    """Raises where an extreme of no elements is asked for."""
    if array.size:
        return
    if dim is None or dim == ():
        raise RuntimeError(
            f"{where}(): Expected reduction dim to be specified for input.numel() == 0. Specify "
            "the reduction dim with the 'dim' argument."
        )
    for d in reduced_dims(dim, array.ndim):
        if not array.shape[d]:
            raise IndexError(
                f"{where}(): Expected reduction dim {d} to have non-zero size. The tensor has "
                f"shape {list(array.shape)}."
            )


def _share_ties(grad: Any, self: Any, result: Any, dim: Any) -> Any:
    """The gradient of an extreme, in equal parts to the elements that have its value."""
    value = restore_dims(result, self.shape, dim)
    ties = (self == value) | (jnp.isnan(self) & jnp.isnan(value))
    count = jnp.sum(ties, reduced_dims(dim, self.ndim), dtype=grad.dtype, keepdims=True)
    return jnp.where(ties, restore_dims(grad, self.shape, dim) / count, 0)


def _extreme(
    name: str, reduce: Callable[..., Any], node: str | None = None, doc: str = ""
) -> Callable[..., Tensor]:
    """The operator of a largest or smallest value, whose ties share the gradient."""

    def kernel(self: Any, *, dim: Any = None, keepdim: bool = False) -> Any:
        _require_elements(name, self, dim)
        return reduce(self, reduced_dims(dim, self.ndim), keepdims=keepdim)

    kernel.__module__ = __name__
    return define(name, kernel, node=node, self=_share_ties, doc=doc)


amax = _extreme(
    "amax",
    jnp.max,
    doc="""The largest element, in all or along `dim`, an int or several; ties share the gradient.

    >>> dg.amax(dg.tensor([[1.0, 5.0], [3.0, 4.0]]), dim=1)
    tensor([5., 4.])
    """,
)
amin = _extreme(
    "amin",
    jnp.min,
    doc="""The smallest element, in all or along `dim`, an int or several; ties share the gradient.

    >>> dg.amin(dg.tensor([[1.0, 5.0], [3.0, 4.0]]), dim=1)
    tensor([1., 3.])
    """,
)
_max_of_all = _extreme("max", jnp.max, node="MaxBackward1")
_min_of_all = _extreme("min", jnp.min, node="MinBackward1")


def _select_along(find: Callable[[Any, int], Any], name: str) -> Callable[..., tuple[Any, Any]]:
    """The kernel that picks one element along a dim: `find(array, axis)` says which.

    `find` keeps the dim, with length 1. The kernel returns values and indices.
    """

    def kernel(self: Any, *, dim: int, keepdim: bool = False) -> tuple[Any, Any]:
        axis = canonical_dim(dim, self.ndim)
        _require_elements(name, self, axis)
        array = self if self.ndim else self[None]
        indices = find(array, axis)
        values = jnp.take_along_axis(array, indices, axis)
        shape = self.shape[:axis] + ((1,) if keepdim else ()) + self.shape[axis + 1 :]
        shape = shape if self.ndim else ()
        return values.reshape(shape), indices.reshape(shape).astype(dtypes.default_int().dtype)

    kernel.__module__ = __name__
    return kernel


def _at_indices(grads: Any, indices: Any, self_shape: Any, dim: int) -> Any:
    """The gradient of picked elements: each goes to where its element was picked."""
    if not self_shape:
        return grads[0]
    indices = restore_dims(indices, self_shape, dim)
    axis = canonical_dim(dim, len(self_shape))
    picked = lax.broadcasted_iota(indices.dtype, self_shape, axis) == indices
    return jnp.where(picked, restore_dims(grads[0], self_shape, dim), 0)


def _selection(
    name: str, find: Callable[[Any, int], Any], node: str | None = None
) -> Callable[..., Any]:
    """The operator that picks one element along a dim, with the named tuple that it returns."""
    return define(
        name,
        _select_along(find, name),
        node=node,
        outputs=("values", "indices"),
        returns=name,
        self=_at_indices,
    )


_max_along = _selection("max", lambda array, axis: jnp.argmax(array, axis, keepdims=True))
_min_along = _selection("min", lambda array, axis: jnp.argmin(array, axis, keepdims=True))


def max(
    input: Any,
    dim: Any = None,
    keepdim: bool = False,
    *,
    other: Any = None,
    axis: int | None = None,
    keepdims: bool = False,
) -> Any:
    """The largest of all elements; with `dim`, values and indices; with a tensor, `maximum`.

    NaN counts as largest. Ties share the gradient of the largest of all; along `dim` it goes to the
    index that is returned, the first. Raises where there are no elements.

    >>> dg.max(dg.tensor([[1.0, 5.0], [3.0, 4.0]]))
    tensor(5.)
    >>> dg.max(dg.tensor([[1.0, 5.0], [3.0, 4.0]]), dim=1).indices
    tensor([1, 1])
    """
    if other is not None or isinstance(dim, (Tensor, jax.Array, np.ndarray)):
        return pointwise.maximum(input, dim if other is None else other)
    dim = axis if dim is None else dim
    return _max_of_all(input) if dim is None else _max_along(input, dim, keepdim or keepdims)


def min(
    input: Any,
    dim: Any = None,
    keepdim: bool = False,
    *,
    other: Any = None,
    axis: int | None = None,
    keepdims: bool = False,
) -> Any:
    """The smallest of all elements; with `dim`, values and indices; with a tensor, `minimum`.

    As `max` in everything else.

    >>> dg.min(dg.tensor([[1.0, 5.0], [3.0, 4.0]]))
    tensor(1.)
    >>> dg.min(dg.tensor([[1.0, 5.0], [3.0, 4.0]]), dim=0).values
    tensor([1., 4.])
    """
    if other is not None or isinstance(dim, (Tensor, jax.Array, np.ndarray)):
        return pointwise.minimum(input, dim if other is None else other)
    dim = axis if dim is None else dim
    return _min_of_all(input) if dim is None else _min_along(input, dim, keepdim or keepdims)


def _aminmax(self: Any, *, dim: int | None = None, keepdim: bool = False) -> tuple[Any, Any]:
    _require_elements("aminmax", self, dim)
    dims = reduced_dims(dim, self.ndim)
    return jnp.min(self, dims, keepdims=keepdim), jnp.max(self, dims, keepdims=keepdim)


aminmax = define(
    "aminmax",
    _aminmax,
    signature="self, *, dim=None, keepdim=False",
    outputs=("min", "max"),
    returns="aminmax",
    self=lambda grads, self, min, max, dim: (
        _share_ties(grads[0], self, min, dim) + _share_ties(grads[1], self, max, dim)
    ),
    doc="""The smallest and the largest element, in all or along `dim`; ties share the gradient.

    >>> dg.aminmax(dg.tensor([3.0, 1.0, 2.0])).max
    tensor(3.)
    """,
)


def _position(find: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The kernel of the index of a largest or smallest element."""

    def kernel(self: Any, *, dim: int | None = None, keepdim: bool = False) -> Any:
        if self.dtype == jnp.bool_:
            raise RuntimeError(f"{name}(): does not support bool input. Convert it by .int().")
        if not self.size and dim is None:
            raise IndexError(
                f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Pass a "
                "'dim' that is not empty."
            )
        axis = None if dim is None else canonical_dim(dim, self.ndim)
        _require_elements(name, self, axis)
        found = find(self, axis if self.ndim else None, keepdims=keepdim)
        return found.astype(dtypes.default_int().dtype)

    kernel.__module__ = __name__
    return kernel


argmax = define(
    "argmax",
    _position(jnp.argmax, "argmax"),
    differentiable=False,
    doc="""The index of the largest element: along `dim`, or of all in their order in memory.

    The first where several are largest; NaN counts as largest.

    >>> dg.argmax(dg.tensor([[1.0, 5.0], [3.0, 4.0]]))
    tensor(1)
    """,
)
argmin = define(
    "argmin",
    _position(jnp.argmin, "argmin"),
    differentiable=False,
    doc="""The index of the smallest element: along `dim`, or of all in their order in memory.

    The first where several are smallest; NaN counts as smallest.

    >>> dg.argmin(dg.tensor([[1.0, 5.0], [3.0, 4.0]]), dim=1)
    tensor([0, 0])
    """,
)


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
        name, kernel, self=lambda grad, self, result: _share_ties(grad, self, result, None)
    )
    along = _selection(
        name,
        lambda array, axis: _middle(array, axis, skip_nan=skip_nan),
        node=of_all.spec.node_name.replace("0", "1"),  # type: ignore[attr-defined]
    )
    return of_all, along


_median_all, _median_along = _median("median", skip_nan=False)
_nanmedian_all, _nanmedian_along = _median("nanmedian", skip_nan=True)


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


# --- truth ------------------------------------------------------------------------------------


def _truth(function: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel of `all` or `any`; an empty tuple of dims reduces nothing, uint8 stays uint8."""

    def kernel(self: Any, *, dim: Any = None, keepdim: bool = False) -> Any:
        dims = () if dim == () else reduced_dims(dim, self.ndim)
        found = function(self, dims, keepdims=keepdim)
        return found.astype(jnp.uint8) if self.dtype == jnp.uint8 else found

    kernel.__module__ = __name__
    return kernel


all = define(
    "all",
    _truth(jnp.all),
    differentiable=False,
    doc="""Whether every element is true (not 0), in all or along `dim`, an int or several.

    >>> dg.all(dg.tensor([[True, False], [True, True]]), dim=1)
    tensor([False,  True])
    """,
)
any = define(
    "any",
    _truth(jnp.any),
    differentiable=False,
    doc="""Whether some element is true (not 0), in all or along `dim`, an int or several.

    >>> dg.any(dg.tensor([[True, False], [False, False]]), dim=1)
    tensor([ True, False])
    """,
)


def _value(x: Any) -> jax.Array:
    return x._cell.array if isinstance(x, Tensor) else jnp.asarray(x)


def allclose(
    input: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> bool:
    """Whether each `|input - other| <= atol + rtol * |other|`, as a Python bool.

    >>> dg.allclose(dg.tensor([1.0, 2.0]), dg.tensor([1.0, 2.0 + 1e-6]))
    True
    """
    return bool(jnp.allclose(_value(input), _value(other), rtol, atol, equal_nan))


def equal(input: Any, other: Any) -> bool:
    """Whether shapes and all elements agree, as a Python bool; NaN equals nothing.

    >>> dg.equal(dg.tensor([1.0, 2.0]), dg.tensor([1.0, 2.0]))
    True
    """
    return bool(jnp.array_equal(_value(input), _value(other)))


def contains(input: Any, element: Any) -> bool:
    """Whether an element of the tensor equals `element`: Python's `element in tensor`."""
    if not isinstance(element, (Tensor, int, float, complex)):
        raise RuntimeError(
            f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a "
            f"{type(element).__name__}"
        )
    return bool(any(pointwise.eq(input, element)))


# --- moments ----------------------------------------------------------------------------------


def _wide(array: Any) -> Any:
    """16-bit floats as float32, so that squares of them add up."""
    return array.astype(jnp.float32) if array.dtype.itemsize < 4 else array


def _variance(self: Any, dim: Any, correction: float, *, keepdim: bool) -> tuple[Any, Any]:
    """Variance and mean."""
    if not is_inexact(self):
        raise RuntimeError(
            f"std and var only support floating point and complex dtypes, got {self.dtype}. "
            "Convert it first, for example by .float()."
        )
    dims = reduced_dims(dim, self.ndim)
    array = _wide(self)
    centre = jnp.mean(array, dims, keepdims=True)
    squares = jnp.real((array - centre) * jnp.conj(array - centre))
    freedom = builtins.max(reduced_count(dim, self.shape) - correction, 0)
    var = jnp.sum(squares, dims, keepdims=keepdim) / freedom
    centre = centre if keepdim else jnp.squeeze(centre, dims)
    return var, centre


def _variance_rule(grad: Any, self: Any, dim: Any, correction: float) -> Any:
    freedom = reduced_count(dim, self.shape) - correction
    centred = self - jnp.mean(self, reduced_dims(dim, self.ndim), keepdims=True)
    return restore_dims(grad, self.shape, dim) * (jnp.full((), 2, grad.dtype) / freedom) * centred


def _std_rule(grad: Any, self: Any, std: Any, dim: Any, correction: float) -> Any:
    # sqrt has no derivative at 0; where all elements are equal PyTorch's gradient is 0.
    of_var = jnp.where(std == 0, 0, grad / (2 * jnp.where(std == 0, 1, std)))
    return _variance_rule(of_var, self, dim, correction)


def _moments(*, root: bool, with_mean: bool) -> Callable[..., Any]:
    """The kernel of `var`, `std`, `var_mean` or `std_mean`."""

    def kernel(self: Any, *, dim: Any = None, correction: float = 1, keepdim: bool = False) -> Any:
        spread_, centre = _variance(self, dim, correction, keepdim=keepdim)
        spread_ = (jnp.sqrt(spread_) if root else spread_).astype(jnp.real(self).dtype)
        return (spread_, centre.astype(self.dtype)) if with_mean else spread_

    return kernel


def _mean_rule(grad: Any, self: Any, dim: Any) -> Any:
    return spread(grad, self.shape, dim) / builtins.max(reduced_count(dim, self.shape), 1)


_var = define("var", _moments(root=False, with_mean=False), self=_variance_rule)
_std = define(
    "std",
    _moments(root=True, with_mean=False),
    self=lambda grad, self, result, dim, correction: _std_rule(grad, self, result, dim, correction),
)
_var_mean = define(
    "var_mean",
    _moments(root=False, with_mean=True),
    outputs=("var", "mean"),
    self=lambda grads, self, dim, correction: (
        _variance_rule(grads[0], self, dim, correction) + _mean_rule(grads[1], self, dim)
    ),
)
_std_mean = define(
    "std_mean",
    _moments(root=True, with_mean=True),
    outputs=("std", "mean"),
    self=lambda grads, self, std, dim, correction: (
        _std_rule(grads[0], self, std, dim, correction) + _mean_rule(grads[1], self, dim)
    ),
)


def _moment_arguments(
    dim: Any, unbiased: Any, keepdim: bool, correction: Any, axis: Any, keepdims: bool
) -> tuple[Any, float, bool]:
    """Dims, correction and keepdim from PyTorch's two ways to say them.

    `unbiased` is the older way to say a correction of 1 or 0; alone it stands where `dim` does.
    """
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if correction is None:
        correction = 1 if unbiased is None else int(unbiased)
    elif unbiased is not None:
        raise TypeError("got both unbiased and correction. Pass only correction.")
    return axis if dim is None else dim, correction, keepdim or keepdims


def var(
    input: Any,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    axis: Any = None,
    keepdims: bool = False,
) -> Tensor:
    """The variance: squared distances from the mean, summed, over the count minus `correction`.

    Of all elements, or along `dim`, an int or several. `correction` is 1 by default (Bessel's);
    `unbiased=False` says 0. Raises RuntimeError for integers.

    >>> dg.var(dg.tensor([1.0, 2.0, 3.0]))
    tensor(1.)
    """
    return _var(input, *_moment_arguments(dim, unbiased, keepdim, correction, axis, keepdims))


def std(
    input: Any,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    axis: Any = None,
    keepdims: bool = False,
) -> Tensor:
    """The root of the variance; arguments as `var`. Where all elements are equal its gradient is 0.

    >>> dg.std(dg.tensor([1.0, 2.0, 3.0]))
    tensor(1.)
    """
    return _std(input, *_moment_arguments(dim, unbiased, keepdim, correction, axis, keepdims))


def var_mean(
    input: Any,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    axis: Any = None,
    keepdims: bool = False,
) -> tuple[Tensor, Tensor]:
    """The variance and the mean, computed together; arguments as `var`.

    >>> dg.var_mean(dg.tensor([1.0, 2.0, 3.0]))
    (tensor(1.), tensor(2.))
    """
    return _var_mean(input, *_moment_arguments(dim, unbiased, keepdim, correction, axis, keepdims))


def std_mean(
    input: Any,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    axis: Any = None,
    keepdims: bool = False,
) -> tuple[Tensor, Tensor]:
    """The standard deviation and the mean, computed together; arguments as `var`.

    >>> dg.std_mean(dg.tensor([1.0, 2.0, 3.0]))
    (tensor(1.), tensor(2.))
    """
    return _std_mean(input, *_moment_arguments(dim, unbiased, keepdim, correction, axis, keepdims))


# --- norms ------------------------------------------------------------------------------------


def _vector_norm(
    self: Any, *, ord: float = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None
) -> Any:
    array = self if dtype is None else self.astype(dtypes.as_dtype(dtype).dtype)
    if not is_inexact(array):
        raise RuntimeError(
            "linalg.vector_norm: Expected a floating point or complex tensor as input. Got "
            f"{array.dtype}. Convert it first, for example by .float()."
        )
    dims = reduced_dims(dim, array.ndim)
    if math.isinf(ord) and not reduced_count(dim, array.shape):
        raise RuntimeError(
            f"linalg.vector_norm cannot compute the {ord} norm on an empty tensor because the "
            "operation does not have an identity. Reduce dims that are not empty."
        )
    wide = _wide(array)
    if ord == 2:
        norm = jnp.sqrt(jnp.sum(jnp.real(wide * jnp.conj(wide)), dims, keepdims=keepdim))
    elif ord == 0:
        norm = jnp.sum(wide != 0, dims, dtype=jnp.float32, keepdims=keepdim)
    elif math.isinf(ord):
        norm = (jnp.max if ord > 0 else jnp.min)(jnp.abs(wide), dims, keepdims=keepdim)
    else:
        norm = jnp.sum(jnp.abs(wide) ** ord, dims, keepdims=keepdim) ** (1 / ord)
    return norm.astype(jnp.real(array).dtype)


def _direction(self: Any) -> Any:
    """x / |x|, 0 at 0. `jnp.sign` says so too, but JAX takes it for constant on complex numbers."""
    if not jnp.iscomplexobj(self):
        return jnp.sign(self)
    return jnp.where(self == 0, 0, self / jnp.abs(jnp.where(self == 0, 1, self)))


def _vector_norm_rule(grad: Any, self: Any, result: Any, ord: float, dim: Any) -> Any:
    """The gradient, 0 where the norm or an element is 0: the smallest subgradient.

    d|x|_p / dx_i = x_i / |x_i| (|x_i| / |x|_p)^(p-1); ties of the largest share at p = inf.
    """
    grad = restore_dims(grad, self.shape, dim)
    norm = restore_dims(result, self.shape, dim)
    if ord == 2:
        return self * jnp.where(norm == 0, 0, grad / jnp.where(norm == 0, 1, norm))
    nowhere = (self == 0) | (norm == 0)
    size = jnp.where(nowhere, 0, jnp.abs(jnp.where(nowhere, 1, self)))
    if math.isinf(ord):
        share = _share_ties(jnp.ones_like(result), size, result, dim)
    else:
        share = jnp.where(nowhere, 1, size / jnp.where(nowhere, 1, norm)) ** (ord - 1)
    return grad * _direction(self) * share


_NORM = "linalg_vector_norm"
_count_norm = define(
    _NORM, _vector_norm, self=lambda grad, self_shape: jnp.zeros(self_shape, grad.dtype)
)
_sum_norm = define(
    _NORM,
    _vector_norm,
    self=lambda grad, self, dim: restore_dims(grad, self.shape, dim) * _direction(self),
)
_power_norm = define(_NORM, _vector_norm, self=_vector_norm_rule)


def vector_norm(
    input: Any, ord: float = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """The `ord`-norm of all elements, or along `dim`: (sum of |x|^ord)^(1/ord).

    `ord` may be 0 (how many are not 0), infinite (largest or smallest magnitude), or any number.
    The gradient at 0 is 0. Raises RuntimeError for integers.
    """
    ord = float(ord)
    run = {0.0: _count_norm, 1.0: _sum_norm}.get(ord, _power_norm)
    return run(input, ord, dim, keepdim, dtype)


def _nuclear_norm(self: Any, *, dim: Any = None, keepdim: bool = False) -> Any:
    dims = reduced_dims(dim, self.ndim)
    if len(dims) != 2:
        raise RuntimeError(
            f"norm(p='nuc') needs matrices, but got {len(dims)} dims to reduce. Pass the two dims "
            "of the matrices as dim."
        )
    return jnp.linalg.norm(self, "nuc", dims, keepdims=keepdim)


_nuclear = define("nuclear_norm", _nuclear_norm)


def norm(
    input: Any,
    p: float | str | None = "fro",
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
    axis: Any = None,
    keepdims: bool = False,
) -> Tensor:
    """The `p`-norm of all elements, or along `dim`; "fro" is 2, "nuc" the sum of singular values.

    The gradient at 0 is 0. Raises RuntimeError for integers and unknown names.

    >>> dg.norm(dg.tensor([[3.0, 4.0], [6.0, 8.0]]), dim=1)
    tensor([ 5., 10.])
    """
    dim, keepdim = axis if dim is None else dim, keepdim or keepdims
    if p == "nuc":
        return _nuclear(input, dim, keepdim)
    if p is None or p == "fro":
        p = 2
    elif isinstance(p, str):
        raise RuntimeError(f"norm: Order {p} not supported. Pass a number, 'fro' or 'nuc'.")
    return vector_norm(input, p, dim, keepdim, dtype=dtype)


def _logsumexp(self: Any, *, dim: Any, keepdim: bool = False) -> Any:
    array = self if is_inexact(self) else self.astype(dtypes.get_default_dtype().dtype)
    return special.logsumexp(array, reduced_dims(dim, self.ndim), keepdims=keepdim)


def _logsumexp_rule(grad: Any, self: Any, result: Any, dim: Any) -> Any:
    # A row of -inf alone has result -inf, and -inf - -inf would be NaN; its gradient is 0.
    total = jnp.where(result == -jnp.inf, 0, result)
    total, grad = (restore_dims(a, self.shape, dim) for a in (total, grad))
    return grad * jnp.conj(jnp.exp(self - total))


logsumexp = define(
    "logsumexp",
    _logsumexp,
    signature="self, dim, keepdim=False",
    self=_logsumexp_rule,
    doc="""log(sum(exp(input))) along `dim`, an int or several, without overflow.

    The gradient is softmax; 0 for a row in which all are -inf.

    >>> dg.logsumexp(dg.tensor([1000.0, 1000.0]), dim=0)
    tensor(1000.6932)
    """,
)

# --- running ----------------------------------------------------------------------------------


def _along(array: Any, dim: int, scan: Callable[[Any, int], Any]) -> Any:
    """`scan(array, axis)`, also for a tensor of no dims."""
    axis = canonical_dim(dim, array.ndim)
    return scan(array, axis) if array.ndim else scan(array[None], axis)[0]


cumsum = define(
    "cumsum",
    lambda self, *, dim, dtype=None: _along(
        self.astype(summed_dtype(self, dtype)), dim, lax.cumsum
    ),
    self=lambda grad, dim: _along(grad, dim, lambda a, axis: lax.cumsum(a, axis, reverse=True)),
    doc="""The running sum along `dim`; integers as in `sum`.

    >>> dg.cumsum(dg.tensor([1.0, 2.0, 3.0]), dim=0)
    tensor([1., 3., 6.])
    """,
)
cumprod = define(
    "cumprod",
    lambda self, *, dim, dtype=None: _along(
        self.astype(summed_dtype(self, dtype)), dim, lax.cumprod
    ),
    doc="""The running product along `dim`; integers as in `prod`.

    >>> dg.cumprod(dg.tensor([1.0, 2.0, 3.0]), dim=0)
    tensor([1., 2., 6.])
    """,
)
logcumsumexp = define(
    "logcumsumexp",
    lambda self, *, dim: _along(self, dim, lax.cumlogsumexp),
    doc="""The logarithm of the running sum of exponentials along `dim`, without overflow.

    >>> dg.logcumsumexp(dg.tensor([0.0, 0.0]), dim=0)
    tensor([0.0000, 0.6931])
    """,
)


def _running_extreme(
    beats: Callable[[Any, Any], Any],
) -> Callable[..., Any]:
    """The kernel of `cummax` or `cummin`: the latest among equals counts, and NaN wins."""

    def later(first: Any, second: Any) -> Any:
        (a, i), (b, j) = first, second
        take = jnp.isnan(b) | (~jnp.isnan(a) & beats(b, a))
        return jnp.where(take, b, a), jnp.where(take, j, i)

    def kernel(self: Any, *, dim: int) -> tuple[Any, Any]:
        axis = canonical_dim(dim, self.ndim)
        array = self if self.ndim else self[None]
        indices = lax.broadcasted_iota(dtypes.default_int().dtype, array.shape, axis)
        values, indices = lax.associative_scan(later, (array, indices), axis=axis)
        return values.reshape(self.shape), indices.reshape(self.shape)

    return kernel


def _running_extreme_rule(grads: Any, indices: Any, dim: int) -> Any:
    (grad,) = grads
    if not grad.ndim:
        return grad
    places = list(jnp.indices(grad.shape, sparse=True))
    places[canonical_dim(dim, grad.ndim)] = indices
    return jnp.zeros_like(grad).at[tuple(places)].add(grad)


cummax = define(
    "cummax",
    _running_extreme(jnp.greater_equal),
    outputs=("values", "indices"),
    returns="cummax",
    self=_running_extreme_rule,
    doc="""The largest element so far along `dim`, and its index: the latest of equal ones.

    >>> dg.cummax(dg.tensor([1.0, 3.0, 2.0]), dim=0).values
    tensor([1., 3., 3.])
    """,
)
cummin = define(
    "cummin",
    _running_extreme(jnp.less_equal),
    outputs=("values", "indices"),
    returns="cummin",
    self=_running_extreme_rule,
    doc="""The smallest element so far along `dim`, and its index: the latest of equal ones.

    >>> dg.cummin(dg.tensor([3.0, 1.0, 2.0]), dim=0).values
    tensor([3., 1., 1.])
    """,
)

__all__ = [
    "all",
    "allclose",
    "amax",
    "amin",
    "aminmax",
    "any",
    "argmax",
    "argmin",
    "count_nonzero",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "equal",
    "logcumsumexp",
    "logsumexp",
    "max",
    "mean",
    "median",
    "min",
    "nanmean",
    "nanmedian",
    "nanquantile",
    "nansum",
    "norm",
    "prod",
    "quantile",
    "std",
    "std_mean",
    "sum",
    "var",
    "var_mean",
]

METHODS = (*(n for n in __all__ if n not in ("std_mean", "var_mean")), "sum_to_size")
"""The functions of this file that are methods of Tensor too."""
