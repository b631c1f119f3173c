"""Circular and hyperbolic functions of each element, their inverses, and units of angles."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
from jax import lax

from dyngraph.ops.operator import define

sin = define(
    "sin",
    lambda self: jnp.sin(self),
    self=lambda grad, self: grad * jnp.conj(jnp.cos(self)),
    doc="""The sine of an angle in radians.

    >>> dg.sin(dg.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8415])
    """,
)

cos = define(
    "cos",
    lambda self: jnp.cos(self),
    self=lambda grad, self: -grad * jnp.conj(jnp.sin(self)),
    doc="""The cosine of an angle in radians.

    >>> dg.cos(dg.tensor([0.0, 1.0]))
    tensor([1.0000, 0.5403])
    """,
)

tan = define(
    "tan",
    lambda self: jnp.tan(self),
    self=lambda grad, result: grad * jnp.conj(1 + result * result),
    doc="""The tangent of an angle in radians.

    >>> dg.tan(dg.tensor([0.0, 1.0]))
    tensor([0.0000, 1.5574])
    """,
)

asin = define(
    "asin",
    lambda self: jnp.arcsin(self),
    self=lambda grad, self: grad * jnp.conj(lax.rsqrt(1 - self * self)),
    doc="""The angle whose sine is `input`, NaN outside [-1, 1].

    >>> dg.asin(dg.tensor([0.0, 1.0]))
    tensor([0.0000, 1.5708])
    """,
)

acos = define(
    "acos",
    lambda self: jnp.arccos(self),
    self=lambda grad, self: -grad * jnp.conj(lax.rsqrt(1 - self * self)),
    doc="""The angle whose cosine is `input`, NaN outside [-1, 1].

    >>> dg.acos(dg.tensor([0.0, 1.0]))
    tensor([1.5708, 0.0000])
    """,
)

atan = define(
    "atan",
    lambda self: jnp.arctan(self),
    self=lambda grad, self: grad / jnp.conj(1 + self * self),
    doc="""The angle whose tangent is `input`.

    >>> dg.atan(dg.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7854])
    """,
)


def _over_square(numerator: Any, self: Any, other: Any) -> Any:
    """Over the squared distance from the origin, where the gradient is taken for 0."""
    square = self * self + other * other
    return jnp.where(square == 0, 0, numerator / jnp.where(square == 0, 1, square))


atan2 = define(
    "atan2",
    lambda self, other: jnp.arctan2(self, other),
    self=lambda grad, self, other: _over_square(grad * other, self, other),
    other=lambda grad, self, other: _over_square(-grad * self, self, other),
    doc="""The angle of the point (other, input) in the plane.

    >>> dg.atan2(dg.tensor([1.0]), dg.tensor([-1.0]))
    tensor([2.3562])
    """,
)

sinh = define(
    "sinh",
    lambda self: jnp.sinh(self),
    self=lambda grad, self: grad * jnp.conj(jnp.cosh(self)),
    doc="""The hyperbolic sine.

    >>> dg.sinh(dg.tensor([0.0, 1.0]))
    tensor([0.0000, 1.1752])
    """,
)

cosh = define(
    "cosh",
    lambda self: jnp.cosh(self),
    self=lambda grad, self: grad * jnp.conj(jnp.sinh(self)),
    doc="""The hyperbolic cosine.

    >>> dg.cosh(dg.tensor([0.0, 1.0]))
    tensor([1.0000, 1.5431])
    """,
)

tanh = define(
    "tanh",
    lambda self: jnp.tanh(self),
    self=lambda grad, result: grad * jnp.conj(1 - result * result),
    doc="""The hyperbolic tangent, between -1 and 1.

    >>> dg.tanh(dg.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7616])
    """,
)

asinh = define(
    "asinh",
    lambda self: jnp.arcsinh(self),
    self=lambda grad, self: grad * jnp.conj(lax.rsqrt(self * self + 1)),
    doc="""The inverse of `sinh`.

    >>> dg.asinh(dg.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8814])
    """,
)

acosh = define(
    "acosh",
    lambda self: jnp.arccosh(self),
    self=lambda grad, self: grad * jnp.conj(lax.rsqrt(self - 1) * lax.rsqrt(self + 1)),
    doc="""The inverse of `cosh`, NaN below 1.

    >>> dg.acosh(dg.tensor([1.0, 2.0]))
    tensor([0.0000, 1.3170])
    """,
)

atanh = define(
    "atanh",
    lambda self: jnp.arctanh(self),
    self=lambda grad, self: grad / jnp.conj(1 - self * self),
    doc="""The inverse of `tanh`, infinite at -1 and 1.

    >>> dg.atanh(dg.tensor([0.0, 0.5]))
    tensor([0.0000, 0.5493])
    """,
)

deg2rad = define(
    "deg2rad",
    lambda self: jnp.deg2rad(self),
    self=lambda grad: grad * (math.pi / 180),
    doc="""Degrees as radians.

    >>> dg.deg2rad(dg.tensor([180.0]))
    tensor([3.1416])
    """,
)

rad2deg = define(
    "rad2deg",
    lambda self: jnp.rad2deg(self),
    self=lambda grad: grad * (180 / math.pi),
    doc="""Radians as degrees.

    >>> dg.rad2deg(dg.tensor([3.1415927]))
    tensor([180.])
    """,
)

arcsin, arccos, arctan, arctan2 = asin, acos, atan, atan2
arcsinh, arccosh, arctanh = asinh, acosh, atanh


__all__ = [
    "acos",
    "acosh",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cos",
    "cosh",
    "deg2rad",
    "rad2deg",
    "sin",
    "sinh",
    "tan",
    "tanh",
]

METHODS = tuple(__all__)
"""The functions of this file that are methods of Tensor too."""
