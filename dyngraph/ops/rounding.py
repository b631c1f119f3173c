"""Rounding of each element, whose gradient is zero wherever it exists."""

from __future__ import annotations

import jax.numpy as jnp

from dyngraph.kernels import same
from dyngraph.ops.operator import define
from dyngraph.ops.rules import zero_gradient

floor = define(
    "floor",
    lambda self: jnp.floor(self),
    self=zero_gradient,
    elementwise=True,
    doc="""The greatest integer not above each element.

    >>> dg.floor(dg.tensor([1.5, -1.5]))
    tensor([ 1., -2.])
    """,
)

ceil = define(
    "ceil",
    lambda self: jnp.ceil(self),
    self=zero_gradient,
    elementwise=True,
    doc="""The least integer not below each element.

    >>> dg.ceil(dg.tensor([1.5, -1.5]))
    tensor([ 2., -1.])
    """,
)

round = define(
    "round",
    lambda self, *, decimals=0: jnp.round(self, decimals),
    signature="self, *, decimals=0",
    self=zero_gradient,
    elementwise=True,
    doc="""The nearest integer, or multiple of 10 ** -decimals; halves go to the even one.

    >>> dg.round(dg.tensor([0.5, 1.5]))
    tensor([0., 2.])
    """,
)

trunc = define(
    "trunc",
    lambda self: jnp.trunc(self),
    self=zero_gradient,
    elementwise=True,
    doc="""The integer part.

    >>> dg.trunc(dg.tensor([1.5, -1.5]))
    tensor([ 1., -1.])
    """,
)
fix = trunc

frac = define(
    "frac",
    lambda self: self - jnp.trunc(self),
    self=same,
    elementwise=True,
    doc="""The part behind the decimal point, with the sign of the element.

    >>> dg.frac(dg.tensor([1.5, -1.5]))
    tensor([ 0.5000, -0.5000])
    """,
)


__all__ = [
    "ceil",
    "fix",
    "floor",
    "frac",
    "round",
    "trunc",
]

METHODS = tuple(__all__)
"""The functions of this file that are methods of Tensor too."""
