"""Rows of the operators in `dyngraph/ops/special.py`."""

from __future__ import annotations

import jax.numpy as jnp
from jax.scipy import special

from tests.opinfo import OpInfo, between, normal, positive, spread, unary

DOMAIN = positive(2, 3)
UNIT = between(-0.9, 0.9, 2, 3)
NO_TIES = spread(2, 3)

ROWS: list[OpInfo] = [
    unary("erf", special.erf, normal(2, 3)),
    unary("erfc", special.erfc, normal(2, 3)),
    unary("erfinv", special.erfinv, UNIT, rtol=1e-3),
    unary("lgamma", special.gammaln, DOMAIN),
    unary("digamma", special.digamma, DOMAIN),
    unary("sinc", jnp.sinc, NO_TIES),
    unary("logit", special.logit, between(0.1, 0.9, 2, 3)),
]
