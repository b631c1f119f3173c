"""Which of several values an element gets: the greater, the less, the clamped, one of two.

The gradient goes where the value came from, and is shared at a tie.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from dyngraph.ops.operator import define
from dyngraph.ops.out import takes_out, write_out
from dyngraph.tensor import Tensor


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


@takes_out
def clamp_min(input: Any, min: Any) -> Tensor:
    """Each element, or `min` where it is below.

    >>> dg.clamp_min(dg.tensor([-2.0, 0.5]), 0)
    tensor([0.0000, 0.5000])
    """
    return clamp(input, min=min)


@takes_out
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


def where(condition: Any, input: Any = None, other: Any = None, *, out: Any = None) -> Any:
    """`input` where the condition holds, `other` elsewhere; alone, the places where it does.

    >>> x = dg.tensor([-1.0, 2.0])
    >>> dg.where(x > 0, x, 0.0)
    tensor([0., 2.])
    """
    if out is not None:
        return write_out(where, out, (condition, input, other), {})
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


def _heaviside(self: Any, values: Any) -> Any:
    if self.dtype != values.dtype and not values.weak_type:
        raise RuntimeError(
            "heaviside is not yet implemented for tensors with different dtypes: got "
            f"{self.dtype} and {values.dtype}. Convert one of them by .to()."
        )
    return jnp.heaviside(self, values).astype(self.dtype)


heaviside = define(
    "heaviside",
    _heaviside,
    differentiable=False,
    doc="""0 for negative numbers, 1 for positive ones, the element of `values` at 0; no gradient.

    >>> dg.heaviside(dg.tensor([-2.0, 0.0, 2.0]), dg.tensor(0.5))
    tensor([0.0000, 0.5000, 1.0000])
    """,
)


__all__ = [
    "clamp",
    "clamp_max",
    "clamp_min",
    "clip",
    "fmax",
    "fmin",
    "heaviside",
    "maximum",
    "minimum",
    "nan_to_num",
    "where",
]

METHODS = tuple(n for n in __all__ if n != "where")
"""The functions of this file that are methods of Tensor too."""
