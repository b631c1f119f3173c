"""Rows of the operators in `dyngraph/ops/eigenvalues.py`."""

from __future__ import annotations

import jax.numpy as jnp

from tests.opinfo import OpInfo, call, definite, hermitian, normal, symmetric

ROWS: list[OpInfo] = [
    OpInfo(
        "linalg.eigh",
        [call(definite(3)), call(hermitian(2), "U")],
        lambda a, triangle="L": tuple(jnp.linalg.eigh(a, triangle)),
        rtol=1e-3,
        atol=1e-3,
        no_half="Low precision dtypes not supported",
        direction=symmetric,
    ),
    OpInfo(
        "linalg.eigvalsh",
        [call(definite(2, 2))],
        jnp.linalg.eigvalsh,
        rtol=1e-3,
        atol=1e-3,
        no_half="Low precision dtypes not supported",
        direction=symmetric,
    ),
    OpInfo(
        "linalg.eig",
        [call(normal(3, 3))],
        lambda a: tuple(jnp.linalg.eig(a)),
        gradient=False,  # which phase the vectors have is of no meaning
        no_half="Low precision dtypes not supported",
    ),
    OpInfo(
        "linalg.eigvals",
        [call(normal(3, 3))],
        jnp.linalg.eigvals,
        second=False,  # jax has none
        rtol=1e-3,
        atol=1e-3,
        no_half="Low precision dtypes not supported",
    ),
]
