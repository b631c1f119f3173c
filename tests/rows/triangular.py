"""Rows of the operators in `dyngraph/ops/triangular.py`."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from tests.opinfo import OpInfo, call, normal, square


def solve_triangular(
    a: Any, b: Any, upper: bool, left: bool = True, unitriangular: bool = False
) -> Any:
    a = jnp.triu(a) if upper else jnp.tril(a)
    if unitriangular:
        eye = jnp.eye(a.shape[-1], dtype=bool)
        a = jnp.where(eye, 1, a)
    return jnp.linalg.inv(a) @ b if left else b @ jnp.linalg.inv(a)


def triangular_solve(b: Any, a: Any, upper: bool = True, transpose: bool = False) -> Any:
    return solve_triangular(a.T if transpose else a, b, upper != transpose), a


ROWS: list[OpInfo] = [
    OpInfo(
        "linalg.solve_triangular",
        [
            call(square(3), normal(2, 3, 1), upper=True),
            call(square(2, 2), normal(3, 2), upper=False, left=False, unitriangular=True),
        ],
        solve_triangular,
        rtol=1e-3,
        atol=1e-4,
        no_half="Low precision dtypes not supported",
    ),
    OpInfo(
        "triangular_solve",
        [call(normal(3, 2), square(3), True, True)],
        triangular_solve,
        no_half="Low precision dtypes not supported",
    ),
]
