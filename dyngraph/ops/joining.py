"""Tensors joined to one: along a dim, along a new one, as blocks, as grids.

Each tensor has the gradient of its part.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.linalg import block_diag as _block_diagonal

from dyngraph.ops.arguments import define_variadic
from dyngraph.ops.operator import define
from dyngraph.ops.out import takes_out, write_out
from dyngraph.ops.repetition import expand, listed
from dyngraph.ops.shape import atleast_1d, atleast_2d, atleast_3d, flatten, reshape
from dyngraph.tensor import Tensor, canonical_dim


def _cat(*tensors: Any, dim: int) -> Any:
    # PyTorch skips tensors of shape [0], whatever the shape of the others.
    parts = [t for t in tensors if t.shape != (0,)] or list(tensors)
    first = parts[0]
    for position, part in enumerate(tensors):
        if not part.ndim:
            raise RuntimeError(
                f"zero-dimensional tensor (at position {position}) cannot be concatenated. Use "
                "stack()."
            )
        if part.shape == (0,):
            continue
        axis = canonical_dim(dim, first.ndim)
        if part.ndim != first.ndim:
            raise RuntimeError(
                f"Tensors must have same number of dimensions: got {first.ndim} and {part.ndim}"
            )
        for d, (expected, n) in enumerate(zip(first.shape, part.shape, strict=True)):
            if d != axis and expected != n:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {axis}. Expected size "
                    f"{expected} but got size {n} for tensor number {position} in the list."
                )
    return jnp.concatenate(parts, canonical_dim(dim, first.ndim))


_cat_all = define_variadic("cat", _cat)


def cat(
    tensors: Sequence[Any], dim: int = 0, *, axis: int | None = None, out: Any = None
) -> Tensor:
    """The tensors one after the other along a dim they all have.

    Raises RuntimeError where their other dims differ, ValueError for an empty list.

    >>> dg.cat([dg.ones(1, 2), dg.zeros(1, 2)])
    tensor([[1., 1.],
            [0., 0.]])
    """
    if out is not None:
        return write_out(cat, out, (tensors, dim if axis is None else axis), {})
    if not len(tensors):
        raise ValueError("cat(): expected a non-empty list of Tensors")
    return _cat_all(tensors, dim if axis is None else axis)


@takes_out
def concat(tensors: Sequence[Any], dim: int = 0, *, axis: int | None = None) -> Tensor:
    """`cat` under another name."""
    return cat(tensors, dim, axis=axis)


@takes_out
def concatenate(tensors: Sequence[Any], dim: int = 0, *, axis: int | None = None) -> Tensor:
    """`cat` under numpy's name."""
    return cat(tensors, dim, axis=axis)


def _stack(*tensors: Any, dim: int) -> Any:
    for position, tensor in enumerate(tensors):
        if tensor.shape != tensors[0].shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(tensors[0].shape)} at "
                f"entry 0 and {list(tensor.shape)} at entry {position}"
            )
    return jnp.stack(tensors, canonical_dim(dim, tensors[0].ndim + 1))


_stack_all = define_variadic(
    "stack",
    _stack,
    lambda position: lambda grad, dim: lax.index_in_dim(grad, position, dim, keepdims=False),
)


def stack(
    tensors: Sequence[Any], dim: int = 0, *, axis: int | None = None, out: Any = None
) -> Tensor:
    """Tensors of one shape, joined along a new dim.

    Raises RuntimeError where shapes differ or the list is empty.

    >>> dg.stack([dg.tensor([1.0, 2.0]), dg.tensor([3.0, 4.0])], dim=1)
    tensor([[1., 3.],
            [2., 4.]])
    """
    if out is not None:
        return write_out(stack, out, (tensors, dim if axis is None else axis), {})
    if not len(tensors):
        raise RuntimeError("stack expects a non-empty TensorList")
    return _stack_all(tensors, dim if axis is None else axis)


@takes_out
def hstack(tensors: Sequence[Any]) -> Tensor:
    """Joined along the columns: dim 1, or dim 0 of vectors.

    >>> dg.hstack([dg.tensor([1.0, 2.0]), dg.tensor(3.0)])
    tensor([1., 2., 3.])
    """
    parts = [atleast_1d(t) for t in tensors]
    return cat(parts, 0 if parts and parts[0].ndim == 1 else 1)


@takes_out
def vstack(tensors: Sequence[Any]) -> Tensor:
    """Joined along the rows; a vector counts as one row.

    >>> dg.vstack([dg.tensor([1.0, 2.0]), dg.tensor([3.0, 4.0])])
    tensor([[1., 2.],
            [3., 4.]])
    """
    return cat([atleast_2d(t) for t in tensors], 0)


@takes_out
def row_stack(tensors: Sequence[Any]) -> Tensor:
    """`vstack` under another name."""
    return vstack(tensors)


@takes_out
def dstack(tensors: Sequence[Any]) -> Tensor:
    """Joined along the third dim.

    >>> dg.dstack([dg.ones(2), dg.zeros(2)]).shape
    dyngraph.Size([1, 2, 2])
    """
    return cat([atleast_3d(t) for t in tensors], 2)


@takes_out
def column_stack(tensors: Sequence[Any]) -> Tensor:
    """Joined along dim 1; a vector counts as one column.

    >>> dg.column_stack([dg.tensor([1.0, 2.0]), dg.tensor([3.0, 4.0])])
    tensor([[1., 3.],
            [2., 4.]])
    """
    return cat([t if t.ndim > 1 else reshape(t, -1, 1) for t in tensors], 1)


_block_diag_all = define_variadic("block_diag", lambda *tensors: _block_diagonal(*tensors))


def block_diag(*tensors: Any) -> Tensor:
    """The matrix that has the given matrices along its diagonal and zeros elsewhere.

    >>> dg.block_diag(dg.ones(1, 2), dg.ones(1, 1))
    tensor([[1., 1., 0.],
            [0., 0., 1.]])
    """
    return _block_diag_all(tensors)


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """The coordinates of a grid: one tensor for each vector, of shape (length of each vector).

    `indexing="xy"` exchanges the first two dims. Raises RuntimeError for tensors of several dims.

    >>> x, y = dg.meshgrid(dg.tensor([1, 2]), dg.tensor([3, 4, 5]))
    >>> y
    tensor([[3, 4, 5],
            [3, 4, 5]])
    """
    vectors = listed(tensors)
    if indexing not in ("ij", "xy"):
        raise RuntimeError(
            f'meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}'
        )
    for vector in vectors:
        if vector.ndim > 1:
            raise RuntimeError(
                "meshgrid: Expected 0D or 1D tensor in the tensor list but got shape "
                f"{list(vector.shape)}. flatten() it."
            )
    places = list(range(len(vectors)))
    if indexing == "xy" and len(vectors) > 1:
        places[:2] = 1, 0
    sizes = [1] * len(vectors)
    for vector, place in zip(vectors, places, strict=True):
        sizes[place] = math.prod(vector.shape)
    grids = []
    for vector, place in zip(vectors, places, strict=True):
        along = [1] * len(vectors)
        along[place] = -1
        grids.append(expand(reshape(vector, along), sizes))
    return tuple(grids)


def cartesian_prod(*tensors: Any) -> Tensor:
    """Every combination of one element of each vector, as rows in lexicographic order.

    >>> dg.cartesian_prod(dg.tensor([1, 2]), dg.tensor([3, 4]))
    tensor([[1, 3],
            [1, 4],
            [2, 3],
            [2, 4]])
    """
    if len(tensors) == 1:
        return tensors[0]
    return stack([flatten(grid) for grid in meshgrid(*tensors)], 1)


def _combinations_kernel(self: Any, *, r: int, with_replacement: bool) -> Any:
    if self.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(self.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    places = list(choose(range(self.shape[0]), r))
    if not r:
        return jnp.zeros(0, self.dtype)
    return self[np.array(places, np.int32).reshape(-1, r)]


_combinations = define("combinations", _combinations_kernel)


def combinations(input: Any, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Every choice of `r` elements of a vector, as rows, in the order of itertools.

    >>> dg.combinations(dg.tensor([1, 2, 3]))
    tensor([[1, 2],
            [1, 3],
            [2, 3]])
    """
    return _combinations(input, r, bool(with_replacement))


__all__ = [
    "block_diag",
    "cartesian_prod",
    "cat",
    "column_stack",
    "combinations",
    "concat",
    "concatenate",
    "dstack",
    "hstack",
    "meshgrid",
    "row_stack",
    "stack",
    "vstack",
]

METHODS = ()
"""The functions of this file that are methods of Tensor too."""
