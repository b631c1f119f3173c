"""Operators that rearrange elements: other shapes, other orders of dims, parts, joins, repeats."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.linalg import block_diag as _block_diagonal

from dyngraph.ops import pointwise
from dyngraph.ops.arguments import as_ints, define_variadic, distinct_dims
from dyngraph.ops.operator import define
from dyngraph.tensor import Tensor, canonical_dim

# --- the same elements in another shape -------------------------------------------------------


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


# --- dims in another order --------------------------------------------------------------------


def _swap(array: Any, dim0: int, dim1: int) -> Any:
    first, second = canonical_dim(dim0, array.ndim), canonical_dim(dim1, array.ndim)
    return jnp.swapaxes(array, first, second) if array.ndim else array


transpose = define(
    "transpose",
    lambda self, *, dim0, dim1: _swap(self, dim0, dim1),
    self=_swap,
    doc="""With two dims exchanged.

    >>> dg.ones(2, 3, 4).transpose(0, -1).shape
    dyngraph.Size([4, 3, 2])
    """,
)


def swapaxes(input: Any, axis0: int, axis1: int) -> Tensor:
    """`transpose` under numpy's name."""
    return transpose(input, axis0, axis1)


def swapdims(input: Any, dim0: int, dim1: int) -> Tensor:
    """`transpose` under another name."""
    return transpose(input, dim0, dim1)


def _permutation(dims: Any, ndim: int) -> tuple[int, ...]:
    dims = as_ints(dims)
    if len(dims) != ndim:
        raise RuntimeError(
            "permute: number of dimensions in the tensor input does not match the length of the "
            f"desired ordering of dimensions i.e. input.dim() = {ndim} is not equal to len(dims) = "
            f"{len(dims)}"
        )
    order = tuple(canonical_dim(d, ndim) for d in dims)
    if len(set(order)) < ndim:
        raise RuntimeError(f"permute(): duplicate dims are not allowed, got {list(dims)}.")
    return order


permute = define(
    "permute",
    lambda self, *, dims: jnp.transpose(self, _permutation(dims, self.ndim)),
    signature="self, *dims",
    self=lambda grad, dims: jnp.transpose(grad, tuple(np.argsort(_permutation(dims, grad.ndim)))),
    doc="""The dims in another order: the result's dim i is the input's dim `dims[i]`.

    Raises RuntimeError unless each dim is named once.

    >>> dg.ones(2, 3, 4).permute(2, 0, 1).shape
    dyngraph.Size([4, 2, 3])
    """,
)


def _moved(array: Any, source: Any, destination: Any) -> Any:
    if len(as_ints(source)) != len(as_ints(destination)):
        raise RuntimeError(
            "movedim: Invalid source or destination dims: source "
            f"({list(as_ints(source))} dims) should contain the same number of dims as destination "
            f"({list(as_ints(destination))} dims)"
        )
    for name, dims in (("source", source), ("destination", destination)):
        found = [canonical_dim(d, array.ndim) for d in as_ints(dims)]
        if len(set(found)) < len(found):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({list(as_ints(dims))})")
    if not array.ndim:
        return array
    return jnp.moveaxis(array, as_ints(source), as_ints(destination))


movedim = define(
    "movedim",
    lambda self, *, source, destination: _moved(self, source, destination),
    node="PermuteBackward0",
    self=lambda grad, source, destination: _moved(grad, destination, source),
    doc="""With the dims `source` at the places `destination`; the others keep their order.

    >>> dg.ones(2, 3, 4).movedim(0, -1).shape
    dyngraph.Size([3, 4, 2])
    """,
)


def moveaxis(input: Any, source: Any, destination: Any) -> Tensor:
    """`movedim` under numpy's name."""
    return movedim(input, source, destination)


def _transposed_matrix(self: Any) -> Any:
    if self.ndim > 2:
        raise RuntimeError(
            f"t() expects a tensor with <= 2 dimensions, but self is {self.ndim}D. Use transpose() "
            "and name the dims."
        )
    return self.T


t = define(
    "t",
    _transposed_matrix,
    self=lambda grad: grad.T,
    doc="""The transpose of a matrix; tensors of fewer dims stay as they are.

    >>> dg.ones(2, 3).t().shape
    dyngraph.Size([3, 2])
    """,
)


def reversed_dims(input: Tensor) -> Tensor:
    """The dims in reverse order: the transpose of a matrix."""
    return permute(input, tuple(range(input.ndim))[::-1])


def matrix_transpose(input: Tensor) -> Tensor:
    """The last two dims exchanged; RuntimeError for fewer than two."""
    _require_matrices("mT", input)
    return transpose(input, -2, -1)


def adjoint(input: Tensor) -> Tensor:
    """The last two dims exchanged and conjugated; RuntimeError for fewer than two.

    >>> dg.adjoint(dg.tensor([[1 + 2j, 3j]]))
    tensor([[1.-2.j],
            [0.-3.j]])
    """
    _require_matrices("mH", input)
    turned = transpose(input, -2, -1)
    return pointwise.conj(turned) if input.dtype.is_complex else turned


def conjugate_transpose(input: Tensor) -> Tensor:
    """The adjoint of a matrix; RuntimeError for other than 2 or 0 dims."""
    if input.ndim not in (0, 2):
        raise RuntimeError(
            f"tensor.H is only supported on matrices (2-D tensors). Got {input.ndim}-D tensor. For "
            "batches of matrices, consider using tensor.mH"
        )
    return adjoint(input) if input.ndim else input


def _require_matrices(name: str, tensor: Tensor) -> None:
    if tensor.ndim < 2:
        raise RuntimeError(
            f"tensor.{name} is only supported on matrices or batches of matrices. Got "
            f"{tensor.ndim}-D tensor. Use unsqueeze() to give it two dims."
        )


# --- repeated elements ------------------------------------------------------------------------


def _expand(self: Any, *, size: Any) -> Any:
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
    return jnp.broadcast_to(self, sizes)


expand = define(
    "expand",
    _expand,
    signature="self, *size",
    self=lambda grad: grad,
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
    given = _listed(tensors)
    shapes = [tuple(t.shape) for t in given]
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        raise RuntimeError(
            f"shapes {', '.join(str(list(s)) for s in shapes)} do not broadcast: dims, counted "
            "from the last, must be equal or 1. reshape() or unsqueeze() the tensors."
        ) from None
    return tuple(expand(t, shape) for t in given)


def _listed(tensors: tuple[Any, ...]) -> Sequence[Any]:
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


# --- joined -----------------------------------------------------------------------------------


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


def cat(tensors: Sequence[Any], dim: int = 0, *, axis: int | None = None) -> Tensor:
    """The tensors one after the other along a dim they all have.

    Raises RuntimeError where their other dims differ, ValueError for an empty list.

    >>> dg.cat([dg.ones(1, 2), dg.zeros(1, 2)])
    tensor([[1., 1.],
            [0., 0.]])
    """
    if not len(tensors):
        raise ValueError("cat(): expected a non-empty list of Tensors")
    return _cat_all(tensors, dim if axis is None else axis)


def concat(tensors: Sequence[Any], dim: int = 0, *, axis: int | None = None) -> Tensor:
    """`cat` under another name."""
    return cat(tensors, dim, axis=axis)


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


def stack(tensors: Sequence[Any], dim: int = 0, *, axis: int | None = None) -> Tensor:
    """Tensors of one shape, joined along a new dim.

    Raises RuntimeError where shapes differ or the list is empty.

    >>> dg.stack([dg.tensor([1.0, 2.0]), dg.tensor([3.0, 4.0])], dim=1)
    tensor([[1., 3.],
            [2., 4.]])
    """
    if not len(tensors):
        raise RuntimeError("stack expects a non-empty TensorList")
    return _stack_all(tensors, dim if axis is None else axis)


def hstack(tensors: Sequence[Any]) -> Tensor:
    """Joined along the columns: dim 1, or dim 0 of vectors.

    >>> dg.hstack([dg.tensor([1.0, 2.0]), dg.tensor(3.0)])
    tensor([1., 2., 3.])
    """
    parts = [atleast_1d(t) for t in tensors]
    return cat(parts, 0 if parts and parts[0].ndim == 1 else 1)


def vstack(tensors: Sequence[Any]) -> Tensor:
    """Joined along the rows; a vector counts as one row.

    >>> dg.vstack([dg.tensor([1.0, 2.0]), dg.tensor([3.0, 4.0])])
    tensor([[1., 2.],
            [3., 4.]])
    """
    return cat([atleast_2d(t) for t in tensors], 0)


def row_stack(tensors: Sequence[Any]) -> Tensor:
    """`vstack` under another name."""
    return vstack(tensors)


def dstack(tensors: Sequence[Any]) -> Tensor:
    """Joined along the third dim.

    >>> dg.dstack([dg.ones(2), dg.zeros(2)]).shape
    dyngraph.Size([1, 2, 2])
    """
    return cat([atleast_3d(t) for t in tensors], 2)


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
    vectors = _listed(tensors)
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


# --- parts ------------------------------------------------------------------------------------


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
    length = self.shape[axis]
    sizes = _equal_parts(length, -(-length // chunks)) if length else [0] * chunks
    return _cut(self, sizes, axis)


def _joined(grads: Any, dim: int) -> Any:
    """The gradient of what was cut into parts."""
    return jnp.concatenate(grads, dim)


_split_equally = define("split", _split, outputs=(), self=_joined)
_split_by_sizes = define("split_with_sizes", _split_with_sizes, outputs=(), self=_joined)


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
    doc="""At most `chunks` parts of one size along `dim`, the last one smaller; all have one node.

    >>> dg.chunk(dg.tensor([1, 2, 3]), 2)
    (tensor([1, 2]), tensor([3]))
    """,
)


def _tensor_split(self: Any, *, indices_or_sections: Any, dim: int) -> tuple[Any, ...]:
    axis = _split_dim("tensor_split", self, dim)
    length = self.shape[axis]
    if isinstance(indices_or_sections, tuple):
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
        parts.append(lax.slice_in_dim(self, low, max(low, high), axis=axis))
    return tuple(parts)


_tensor_split_at = define("tensor_split", _tensor_split, node="SliceBackward0", outputs=())


def tensor_split(input: Any, indices_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Parts along `dim`: that many, as equal as they can be, or cut before the listed indices.

    >>> dg.tensor_split(dg.tensor([1, 2, 3]), 2)
    (tensor([1, 2]), tensor([3]))
    >>> dg.tensor_split(dg.tensor([1, 2, 3]), (1,))
    (tensor([1]), tensor([2, 3]))
    """
    if hasattr(indices_or_sections, "ndim"):
        indices_or_sections = np.asarray(indices_or_sections).tolist()
    return _tensor_split_at(input, indices_or_sections, dim)


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
    doc="""The slices along `dim`, without that dim; all have one node, with one output for each.

    >>> dg.unbind(dg.tensor([[1, 2], [3, 4]]))
    (tensor([1, 2]), tensor([3, 4]))
    """,
)

# The start of a slice is an input: a loop over the rows of a tensor compiles one kernel for all.
_narrow = define(
    "narrow",
    lambda self, start, *, length, dim: lax.dynamic_slice_in_dim(self, start, length, dim),
    node="SliceBackward0",
    start=None,
    self=lambda grad, start, self_shape, dim: lax.dynamic_update_slice_in_dim(
        jnp.zeros(self_shape, grad.dtype), grad, start, dim
    ),
)
_select = define(
    "select",
    lambda self, index, *, dim: lax.dynamic_index_in_dim(self, index, dim, keepdims=False),
    index=None,
    self=lambda grad, index, self_shape, dim: lax.dynamic_update_index_in_dim(
        jnp.zeros(self_shape, grad.dtype), grad, index, dim
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
    return _narrow(input, start, length, dim)


def select(input: Any, dim: int, index: Any) -> Tensor:
    """The slice at `index` along `dim`, without that dim; IndexError where there is none.

    >>> dg.select(dg.tensor([[1, 2], [3, 4]]), 0, -1)
    tensor([3, 4])
    """
    if not input.ndim:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    dim = canonical_dim(dim, input.ndim)
    size, place = input.shape[dim], int(index)
    if not -size <= place < size:
        raise IndexError(
            f"select(): index {place} out of range for tensor of size {list(input.shape)} at "
            f"dimension {dim}"
        )
    return _select(input, place + size if place < 0 else place, dim)


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


unfold = define(
    "unfold",
    _unfold,
    doc="""Windows of `size` along a dim, one every `step`: they become a last dim.

    >>> dg.tensor([1, 2, 3, 4]).unfold(0, 2, 1)
    tensor([[1, 2],
            [2, 3],
            [3, 4]])
    """,
)

# --- turned around ----------------------------------------------------------------------------


def _flipped(array: Any, dims: Any) -> Any:
    found = distinct_dims(dims, array.ndim)
    return jnp.flip(array, found) if array.ndim else array


flip = define(
    "flip",
    lambda self, *, dims: _flipped(self, dims),
    signature="self, *dims",
    self=_flipped,
    doc="""In reverse order along each of `dims`.

    >>> dg.flip(dg.tensor([1, 2, 3]), [0])
    tensor([3, 2, 1])
    """,
)


def fliplr(input: Any) -> Tensor:
    """Left to right: dim 1 reversed; RuntimeError for fewer than two dims."""
    if input.ndim < 2:
        raise RuntimeError(f"Input must be >= 2-d, got {input.ndim} dims.")
    return flip(input, 1)


def flipud(input: Any) -> Tensor:
    """Upside down: dim 0 reversed; RuntimeError for a tensor of no dims."""
    if input.ndim < 1:
        raise RuntimeError("Input must be >= 1-d, got 0 dims.")
    return flip(input, 0)


def _rolled(array: Any, shifts: Any, dims: Any, sign: int = 1) -> Any:
    counts = tuple(sign * n for n in as_ints(shifts))
    axes = None if dims is None or dims == () else as_ints(dims)
    if len(counts) != (1 if axes is None else len(axes)):
        raise RuntimeError(
            f"shifts and dimensions must align. shifts: {len(counts)}, dims:"
            f"{0 if axes is None else len(axes)}"
        )
    if axes is None:
        return jnp.roll(array, counts[0])
    axes = tuple(canonical_dim(d, array.ndim) for d in axes)
    return jnp.roll(array, counts, axes) if array.ndim else array


roll = define(
    "roll",
    lambda self, *, shifts, dims=None: _rolled(self, shifts, dims),
    self=lambda grad, shifts, dims: _rolled(grad, shifts, dims, -1),
    doc="""Shifted along `dims`, the end coming in at the front; without dims, as if flattened.

    >>> dg.roll(dg.tensor([1, 2, 3]), 1)
    tensor([3, 1, 2])
    """,
)


def _rotated(array: Any, k: int, dims: Any) -> Any:
    axes = as_ints(dims)
    if array.ndim < 2 or len(axes) != 2:
        raise RuntimeError(
            f"expected total dims >= 2 and 2 rotation dims, but got total dims = {array.ndim} and "
            f"dims {list(axes)}"
        )
    first, second = (canonical_dim(d, array.ndim) for d in axes)
    if first == second:
        raise RuntimeError(
            f"expected rotation dims to be different, but got dim0 = {axes[0]} and dim1 = {axes[1]}"
        )
    return jnp.rot90(array, k, (first, second))


rot90 = define(
    "rot90",
    lambda self, *, k=1, dims=(0, 1): _rotated(self, k, dims),
    self=lambda grad, k, dims: _rotated(grad, -k, dims),
    doc="""Turned by k quarters, from the first of `dims` towards the second.

    >>> dg.rot90(dg.tensor([[1, 2], [3, 4]]))
    tensor([[2, 4],
            [1, 3]])
    """,
)

# --- triangles and diagonals ------------------------------------------------------------------


def _triangle(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def kernel(self: Any, *, diagonal: int = 0) -> Any:
        if self.ndim < 2:
            raise RuntimeError(
                f"{name}: input tensor must have at least 2 dimensions, got {self.ndim}"
            )
        return function(self, diagonal)

    kernel.__module__ = __name__
    return kernel


tril = define(
    "tril",
    _triangle("tril", jnp.tril),
    self=lambda grad, diagonal: jnp.tril(grad, diagonal),
    doc="""The lower triangles of matrices: zeros above the diagonal, or the `diagonal`-th over it.

    >>> dg.tril(dg.ones(2, 2))
    tensor([[1., 0.],
            [1., 1.]])
    """,
)
triu = define(
    "triu",
    _triangle("triu", jnp.triu),
    self=lambda grad, diagonal: jnp.triu(grad, diagonal),
    doc="""The upper triangles of matrices: zeros below the diagonal, or the `diagonal`-th over it.

    >>> dg.triu(dg.ones(2, 2), diagonal=1)
    tensor([[0., 1.],
            [0., 0.]])
    """,
)


def _diagonal_dims(ndim: int, dim1: int, dim2: int) -> tuple[int, int]:
    first, second = canonical_dim(dim1, ndim), canonical_dim(dim2, ndim)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return first, second


def _take_diagonal(array: Any, offset: int, dim1: int, dim2: int) -> Any:
    first, second = _diagonal_dims(array.ndim, dim1, dim2)
    return jnp.diagonal(array, offset, first, second)


def _put_diagonal(values: Any, shape: Sequence[int], offset: int, dim1: int, dim2: int) -> Any:
    """Zeros of `shape` with `values` on a diagonal: the adjoint of taking it."""
    first, second = _diagonal_dims(len(shape), dim1, dim2)
    matrices = jnp.moveaxis(jnp.zeros(shape, values.dtype), (first, second), (-2, -1))
    along = np.arange(values.shape[-1])
    rows, columns = along + max(-offset, 0), along + max(offset, 0)
    return jnp.moveaxis(matrices.at[..., rows, columns].set(values), (-2, -1), (first, second))


diagonal = define(
    "diagonal",
    lambda self, *, offset=0, dim1=0, dim2=1: _take_diagonal(self, offset, dim1, dim2),
    self=lambda grad, self_shape, offset, dim1, dim2: _put_diagonal(
        grad, self_shape, offset, dim1, dim2
    ),
    doc="""The diagonal of the matrices that two dims make, as a last dim; `offset` > 0 lies above.

    >>> dg.diagonal(dg.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """,
)


def _diag_embed(self: Any, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    ndim, length = self.ndim + 1, self.shape[-1] + abs(offset)
    first, second = sorted(_diagonal_dims(ndim, dim1, dim2))
    shape = list(self.shape[:-1])
    shape.insert(first, length)
    shape.insert(second, length)
    return _put_diagonal(self, shape, offset, dim1, dim2)


diag_embed = define(
    "diag_embed",
    _diag_embed,
    self=lambda grad, offset, dim1, dim2: _take_diagonal(grad, offset, dim1, dim2),
    doc="""Matrices, in two new dims, with the last dim on their diagonals and zeros elsewhere.

    >>> dg.diag_embed(dg.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """,
)


def diag(input: Any, diagonal: int = 0) -> Tensor:
    """The matrix with a vector on its diagonal, or the diagonal of a matrix.

    >>> dg.diag(dg.tensor([[1, 2], [3, 4]]), 1)
    tensor([2])
    """
    if input.ndim == 1:
        return diag_embed(input, diagonal)
    if input.ndim != 2:
        raise RuntimeError(
            f"diag(): Supports 1D or 2D tensors. Got {input.ndim}D. Use diagonal() or diag_embed()."
        )
    return _diagonal_of(input, diagonal)


_diagonal_of = diagonal


def diagflat(input: Any, offset: int = 0) -> Tensor:
    """The matrix with all elements of a tensor on its diagonal.

    >>> dg.diagflat(dg.tensor([[1], [2]]))
    tensor([[1, 0],
            [0, 2]])
    """
    return diag_embed(reshape(input, -1), offset)


# --- the same value ---------------------------------------------------------------------------

clone = define(
    "clone",
    lambda self: self,
    signature="self, *, memory_format=None",
    self=lambda grad: grad,
    doc="""The same value in a tensor of its own; in contrast to `detach` it stays in the graph.

    >>> dg.ones(2, requires_grad=True).clone()
    tensor([1., 1.], grad_fn=<CloneBackward0>)
    """,
)


def contiguous(input: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor itself: JAX arrays have no strides."""
    return input


PROPERTIES = {
    "T": reversed_dims,
    "mT": matrix_transpose,
    "H": conjugate_transpose,
    "mH": adjoint,
}
"""Properties of Tensor, by name."""

__all__ = [
    "adjoint",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "block_diag",
    "broadcast_tensors",
    "broadcast_to",
    "cartesian_prod",
    "cat",
    "chunk",
    "clone",
    "column_stack",
    "concat",
    "concatenate",
    "diag",
    "diag_embed",
    "diagflat",
    "diagonal",
    "dsplit",
    "dstack",
    "flatten",
    "flip",
    "fliplr",
    "flipud",
    "hsplit",
    "hstack",
    "meshgrid",
    "moveaxis",
    "movedim",
    "narrow",
    "permute",
    "ravel",
    "repeat_interleave",
    "reshape",
    "roll",
    "rot90",
    "row_stack",
    "select",
    "split",
    "split_with_sizes",
    "squeeze",
    "stack",
    "swapaxes",
    "swapdims",
    "t",
    "tensor_split",
    "tile",
    "transpose",
    "tril",
    "triu",
    "unbind",
    "unflatten",
    "unsqueeze",
    "vsplit",
    "vstack",
]

_NO_METHODS = frozenset(
    {
        *("atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_tensors"),
        *("cartesian_prod", "cat", "column_stack", "concat", "concatenate", "dstack", "hstack"),
        *("meshgrid", "row_stack", "stack", "vstack"),
    }
)
METHODS = (
    *(n for n in __all__ if n not in _NO_METHODS),
    "contiguous",
    "expand",
    "expand_as",
    "repeat",
    "reshape_as",
    "unfold",
    "view",
    "view_as",
)
"""The functions of this file that are methods of Tensor too."""
