"""Rows of the operators in `dyngraph/ops/piecewise_linear.py`."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from tests.opinfo import OpInfo, call, normal, spread, unary
from tests.references import clip

NO_TIES = spread(2, 3)

ROWS: list[OpInfo] = [
    OpInfo("threshold", [call(spread(2, 3), 0.1, 2.0)], lambda x, t, v: jnp.where(x > t, x, v)),
    unary("relu", jax.nn.relu, NO_TIES),
    unary("nn.functional.relu6", jax.nn.relu6, 10 * NO_TIES),
    OpInfo(
        "nn.functional.leaky_relu",
        [call(NO_TIES), call(NO_TIES, 0.2)],
        lambda x, slope=0.01: jnp.where(x > 0, x, slope * x),
    ),
    OpInfo(
        "nn.functional.hardtanh",
        [call(NO_TIES), call(NO_TIES, -0.1, 0.2)],
        lambda x, low=-1.0, high=1.0: clip(x, low, high),
    ),
    unary("nn.functional.hardsigmoid", jax.nn.hard_sigmoid, 10 * NO_TIES, second=False),
    OpInfo(
        "nn.functional.softshrink",
        [call(NO_TIES, 0.2)],
        lambda x, lambd: jnp.sign(x) * jnp.maximum(jnp.abs(x) - lambd, 0),
    ),
    OpInfo(
        "nn.functional.hardshrink",
        [call(NO_TIES, 0.2)],
        lambda x, lambd: jnp.where(jnp.abs(x) > lambd, x, 0),
    ),
    OpInfo(
        "prelu",
        [call(NO_TIES, np.array([0.2], np.float32))],
        lambda x, w: jnp.where(x > 0, x, w * x),
    ),
    OpInfo(
        "nn.functional.prelu",
        [call(spread(2, 3, 2), normal(3))],
        lambda x, w: jnp.where(x > 0, x, w[:, None] * x),
    ),
]
