"""Elements read at positions along a dim, or in the flattened tensor.

Positions out of bounds raise, and those read twice add up in the gradient.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from dyngraph.ops.host_values import described, outside, refuse_outside
from dyngraph.ops.operator import define
from dyngraph.ops.out import takes_out
from dyngraph.ops.shape import reshape
from dyngraph.tensor import Tensor, canonical_dim


def check_along(where: str, index: Any, dim: int, self_shape: Any, src_shape: Any = None) -> None:
    """Raises where the index of gather() and scatter() does not fit; an empty one always does."""
    if not index.size:
        return
    if index.dtype not in (np.int32, np.int64):
        raise RuntimeError(
            f"{where}(): Expected dtype int32/int64 for index, got {index.dtype}. Convert it by "
            ".long()."
        )
    if max(index.ndim, 1) != max(len(self_shape), 1) or (
        src_shape is not None and max(index.ndim, 1) != max(len(src_shape), 1)
    ):
        src = "" if src_shape is None else f", src {list(src_shape)}"
        raise RuntimeError(
            "Index tensor must have the same number of dimensions as input tensor: got index "
            f"{list(index.shape)}, input {list(self_shape)}{src}"
        )
    fits = all(i <= n for d, (i, n) in enumerate(zip(index.shape, self_shape)) if d != dim)
    if src_shape is None:
        if not fits:
            raise RuntimeError(
                f"Size does not match, expected index {list(index.shape)} to be no larger than "
                f"self {list(self_shape)} apart from dimension {dim}"
            )
    elif not fits or any(i > n for i, n in zip(index.shape, src_shape)):
        raise RuntimeError(
            f"Expected index {list(index.shape)} to be no larger than self {list(self_shape)} "
            f"apart from dimension {dim} and to be no larger size than src {list(src_shape)}"
        )


def _grid(index: Any, dim: int) -> tuple[Any, ...]:
    """Positions that run along every dim but `dim`, where they are those of `index`."""
    return tuple(
        index
        if d == dim
        else jnp.arange(n).reshape([-1 if d == e else 1 for e in range(index.ndim)])
        for d, n in enumerate(index.shape)
    )


def box(shape: Sequence[int]) -> tuple[slice, ...]:
    return tuple(slice(0, n) for n in shape)


def get_along(self: Any, index: Any, dim: int) -> Any:
    """The elements of `self` at `index` along `dim`, in the shape of `index`."""
    if not index.size:
        return jnp.zeros(index.shape, self.dtype)
    flat = jnp.atleast_1d(index)
    return jnp.atleast_1d(self)[_grid(flat, dim)].reshape(index.shape)


def update_along(self: Any, index: Any, dim: int, values: Any, how: str = "set") -> Any:
    """`self` with `values` (which may be larger than `index`) put at `index` along `dim`."""
    if not index.size:
        return self
    flat = jnp.atleast_1d(index)
    if values.ndim:
        values = values[box(flat.shape)]
    place = jnp.atleast_1d(self).at[_grid(flat, dim)]
    return getattr(place, how)(values.astype(self.dtype)).reshape(self.shape)


def zeros_along(grad: Any, index: Any, dim: int, shape: Any) -> Any:
    """What `_get_along` does to gradients, transposed."""
    return update_along(jnp.zeros(shape, grad.dtype), index, dim, grad, "add")


def check_values(index: Any, dim: int, shape: Sequence[int]) -> None:
    """Raises where an index of gather() or scatter() is out of bounds."""
    size = shape[dim] if shape else 1
    bad = outside(index, 0, size)
    if bad is not None:
        raise RuntimeError(f"index {bad} is out of bounds for dimension {dim} with size {size}")


def _gather_kernel(self: Any, index: Any, *, dim: int) -> Any:
    check_along("gather", index, dim, self.shape)
    return get_along(self, index, dim)


_gather = define(
    "gather",
    _gather_kernel,
    signature="self, index, dim",
    self=lambda grad, index, self_shape, dim: zeros_along(grad, index, dim, self_shape),
    index=None,
)


@takes_out
def gather(input: Tensor, dim: int, index: Any, *, sparse_grad: bool = False) -> Tensor:
    """The elements at `index` along `dim`: `out[i, j] = input[index[i, j], j]` for `dim=0`.

    `index` has as many dims as `input`, and is no larger apart from `dim`. Raises RuntimeError
    where it does not fit or is out of bounds. `sparse_grad` is taken for PyTorch's sake: gradients
    are dense.

    >>> x = dg.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> dg.gather(x, 1, dg.tensor([[0, 0], [1, 0]]))
    tensor([[1., 1.],
            [4., 3.]])
    """
    shape = described(input).shape
    dim = canonical_dim(dim, len(shape))
    check_values(index, dim, shape)
    return _gather(input, index, dim)


_take = define(
    "take",
    lambda self, index: self.reshape(-1)[index],
    self=lambda grad, index, self_shape: (
        jnp.zeros(math.prod(self_shape), grad.dtype).at[index].add(grad).reshape(self_shape)
    ),
    index=None,
)


@takes_out
def take(input: Tensor, index: Any) -> Tensor:
    """The elements at `index` of the input seen as one row, in the shape of `index`.

    Raises IndexError where the index is out of bounds; negative ones count from the end.

    >>> dg.take(dg.tensor([[1, 2], [3, 4]]), dg.tensor([0, -1]))
    tensor([1, 4])
    """
    size = described(input).size
    bad = outside(index, -size, size)
    if bad is not None:
        raise IndexError(
            f"out of range: tried to access index {bad} on a tensor of {size} elements."
        )
    return _take(input, index)


def _spread(shape: Sequence[int], other: Sequence[int], dim: int) -> tuple[int, ...]:
    """`shape` broadcast with `other` in every dim but `dim`."""
    free = [1 if d == dim else n for d, n in enumerate(other)]
    own = [1 if d == dim else n for d, n in enumerate(shape)]
    whole = np.broadcast_shapes(own, free)
    return (*whole[:dim], shape[dim], *whole[dim + 1 :])


def _take_along_dim_kernel(self: Any, indices: Any, *, dim: int) -> Any:
    if self.ndim != indices.ndim:
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, "
            f"but got {self.ndim} dimensions for input, and {indices.ndim} dimensions for indices"
        )
    whole = jnp.broadcast_to(self, _spread(self.shape, indices.shape, dim))
    return get_along(whole, jnp.broadcast_to(indices, _spread(indices.shape, self.shape, dim)), dim)


def _take_along_dim_grad(grad: Any, indices: Any, self_shape: Any, dim: int) -> Any:
    whole = jnp.broadcast_to(indices, _spread(indices.shape, self_shape, dim))
    return zeros_along(grad, whole, dim, _spread(self_shape, indices.shape, dim))


_take_along_dim = define(
    "take_along_dim",
    _take_along_dim_kernel,
    node="GatherBackward0",
    signature="self, indices, dim",
    self=_take_along_dim_grad,
    indices=None,
)


@takes_out
def take_along_dim(input: Tensor, indices: Any, dim: int | None = None) -> Tensor:
    """`gather` whose input and indices broadcast apart from `dim`: reads what `argsort` returns.

    Without `dim` the input is seen as one row, and `take` reads it. Raises IndexError where an
    index is out of bounds.

    >>> x = dg.tensor([[3.0, 1.0], [2.0, 4.0]])
    >>> dg.take_along_dim(x, dg.argsort(x, dim=1), dim=1)
    tensor([[1., 3.],
            [2., 4.]])
    """
    if dim is None:
        flat = described(indices).size
        taken = take(input, indices)
        return taken if taken.ndim == 1 else reshape(taken, (flat,))
    shape = described(input).shape
    dim = canonical_dim(dim, len(shape))
    refuse_outside(indices, shape[dim] if shape else 1, dim)
    return _take_along_dim(input, indices, dim)


__all__ = [
    "gather",
    "take",
    "take_along_dim",
]

METHODS = tuple(__all__)
"""The functions of this file that are methods of Tensor too."""
