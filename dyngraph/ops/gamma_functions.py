"""Functions of statistics and physics: gamma, zeta, the normal distribution, entropies.

Inputs of 16 bits are computed in float32, and integers become the default dtype, as in PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax.scipy import special

from dyngraph.ops.arguments import (
    computed_wide,
    float_pair,
    floating,
    is_inexact,
    require_float,
    widened,
)
from dyngraph.ops.operator import define
from dyngraph.ops.out import takes_out
from dyngraph.ops.special import digamma
from dyngraph.tensor import Tensor


def _no_derivative(name: str) -> Callable[[Any], Any]:
    def rule(grad: Any) -> Any:
        raise NotImplementedError(
            f"the derivative for '{name}' is not implemented. Detach that input."
        )

    return rule


# --- the normal distribution ------------------------------------------------------------------

ndtr = define(
    "special_ndtr",
    computed_wide(special.ndtr, __name__),
    self=lambda grad, self: grad * jnp.exp(-self * self / 2) / math.sqrt(2 * math.pi),
    doc="""The probability that a standard normal variable is at most `input`.

    >>> dg.special.ndtr(dg.tensor([0.0, 1.0]))
    tensor([0.5000, 0.8413])
    """,
)

ndtri = define(
    "special_ndtri",
    computed_wide(special.ndtri, __name__),
    self=lambda grad, result: grad * math.sqrt(2 * math.pi) * jnp.exp(result * result / 2),
    doc="""The inverse of `ndtr`: infinite at 0 and 1, NaN outside.

    >>> dg.special.ndtri(dg.tensor([0.5, 0.25]))
    tensor([ 0.0000, -0.6745])
    """,
)

log_ndtr = define(
    "special_log_ndtr",
    computed_wide(special.log_ndtr, __name__),
    # exp(-x^2/2) / ndtr(x) by erfcx, as the ratio of the two underflows
    self=lambda grad, self: (
        grad * math.sqrt(2 / math.pi) / special.erfcx(widened(self) * -math.sqrt(0.5))
    ),
    doc="""The logarithm of `ndtr`, exact far below 0.

    >>> dg.special.log_ndtr(dg.tensor([0.0, -30.0]))
    tensor([  -0.6931, -454.3212])
    """,
)

erfcx = define(
    "special_erfcx",
    computed_wide(special.erfcx, __name__),
    self=lambda grad, self, result: grad * (2 * self * result - 2 / math.sqrt(math.pi)),
    doc="""`exp(input ** 2) * erfc(input)`.

    >>> dg.special.erfcx(dg.tensor([0.0, 1.0]))
    tensor([1.0000, 0.4276])
    """,
)


# --- entropies --------------------------------------------------------------------------------


def _entr(self: Any) -> Any:
    positive = self > 0
    inside = -self * jnp.log(jnp.where(positive, self, 1))
    return jnp.where(positive | jnp.isnan(self), inside, jnp.where(self == 0, 0, -jnp.inf))


entr = define(
    "special_entr",
    computed_wide(_entr, __name__),
    self=lambda grad, self: -grad * (1 + jnp.log(self)),
    doc="""`-x log(x)`: 0 at 0, and -inf below.

    >>> dg.special.entr(dg.tensor([0.0, 0.5]))
    tensor([0.0000, 0.3466])
    """,
)


def _xlog1py(self: Any, other: Any) -> Any:
    self, other, dtype = float_pair(self, other)
    product = self * jnp.log1p(jnp.where(self == 0, 0, other))
    return jnp.where(jnp.isnan(other), jnp.nan, product).astype(dtype)


xlog1py = define(
    "special_xlog1py",
    _xlog1py,
    node="SpecialXlog1PyBackward0",
    self=lambda grad, self, other: jnp.where(
        (self == 0) & (other <= -1), 0, grad * jnp.log1p(other)
    ),
    other=lambda grad, self, other: grad * self / (other + 1),
    doc="""`input * log1p(other)`, which is 0 where `input` is, unless `other` is NaN.

    >>> dg.special.xlog1py(dg.tensor([0.0, 2.0]), dg.tensor([-1.0, 1.0]))
    tensor([0.0000, 1.3863])
    """,
)


# --- gamma and zeta ---------------------------------------------------------------------------


def _zeta(self: Any, other: Any) -> Any:
    self, other, dtype = float_pair(self, other)
    return special.zeta(self, other).astype(dtype)


zeta = define(
    "special_zeta",
    _zeta,
    self=_no_derivative("special_zeta: self"),
    other=lambda grad, self, other: -grad * self * _zeta(self + 1.0, other),
    doc="""The Hurwitz zeta function, the sum of `(k + other) ** -input` over k = 0, 1, ...

    It has no derivative with respect to `input`: its backward raises NotImplementedError.

    >>> dg.special.zeta(dg.tensor([2.0]), 1.0)
    tensor([1.6449])
    """,
)


def _cotangent_derivative(n: int) -> list[int]:
    """The derivative of order `n` of `cot` as a polynomial of `cot`, lowest power first."""
    powers = [0, 1]
    for _ in range(n):
        slope = [k * c for k, c in enumerate(powers)][1:]
        powers = [-a - b for a, b in zip([*slope, 0, 0], [0, 0, *slope], strict=True)]
    return powers


def _polygamma(self: Any, *, n: int) -> Any:
    """`(-1)^(n+1) n! zeta(n+1, x)` (https://dlmf.nist.gov/25.11.E12), and below 0 by reflection
    (https://dlmf.nist.gov/5.15.E6), since JAX's zeta is right only just below 0."""
    self = floating(self)
    x = widened(self)
    below, pole = x < 0, (x <= 0) & (x == jnp.round(x))
    factor = math.gamma(n + 1) * (1 if n % 2 else -1)
    order = jnp.asarray(n + 1.0, x.dtype)
    value = factor * special.zeta(order, jnp.where(pole, 1, jnp.where(below, 1 - x, x)))
    inside = jnp.where(below & ~pole, x, 0.25)
    cotangent = 1 / jnp.tan(math.pi * (inside - jnp.round(inside)))
    reflected = math.pi ** (n + 1) * sum(
        c * cotangent**k for k, c in enumerate(_cotangent_derivative(n)) if c
    )
    value = jnp.where(below, (-1) ** n * value - reflected, value)
    return jnp.where(pole, math.copysign(jnp.inf, factor), value).astype(self.dtype)


_polygamma_of = define(
    "polygamma",
    _polygamma,
    signature="n, self",
    self=lambda grad, self, n: grad * _polygamma(self, n=n + 1),
)


@takes_out
def polygamma(n: Any, input: Any) -> Tensor:
    """The derivative of order `n` of `digamma`; `x.polygamma(n)` as a method.

    Raises RuntimeError for negative `n`.

    >>> dg.polygamma(1, dg.tensor([1.0]))
    tensor([1.6449])
    """
    if isinstance(n, Tensor) and (not isinstance(input, Tensor) or n.is_floating_point()):
        n, input = input, n
    order = int(n)
    if order < 0:
        raise RuntimeError(
            f"polygamma(n, x) does not support negative n, got {order}. Pass an order from 0 on."
        )
    return _polygamma_of(order, input) if order else digamma(input)


def _mvlgamma(self: Any, *, p: int) -> Any:
    if p < 1:
        raise RuntimeError(f"p has to be greater than or equal to 1, got {p}. Pass a dimension.")
    self = floating(self)
    halves = -0.5 * jnp.arange(p, dtype=widened(self).dtype)
    total = jnp.sum(special.gammaln(widened(self)[..., None] + halves), -1)
    return (total + p * (p - 1) / 4 * math.log(math.pi)).astype(self.dtype)


mvlgamma = define(
    "mvlgamma",
    _mvlgamma,
    self=lambda grad, self, p: (
        grad * jnp.sum(special.digamma(widened(self)[..., None] - 0.5 * jnp.arange(p)), -1)
    ),
    doc="""The logarithm of the gamma function of dimension `p`, for inputs above (p - 1) / 2.

    Raises RuntimeError for `p` below 1.

    >>> dg.mvlgamma(dg.tensor([2.0]), 2)
    tensor([0.4516])
    """,
)


def _incomplete(name: str, function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    def kernel(self: Any, other: Any) -> Any:
        require_float(name, self if is_inexact(self) else other)
        a, x, dtype = float_pair(self, other)
        return function(a, x).astype(dtype)

    kernel.__module__ = __name__
    return kernel


def _density(self: Any, other: Any) -> Any:
    """The derivative of `igamma` with respect to `other`."""
    a, x, _ = float_pair(self, other)
    return jnp.exp((a - 1) * jnp.log(x) - x - special.gammaln(a))


igamma = define(
    "igamma",
    _incomplete("igamma", special.gammainc),
    other=lambda grad, self, other: grad * _density(self, other),
    doc="""The lower incomplete gamma function, from 0 to 1, of exponent `input` up to `other`.

    It is differentiable with respect to both, where PyTorch's is in `other` only.

    >>> dg.igamma(dg.tensor([1.0]), dg.tensor([1.0]))
    tensor([0.6321])
    """,
)

igammac = define(
    "igammac",
    _incomplete("igammac", special.gammaincc),
    other=lambda grad, self, other: -grad * _density(self, other),
    doc="""`1 - igamma(input, other)`, exact for large `other`.

    >>> dg.igammac(dg.tensor([1.0]), dg.tensor([1.0]))
    tensor([0.3679])
    """,
)


__all__ = [
    "igamma",
    "igammac",
    "mvlgamma",
    "polygamma",
]

METHODS = tuple(__all__)
"""The functions of this file that are methods of Tensor too."""
