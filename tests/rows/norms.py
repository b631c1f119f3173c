"""Rows of the operators in `dyngraph/ops/norms.py`."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from tests.opinfo import OpInfo, call, complex_normal, functional, normal, positive, spread


def norm(x: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False) -> Any:
    if p == "nuc":
        return jnp.linalg.norm(x, "nuc", dim, keepdim)
    p = 2 if p == "fro" else p
    if p == 0:
        return jnp.sum(x != 0, dim, keepdims=keepdim).astype(x.dtype)
    if np.isinf(p):
        return (jnp.max if p > 0 else jnp.min)(jnp.abs(x), dim, keepdims=keepdim)
    return jnp.sum(jnp.abs(x) ** p, dim, keepdims=keepdim) ** (1 / p)


a_few_zeros = normal(3, 4)
a_few_zeros[0, 1] = 0

ROWS: list[OpInfo] = [
    functional(
        "normalize",
        [call(normal(2, 3)), call(normal(2, 3), 1.0, 0), call(normal(2, 3), p=3.0)],
        lambda x, p=2.0, dim=1: x / (jnp.abs(x) ** p).sum(dim, keepdims=True) ** (1 / p),
    ),
    OpInfo(
        "cosine_similarity",
        [call(normal(2, 3), normal(2, 3)), call(normal(2, 3), normal(2, 1), dim=0)],
        lambda a, b, dim=1: (a * b).sum(dim) / jnp.sqrt((a * a).sum(dim) * (b * b).sum(dim)),
        no_empty="the twin divides by a norm, or reads a largest value, that is not there",
    ),
    OpInfo(
        "cosine_similarity",
        [call(positive(), positive(), dim=0)],
        lambda a, b, dim: a * b / (jnp.abs(a) * jnp.abs(b)),
        no_empty="the twin divides by a norm, or reads a largest value, that is not there",
    ),
    OpInfo(
        "norm",
        [
            call(normal(2, 3)),
            call(normal(2, 3), 1, 1),
            call(normal(2, 3), 3, (0, 1), True),
            call(positive(2, 3), 0.5, dim=0),
            call(spread(2, 3), float("inf"), 1),
            call(spread(2, 3), -float("inf")),
            call(a_few_zeros, 0, 1),
            call(complex_normal(2, 3)),
            call(complex_normal(2, 3), 1.5, 1),
        ],
        norm,
    ),
    OpInfo(
        "norm",
        [call(normal(2, 3), "nuc", (0, 1))],
        norm,
        second=False,  # jax: NaN for nuc
        no_half="Low precision dtypes not supported",
    ),
    OpInfo(
        "renorm",
        [call(np.array([[3.0, -4.0], [0.3, 0.4]], np.float32), 2, 0, 1.0)],
        lambda x, p, dim, maxnorm: jnp.stack([x[0] / jnp.sqrt(jnp.sum(x[0] ** 2)), x[1]]),
        no_empty="the twin reshapes to a size that it divides out",
    ),
    OpInfo(
        "frobenius_norm",
        [call(normal(2, 3, 2), (0, 2))],
        lambda x, dim: jnp.sqrt((x * x).sum(dim)),
    ),
    OpInfo(
        "norm_except_dim",
        [call(normal(2, 3), 2, 1)],
        lambda v, pow, dim: jnp.sqrt((v * v).sum(0, keepdims=True)),
    ),
    OpInfo(
        "nuclear_norm",
        [call(normal(3, 2))],
        lambda x: jnp.linalg.svd(x, compute_uv=False).sum(),
        no_half="Low precision dtypes not supported",
    ),
]
