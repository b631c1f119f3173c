"""Rows of the operators in `dyngraph/ops/local_normalization.py`."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from tests.opinfo import OpInfo, call, functional, normal
from tests.references import by_channel, standard


def instance_norm(x: Any, mean: Any, var: Any, weight: Any = None, bias: Any = None) -> Any:
    return by_channel(standard(x, tuple(range(2, x.ndim))), weight, bias)


def local_response(x: Any, size: int, alpha: float, beta: float, k: float) -> Any:
    channels = range(x.shape[1])
    squares = [
        (x[:, max(c - size // 2, 0) : c + (size - 1) // 2 + 1] ** 2).sum(1) for c in channels
    ]
    return x / (k + alpha / size * jnp.stack(squares, 1)) ** beta


ROWS: list[OpInfo] = [
    functional(
        "instance_norm",
        [call(normal(2, 3, 4), None, None, normal(3), normal(3))],
        instance_norm,
        rtol=1e-3,
        atol=1e-4,
    ),
    functional("local_response_norm", [call(normal(2, 5, 2), 4, 0.3, 0.75, 2.0)], local_response),
]
