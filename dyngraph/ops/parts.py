"""Parts of a tensor along a dim: pieces, slices, single positions, windows.

The gradient of a part is zero outside of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from dyngraph.ops.arguments import as_ints, place
from dyngraph.ops.operator import define
from dyngraph.tensor import Tensor, canonical_dim
from dyngraph.viewing import Viewing


def _cut(array: Any, sizes: Sequence[int], axis: int) -> tuple[Any, ...]:
    """Parts of the given sizes, one after the other."""
    stops = [sum(sizes[: i + 1]) for i in range(len(sizes))]
    return tuple(
        lax.slice_in_dim(array, stop - n, stop, axis=axis)
        for n, stop in zip(sizes, stops, strict=True)
    )


def _equal_parts(length: int, size: int) -> list[int]:
    """Parts of `size` that make up `length`, the last one smaller where it must be."""
    full, rest = divmod(length, size)
    return [size] * full + ([rest] if rest else []) or [0]


def _split_dim(where: str, array: Any, dim: int) -> int:
    if not array.ndim:
        raise RuntimeError(f"{where} expects at least a 1-dimensional tensor")
    return canonical_dim(dim, array.ndim)


def _split(self: Any, *, split_size: int, dim: int) -> tuple[Any, ...]:
    axis = _split_dim("split", self, dim)
    length = self.shape[axis]
    if split_size < 0:
        raise RuntimeError(
            f"split expects split_size be non-negative, but got split_size={split_size}"
        )
    if split_size == 0 and length:
        raise RuntimeError(
            f"split_size can only be 0 if dimension size is 0, but got dimension size of {length}"
        )
    return _cut(self, _equal_parts(length, max(split_size, 1)), axis)


def _split_with_sizes(self: Any, *, split_sizes: Any, dim: int) -> tuple[Any, ...]:
    axis = _split_dim("split", self, dim)
    sizes = as_ints(split_sizes)
    if sum(sizes) != self.shape[axis] or min(sizes, default=0) < 0:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {self.shape[axis]} (input "
            f"tensor's size at dimension {axis}) and none to be negative, but got "
            f"split_sizes={list(sizes)}"
        )
    return _cut(self, sizes, axis)


def _chunk(self: Any, *, chunks: int, dim: int) -> tuple[Any, ...]:
    axis = _split_dim("chunk", self, dim)
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    return _cut(self, _chunk_sizes(self.shape[axis], chunks), axis)


def _chunk_sizes(length: int, chunks: int) -> list[int]:
    return _equal_parts(length, -(-length // chunks)) if length else [0] * chunks


def _joined(grads: Any, dim: int) -> Any:
    """The gradient of what was cut into parts."""
    return jnp.concatenate(grads, dim)


def _pieces(sizes: Sequence[int], dim: int, ndim: int) -> list[Any]:
    """Parts of the given sizes as views."""
    stops = [sum(sizes[: i + 1]) for i in range(len(sizes))]
    axis = canonical_dim(dim, ndim)
    return [
        (_narrow, (place(stop - n)._cell.array,), (n, axis))
        for n, stop in zip(sizes, stops, strict=True)
    ]


_split_equally = define(
    "split",
    _split,
    outputs=(),
    self=_joined,
    viewing=Viewing(
        pieces=lambda own, split_size, dim: _pieces(
            _equal_parts(own[dim], max(split_size, 1)), dim, len(own)
        )
    ),
)
_split_by_sizes = define(
    "split_with_sizes",
    _split_with_sizes,
    outputs=(),
    self=_joined,
    viewing=Viewing(pieces=lambda own, split_sizes, dim: _pieces(split_sizes, dim, len(own))),
)


def split(
    input: Any, split_size_or_sections: Any, dim: int = 0, *, axis: int | None = None
) -> tuple[Tensor, ...]:
    """Consecutive parts along `dim`: of one size, the last one smaller, or of the listed sizes.

    All parts have one node, which has one output for each. Raises RuntimeError where the listed
    sizes don't add up to the dim.

    >>> dg.split(dg.tensor([1, 2, 3]), 2)
    (tensor([1, 2]), tensor([3]))
    """
    dim = dim if axis is None else axis
    if isinstance(split_size_or_sections, (tuple, list)):
        return _split_by_sizes(input, split_size_or_sections, dim)
    return _split_equally(input, split_size_or_sections, dim)


def split_with_sizes(input: Any, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """`split` with a list of sizes.

    >>> dg.split_with_sizes(dg.tensor([1, 2, 3]), [1, 2])
    (tensor([1]), tensor([2, 3]))
    """
    return _split_by_sizes(input, split_sizes, dim)


chunk = define(
    "chunk",
    _chunk,
    signature="self, chunks, dim=0",
    node="SplitBackward0",
    outputs=(),
    self=_joined,
    viewing=Viewing(
        pieces=lambda own, chunks, dim: _pieces(_chunk_sizes(own[dim], chunks), dim, len(own))
    ),
    doc="""At most `chunks` parts of one size along `dim`, the last one smaller; all have one node.

    >>> dg.chunk(dg.tensor([1, 2, 3]), 2)
    (tensor([1, 2]), tensor([3]))
    """,
)


def tensor_split(input: Any, indices_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Parts along `dim`: that many, as equal as they can be, or cut before the listed indices.

    Each part has a node of its own. Raises RuntimeError for less than one section.

    >>> dg.tensor_split(dg.tensor([1, 2, 3]), 2)
    (tensor([1, 2]), tensor([3]))
    >>> dg.tensor_split(dg.tensor([1, 2, 3]), (1,))
    (tensor([1]), tensor([2, 3]))
    """
    if hasattr(indices_or_sections, "ndim"):
        indices_or_sections = np.asarray(indices_or_sections).tolist()
    axis = _split_dim("tensor_split", input, dim)
    length = input.shape[axis]
    if isinstance(indices_or_sections, (tuple, list)):
        stops = [*as_ints(indices_or_sections), length]
    else:
        (sections,) = as_ints(indices_or_sections)
        if sections <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {sections}")
        size, larger = divmod(length, sections)
        stops = [(i + 1) * size + min(i + 1, larger) for i in range(sections)]
    parts = []
    for start, stop in zip([0, *stops], stops, strict=False):
        low, high, _ = slice(start, stop).indices(length)
        parts.append(_narrow(input, place(low), max(high - low, 0), axis))
    return tuple(parts)


def hsplit(input: Any, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """`tensor_split` along the columns: dim 1, or dim 0 of a vector.

    >>> [part.shape for part in dg.hsplit(dg.ones(2, 4), 2)]
    [dyngraph.Size([2, 2]), dyngraph.Size([2, 2])]
    """
    return _split_evenly("hsplit", input, indices_or_sections, 1 if input.ndim > 1 else 0, 1)


def vsplit(input: Any, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """`tensor_split` along the rows, dim 0, of a tensor of at least two dims."""
    return _split_evenly("vsplit", input, indices_or_sections, 0, 2)


def dsplit(input: Any, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """`tensor_split` along dim 2 of a tensor of at least three."""
    return _split_evenly("dsplit", input, indices_or_sections, 2, 3)


def _split_evenly(
    where: str, input: Any, indices_or_sections: Any, dim: int, least: int
) -> tuple[Tensor, ...]:
    if input.ndim < least:
        raise RuntimeError(
            f"{where} requires a tensor with at least {least} dims, but got a tensor with "
            f"{input.ndim}. Use unsqueeze(), or tensor_split() and name the dim."
        )
    if isinstance(indices_or_sections, int):
        sections = indices_or_sections
        if sections <= 0 or input.shape[dim] % sections:
            raise RuntimeError(
                f"{where} attempted to split along dimension {dim}, but the size of the dimension "
                f"{input.shape[dim]} is not divisible by the split_size {sections}!"
            )
    return tensor_split(input, indices_or_sections, dim)


def _unbind(self: Any, *, dim: int = 0) -> tuple[Any, ...]:
    if not self.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    axis = canonical_dim(dim, self.ndim)
    return tuple(lax.index_in_dim(self, i, axis, keepdims=False) for i in range(self.shape[axis]))


unbind = define(
    "unbind",
    _unbind,
    outputs=(),
    self=lambda grads, dim: jnp.stack(grads, dim),
    viewing=Viewing(
        pieces=lambda own, dim: [
            (_select, (place(i)._cell.array,), (canonical_dim(dim, len(own)),))
            for i in range(own[dim])
        ]
    ),
    doc="""The slices along `dim`, without that dim; all have one node, with one output for each.

    >>> dg.unbind(dg.tensor([[1, 2], [3, 4]]))
    (tensor([1, 2]), tensor([3, 4]))
    """,
)

# The start of a slice is an input: a loop over the rows of a tensor compiles one kernel for all.
_narrow = define(
    "narrow",
    lambda self, start, *, length, dim: lax.dynamic_slice_in_dim(self, start[0], length, dim),
    node="SliceBackward0",
    start=None,
    self=lambda grad, start, self_shape, dim: lax.dynamic_update_slice_in_dim(
        jnp.zeros(self_shape, grad.dtype), grad, start[0], dim
    ),
    viewing=Viewing(
        lambda parent, value, start, length, dim: lax.dynamic_update_slice_in_dim(
            parent, value, start[0], dim
        ),
        lambda array, start, length, dim: array[
            (slice(None),) * dim + (slice(int(start[0]), int(start[0]) + length),)
        ],
    ),
)
_select = define(
    "select",
    lambda self, index, *, dim: lax.dynamic_index_in_dim(self, index[0], dim, keepdims=False),
    index=None,
    self=lambda grad, index, self_shape, dim: lax.dynamic_update_index_in_dim(
        jnp.zeros(self_shape, grad.dtype), grad, index[0], dim
    ),
    viewing=Viewing(
        lambda parent, value, index, dim: lax.dynamic_update_index_in_dim(
            parent, value, index[0], dim
        ),
        lambda array, index, dim: array[(slice(None),) * dim + (int(index[0]),)],
    ),
)


def narrow(input: Any, dim: int, start: Any, length: int) -> Tensor:
    """The part of `length` along `dim` that begins at `start`, which may count from the end.

    Raises IndexError for a start outside the dim, RuntimeError where the part reaches beyond it.

    >>> dg.narrow(dg.tensor([1, 2, 3, 4]), 0, 1, 2)
    tensor([2, 3])
    """
    if not input.ndim:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if length < 0:
        raise RuntimeError(f"narrow(): length must be non-negative, got {length}.")
    dim = canonical_dim(dim, input.ndim)
    size, start = input.shape[dim], int(start)
    if not -size <= start <= size:
        raise IndexError(
            f"start out of range (expected to be in range of [{-size}, {size}], but got {start})"
        )
    start = start + size if start < 0 else start
    if start + length > size:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    return _narrow(input, place(start), length, dim)


def select(input: Any, dim: int, index: Any) -> Tensor:
    """The slice at `index` along `dim`, without that dim; IndexError where there is none.

    >>> dg.select(dg.tensor([[1, 2], [3, 4]]), 0, -1)
    tensor([3, 4])
    """
    if not input.ndim:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    dim = canonical_dim(dim, input.ndim)
    size, at = input.shape[dim], int(index)
    if not -size <= at < size:
        raise IndexError(
            f"select(): index {at} out of range for tensor of size {list(input.shape)} at "
            f"dimension {dim}"
        )
    return _select(input, place(at + size if at < 0 else at), dim)


def _unfold(self: Any, *, dimension: int, size: int, step: int) -> Any:
    axis = canonical_dim(dimension, self.ndim)
    array = self if self.ndim else self[None]
    length = array.shape[axis]
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if size > length:
        raise RuntimeError(
            f"maximum size for tensor at dimension {axis} is {length} but size is {size}"
        )
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    starts = np.arange(0, length - size + 1, step)
    windows = jnp.take(array, starts[:, None] + np.arange(size), axis)
    windows = jnp.moveaxis(windows, axis + 1, -1)
    return windows if self.ndim else windows[0]


def _windows(array: np.ndarray, dimension: int, size: int, step: int) -> np.ndarray:
    if not array.ndim:
        return np.broadcast_to(array, (size,))
    axis = canonical_dim(dimension, array.ndim)
    windows = np.lib.stride_tricks.sliding_window_view(array, size, axis)
    return windows[(slice(None),) * axis + (slice(None, None, step),)]


unfold = define(
    "unfold",
    _unfold,
    viewing=Viewing(strided=_windows),
    doc="""Windows of `size` along a dim, one every `step`: they become a last dim.

    >>> dg.tensor([1, 2, 3, 4]).unfold(0, 2, 1)
    tensor([[1, 2],
            [2, 3],
            [3, 4]])
    """,
)


__all__ = [
    "chunk",
    "dsplit",
    "hsplit",
    "narrow",
    "select",
    "split",
    "split_with_sizes",
    "tensor_split",
    "unbind",
    "vsplit",
]

METHODS = (*__all__, "unfold")
"""The methods of Tensor that this file has."""
