"""Arithmetic of pairs of elements, and signs: `+`, `-`, `*`, `/`, `%`, `abs`.

Operands broadcast against each other; a gradient is summed back to its operand's shape.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from dyngraph import dtypes
from dyngraph.kernels import same
from dyngraph.ops.arguments import widened
from dyngraph.ops.operator import define
from dyngraph.ops.rules import direction, zero_gradient
from dyngraph.tensor import Tensor

_add_scaled = define(
    "add",
    lambda self, other, alpha: jnp.add(self, alpha * other),
    self=same,
    other=lambda grad, alpha: grad * jnp.conj(alpha),
    alpha=None,
)

add = define(
    "add",
    lambda self, other: jnp.add(self, other),
    self=same,
    other=same,
    otherwise=("alpha", 1, _add_scaled),
    doc="""The sum `input + alpha * other`.

    >>> dg.add(dg.tensor([1.0, 2.0]), dg.tensor([3.0, 4.0]), alpha=10)
    tensor([31., 42.])
    """,
)


def _subtract(self: Any, other: Any, alpha: Any = None) -> Any:
    _refuse_bool("Subtraction, the `-` operator,", self, other)
    return jnp.subtract(self, other if alpha is None else alpha * other)


def _refuse_bool(what: str, *operands: Any) -> None:
    if any(jnp.asarray(x).dtype == jnp.bool_ for x in operands):
        raise RuntimeError(
            f"{what} with a bool tensor is not supported. If you are trying to invert a mask, use "
            "the `~` or `logical_not()` operator instead."
        )


_sub_scaled = define(
    "sub",
    _subtract,
    self=same,
    other=lambda grad, alpha: -grad * jnp.conj(alpha),
    alpha=None,
)

sub = define(
    "sub",
    lambda self, other: _subtract(self, other),
    self=same,
    other=lambda grad: -grad,
    otherwise=("alpha", 1, _sub_scaled),
    doc="""The difference `input - alpha * other`; RuntimeError for bool tensors.

    >>> dg.sub(dg.tensor([3.0, 4.0]), 1.0)
    tensor([2., 3.])
    """,
)


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
    self=zero_gradient,
    other=zero_gradient,
)


div = define(
    "div",
    lambda self, other: _divide(self, other),
    self=lambda grad, other: grad / jnp.conj(other),
    other=lambda grad, self, other: -grad * jnp.conj(self / other / other),
    otherwise=("rounding_mode", None, _div_rounded),
    doc="""The quotient, rounded towards zero (`"trunc"`) or down (`"floor"`) where asked; integers
    give floating point where it is not.

    >>> dg.div(dg.tensor([5.0, -5.0]), 2, rounding_mode="trunc")
    tensor([ 2., -2.])
    """,
)


def true_divide(input: Any, other: Any, *, out: Any = None) -> Tensor:
    """The quotient; integers give floating point.

    >>> dg.true_divide(dg.tensor([1, 2]), 2)
    tensor([0.5000, 1.0000])
    """
    return div(input, other, out=out)


remainder = define(
    "remainder",
    lambda self, other: jnp.remainder(self, other),
    self=same,
    other=lambda grad, self, other: -grad * jnp.floor_divide(widened(self), widened(other)),
    doc="""What is left of a division that rounds down: it has the sign of `other`.

    >>> dg.remainder(dg.tensor([5.0, -5.0]), 3)
    tensor([2., 1.])
    """,
)

fmod = define(
    "fmod",
    lambda self, other: jnp.fmod(self, other),
    self=same,
    other=lambda grad, self, other: -grad * jnp.trunc(widened(self) / widened(other)),
    doc="""What is left of a division that rounds towards zero: it has the sign of `input`.

    >>> dg.fmod(dg.tensor([5.0, -5.0]), 3)
    tensor([ 2., -2.])
    """,
)

neg = define(
    "neg",
    lambda self: (_refuse_bool("Negation, the `-` operator,", self), jnp.negative(self))[1],
    self=lambda grad: -grad,
    doc="""The negative; RuntimeError for bool tensors.

    >>> dg.neg(dg.tensor([1.0, -2.0]))
    tensor([-1.,  2.])
    """,
)

positive = define(
    "positive",
    lambda self: (_refuse_bool("The `+` operator", self), jnp.positive(self))[1],
    self=same,
    doc="""The tensor's values as they are; RuntimeError for bool tensors.

    >>> dg.positive(dg.tensor([1.0, -2.0]))
    tensor([ 1., -2.])
    """,
)

addcmul = define(
    "addcmul",
    lambda self, tensor1, tensor2, value=1: self + value * tensor1 * tensor2,
    signature="self, tensor1, tensor2, *, value=1",
    self=same,
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
    self=same,
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

abs = define(
    "abs",
    lambda self: jnp.abs(self),
    self=lambda grad, self: grad * direction(self),
    doc="""The absolute value, with gradient 0 at 0.

    >>> dg.abs(dg.tensor([-1.0, 2.0]))
    tensor([1., 2.])
    """,
)

sign = define(
    "sign",
    lambda self: jnp.sign(self),
    self=zero_gradient,
    doc="""-1, 0 or 1.

    >>> dg.sign(dg.tensor([-3.0, 0.0, 2.0]))
    tensor([-1.,  0.,  1.])
    """,
)

sgn = define(
    "sgn",
    lambda self: direction(self),
    doc="""The sign; of a complex number the one of its direction and size 1, 0 at 0.

    >>> dg.sgn(dg.tensor([3.0 + 4.0j]))
    tensor([0.6000+0.8000j])
    """,
)

copysign = define(
    "copysign",
    lambda self, other: jnp.copysign(self, other),
    self=lambda grad, self, result: jnp.where(
        self == 0, 0, grad * jnp.sign(self) * jnp.sign(result)
    ),
    other=zero_gradient,
    doc="""The size of `input` with the sign of `other`.

    >>> dg.copysign(dg.tensor([1.0, 2.0]), dg.tensor([-1.0, 1.0]))
    tensor([-1.,  2.])
    """,
)

multiply, subtract, divide, negative, absolute = mul, sub, div, neg, abs


def __rdiv__(self: Any, other: Any) -> Tensor:
    """`other / self`, by the name that Python 2 gave the operator."""
    return div(other, self)


def _integers_only(name: str, function: Any) -> Any:
    def kernel(self: Any, other: Any) -> Any:
        for value in (self, other):
            if value.dtype.kind not in "iub" or value.dtype == bool:
                raise NotImplementedError(
                    f"\"{name}\" not implemented for '{value.dtype}': it is a function of "
                    "integers. Convert them by .int()."
                )
        return function(self, other)

    return kernel


gcd = define(
    "gcd",
    _integers_only("gcd", jnp.gcd),
    differentiable=False,
    doc="""The greatest common divisor, 0 or more; NotImplementedError for other than integers.

    >>> dg.gcd(dg.tensor([4, -6]), dg.tensor([6, 4]))
    tensor([2, 2])
    """,
)
lcm = define(
    "lcm",
    _integers_only("lcm", jnp.lcm),
    differentiable=False,
    doc="""The least common multiple, 0 or more; NotImplementedError for other than integers.

    >>> dg.lcm(dg.tensor([4, -6]), dg.tensor([6, 4]))
    tensor([12, 12])
    """,
)

__all__ = [
    "abs",
    "absolute",
    "add",
    "addcdiv",
    "addcmul",
    "copysign",
    "div",
    "divide",
    "floor_divide",
    "fmod",
    "gcd",
    "lcm",
    "lerp",
    "mul",
    "multiply",
    "neg",
    "negative",
    "positive",
    "remainder",
    "rsub",
    "sgn",
    "sign",
    "sub",
    "subtract",
    "true_divide",
]

METHODS = (*(n for n in __all__ if n != "rsub"), "__rdiv__")
"""The functions of this file that are methods of Tensor too."""
