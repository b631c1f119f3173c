"""Norms of vectors and matrices, and vectors scaled by them.

The gradient at 0 is 0, the smallest subgradient.
"""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp

from dyngraph import dtypes
from dyngraph.ops.arguments import (
    as_ints,
    is_inexact,
    reduced_count,
    reduced_dims,
    require_float,
    restore_dims,
    widened,
)
from dyngraph.ops.host_values import described
from dyngraph.ops.operator import define
from dyngraph.ops.out import takes_out
from dyngraph.ops.rules import direction, share_ties
from dyngraph.tensor import Tensor, canonical_dim


def norm_of(
    self: Any, *, ord: float = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None
) -> Any:
    """The kernel of `vector_norm`."""
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
    wide = widened(array)
    if ord == 2:
        norm = jnp.sqrt(jnp.sum(jnp.real(wide * jnp.conj(wide)), dims, keepdims=keepdim))
    elif ord == 0:
        norm = jnp.sum(wide != 0, dims, dtype=jnp.float32, keepdims=keepdim)
    elif math.isinf(ord):
        norm = (jnp.max if ord > 0 else jnp.min)(jnp.abs(wide), dims, keepdims=keepdim)
    else:
        norm = jnp.sum(jnp.abs(wide) ** ord, dims, keepdims=keepdim) ** (1 / ord)
    return norm.astype(jnp.real(array).dtype)


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
        share = share_ties(jnp.ones_like(result), size, result, dim)
    else:
        share = jnp.where(nowhere, 1, size / jnp.where(nowhere, 1, norm)) ** (ord - 1)
    return grad * direction(self) * share


_NORM = "linalg_vector_norm"
_count_norm = define(
    _NORM, norm_of, self=lambda grad, self_shape: jnp.zeros(self_shape, grad.dtype)
)
_sum_norm = define(
    _NORM,
    norm_of,
    self=lambda grad, self, dim: restore_dims(grad, self.shape, dim) * direction(self),
)
_power_norm = define(_NORM, norm_of, self=_vector_norm_rule)


@takes_out
def vector_norm(
    input: Any, ord: float = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """The `ord`-norm of all elements, or along `dim`: (sum of |x|^ord)^(1/ord).

    `ord` may be 0 (how many are not 0), infinite (largest or smallest magnitude), or any number.
    The gradient at 0 is 0. Raises RuntimeError for integers.

    >>> dg.linalg.vector_norm(dg.tensor([3.0, -4.0]), 1)
    tensor(7.)
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
    if self.dtype.itemsize == 2:
        raise RuntimeError(
            f"linalg.matrix_norm: Low precision dtypes not supported. Got {self.dtype}. Convert it "
            "by .float()."
        )
    return jnp.linalg.norm(self, "nuc", dims, keepdims=keepdim)


_nuclear = define("nuclear_norm", _nuclear_norm)


@takes_out
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


@takes_out
def nuclear_norm(input: Any, dim: Any = None, keepdim: bool = False) -> Tensor:
    """The sum of the singular values of matrices along the two dims `dim`, by default the last.

    >>> dg.nuclear_norm(dg.tensor([[3.0, 0.0], [0.0, -4.0]]))
    tensor(7.)
    """
    if isinstance(dim, bool):  # nuclear_norm(input, keepdim)
        dim, keepdim = None, dim
    return _nuclear(input, _matrix_dims("nuclear_norm", input, dim), keepdim)


@takes_out
def frobenius_norm(input: Any, dim: Any, keepdim: bool = False) -> Tensor:
    """The root of the sum of squares along one or two dims, or () for all; gradient 0 at 0.

    >>> dg.frobenius_norm(dg.tensor([[3.0, 4.0], [0.0, 0.0]]), (0, 1))
    tensor(5.)
    """
    if len(dims := as_ints(dim)) > 2:
        raise RuntimeError(
            f"frobenius_norm: Expected at most 2 dimensions, but got {len(dims)} dimensions "
            "instead. Call linalg.vector_norm for more."
        )
    return vector_norm(input, 2, dims, keepdim)


def _matrix_dims(where: str, input: Any, dim: Any) -> tuple[int, int]:
    ndim = described(input).ndim
    if ndim < 2:
        raise RuntimeError(
            f"{where}: The input tensor A must have at least 2 dimensions, got {ndim}."
        )
    dims = (-2, -1) if dim is None else as_ints(dim)
    if len(dims) != 2:
        raise RuntimeError(f"{where}: dim must be a 2-tuple. Got {dims}")
    first, second = (canonical_dim(d, ndim) for d in dims)
    if first == second:
        raise RuntimeError(f"{where}: dims must be different. Got {dims}")
    return first, second


def norm_except_dim(v: Any, pow: float = 2, dim: int = 0) -> Tensor:
    """The `pow`-norm over all dims but `dim`, which are kept with length 1; -1 keeps none.

    >>> dg.norm_except_dim(dg.tensor([[3.0, 4.0], [6.0, 8.0]]))
    tensor([[ 5.],
            [10.]])
    """
    if dim == -1:
        return vector_norm(v, pow)
    ndim = described(v).ndim
    kept = canonical_dim(dim, ndim)
    others = tuple(d for d in range(ndim) if d != kept)
    return vector_norm(v, pow, others, True) if others else v.abs()


def safe_norm(values: Any, dim: int, p: float = 2.0) -> Any:
    """The p-norm along `dim`, which it keeps, with gradient 0 at 0."""
    nonzero = jnp.where(values == 0, 1, values)
    size = jnp.where(values == 0, 0, jnp.abs(nonzero))
    if p == 0:
        return jnp.sum(values != 0, dim, dtype=size.dtype, keepdims=True)
    if p == math.inf:
        return size.max(dim, keepdims=True)
    if p == 1:
        return size.sum(dim, keepdims=True)
    nonzero = jnp.abs(nonzero)
    total = jnp.where(values == 0, 0, nonzero * nonzero if p == 2 else nonzero**p)
    total = total.sum(dim, keepdims=True)
    some = jnp.where(total == 0, 1, total)
    return jnp.where(total == 0, 0, jnp.sqrt(some) if p == 2 else some ** (1 / p))


def _normalize(self: Any, eps: Any = 1e-12, *, p: float = 2.0, dim: int = 1) -> Any:
    axis = canonical_dim(dim, self.ndim)
    if not self.ndim:
        return _normalize(self[None], eps, p=p, dim=0)[0]
    return self / jnp.maximum(safe_norm(self, axis, p), eps)


normalize = define(
    "normalize",
    _normalize,
    signature="self, p=2.0, dim=1, eps=1e-12",
    eps=None,
    doc="""The input over its `p`-norm along `dim`, or over `eps` where that is larger.

    >>> dg.nn.functional.normalize(dg.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """,
)


def _cosine(first: Any, second: Any, eps: Any, *, dim: int) -> Any:
    require_float("cosine_similarity", first)
    first, second = jnp.broadcast_arrays(first, second)
    axis = canonical_dim(dim, first.ndim)
    if not first.ndim:
        return _cosine(first[None], second[None], eps, dim=0)
    first = first / jnp.maximum(safe_norm(first, axis), eps)
    second = second / jnp.maximum(safe_norm(second, axis), eps)
    return (first * second).sum(axis)


_cosine_similarity = define(
    "cosine_similarity", _cosine, signature="first, second, dim, eps", eps=None
)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along `dim`; other dims broadcast.

    A norm below `eps` counts as `eps`, so that with a vector of zeros it is 0.

    >>> dg.cosine_similarity(dg.tensor([[1.0, 0.0]]), dg.tensor([[1.0, 1.0]]))
    tensor([0.7071])
    """
    return _cosine_similarity(x1, x2, dim, eps)


def _renorm(self: Any, maxnorm: Any, *, p: float, dim: int) -> Any:
    if self.ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {self.ndim} dimensions")
    axis = canonical_dim(dim, self.ndim)
    slices = jnp.moveaxis(self, axis, 0)
    size = safe_norm(slices.reshape(slices.shape[0], math.prod(slices.shape[1:])), 1, p)
    # 1e-7 as in PyTorch, so that rounding leaves no norm above the bound
    factor = jnp.where(size > maxnorm, maxnorm / (size + 1e-7), 1).astype(self.dtype)
    return self * factor.reshape([-1 if d == axis else 1 for d in range(self.ndim)])


_renormed = define("renorm", _renorm, signature="self, p, dim, maxnorm", maxnorm=None)


@takes_out
def renorm(input: Any, p: float, dim: int, maxnorm: float) -> Tensor:
    """The input with each slice along `dim` scaled down to the p-norm `maxnorm`, where it has more.

    >>> dg.renorm(dg.tensor([[3.0, 4.0], [0.3, 0.4]]), 2, 0, 1.0)
    tensor([[0.6000, 0.8000],
            [0.3000, 0.4000]])
    """
    if p <= 0:
        raise RuntimeError(f"renorm: non-positive-norm not supported, got p={p}")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    return _renormed(input, float(p), dim, maxnorm)


__all__ = [
    "cosine_similarity",
    "frobenius_norm",
    "norm",
    "norm_except_dim",
    "nuclear_norm",
    "renorm",
]

METHODS = ("norm", "renorm")
"""The functions of this file that are methods of Tensor too."""
