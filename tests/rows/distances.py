"""Rows of the operators in `dyngraph/ops/distances.py`."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from tests.opinfo import OpInfo, call, normal


def p_norm(x: Any, p: float) -> Any:
    return jnp.sum(jnp.abs(x) ** p, -1) ** (1 / p)


def distances(a: Any, b: Any, p: float = 2.0, compute_mode: Any = None) -> Any:
    return p_norm(a[..., :, None, :] - b[..., None, :, :], p)


def of_pairs(x: Any, p: float = 2.0) -> Any:
    rows, columns = np.triu_indices(x.shape[0], 1)
    return p_norm(x[rows] - x[columns], p)


ROWS: list[OpInfo] = [
    OpInfo(
        "cdist",
        [
            call(normal(2, 3, 4), normal(2, 4)),
            call(normal(3, 4), normal(2, 4), compute_mode="use_mm_for_euclid_dist"),
        ],
        distances,
    ),
    OpInfo("cdist", [call(normal(3, 4), normal(2, 4), 3.0)], distances),
    OpInfo("pdist", [call(normal(4, 3)), call(normal(4, 3), 1.0)], of_pairs),
    OpInfo(
        "pairwise_distance",
        [call(normal(3, 4), normal(4), p=3.0, eps=0.01)],
        lambda a, b, p, eps: p_norm(a - b + eps, p),
    ),
    OpInfo("dist", [call(normal(2, 3), normal(3))], lambda a, b: p_norm((a - b).reshape(-1), 2.0)),
]
