"""Elements written at positions along a dim, or combined there with what stands there.

These are transposes of `gather`: its helpers read and write here too. Positions out of bounds
raise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from dyngraph.kernels import same
from dyngraph.ops.gathering import box, check_along, check_values, get_along, update_along
from dyngraph.ops.host_values import array_of, described
from dyngraph.ops.operator import define
from dyngraph.ops.out import takes_out
from dyngraph.storage import cell_of
from dyngraph.tensor import Tensor, canonical_dim, new_tensor


def _src_grad(grad: Any, index: Any, src_shape: Any) -> Any:
    """Gradients of the elements of `src` that `index` reaches, and zeros for the others."""
    if grad.shape == src_shape or not src_shape:
        return grad
    return jnp.zeros(src_shape, grad.dtype).at[box(index.shape)].set(grad)


def _scatter_kernel(self: Any, index: Any, src: Any, *, dim: int) -> Any:
    whole = src.ndim == 0 and index.ndim > 0
    check_along("scatter", index, dim, self.shape, None if whole else src.shape)
    if self.dtype != src.dtype and not src.weak_type:
        raise RuntimeError(
            f"scatter(): Expected self.dtype to be equal to src.dtype, got {self.dtype} and "
            f"{src.dtype}. Convert one of them by .to()."
        )
    return update_along(self, index, dim, src)


def _without_places(grad: Any, index: Any, dim: int) -> Any:
    return update_along(grad, index, dim, jnp.zeros((), grad.dtype))


# The rule for `src` is JAX's: of values written to one place, the one that stays has the gradient.
_scatter = define(
    "scatter",
    _scatter_kernel,
    signature="self, index, src, dim",
    self=_without_places,
    index=None,
)
_scatter_number = define(
    "scatter",
    _scatter_kernel,
    signature="self, index, src, dim",
    node="ScatterBackward1",
    self=_without_places,
    index=None,
    src=None,
)


@takes_out
def scatter(
    input: Tensor,
    dim: int,
    index: Any,
    src: Any = None,
    *,
    value: Any = None,
    reduce: str | None = None,
) -> Tensor:
    """A copy of `input` with `src` at `index` along `dim`: what `gather` reads, written.

    `out[index[i, j], j] = src[i, j]` for `dim=0`; `src` is a tensor, at least of the size of
    `index`, or a number (also as `value`). Which of several values for one place stays is not
    specified. `reduce="add"` adds it instead, `"multiply"` multiplies by it. Raises RuntimeError
    where the index does not fit or is out of bounds.

    >>> dg.zeros(2, 3).scatter(1, dg.tensor([[2], [0]]), 1.0)
    tensor([[0., 0., 1.],
            [1., 0., 0.]])
    """
    if (src is None) == (value is None):
        raise TypeError("scatter() takes either src, a tensor, or value, a number")
    shape = described(input).shape
    dim = canonical_dim(dim, len(shape))
    check_values(index, dim, shape)
    values = value if src is None else src
    if reduce is not None:
        if reduce not in _OLD_REDUCTIONS:
            raise RuntimeError(f"reduce argument must be either add or multiply, got {reduce!r}.")
        if not isinstance(values, Tensor):
            places = array_of(index)
            values = new_tensor(cell_of(jnp.full(places.shape, values, input.dtype.dtype)))
        return scatter_reduce(input, dim, index, values, _OLD_REDUCTIONS[reduce])
    run = _scatter_number if isinstance(values, (int, float, complex)) else _scatter
    return run(input, index, values, dim)


def _scatter_add_kernel(self: Any, index: Any, src: Any, *, dim: int) -> Any:
    check_along("scatter_add", index, dim, self.shape, src.shape)
    if self.dtype != src.dtype:
        raise RuntimeError(
            f"scatter(): Expected self.dtype to be equal to src.dtype, got {self.dtype} and "
            f"{src.dtype}. Convert one of them by .to()."
        )
    return update_along(self, index, dim, src, "add")


_scatter_add = define(
    "scatter_add",
    _scatter_add_kernel,
    signature="self, index, src, dim",
    self=same,
    index=None,
    src=lambda grad, index, src_shape, dim: _src_grad(
        get_along(grad, index, dim), index, src_shape
    ),
)


@takes_out
def scatter_add(input: Tensor, dim: int, index: Any, src: Any) -> Tensor:
    """A copy of `input` with `src` added at `index` along `dim`; repeated places add up.

    Raises RuntimeError where the index does not fit or is out of bounds.

    >>> dg.zeros(3).scatter_add(0, dg.tensor([0, 0, 2]), dg.ones(3))
    tensor([2., 0., 1.])
    """
    shape = described(input).shape
    dim = canonical_dim(dim, len(shape))
    check_values(index, dim, shape)
    return _scatter_add(input, index, src, dim)


_OLD_REDUCTIONS = {"add": "sum", "multiply": "prod"}
_HOW = {"sum": "add", "mean": "add", "prod": "multiply", "amax": "max", "amin": "min"}


def _reduce_into(self: Any, index: Any, src: Any, dim: int, reduce: str, include_self: bool) -> Any:
    if not include_self:
        if reduce in ("amax", "amin"):
            if jnp.issubdtype(self.dtype, jnp.inexact):
                limit = -math.inf if reduce == "amax" else math.inf
            else:
                info = jnp.iinfo(self.dtype)
                limit = info.min if reduce == "amax" else info.max
            first = jnp.asarray(limit, self.dtype)
        else:
            first = jnp.asarray(1 if reduce == "prod" else 0, self.dtype)
        self = update_along(self, index, dim, first)
    out = update_along(self, index, dim, src, _HOW[reduce])
    if reduce == "mean":
        count = _reduced_count(index, dim, self.shape, include_self)
        if jnp.issubdtype(self.dtype, jnp.inexact):
            return out / count.astype(self.dtype)
        return out // count.astype(self.dtype)
    return out


def _reduced_count(index: Any, dim: int, shape: Any, include_self: bool) -> Any:
    """How many terms a mean has at each place; at least 1."""
    first = jnp.full(shape, int(include_self), jnp.int32)
    one = jnp.ones((), jnp.int32)
    return jnp.maximum(update_along(first, index, dim, one, "add"), 1)


def _scatter_reduce_kernel(
    self: Any, index: Any, src: Any, *, dim: int, reduce: str, include_self: bool
) -> Any:
    check_along("scatter_reduce", index, dim, self.shape, src.shape)
    if self.dtype != src.dtype:
        raise RuntimeError(
            f"scatter(): Expected self.dtype to be equal to src.dtype, got {self.dtype} and "
            f"{src.dtype}. Convert one of them by .to()."
        )
    return _reduce_into(self, index, src, dim, reduce, include_self)


def _unless_replaced(grad: Any, index: Any, dim: int, include_self: bool) -> Any:
    """The gradient of `self`, which counts for nothing where it was replaced."""
    if include_self:
        return grad
    return update_along(grad, index, dim, jnp.zeros((), grad.dtype))


def _shared(grad: Any, index: Any, dim: int, reduce: str, include_self: bool) -> Any:
    """The gradient of each term of a sum or a mean, at the place that they went to."""
    if reduce == "sum":
        return grad
    return grad / _reduced_count(index, dim, grad.shape, include_self).astype(grad.dtype)


def _define_reduce(name: str, **rules: Any) -> Callable[..., Any]:
    return define(
        name,
        _scatter_reduce_kernel,
        signature="self, index, src, dim, reduce, include_self",
        node="ScatterReduceBackward0",
        index=None,
        **rules,
    )


_scatter_linear = _define_reduce(
    "scatter_reduce_sum",
    self=lambda grad, index, dim, reduce, include_self: _unless_replaced(
        _shared(grad, index, dim, reduce, include_self), index, dim, include_self
    ),
    src=lambda grad, index, src_shape, dim, reduce, include_self: _src_grad(
        get_along(_shared(grad, index, dim, reduce, include_self), index, dim), index, src_shape
    ),
)


def _among_extremes(
    grad: Any, self: Any, index: Any, src: Any, result: Any, dim: int, include_self: bool
) -> tuple[Any, Any]:
    """Gradients of an extreme: shared equally by all terms that reach it."""
    src = jnp.atleast_1d(src)[box(jnp.atleast_1d(index).shape)].reshape(index.shape)
    of_self = (self == result).astype(grad.dtype)
    of_self = _unless_replaced(of_self, index, dim, include_self)
    of_src = (src == get_along(result, index, dim)).astype(grad.dtype)
    share = grad / jnp.maximum(update_along(of_self, index, dim, of_src, "add"), 1)
    return of_self * share, of_src * get_along(share, index, dim)


_scatter_extreme = _define_reduce(
    "scatter_reduce_extreme",
    self=lambda grad, self, index, src, result, dim, include_self: _among_extremes(
        grad, self, index, src, result, dim, include_self
    )[0],
    src=lambda grad, self, index, src, result, src_shape, dim, include_self: _src_grad(
        _among_extremes(grad, self, index, src, result, dim, include_self)[1], index, src_shape
    ),
)


def _among_factors(
    grad: Any, self: Any, index: Any, src: Any, result: Any, dim: int, include_self: bool
) -> tuple[Any, Any]:
    """Gradients of a product, by division; a factor 0 is left out of the product first."""
    src = jnp.atleast_1d(src)[box(jnp.atleast_1d(index).shape)].reshape(index.shape)
    self_1 = jnp.where(self == 0, 1, self)
    without = _reduce_into(self_1, index, src, dim, "prod", include_self)
    of_self = _unless_replaced(grad * without / self_1, index, dim, include_self)
    zero = src == 0
    zeros = update_along(jnp.zeros(self.shape, jnp.int32), index, dim, zero, "add")
    zeros = get_along(zeros, index, dim)
    filled = _reduce_into(self, index, jnp.where(zero, 1, src), dim, "prod", include_self)
    of_zero = jnp.where(zeros == 1, get_along(grad * filled, index, dim), 0)
    of_others = get_along(grad * result, index, dim) / jnp.where(zero, 1, src)
    return of_self, jnp.where(zero, of_zero, of_others)


_scatter_prod = _define_reduce(
    "scatter_reduce_prod",
    self=lambda grad, self, index, src, result, dim, include_self: _among_factors(
        grad, self, index, src, result, dim, include_self
    )[0],
    src=lambda grad, self, index, src, result, src_shape, dim, include_self: _src_grad(
        _among_factors(grad, self, index, src, result, dim, include_self)[1], index, src_shape
    ),
)
_REDUCERS = {
    "sum": _scatter_linear,
    "mean": _scatter_linear,
    "prod": _scatter_prod,
    "amax": _scatter_extreme,
    "amin": _scatter_extreme,
}


@takes_out
def scatter_reduce(
    input: Tensor, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Reduces the elements of `src` that `index` sends to one place, with what stands there.

    `reduce` is sum, prod, mean, amax or amin; without `include_self`, `input` only counts where
    nothing arrives. Ties of amax and amin share the gradient equally. Raises RuntimeError where the
    index does not fit or is out of bounds.

    >>> src = dg.tensor([1.0, 2.0, 3.0])
    >>> dg.zeros(2).scatter_reduce(0, dg.tensor([0, 0, 1]), src, "mean", include_self=False)
    tensor([1.5000, 3.0000])
    """
    run = _REDUCERS.get(reduce)
    if run is None:
        raise RuntimeError(
            f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}"
        )
    shape = described(input).shape
    dim = canonical_dim(dim, len(shape))
    check_values(index, dim, shape)
    return run(input, index, src, dim, reduce, bool(include_self))


__all__ = [
    "scatter",
    "scatter_add",
    "scatter_reduce",
]

METHODS = tuple(__all__)
"""The functions of this file that are methods of Tensor too."""
