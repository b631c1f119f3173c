"""Rows of the operators in `dyngraph/ops/gamma_functions.py`."""

from __future__ import annotations

import jax.numpy as jnp
from jax.scipy import special

from tests.opinfo import OpInfo, between, call, normal, positive, unary, wide

DOMAIN = positive(2, 3)
UNIT = between(0.1, 0.9, 2, 3)

ROWS: list[OpInfo] = [
    unary("special.ndtr", wide(special.ndtr), normal(2, 3)),
    unary("special.ndtri", wide(special.ndtri), UNIT, rtol=1e-3),
    unary("special.log_ndtr", wide(special.log_ndtr), normal(2, 3), rtol=1e-3),
    # JAX 0.12 has no second derivative of its own erfcx of arrays.
    unary(
        "special.erfcx",
        wide(lambda x: jnp.exp(x * x) * special.erfc(x)),
        normal(2, 3),
        rtol=1e-3,
    ),
    unary("special.entr", special.entr, DOMAIN),
    OpInfo(
        "special.xlog1py",
        [call(normal(2, 3), DOMAIN[0])],
        special.xlog1py,
        broadcasts=True,
    ),
    # no derivative for the exponent, so that it is a number here
    OpInfo("special.zeta", [call(2.5, DOMAIN)], special.zeta, rtol=1e-3),
    OpInfo(
        "polygamma",
        [call(1, DOMAIN)],
        lambda n, x: special.polygamma(jnp.int32(n), x),
        rtol=1e-3,
    ),
    OpInfo("mvlgamma", [call(2 + DOMAIN, 3)], special.multigammaln),
    # the second derivative by the first argument is a derivative of a loop, which JAX has not
    OpInfo(
        "igamma",
        [call(DOMAIN, UNIT)],
        special.gammainc,
        second=False,
        rtol=1e-3,
        broadcasts=True,
    ),
    OpInfo(
        "igammac",
        [call(DOMAIN, UNIT)],
        special.gammaincc,
        second=False,
        rtol=1e-3,
        broadcasts=True,
    ),
]
