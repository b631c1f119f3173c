"""Diagonals and triangles of matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from dyngraph import dtypes
from dyngraph.ops.operator import define
from dyngraph.ops.out import takes_out
from dyngraph.ops.shape import clone, reshape
from dyngraph.tensor import Tensor, canonical_dim, wrap
from dyngraph.viewing import Viewing


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


def diagonal_dims(ndim: int, dim1: int, dim2: int) -> tuple[int, int]:
    first, second = canonical_dim(dim1, ndim), canonical_dim(dim2, ndim)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return first, second


def take_diagonal(array: Any, offset: int, dim1: int, dim2: int) -> Any:
    first, second = diagonal_dims(array.ndim, dim1, dim2)
    return array.diagonal(offset, first, second)


def _put_diagonal(values: Any, shape: Sequence[int], offset: int, dim1: int, dim2: int) -> Any:
    """Zeros of `shape` with `values` on a diagonal: the adjoint of taking it."""
    return _with_diagonal(jnp.zeros(shape, values.dtype), values, offset, dim1, dim2)


def _with_diagonal(parent: Any, values: Any, offset: int, dim1: int, dim2: int) -> Any:
    """`parent` with `values` on a diagonal."""
    first, second = diagonal_dims(parent.ndim, dim1, dim2)
    matrices = jnp.moveaxis(parent, (first, second), (-2, -1))
    along = np.arange(values.shape[-1])
    rows, columns = along + max(-offset, 0), along + max(offset, 0)
    return jnp.moveaxis(matrices.at[..., rows, columns].set(values), (-2, -1), (first, second))


diagonal = define(
    "diagonal",
    lambda self, *, offset=0, dim1=0, dim2=1: take_diagonal(self, offset, dim1, dim2),
    self=lambda grad, self_shape, offset, dim1, dim2: _put_diagonal(
        grad, self_shape, offset, dim1, dim2
    ),
    viewing=Viewing(_with_diagonal, take_diagonal),
    doc="""The diagonal of the matrices that two dims make, as a last dim; `offset` > 0 lies above.

    >>> dg.diagonal(dg.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """,
)


def _diag_embed(self: Any, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    ndim, length = self.ndim + 1, self.shape[-1] + abs(offset)
    first, second = sorted(diagonal_dims(ndim, dim1, dim2))
    shape = list(self.shape[:-1])
    shape.insert(first, length)
    shape.insert(second, length)
    return _put_diagonal(self, shape, offset, dim1, dim2)


diag_embed = define(
    "diag_embed",
    _diag_embed,
    self=lambda grad, offset, dim1, dim2: take_diagonal(grad, offset, dim1, dim2),
    doc="""Matrices, in two new dims, with the last dim on their diagonals and zeros elsewhere.

    >>> dg.diag_embed(dg.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """,
)


@takes_out
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
    return clone(_diagonal_of(input, diagonal))


_diagonal_of = diagonal


def diagflat(input: Any, offset: int = 0) -> Tensor:
    """The matrix with all elements of a tensor on its diagonal.

    >>> dg.diagflat(dg.tensor([[1], [2]]))
    tensor([[1, 0],
            [0, 2]])
    """
    return diag_embed(reshape(input, -1), offset)


def _triangle_positions(
    indices: Callable[..., Any], row: int, col: int, offset: int, dtype: Any, device: Any
) -> Tensor:
    if row < 0 or col < 0:
        raise RuntimeError(f"row and col must be non-negative, got {row} and {col}")
    found = np.stack(indices(row, offset, col))
    kind = dtypes.default_int() if dtype is None else dtypes.as_dtype(dtype)
    made = wrap(jnp.asarray(found.astype(kind.dtype)))
    return made if device is None else made.to(device)  # type: ignore[attr-defined]


def tril_indices(
    row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None
) -> Tensor:
    """The positions on and below a diagonal of a (row, col) matrix: (2, count), row by row.

    `offset` moves the diagonal, upwards for positive values.

    >>> dg.tril_indices(2, 2)
    tensor([[0, 1, 1],
            [0, 0, 1]])
    """
    return _triangle_positions(np.tril_indices, row, col, offset, dtype, device)


def triu_indices(
    row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None
) -> Tensor:
    """The positions on and above a diagonal of a (row, col) matrix: (2, count), row by row.

    `offset` moves the diagonal, upwards for positive values.

    >>> dg.triu_indices(2, 2)
    tensor([[0, 0, 1],
            [0, 1, 1]])
    """
    return _triangle_positions(np.triu_indices, row, col, offset, dtype, device)


def _trace(self: Any) -> Any:
    if self.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {self.ndim}")
    return jnp.trace(self)


trace = define(
    "trace",
    _trace,
    self=lambda grad, self_shape: grad * jnp.eye(*self_shape, dtype=grad.dtype),
    doc="""The sum of a matrix's diagonal; RuntimeError for other shapes.

    >>> dg.trace(dg.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor(5.)
    """,
)


__all__ = [
    "diag",
    "diag_embed",
    "diagflat",
    "diagonal",
    "trace",
    "tril",
    "tril_indices",
    "triu",
    "triu_indices",
]

METHODS = tuple(n for n in __all__ if n not in ("tril_indices", "triu_indices"))
"""The functions of this file that are methods of Tensor too."""
