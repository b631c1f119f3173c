"""Rows of the operators in `dyngraph/ops/trigonometry.py`."""

from __future__ import annotations

import jax.numpy as jnp

from tests.opinfo import OpInfo, between, binary, call, complex_normal, normal, positive, unary

DOMAIN = positive(2, 3)
UNIT = between(-0.9, 0.9, 2, 3)
COMPLEX = complex_normal(2, 3)

ROWS: list[OpInfo] = [
    unary("sin", jnp.sin, normal(2, 3), call(COMPLEX)),
    unary("cos", jnp.cos, normal(2, 3), call(COMPLEX)),
    unary("tan", jnp.tan, UNIT),
    unary("asin", jnp.arcsin, UNIT),
    unary("acos", jnp.arccos, UNIT),
    unary("atan", jnp.arctan, normal(2, 3)),
    binary("atan2", jnp.arctan2, normal(2, 3), positive(2, 3)),
    unary("sinh", jnp.sinh, normal(2, 3)),
    unary("cosh", jnp.cosh, normal(2, 3)),
    unary("tanh", jnp.tanh, normal(2, 3), call(COMPLEX)),
    unary("asinh", jnp.arcsinh, normal(2, 3)),
    unary("acosh", jnp.arccosh, 1 + DOMAIN),
    unary("atanh", jnp.arctanh, UNIT),
    unary("deg2rad", jnp.deg2rad, normal(2, 3)),
    unary("rad2deg", jnp.rad2deg, normal(2, 3)),
]
