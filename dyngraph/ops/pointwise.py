"""Operators that work element by element: arithmetic, comparison, functions of one number,
activations.

Inputs broadcast against each other; a gradient is summed back to its input's shape.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy import special

from dyngraph import dtypes
from dyngraph.ops.operator import define
from dyngraph.tensor import Tensor

# --- arithmetic -------------------------------------------------------------------------------

_add = define(
    "add",
    lambda self, other: jnp.add(self, other),
    self=lambda grad: grad,
    other=lambda grad: grad,
)
_add_scaled = define(
    "add",
    lambda self, other, alpha: jnp.add(self, alpha * other),
    self=lambda grad: grad,
    other=lambda grad, alpha: grad * jnp.conj(alpha),
    alpha=None,
)


def add(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """The sum `input + alpha * other`.

    >>> dg.add(dg.tensor([1.0, 2.0]), dg.tensor([3.0, 4.0]), alpha=10)
    tensor([31., 42.])
    """
    return _add(input, other) if alpha is _ONE else _add_scaled(input, other, alpha)


_ONE = 1  # the default alpha; CPython has one object of it


def _subtract(self: Any, other: Any, alpha: Any = None) -> Any:
    _refuse_bool("Subtraction, the `-` operator,", self, other)
    return jnp.subtract(self, other if alpha is None else alpha * other)


def _refuse_bool(what: str, *operands: Any) -> None:
    if any(jnp.asarray(x).dtype == jnp.bool_ for x in operands):
        raise RuntimeError(
            f"{what} with a bool tensor is not supported. If you are trying to invert a mask, use "
            "the `~` or `logical_not()` operator instead."
        )


_sub = define(
    "sub",
    lambda self, other: _subtract(self, other),
    self=lambda grad: grad,
    other=lambda grad: -grad,
)
_sub_scaled = define(
    "sub",
    _subtract,
    self=lambda grad: grad,
    other=lambda grad, alpha: -grad * jnp.conj(alpha),
    alpha=None,
)


def sub(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """The difference `input - alpha * other`; RuntimeError for bool tensors.

    >>> dg.sub(dg.tensor([3.0, 4.0]), 1.0)
    tensor([2., 3.])
    """
    return _sub(input, other) if alpha is _ONE else _sub_scaled(input, other, alpha)


def rsub(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """The difference the other way round, `other - alpha * input`.

    >>> dg.rsub(dg.tensor([3.0, 4.0]), 1.0)
    tensor([-2., -3.])
    """
    return sub(other, input, alpha=alpha)


mul = define(
    "mul",
    lambda self, other: jnp.multiply(self, other),
    self=lambda grad, other: grad * jnp.conj(other),
    other=lambda grad, self: grad * jnp.conj(self),
    doc="""The product of each pair of elements.

    >>> dg.mul(dg.tensor([1.0, 2.0]), dg.tensor([3.0, 4.0]))
    tensor([3., 8.])
    """,
)


def _divide(self: Any, other: Any) -> Any:
    if not any(jnp.issubdtype(jnp.result_type(x), jnp.inexact) for x in (self, other)):
        self = jnp.asarray(self).astype(dtypes.get_default_dtype().dtype)
    return jnp.true_divide(self, other)


true_divide = define(
    "div",
    lambda self, other: _divide(self, other),
    self=lambda grad, other: grad / jnp.conj(other),
    other=lambda grad, self, other: -grad * jnp.conj(self / other / other),
    doc="""The quotient; integers give floating point.

    >>> dg.true_divide(dg.tensor([1, 2]), 2)
    tensor([0.5000, 1.0000])
    """,
)

floor_divide = define(
    "floor_divide",
    lambda self, other: jnp.floor_divide(self, other),
    differentiable=False,
    doc="""The quotient rounded down, as Python's `//`.

    >>> dg.floor_divide(dg.tensor([5.0, -5.0]), 2)
    tensor([ 2., -3.])
    """,
)


def _round_quotient(self: Any, other: Any, *, rounding_mode: str) -> Any:
    if rounding_mode == "floor":
        return jnp.floor_divide(self, other)
    if rounding_mode != "trunc":
        raise RuntimeError(
            "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found "
            f"'{rounding_mode}'"
        )
    quotient = jnp.trunc(jnp.true_divide(self, other))
    return quotient.astype(jnp.result_type(self, other))


_div_rounded = define(
    "div_rounded",
    _round_quotient,
    node="DivBackward0",
    self=lambda grad: jnp.zeros_like(grad),
    other=lambda grad: jnp.zeros_like(grad),
)


def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """The quotient, rounded towards zero (`"trunc"`) or down (`"floor"`) where asked.

    >>> dg.div(dg.tensor([5.0, -5.0]), 2, rounding_mode="trunc")
    tensor([ 2., -2.])
    """
    if rounding_mode is None:
        return true_divide(input, other)
    return _div_rounded(input, other, rounding_mode)


remainder = define(
    "remainder",
    lambda self, other: jnp.remainder(self, other),
    self=lambda grad: grad,
    other=lambda grad, self, other: -grad * jnp.floor_divide(self, other),
    doc="""What is left of a division that rounds down: it has the sign of `other`.

    >>> dg.remainder(dg.tensor([5.0, -5.0]), 3)
    tensor([2., 1.])
    """,
)

fmod = define(
    "fmod",
    lambda self, other: jnp.fmod(self, other),
    self=lambda grad: grad,
    other=lambda grad, self, other: -grad * jnp.trunc(self / other),
    doc="""What is left of a division that rounds towards zero: it has the sign of `input`.

    >>> dg.fmod(dg.tensor([5.0, -5.0]), 3)
    tensor([ 2., -2.])
    """,
)


def _power_of_self(grad: Any, self: Any, exponent: Any) -> Any:
    # x ** 0 has derivative 0 everywhere; exponent * x ** (exponent - 1) alone gives NaN at x = 0.
    dtype = jnp.result_type(self, exponent)  # a negative base has a complex power
    self, exponent = jnp.asarray(self, dtype), jnp.asarray(exponent, dtype)
    at_zero = exponent == 0
    lowered = self ** jnp.where(at_zero, 1, exponent - 1)
    return jnp.where(at_zero, 0, grad * jnp.conj(exponent * lowered))


def _power_of_exponent(grad: Any, self: Any, exponent: Any, result: Any) -> Any:
    # 0 ** y is constant (0) for y > 0, where log(0) alone would give NaN.
    flat = (self == 0) & (jnp.real(exponent) >= 0)
    self = self.astype(result.dtype)
    logarithm = jnp.log(jnp.where(flat, 1, self))
    return jnp.where(flat, 0, grad * jnp.conj(result * logarithm))


_pow = define(
    "pow",
    lambda self, exponent: jnp.power(self, exponent),
    node="PowBackward1",
    self=_power_of_self,
    exponent=_power_of_exponent,
)
_pow_number = define(
    "pow",
    lambda self, exponent: jnp.power(self, exponent),
    self=_power_of_self,
    exponent=None,
)
_pow_integer = define(
    "pow",
    lambda self, *, exponent: lax.integer_pow(self, exponent),
    self=lambda grad, self, exponent: (
        grad * jnp.conj(exponent * lax.integer_pow(self, exponent - 1))
    ),
)
_INTEGER_POWERS = frozenset({2, 3, 4, -1, -2})


def pow(input: Any, exponent: Any) -> Tensor:
    """`input ** exponent`, element by element.

    At 0 the gradient is PyTorch's: `x ** 0` has gradient 0, `0 ** y` has 0 for y >= 0. Raises
    RuntimeError for integers to negative integer powers.

    >>> dg.pow(dg.tensor([2.0, 3.0]), 2)
    tensor([4., 9.])
    """
    kind = type(exponent)
    if (kind is int or kind is float) and isinstance(input, Tensor):
        if exponent in _INTEGER_POWERS and input._cell.array.dtype.kind not in "iub":
            return _pow_integer(input, int(exponent))
        if kind is int and exponent < 0 and input._cell.array.dtype.kind in "iu":
            raise RuntimeError(
                "Integers to negative integer powers are not allowed. Convert the base by .float()."
            )
        return _pow_number(input, exponent)
    return _pow(input, exponent)


float_power = define(
    "float_power",
    lambda self, exponent: jnp.float_power(self, exponent),
    doc="""`input ** exponent` in floating point, also for integers.

    >>> dg.float_power(dg.tensor([2, 4]), -1)
    tensor([0.5000, 0.2500])
    """,
)

neg = define(
    "neg",
    lambda self: (_refuse_bool("Negation, the `-` operator,", self), jnp.negative(self))[1],
    self=lambda grad: -grad,
    elementwise=True,
    doc="""The negative; RuntimeError for bool tensors.

    >>> dg.neg(dg.tensor([1.0, -2.0]))
    tensor([-1.,  2.])
    """,
)

positive = define(
    "positive",
    lambda self: (_refuse_bool("The `+` operator", self), jnp.positive(self))[1],
    self=lambda grad: grad,
    elementwise=True,
    doc="""The tensor's values as they are; RuntimeError for bool tensors.

    >>> dg.positive(dg.tensor([1.0, -2.0]))
    tensor([ 1., -2.])
    """,
)

reciprocal = define(
    "reciprocal",
    lambda self: 1 / self,
    self=lambda grad, result: -grad * jnp.conj(result * result),
    elementwise=True,
    doc="""`1 / input`.

    >>> dg.reciprocal(dg.tensor([2.0, 4.0]))
    tensor([0.5000, 0.2500])
    """,
)

square = define(
    "square",
    lambda self: jnp.square(self),
    node="PowBackward0",
    self=lambda grad, self: grad * jnp.conj(2 * self),
    elementwise=True,
    doc="""`input * input`.

    >>> dg.square(dg.tensor([2.0, -3.0]))
    tensor([4., 9.])
    """,
)

addcmul = define(
    "addcmul",
    lambda self, tensor1, tensor2, value=1: self + value * tensor1 * tensor2,
    signature="self, tensor1, tensor2, *, value=1",
    self=lambda grad: grad,
    tensor1=lambda grad, tensor2, value: grad * jnp.conj(value * tensor2),
    tensor2=lambda grad, tensor1, value: grad * jnp.conj(value * tensor1),
    value=None,
    doc="""`input + value * tensor1 * tensor2`.

    >>> dg.addcmul(dg.tensor([1.0]), dg.tensor([2.0]), dg.tensor([3.0]), value=0.5)
    tensor([4.])
    """,
)

addcdiv = define(
    "addcdiv",
    lambda self, tensor1, tensor2, value=1: self + value * tensor1 / tensor2,
    signature="self, tensor1, tensor2, *, value=1",
    self=lambda grad: grad,
    tensor1=lambda grad, tensor2, value: grad * jnp.conj(value / tensor2),
    tensor2=lambda grad, tensor1, tensor2, value: (
        -grad * jnp.conj(value * tensor1 / (tensor2 * tensor2))
    ),
    value=None,
    doc="""`input + value * tensor1 / tensor2`.

    >>> dg.addcdiv(dg.tensor([1.0]), dg.tensor([6.0]), dg.tensor([3.0]), value=0.5)
    tensor([2.])
    """,
)

lerp = define(
    "lerp",
    lambda self, end, weight: self + weight * (end - self),
    self=lambda grad, weight: grad * jnp.conj(1 - weight),
    end=lambda grad, weight: grad * jnp.conj(weight),
    weight=lambda grad, self, end: grad * jnp.conj(end - self),
    doc="""The point on the line from `input` to `end` at `weight`: 0 is `input`, 1 is `end`.

    >>> dg.lerp(dg.tensor([0.0]), dg.tensor([10.0]), 0.25)
    tensor([2.5000])
    """,
)

# --- functions of one number ------------------------------------------------------------------

exp = define(
    "exp",
    lambda self: jnp.exp(self),
    self=lambda grad, result: grad * jnp.conj(result),
    elementwise=True,
    doc="""e to the power of each element.

    >>> dg.exp(dg.tensor([0.0, 1.0]))
    tensor([1.0000, 2.7183])
    """,
)

exp2 = define(
    "exp2",
    lambda self: jnp.exp2(self),
    self=lambda grad, result: grad * jnp.conj(result) * math.log(2),
    elementwise=True,
    doc="""2 to the power of each element.

    >>> dg.exp2(dg.tensor([0.0, 3.0]))
    tensor([1., 8.])
    """,
)

expm1 = define(
    "expm1",
    lambda self: jnp.expm1(self),
    self=lambda grad, result: grad * jnp.conj(result + 1),
    elementwise=True,
    doc="""`exp(input) - 1`, exact near 0.

    >>> dg.expm1(dg.tensor([0.0, 1.0]))
    tensor([0.0000, 1.7183])
    """,
)

log = define(
    "log",
    lambda self: jnp.log(self),
    self=lambda grad, self: grad / jnp.conj(self),
    elementwise=True,
    doc="""The natural logarithm: -inf at 0, NaN below.

    >>> dg.log(dg.tensor([1.0, 2.0]))
    tensor([0.0000, 0.6931])
    """,
)

log2 = define(
    "log2",
    lambda self: jnp.log2(self),
    self=lambda grad, self: grad / jnp.conj(self * math.log(2)),
    elementwise=True,
    doc="""The logarithm to base 2.

    >>> dg.log2(dg.tensor([1.0, 8.0]))
    tensor([0., 3.])
    """,
)

log10 = define(
    "log10",
    lambda self: jnp.log10(self),
    self=lambda grad, self: grad / jnp.conj(self * math.log(10)),
    elementwise=True,
    doc="""The logarithm to base 10.

    >>> dg.log10(dg.tensor([1.0, 100.0]))
    tensor([0., 2.])
    """,
)

log1p = define(
    "log1p",
    lambda self: jnp.log1p(self),
    self=lambda grad, self: grad / jnp.conj(self + 1),
    elementwise=True,
    doc="""`log(1 + input)`, exact near 0.

    >>> dg.log1p(dg.tensor([0.0, 1.0]))
    tensor([0.0000, 0.6931])
    """,
)

sqrt = define(
    "sqrt",
    lambda self: jnp.sqrt(self),
    self=lambda grad, result: grad / jnp.conj(2 * result),
    elementwise=True,
    doc="""The square root: NaN below 0, with gradient inf at 0.

    >>> dg.sqrt(dg.tensor([4.0, 9.0]))
    tensor([2., 3.])
    """,
)

rsqrt = define(
    "rsqrt",
    lambda self: lax.rsqrt(self) if jnp.issubdtype(self.dtype, jnp.inexact) else 1 / jnp.sqrt(self),
    self=lambda grad, result: -0.5 * grad * jnp.conj(result * result * result),
    elementwise=True,
    doc="""`1 / sqrt(input)`.

    >>> dg.rsqrt(dg.tensor([4.0, 16.0]))
    tensor([0.5000, 0.2500])
    """,
)


def _sign(x: Any) -> Any:
    # PyTorch's sgn: x / |x|, and 0 at 0.
    if jnp.issubdtype(x.dtype, jnp.complexfloating):
        size = jnp.abs(x)
        return jnp.where(size == 0, 0, x / jnp.where(size == 0, 1, size))
    return jnp.sign(x)


abs = define(
    "abs",
    lambda self: jnp.abs(self),
    self=lambda grad, self: grad * _sign(self),
    doc="""The absolute value, with gradient 0 at 0.

    >>> dg.abs(dg.tensor([-1.0, 2.0]))
    tensor([1., 2.])
    """,
)

sin = define(
    "sin",
    lambda self: jnp.sin(self),
    self=lambda grad, self: grad * jnp.conj(jnp.cos(self)),
    elementwise=True,
    doc="""The sine of an angle in radians.

    >>> dg.sin(dg.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8415])
    """,
)

cos = define(
    "cos",
    lambda self: jnp.cos(self),
    self=lambda grad, self: -grad * jnp.conj(jnp.sin(self)),
    elementwise=True,
    doc="""The cosine of an angle in radians.

    >>> dg.cos(dg.tensor([0.0, 1.0]))
    tensor([1.0000, 0.5403])
    """,
)

tan = define(
    "tan",
    lambda self: jnp.tan(self),
    self=lambda grad, result: grad * jnp.conj(1 + result * result),
    elementwise=True,
    doc="""The tangent of an angle in radians.

    >>> dg.tan(dg.tensor([0.0, 1.0]))
    tensor([0.0000, 1.5574])
    """,
)

asin = define(
    "asin",
    lambda self: jnp.arcsin(self),
    self=lambda grad, self: grad * jnp.conj(lax.rsqrt(1 - self * self)),
    elementwise=True,
    doc="""The angle whose sine is `input`, NaN outside [-1, 1].

    >>> dg.asin(dg.tensor([0.0, 1.0]))
    tensor([0.0000, 1.5708])
    """,
)

acos = define(
    "acos",
    lambda self: jnp.arccos(self),
    self=lambda grad, self: -grad * jnp.conj(lax.rsqrt(1 - self * self)),
    elementwise=True,
    doc="""The angle whose cosine is `input`, NaN outside [-1, 1].

    >>> dg.acos(dg.tensor([0.0, 1.0]))
    tensor([1.5708, 0.0000])
    """,
)

atan = define(
    "atan",
    lambda self: jnp.arctan(self),
    self=lambda grad, self: grad / jnp.conj(1 + self * self),
    elementwise=True,
    doc="""The angle whose tangent is `input`.

    >>> dg.atan(dg.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7854])
    """,
)

atan2 = define(
    "atan2",
    lambda self, other: jnp.arctan2(self, other),
    self=lambda grad, self, other: grad * other / (self * self + other * other),
    other=lambda grad, self, other: -grad * self / (self * self + other * other),
    doc="""The angle of the point (other, input) in the plane.

    >>> dg.atan2(dg.tensor([1.0]), dg.tensor([-1.0]))
    tensor([2.3562])
    """,
)

sinh = define(
    "sinh",
    lambda self: jnp.sinh(self),
    self=lambda grad, self: grad * jnp.conj(jnp.cosh(self)),
    elementwise=True,
    doc="""The hyperbolic sine.

    >>> dg.sinh(dg.tensor([0.0, 1.0]))
    tensor([0.0000, 1.1752])
    """,
)

cosh = define(
    "cosh",
    lambda self: jnp.cosh(self),
    self=lambda grad, self: grad * jnp.conj(jnp.sinh(self)),
    elementwise=True,
    doc="""The hyperbolic cosine.

    >>> dg.cosh(dg.tensor([0.0, 1.0]))
    tensor([1.0000, 1.5431])
    """,
)

tanh = define(
    "tanh",
    lambda self: jnp.tanh(self),
    self=lambda grad, result: grad * jnp.conj(1 - result * result),
    elementwise=True,
    doc="""The hyperbolic tangent, between -1 and 1.

    >>> dg.tanh(dg.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7616])
    """,
)

asinh = define(
    "asinh",
    lambda self: jnp.arcsinh(self),
    self=lambda grad, self: grad * jnp.conj(lax.rsqrt(self * self + 1)),
    elementwise=True,
    doc="""The inverse of `sinh`.

    >>> dg.asinh(dg.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8814])
    """,
)

acosh = define(
    "acosh",
    lambda self: jnp.arccosh(self),
    self=lambda grad, self: grad * jnp.conj(lax.rsqrt(self - 1) * lax.rsqrt(self + 1)),
    elementwise=True,
    doc="""The inverse of `cosh`, NaN below 1.

    >>> dg.acosh(dg.tensor([1.0, 2.0]))
    tensor([0.0000, 1.3170])
    """,
)

atanh = define(
    "atanh",
    lambda self: jnp.arctanh(self),
    self=lambda grad, self: grad / jnp.conj(1 - self * self),
    elementwise=True,
    doc="""The inverse of `tanh`, infinite at -1 and 1.

    >>> dg.atanh(dg.tensor([0.0, 0.5]))
    tensor([0.0000, 0.5493])
    """,
)

erf = define(
    "erf",
    lambda self: special.erf(self),
    self=lambda grad, self: grad * (2 / math.sqrt(math.pi)) * jnp.exp(-self * self),
    elementwise=True,
    doc="""The error function, between -1 and 1.

    >>> dg.erf(dg.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8427])
    """,
)

erfc = define(
    "erfc",
    lambda self: special.erfc(self),
    self=lambda grad, self: -grad * (2 / math.sqrt(math.pi)) * jnp.exp(-self * self),
    elementwise=True,
    doc="""`1 - erf(input)`, exact for large input.

    >>> dg.erfc(dg.tensor([0.0, 1.0]))
    tensor([1.0000, 0.1573])
    """,
)

erfinv = define(
    "erfinv",
    lambda self: special.erfinv(self),
    self=lambda grad, result: grad * (math.sqrt(math.pi) / 2) * jnp.exp(result * result),
    elementwise=True,
    doc="""The inverse of `erf`, infinite at -1 and 1.

    >>> dg.erfinv(dg.tensor([0.0, 0.5]))
    tensor([0.0000, 0.4769])
    """,
)

lgamma = define(
    "lgamma",
    lambda self: special.gammaln(self),
    self=lambda grad, self: grad * special.digamma(self),
    elementwise=True,
    doc="""The logarithm of the absolute value of the gamma function.

    >>> dg.lgamma(dg.tensor([3.0, 5.0]))
    tensor([0.6931, 3.1781])
    """,
)

digamma = define(
    "digamma",
    lambda self: special.digamma(self),
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

deg2rad = define(
    "deg2rad",
    lambda self: jnp.deg2rad(self),
    self=lambda grad: grad * (math.pi / 180),
    elementwise=True,
    doc="""Degrees as radians.

    >>> dg.deg2rad(dg.tensor([180.0]))
    tensor([3.1416])
    """,
)

rad2deg = define(
    "rad2deg",
    lambda self: jnp.rad2deg(self),
    self=lambda grad: grad * (180 / math.pi),
    elementwise=True,
    doc="""Radians as degrees.

    >>> dg.rad2deg(dg.tensor([3.1415927]))
    tensor([180.])
    """,
)

# --- steps: the gradient is zero wherever it exists -----------------------------------------------


def _zero(grad: Any) -> Any:
    return jnp.zeros_like(grad)


floor = define(
    "floor",
    lambda self: jnp.floor(self),
    self=_zero,
    elementwise=True,
    doc="""The greatest integer not above each element.

    >>> dg.floor(dg.tensor([1.5, -1.5]))
    tensor([ 1., -2.])
    """,
)

ceil = define(
    "ceil",
    lambda self: jnp.ceil(self),
    self=_zero,
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
    self=_zero,
    elementwise=True,
    doc="""The nearest integer, or multiple of 10 ** -decimals; halves go to the even one.

    >>> dg.round(dg.tensor([0.5, 1.5]))
    tensor([0., 2.])
    """,
)

trunc = define(
    "trunc",
    lambda self: jnp.trunc(self),
    self=_zero,
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
    self=lambda grad: grad,
    elementwise=True,
    doc="""The part behind the decimal point, with the sign of the element.

    >>> dg.frac(dg.tensor([1.5, -1.5]))
    tensor([ 0.5000, -0.5000])
    """,
)

sign = define(
    "sign",
    lambda self: jnp.sign(self),
    self=_zero,
    elementwise=True,
    doc="""-1, 0 or 1.

    >>> dg.sign(dg.tensor([-3.0, 0.0, 2.0]))
    tensor([-1.,  0.,  1.])
    """,
)


sgn = define(
    "sgn",
    lambda self: _sign(self),
    doc="""The sign; of a complex number the one of its direction and size 1, 0 at 0.

    >>> dg.sgn(dg.tensor([3.0 + 4.0j]))
    tensor([0.6000+0.8000j])
    """,
)

# --- complex numbers --------------------------------------------------------------------------

real = define(
    "real",
    lambda self: jnp.real(self),
    self=lambda grad: grad,
    doc="""The real part; a real tensor's own values.

    >>> dg.real(dg.tensor([1.0 + 2.0j]))
    tensor([1.])
    """,
)


def _imaginary(self: Any) -> Any:
    if not jnp.issubdtype(self.dtype, jnp.complexfloating):
        raise RuntimeError(
            "imag is not implemented for tensors with non-complex dtypes. A real tensor's "
            "imaginary "
            "part is zeros_like() of it."
        )
    return jnp.imag(self)


imag = define(
    "imag",
    _imaginary,
    self=lambda grad: 1j * grad,
    doc="""The imaginary part; RuntimeError for a real tensor.

    >>> dg.imag(dg.tensor([1.0 + 2.0j]))
    tensor([2.])
    """,
)

conj = define(
    "conj",
    lambda self: jnp.conj(self),
    self=lambda grad: jnp.conj(grad),
    elementwise=True,
    doc="""The complex conjugate.

    >>> dg.conj(dg.tensor([1.0 + 2.0j]))
    tensor([1.-2.j])
    """,
)

angle = define(
    "angle",
    lambda self: jnp.angle(self),
    doc="""The angle of a complex number, in radians.

    >>> dg.angle(dg.tensor([1.0 + 1.0j]))
    tensor([0.7854])
    """,
)

complex = define(
    "complex",
    lambda real, imag: lax.complex(*jnp.broadcast_arrays(real, imag)),
    real=lambda grad: jnp.real(grad),
    imag=lambda grad: jnp.imag(grad),
    doc="""Complex numbers from their parts.

    >>> dg.complex(dg.tensor([1.0]), dg.tensor([2.0]))
    tensor([1.+2.j])
    """,
)

polar = define(
    "polar",
    lambda abs, angle: lax.complex(abs * jnp.cos(angle), abs * jnp.sin(angle)),
    doc="""Complex numbers from their absolute value and angle.

    >>> dg.polar(dg.tensor([2.0]), dg.tensor([0.0]))
    tensor([2.+0.j])
    """,
)

# --- choosing: the greater, the less, the clamped, one of two
# ---------------------------------------


def _share(grad: Any, mine: Any, other: Any, better: Any) -> Any:
    # At a tie each operand gets half, as in PyTorch.
    return jnp.where(mine == other, grad / 2, jnp.where(better, grad, 0))


maximum = define(
    "maximum",
    lambda self, other: jnp.maximum(self, other),
    self=lambda grad, self, other: _share(grad, self, other, self > other),
    other=lambda grad, self, other: _share(grad, self, other, other > self),
    doc="""The greater of each pair; the gradient of a tie is shared. NaN if either is.

    >>> dg.maximum(dg.tensor([1.0, 5.0]), dg.tensor([2.0, 3.0]))
    tensor([2., 5.])
    """,
)

minimum = define(
    "minimum",
    lambda self, other: jnp.minimum(self, other),
    self=lambda grad, self, other: _share(grad, self, other, self < other),
    other=lambda grad, self, other: _share(grad, self, other, other < self),
    doc="""The less of each pair; the gradient of a tie is shared. NaN if either is.

    >>> dg.minimum(dg.tensor([1.0, 5.0]), dg.tensor([2.0, 3.0]))
    tensor([1., 3.])
    """,
)

fmax = define(
    "fmax",
    lambda self, other: jnp.fmax(self, other),
    self=lambda grad, self, other: jnp.where((self >= other) | jnp.isnan(other), grad, 0),
    other=lambda grad, self, other: jnp.where((self >= other) | jnp.isnan(other), 0, grad),
    doc="""The greater of each pair; a number beats NaN.

    >>> dg.fmax(dg.tensor([1.0, float("nan")]), dg.tensor([2.0, 3.0]))
    tensor([2., 3.])
    """,
)

fmin = define(
    "fmin",
    lambda self, other: jnp.fmin(self, other),
    self=lambda grad, self, other: jnp.where((self <= other) | jnp.isnan(other), grad, 0),
    other=lambda grad, self, other: jnp.where((self <= other) | jnp.isnan(other), 0, grad),
    doc="""The less of each pair; a number beats NaN.

    >>> dg.fmin(dg.tensor([1.0, float("nan")]), dg.tensor([2.0, 3.0]))
    tensor([1., 3.])
    """,
)


def _clamp(self: Any, min: Any = None, max: Any = None) -> Any:
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    return jnp.clip(self, min, max)


def _inside(self: Any, low: Any, high: Any) -> Any:
    # The edges count as inside, as in PyTorch 2.13.
    inside = True if low is None else self >= low
    return inside if high is None else inside & (self <= high)


clamp = define(
    "clamp",
    _clamp,
    self=lambda grad, self, min, max: jnp.where(_inside(self, min, max), grad, 0),
    min=lambda grad, self, min, max: jnp.where(
        (self < min) if max is None else (self < min) & (min < max), grad, 0
    ),
    max=lambda grad, self, min, max: jnp.where(
        (self > max) if min is None else (self > max) | (max < min), grad, 0
    ),
    doc="""Each element moved into [min, max]; the gradient is 1 inside and at the edges.

    >>> dg.clamp(dg.tensor([-2.0, 0.5, 2.0]), min=-1, max=1)
    tensor([-1.0000,  0.5000,  1.0000])
    """,
)
clip = clamp


def clamp_min(input: Any, min: Any) -> Tensor:
    """Each element, or `min` where it is below.

    >>> dg.clamp_min(dg.tensor([-2.0, 0.5]), 0)
    tensor([0.0000, 0.5000])
    """
    return clamp(input, min=min)


def clamp_max(input: Any, max: Any) -> Tensor:
    """Each element, or `max` where it is above.

    >>> dg.clamp_max(dg.tensor([-2.0, 0.5]), 0)
    tensor([-2.,  0.])
    """
    return clamp(input, max=max)


def _where(condition: Any, self: Any, other: Any) -> Any:
    if condition.dtype != jnp.bool_:
        raise RuntimeError(
            f"where expected condition to be a boolean tensor, but got a tensor with dtype "
            f"{condition.dtype.name}. Compare it with something, or use .bool()."
        )
    return jnp.where(condition, self, other)


_select = define(
    "where",
    _where,
    condition=None,
    self=lambda grad, condition: jnp.where(condition, grad, 0),
    other=lambda grad, condition: jnp.where(condition, 0, grad),
)


def where(condition: Any, input: Any = None, other: Any = None) -> Any:
    """`input` where the condition holds, `other` elsewhere; alone, the places where it does.

    >>> x = dg.tensor([-1.0, 2.0])
    >>> dg.where(x > 0, x, 0.0)
    tensor([0., 2.])
    """
    if input is None and other is None:
        return condition.nonzero(as_tuple=True)
    return _select(condition, input, other)


nan_to_num = define(
    "nan_to_num",
    lambda self, *, nan=0.0, posinf=None, neginf=None: jnp.nan_to_num(
        self, nan=nan, posinf=posinf, neginf=neginf
    ),
    signature="self, nan=0.0, posinf=None, neginf=None",
    self=lambda grad, self: jnp.where(jnp.isfinite(self), grad, 0),
    doc="""NaN and infinities replaced by numbers, the greatest and the least by default.

    >>> dg.nan_to_num(dg.tensor([float("nan"), 1.0]))
    tensor([0., 1.])
    """,
)

copysign = define(
    "copysign",
    lambda self, other: jnp.copysign(self, other),
    self=lambda grad, self, result: jnp.where(
        self == 0, 0, grad * jnp.sign(self) * jnp.sign(result)
    ),
    other=_zero,
    doc="""The size of `input` with the sign of `other`.

    >>> dg.copysign(dg.tensor([1.0, 2.0]), dg.tensor([-1.0, 1.0]))
    tensor([-1.,  2.])
    """,
)

hypot = define(
    "hypot",
    lambda self, other: jnp.hypot(self, other),
    self=lambda grad, self, result: grad * self / result,
    other=lambda grad, other, result: grad * other / result,
    doc="""The length of the hypotenuse, `sqrt(input ** 2 + other ** 2)`.

    >>> dg.hypot(dg.tensor([3.0]), dg.tensor([4.0]))
    tensor([5.])
    """,
)

logaddexp = define(
    "logaddexp",
    lambda self, other: jnp.logaddexp(self, other),
    self=lambda grad, self, result: grad * jnp.exp(self - result),
    other=lambda grad, other, result: grad * jnp.exp(other - result),
    doc="""`log(exp(input) + exp(other))`, without overflow.

    >>> dg.logaddexp(dg.tensor([0.0]), dg.tensor([0.0]))
    tensor([0.6931])
    """,
)

logaddexp2 = define(
    "logaddexp2",
    lambda self, other: jnp.logaddexp2(self, other),
    doc="""`log2(2 ** input + 2 ** other)`, without overflow.

    >>> dg.logaddexp2(dg.tensor([1.0]), dg.tensor([1.0]))
    tensor([2.])
    """,
)

xlogy = define(
    "xlogy",
    lambda self, other: special.xlogy(self, other),
    self=lambda grad, self, other: jnp.where(
        (self == 0) & (other <= 0), 0, grad * jnp.log(jnp.where(other == 0, 1, other))
    ),
    other=lambda grad, self, other: grad * self / other,
    doc="""`input * log(other)`, and 0 where `input` is.

    >>> dg.xlogy(dg.tensor([0.0, 2.0]), dg.tensor([0.0, 1.0]))
    tensor([0., 0.])
    """,
)

# --- comparison and logic: no gradient ----------------------------------------------------------


def _compare(name: str, function: Any, doc: str) -> Any:
    return define(name, lambda self, other: function(self, other), differentiable=False, doc=doc)


eq = _compare(
    "eq",
    jnp.equal,
    """Where both are equal.

    >>> dg.eq(dg.tensor([1, 2]), 2)
    tensor([False,  True])
    """,
)
ne = _compare(
    "ne",
    jnp.not_equal,
    """Where they differ.

    >>> dg.ne(dg.tensor([1, 2]), 2)
    tensor([ True, False])
    """,
)
lt = _compare(
    "lt",
    jnp.less,
    """Where `input < other`.

    >>> dg.lt(dg.tensor([1, 2]), 2)
    tensor([ True, False])
    """,
)
le = _compare(
    "le",
    jnp.less_equal,
    """Where `input <= other`.

    >>> dg.le(dg.tensor([1, 2]), 1)
    tensor([ True, False])
    """,
)
gt = _compare(
    "gt",
    jnp.greater,
    """Where `input > other`.

    >>> dg.gt(dg.tensor([1, 2]), 1)
    tensor([False,  True])
    """,
)
ge = _compare(
    "ge",
    jnp.greater_equal,
    """Where `input >= other`.

    >>> dg.ge(dg.tensor([1, 2]), 2)
    tensor([False,  True])
    """,
)
not_equal, less, less_equal, greater, greater_equal = ne, lt, le, gt, ge

logical_and = _compare(
    "logical_and",
    jnp.logical_and,
    """Where both are true; numbers are, unless 0.

    >>> dg.logical_and(dg.tensor([True, True]), dg.tensor([True, False]))
    tensor([ True, False])
    """,
)
logical_or = _compare(
    "logical_or",
    jnp.logical_or,
    """Where either is true.

    >>> dg.logical_or(dg.tensor([True, False]), dg.tensor([False, False]))
    tensor([ True, False])
    """,
)
logical_xor = _compare(
    "logical_xor",
    jnp.logical_xor,
    """Where exactly one is true.

    >>> dg.logical_xor(dg.tensor([True, True]), dg.tensor([True, False]))
    tensor([False,  True])
    """,
)
bitwise_and = _compare(
    "bitwise_and",
    jnp.bitwise_and,
    """The bits that both have, for integers and bools.

    >>> dg.bitwise_and(dg.tensor([6]), 3)
    tensor([2])
    """,
)
bitwise_or = _compare(
    "bitwise_or",
    jnp.bitwise_or,
    """The bits that either has.

    >>> dg.bitwise_or(dg.tensor([6]), 3)
    tensor([7])
    """,
)
bitwise_xor = _compare(
    "bitwise_xor",
    jnp.bitwise_xor,
    """The bits that exactly one has.

    >>> dg.bitwise_xor(dg.tensor([6]), 3)
    tensor([5])
    """,
)
bitwise_left_shift = _compare(
    "bitwise_left_shift",
    jnp.left_shift,
    """The bits moved up by `other` places.

    >>> dg.bitwise_left_shift(dg.tensor([3]), 2)
    tensor([12])
    """,
)
bitwise_right_shift = _compare(
    "bitwise_right_shift",
    jnp.right_shift,
    """The bits moved down by `other` places.

    >>> dg.bitwise_right_shift(dg.tensor([12]), 2)
    tensor([3])
    """,
)


def _test(name: str, function: Any, doc: str) -> Any:
    return define(name, lambda self: function(self), differentiable=False, doc=doc)


logical_not = _test(
    "logical_not",
    jnp.logical_not,
    """Where the element is false, or 0.

    >>> dg.logical_not(dg.tensor([0, 2]))
    tensor([ True, False])
    """,
)
bitwise_not = _test(
    "bitwise_not",
    jnp.bitwise_not,
    """Every bit turned round; of bools, the other one.

    >>> dg.bitwise_not(dg.tensor([True, False]))
    tensor([False,  True])
    """,
)
isnan = _test(
    "isnan",
    jnp.isnan,
    """Where the element is NaN.

    >>> dg.isnan(dg.tensor([1.0, float("nan")]))
    tensor([False,  True])
    """,
)
isinf = _test(
    "isinf",
    jnp.isinf,
    """Where the element is infinite.

    >>> dg.isinf(dg.tensor([1.0, float("-inf")]))
    tensor([False,  True])
    """,
)
isfinite = _test(
    "isfinite",
    jnp.isfinite,
    """Where the element is neither infinite nor NaN.

    >>> dg.isfinite(dg.tensor([1.0, float("inf")]))
    tensor([ True, False])
    """,
)
isposinf = _test(
    "isposinf",
    jnp.isposinf,
    """Where the element is infinity.

    >>> dg.isposinf(dg.tensor([1.0, float("inf")]))
    tensor([False,  True])
    """,
)
isneginf = _test(
    "isneginf",
    jnp.isneginf,
    """Where the element is minus infinity.

    >>> dg.isneginf(dg.tensor([1.0, float("-inf")]))
    tensor([False,  True])
    """,
)
isreal = _test(
    "isreal",
    jnp.isreal,
    """Where the imaginary part is 0.

    >>> dg.isreal(dg.tensor([1.0 + 0j, 1j]))
    tensor([ True, False])
    """,
)
signbit = _test(
    "signbit",
    jnp.signbit,
    """Where the sign is minus, also of -0.0.

    >>> dg.signbit(dg.tensor([1.0, -0.0]))
    tensor([False,  True])
    """,
)

isclose = define(
    "isclose",
    lambda self, other, *, rtol=1e-05, atol=1e-08, equal_nan=False: jnp.isclose(
        self, other, rtol=rtol, atol=atol, equal_nan=equal_nan
    ),
    differentiable=False,
    doc="""Where `|input - other| <= atol + rtol * |other|`.

    >>> dg.isclose(dg.tensor([1.0, 2.0]), dg.tensor([1.0, 2.1]))
    tensor([ True, False])
    """,
)

# --- activations --------------------------------------------------------------------------------

relu = define(
    "relu",
    lambda self: jnp.maximum(self, 0),
    self=lambda grad, result: jnp.where(result > 0, grad, 0),
    elementwise=True,
    doc="""The positive part, with gradient 0 at 0.

    >>> dg.relu(dg.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """,
)

relu6 = define(
    "relu6",
    lambda self: jnp.clip(self, 0, 6),
    node="HardtanhBackward0",
    self=lambda grad, self: jnp.where((self > 0) & (self < 6), grad, 0),
    elementwise=True,
    doc="""The positive part, at most 6.

    >>> dg.nn.functional.relu6(dg.tensor([-1.0, 8.0]))
    tensor([0., 6.])
    """,
)

sigmoid = define(
    "sigmoid",
    lambda self: jax.nn.sigmoid(self),
    self=lambda grad, result: grad * jnp.conj(result * (1 - result)),
    elementwise=True,
    doc="""`1 / (1 + exp(-input))`, between 0 and 1.

    >>> dg.sigmoid(dg.tensor([0.0, 2.0]))
    tensor([0.5000, 0.8808])
    """,
)

logsigmoid = define(
    "logsigmoid",
    lambda self: jax.nn.log_sigmoid(self),
    node="LogSigmoidBackward0",
    self=lambda grad, self: grad * jax.nn.sigmoid(-self),
    elementwise=True,
    doc="""`log(sigmoid(input))`, without overflow.

    >>> dg.nn.functional.logsigmoid(dg.tensor([0.0]))
    tensor([-0.6931])
    """,
)

softplus = define(
    "softplus",
    lambda self, beta=1, threshold=20: jnp.where(
        beta * self > threshold, self, jnp.logaddexp(beta * self, 0) / beta
    ),
    self=lambda grad, self, beta, threshold: jnp.where(
        beta * self > threshold, grad, grad * jax.nn.sigmoid(beta * self)
    ),
    beta=None,
    threshold=None,
    doc="""`log(1 + exp(beta * input)) / beta`, and `input` itself above the threshold.

    >>> dg.nn.functional.softplus(dg.tensor([0.0]))
    tensor([0.6931])
    """,
)


def _silu_rule(grad: Any, self: Any) -> Any:
    s = jax.nn.sigmoid(self)
    return grad * jnp.conj(s * (1 + self * (1 - s)))


silu = define(
    "silu",
    lambda self: jax.nn.silu(self),
    self=_silu_rule,
    elementwise=True,
    doc="""`input * sigmoid(input)`.

    >>> dg.nn.functional.silu(dg.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7311])
    """,
)


def _mish_rule(grad: Any, self: Any) -> Any:
    t = jnp.tanh(jax.nn.softplus(self))
    return grad * (t + self * jax.nn.sigmoid(self) * (1 - t * t))


mish = define(
    "mish",
    lambda self: self * jnp.tanh(jax.nn.softplus(self)),
    self=_mish_rule,
    elementwise=True,
    doc="""`input * tanh(softplus(input))`.

    >>> dg.nn.functional.mish(dg.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8651])
    """,
)


def _gelu_rule(grad: Any, self: Any, approximate: str) -> Any:
    if approximate == "tanh":
        k, c = math.sqrt(2 / math.pi), 0.044715
        t = jnp.tanh(k * (self + c * self**3))
        slope = 0.5 * (1 + t) + 0.5 * self * (1 - t * t) * k * (1 + 3 * c * self * self)
        return grad * slope
    cdf = 0.5 * (1 + special.erf(self / math.sqrt(2)))
    return grad * (cdf + self * jnp.exp(-0.5 * self * self) / math.sqrt(2 * math.pi))


def _gelu(self: Any, *, approximate: str = "none") -> Any:
    if approximate not in ("none", "tanh"):
        raise RuntimeError(
            f"approximate argument must be either none or tanh, got {approximate!r}."
        )
    return jax.nn.gelu(self, approximate=approximate == "tanh")


gelu = define(
    "gelu",
    _gelu,
    signature="self, *, approximate='none'",
    self=_gelu_rule,
    elementwise=True,
    doc="""`input` times the normal distribution's share below it (https://arxiv.org/abs/1606.08415).

    >>> dg.nn.functional.gelu(dg.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8413])
    """,
)

leaky_relu = define(
    "leaky_relu",
    lambda self, negative_slope=0.01: jnp.where(self > 0, self, negative_slope * self),
    self=lambda grad, self, negative_slope: jnp.where(self > 0, grad, negative_slope * grad),
    negative_slope=None,
    doc="""`input` above 0, a small multiple of it below.

    >>> dg.nn.functional.leaky_relu(dg.tensor([-1.0, 2.0]), 0.1)
    tensor([-0.1000,  2.0000])
    """,
)

elu = define(
    "elu",
    lambda self, alpha=1.0: jnp.where(self > 0, self, alpha * jnp.expm1(jnp.minimum(self, 0))),
    self=lambda grad, self, alpha: jnp.where(
        self > 0, grad, grad * alpha * jnp.exp(jnp.minimum(self, 0))
    ),
    alpha=None,
    doc="""`input` above 0, `alpha * (exp(input) - 1)` below.

    >>> dg.nn.functional.elu(dg.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """,
)

celu = define(
    "celu",
    lambda self, alpha=1.0: jnp.where(
        self > 0, self, alpha * jnp.expm1(jnp.minimum(self, 0) / alpha)
    ),
    self=lambda grad, self, alpha: jnp.where(
        self > 0, grad, grad * jnp.exp(jnp.minimum(self, 0) / alpha)
    ),
    alpha=None,
    node="EluBackward0",
    doc="""`input` above 0, `alpha * (exp(input / alpha) - 1)` below.

    >>> dg.nn.functional.celu(dg.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """,
)

_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772, 1.0507009873554805

selu = define(
    "selu",
    lambda self: (
        _SELU_SCALE * jnp.where(self > 0, self, _SELU_ALPHA * jnp.expm1(jnp.minimum(self, 0)))
    ),
    self=lambda grad, self: (
        grad * _SELU_SCALE * jnp.where(self > 0, 1, _SELU_ALPHA * jnp.exp(jnp.minimum(self, 0)))
    ),
    node="EluBackward0",
    elementwise=True,
    doc="""The self-normalizing scaled `elu` (https://arxiv.org/abs/1706.02515).

    >>> dg.nn.functional.selu(dg.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """,
)

hardtanh = define(
    "hardtanh",
    lambda self, min_val=-1.0, max_val=1.0: jnp.clip(self, min_val, max_val),
    self=lambda grad, self, min_val, max_val: jnp.where(
        (self > min_val) & (self < max_val), grad, 0
    ),
    min_val=None,
    max_val=None,
    doc="""`clamp` with gradient 0 at the edges.

    >>> dg.nn.functional.hardtanh(dg.tensor([-2.0, 0.5]))
    tensor([-1.0000,  0.5000])
    """,
)

hardsigmoid = define(
    "hardsigmoid",
    lambda self: jnp.clip(self / 6 + 0.5, 0, 1),
    self=lambda grad, self: jnp.where((self > -3) & (self < 3), grad / 6, 0),
    elementwise=True,
    doc="""A `sigmoid` of three straight lines.

    >>> dg.nn.functional.hardsigmoid(dg.tensor([0.0, 4.0]))
    tensor([0.5000, 1.0000])
    """,
)

hardswish = define(
    "hardswish",
    lambda self: self * jnp.clip(self / 6 + 0.5, 0, 1),
    self=lambda grad, self: jnp.where(
        self <= -3, 0, jnp.where(self < 3, grad * (self / 3 + 0.5), grad)
    ),
    elementwise=True,
    doc="""`input * hardsigmoid(input)`.

    >>> dg.nn.functional.hardswish(dg.tensor([0.0, 4.0]))
    tensor([0., 4.])
    """,
)

softsign = define(
    "softsign",
    lambda self: self / (1 + jnp.abs(self)),
    self=lambda grad, self: grad / (1 + jnp.abs(self)) ** 2,
    elementwise=True,
    doc="""`input / (1 + |input|)`, between -1 and 1.

    >>> dg.nn.functional.softsign(dg.tensor([0.0, 1.0]))
    tensor([0.0000, 0.5000])
    """,
)

tanhshrink = define(
    "tanhshrink",
    lambda self: self - jnp.tanh(self),
    self=lambda grad, self: grad * jnp.tanh(self) ** 2,
    elementwise=True,
    doc="""`input - tanh(input)`.

    >>> dg.nn.functional.tanhshrink(dg.tensor([0.0, 1.0]))
    tensor([0.0000, 0.2384])
    """,
)

softshrink = define(
    "softshrink",
    lambda self, lambd=0.5: jnp.where(
        self > lambd, self - lambd, jnp.where(self < -lambd, self + lambd, 0)
    ),
    self=lambda grad, self, lambd: jnp.where(jnp.abs(self) > lambd, grad, 0),
    lambd=None,
    doc="""`input` moved towards 0 by `lambd`, and 0 within it.

    >>> dg.nn.functional.softshrink(dg.tensor([-1.0, 0.2]))
    tensor([-0.5000,  0.0000])
    """,
)

hardshrink = define(
    "hardshrink",
    lambda self, lambd=0.5: jnp.where(jnp.abs(self) > lambd, self, 0),
    self=lambda grad, self, lambd: jnp.where(jnp.abs(self) > lambd, grad, 0),
    lambd=None,
    doc="""`input`, and 0 where it is within `lambd` of 0.

    >>> dg.nn.functional.hardshrink(dg.tensor([-1.0, 0.2]))
    tensor([-1.,  0.])
    """,
)

multiply, subtract, divide, negative, absolute = mul, sub, div, neg, abs
arcsin, arccos, arctan, arctan2 = asin, acos, atan, atan2
arcsinh, arccosh, arctanh = asinh, acosh, atanh

ACTIVATIONS = (
    "celu",
    "elu",
    "gelu",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "leaky_relu",
    "logsigmoid",
    "mish",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
)
"""The functions of this file that belong to `nn.functional`."""

__all__ = [
    "abs",
    "absolute",
    "acos",
    "acosh",
    "add",
    "addcdiv",
    "addcmul",
    "angle",
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
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "ceil",
    "celu",
    "clamp",
    "clamp_max",
    "clamp_min",
    "clip",
    "complex",
    "conj",
    "copysign",
    "cos",
    "cosh",
    "deg2rad",
    "digamma",
    "div",
    "divide",
    "eq",
    "erf",
    "erfc",
    "erfinv",
    "exp",
    "exp2",
    "expm1",
    "fix",
    "float_power",
    "floor",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "frac",
    "ge",
    "greater",
    "greater_equal",
    "gt",
    "hardshrink",
    "hypot",
    "imag",
    "isclose",
    "isfinite",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "isreal",
    "le",
    "lerp",
    "less",
    "less_equal",
    "lgamma",
    "log",
    "log10",
    "log1p",
    "log2",
    "logaddexp",
    "logaddexp2",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logit",
    "lt",
    "maximum",
    "minimum",
    "mul",
    "multiply",
    "nan_to_num",
    "ne",
    "neg",
    "negative",
    "not_equal",
    "polar",
    "positive",
    "pow",
    "rad2deg",
    "real",
    "reciprocal",
    "relu",
    "remainder",
    "round",
    "rsqrt",
    "rsub",
    "selu",
    "sgn",
    "sigmoid",
    "sign",
    "signbit",
    "sin",
    "sinc",
    "sinh",
    "sqrt",
    "square",
    "sub",
    "subtract",
    "tan",
    "tanh",
    "true_divide",
    "trunc",
    "where",
    "xlogy",
]

_FUNCTIONS_ONLY = ("celu", "complex", "imag", "polar", "real", "rsub", "selu", "where")
METHODS = tuple(n for n in __all__ if n not in _FUNCTIONS_ONLY)
"""The functions of this file that are methods of Tensor too."""
PROPERTIES = {"real": real, "imag": imag}
