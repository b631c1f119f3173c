"""Factorizations into triangular matrices: Cholesky and LU, and solving by their factors.

Leading dims are batches. That a matrix has no factors is known by its values only, so that those
functions that raise for it wait for the result; the `_ex` ones return it as `info` instead.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from dyngraph.errors import LinAlgError
from dyngraph.ops.host_values import described
from dyngraph.ops.matrices import (
    adjoint,
    diagonal_matrices,
    first_failure,
    require_matrices,
    require_square,
    same_batch,
    zero_pivot,
)
from dyngraph.ops.operator import define
from dyngraph.ops.out import takes_out
from dyngraph.ops.triangular import lu_substitution
from dyngraph.tensor import Tensor, wrap

_triangular_solve = jax.lax.linalg.triangular_solve


# --- Cholesky ---------------------------------------------------------------------------------


def _cholesky_ex(self: Any, *, upper: bool = False) -> tuple[Any, Any]:
    require_square("linalg.cholesky", self)
    below = adjoint(self) if upper else self
    factor = jax.lax.linalg.cholesky(below, symmetrize_input=False)
    if not factor.size:
        return factor, jnp.zeros(factor.shape[:-2], jnp.int32)
    failed = jnp.isnan(factor).any((-1, -2))
    minors = jax.lax.cond(
        failed.any(), _first_minor, lambda a: jnp.zeros(a.shape[:-2], jnp.int32), below
    )
    return adjoint(factor) if upper else factor, jnp.where(failed, minors, 0)


def _first_minor(array: Any) -> Any:
    """The order of the first leading minor that is not positive: where elimination stops."""
    n = array.shape[-1]
    below = jnp.tril(array)
    whole = below + adjoint(jnp.tril(array, -1))

    def eliminate(k: Any, state: Any) -> Any:
        rest, found = state
        column = rest[..., :, k]
        pivot = jnp.real(column[..., k])
        found = jnp.where((found == 0) & ~(pivot > 0), k + 1, found)
        step = column[..., :, None] * jnp.conj(column[..., None, :])
        return rest - step / jnp.where(pivot == 0, 1, pivot)[..., None, None], found

    start = (whole, jnp.zeros(array.shape[:-2], jnp.int32))
    return jax.lax.fori_loop(0, n, eliminate, start)[1]


def _cholesky_rule(grads: Any, L: Any, upper: bool) -> Any:
    """dL = L F(L^-1 dA L^-H), F the lower triangle with half of the diagonal.

    Iain Murray, Differentiation of the Cholesky decomposition, 2016 (arXiv:1602.07527); made
    symmetric, as PyTorch has it.
    """
    lower, grad = (adjoint(L), adjoint(grads[0])) if upper else (L, grads[0])
    inner = jnp.tril(adjoint(lower) @ grad)
    inner = inner - diagonal_matrices(jnp.diagonal(inner, axis1=-2, axis2=-1)) / 2
    inner = (inner + adjoint(inner)) / 2
    options: dict[str, Any] = {"lower": True}
    half = _triangular_solve(
        lower, inner, left_side=True, transpose_a=True, conjugate_a=True, **options
    )
    return _triangular_solve(lower, half, left_side=False, **options)


_cholesky = define(
    "linalg_cholesky_ex",
    _cholesky_ex,
    outputs=("L", "info"),
    returns="cholesky_ex",
    self=_cholesky_rule,
)


@takes_out
def cholesky_ex(A: Any, *, upper: bool = False, check_errors: bool = False) -> Any:
    """The Cholesky factor, and `info`: 0, or the order of the first minor that is not positive.

    >>> dg.linalg.cholesky_ex(dg.tensor([[1.0, 2.0], [2.0, 1.0]])).info
    tensor(2)
    """
    result = _cholesky(A, upper)
    failure = first_failure(result.info) if check_errors else None
    if failure is not None:
        which, order = failure
        raise LinAlgError(
            f"linalg.cholesky: {which}The factorization could not be completed because the input "
            f"is not positive-definite (the leading minor of order {order} is not "
            "positive-definite)."
        )
    return result


@takes_out
def cholesky(input: Any, upper: bool = False) -> Tensor:
    """The lower triangular L with A = L L^H; its adjoint where `upper`.

    Only that triangle of A is read. Raises LinAlgError where A is not positive-definite.

    >>> dg.cholesky(dg.tensor([[4.0, 2.0], [2.0, 5.0]]))
    tensor([[2., 0.],
            [1., 2.]])
    """
    return cholesky_ex(input, upper=upper, check_errors=True).L


def _solve_by_factor(self: Any, input2: Any, *, upper: bool = False) -> Any:
    require_square("cholesky_solve", input2)
    require_matrices("cholesky_solve", self, "B")
    if self.shape[-2] != input2.shape[-1]:
        raise RuntimeError(
            f"cholesky_solve: Incompatible matrix sizes for A and B: {list(input2.shape)} and "
            f"{list(self.shape)}"
        )
    factor, right = same_batch(adjoint(input2) if upper else input2, self)
    half = _triangular_solve(factor, right, left_side=True, lower=True)
    return _triangular_solve(
        factor, half, left_side=True, lower=True, transpose_a=True, conjugate_a=True
    )


def _factor_rule(change: Any, factor: Any, upper: bool) -> Any:
    """The gradient of the factor where that of A = L L^H is `change`."""
    both = change + adjoint(change)
    return factor @ both if upper else both @ factor


cholesky_solve = define(
    "cholesky_solve",
    _solve_by_factor,
    self=lambda grad, input2, upper: _solve_by_factor(grad, input2, upper=upper),
    input2=lambda grad, input2, result, upper: _factor_rule(
        -_solve_by_factor(grad, input2, upper=upper) @ adjoint(result), input2, upper
    ),
    doc="""X with AX = B, from B and the Cholesky factor of A.

    >>> dg.cholesky_solve(dg.tensor([[4.0], [8.0]]), dg.tensor([[2.0, 0.0], [0.0, 1.0]]))
    tensor([[1.],
            [8.]])
    """,
)


def _inverse_by_factor(self: Any, *, upper: bool = False) -> Any:
    require_square("cholesky_inverse", self)
    identity = jnp.broadcast_to(jnp.eye(self.shape[-1], dtype=self.dtype), self.shape)
    return _solve_by_factor(identity, self, upper=upper)


cholesky_inverse = define(
    "cholesky_inverse",
    _inverse_by_factor,
    self=lambda grad, self, result, upper: _factor_rule(-result @ grad @ result, self, upper),
    doc="""The inverse of A, from the Cholesky factor of A.

    >>> dg.cholesky_inverse(dg.tensor([[2.0, 0.0], [0.0, 1.0]]))
    tensor([[0.2500, 0.0000],
            [0.0000, 1.0000]])
    """,
)


# --- LU ---------------------------------------------------------------------------------------


def _lu_factor(self: Any, *, pivot: bool = True) -> tuple[Any, Any, Any]:
    require_matrices("linalg.lu_factor", self)
    if not pivot:
        raise RuntimeError(
            "linalg.lu_factor: LU without pivoting is not implemented. Leave pivot=True."
        )
    factors, pivots, _ = jax.lax.linalg.lu(self)
    return factors, pivots + 1, zero_pivot(factors)


_lu = define(
    "linalg_lu_factor_ex",
    _lu_factor,
    outputs=("LU", "pivots", "info"),
    returns="lu_factor_ex",
)


@takes_out
def lu_factor_ex(A: Any, *, pivot: bool = True, check_errors: bool = False) -> Any:
    """L and U in one matrix, the rows swapped with each row (from 1), and `info`.

    `info` is 0, or the place of the first 0 on the diagonal of U.

    >>> dg.linalg.lu_factor_ex(dg.tensor([[1.0, 2.0], [2.0, 4.0]])).info
    tensor(2)
    """
    result = _lu(A, pivot)
    failure = first_failure(result.info) if check_errors else None
    if failure is not None:
        which, k = failure
        raise LinAlgError(
            f"torch.linalg.lu_factor: {which}U[{k},{k}] is zero and using it on lu_solve would "
            "result in a division by zero. If you still want to perform the factorization, "
            "consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)"
        )
    return result


def lu(input: Any, pivot: bool = True, get_infos: bool = False) -> Any:
    """L and U in one matrix, and the rows swapped with each row (from 1); for `lu_unpack`.

    >>> dg.lu(dg.tensor([[1.0, 2.0], [2.0, 2.0]]))
    (tensor([[2.0000, 2.0000],
            [0.5000, 1.0000]]), tensor([2, 2]))
    """
    factors, pivots, info = _lu(input, pivot)
    return (factors, pivots, info) if get_infos else (factors, pivots)


def _permutation(pivots: Any, count: int) -> Any:
    """The order into which swaps of rows bring `count` rows; `pivots` count from 1."""
    return jax.lax.linalg.lu_pivots_to_permutation(pivots.astype(jnp.int32) - 1, count)


def _swaps(LU_data: Any, LU_pivots: Any) -> Any:
    m = LU_data.shape[-2]
    order = _permutation(LU_pivots, m)
    return jnp.swapaxes(jax.nn.one_hot(order, m, dtype=LU_data.dtype), -1, -2)


def _triangles(self: Any) -> tuple[Any, Any]:
    m, n = self.shape[-2:]
    k = min(m, n)
    lower = jnp.tril(self[..., :, :k], -1) + jnp.eye(m, k, dtype=self.dtype)
    return lower, jnp.triu(self[..., :k, :])


_permutation_matrix = define("lu_permutation", _swaps, differentiable=False)
_unpack = define("lu_unpack", _triangles, outputs=("L", "U"))


class _Unpacked(NamedTuple):
    P: Tensor
    L: Tensor
    U: Tensor


_Unpacked.__name__ = "lu_unpack"


@takes_out
def lu_unpack(
    LU_data: Any, LU_pivots: Any, unpack_data: bool = True, unpack_pivots: bool = True
) -> Any:
    """P, L and U with A = P L U, from the factors and swaps that `lu` gave.

    What is not asked for is empty.

    >>> dg.lu_unpack(*dg.lu(dg.tensor([[1.0, 2.0], [2.0, 2.0]]))).L
    tensor([[1.0000, 0.0000],
            [0.5000, 1.0000]])
    """
    nothing = wrap(jnp.zeros((0,), described(LU_data).dtype))
    lower, upper = _unpack(LU_data) if unpack_data else (nothing, nothing)
    order = _permutation_matrix(LU_data, LU_pivots) if unpack_pivots else nothing
    return _Unpacked(order, lower, upper)


def _solve_by_lu(LU: Any, pivots: Any, B: Any, *, left: bool = True, adjoint: bool = False) -> Any:
    require_square("linalg.lu_solve", LU, "LU")
    require_matrices("linalg.lu_solve", B, "B")
    if B.shape[-2 if left else -1] != LU.shape[-1]:
        raise RuntimeError(
            f"linalg.lu_solve: Incompatible shapes of A and B for the equation "
            f"{'AX = B' if left else 'XA = B'} ({LU.shape[-2]}x{LU.shape[-1]} and "
            f"{B.shape[-2]}x{B.shape[-1]})"
        )
    n = LU.shape[-1]
    factors, right = same_batch(LU, B)
    order = jnp.broadcast_to(_permutation(pivots, n), (*factors.shape[:-2], n))
    return lu_substitution(factors, order, right, left=left, conjugate=adjoint)


_lu_solve = define("linalg_lu_solve", _solve_by_lu, pivots=None)


@takes_out
def lu_solve_factors(
    LU: Any, pivots: Any, B: Any, *, left: bool = True, adjoint: bool = False
) -> Tensor:
    """X with AX = B (A^H for A where `adjoint`, XA = B where not `left`), from A's LU factors.

    >>> factors, pivots = dg.linalg.lu_factor(dg.tensor([[2.0, 0.0], [0.0, 4.0]]))
    >>> dg.linalg.lu_solve(factors, pivots, dg.tensor([[2.0], [4.0]]))
    tensor([[1.],
            [1.]])
    """
    return _lu_solve(LU, pivots, B, left, adjoint)


@takes_out
def lu_solve(input: Any, LU_data: Any, LU_pivots: Any) -> Tensor:
    """X with AX = B, from B and what `lu` gave of A.

    >>> dg.lu_solve(dg.tensor([[2.0], [4.0]]), *dg.lu(dg.tensor([[2.0, 0.0], [0.0, 4.0]])))
    tensor([[1.],
            [1.]])
    """
    return lu_solve_factors(LU_data, LU_pivots, input)


__all__ = [
    "cholesky",
    "cholesky_inverse",
    "cholesky_solve",
    "lu",
    "lu_solve",
    "lu_unpack",
]

METHODS = tuple(n for n in __all__ if n != "lu_unpack")
"""The functions of this file that are methods of Tensor too."""
