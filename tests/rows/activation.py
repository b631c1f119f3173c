"""Rows of the operators in `dyngraph/ops/activation.py`."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from tests.opinfo import OpInfo, call, functional, normal, spread, unary
from tests.references import clip

NO_TIES = spread(2, 3)

ROWS: list[OpInfo] = [
    OpInfo("threshold", [call(spread(2, 3), 0.1, 2.0)], lambda x, t, v: jnp.where(x > t, x, v)),
    functional(
        "glu",
        [call(normal(2, 4)), call(normal(2, 3), 0)],
        lambda x, dim=-1: jnp.split(x, 2, dim)[0] * jax.nn.sigmoid(jnp.split(x, 2, dim)[1]),
    ),
    unary("relu", jax.nn.relu, NO_TIES),
    unary("nn.functional.relu6", jax.nn.relu6, 10 * NO_TIES),
    unary("sigmoid", jax.nn.sigmoid, normal(2, 3)),
    unary("nn.functional.logsigmoid", jax.nn.log_sigmoid, normal(2, 3)),
    OpInfo(
        "nn.functional.softplus",
        [call(normal(2, 3)), call(normal(3), beta=2, threshold=1)],
        lambda x, beta=1, threshold=20: jnp.where(
            beta * x > threshold, x, jnp.log1p(jnp.exp(beta * x)) / beta
        ),
    ),
    unary("nn.functional.silu", jax.nn.silu, normal(2, 3)),
    unary("nn.functional.mish", jax.nn.mish, normal(2, 3)),
    OpInfo(
        "nn.functional.gelu",
        [call(normal(2, 3)), call(normal(2, 3), approximate="tanh")],
        lambda x, approximate="none": jax.nn.gelu(x, approximate=approximate == "tanh"),
    ),
    OpInfo(
        "nn.functional.leaky_relu",
        [call(NO_TIES), call(NO_TIES, 0.2)],
        lambda x, slope=0.01: jnp.where(x > 0, x, slope * x),
    ),
    OpInfo("nn.functional.elu", [call(NO_TIES), call(NO_TIES, 0.5)], jax.nn.elu),
    OpInfo("nn.functional.celu", [call(NO_TIES), call(NO_TIES, 0.5)], jax.nn.celu),
    unary("nn.functional.selu", jax.nn.selu, NO_TIES),
    OpInfo(
        "nn.functional.hardtanh",
        [call(NO_TIES), call(NO_TIES, -0.1, 0.2)],
        lambda x, low=-1.0, high=1.0: clip(x, low, high),
    ),
    unary("nn.functional.hardsigmoid", jax.nn.hard_sigmoid, 10 * NO_TIES, second=False),
    unary("nn.functional.hardswish", jax.nn.hard_swish, 10 * NO_TIES),
    unary("nn.functional.softsign", jax.nn.soft_sign, NO_TIES),
    unary("nn.functional.tanhshrink", lambda x: x - jnp.tanh(x), normal(2, 3)),
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
