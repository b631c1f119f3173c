"""Rows of the operators in `dyngraph/ops/normalization.py`."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from tests.opinfo import OpInfo, call, functional, normal
from tests.references import by_channel, scaled


def standard(x: Any, axes: Any, eps: float = 1e-5) -> Any:
    return (x - x.mean(axes, keepdims=True)) / jnp.sqrt(x.var(axes, keepdims=True) + eps)


def layer_norm(x: Any, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    return scaled(standard(x, tuple(range(-len(shape), 0)), eps), weight, bias)


def rms_norm(x: Any, shape: Any, weight: Any = None, eps: float = 1.1920929e-07) -> Any:
    axes = tuple(range(-len(shape), 0))
    return scaled(x / jnp.sqrt((x * x).mean(axes, keepdims=True) + eps), weight)


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


def statistics(x: Any, axis: int, eps: float) -> tuple[Any, Any]:
    """Mean and reciprocal deviation."""
    return x.mean(axis, keepdims=True), 1 / jnp.sqrt(x.var(axis, keepdims=True) + eps)


ROWS: list[OpInfo] = [
    OpInfo(
        "layer_norm",
        [
            call(normal(2, 3, 4), (4,)),
            call(normal(2, 3, 4), (3, 4), normal(3, 4)),
            call(normal(2, 4), (4,), normal(4), normal(4), 0.1),
        ],
        layer_norm,
        rtol=1e-3,
        atol=1e-4,
    ),
    OpInfo(
        "rms_norm",
        [call(normal(2, 3, 4), (4,)), call(normal(2, 3, 4), (3, 4), normal(3, 4), 0.1)],
        rms_norm,
    ),
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
    ),
    OpInfo(
        "native_layer_norm",
        [call(normal(2, 3), (3,), normal(3), normal(3), 1e-5)],
        lambda x, shape, w, b, eps: (
            layer_norm(x, shape, w, b, eps),
            *statistics(x, 1, eps),
        ),
        gradient=False,  # that of layer_norm; the statistics have none
    ),
    OpInfo(
        "native_group_norm",
        [call(normal(2, 4, 3), normal(4), normal(4), 2, 4, 3, 2, 1e-5)],
        lambda x, w, b, n, c, size, groups, eps: (
            group_norm(x, groups, w, b),
            *(s[..., 0] for s in statistics(x.reshape(n, groups, -1), 2, eps)),
        ),
        gradient=False,  # that of group_norm; the statistics have none
    ),
]
