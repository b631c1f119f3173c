"""Rows of the operators in `dyngraph/ops/decompositions.py` and `dyngraph/ops/eigenvalues.py`.

Where the vectors of a decomposition are determined up to a sign, the value is compared here, and
the gradient of what does not depend on the sign in `tests/ops/test_decompositions.py`.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tests.opinfo import OpInfo, call, complex_normal, normal, positive


def definite(*shape: int) -> np.ndarray:
    """Positive-definite matrices; the last number is their size."""
    a = normal(*shape, shape[-1])
    return a @ np.swapaxes(a, -1, -2) + np.eye(shape[-1], dtype=np.float32)


def hermitian(n: int) -> np.ndarray:
    a = complex_normal(n, n)
    return a @ a.conj().T + np.eye(n, dtype=np.complex64)


def lower(*shape: int) -> np.ndarray:
    """Lower triangular matrices, none of them near a singular one."""
    return np.tril(normal(*shape, shape[-1], scale=0.4), -1) + np.eye(
        shape[-1], dtype=np.float32
    ) * positive(shape[-1])


def cholesky(a: Any, upper: bool = False) -> Any:
    factor = jnp.linalg.cholesky(a)
    return jnp.conj(jnp.swapaxes(factor, -1, -2)) if upper else factor


def product(factor: Any, upper: bool = False) -> Any:
    other = jnp.conj(jnp.swapaxes(factor, -1, -2))
    return other @ factor if upper else factor @ other


def lu_factor(a: Any, pivot: bool = True) -> Any:
    factors, pivots, _ = jax.lax.linalg.lu(a)
    return factors, pivots + 1


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


factors, pivots, _ = (np.asarray(x) for x in jax.lax.linalg.lu(normal(2, 3, 3)))
pivots = pivots + 1

ROWS: list[OpInfo] = [
    OpInfo("cholesky", [call(definite(2, 3)), call(hermitian(2), True)], cholesky),
    OpInfo("linalg.cholesky_ex", [call(definite(2))], lambda a: (cholesky(a), 0)),
    OpInfo(
        "cholesky_inverse",
        [call(lower(3))],
        lambda f: jnp.linalg.inv(product(f)),
        rtol=1e-3,
        atol=1e-4,
    ),
    OpInfo(
        "cholesky_solve",
        [call(normal(2, 1), lower(2)), call(normal(2, 1), lower(2).T.copy(), True)],
        lambda b, f, upper=False: jnp.linalg.inv(product(f, upper)) @ b,
        second=False,  # off the triangle it has no meaning
        rtol=1e-3,
        atol=1e-4,
    ),
    OpInfo("linalg.lu_factor", [call(normal(2, 3))], lu_factor, second=False),  # slow to compile
    OpInfo("lu", [call(normal(2, 2))], lu_factor, gradient=False),  # that of lu_factor
    OpInfo(
        "lu_unpack",
        [call(factors, pivots)],
        lambda f, p: (
            jnp.eye(3)[jax.lax.linalg.lu_pivots_to_permutation(p - 1, 3)].swapaxes(-1, -2),
            jnp.tril(f, -1) + jnp.eye(3),
            jnp.triu(f),
        ),
        gradient=False,  # P has none
    ),
    OpInfo(
        "linalg.lu_solve",
        [call(factors, pivots, normal(2, 3, 1))],
        lambda f, p, b: (
            jnp.linalg.inv(jnp.triu(f))
            @ jnp.linalg.inv(jnp.tril(f, -1) + jnp.eye(3))
            @ jnp.take_along_axis(
                b, jax.lax.linalg.lu_pivots_to_permutation(p - 1, 3)[..., None], -2
            )
        ),
        second=False,  # these matrices are too near to singular ones
        rtol=1e-2,
        atol=1e-3,
    ),
    OpInfo("linalg.qr", [call(normal(2, 4, 3))], lambda a: tuple(jnp.linalg.qr(a))),
    OpInfo(
        "linalg.householder_product",
        [call(normal(3, 2), positive(2))],
        reflections,
        second=False,  # slow to compile
    ),
    OpInfo(
        "ormqr",
        [
            call(normal(3, 2), positive(2), normal(3, 1), True, True),
            call(complex_normal(2, 2), complex_normal(1), complex_normal(1, 2), False),
        ],
        ormqr,
        second=False,  # slow to compile
    ),
    OpInfo(
        "geqrf",
        [call(normal(3, 2))],
        lambda a: ((raw := jnp.linalg.qr(a, "raw"))[0].T, raw[1]),
        gradient=False,
    ),
    OpInfo(
        "linalg.svd",
        [call(normal(2, 3, 2), full_matrices=False)],
        lambda a, full_matrices: tuple(jnp.linalg.svd(a, full_matrices)),
        second=False,  # jax's is NaN for these shapes
        rtol=1e-3,
        atol=1e-4,
    ),
    OpInfo(
        "linalg.svdvals",
        [call(normal(2, 3))],
        lambda a: jnp.linalg.svd(a, compute_uv=False),
        rtol=1e-3,
        atol=1e-4,
    ),
    OpInfo("linalg.pinv", [call(normal(3, 2)), call(normal(1, 2))], pinv, rtol=1e-3, atol=1e-3),
    OpInfo(
        "linalg.eigh",
        [call(definite(3)), call(hermitian(2), "U")],
        lambda a, triangle="L": tuple(jnp.linalg.eigh(a, triangle)),
        rtol=1e-3,
        atol=1e-3,
    ),
    OpInfo("linalg.eigvalsh", [call(definite(2, 2))], jnp.linalg.eigvalsh, rtol=1e-3, atol=1e-3),
    OpInfo(
        "linalg.eig",
        [call(normal(3, 3))],
        lambda a: tuple(jnp.linalg.eig(a)),
        gradient=False,  # which phase the vectors have is of no meaning
    ),
    OpInfo(
        "linalg.eigvals",
        [call(normal(3, 3))],
        jnp.linalg.eigvals,
        second=False,  # jax has none
        rtol=1e-3,
        atol=1e-3,
    ),
]
