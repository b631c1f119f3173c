"""Elements in order of their values, and where they were: the gradient goes back there."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from dyngraph import dtypes
from dyngraph.ops.gathering import get_along, zeros_along
from dyngraph.ops.host_values import as_int, from_host, on_host
from dyngraph.ops.operator import define
from dyngraph.ops.out import takes_out
from dyngraph.tensor import Tensor, canonical_dim


def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The different values of the input (or slices along `dim`), always in ascending order.

    With `return_inverse` also the position in them of each element, with `return_counts` how often
    each occurs; several results come as a tuple. It can't be traced, and has no gradient.

    >>> dg.unique(dg.tensor([3, 1, 3]), return_counts=True)
    (tensor([1, 3]), tensor([1, 2]))
    """
    values = on_host("unique", input)
    axis = None if dim is None else canonical_dim(dim, values.ndim)
    results = np.unique(
        values, return_inverse=return_inverse, return_counts=return_counts, axis=axis
    )
    if not isinstance(results, tuple):
        return from_host(results, input)
    first, *rest = results
    if return_inverse and axis is None:
        rest[0] = rest[0].reshape(values.shape)
    return (from_host(first, input), *(from_host(as_int(r), input) for r in rest))


def unique_consecutive(
    input: Tensor,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The values, or slices along `dim`, that differ from the one before.

    With `return_inverse` also the position in them of each element, with `return_counts` how many
    equal ones follow each other; several results come as a tuple. It can't be traced, and has no
    gradient. Raises RuntimeError for slices without elements.

    >>> dg.unique_consecutive(dg.tensor([1, 1, 3, 1]), return_counts=True)
    (tensor([1, 3, 1]), tensor([2, 1, 1]))
    """
    values = on_host("unique_consecutive", input)
    lines = values.reshape(-1) if dim is None else values
    axis = 0 if dim is None else canonical_dim(dim, values.ndim)
    rows = np.moveaxis(np.atleast_1d(lines), axis, 0)
    if dim is not None and 0 in rows.shape[1:]:
        raise RuntimeError(
            "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied "
            f"to a shape of {list(values.shape)} along {dim}"
        )
    new = np.ones(len(rows), bool)
    new[1:] = (rows[1:] != rows[:-1]).any(axis=tuple(range(1, rows.ndim)))
    kept = np.moveaxis(rows[new], 0, axis)
    results = [from_host(kept, input)]
    if return_inverse:
        inverse = np.cumsum(new) - 1
        shape = values.shape if dim is None else inverse.shape
        results.append(from_host(as_int(inverse.reshape(shape)), input))
    if return_counts:
        counts = np.diff(np.append(np.flatnonzero(new), len(new)))
        results.append(from_host(as_int(counts), input))
    return tuple(results) if len(results) > 1 else results[0]


def _order(self: Any, dim: int, *, descending: bool = False) -> Any:
    """Positions, along `dim`, that sort; equal values keep their order, NaN is the largest."""
    if self.ndim == 0:
        return jnp.zeros((), dtypes.default_int().dtype)
    order = jnp.argsort(self, axis=dim, stable=True, descending=descending)
    return order.astype(dtypes.default_int().dtype)


def _sort(self: Any, *, dim: int = -1, descending: bool = False) -> Any:
    dim = canonical_dim(dim, self.ndim)
    indices = _order(self, dim, descending=descending)
    return get_along(self, indices, dim), indices


def _unsort(grads: Any, indices: Any, self_shape: Any, dim: int) -> Any:
    """The gradient of values that were read at `indices` along `dim`."""
    return zeros_along(grads[0], indices, canonical_dim(dim, len(self_shape)), self_shape)


_sorted = define(
    "sort",
    _sort,
    signature="self, dim=-1, descending=False",
    outputs=("values", "indices"),
    returns="sort",
    self=_unsort,
)


@takes_out
def sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    """The values in order along `dim`, and where they stood: a named tuple (values, indices).

    Equal values always keep their order, whatever `stable` says; NaN counts as the largest.

    >>> values, indices = dg.sort(dg.tensor([3.0, 1.0, 2.0]), descending=True)
    >>> values, indices
    (tensor([3., 2., 1.]), tensor([0, 2, 1]))
    """
    return _sorted(input, dim, bool(descending))


_argsort = define(
    "argsort",
    lambda self, *, dim, descending: _order(
        self, canonical_dim(dim, self.ndim), descending=descending
    ),
    signature="self, dim, descending",
    differentiable=False,
)


@takes_out
def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """The positions that sort the input along `dim`; equal values keep their order.

    >>> dg.argsort(dg.tensor([3.0, 1.0, 2.0]))
    tensor([1, 2, 0])
    """
    return _argsort(input, dim, bool(descending))


def _topk(self: Any, *, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    dim = canonical_dim(dim, self.ndim)
    if not 0 <= k <= (self.shape[dim] if self.ndim else 1):
        raise RuntimeError(
            f"selected index k out of range: got {k} for dim {dim} of shape {list(self.shape)}"
        )
    if self.ndim == 0:
        return self, jnp.zeros((), dtypes.default_int().dtype)
    if largest and jnp.issubdtype(self.dtype, jnp.number):
        values, indices = lax.top_k(jnp.moveaxis(self, dim, -1), k)
        return (
            jnp.moveaxis(values, -1, dim),
            jnp.moveaxis(indices.astype(dtypes.default_int().dtype), -1, dim),
        )
    order = lax.slice_in_dim(_order(self, dim, descending=largest), 0, k, axis=dim)
    return get_along(self, order, dim), order


topk = define(
    "topk",
    _topk,
    signature="self, k, dim=-1, largest=True, sorted=True",
    outputs=("values", "indices"),
    returns="topk",
    self=_unsort,
    doc="""The `k` largest values along `dim` (or smallest), and where they stood.

    A named tuple (values, indices), in order whatever `sorted` says; of equal values the first ones
    are taken, and NaN counts as the largest. Raises RuntimeError where `k` is too large.

    >>> dg.topk(dg.tensor([1.0, 4.0, 2.0, 3.0]), 2).values
    tensor([4., 3.])
    """,
)


def _kthvalue(self: Any, *, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    dim = canonical_dim(dim, self.ndim)
    if not 1 <= k <= (self.shape[dim] if self.ndim else 1):
        raise RuntimeError(
            f"kthvalue(): selected number k out of range for dimension {dim}: got {k} for shape "
            f"{list(self.shape)}"
        )
    order = _order(self, dim)
    if self.ndim == 0:
        return self, order
    indices = lax.slice_in_dim(order, k - 1, k, axis=dim)
    values = get_along(self, indices, dim)
    return (values, indices) if keepdim else (values.squeeze(dim), indices.squeeze(dim))


def _kthvalue_grad(grads: Any, indices: Any, self_shape: Any, dim: int, keepdim: bool) -> Any:
    (grad,) = grads
    dim = canonical_dim(dim, len(self_shape))
    if self_shape and not keepdim:
        grad, indices = jnp.expand_dims(grad, dim), jnp.expand_dims(indices, dim)
    return zeros_along(grad, indices, dim, self_shape)


kthvalue = define(
    "kthvalue",
    _kthvalue,
    signature="self, k, dim=-1, keepdim=False",
    outputs=("values", "indices"),
    returns="kthvalue",
    self=_kthvalue_grad,
    doc="""The `k`-th smallest value along `dim`, counted from 1, and where it stood.

    A named tuple (values, indices). Raises RuntimeError where `k` is out of range.

    >>> dg.kthvalue(dg.tensor([3.0, 1.0, 2.0]), 2).values
    tensor(2.)
    """,
)


@takes_out
def msort(input: Tensor) -> Tensor:
    """The values in ascending order along the first dim.

    >>> dg.msort(dg.tensor([[3.0, 1.0], [2.0, 4.0]]))
    tensor([[2., 1.],
            [3., 4.]])
    """
    return _sorted(input, 0, False)[0]


__all__ = [
    "argsort",
    "kthvalue",
    "msort",
    "sort",
    "topk",
    "unique",
    "unique_consecutive",
]

METHODS = tuple(__all__)
"""The functions of this file that are methods of Tensor too."""
