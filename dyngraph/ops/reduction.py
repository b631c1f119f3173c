"""Sums, products, means and truths of all elements, or of those along some dims.

A gradient comes with the reduced dims missing or of length 1; `restore_dims` gives both the same
shape, which broadcasts against the input.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from dyngraph import dtypes
from dyngraph.kernels import fit
from dyngraph.ops import arithmetic, comparison
from dyngraph.ops.arguments import (
    as_ints,
    is_inexact,
    reduced_count,
    reduced_dims,
    spread,
    summed_dtype,
)
from dyngraph.ops.operator import define
from dyngraph.ops.out import takes_out
from dyngraph.tensor import Tensor

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


@takes_out
def nanmean(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The mean of the elements that are not NaN.

    >>> dg.nanmean(dg.tensor([1.0, float("nan"), 2.0]))
    tensor(1.5000)
    """
    _require_inexact("nanmean(): dtype", input)
    counted = sum(comparison.logical_not(comparison.isnan(input)), dim, keepdim)
    return arithmetic.div(nansum(input, dim, keepdim, dtype), counted)


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


def contains(input: Any, element: Any) -> bool:
    """Whether an element of the tensor equals `element`: Python's `element in tensor`."""
    if not isinstance(element, (Tensor, int, float, complex)):
        raise RuntimeError(
            f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a "
            f"{type(element).__name__}"
        )
    return bool(any(comparison.eq(input, element)))


def is_nonzero(input: Any) -> bool:
    """Whether the one element of a tensor is not 0; RuntimeError for other counts of elements.

    >>> dg.is_nonzero(dg.tensor([0.0]))
    False
    """
    if input.numel() != 1:
        raise RuntimeError(
            f"Boolean value of Tensor with {input.numel()} elements is ambiguous: use any() or "
            "all()."
        )
    return bool(input)


__all__ = [
    "all",
    "any",
    "count_nonzero",
    "is_nonzero",
    "mean",
    "nanmean",
    "nansum",
    "prod",
    "sum",
]

METHODS = (*__all__, "sum_to_size")
"""The methods of Tensor that this file has."""
