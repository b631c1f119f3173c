"""Rows of the operators in `dyngraph/ops/affine.py`."""

from __future__ import annotations

import jax.numpy as jnp

from tests.opinfo import OpInfo, call, functional, normal

ROWS: list[OpInfo] = [
    OpInfo(
        "addmm",
        [
            call(normal(4), normal(2, 3), normal(3, 4)),
            call(normal(2, 1), normal(2, 3), normal(3, 4), beta=0.5, alpha=2.0),
        ],
        lambda x, a, b, beta=1, alpha=1: beta * x + alpha * (a @ b),
    ),
    OpInfo(
        "addmv",
        [call(normal(2), normal(2, 3), normal(3), alpha=2)],
        lambda x, a, b, alpha: x + alpha * (a @ b),
    ),
    OpInfo(
        "baddbmm",
        [call(normal(2, 1), normal(5, 2, 3), normal(5, 3, 4))],
        lambda x, a, b: x + a @ b,
    ),
    OpInfo(
        "addbmm",
        [call(normal(2, 4), normal(5, 2, 3), normal(5, 3, 4), beta=0.5)],
        lambda x, a, b, beta: beta * x + (a @ b).sum(0),
    ),
    functional(
        "linear",
        [
            call(normal(5, 3), normal(2, 3)),
            call(normal(3), normal(2, 3), normal(2)),
            call(normal(4, 5, 3), normal(2, 3), normal(2)),
            call(normal(4, 3), normal(3)),
        ],
        lambda x, w, b=0: x @ w.T + b,
    ),
    OpInfo(
        "addr",
        [call(normal(3), normal(2), normal(3), beta=0.5, alpha=2.0)],
        lambda x, a, b, beta, alpha: beta * x + alpha * jnp.outer(a, b),
    ),
    OpInfo(
        "bilinear",
        [call(normal(2, 4, 3), normal(2, 4, 2), normal(5, 3, 2), normal(5))],
        lambda x, y, w, b: jnp.einsum("bti,oij,btj->bto", x, w, y) + b,
    ),
]
