"""Rows of the operators in `dyngraph/ops/powers.py`."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.scipy import special

from tests.opinfo import OpInfo, binary, call, complex_normal, integers, normal, positive, unary

DOMAIN = positive(2, 3)
COMPLEX = complex_normal(2, 3)

ROWS: list[OpInfo] = [
    OpInfo(
        "pow",
        [
            call(positive(2, 3), normal(2, 3)),
            call(positive(2, 3), normal(3)),
            call(normal(2, 3), 2),
            call(normal(2, 3), 3.0),
            call(positive(3), -1),
            call(positive(3), 0.5),
            call(2.0, normal(3)),
            call(integers(4, 3), 2),
        ],
        jnp.power,
        broadcasts=True,
    ),
    OpInfo(
        "float_power",
        [call(positive(3), normal(3))],
        lambda x, y: jnp.float_power(x.astype(float), y.astype(float)),
        broadcasts=True,
    ),
    unary("reciprocal", lambda x: 1 / x, DOMAIN, call(COMPLEX)),
    unary("square", jnp.square, normal(2, 3), call(COMPLEX), call(integers(5, 2))),
    unary("exp", jnp.exp, normal(2, 3), call(COMPLEX), call(integers(3, 2))),
    unary("exp2", jnp.exp2, normal(2, 3)),
    unary("expm1", jnp.expm1, normal(2, 3)),
    unary("log", jnp.log, DOMAIN, call(COMPLEX)),
    unary("log2", jnp.log2, DOMAIN),
    unary("log10", jnp.log10, DOMAIN),
    unary("log1p", jnp.log1p, DOMAIN),
    unary("sqrt", jnp.sqrt, DOMAIN, call(COMPLEX)),
    unary("rsqrt", jax.lax.rsqrt, DOMAIN),
    binary("hypot", jnp.hypot, positive(2, 3), positive(2, 3)),
    binary("logaddexp", jnp.logaddexp, normal(2, 3), normal(2, 3)),
    binary("logaddexp2", jnp.logaddexp2, normal(2, 3), normal(2, 3)),
    binary("xlogy", special.xlogy, normal(2, 3), positive(2, 3)),
    OpInfo("vander", [call(normal(3)), call(normal(3), 2, True)], jnp.vander),
]
