"""Functions of statistics and physics: gamma, zeta, Bessel, the normal distribution, entropies.

Inputs of 16 bits are computed in float32, and integers become the default dtype, as in PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax.scipy import special

from dyngraph import dtypes
from dyngraph.ops.arguments import is_inexact, require_float, widened
from dyngraph.ops.operator import define
from dyngraph.ops.out import takes_out
from dyngraph.ops.special import digamma
from dyngraph.tensor import Tensor


def _floating(array: Any) -> Any:
    """Integers and bools in the default dtype."""
    return array if is_inexact(array) else array.astype(dtypes.get_default_dtype().dtype)


def _wide(function: Callable[..., Any]) -> Callable[[Any], Any]:
    """A function of one array, computed in float32 at least."""

    def kernel(self: Any) -> Any:
        self = _floating(self)
        return function(widened(self)).astype(self.dtype)

    kernel.__module__ = __name__
    return kernel


def _pair(a: Any, b: Any) -> tuple[Any, Any, Any]:
    """Both operands in one floating point dtype, at least float32; and the result's dtype."""
    dtype = jnp.result_type(a, b)
    if not jnp.issubdtype(dtype, jnp.inexact):
        dtype = dtypes.get_default_dtype().dtype
    return widened(a.astype(dtype)), widened(b.astype(dtype)), dtype


def _no_derivative(name: str) -> Callable[[Any], Any]:
    def rule(grad: Any) -> Any:
        raise NotImplementedError(
            f"the derivative for '{name}' is not implemented. Detach that input."
        )

    return rule


# --- Bessel functions -------------------------------------------------------------------------


def _i1_rule(grad: Any, self: Any, result: Any) -> Any:
    safe = jnp.where(self == 0, 1, self)
    return grad * jnp.where(self == 0, 0.5, special.i0(self) - result / safe)


def _i1e_rule(grad: Any, self: Any, result: Any) -> Any:
    safe = jnp.where(self == 0, 1, self)
    slope = special.i0e(self) - result * (jnp.sign(self) + 1 / safe)
    return grad * jnp.where(self == 0, 0.5, slope)


i0 = define(
    "i0",
    _wide(special.i0),
    self=lambda grad, self: grad * special.i1(self),
    doc="""The modified Bessel function of the first kind, of order 0.

    >>> dg.i0(dg.tensor([0.0, 1.0]))
    tensor([1.0000, 1.2661])
    """,
)

i0e = define(
    "special_i0e",
    _wide(special.i0e),
    node="SpecialI0EBackward0",
    self=lambda grad, self, result: grad * (special.i1e(self) - jnp.sign(self) * result),
    doc="""`i0(input) * exp(-abs(input))`, which does not overflow.

    >>> dg.special.i0e(dg.tensor([0.0, 1.0]))
    tensor([1.0000, 0.4658])
    """,
)

i1 = define(
    "special_i1",
    _wide(special.i1),
    self=_i1_rule,
    doc="""The modified Bessel function of the first kind, of order 1.

    >>> dg.special.i1(dg.tensor([0.0, 1.0]))
    tensor([0.0000, 0.5652])
    """,
)

i1e = define(
    "special_i1e",
    _wide(special.i1e),
    node="SpecialI1EBackward0",
    self=_i1e_rule,
    doc="""`i1(input) * exp(-abs(input))`, which does not overflow.

    >>> dg.special.i1e(dg.tensor([0.0, 1.0]))
    tensor([0.0000, 0.2079])
    """,
)


# --- the normal distribution ------------------------------------------------------------------

ndtr = define(
    "special_ndtr",
    _wide(special.ndtr),
    self=lambda grad, self: grad * jnp.exp(-self * self / 2) / math.sqrt(2 * math.pi),
    doc="""The probability that a standard normal variable is at most `input`.

    >>> dg.special.ndtr(dg.tensor([0.0, 1.0]))
    tensor([0.5000, 0.8413])
    """,
)

ndtri = define(
    "special_ndtri",
    _wide(special.ndtri),
    self=lambda grad, result: grad * math.sqrt(2 * math.pi) * jnp.exp(result * result / 2),
    doc="""The inverse of `ndtr`: infinite at 0 and 1, NaN outside.

    >>> dg.special.ndtri(dg.tensor([0.5, 0.25]))
    tensor([ 0.0000, -0.6745])
    """,
)

log_ndtr = define(
    "special_log_ndtr",
    _wide(special.log_ndtr),
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
    _wide(special.erfcx),
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
    _wide(_entr),
    self=lambda grad, self: -grad * (1 + jnp.log(self)),
    doc="""`-x log(x)`: 0 at 0, and -inf below.

    >>> dg.special.entr(dg.tensor([0.0, 0.5]))
    tensor([0.0000, 0.3466])
    """,
)


def _xlog1py(self: Any, other: Any) -> Any:
    self, other, dtype = _pair(self, other)
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
    self, other, dtype = _pair(self, other)
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
    self = _floating(self)
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
    self = _floating(self)
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
        a, x, dtype = _pair(self, other)
        return function(a, x).astype(dtype)

    kernel.__module__ = __name__
    return kernel


def _density(self: Any, other: Any) -> Any:
    """The derivative of `igamma` with respect to `other`."""
    a, x, _ = _pair(self, other)
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
    "i0",
    "igamma",
    "igammac",
    "mvlgamma",
    "polygamma",
]

METHODS = tuple(__all__)
"""The functions of this file that are methods of Tensor too."""
