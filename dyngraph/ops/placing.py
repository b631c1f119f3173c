"""Values placed into a copy of a tensor: on a diagonal, in a slice, at strides, everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from dyngraph import modes
from dyngraph.kernels import same
from dyngraph.ops.arguments import as_ints
from dyngraph.ops.diagonals import diagonal_dims, take_diagonal
from dyngraph.ops.host_values import described, outside
from dyngraph.ops.operator import define
from dyngraph.ops.rules import zero_gradient
from dyngraph.tangents import tangent_of
from dyngraph.tensor import Tensor, canonical_dim
from dyngraph.viewing import Layout, Viewing
from dyngraph.views import whole_memory


def _check_part(where: str, src: Any, shape: Sequence[int]) -> None:
    if tuple(src.shape) != tuple(shape):
        raise RuntimeError(
            f"{where}(): expected src to have a size equal to the slice of self. src size = "
            f"{list(src.shape)}, slice size = {list(shape)}"
        )


# --- diagonals --------------------------------------------------------------------------------


def _on_diagonal(self: Any, src: Any, *, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    dims = diagonal_dims(self.ndim, dim1, dim2)
    matrices = jnp.moveaxis(self, dims, (-2, -1))
    part = jnp.diagonal(matrices, offset, -2, -1)
    _check_part("diagonal_scatter", src, part.shape)
    along = np.arange(part.shape[-1])
    rows, columns = along + max(-offset, 0), along + max(offset, 0)
    filled = matrices.at[..., rows, columns].set(src.astype(self.dtype))
    return jnp.moveaxis(filled, (-2, -1), dims)


def _off_diagonal(grad: Any, offset: int, dim1: int, dim2: int) -> Any:
    zeros = jnp.zeros_like(take_diagonal(grad, offset, dim1, dim2))
    return _on_diagonal(grad, zeros, offset=offset, dim1=dim1, dim2=dim2)


diagonal_scatter = define(
    "diagonal_scatter",
    _on_diagonal,
    self=_off_diagonal,
    src=lambda grad, offset, dim1, dim2: take_diagonal(grad, offset, dim1, dim2),
    doc="""A copy of `input` with `src` on the diagonal that `diagonal` takes.

    >>> dg.diagonal_scatter(dg.zeros(2, 2), dg.ones(2))
    tensor([[1., 0.],
            [0., 1.]])
    """,
)


# --- slices -----------------------------------------------------------------------------------


def _in_place_of(self: Any, src: Any, index: Any, *, dim: int) -> Any:
    _check_part("select_scatter", src, (*self.shape[:dim], *self.shape[dim + 1 :]))
    return lax.dynamic_update_index_in_dim(self, src.astype(self.dtype), index, dim)


def _without_slice(grad: Any, index: Any, dim: int) -> Any:
    hole = jnp.zeros((*grad.shape[:dim], *grad.shape[dim + 1 :]), grad.dtype)
    return lax.dynamic_update_index_in_dim(grad, hole, index, dim)


_select_scatter = define(
    "select_scatter",
    _in_place_of,
    signature="self, src, index, dim",
    index=None,
    self=_without_slice,
    src=lambda grad, index, dim: lax.dynamic_index_in_dim(grad, index, dim, keepdims=False),
)


def select_scatter(input: Any, src: Any, dim: int, index: int) -> Tensor:
    """A copy of `input` with `src` as the slice at `index` along `dim`: what `select` takes.

    Raises IndexError where there is no such slice, RuntimeError where `src` has not its shape.

    >>> dg.select_scatter(dg.zeros(2, 2), dg.ones(2), 0, 1)
    tensor([[0., 0.],
            [1., 1.]])
    """
    shape = described(input).shape
    if not shape:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    dim, place = canonical_dim(dim, len(shape)), int(index)
    size = shape[dim]
    if not -size <= place < size:
        raise IndexError(
            f"select(): index {place} out of range for tensor of size {list(shape)} at dimension "
            f"{dim}"
        )
    return _select_scatter(input, src, place % size, dim)


def _sliced(ndim: int, dim: int, start: int | None, end: int | None, step: int) -> Any:
    if step < 1:
        raise RuntimeError(f"slice step must be positive, but got {step}")
    axis = canonical_dim(dim, ndim)
    return (*[slice(None)] * axis, slice(start, end, step))


def _over_slice(
    self: Any,
    src: Any,
    *,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Any:
    part = _sliced(self.ndim, dim, start, end, step)
    _check_part("slice_scatter", src, self[part].shape)
    return self.at[part].set(src.astype(self.dtype))


slice_scatter = define(
    "slice_scatter",
    _over_slice,
    self=lambda grad, dim, start, end, step: grad.at[_sliced(grad.ndim, dim, start, end, step)].set(
        0
    ),
    src=lambda grad, dim, start, end, step: grad[_sliced(grad.ndim, dim, start, end, step)],
    doc="""A copy of `input` with `src` in place of the slice `start:end:step` of `dim`.

    >>> dg.slice_scatter(dg.zeros(4), dg.ones(2), 0, 1, None, 2)
    tensor([0., 1., 0., 1.])
    """,
)


# --- strides ----------------------------------------------------------------------------------


def _places(where: str, count: int, size: Any, stride: Any, storage_offset: int | None) -> Any:
    """The positions, in the flattened tensor of `count` elements, that a strided view shows."""
    sizes, strides, first = as_ints(size), as_ints(stride), storage_offset or 0
    if len(sizes) != len(strides):
        raise RuntimeError(
            f"{where}(): mismatch in length of strides and shape: size {list(sizes)}, stride "
            f"{list(strides)}"
        )
    if min((*sizes, *strides, first), default=0) < 0:
        raise RuntimeError(
            f"{where}(): size, stride and storage_offset must not be negative, got "
            f"{list(sizes)}, {list(strides)}, {first}"
        )
    places = np.full((), first)
    for n, step in zip(sizes, strides, strict=True):
        places = places[..., None] + step * np.arange(n)
    needed = int(places.max(initial=-1)) + 1
    if needed > count:
        raise RuntimeError(
            f"{where}(): sizes {list(sizes)}, strides {list(strides)}, storage offset {first} "
            f"require {needed} elements, but the tensor has {count}"
        )
    return places


def _as_strided(self: Any, *, size: Any, stride: Any, storage_offset: int | None = None) -> Any:
    places = _places("as_strided", self.size, size, stride, storage_offset)
    return self.reshape(-1)[places]


def _from_strided(grad: Any, self_shape: Any, size: Any, stride: Any, storage_offset: Any) -> Any:
    flat = jnp.zeros(int(np.prod(self_shape)), grad.dtype)
    places = _places("as_strided", flat.size, size, stride, storage_offset)
    return flat.at[places].add(grad).reshape(self_shape)


_strided = define(
    "as_strided",
    _as_strided,
    self=_from_strided,
    viewing=Viewing(
        layout=lambda layout, size, stride, storage_offset: Layout(
            size, stride, layout.offset + (storage_offset or 0)
        )
    ),
)


def as_strided(input: Any, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """The elements at `storage_offset + i * stride[0] + j * stride[1] + ...` of the memory.

    A view, of all the memory that `input` is a view of; where `storage_offset` is not given,
    it is that of `input`. Elements that show several times add up in the gradient. Raises
    RuntimeError for positions outside of the memory; of a detached part that requires grad itself,
    outside of the part.

    >>> dg.as_strided(dg.arange(4), (3, 2), (1, 1))
    tensor([[0, 1],
            [1, 2],
            [2, 3]])
    """
    view = input._view if isinstance(input, Tensor) else None
    if view is not None:
        first = view.layout().offset if storage_offset is None else storage_offset
        input, start = _shown_memory(input)
        storage_offset = first - start
    return _strided(input, as_ints(size), as_ints(stride), storage_offset)


def _shown_memory(input: Tensor) -> tuple[Tensor, int]:
    """The tensor that `as_strided` shows elements of, and where in the memory it starts: all of
    the memory, or a part of it that is differentiated by itself."""
    anchor = input if input._view.base is None else input._view.base
    part = anchor._view
    followed = (modes.is_recording() and anchor._edge is not None) or tangent_of(anchor) is not None
    if part is None or not followed:
        return whole_memory(input), 0
    layout = part.layout()
    if not layout.is_contiguous:
        raise RuntimeError(
            "as_strided(): the tensor is a part of its memory with gaps, and is differentiated by "
            "itself, so what lies between its elements has no gradient. Take a clone() of it, or "
            "index it."
        )
    return anchor, layout.offset


def _over_strided(
    self: Any, src: Any, *, size: Any, stride: Any, storage_offset: int | None = None
) -> Any:
    places = _places("as_strided_scatter", self.size, size, stride, storage_offset)
    _check_part("as_strided_scatter", src, places.shape)
    flat = self.reshape(-1).at[places].set(src.astype(self.dtype))
    return flat.reshape(self.shape)


def _outside_strided(grad: Any, size: Any, stride: Any, storage_offset: Any) -> Any:
    places = _places("as_strided_scatter", grad.size, size, stride, storage_offset)
    return grad.reshape(-1).at[places].set(0).reshape(grad.shape)


as_strided_scatter = define(
    "as_strided_scatter",
    _over_strided,
    self=_outside_strided,
    src=lambda grad, size, stride, storage_offset: _as_strided(
        grad, size=size, stride=stride, storage_offset=storage_offset
    ),
    doc="""A copy of `input` with `src` at the positions that `as_strided` reads.

    >>> dg.as_strided_scatter(dg.zeros(4), dg.ones(2), (2,), (2,), 1)
    tensor([0., 1., 0., 1.])
    """,
)


# --- positions and values ---------------------------------------------------------------------


def _put_kernel(self: Any, index: Any, source: Any, *, accumulate: bool) -> Any:
    if index.dtype not in (np.int32, np.int64):
        raise RuntimeError(
            f"put_(): Expected a long tensor for index, but got {index.dtype}. Convert it by "
            ".long()."
        )
    if self.dtype != source.dtype:
        raise RuntimeError(
            "put_(): self and source expected to have the same dtype, but got self.dtype = "
            f"{self.dtype} and source.dtype = {source.dtype}"
        )
    if index.size != source.size:
        raise RuntimeError(
            "put_(): Expected source and index to have the same number of elements, but got "
            f"source.numel() = {source.size}, index.numel() = {index.size}"
        )
    place = self.reshape(-1).at[index.reshape(-1)]
    values = source.reshape(-1)
    return (place.add(values) if accumulate else place.set(values)).reshape(self.shape)


def _source_of_put(grad: Any, index: Any, source_shape: Any) -> Any:
    return grad.reshape(-1)[index.reshape(-1)].reshape(source_shape)


_put_added = define(
    "put",
    _put_kernel,
    signature="self, index, source, accumulate",
    index=None,
    self=same,
    source=_source_of_put,
)
# The rule for `source` is JAX's: of values written to one place, the one that stays has the
# gradient.
_put_set = define(
    "put",
    _put_kernel,
    signature="self, index, source, accumulate",
    index=None,
    self=lambda grad, index: grad.reshape(-1).at[index.reshape(-1)].set(0).reshape(grad.shape),
)


def put(input: Any, index: Any, source: Any, accumulate: bool = False) -> Tensor:
    """A copy of `input` with `source` at `index`, positions in the flattened tensor.

    With `accumulate` the values are added to what stands there. Raises IndexError where a position
    is out of bounds.

    >>> dg.put(dg.zeros(2, 2), dg.tensor([0, -1]), dg.tensor([5.0, 6.0]))
    tensor([[5., 0.],
            [0., 6.]])
    """
    size = described(input).size
    bad = outside(index, -size, size)
    if bad is not None:
        raise IndexError(
            f"out of range: tried to access index {bad} on a tensor of {size} elements."
        )
    return (_put_added if accumulate else _put_set)(input, index, source, bool(accumulate))


def _fill_kernel(self: Any, value: Any) -> Any:
    if value.ndim:
        raise RuntimeError(
            "fill only supports 0-dimension value tensor but got tensor with "
            f"{value.ndim} dimensions."
        )
    return jnp.broadcast_to(value.astype(self.dtype), self.shape)


_fill_number = define("fill", _fill_kernel, self=zero_gradient, value=None)
_fill_tensor = define(
    "fill", _fill_kernel, node="FillBackward1", self=zero_gradient, value=lambda grad: grad
)


def fill(input: Any, value: Any) -> Tensor:
    """A tensor like `input` with `value`, a number or a tensor of no dims, everywhere.

    >>> dg.fill(dg.zeros(2), 3)
    tensor([3., 3.])
    """
    return (_fill_tensor if isinstance(value, Tensor) else _fill_number)(input, value)


__all__ = [
    "as_strided",
    "as_strided_scatter",
    "diagonal_scatter",
    "fill",
    "put",
    "select_scatter",
    "slice_scatter",
]

METHODS = tuple(n for n in __all__ if n != "fill")
"""The functions of this file that are methods of Tensor too."""
