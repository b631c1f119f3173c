"""Factors of symmetric matrices that need not be definite: A = P L D L^T P^T, with blocks in D.

L is unit lower triangular, D has blocks of one or two rows. As LAPACK's sytrf does, one matrix
keeps both, and the pivots tell where the blocks are and which rows were swapped. Where `hermitian`,
transposes are conjugate. Nothing here has a gradient, as in PyTorch.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from dyngraph.errors import LinAlgError
from dyngraph.ops.matrices import first_failure, require_square, same_batch
from dyngraph.ops.operator import define
from dyngraph.ops.out import takes_out
from dyngraph.tensor import Tensor

_ALPHA = (1 + math.sqrt(17)) / 8
"""The ratio by which a pivot is chosen, for which elements grow least: Bunch and Kaufman 1977,
https://doi.org/10.1090/S0025-5718-1977-0428694-0."""


# --- one matrix -------------------------------------------------------------------------------


def _swapped(array: Any, i: Any, j: Any) -> Any:
    """The array with rows i and j exchanged."""
    return array[jnp.arange(array.shape[0]).at[i].set(j).at[j].set(i)]


def _transposed(matrix: Any, hermitian: bool) -> Any:
    return jnp.conj(matrix).T if hermitian else matrix.T


def _pivot(rest: Any, k: Any) -> tuple[Any, Any, Any]:
    """The row that becomes the last of block k, whether the block has two, whether column k is 0.

    Bunch and Kaufman's partial pivoting, by what LAPACK compares: |re x| + |im x|.
    """
    size = jnp.abs(jnp.real(rest)) + jnp.abs(jnp.imag(rest))
    rows = jnp.arange(rest.shape[0])
    below = jnp.where(rows > k, size[:, k], 0)
    largest, column = jnp.argmax(below), jnp.max(below)
    row = jnp.max(jnp.where((rows >= k) & (rows != largest), size[:, largest], 0))
    is_zero = jnp.maximum(size[k, k], column) == 0
    stays = is_zero | (size[k, k] >= _ALPHA * column)
    stays = stays | (size[k, k] * row >= _ALPHA * column * column)
    comes_alone = size[largest, largest] >= _ALPHA * row
    return jnp.where(stays, k, largest), ~stays & ~comes_alone, is_zero


def _without_block(state: tuple[Any, ...], hermitian: bool) -> tuple[Any, ...]:
    """Takes the block at k off what is left of the matrix."""
    k, rest, factors, pivots, info = state
    rows = jnp.arange(rest.shape[0])
    place, two, is_zero = _pivot(rest, k)
    last = jnp.where(two, k + 1, k)
    rest = _swapped(_swapped(rest, last, place).T, last, place).T
    pair = jnp.stack([k, jnp.minimum(k + 1, rows[-1])])
    columns = rest[:, pair]
    alone = jnp.diag(jnp.stack([jnp.where(is_zero, 1, columns[k, 0]), jnp.ones((), rest.dtype)]))
    block = jnp.where(two, columns[pair], alone)
    below = (rows > last)[:, None] & jnp.stack([~is_zero, two])
    eliminated = jnp.where(below, columns, 0)
    lower = eliminated @ jnp.linalg.inv(block)
    kept = jnp.where(rows[:, None] > last, lower, columns) * (rows[:, None] >= pair)
    for j, taken in ((1, two), (0, True)):  # in this order: at the end both are one column
        column, sign = pair[j], jnp.where(two, -1, 1)
        factors = factors.at[:, column].set(jnp.where(taken, kept[:, j], factors[:, column]))
        pivots = pivots.at[column].set(jnp.where(taken, sign * (place + 1), pivots[column]))
    rest = rest - lower @ _transposed(eliminated, hermitian)
    if hermitian:  # rounding leaves no imaginary part on the diagonal
        rest = jnp.where(jnp.eye(len(rows), dtype=bool), jnp.real(rest), rest)
    return last + 1, rest, factors, pivots, jnp.where((info == 0) & is_zero, k + 1, info)


def _factor_one(matrix: Any, *, hermitian: bool) -> tuple[Any, Any, Any]:
    count = matrix.shape[0]
    diagonal = jnp.diag(jnp.diagonal(matrix))
    below = jnp.tril(matrix, -1)
    whole = below + _transposed(below, hermitian)
    whole = whole + (jnp.real(diagonal) if hermitian else diagonal)
    zero = jnp.zeros((), jnp.int32)
    _, _, factors, pivots, info = jax.lax.while_loop(
        lambda state: state[0] < count,
        lambda state: _without_block(state, hermitian),
        (zero, whole, jnp.zeros_like(whole), jnp.zeros(count, jnp.int32), zero),
    )
    return factors, pivots, info


def _solve_one(factors: Any, pivots: Any, B: Any, *, hermitian: bool) -> Any:
    rows = jnp.arange(factors.shape[0])
    # Both rows of a block of two have the same negative pivot.
    is_second = (pivots < 0) & (jnp.cumsum(pivots < 0) % 2 == 0)
    is_first = (pivots < 0) & ~is_second
    in_block = (rows[:, None] == rows + 1) & is_first
    middle = jnp.where(in_block, factors, 0)
    middle = middle + _transposed(middle, hermitian) + jnp.diag(jnp.diagonal(factors))

    def swap(k: Any, state: tuple[Any, Any]) -> tuple[Any, Any]:
        lower, order = state
        place = jnp.where(is_first[k], k, jnp.abs(pivots[k]) - 1)
        # Columns that were finished before are as they were: their rows are swapped here.
        finished = rows < k - is_second[k]
        return jnp.where(finished, _swapped(lower, k, place), lower), _swapped(order, k, place)

    lower = jnp.where(in_block, 0, jnp.tril(factors, -1))
    lower, order = jax.lax.fori_loop(0, len(rows), swap, (lower, rows))
    solve = jax.scipy.linalg.solve_triangular
    X = solve(lower, B[order], lower=True, unit_diagonal=True)
    X = jnp.linalg.solve(middle, X)
    X = solve(_transposed(lower, hermitian), X, lower=False, unit_diagonal=True)
    return jnp.zeros_like(X).at[order].set(X)


# --- operators --------------------------------------------------------------------------------


def _factored(self: Any, *, hermitian: bool) -> tuple[Any, Any, Any]:
    require_square("linalg.ldl_factor", self)
    batch, count = self.shape[:-2], self.shape[-1]
    if not self.size:
        return self, jnp.zeros(self.shape[:-1], jnp.int32), jnp.zeros(batch, jnp.int32)
    matrices = self.reshape(-1, count, count)
    LD, pivots, info = jax.vmap(lambda m: _factor_one(m, hermitian=hermitian))(matrices)
    return LD.reshape(self.shape), pivots.reshape(*batch, count), info.reshape(batch)


_factor = define(
    "linalg_ldl_factor_ex",
    _factored,
    outputs=("LD", "pivots", "info"),
    returns="ldl_factor_ex",
    differentiable=False,
)


@takes_out
def ldl_factor_ex(A: Any, *, hermitian: bool = False, check_errors: bool = False) -> Any:
    """L and D in one matrix, the rows swapped with each row (from 1), and `info`.

    Two rows of a block have the same negative pivot. `info` is 0, or the place of the first block
    of D that is 0. Only the lower triangle of A is read. There is no gradient.

    >>> dg.linalg.ldl_factor_ex(dg.tensor([[0.0, 2.0], [2.0, 0.0]])).pivots
    tensor([-2, -2])
    """
    result = _factor(A, bool(hermitian))
    failure = first_failure(result.info) if check_errors else None
    if failure is not None:
        which, k = failure
        raise LinAlgError(
            f"linalg.ldl_factor: {which}D[{k},{k}] is zero, so that A has no inverse. Call "
            "linalg.ldl_factor_ex(A) for its factors."
        )
    return result


class _Factors(NamedTuple):
    LD: Tensor
    pivots: Tensor


_Factors.__name__ = "ldl_factor"


@takes_out
def ldl_factor(A: Any, *, hermitian: bool = False) -> Any:
    """L and D of A = P L D L^T P^T in one matrix, and the pivots: for `ldl_solve`.

    A is symmetric, of which only the lower triangle is read; it need not be definite. Raises
    LinAlgError where D has a 0.

    >>> dg.linalg.ldl_factor(dg.tensor([[4.0, 2.0], [2.0, 0.0]])).LD
    tensor([[ 4.0000,  0.0000],
            [ 0.5000, -1.0000]])
    """
    result = ldl_factor_ex(A, hermitian=hermitian, check_errors=True)
    return _Factors(result.LD, result.pivots)


def _solved(LD: Any, pivots: Any, B: Any, *, hermitian: bool) -> Any:
    require_square("linalg.ldl_solve", LD, "LD")
    if B.ndim < 2 or B.shape[-2] != LD.shape[-1] or B.dtype != LD.dtype:
        raise RuntimeError(
            f"linalg.ldl_solve: expected B of dtype {LD.dtype} and shape (..., {LD.shape[-1]}, k), "
            f"got {B.dtype} and {list(B.shape)}. A vector becomes a matrix by unsqueeze(-1)."
        )
    if pivots.shape != LD.shape[:-1] or pivots.dtype.kind not in "iu":
        raise RuntimeError(
            f"linalg.ldl_solve: expected integer pivots of shape {list(LD.shape[:-1])}, got "
            f"{pivots.dtype} and {list(pivots.shape)}"
        )
    LD, B = same_batch(LD, B)
    batch, count = LD.shape[:-2], LD.shape[-1]
    if not B.size:
        return B
    pivots = jnp.broadcast_to(pivots, (*batch, count)).reshape(-1, count)
    columns = B.reshape(-1, count, B.shape[-1])
    run = jax.vmap(lambda f, p, b: _solve_one(f, p, b, hermitian=hermitian))
    return run(LD.reshape(-1, count, count), pivots, columns).reshape(B.shape)


_solve = define("linalg_ldl_solve", _solved, differentiable=False)


@takes_out
def ldl_solve(LD: Any, pivots: Any, B: Any, *, hermitian: bool = False) -> Tensor:
    """X with A X = B, (..., n, k), by the factors that `ldl_factor` gave; no gradient.

    Raises RuntimeError where shapes or dtypes do not fit.

    >>> A, B = dg.tensor([[0.0, 2.0], [2.0, 0.0]]), dg.tensor([[2.0], [4.0]])
    >>> dg.linalg.ldl_solve(*dg.linalg.ldl_factor(A), B)
    tensor([[2.],
            [1.]])
    """
    return _solve(LD, pivots, B, bool(hermitian))


__all__: list[str] = []  # these are functions of linalg
METHODS = ()
