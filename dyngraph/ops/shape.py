"""The same elements, in the same order, in another shape."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import lax

from dyngraph.kernels import same
from dyngraph.ops.arguments import as_ints, distinct_dims
from dyngraph.ops.operator import define
from dyngraph.tensor import Tensor, canonical_dim


def _resolve_shape(shape: Any, size: int) -> tuple[int, ...]:
    """A shape for `size` elements, with its one -1 worked out; RuntimeError where none fits."""
    wanted = as_ints(shape)
    for position, n in enumerate(wanted):
        if n < -1:
            raise RuntimeError(
                f"invalid shape dimension {n} at index {position} of shape {list(wanted)}. Sizes "
                "are 0 or more, and one may be -1: worked out from the others."
            )
    if wanted.count(-1) > 1:
        raise RuntimeError(
            f"only one dimension can be inferred, but shape {list(wanted)} has several -1"
        )
    known = math.prod(n for n in wanted if n != -1)
    if -1 in wanted and known == 0 == size:
        raise RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {list(wanted)} because the "
            "unspecified dimension size -1 can be any value and is ambiguous"
        )
    if (size % known if known else size) if -1 in wanted else size != known:
        raise RuntimeError(f"shape '{list(wanted)}' is invalid for input of size {size}")
    return tuple(size // known if n == -1 else n for n in wanted)


def _reshape(self: Any, *, shape: Any) -> Any:
    return self.reshape(_resolve_shape(shape, self.size))


def _to_own_shape(grad: Any, self_shape: tuple[int, ...]) -> Any:
    """The gradient of whatever keeps the elements and their order."""
    return grad.reshape(self_shape)


reshape = define(
    "reshape",
    _reshape,
    signature="self, *shape",
    node="ViewBackward0",
    self=_to_own_shape,
    doc="""The elements in their order, in another shape; one size may be -1.

    Raises RuntimeError where the number of elements does not fit.

    >>> dg.tensor([1.0, 2.0, 3.0, 4.0]).reshape(2, -1)
    tensor([[1., 2.],
            [3., 4.]])
    """,
)
view = define(
    "view",
    _reshape,
    signature="self, *shape",
    self=_to_own_shape,
    doc="""The elements in their order, in another shape; one size may be -1.

    >>> dg.tensor([1.0, 2.0, 3.0, 4.0]).view(2, 2)
    tensor([[1., 2.],
            [3., 4.]])
    """,
)


def reshape_as(input: Any, other: Tensor) -> Tensor:
    """`input.reshape(other.shape)`."""
    return reshape(input, other.shape)


def view_as(input: Any, other: Tensor) -> Tensor:
    """`input.view(other.shape)`."""
    return view(input, other.shape)


def _flatten(self: Any, *, start_dim: int, end_dim: int) -> Any:
    start, end = canonical_dim(start_dim, self.ndim), canonical_dim(end_dim, self.ndim)
    if start > end:
        raise RuntimeError(
            f"flatten() has invalid args: start_dim cannot come after end_dim, got {start_dim} and "
            f"{end_dim} for a tensor of {self.ndim} dims"
        )
    merged = math.prod(self.shape[start : end + 1])
    return self.reshape((*self.shape[:start], merged, *self.shape[end + 1 :]))


flatten = define(
    "flatten",
    _flatten,
    signature="self, start_dim=0, end_dim=-1",
    node="ViewBackward0",
    self=_to_own_shape,
    doc="""The dims from `start_dim` to `end_dim`, both included, as one.

    >>> dg.ones(2, 3, 4).flatten(1).shape
    dyngraph.Size([2, 12])
    """,
)


def ravel(input: Any) -> Tensor:
    """The elements as one dim.

    >>> dg.ones(2, 3).ravel().shape
    dyngraph.Size([6])
    """
    return reshape(input, -1)


def _unflatten(self: Any, *, dim: int, sizes: Any) -> Any:
    axis = canonical_dim(dim, self.ndim)
    sizes, length = as_ints(sizes), self.shape[axis] if self.ndim else 1
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    known = math.prod(n for n in sizes if n != -1)
    if known != length and not (sizes.count(-1) == 1 and known and length % known == 0):
        raise RuntimeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {dim} "
            f"({length}) in the input tensor"
        )
    sizes = _resolve_shape(sizes, length)
    return self.reshape((*self.shape[:axis], *sizes, *self.shape[axis + 1 :]))


unflatten = define(
    "unflatten",
    _unflatten,
    node="ViewBackward0",
    self=_to_own_shape,
    doc="""One dim as several of the given sizes, of which one may be -1.

    >>> dg.ones(2, 12).unflatten(1, (3, -1)).shape
    dyngraph.Size([2, 3, 4])
    """,
)


def _squeeze(self: Any, *, dim: Any = None) -> Any:
    dims = range(self.ndim) if dim is None else distinct_dims(dim, self.ndim)
    gone = [d for d in dims if self.ndim and self.shape[d] == 1]
    return lax.squeeze(self, gone)


squeeze = define(
    "squeeze",
    _squeeze,
    self=_to_own_shape,
    doc="""Without the dims of length 1: all of them, or those in `dim`, an int or several.

    >>> dg.ones(2, 1, 3, 1).squeeze(1).shape
    dyngraph.Size([2, 3, 1])
    """,
)

unsqueeze = define(
    "unsqueeze",
    lambda self, *, dim: jnp.expand_dims(self, canonical_dim(dim, self.ndim + 1)),
    self=_to_own_shape,
    doc="""With a dim of length 1 put in at `dim`.

    >>> dg.ones(2, 3).unsqueeze(-1).shape
    dyngraph.Size([2, 3, 1])
    """,
)


def _each(function: Callable[[Any], Tensor], tensors: tuple[Any, ...]) -> Any:
    """`function` of one tensor, or the tuple of it for several, given one by one or as a list."""
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        return tuple(function(t) for t in tensors[0])
    if len(tensors) == 1:
        return function(tensors[0])
    return tuple(function(t) for t in tensors)


def atleast_1d(*tensors: Any) -> Any:
    """Each tensor with at least one dim.

    >>> dg.atleast_1d(dg.tensor(2.0))
    tensor([2.])
    """
    return _each(lambda t: t if t.ndim else reshape(t, 1), tensors)


def atleast_2d(*tensors: Any) -> Any:
    """Each tensor with at least two dims; a vector becomes a row.

    >>> dg.atleast_2d(dg.tensor([1.0, 2.0]))
    tensor([[1., 2.]])
    """
    return _each(lambda t: t if t.ndim > 1 else unsqueeze(atleast_1d(t), 0), tensors)


def atleast_3d(*tensors: Any) -> Any:
    """Each tensor with at least three dims; matrices gain a last dim.

    >>> dg.atleast_3d(dg.ones(2, 3)).shape
    dyngraph.Size([2, 3, 1])
    """
    return _each(lambda t: t if t.ndim > 2 else unsqueeze(atleast_2d(t), -1), tensors)


# --- the same value ---------------------------------------------------------------------------

clone = define(
    "clone",
    lambda self: self,
    signature="self, *, memory_format=None",
    self=same,
    doc="""The same value in a tensor of its own; in contrast to `detach` it stays in the graph.

    >>> dg.ones(2, requires_grad=True).clone()
    tensor([1., 1.], grad_fn=<CloneBackward0>)
    """,
)


def contiguous(input: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor itself: JAX arrays have no strides."""
    return input


__all__ = [
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "clone",
    "flatten",
    "ravel",
    "reshape",
    "squeeze",
    "unflatten",
    "unsqueeze",
]

METHODS = (
    "clone",
    "contiguous",
    "flatten",
    "ravel",
    "reshape",
    "reshape_as",
    "squeeze",
    "unflatten",
    "unsqueeze",
    "view",
    "view_as",
)
"""The methods of Tensor that this file has."""
