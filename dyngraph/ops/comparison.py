"""Comparison and logic: truth values and bits of each element, or of two tensors as a whole.

Nothing here has a gradient, and nothing is recorded.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from dyngraph.ops.host_values import array_of
from dyngraph.ops.operator import define


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


def allclose(
    input: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> bool:
    """Whether each `|input - other| <= atol + rtol * |other|`, as a Python bool.

    >>> dg.allclose(dg.tensor([1.0, 2.0]), dg.tensor([1.0, 2.0 + 1e-6]))
    True
    """
    return bool(jnp.allclose(array_of(input), array_of(other), rtol, atol, equal_nan))


def equal(input: Any, other: Any) -> bool:
    """Whether shapes and all elements agree, as a Python bool; NaN equals nothing.

    >>> dg.equal(dg.tensor([1.0, 2.0]), dg.tensor([1.0, 2.0]))
    True
    """
    return bool(jnp.array_equal(array_of(input), array_of(other)))


__all__ = [
    "allclose",
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "eq",
    "equal",
    "ge",
    "greater",
    "greater_equal",
    "gt",
    "isclose",
    "isfinite",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "isreal",
    "le",
    "less",
    "less_equal",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "lt",
    "ne",
    "not_equal",
    "signbit",
]

METHODS = tuple(__all__)
"""The functions of this file that are methods of Tensor too."""
