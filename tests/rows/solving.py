"""Rows of the operators in `dyngraph/ops/solving.py`."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from tests.opinfo import OpInfo, call, complex_normal, complex_square, normal, square


def solve(a: Any, b: Any, left: bool = True) -> Any:
    if not left:
        return b @ jnp.linalg.inv(a)
    vectors = b.ndim == 1 or b.shape == a.shape[:-1]
    inverse = jnp.linalg.inv(a)
    return (inverse @ b[..., None])[..., 0] if vectors else inverse @ b


ROWS: list[OpInfo] = [
    OpInfo(
        "linalg.solve",
        [call(square(2, 3), normal(3, 2)), call(square(3), normal(2, 3), left=False)],
        solve,
        second=False,  # slow to compile; the next row has it
        rtol=1e-3,
        atol=1e-4,
        no_half="Low precision dtypes not supported",
    ),
    OpInfo(
        "linalg.solve",
        [call(complex_square(2), complex_normal(2))],
        solve,
        rtol=1e-3,
        no_half="Low precision dtypes not supported",
    ),
    OpInfo(
        "linalg.solve_ex",
        [call(square(2), normal(2))],
        lambda a, b: (solve(a, b), 0),
        no_half="Low precision dtypes not supported",
    ),
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
        no_half="Low precision dtypes not supported",
        no_empty="the twin divides by a norm, or reads a largest value, that is not there",
    ),
]
