"""Rows of the operators in `dyngraph/ops/decompositions.py`.

Where the vectors of a decomposition are determined up to a sign, the value is compared here, and
the gradient of what does not depend on the sign in `tests/ops/test_linalg.py`.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from tests.opinfo import OpInfo, call, complex_normal, normal, positive


def reflections(a: Any, tau: Any, rows: int | None = None) -> Any:
    """H_1 ... H_k, formed one by one."""
    m, n = a.shape
    result = jnp.eye(m, dtype=a.dtype)
    for i in range(tau.shape[0]):
        below = jnp.arange(m) > i
        v = jnp.where(below, a[:, i], 0) + (jnp.arange(m) == i)
        result = result - tau[i] * (result @ v)[:, None] * jnp.conj(v)
    return result[:, : rows or n]


def ormqr(a: Any, tau: Any, other: Any, left: bool = True, transpose: bool = False) -> Any:
    q = reflections(a, tau, a.shape[0])
    q = jnp.conj(q.T) if transpose else q
    return q @ other if left else other @ q


def pinv(a: Any, **kwargs: Any) -> Any:
    """Of a matrix of full rank, by its definition."""
    h = jnp.conj(a.T)
    m, n = a.shape
    return jnp.linalg.inv(h @ a) @ h if m >= n else h @ jnp.linalg.inv(a @ h)


ROWS: list[OpInfo] = [
    OpInfo(
        "linalg.qr",
        [call(normal(2, 4, 3))],
        lambda a: tuple(jnp.linalg.qr(a)),
        no_half="Low precision dtypes not supported",
    ),
    OpInfo(
        "linalg.householder_product",
        [call(normal(3, 2), positive(2))],
        reflections,
        second=False,  # slow to compile
        no_half="Low precision dtypes not supported",
        refuses_empty="must be greater than or equal to input",
    ),
    OpInfo(
        "ormqr",
        [
            call(normal(3, 2), positive(2), normal(3, 1), True, True),
            call(complex_normal(2, 2), complex_normal(1), complex_normal(1, 2), False),
        ],
        ormqr,
        second=False,  # slow to compile
        no_half="Low precision dtypes not supported",
    ),
    OpInfo(
        "geqrf",
        [call(normal(3, 2))],
        lambda a: ((raw := jnp.linalg.qr(a, "raw"))[0].T, raw[1]),
        gradient=False,
        no_half="Low precision dtypes not supported",
    ),
    OpInfo(
        "linalg.svd",
        [call(normal(2, 3, 2), full_matrices=False)],
        lambda a, full_matrices: tuple(jnp.linalg.svd(a, full_matrices)),
        second=False,  # jax's is NaN for these shapes
        rtol=1e-3,
        atol=1e-4,
        no_half="Low precision dtypes not supported",
    ),
    OpInfo(
        "linalg.svdvals",
        [call(normal(2, 3))],
        lambda a: jnp.linalg.svd(a, compute_uv=False),
        rtol=1e-3,
        atol=1e-4,
        no_half="Low precision dtypes not supported",
    ),
    OpInfo(
        "linalg.pinv",
        [call(normal(3, 2)), call(normal(1, 2))],
        pinv,
        rtol=1e-3,
        atol=1e-3,
        no_half="Low precision dtypes not supported",
    ),
]
