"""Rows of the operators in `dyngraph/ops/activation.py`."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from tests.opinfo import OpInfo, call, functional, normal, spread, unary

NO_TIES = spread(2, 3)

ROWS: list[OpInfo] = [
    functional(
        "glu",
        [call(normal(2, 4)), call(normal(2, 3), 0)],
        lambda x, dim=-1: jnp.split(x, 2, dim)[0] * jax.nn.sigmoid(jnp.split(x, 2, dim)[1]),
    ),
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
    OpInfo("nn.functional.elu", [call(NO_TIES), call(NO_TIES, 0.5)], jax.nn.elu),
    OpInfo("nn.functional.celu", [call(NO_TIES), call(NO_TIES, 0.5)], jax.nn.celu),
    unary("nn.functional.selu", jax.nn.selu, NO_TIES),
    unary("nn.functional.hardswish", jax.nn.hard_swish, 10 * NO_TIES),
    unary("nn.functional.softsign", jax.nn.soft_sign, NO_TIES),
    unary("nn.functional.tanhshrink", lambda x: x - jnp.tanh(x), normal(2, 3)),
]
