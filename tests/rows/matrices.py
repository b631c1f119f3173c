"""Rows of the operators in `dyngraph/ops/matrices.py` and `dyngraph/ops/solving.py`."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tests.opinfo import OpInfo, call, complex_normal, normal


def square(*shape: int) -> np.ndarray:
    """Square matrices far from singular ones; the last number is their size."""
    return normal(*shape, shape[-1], scale=0.5) + 2 * np.eye(shape[-1], dtype=np.float32)


def complex_square(n: int) -> np.ndarray:
    return complex_normal(n, n) + np.complex64(3) * np.eye(n, dtype=np.complex64)


def no_failure(values: Any) -> Any:
    return jnp.zeros(values.shape[:-2], jnp.int32)


def inv_ex(a: Any, check_errors: bool = False) -> Any:
    return jnp.linalg.inv(a), no_failure(a)


def solve(a: Any, b: Any, left: bool = True) -> Any:
    if not left:
        return b @ jnp.linalg.inv(a)
    vectors = b.ndim == 1 or b.shape == a.shape[:-1]
    inverse = jnp.linalg.inv(a)
    return (inverse @ b[..., None])[..., 0] if vectors else inverse @ b


def solve_triangular(
    a: Any, b: Any, upper: bool, left: bool = True, unitriangular: bool = False
) -> Any:
    a = jnp.triu(a) if upper else jnp.tril(a)
    if unitriangular:
        eye = jnp.eye(a.shape[-1], dtype=bool)
        a = jnp.where(eye, 1, a)
    return solve(a, b, left)


def triangular_solve(b: Any, a: Any, upper: bool = True, transpose: bool = False) -> Any:
    return solve_triangular(a.T if transpose else a, b, upper != transpose), a


def power(a: Any, n: int) -> Any:
    a = a if n >= 0 else jnp.linalg.inv(a)
    result = jnp.eye(a.shape[-1], dtype=a.dtype)
    for _ in range(abs(n)):
        result = result @ a
    return result


ROWS: list[OpInfo] = [
    OpInfo("det", [call(square(2, 3))], jnp.linalg.det),
    OpInfo("slogdet", [call(-square(3))], jnp.linalg.slogdet),
    OpInfo("logdet", [call(square(3))], lambda a: jnp.log(jnp.linalg.det(a)), rtol=1e-3, atol=1e-4),
    OpInfo("inverse", [call(square(2, 3)), call(complex_square(2))], jnp.linalg.inv),
    OpInfo("linalg.inv_ex", [call(square(2))], inv_ex),
    OpInfo(
        "linalg.solve",
        [call(square(2, 3), normal(3, 2)), call(square(3), normal(2, 3), left=False)],
        solve,
        second=False,  # slow to compile; the next row has it
        rtol=1e-3,
        atol=1e-4,
    ),
    OpInfo("linalg.solve", [call(complex_square(2), complex_normal(2))], solve, rtol=1e-3),
    OpInfo("linalg.solve_ex", [call(square(2), normal(2))], lambda a, b: (solve(a, b), 0)),
    OpInfo(
        "linalg.solve_triangular",
        [
            call(square(3), normal(2, 3, 1), upper=True),
            call(square(2, 2), normal(3, 2), upper=False, left=False, unitriangular=True),
        ],
        solve_triangular,
        rtol=1e-3,
        atol=1e-4,
    ),
    OpInfo("triangular_solve", [call(normal(3, 2), square(3), True, True)], triangular_solve),
    OpInfo("matrix_power", [call(square(2, 2), 3), call(square(2), -2)], power),
    OpInfo(
        "matrix_exp",
        [call(normal(2, 2, scale=0.3))],
        lambda a: sum(
            (power(a, k) / float(jax.scipy.special.factorial(k)) for k in range(1, 12)),
            power(a, 0),
        ),
        second=False,  # slow to compile
    ),
    OpInfo(
        "linalg.multi_dot",
        [call([normal(2), normal(2, 3), normal(3, 2)])],
        jnp.linalg.multi_dot,
    ),
    OpInfo("chain_matmul", [call(normal(2, 3), normal(3, 1))], jnp.matmul),
    OpInfo(
        "linalg.lstsq",
        [call(normal(4, 2), normal(4, 1), driver="gels")],
        lambda a, b, driver: (
            (x := jnp.linalg.solve(a.T @ a, a.T @ b)),
            ((a @ x - b) ** 2).sum(-2),
            jnp.zeros((0,), jnp.int32),
            jnp.zeros((0,)),
        ),
        gradient=False,  # `singular_values` has none
        rtol=1e-3,
        atol=1e-4,
    ),
]
