"""General systems of linear equations: exact solutions and least squares."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from dyngraph import autocasting, modes
from dyngraph.errors import LinAlgError
from dyngraph.ops import arithmetic, parts, products, reduction, shape
from dyngraph.ops.decompositions import pinv, tolerance
from dyngraph.ops.host_values import array_of, described
from dyngraph.ops.matrices import (
    adjoint,
    first_failure,
    require_square,
    with_batch,
    zero_pivot,
)
from dyngraph.ops.operator import define
from dyngraph.ops.out import takes_out
from dyngraph.ops.triangular import lu_substitution
from dyngraph.tensor import Tensor, wrap

# --- exact ------------------------------------------------------------------------------------


def _is_vector(A: Any, B: Any) -> bool:
    """Whether `B` is (a batch of) vectors, as `linalg.solve` takes it."""
    return B.ndim == 1 or (A.ndim - 1 == B.ndim and B.shape == A.shape[:-1])


def _solve(A: Any, B: Any, *, left: bool = True) -> tuple[Any, Any]:
    require_square("linalg.solve", A)
    vector = _is_vector(A, B)
    if vector and not left:
        raise ValueError(
            "linalg.solve: Vector broadcasting of the left hand side is not supported for "
            "left=False. Use a matrix of one row."
        )
    B = B[..., None] if vector else B
    if B.ndim < 2 or B.shape[-2 if left else -1] != A.shape[-1]:
        raise RuntimeError(
            f"linalg.solve: Incompatible shapes of A and B for the equation "
            f"{'AX = B' if left else 'XA = B'} ({A.shape[-2]}x{A.shape[-1]} and "
            f"{'x'.join(map(str, B.shape[-2:]))})"
        )
    factors, _, permutation = jax.lax.linalg.lu(A)
    batch = jnp.broadcast_shapes(A.shape[:-2], B.shape[:-2])
    spread = with_batch(factors, batch)
    order = jnp.broadcast_to(permutation, (*batch, A.shape[-1]))
    solution = lu_substitution(spread, order, with_batch(B, batch), left=left, conjugate=False)
    return solution[..., 0] if vector else solution, zero_pivot(factors)


def _solve_rule_of_right(grads: Any, A: Any, left: bool) -> Any:
    return _solve(adjoint(A), grads[0], left=left)[0]


def _solve_rule_of_matrix(grads: Any, A: Any, result: Any, left: bool) -> Any:
    """dX = A^-1 (dB - dA X), so that A's gradient is -(A^-H grad) X^H."""
    right = _solve_rule_of_right(grads, A, left)
    if result.ndim == 1 or _is_vector(A, result):
        return -right[..., :, None] * jnp.conj(result[..., None, :])
    return -right @ adjoint(result) if left else -adjoint(result) @ right


_solve_ex = define(
    "linalg_solve_ex",
    _solve,
    outputs=("result", "info"),
    returns="solve_ex",
    A=_solve_rule_of_matrix,
    B=_solve_rule_of_right,
)


@takes_out
def solve_ex(A: Any, B: Any, *, left: bool = True, check_errors: bool = False) -> Any:
    """The solution as `solve` has it, and `info`: 0, or where U's diagonal is 0 (A is singular).

    >>> dg.linalg.solve_ex(2 * dg.eye(2), dg.ones(2)).info
    tensor(0)
    """
    result = _solve_ex(A, B, left)
    failure = first_failure(result.info) if check_errors else None
    if failure is not None:
        raise LinAlgError(
            f"torch.linalg.solve: {failure[0]}The solver failed because the input matrix is "
            "singular."
        )
    return result


@takes_out
def solve(A: Any, B: Any, *, left: bool = True) -> Tensor:
    """X with AX = B, or XA = B where not `left`; LinAlgError where A is singular.

    `B` holds vectors where it has one dim, or the shape of A without its last one.

    >>> dg.linalg.solve(dg.tensor([[2.0, 0.0], [0.0, 4.0]]), dg.tensor([2.0, 2.0]))
    tensor([1.0000, 0.5000])
    """
    return solve_ex(A, B, left=left, check_errors=True).result


# --- least squares ----------------------------------------------------------------------------


class LeastSquares(NamedTuple):
    """What `linalg.lstsq` returns."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


LeastSquares.__name__ = "lstsq"

_DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


def lstsq(A: Any, B: Any, rcond: Any = None, *, driver: str | None = None) -> LeastSquares:
    """X of least norm that makes |AX - B| least, as pinv(A) B.

    As in PyTorch, `rank` is empty for the driver "gels", `singular_values` unless it is "gelsd" or
    "gelss", and `residuals` (sums of squares) for "gelsy", the default, and unless A has more rows
    than columns and full rank.

    >>> dg.linalg.lstsq(dg.tensor([[1.0], [1.0]]), dg.tensor([[1.0], [3.0]])).solution
    tensor([[2.0000]])
    """
    if modes.get_flags() & modes.AUTOCAST:
        given = {"A": A, "B": B, "rcond": rcond, "driver": driver}
        result = autocasting.run_whole("linalg_lstsq", lstsq, given)
        if result is not NotImplemented:
            return result
    driver = driver or "gelsy"
    if driver not in _DRIVERS:
        raise RuntimeError(
            f"torch.linalg.lstsq: parameter `driver` should be one of {_DRIVERS}, got {driver!r}"
        )
    vector = described(A).ndim - 1 == described(B).ndim
    right = shape.unsqueeze(B, -1) if vector else B
    m, n = A.shape[-2:]
    if right.shape[-2] != m:
        raise RuntimeError(
            f"torch.linalg.lstsq: input.size(-2) should match other.size(-2), got {m} and "
            f"{right.shape[-2]}"
        )
    solution = products.matmul(pinv(A, rtol=rcond), right)
    nothing = parts.narrow(shape.reshape(solution, -1), 0, 0, 0)
    values = jnp.linalg.svd(array_of(A), compute_uv=False)
    rank = wrap((values > tolerance(array_of(A), values, None, rcond)).sum(-1))
    residuals = nothing
    if m > n and driver != "gelsy" and (driver == "gels" or bool((rank == n).all())):
        error = arithmetic.abs(products.matmul(A, solution) - right)
        residuals = reduction.sum(error * error, -2)
    empty = wrap(jnp.zeros((0,), values.dtype))
    return LeastSquares(
        shape.squeeze(solution, -1) if vector else solution,
        residuals,
        rank if driver != "gels" else wrap(jnp.zeros((0,), rank.dtype.dtype)),
        wrap(values) if driver in ("gelsd", "gelss") else empty,
    )
