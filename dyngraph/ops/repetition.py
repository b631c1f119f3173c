"""Elements repeated, by broadcasting or as copies: the gradient adds up what was repeated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from dyngraph.kernels import same
from dyngraph.ops.arguments import as_ints
from dyngraph.ops.operator import define
from dyngraph.ops.shape import reshape
from dyngraph.tensor import Size, Tensor, canonical_dim
from dyngraph.viewing import Viewing


def _expanded(self: Any, size: Any) -> list[int]:
    """The shape that `self` is stretched to."""
    wanted = as_ints(size)
    new = len(wanted) - self.ndim
    if new < 0:
        raise RuntimeError(
            f"expand({self.dtype}{list(self.shape)}, size={list(wanted)}): the number of sizes "
            f"provided ({len(wanted)}) must be greater or equal to the number of dimensions in the "
            f"tensor ({self.ndim})"
        )
    sizes = []
    for dim, n in enumerate(wanted):
        own = self.shape[dim - new] if dim >= new else 1
        if n == -1 and dim < new:
            raise RuntimeError(
                f"The expanded size of the tensor ({n}) isn't allowed in a leading, non-existing "
                f"dimension {dim}. Say how long it is to be."
            )
        if n != -1 and n != own != 1:
            raise RuntimeError(
                f"The expanded size of the tensor ({n}) must match the existing size ({own}) at "
                f"non-singleton dimension {dim}.  Target sizes: {list(wanted)}.  Tensor sizes: "
                f"{list(self.shape)}"
            )
        sizes.append(own if n == -1 else n)
    return sizes


expand = define(
    "expand",
    lambda self, *, size: jnp.broadcast_to(self, _expanded(self, size)),
    signature="self, *size",
    self=same,
    viewing=Viewing(strided=lambda array, size: np.broadcast_to(array, _expanded(array, size))),
    doc="""Dims of length 1 stretched to `size`, and new ones in front; -1 leaves a dim as it is.

    Raises RuntimeError for a dim of another length.

    >>> dg.tensor([[1.0], [2.0]]).expand(-1, 3)
    tensor([[1., 1., 1.],
            [2., 2., 2.]])
    """,
)


def expand_as(input: Any, other: Tensor) -> Tensor:
    """`input.expand(other.shape)`."""
    return expand(input, other.shape)


def broadcast_to(input: Any, size: Sequence[int]) -> Tensor:
    """`input.expand(size)`, under numpy's name.

    >>> dg.broadcast_to(dg.tensor([1.0, 2.0]), (2, 2))
    tensor([[1., 2.],
            [1., 2.]])
    """
    return expand(input, size)


def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """The tensors expanded to the one shape that they broadcast to.

    >>> a, b = dg.broadcast_tensors(dg.ones(2, 1), dg.ones(3))
    >>> a.shape, b.shape
    (dyngraph.Size([2, 3]), dyngraph.Size([2, 3]))
    """
    given = listed(tensors)
    shapes = [tuple(t.shape) for t in given]
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        raise RuntimeError(
            f"shapes {', '.join(str(list(s)) for s in shapes)} do not broadcast: dims, counted "
            "from the last, must be equal or 1. reshape() or unsqueeze() the tensors."
        ) from None
    return tuple(expand(t, shape) for t in given)


def listed(tensors: tuple[Any, ...]) -> Sequence[Any]:
    """Tensors given one by one, or as one list."""
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        return tensors[0]
    return tensors


def _tiled(array: Any, repeats: tuple[int, ...]) -> Any:
    if min(repeats, default=0) < 0:
        raise RuntimeError(
            f"Trying to create tensor with negative dimension: repeats {list(repeats)} must be 0 "
            "or more"
        )
    return jnp.tile(array, repeats)


def _tiled_gradient(grad: Any, self_shape: tuple[int, ...], repeats: tuple[int, ...]) -> Any:
    """The sum over the copies of each element."""
    own = (1,) * (len(repeats) - len(self_shape)) + self_shape
    pairs = [n for pair in zip(repeats, own, strict=True) for n in pair]
    return grad.reshape(pairs).sum(range(0, len(pairs), 2)).reshape(self_shape)


def _repeat(self: Any, *, repeats: Any) -> Any:
    counts = as_ints(repeats)
    if len(counts) < self.ndim:
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of "
            f"tensor: got {len(counts)} repeats for shape {list(self.shape)}. Use tile(), or give "
            "one for each dim."
        )
    return _tiled(self, counts)


repeat = define(
    "repeat",
    _repeat,
    signature="self, *repeats",
    self=lambda grad, self_shape, repeats: _tiled_gradient(grad, self_shape, as_ints(repeats)),
    doc="""Copies of the whole tensor side by side: how many along each dim, new ones in front.

    >>> dg.tensor([1.0, 2.0]).repeat(2, 2)
    tensor([[1., 2., 1., 2.],
            [1., 2., 1., 2.]])
    """,
)


def _tile_counts(dims: Any, ndim: int) -> tuple[int, ...]:
    counts = as_ints(dims)
    return (1,) * (ndim - len(counts)) + counts


tile = define(
    "tile",
    lambda self, *, dims: _tiled(self, _tile_counts(dims, self.ndim)),
    signature="self, *dims",
    node="RepeatBackward0",
    self=lambda grad, self_shape, dims: _tiled_gradient(
        grad, self_shape, _tile_counts(dims, len(self_shape))
    ),
    doc="""As `repeat`, but with fewer counts than dims the leading dims are not repeated.

    >>> dg.tensor([[1.0, 2.0]]).tile(2)
    tensor([[1., 2., 1., 2.]])
    """,
)


def _repeat_each(self: Any, *, repeats: int, dim: int | None) -> Any:
    if repeats < 0:
        raise RuntimeError(f"Repeats must be non-negative, got {repeats}")
    array, axis = (self.reshape(-1), 0) if dim is None else (self, canonical_dim(dim, self.ndim))
    return jnp.repeat(array, repeats, axis)


def _repeat_each_rule(grad: Any, self_shape: Any, repeats: int, dim: int | None) -> Any:
    axis = len(self_shape) - 1 if dim is None else canonical_dim(dim, len(self_shape))
    pairs = (*self_shape[: axis + 1], repeats, *self_shape[axis + 1 :])
    return grad.reshape(pairs).sum(axis + 1)


_repeat_by_one = define("repeat_interleave", _repeat_each, self=_repeat_each_rule)
_repeat_by_each = define(
    "repeat_interleave",
    lambda self, repeats, *, total, dim: jnp.repeat(self, repeats, dim, total_repeat_length=total),
    node="IndexSelectBackward0",
    repeats=None,
)


def repeat_interleave(
    input: Any, repeats: Any, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Each element repeated in place, along `dim` or, without it, in the flattened tensor.

    `repeats` is one count, or a tensor with one for each entry of `dim`; `output_size`, their sum,
    saves reading it. Raises RuntimeError for counts below 0 or as many as don't fit.

    >>> dg.repeat_interleave(dg.tensor([1.0, 2.0]), 2)
    tensor([1., 1., 2., 2.])
    >>> dg.repeat_interleave(dg.tensor([1.0, 2.0]), dg.tensor([1, 3]))
    tensor([1., 2., 2., 2.])
    """
    if not hasattr(repeats, "ndim") or math.prod(repeats.shape) == 1:
        return _repeat_by_one(input, int(repeats), dim)
    flat = input if dim is not None else reshape(input, -1)
    axis = 0 if dim is None else canonical_dim(dim, flat.ndim)
    if tuple(repeats.shape) != (flat.shape[axis],):
        raise RuntimeError(
            "repeats must have the same size as input along dim, but got repeats of shape "
            f"{list(repeats.shape)} and input.size({axis}) = {flat.shape[axis]}"
        )
    if output_size is None:
        counts = np.asarray(repeats)
        if counts.size and counts.min() < 0:
            raise RuntimeError(f"repeats can not be negative, got {counts.tolist()}")
        output_size = int(counts.sum())
    return _repeat_by_each(flat, repeats, output_size, axis)


def broadcast_shapes(*shapes: Any) -> Size:
    """The shape that tensors of these shapes broadcast to; ints are shapes of one dim.

    Raises RuntimeError where they do not broadcast.

    >>> dg.broadcast_shapes((2, 1), (3,))
    dyngraph.Size([2, 3])
    """
    given = [(shape,) if isinstance(shape, int) else tuple(shape) for shape in shapes]
    try:
        return Size(np.broadcast_shapes(*given))
    except ValueError:
        raise RuntimeError(
            f"Shape mismatch: the shapes {', '.join(str(list(s)) for s in given)} do not broadcast "
            "to one shape. Sizes of a dim must be equal, or 1."
        ) from None


__all__ = [
    "broadcast_shapes",
    "broadcast_tensors",
    "broadcast_to",
    "repeat_interleave",
    "tile",
]

METHODS = (
    "broadcast_to",
    "expand",
    "expand_as",
    "repeat",
    "repeat_interleave",
    "tile",
)
"""The methods of Tensor that this file has."""
