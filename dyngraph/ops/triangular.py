"""Linear systems with triangular matrices, by substitution. Leading dims are batches."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from dyngraph.ops import permutation, shape
from dyngraph.ops.matrices import adjoint, require_matrices, require_square, same_batch
from dyngraph.ops.operator import define
from dyngraph.ops.out import takes_out
from dyngraph.tensor import Tensor


def lu_substitution(
    factors: Any, permutation: Any, right: Any, *, left: bool, conjugate: bool
) -> Any:
    """X of AX = B (XA = B where not `left`), with A[permutation] = LU; A^H for A if `conjugate`."""
    if not left:  # (XA)^H = A^H X^H
        flipped = lu_substitution(
            factors, permutation, adjoint(right), left=True, conjugate=not conjugate
        )
        return adjoint(flipped)
    solve = jax.lax.linalg.triangular_solve
    if not conjugate:
        right = jnp.take_along_axis(right, permutation[..., None], -2)
        half = solve(factors, right, left_side=True, lower=True, unit_diagonal=True)
        return solve(factors, half, left_side=True, lower=False)
    options: dict[str, Any] = {"left_side": True, "transpose_a": True, "conjugate_a": True}
    half = solve(factors, right, lower=False, **options)
    whole = solve(factors, half, lower=True, unit_diagonal=True, **options)
    return jnp.take_along_axis(whole, jnp.argsort(permutation)[..., None], -2)


def _solve_triangular(
    self: Any,
    B: Any,
    *,
    upper: bool,
    left: bool = True,
    unitriangular: bool = False,
) -> Any:
    require_square("linalg.solve_triangular", self)
    require_matrices("linalg.solve_triangular", B, "B")
    if B.shape[-2 if left else -1] != self.shape[-1]:
        raise RuntimeError(
            f"linalg.solve_triangular: Incompatible shapes of A and B for the equation "
            f"{'AX = B' if left else 'XA = B'} ({self.shape[-2]}x{self.shape[-1]} and "
            f"{B.shape[-2]}x{B.shape[-1]})"
        )
    a, b = same_batch(self, B)
    return jax.lax.linalg.triangular_solve(
        a, b, left_side=left, lower=not upper, unit_diagonal=unitriangular
    )


def _triangular_rule_of_right(grad: Any, self: Any, upper: Any, left: Any, unitriangular: Any):
    return _solve_triangular(
        adjoint(self), grad, upper=not upper, left=left, unitriangular=unitriangular
    )


def _triangular_rule_of_matrix(
    grad: Any, self: Any, result: Any, upper: bool, left: bool, unitriangular: bool
) -> Any:
    right = _triangular_rule_of_right(grad, self, upper, left, unitriangular)
    whole = -right @ adjoint(result) if left else -adjoint(result) @ right
    beside = int(unitriangular)
    return jnp.triu(whole, beside) if upper else jnp.tril(whole, -beside)


_triangular = define(
    "linalg_solve_triangular",
    _solve_triangular,
    signature="self, B, upper, left, unitriangular",
    self=_triangular_rule_of_matrix,
    B=_triangular_rule_of_right,
)


@takes_out
def solve_triangular(
    A: Any,
    B: Any,
    *,
    upper: bool,
    left: bool = True,
    unitriangular: bool = False,
) -> Tensor:
    """X with AX = B for a triangular A, of which only that triangle is read (not checked).

    >>> A = dg.tensor([[2.0, 9.0], [0.0, 4.0]])
    >>> dg.linalg.solve_triangular(A, dg.tensor([[11.0], [4.0]]), upper=True)
    tensor([[1.],
            [1.]])
    """
    return _triangular(A, B, upper, left, unitriangular)


@takes_out
def triangular_solve(
    b: Any, A: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Any:
    """X with AX = b for a triangular A, or its transpose's, and a copy of A.

    >>> dg.triangular_solve(dg.tensor([[4.0]]), dg.tensor([[2.0]])).solution
    tensor([[2.]])
    """
    matrix = permutation.transpose(A, -2, -1) if transpose else A
    solution = solve_triangular(matrix, b, upper=upper != transpose, unitriangular=unitriangular)
    return _TriangularSolution(solution, shape.clone(A))


class _TriangularSolution(NamedTuple):
    solution: Tensor
    cloned_coefficient: Tensor


_TriangularSolution.__name__ = "triangular_solve"


__all__ = ["triangular_solve"]

METHODS = tuple(__all__)
"""The functions of this file that are methods of Tensor too."""
