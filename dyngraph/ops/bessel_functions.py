"""Bessel functions of orders 0 and 1, and the Airy function.

Inputs of 16 bits are computed in float32, and integers become the default dtype. PyTorch has no
derivatives of those that are not modified ones of the first kind; here all have them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy import special

from dyngraph.ops import cephes
from dyngraph.ops.arguments import computed_wide
from dyngraph.ops.operator import define


def _give_slope(function: Any, slope: Callable[[Any], Any]) -> None:
    """The derivative of a function of one array, in place of that of its approximation."""
    function.defjvp(lambda at, along: (function(*at), along[0] * slope(*at)))


# --- modified, of the first kind --------------------------------------------------------------


def _i1_rule(grad: Any, self: Any, result: Any) -> Any:
    safe = jnp.where(self == 0, 1, self)
    return grad * jnp.where(self == 0, 0.5, special.i0(self) - result / safe)


def _i1e_rule(grad: Any, self: Any, result: Any) -> Any:
    safe = jnp.where(self == 0, 1, self)
    slope = special.i0e(self) - result * (jnp.sign(self) + 1 / safe)
    return grad * jnp.where(self == 0, 0.5, slope)


i0 = define(
    "i0",
    computed_wide(special.i0, __name__),
    self=lambda grad, self: grad * special.i1(self),
    doc="""The modified Bessel function of the first kind, of order 0.

    >>> dg.i0(dg.tensor([0.0, 1.0]))
    tensor([1.0000, 1.2661])
    """,
)

i0e = define(
    "special_i0e",
    computed_wide(special.i0e, __name__),
    node="SpecialI0EBackward0",
    self=lambda grad, self, result: grad * (special.i1e(self) - jnp.sign(self) * result),
    doc="""`i0(input) * exp(-abs(input))`, which does not overflow.

    >>> dg.special.i0e(dg.tensor([0.0, 1.0]))
    tensor([1.0000, 0.4658])
    """,
)

i1 = define(
    "special_i1",
    computed_wide(special.i1, __name__),
    self=_i1_rule,
    doc="""The modified Bessel function of the first kind, of order 1.

    >>> dg.special.i1(dg.tensor([0.0, 1.0]))
    tensor([0.0000, 0.5652])
    """,
)

i1e = define(
    "special_i1e",
    computed_wide(special.i1e, __name__),
    node="SpecialI1EBackward0",
    self=_i1e_rule,
    doc="""`i1(input) * exp(-abs(input))`, which does not overflow.

    >>> dg.special.i1e(dg.tensor([0.0, 1.0]))
    tensor([0.0000, 0.2079])
    """,
)


# --- of the first and the second kind ---------------------------------------------------------


_AMPLITUDES = (
    ((cephes.EVEN0_ABOVE, cephes.EVEN0_BELOW), (cephes.ODD0_ABOVE, cephes.ODD0_BELOW)),
    ((cephes.EVEN1_ABOVE, cephes.EVEN1_BELOW), (cephes.ODD1_ABOVE, cephes.ODD1_BELOW)),
)


def _wave(x: Any, order: int) -> tuple[Any, Any]:
    """J and Y of x above 5: waves of a slowly varying amplitude and phase."""
    even, odd = _AMPLITUDES[order]
    x = jnp.maximum(x, 5.0)
    u = 5 / x
    p, q = cephes.ratio(u * u, *even), u * cephes.ratio(u * u, *odd)
    angle = x - (0.25 + 0.5 * order) * math.pi
    scale = jnp.sqrt(2 / math.pi / x)
    sine, cosine = jnp.sin(angle), jnp.cos(angle)
    return scale * (p * cosine - q * sine), scale * (p * sine + q * cosine)


@jax.custom_jvp
def _j0(x: Any) -> Any:
    size = jnp.abs(x)
    z = jnp.minimum(size, 5.0) ** 2
    near = (z - 5.78318596294678452118) * (z - 30.4712623436620863991)  # the first two zeros
    near = near * cephes.ratio(z, cephes.J0_ABOVE, cephes.J0_BELOW)
    return jnp.where(size <= 5, near, _wave(size, 0)[0])


_give_slope(_j0, lambda x: -_j1(x))


def _j1_by_x(x: Any) -> Any:
    """J1(x) / x, which is even and has no gap at 0."""
    size = jnp.abs(x)
    z = jnp.minimum(size, 5.0) ** 2
    near = (z - 14.6819706421238932572) * (z - 49.2184563216946036703)
    near = near * cephes.ratio(z, cephes.J1_ABOVE, cephes.J1_BELOW)
    return jnp.where(size <= 5, near, _wave(size, 1)[0] / jnp.maximum(size, 5.0))


@jax.custom_jvp
def _j1(x: Any) -> Any:
    return x * _j1_by_x(x)


_give_slope(_j1, lambda x: _j0(x) - _j1_by_x(x))


@jax.custom_jvp
def _y0(x: Any) -> Any:
    low = jnp.clip(x, 0.0, 5.0)
    near = cephes.ratio(low * low, cephes.Y0_ABOVE, cephes.Y0_BELOW)
    near = near + 2 / math.pi * jnp.log(low) * _j0(low)
    return jnp.where(x < 0, jnp.nan, jnp.where(x <= 5, near, _wave(x, 0)[1]))


_give_slope(_y0, lambda x: -_y1(x))


@jax.custom_jvp
def _y1(x: Any) -> Any:
    low = jnp.where(x > 0, jnp.minimum(x, 5.0), 1.0)
    near = low * cephes.ratio(low * low, cephes.Y1_ABOVE, cephes.Y1_BELOW)
    near = near + 2 / math.pi * (jnp.log(low) * _j1(low) - 1 / low)
    beyond = jnp.where(x == 0, -jnp.inf, jnp.nan)
    return jnp.where(x > 0, jnp.where(x <= 5, near, _wave(x, 1)[1]), beyond)


_give_slope(_y1, lambda x: _y0(x) - _y1(x) / x)


# --- modified, of the second kind -------------------------------------------------------------


@jax.custom_jvp
def _k0e(x: Any) -> Any:
    """K0(x) exp(x)."""
    low = jnp.where(x > 0, jnp.minimum(x, 2.0), 1.0)
    near = cephes.chebyshev_series(low * low - 2, cephes.K0_NEAR)
    near = (near - jnp.log(low / 2) * special.i0(low)) * jnp.exp(low)
    high = jnp.maximum(x, 2.0)
    far = cephes.chebyshev_series(8 / high - 2, cephes.K0_FAR) / jnp.sqrt(high)
    return _from_infinity(x, jnp.where(x <= 2, near, far))


_give_slope(_k0e, lambda x: _k0e(x) - _k1e(x))


@jax.custom_jvp
def _k1e(x: Any) -> Any:
    """K1(x) exp(x)."""
    low = jnp.where(x > 0, jnp.minimum(x, 2.0), 1.0)
    near = cephes.chebyshev_series(low * low - 2, cephes.K1_NEAR) / low
    near = (near + jnp.log(low / 2) * special.i1(low)) * jnp.exp(low)
    high = jnp.maximum(x, 2.0)
    far = cephes.chebyshev_series(8 / high - 2, cephes.K1_FAR) / jnp.sqrt(high)
    return _from_infinity(x, jnp.where(x <= 2, near, far))


_give_slope(_k1e, lambda x: _k1e(x) - _k0e(x) - _k1e(x) / x)


@jax.custom_jvp
def _k0(x: Any) -> Any:
    return _k0e(x) * jnp.exp(-x)


@jax.custom_jvp
def _k1(x: Any) -> Any:
    return _k1e(x) * jnp.exp(-x)


_give_slope(_k0, lambda x: -_k1(x))
_give_slope(_k1, lambda x: -_k0(x) - _k1(x) / x)


def _from_infinity(x: Any, above: Any) -> Any:
    """What is infinite at 0, and NaN before."""
    return jnp.where(x > 0, above, jnp.where(x == 0, jnp.inf, jnp.nan))


# --- the Airy function ------------------------------------------------------------------------


def _powers_of_cubes(first: int, count: int = 16) -> list[float]:
    """The coefficients of x^(3k + first), from the last on, of what solves y'' = xy."""
    values = [1.0]
    for k in range(1, count):
        n = 3 * k + first
        values.append(values[-1] / (n * (n - 1)))
    return values[::-1]


_AT_0, _MINUS_SLOPE_AT_0 = 0.355028053887817239260, 0.258819403792806798405


def _airy(x: Any) -> Any:
    is_near = jnp.abs(x) <= 2.09
    middle = jnp.where(is_near, x, 0)
    cube = middle**3
    near = _AT_0 * cephes.power_series(cube, _powers_of_cubes(0))
    near = near - _MINUS_SLOPE_AT_0 * middle * cephes.power_series(cube, _powers_of_cubes(1))
    size = jnp.where(is_near, 2.09, jnp.abs(x))
    zeta = size * jnp.sqrt(size) * (2 / 3)
    amplitude = 1 / jnp.sqrt(math.pi * jnp.sqrt(size))
    z = 1 / zeta
    after = cephes.ratio(z, cephes.AIRY_ABOVE, cephes.AIRY_BELOW) * jnp.exp(-zeta) / 2
    sine = 1 + z * z * cephes.ratio(z * z, cephes.AIRY_SINE_ABOVE, cephes.AIRY_SINE_BELOW)
    cosine = z * cephes.ratio(z * z, cephes.AIRY_COSINE_ABOVE, cephes.AIRY_COSINE_BELOW)
    angle = zeta + math.pi / 4
    before = jnp.sin(angle) * sine - jnp.cos(angle) * cosine
    far = amplitude * jnp.where(x > 0, after, before)
    return jnp.where(jnp.isinf(x), jnp.nan, jnp.where(is_near, near, far))


bessel_j0 = define(
    "special_bessel_j0",
    computed_wide(_j0, __name__),
    doc="""The Bessel function of the first kind, of order 0.

    >>> dg.special.bessel_j0(dg.tensor([0.0, 1.0]))
    tensor([1.0000, 0.7652])
    """,
)

bessel_j1 = define(
    "special_bessel_j1",
    computed_wide(_j1, __name__),
    doc="""The Bessel function of the first kind, of order 1.

    >>> dg.special.bessel_j1(dg.tensor([0.0, 1.0]))
    tensor([0.0000, 0.4401])
    """,
)

bessel_y0 = define(
    "special_bessel_y0",
    computed_wide(_y0, __name__),
    doc="""The Bessel function of the second kind, of order 0: -inf at 0, NaN before.

    >>> dg.special.bessel_y0(dg.tensor([1.0, 2.0]))
    tensor([0.0883, 0.5104])
    """,
)

bessel_y1 = define(
    "special_bessel_y1",
    computed_wide(_y1, __name__),
    doc="""The Bessel function of the second kind, of order 1: -inf at 0, NaN before.

    >>> dg.special.bessel_y1(dg.tensor([1.0, 2.0]))
    tensor([-0.7812, -0.1070])
    """,
)

modified_bessel_k0 = define(
    "special_modified_bessel_k0",
    computed_wide(_k0, __name__),
    doc="""The modified Bessel function of the second kind, of order 0: inf at 0, NaN before.

    >>> dg.special.modified_bessel_k0(dg.tensor([1.0, 2.0]))
    tensor([0.4210, 0.1139])
    """,
)

modified_bessel_k1 = define(
    "special_modified_bessel_k1",
    computed_wide(_k1, __name__),
    doc="""The modified Bessel function of the second kind, of order 1: inf at 0, NaN before.

    >>> dg.special.modified_bessel_k1(dg.tensor([1.0, 2.0]))
    tensor([0.6019, 0.1399])
    """,
)

scaled_modified_bessel_k0 = define(
    "special_scaled_modified_bessel_k0",
    computed_wide(_k0e, __name__),
    doc="""`modified_bessel_k0(input) * exp(input)`, which does not underflow.

    >>> dg.special.scaled_modified_bessel_k0(dg.tensor([1.0, 2.0]))
    tensor([1.1445, 0.8416])
    """,
)

scaled_modified_bessel_k1 = define(
    "special_scaled_modified_bessel_k1",
    computed_wide(_k1e, __name__),
    doc="""`modified_bessel_k1(input) * exp(input)`, which does not underflow.

    >>> dg.special.scaled_modified_bessel_k1(dg.tensor([1.0, 2.0]))
    tensor([1.6362, 1.0335])
    """,
)

airy_ai = define(
    "special_airy_ai",
    computed_wide(_airy, __name__),
    doc="""The Airy function Ai, which solves y'' = xy and falls for positive `input`.

    >>> dg.special.airy_ai(dg.tensor([0.0, 1.0]))
    tensor([0.3550, 0.1353])
    """,
)


__all__ = ["i0"]

METHODS = tuple(__all__)
"""The functions of this file that are methods of Tensor too."""
