"""Rounding of each element, whose gradient is zero wherever it exists, and parts of floats."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from dyngraph.kernels import same
from dyngraph.ops.arithmetic import mul
from dyngraph.ops.host_values import described
from dyngraph.ops.operator import define
from dyngraph.ops.out import takes_out
from dyngraph.ops.powers import pow
from dyngraph.ops.rules import zero_gradient
from dyngraph.tensor import Tensor, wrap

floor = define(
    "floor",
    lambda self: jnp.floor(self),
    self=zero_gradient,
    doc="""The greatest integer not above each element.

    >>> dg.floor(dg.tensor([1.5, -1.5]))
    tensor([ 1., -2.])
    """,
)

ceil = define(
    "ceil",
    lambda self: jnp.ceil(self),
    self=zero_gradient,
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
    doc="""The nearest integer, or multiple of 10 ** -decimals; halves go to the even one.

    >>> dg.round(dg.tensor([0.5, 1.5]))
    tensor([0., 2.])
    """,
)

trunc = define(
    "trunc",
    lambda self: jnp.trunc(self),
    self=zero_gradient,
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
    doc="""The part behind the decimal point, with the sign of the element.

    >>> dg.frac(dg.tensor([1.5, -1.5]))
    tensor([ 0.5000, -0.5000])
    """,
)


nextafter = define(
    "nextafter",
    lambda self, other: jnp.nextafter(self, other),
    self=same,
    other=zero_gradient,
    doc="""The next number of the dtype from `input` towards `other`, whose gradient is 0.

    >>> dg.nextafter(dg.tensor(1.0), dg.tensor(2.0)) - 1
    tensor(1.1921e-07)
    """,
)


def _frexp(self: Any) -> tuple[Any, Any]:
    if not jnp.issubdtype(self.dtype, jnp.floating):
        raise RuntimeError(
            f"torch.frexp() only supports floating-point dtypes, got {self.dtype}. Convert the "
            "input by .float()."
        )
    mantissa, exponent = jnp.frexp(self)
    return mantissa, exponent.astype(jnp.int32)


frexp = define(
    "frexp",
    _frexp,
    outputs=("mantissa", "exponent"),
    returns="frexp",
    self=lambda grads, exponent: jnp.ldexp(grads[0], -exponent),
    doc="""Mantissas between 0.5 and 1 and exponents: `input = mantissa * 2 ** exponent`.

    >>> mantissa, exponent = dg.frexp(dg.tensor([6.0]))
    >>> mantissa, exponent
    (tensor([0.7500]), tensor([3]))
    """,
)


@takes_out
def ldexp(input: Any, other: Any) -> Tensor:
    """`input * 2 ** other`: puts together what `frexp` took apart.

    >>> dg.ldexp(dg.tensor([0.75]), dg.tensor([3]))
    tensor([6.])
    """
    dtype = described(input).dtype
    dtype = jnp.finfo(dtype).dtype if jnp.issubdtype(dtype, jnp.inexact) else jnp.float32
    return mul(input, pow(wrap(jnp.asarray(2, dtype)), other))


__all__ = [
    "ceil",
    "fix",
    "floor",
    "frac",
    "frexp",
    "ldexp",
    "nextafter",
    "round",
    "trunc",
]

METHODS = tuple(__all__)
"""The functions of this file that are methods of Tensor too."""
