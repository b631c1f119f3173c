"""Rows of the operators in `dyngraph/ops/normalization.py`."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from tests.opinfo import OpInfo, call, normal
from tests.references import scaled, standard, statistics


def layer_norm(x: Any, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    return scaled(standard(x, tuple(range(-len(shape), 0)), eps), weight, bias)


def rms_norm(x: Any, shape: Any, weight: Any = None, eps: float = 1.1920929e-07) -> Any:
    axes = tuple(range(-len(shape), 0))
    return scaled(x / jnp.sqrt((x * x).mean(axes, keepdims=True) + eps), weight)


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
        refuses_empty="expected input with shape",
    ),
    OpInfo(
        "rms_norm",
        [call(normal(2, 3, 4), (4,)), call(normal(2, 3, 4), (3, 4), normal(3, 4), 0.1)],
        rms_norm,
        refuses_empty="expected input with shape",
    ),
    OpInfo(
        "native_layer_norm",
        [call(normal(2, 3), (3,), normal(3), normal(3), 1e-5)],
        lambda x, shape, w, b, eps: (
            layer_norm(x, shape, w, b, eps),
            *statistics(x, 1, eps),
        ),
        gradient=False,  # that of layer_norm; the statistics have none
        refuses_empty="expected input with shape",
    ),
]
