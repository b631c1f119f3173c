"""Rows of the operators in `dyngraph/ops/channel_normalization.py`."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from tests.opinfo import OpInfo, call, functional, normal
from tests.references import by_channel, standard, statistics


def batch_norm(
    x: Any, mean: Any, var: Any, weight: Any = None, bias: Any = None, training: bool = False
) -> Any:
    if training:
        return by_channel(standard(x, (0, *range(2, x.ndim))), weight, bias)
    fixed = by_channel(x, None, -jax.lax.stop_gradient(mean))
    fixed = by_channel(fixed, 1 / jnp.sqrt(jax.lax.stop_gradient(var) + 1e-5))
    return by_channel(fixed, weight, bias)


def group_norm(x: Any, groups: int, weight: Any = None, bias: Any = None) -> Any:
    out = standard(x.reshape(x.shape[0], groups, -1), 2).reshape(x.shape)
    return by_channel(out, weight, bias)


ROWS: list[OpInfo] = [
    functional(
        "batch_norm",
        [
            call(normal(4, 3), None, None, training=True),
            call(normal(4, 3, 2), None, None, normal(3), normal(3), training=True),
        ],
        batch_norm,
        rtol=1e-3,
        atol=1e-4,
    ),
    OpInfo(
        "group_norm",
        [call(normal(2, 4), 2), call(normal(2, 4, 3), 2, normal(4), normal(4))],
        group_norm,
        rtol=1e-3,
        atol=1e-4,
        no_empty="the twin divides by the batch's size",
    ),
    OpInfo(
        "native_group_norm",
        [call(normal(2, 4, 3), normal(4), normal(4), 2, 4, 3, 2, 1e-5)],
        lambda x, w, b, n, c, size, groups, eps: (
            group_norm(x, groups, w, b),
            *(s[..., 0] for s in statistics(x.reshape(n, groups, -1), 2, eps)),
        ),
        second=False,  # that of group_norm
        rtol=1e-3,
        atol=1e-4,
        refuses_empty="expected N, C and HxW",
    ),
]
