"""PyTorch's `torch.linalg`: its names and signatures, for operators and compositions of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp

from dyngraph import autocasting, dtypes, modes
from dyngraph.errors import LinAlgError as LinAlgError
from dyngraph.ops import (
    arithmetic,
    complexes,
    contractions,
    decompositions,
    diagonals,
    extremes,
    factorizations,
    matrices,
    permutation,
    reduction,
    shape,
)
from dyngraph.ops.arguments import as_ints
from dyngraph.ops.decompositions import (
    householder_product as householder_product,
    pinv as pinv,
    svdvals as svdvals,
)
from dyngraph.ops.eigenvalues import (
    eig as eig,
    eigh as eigh,
    eigvals as eigvals,
    eigvalsh as eigvalsh,
)
from dyngraph.ops.factorizations import (
    cholesky_ex as cholesky_ex,
    lu_factor_ex as lu_factor_ex,
)
from dyngraph.ops.host_values import array_of, described
from dyngraph.ops.indefinite import (
    ldl_factor as ldl_factor,
    ldl_factor_ex as ldl_factor_ex,
    ldl_solve as ldl_solve,
)
from dyngraph.ops.matrices import (
    det as det,
    inv_ex as inv_ex,
    matrix_exp as matrix_exp,
    matrix_power as matrix_power,
    multi_dot as multi_dot,
    slogdet as slogdet,
)
from dyngraph.ops.norms import vector_norm as vector_norm
from dyngraph.ops.operator import define
from dyngraph.ops.out import takes_out
from dyngraph.ops.products import matmul as matmul
from dyngraph.ops.solving import lstsq as lstsq, solve as solve, solve_ex as solve_ex
from dyngraph.ops.triangular import solve_triangular as solve_triangular
from dyngraph.tensor import Tensor, canonical_dim

inv = matrices.inverse
lu_solve = factorizations.lu_solve_factors

# --- decompositions ---------------------------------------------------------------------------


@takes_out
def cholesky(A: Any, *, upper: bool = False) -> Tensor:
    """The lower triangular L with A = L L^H; its adjoint where `upper`.

    Only that triangle of A is read. Raises LinAlgError where A is not positive-definite.

    >>> dg.linalg.cholesky(dg.tensor([[4.0, 2.0], [2.0, 5.0]]))
    tensor([[2., 0.],
            [1., 2.]])
    """
    return factorizations.cholesky(A, upper)


@takes_out
def lu_factor(A: Any, *, pivot: bool = True) -> Any:
    """L and U in one matrix, and the rows swapped with each row (from 1); for `lu_solve`.

    Raises LinAlgError where the diagonal of U has a 0.

    >>> dg.linalg.lu_factor(dg.tensor([[1.0, 2.0], [2.0, 2.0]])).pivots
    tensor([2, 2])
    """
    result = lu_factor_ex(A, pivot=pivot, check_errors=True)
    return _Factors(result.LU, result.pivots)


class _Factors(NamedTuple):
    LU: Tensor
    pivots: Tensor


_Factors.__name__ = "lu_factor"


@takes_out
def lu(A: Any, *, pivot: bool = True) -> Any:
    """P, L and U with A = P L U.

    >>> dg.linalg.lu(dg.tensor([[1.0, 2.0], [2.0, 2.0]])).U
    tensor([[2., 2.],
            [0., 1.]])
    """
    result = lu_factor_ex(A, pivot=pivot)
    return factorizations.lu_unpack(result.LU, result.pivots)


@takes_out
def qr(A: Any, mode: str = "reduced") -> Any:
    """Q with orthonormal columns and an upper triangular R, with A = QR.

    Q is square in the mode "complete"; in "r" it is empty, and there is no gradient.

    >>> dg.linalg.qr(dg.tensor([[3.0], [4.0]])).R.abs()
    tensor([[5.]])
    """
    return decompositions.decompose_qr(A, mode)


@takes_out
def svd(A: Any, full_matrices: bool = True, *, driver: str | None = None) -> Any:
    """U, S and Vh with A = U diag(S) Vh, S from the largest on; U and Vh are square at first.

    `driver` is one of PyTorch's for CUDA, and without effect.

    >>> dg.linalg.svd(dg.tensor([[3.0, 0.0], [0.0, 2.0]])).S
    tensor([3., 2.])
    """
    return decompositions.decompose_svd(A, full_matrices)


# --- norms ------------------------------------------------------------------------------------


@takes_out
def matrix_norm(
    A: Any,
    ord: float | str = "fro",
    dim: Sequence[int] = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: Any = None,
) -> Tensor:
    """The norm of the matrices that two dims make.

    `ord`: "fro" (all elements), "nuc" (the sum of singular values), 2 and -2 (the largest and
    smallest singular value), 1 and -1 (sums of columns), inf and -inf (sums of rows).

    >>> dg.linalg.matrix_norm(dg.tensor([[3.0, 0.0], [0.0, 4.0]]), 2)
    tensor(4.)
    """
    ndim = described(A).ndim
    if ndim < 2:
        raise RuntimeError(
            "linalg.matrix_norm: The input tensor A must have at least 2 dimensions."
        )
    if not isinstance(dim, (tuple, list)) or len(dim) != 2:
        raise RuntimeError("linalg.matrix_norm: dim must be a 2-tuple. Got " + str(dim))
    first, second = (canonical_dim(d, ndim) for d in dim)
    if first == second:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got ({first}, {second})")
    if dtype is not None:
        A = A.to(dtypes.as_dtype(dtype))
    if ord == "fro":
        return vector_norm(A, 2, (first, second), keepdim)
    if ord in ("nuc", 2, -2):
        values = svdvals(permutation.movedim(A, (first, second), (-2, -1)))
        if ord == "nuc":
            norm = reduction.sum(values, -1)
        else:
            norm = (_largest if ord == 2 else extremes.amin)(values, -1)
        return _restored(norm, (first, second)) if keepdim else norm
    if isinstance(ord, str) or ord not in (1, -1, math.inf, -math.inf):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    summed, extreme = (first, second) if abs(ord) == 1 else (second, first)
    sums = vector_norm(A, 1, summed, True)
    norm = (_largest if ord > 0 else extremes.amin)(sums, extreme, True)
    return norm if keepdim else shape.squeeze(norm, (first, second))


def _largest(sizes: Tensor, dim: int, keepdim: bool = False) -> Tensor:
    """The largest of sizes along `dim`, 0 where there are none."""
    some = described(sizes).shape[dim]
    return (extremes.amax if some else reduction.sum)(sizes, dim, keepdim)


def _restored(tensor: Tensor, dims: Sequence[int]) -> Tensor:
    for dim in sorted(dims):
        tensor = shape.unsqueeze(tensor, dim)
    return tensor


@takes_out
def norm(
    A: Any,
    ord: float | str | None = None,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
) -> Tensor:
    """A vector norm along one dim, a matrix norm along two; without `ord` the 2-norm of elements.

    >>> dg.linalg.norm(dg.tensor([[3.0, 0.0], [0.0, 4.0]]))
    tensor(5.)
    """
    dims = None if dim is None else as_ints(dim)
    if ord is None:
        return vector_norm(A, 2, dims, keepdim, dtype=dtype)
    ndim = described(A).ndim
    if dims is None and ndim not in (1, 2):
        raise RuntimeError(
            "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got "
            f"{ndim}D."
        )
    dims = tuple(range(ndim)) if dims is None else dims
    if len(dims) == 2:
        return matrix_norm(A, ord, dims, keepdim, dtype=dtype)
    if isinstance(ord, str):
        raise RuntimeError(
            f"linalg.norm: Order {ord!r} is one of matrices: pass two dims, not {list(dims)}."
        )
    return vector_norm(A, ord, dims, keepdim, dtype=dtype)


@takes_out
def cond(A: Any, p: float | str | None = None) -> Tensor:
    """The condition number: |A| |A^-1| in the norm `p`, by default of singular values.

    >>> dg.linalg.cond(dg.tensor([[4.0, 0.0], [0.0, 2.0]]))
    tensor(2.)
    """
    if p is None or p in (2, -2):
        values = svdvals(A)
        if not described(values).shape[-1]:  # there are no values to compare: 0, as in PyTorch
            return reduction.sum(values, -1)
        largest, smallest = values[..., 0], values[..., -1]
        return smallest / largest if p == -2 else largest / smallest
    matrices.require_square("linalg.cond", array_of(A))
    return matrix_norm(A, p) * matrix_norm(inv_ex(A).inverse, p)


def _rank_kernel(self: Any, atol: Any = None, rtol: Any = None, *, hermitian: bool = False) -> Any:
    matrices.require_matrices("linalg.matrix_rank", self)
    if not self.size:
        return jnp.zeros(self.shape[:-2], dtypes.default_int().dtype)
    sizes = decompositions.magnitudes(self, hermitian)
    kept = sizes > decompositions.tolerance(self, sizes, atol, rtol)
    return kept.sum(-1, dtype=dtypes.default_int().dtype)


_rank = define(
    "linalg_matrix_rank",
    _rank_kernel,
    signature="self, atol, rtol, hermitian",
    differentiable=False,
)


@takes_out
def matrix_rank(
    A: Any, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Tensor:
    """How many singular values are above max(atol, rtol * largest); see `pinv` for the defaults.

    >>> dg.linalg.matrix_rank(dg.tensor([[1.0, 2.0], [2.0, 4.0]]))
    tensor(1)
    """
    atol = tol if atol is None else atol
    rtol = 0.0 if tol is not None and rtol is None else rtol
    return _rank(A, atol, rtol, hermitian)


# --- tensors as matrices ----------------------------------------------------------------------


@takes_out
def tensorinv(A: Any, ind: int = 2) -> Tensor:
    """The inverse for `tensordot(A, B, ind)`: A as a matrix, the first `ind` dims its rows.

    >>> dg.linalg.tensorinv(dg.eye(4).reshape(2, 2, 4), ind=2).shape
    dyngraph.Size([4, 2, 2])
    """
    if ind <= 0:
        raise RuntimeError("Expected a strictly positive integer for 'ind'")
    sizes = tuple(A.shape)
    rows, columns = math.prod(sizes[:ind]), math.prod(sizes[ind:])
    if rows != columns:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == "
            f"prod(self.shape[:ind]), but got {columns} != {rows}"
        )
    flat = shape.reshape(A, (rows, columns))
    return shape.reshape(inv(flat), (*sizes[ind:], *sizes[:ind]))


@takes_out
def tensorsolve(A: Any, B: Any, dims: Sequence[int] | None = None) -> Tensor:
    """X with tensordot(A, X, X.ndim) = B; the `dims` of A are moved to its end first.

    >>> dg.linalg.tensorsolve(2 * dg.eye(4).reshape(2, 2, 2, 2), dg.ones(2, 2))
    tensor([[0.5000, 0.5000],
            [0.5000, 0.5000]])
    """
    if dims is not None:
        A = permutation.movedim(A, tuple(dims), tuple(range(A.ndim - len(dims), A.ndim)))
    unknown = tuple(A.shape[B.ndim :])
    rows, columns = math.prod(A.shape[: B.ndim]), math.prod(unknown)
    if rows != columns or rows != B.numel():
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
            f"prod(self.shape[:other.ndim]), but got {columns} != {rows}"
        )
    solution = solve(shape.reshape(A, (rows, columns)), shape.reshape(B, (-1,)))
    return shape.reshape(solution, unknown)


# --- vectors ----------------------------------------------------------------------------------


@takes_out
def cross(input: Any, other: Any, *, dim: int = -1) -> Tensor:
    """The cross product of vectors of three along `dim`; other dims broadcast.

    >>> dg.linalg.cross(dg.tensor([1.0, 0.0, 0.0]), dg.tensor([0.0, 1.0, 0.0]))
    tensor([0., 0., 1.])
    """
    return contractions.cross(input, other, dim)


@takes_out
def vecdot(x: Any, y: Any, *, dim: int = -1) -> Tensor:
    """The sum of conj(x) * y along `dim`; other dims broadcast.

    >>> dg.linalg.vecdot(dg.tensor([[1.0, 2.0]]), dg.tensor([3.0, 4.0]))
    tensor([11.])
    """
    if modes.get_flags() & modes.AUTOCAST:
        result = autocasting.run_whole("linalg_vecdot", vecdot, {"x": x, "y": y, "dim": dim})
        if result is not NotImplemented:
            return result
    return reduction.sum(arithmetic.mul(complexes.conj(x), y), dim)


def diagonal(A: Any, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonals of matrices, as a last dim.

    >>> dg.linalg.diagonal(dg.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    return diagonals.diagonal(A, offset, dim1, dim2)


def _powers(x: Any, *, count: int) -> Any:
    x = jnp.atleast_1d(x)
    factors = jnp.broadcast_to(x[..., None], (*x.shape, count))
    return jnp.cumprod(jnp.where(jnp.arange(count) == 0, 1, factors), -1, dtype=x.dtype)


_vander = define("linalg_vander", _powers)


def vander(x: Any, N: int | None = None) -> Tensor:
    """The powers 0 to N - 1 of each element, along a new last dim; N is by default their number.

    >>> dg.linalg.vander(dg.tensor([2, 3]), N=3)
    tensor([[1, 2, 4],
            [1, 3, 9]])
    """
    if N is not None and N <= 1:
        raise RuntimeError(f"N must be greater than 1, got {N}.")
    return _vander(x, (x.shape or (1,))[-1] if N is None else N)


__all__ = [
    "LinAlgError",
    "cholesky",
    "cholesky_ex",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "householder_product",
    "inv",
    "inv_ex",
    "ldl_factor",
    "ldl_factor_ex",
    "ldl_solve",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_factor_ex",
    "lu_solve",
    "matmul",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "multi_dot",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_ex",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensorinv",
    "tensorsolve",
    "vander",
    "vecdot",
    "vector_norm",
]
