"""Powers, roots, exponentials and logarithms of each element.

At the edges of their domains gradients are PyTorch's: `x ** 0` has gradient 0 everywhere.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy import special

from dyngraph.ops.operator import define
from dyngraph.ops.out import write_out
from dyngraph.tensor import Tensor


def _power_of_self(grad: Any, self: Any, exponent: Any) -> Any:
    # x ** 0 has derivative 0 everywhere; exponent * x ** (exponent - 1) alone gives NaN at x = 0.
    dtype = jnp.result_type(self, exponent)  # a negative base has a complex power
    self, exponent = jnp.asarray(self, dtype), jnp.asarray(exponent, dtype)
    # Elsewhere it is left in the formula, whose derivative by the exponent is not 0.
    constant = (exponent == 0) & ((self == 0) | ~jnp.isfinite(self))
    lowered = jnp.where(constant, 1, self) ** (exponent - 1)
    return jnp.where(constant, 0, grad * jnp.conj(exponent * lowered))


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


def pow(input: Any, exponent: Any, *, out: Any = None) -> Tensor:
    """`input ** exponent`, element by element.

    At 0 the gradient is PyTorch's: `x ** 0` has gradient 0, `0 ** y` has 0 for y >= 0. Raises
    RuntimeError for integers to negative integer powers.

    >>> dg.pow(dg.tensor([2.0, 3.0]), 2)
    tensor([4., 9.])
    """
    if out is not None:
        return write_out(pow, out, (input, exponent), {})
    kind = type(exponent)
    if (kind is int or kind is float) and isinstance(input, Tensor):
        if exponent in _INTEGER_POWERS and input._cell.held.dtype.kind not in "iub":
            return _pow_integer(input, int(exponent))
        if kind is int and exponent < 0 and input._cell.held.dtype.kind in "iu":
            raise RuntimeError(
                "Integers to negative integer powers are not allowed. Convert the base by .float()."
            )
        return _pow_number(input, exponent)
    return _pow(input, exponent)


def _float_power(self: Any, exponent: Any) -> Any:
    wide = jnp.float64 if jax.config.jax_enable_x64 else jnp.float32  # type: ignore[attr-defined]
    return jnp.float_power(*(x.astype(jnp.promote_types(x.dtype, wide)) for x in (self, exponent)))


float_power = define(
    "float_power",
    _float_power,
    doc="""`input ** exponent` in float64, or in float32 while JAX has x64 off; also of integers.

    >>> dg.float_power(dg.tensor([2, 4]), -1)
    tensor([0.5000, 0.2500])
    """,
)

reciprocal = define(
    "reciprocal",
    lambda self: 1 / self,
    self=lambda grad, result: -grad * jnp.conj(result * result),
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
    doc="""`input * input`.

    >>> dg.square(dg.tensor([2.0, -3.0]))
    tensor([4., 9.])
    """,
)

exp = define(
    "exp",
    lambda self: jnp.exp(self),
    self=lambda grad, result: grad * jnp.conj(result),
    doc="""e to the power of each element.

    >>> dg.exp(dg.tensor([0.0, 1.0]))
    tensor([1.0000, 2.7183])
    """,
)

exp2 = define(
    "exp2",
    lambda self: jnp.exp2(self),
    self=lambda grad, result: grad * jnp.conj(result) * math.log(2),
    doc="""2 to the power of each element.

    >>> dg.exp2(dg.tensor([0.0, 3.0]))
    tensor([1., 8.])
    """,
)

expm1 = define(
    "expm1",
    lambda self: jnp.expm1(self),
    self=lambda grad, result: grad * jnp.conj(result + 1),
    doc="""`exp(input) - 1`, exact near 0.

    >>> dg.expm1(dg.tensor([0.0, 1.0]))
    tensor([0.0000, 1.7183])
    """,
)

log = define(
    "log",
    lambda self: jnp.log(self),
    self=lambda grad, self: grad / jnp.conj(self),
    doc="""The natural logarithm: -inf at 0, NaN below.

    >>> dg.log(dg.tensor([1.0, 2.0]))
    tensor([0.0000, 0.6931])
    """,
)

log2 = define(
    "log2",
    lambda self: jnp.log2(self),
    self=lambda grad, self: grad / jnp.conj(self * math.log(2)),
    doc="""The logarithm to base 2.

    >>> dg.log2(dg.tensor([1.0, 8.0]))
    tensor([0., 3.])
    """,
)

log10 = define(
    "log10",
    lambda self: jnp.log10(self),
    self=lambda grad, self: grad / jnp.conj(self * math.log(10)),
    doc="""The logarithm to base 10.

    >>> dg.log10(dg.tensor([1.0, 100.0]))
    tensor([0., 2.])
    """,
)

log1p = define(
    "log1p",
    lambda self: jnp.log1p(self),
    self=lambda grad, self: grad / jnp.conj(self + 1),
    doc="""`log(1 + input)`, exact near 0.

    >>> dg.log1p(dg.tensor([0.0, 1.0]))
    tensor([0.0000, 0.6931])
    """,
)

sqrt = define(
    "sqrt",
    lambda self: jnp.sqrt(self),
    self=lambda grad, result: grad / jnp.conj(2 * result),
    doc="""The square root: NaN below 0, with gradient inf at 0.

    >>> dg.sqrt(dg.tensor([4.0, 9.0]))
    tensor([2., 3.])
    """,
)

rsqrt = define(
    "rsqrt",
    lambda self: lax.rsqrt(self) if jnp.issubdtype(self.dtype, jnp.inexact) else 1 / jnp.sqrt(self),
    self=lambda grad, result: -0.5 * grad * jnp.conj(result * result * result),
    doc="""`1 / sqrt(input)`.

    >>> dg.rsqrt(dg.tensor([4.0, 16.0]))
    tensor([0.5000, 0.2500])
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


def _vander(self: Any, *, N: int | None, increasing: bool) -> Any:
    if self.ndim != 1:
        raise RuntimeError(f"vander: x must be a one-dimensional tensor, got {self.ndim} dims")
    count = self.shape[0] if N is None else N
    if count < 0:
        raise RuntimeError(f"vander: N must be non-negative, got {count}")
    ones = jnp.ones((self.shape[0], min(count, 1)), self.dtype)
    factors = jnp.broadcast_to(self[:, None], (self.shape[0], max(count - 1, 0)))
    columns = jnp.cumprod(jnp.concatenate([ones, factors], 1), 1, dtype=self.dtype)
    return columns if increasing else columns[:, ::-1]


_vander_matrix = define("vander", _vander)


def vander(
    x: Any,
    N: int | None = None,
    increasing: bool = False,
) -> Tensor:
    """The matrix of the powers N - 1, ..., 1, 0 of each element of a vector, a row an element.

    >>> dg.vander(dg.tensor([2.0, 3.0]), 3)
    tensor([[4., 2., 1.],
            [9., 3., 1.]])
    """
    return _vander_matrix(x, N, bool(increasing))


__all__ = [
    "exp",
    "exp2",
    "expm1",
    "float_power",
    "hypot",
    "log",
    "log10",
    "log1p",
    "log2",
    "logaddexp",
    "logaddexp2",
    "pow",
    "reciprocal",
    "rsqrt",
    "sqrt",
    "square",
    "vander",
    "xlogy",
]

METHODS = tuple(n for n in __all__ if n != "vander")
"""The functions of this file that are methods of Tensor too."""
