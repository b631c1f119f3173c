"""The same elements, in the same order, in another shape."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from dyngraph import dtypes
from dyngraph.kernels import same
from dyngraph.ops.arguments import as_ints, distinct_dims, with_parameters
from dyngraph.ops.operator import define
from dyngraph.tensor import Tensor, canonical_dim
from dyngraph.viewing import Layout, Viewing


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


def _to_own_shape(grad: Any, self_shape: tuple[int, ...]) -> Any:
    """The gradient of whatever keeps the elements and their order."""
    return grad.reshape(self_shape)


def _write_all(parent: Any, value: Any, **_: Any) -> Any:
    """Writes back what keeps the elements and their order."""
    return value.reshape(parent.shape)


def in_order(
    name: str, shape_of: Callable[..., Any], *, always: bool = False, **options: Any
) -> Callable[..., Any]:
    """An operator that shows the elements in their order in the shape `shape_of(shape, **statics)`:
    a view where the strides allow it, which they `always` may, and else a copy."""

    def strided(array: np.ndarray, **statics: Any) -> np.ndarray:
        return np.reshape(array, shape_of(array.shape, **statics), copy=False)

    return define(
        name,
        with_parameters(
            lambda self, **statics: self.reshape(shape_of(self.shape, **statics)),
            ["self"],
            list(inspect.signature(shape_of).parameters)[1:],
        ),
        self=_to_own_shape,
        viewing=Viewing(_write_all, strided, reshapes=not always),
        **options,
    )


_reshape = in_order(
    "reshape",
    lambda own, *, shape: _resolve_shape(shape, math.prod(own)),
    node="ViewBackward0",
)
_same_shape = define(
    "view_same",
    lambda self: self,
    node="ViewBackward0",
    self=same,
    passes_on=True,
    viewing=Viewing(_write_all, lambda array: array),
)


def reshape(input: Any, *shape: Any) -> Tensor:
    """The elements in their order, in another shape; one size may be -1. A view where it can be.

    Raises RuntimeError where the number of elements does not fit.

    >>> dg.tensor([1.0, 2.0, 3.0, 4.0]).reshape(2, -1)
    tensor([[1., 2.],
            [3., 4.]])
    """
    if len(shape) == 1:
        shape = shape[0]
    if isinstance(input, Tensor) and input._cell.held.shape == shape:
        return _same_shape(input)
    return _reshape(input, shape)


def view(input: Any, *shape: Any, dtype: Any = None) -> Tensor:
    """The same memory in another shape, of which one size may be -1, or read as another dtype.

    Raises RuntimeError where the number of elements does not fit, and where the strides don't allow
    the shape (`reshape` copies then).

    >>> dg.tensor([1.0, 2.0, 3.0, 4.0]).view(2, 2)
    tensor([[1., 2.],
            [3., 4.]])
    >>> dg.tensor([1.0, -1.0]).view(dg.int32)
    tensor([ 1065353216, -1082130432])
    """
    if len(shape) == 1:
        (shape,) = shape
    if dtype is None and isinstance(shape, dtypes.dtype):
        dtype = shape
    if dtype is not None:
        return _view_dtype(input, dtype=dtypes.as_dtype(dtype).dtype)
    if isinstance(input, Tensor) and input._cell.held.shape == shape:
        return _same_shape(input)
    shown = _reshape(input, shape)
    if shown._view is None and isinstance(input, Tensor):
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one "
            "dimension spans across two contiguous subspaces). Use .reshape(...) instead."
        )
    return shown


def _bits_as(self: Any, *, dtype: Any) -> Any:
    own, new = self.dtype.itemsize, np.dtype(dtype).itemsize
    if new > own:
        ratio = new // own
        if not self.ndim or self.shape[-1] % ratio:
            raise RuntimeError(
                f"self.size(-1) must be divisible by {ratio} to view {self.dtype} as {dtype} "
                f"(different element sizes), but got shape {list(self.shape)}"
            )
        self = self.reshape(*self.shape[:-1], self.shape[-1] // ratio, ratio)
    elif new < own and not self.ndim:
        raise RuntimeError(
            f"self.dim() cannot be 0 to view {self.dtype} as {dtype} (different element sizes)"
        )
    if dtype == np.bool_:
        return lax.bitcast_convert_type(self, np.uint8) != 0
    if self.dtype == np.bool_:
        self = self.astype(np.uint8)
    if jnp.iscomplexobj(self) or jnp.issubdtype(dtype, jnp.complexfloating):
        raise RuntimeError(
            f"view(dtype) between {self.dtype} and {dtype} is not possible. Use view_as_real() or "
            "view_as_complex()."
        )
    bits = lax.bitcast_convert_type(self, dtype)
    return bits.reshape(*bits.shape[:-2], -1) if new < own else bits


def _resized(layout: Layout, *, dtype: Any) -> Layout:
    return layout  # the same places where the element sizes are equal


_view_dtype = define(
    "view_dtype",
    _bits_as,
    self=None,
    viewing=Viewing(
        lambda parent, value, dtype: _bits_as(value, dtype=parent.dtype).reshape(parent.shape),
        layout=_resized,
    ),
)


def reshape_as(input: Any, other: Tensor) -> Tensor:
    """`input.reshape(other.shape)`."""
    return reshape(input, other.shape)


def view_as(input: Any, other: Tensor) -> Tensor:
    """`input.view(other.shape)`."""
    return view(input, other.shape)


def _flat_shape(own: tuple[int, ...], *, start_dim: int, end_dim: int) -> tuple[int, ...]:
    start, end = canonical_dim(start_dim, len(own)), canonical_dim(end_dim, len(own))
    if start > end:
        raise RuntimeError(
            f"flatten() has invalid args: start_dim cannot come after end_dim, got {start_dim} and "
            f"{end_dim} for a tensor of {len(own)} dims"
        )
    return (*own[:start], math.prod(own[start : end + 1]), *own[end + 1 :])


_flatten = in_order("flatten", _flat_shape, node="ViewBackward0")


def flatten(input: Any, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """The dims from `start_dim` to `end_dim`, both included, as one; a view where it can be.

    >>> dg.ones(2, 3, 4).flatten(1).shape
    dyngraph.Size([2, 12])
    """
    if isinstance(input, Tensor) and start_dim == 0 and input._cell.held.ndim == 1:
        return input
    return _flatten(input, start_dim, end_dim)


def ravel(input: Any) -> Tensor:
    """The elements as one dim.

    >>> dg.ones(2, 3).ravel().shape
    dyngraph.Size([6])
    """
    return reshape(input, -1)


def _unflat_shape(own: tuple[int, ...], *, dim: int, sizes: Any) -> tuple[int, ...]:
    axis = canonical_dim(dim, len(own))
    sizes, length = as_ints(sizes), own[axis] if own else 1
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    known = math.prod(n for n in sizes if n != -1)
    if known != length and not (sizes.count(-1) == 1 and known and length % known == 0):
        raise RuntimeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {dim} "
            f"({length}) in the input tensor"
        )
    return (*own[:axis], *_resolve_shape(sizes, length), *own[axis + 1 :])


unflatten = in_order(
    "unflatten",
    _unflat_shape,
    always=True,
    node="ViewBackward0",
    doc="""One dim as several of the given sizes, of which one may be -1.

    >>> dg.ones(2, 12).unflatten(1, (3, -1)).shape
    dyngraph.Size([2, 3, 4])
    """,
)


def _squeezed_shape(own: tuple[int, ...], *, dim: Any = None) -> tuple[int, ...]:
    dims = range(len(own)) if dim is None else distinct_dims(dim, len(own))
    gone = {d for d in dims if own and own[d] == 1}
    return tuple(n for d, n in enumerate(own) if d not in gone)


squeeze = in_order(
    "squeeze",
    _squeezed_shape,
    always=True,
    signature="self, dim=None",
    doc="""Without the dims of length 1: all of them, or those in `dim`, an int or several.

    >>> dg.ones(2, 1, 3, 1).squeeze(1).shape
    dyngraph.Size([2, 3, 1])
    """,
)


def _unsqueezed_shape(own: tuple[int, ...], *, dim: int) -> tuple[int, ...]:
    axis = canonical_dim(dim, len(own) + 1)
    return (*own[:axis], 1, *own[axis:])


unsqueeze = in_order(
    "unsqueeze",
    _unsqueezed_shape,
    always=True,
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
    passes_on=True,
    doc="""The same value in a tensor of its own; in contrast to `detach` it stays in the graph.

    It costs nothing until one of the two is written to, because arrays are immutable.

    >>> dg.ones(2, requires_grad=True).clone()
    tensor([1., 1.], grad_fn=<CloneBackward0>)
    """,
)


def contiguous(input: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor itself where its elements follow each other in memory, else a clone.

    >>> x = dg.ones(2, 3)
    >>> x.contiguous() is x, x.t().contiguous()._is_view()
    (True, False)
    """
    view = input._view
    return input if view is None or view.layout().is_contiguous else clone(input)


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
