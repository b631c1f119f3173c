"""Rows of the operators in `dyngraph/ops/factorizations.py`."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tests.opinfo import OpInfo, call, definite, hermitian, normal, positive, symmetric


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


factors, pivots, _ = (np.asarray(x) for x in jax.lax.linalg.lu(normal(2, 3, 3)))
pivots = pivots + 1

ROWS: list[OpInfo] = [
    OpInfo(
        "cholesky",
        [call(definite(2, 3)), call(hermitian(2), True)],
        cholesky,
        no_half="Low precision dtypes not supported",
        direction=symmetric,
    ),
    OpInfo(
        "linalg.cholesky_ex",
        [call(definite(2))],
        lambda a: (cholesky(a), 0),
        no_half="Low precision dtypes not supported",
        direction=symmetric,
    ),
    OpInfo(
        "cholesky_inverse",
        [call(lower(3))],
        lambda f: jnp.linalg.inv(product(f)),
        rtol=1e-3,
        atol=1e-4,
        no_half="Low precision dtypes not supported",
        direction=np.tril,
        refuses_empty="must be batches of square matrices",
    ),
    OpInfo(
        "cholesky_solve",
        [call(normal(2, 1), lower(2)), call(normal(2, 1), lower(2).T.copy(), True)],
        lambda b, f, upper=False: jnp.linalg.inv(product(f, upper)) @ b,
        second=False,  # off the triangle it has no meaning
        rtol=1e-3,
        atol=1e-4,
        no_half="Low precision dtypes not supported",
        direction=np.tril,
        refuses_empty="must be batches of square matrices",
    ),
    OpInfo(
        "linalg.lu_factor",
        [call(normal(2, 3))],
        lu_factor,
        second=False,  # slow to compile
        no_half="Low precision dtypes not supported",
    ),
    OpInfo(
        "lu",
        [call(normal(2, 2))],
        lu_factor,
        gradient=False,  # that of lu_factor
        no_half="Low precision dtypes not supported",
    ),
    OpInfo(
        "lu_unpack",
        [call(factors, pivots)],
        lambda f, p: (
            jnp.eye(3, dtype=f.dtype)[jax.lax.linalg.lu_pivots_to_permutation(p - 1, 3)].swapaxes(
                -1, -2
            ),
            jnp.tril(f, -1) + jnp.eye(3, dtype=f.dtype),
            jnp.triu(f),
        ),
        gradient=False,  # P has none
        no_empty="the twin is written for this size",
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
        no_half="Low precision dtypes not supported",
    ),
]
