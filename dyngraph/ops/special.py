"""Special functions of each element: the error function, the gamma function, `sinc`, `logit`."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy import special

from dyngraph.ops.operator import define

erf = define(
    "erf",
    lambda self: special.erf(self),
    self=lambda grad, self: grad * (2 / math.sqrt(math.pi)) * jnp.exp(-self * self),
    doc="""The error function, between -1 and 1.

    >>> dg.erf(dg.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8427])
    """,
)

erfc = define(
    "erfc",
    lambda self: special.erfc(self),
    self=lambda grad, self: -grad * (2 / math.sqrt(math.pi)) * jnp.exp(-self * self),
    doc="""`1 - erf(input)`, exact for large input.

    >>> dg.erfc(dg.tensor([0.0, 1.0]))
    tensor([1.0000, 0.1573])
    """,
)

erfinv = define(
    "erfinv",
    lambda self: special.erfinv(self),
    self=lambda grad, result: grad * (math.sqrt(math.pi) / 2) * jnp.exp(result * result),
    doc="""The inverse of `erf`, infinite at -1 and 1.

    >>> dg.erfinv(dg.tensor([0.0, 0.5]))
    tensor([0.0000, 0.4769])
    """,
)


@jax.custom_jvp
def _digamma(x: Any) -> Any:
    return special.digamma(x)


@_digamma.defjvp
def _digamma_jvp(primals: tuple[Any], tangents: tuple[Any]) -> tuple[Any, Any]:
    # JAX's polygamma is wrong below 0: by reflection (https://dlmf.nist.gov/5.15.E6).
    (x,), (tangent,) = primals, tangents
    below = x < 0
    value = special.polygamma(1, jnp.where(below, 1 - x, x))
    negative = jnp.where(below, x, 0.25)
    reflected = (math.pi / jnp.sin(math.pi * (negative - jnp.round(negative)))) ** 2 - value
    return _digamma(x), tangent * jnp.where(below, reflected, value)


lgamma = define(
    "lgamma",
    lambda self: special.gammaln(self),
    self=lambda grad, self: grad * _digamma(self),
    doc="""The logarithm of the absolute value of the gamma function.

    >>> dg.lgamma(dg.tensor([3.0, 5.0]))
    tensor([0.6931, 3.1781])
    """,
)

digamma = define(
    "digamma",
    lambda self: jnp.where(self == 0, jnp.copysign(jnp.inf, -self), _digamma(self)),
    doc="""The derivative of `lgamma`.

    >>> dg.digamma(dg.tensor([1.0]))
    tensor([-0.5772])
    """,
)

sinc = define(
    "sinc",
    lambda self: jnp.sinc(self),
    doc="""`sin(pi x) / (pi x)`, and 1 at 0.

    >>> dg.sinc(dg.tensor([0.0, 0.5]))
    tensor([1.0000, 0.6366])
    """,
)

logit = define(
    "logit",
    lambda self, *, eps=None: special.logit(self if eps is None else jnp.clip(self, eps, 1 - eps)),
    doc="""`log(x / (1 - x))`, the inverse of `sigmoid`; `eps` keeps x inside [eps, 1 - eps].

    >>> dg.logit(dg.tensor([0.5, 0.75]))
    tensor([0.0000, 1.0986])
    """,
)


__all__ = [
    "digamma",
    "erf",
    "erfc",
    "erfinv",
    "lgamma",
    "logit",
    "sinc",
]

METHODS = tuple(__all__)
"""The functions of this file that are methods of Tensor too."""
