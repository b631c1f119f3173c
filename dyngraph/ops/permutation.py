"""The same elements in another order: dims exchanged, and elements turned round within a dim.

A gradient is brought back by the inverse permutation.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from dyngraph.ops import complexes
from dyngraph.ops.arguments import as_ints, distinct_dims
from dyngraph.ops.operator import define
from dyngraph.tensor import Tensor, canonical_dim
from dyngraph.viewing import Viewing

# --- dims in another order --------------------------------------------------------------------


def _swap(array: Any, dim0: int, dim1: int) -> Any:
    first, second = canonical_dim(dim0, array.ndim), canonical_dim(dim1, array.ndim)
    return array.swapaxes(first, second) if array.ndim else array


transpose = define(
    "transpose",
    lambda self, *, dim0, dim1: _swap(self, dim0, dim1),
    self=_swap,
    viewing=Viewing(lambda parent, value, dim0, dim1: _swap(value, dim0, dim1), _swap),
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


def _permuted(array: Any, dims: Any) -> Any:
    return array.transpose(_permutation(dims, array.ndim))


def _permuted_back(array: Any, dims: Any) -> Any:
    return array.transpose(tuple(np.argsort(_permutation(dims, array.ndim)).tolist()))


permute = define(
    "permute",
    lambda self, *, dims: _permuted(self, dims),
    signature="self, *dims",
    self=_permuted_back,
    viewing=Viewing(lambda parent, value, dims: _permuted_back(value, dims), _permuted),
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
    move = np.moveaxis if isinstance(array, np.ndarray) else jnp.moveaxis
    return move(array, as_ints(source), as_ints(destination))


movedim = define(
    "movedim",
    lambda self, *, source, destination: _moved(self, source, destination),
    node="PermuteBackward0",
    self=lambda grad, source, destination: _moved(grad, destination, source),
    viewing=Viewing(
        lambda parent, value, source, destination: _moved(value, destination, source), _moved
    ),
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
    viewing=Viewing(lambda parent, value: value.T, lambda array: array.T),
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
    return complexes.conj(turned) if input.dtype.is_complex else turned


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


__all__ = [
    "adjoint",
    "flip",
    "fliplr",
    "flipud",
    "moveaxis",
    "movedim",
    "permute",
    "roll",
    "rot90",
    "swapaxes",
    "swapdims",
    "t",
    "transpose",
]

METHODS = tuple(__all__)
"""The functions of this file that are methods of Tensor too."""
PROPERTIES = {"T": reversed_dims, "mT": matrix_transpose, "H": conjugate_transpose, "mH": adjoint}
"""The properties of Tensor that this file has, by name."""
