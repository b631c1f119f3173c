"""Rows of the operators in `dyngraph/ops/bessel_functions.py`.

The references are integrals, from NIST's handbook (https://dlmf.nist.gov/10), by quadrature: they
share nothing with the approximations that the operators are.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy import special

from tests.opinfo import OpInfo, call, normal, unary
from tests.references import kept_dtype

NEAR_AND_FAR = np.array([0.7, 3.1, 6.4], np.float32)  # the approximations change at 2 and 5
BOTH_SIDES = np.array([[-6.4, -0.3], [2.2, 5.5]], np.float32)
ANGLES = 2 * np.pi * np.arange(48) / 48
HALF_LINE = 0.1 * np.arange(61)
NODES, WEIGHTS = np.polynomial.legendre.leggauss(48)


def j(order: int, x: Any) -> Any:
    """The mean of cos(n a - x sin(a)) over a turn (10.9.2)."""
    return jnp.cos(order * ANGLES - x[..., None] * np.sin(ANGLES)).mean(-1)


def y0(x: Any) -> Any:
    """Neumann's series (10.8.3)."""
    waves = sum((-1) ** k / k * j(2 * k, x) for k in range(1, 12))
    return 2 / math.pi * ((jnp.log(x / 2) + np.euler_gamma) * j(0, x) - 2 * waves)


def y1(x: Any) -> Any:
    return -jax.jvp(y0, (x,), (jnp.ones_like(x),))[1]


def k(order: int, x: Any, scale: float = 0) -> Any:
    """The integral of cosh(n t) exp(-x cosh(t)) over t from 0 on (10.32.9)."""
    values = jnp.exp(-x[..., None] * (np.cosh(HALF_LINE) - scale)) * np.cosh(order * HALF_LINE)
    return 0.1 * (values.sum(-1) - values[..., 0] / 2)


def airy(x: Any) -> Any:
    """The integral of cos(t^3 / 3 + x t), on a path where it decays (9.5.4)."""
    turned = np.exp(1j * np.pi / 6)
    t = (3 + 3 * NODES) * turned
    values = jnp.exp(1j * (t**3 / 3 + x[..., None] * t)) * turned * 3 * WEIGHTS
    return jnp.real(values.sum(-1)) / np.pi


ROWS: list[OpInfo] = [
    unary("i0", special.i0, normal(2, 3)),
    unary("special.i0e", special.i0e, normal(2, 3)),
    unary("special.i1", special.i1, normal(2, 3)),
    unary("special.i1e", special.i1e, normal(2, 3), rtol=1e-3),
    unary("special.bessel_j0", kept_dtype(lambda x: j(0, x)), BOTH_SIDES),
    unary("special.bessel_j1", kept_dtype(lambda x: j(1, x)), BOTH_SIDES),
    unary("special.bessel_y0", kept_dtype(y0), NEAR_AND_FAR, rtol=1e-3),
    unary("special.bessel_y1", kept_dtype(y1), NEAR_AND_FAR, rtol=1e-3),
    unary("special.modified_bessel_k0", kept_dtype(lambda x: k(0, x)), NEAR_AND_FAR, rtol=1e-3),
    unary("special.modified_bessel_k1", kept_dtype(lambda x: k(1, x)), NEAR_AND_FAR, rtol=1e-3),
    unary(
        "special.scaled_modified_bessel_k0",
        kept_dtype(lambda x: k(0, x, 1)),
        NEAR_AND_FAR,
        rtol=1e-3,
    ),
    unary(
        "special.scaled_modified_bessel_k1",
        kept_dtype(lambda x: k(1, x, 1)),
        NEAR_AND_FAR,
        rtol=1e-3,
    ),
    OpInfo(
        "special.airy_ai",
        [call(np.array([-3.5, 0.4, 3.2], np.float32))],
        kept_dtype(airy),
        rtol=1e-3,
    ),
]
