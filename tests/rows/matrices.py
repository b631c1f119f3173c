"""Rows of the operators in `dyngraph/ops/matrices.py`."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from tests.opinfo import OpInfo, call, complex_square, normal, square


def no_failure(values: Any) -> Any:
    return jnp.zeros(values.shape[:-2], jnp.int32)


def inv_ex(a: Any, check_errors: bool = False) -> Any:
    return jnp.linalg.inv(a), no_failure(a)


def power(a: Any, n: int) -> Any:
    a = a if n >= 0 else jnp.linalg.inv(a)
    result = jnp.eye(a.shape[-1], dtype=a.dtype)
    for _ in range(abs(n)):
        result = result @ a
    return result


ROWS: list[OpInfo] = [
    OpInfo(
        "det",
        [call(square(2, 3))],
        jnp.linalg.det,
        no_half="Low precision dtypes not supported",
    ),
    OpInfo(
        "slogdet",
        [call(-square(3))],
        jnp.linalg.slogdet,
        no_half="Low precision dtypes not supported",
    ),
    OpInfo(
        "logdet",
        [call(square(3))],
        lambda a: jnp.log(jnp.linalg.det(a)),
        rtol=1e-3,
        atol=1e-4,
        no_half="Low precision dtypes not supported",
    ),
    OpInfo(
        "inverse",
        [call(square(2, 3)), call(complex_square(2))],
        jnp.linalg.inv,
        no_half="Low precision dtypes not supported",
    ),
    OpInfo(
        "linalg.inv_ex",
        [call(square(2))],
        inv_ex,
        no_half="Low precision dtypes not supported",
    ),
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
]
