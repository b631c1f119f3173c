"""Rows of what `dyngraph/linalg.py` composes."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from tests.opinfo import OpInfo, call, complex_normal, normal, positive, spread, square


def norm(a: Any, ord: Any = None, dim: Any = None, keepdim: bool = False) -> Any:
    return jnp.linalg.norm(a, ord, tuple(dim) if isinstance(dim, list) else dim, keepdim)


def matrix_norm(a: Any, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False) -> Any:
    return norm(a, ord, dim, keepdim)


ROWS: list[OpInfo] = [
    OpInfo(
        "linalg.matrix_norm",
        [
            call(normal(2, 2, 3)),
            call(spread(2, 3), -1),
            call(spread(2, 2, 3), float("inf"), (2, 0), True),
        ],
        matrix_norm,
    ),
    OpInfo(
        "linalg.matrix_norm",
        [call(normal(2, 2, 3), 2, (0, -1), True)],
        matrix_norm,
        second=False,  # slow to compile
        no_half="Low precision dtypes not supported",
    ),
    OpInfo(
        "linalg.norm",
        [call(normal(2, 3)), call(normal(2, 3), 3, 1), call(positive(2, 3), 1, [0, 1])],
        lambda a, ord=None, dim=None: jnp.sqrt((a * a).sum()) if ord is None else norm(a, ord, dim),
    ),
    OpInfo(
        "linalg.cond",
        [call(square(2)), call(square(2), 1)],
        lambda a, p=None: jnp.linalg.norm(a, p or 2) * jnp.linalg.norm(jnp.linalg.inv(a), p or 2),
        rtol=1e-3,
        atol=1e-3,
        second=False,  # slow to compile
        no_half="Low precision dtypes not supported",
        no_empty="the twin divides by a norm, or reads a largest value, that is not there",
    ),
    OpInfo(
        "linalg.matrix_rank",
        [call(np.ones((2, 3, 2), np.float32))],
        jnp.linalg.matrix_rank,
        gradient=False,
        no_half="Low precision dtypes not supported",
        no_empty="the twin divides by a norm, or reads a largest value, that is not there",
    ),
    OpInfo(
        "linalg.tensorinv",
        [call(square(4).reshape(2, 2, 4), 2)],
        lambda a, ind: jnp.linalg.tensorinv(a, ind),
        rtol=1e-3,
        atol=1e-4,
        no_half="Low precision dtypes not supported",
    ),
    OpInfo(
        "linalg.tensorsolve",
        [call(square(4).reshape(2, 4, 2), normal(2, 2), dims=[1])],
        lambda a, b, dims: jnp.linalg.tensorsolve(a, b, tuple(dims)),
        rtol=1e-3,
        atol=1e-4,
        no_half="Low precision dtypes not supported",
    ),
    OpInfo(
        "linalg.cross",
        [call(normal(2, 3), normal(1, 3))],
        jnp.cross,
        broadcasts=True,
    ),
    OpInfo(
        "linalg.vecdot",
        [call(complex_normal(2, 3), complex_normal(3))],
        lambda x, y: (jnp.conj(x) * y).sum(-1),
    ),
    OpInfo(
        "linalg.diagonal",
        [call(normal(2, 3, 3), offset=1)],
        lambda a, offset: jnp.diagonal(a, offset, -2, -1),
    ),
    OpInfo(
        "linalg.vander",
        [call(np.array([0.0, 2.0, -1.5], np.float32), N=4)],
        lambda x, N: jnp.stack([x**k for k in range(N)], -1),
    ),
]
