"""Activations made of straight lines. At a kink the gradient is PyTorch's."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from dyngraph.ops.operator import define

relu = define(
    "relu",
    lambda self: jnp.maximum(self, 0),
    self=lambda grad, result: jnp.where(result > 0, grad, 0),
    inplace=True,
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
    inplace=True,
    doc="""The positive part, at most 6.

    >>> dg.nn.functional.relu6(dg.tensor([-1.0, 8.0]))
    tensor([0., 6.])
    """,
)


leaky_relu = define(
    "leaky_relu",
    lambda self, negative_slope=0.01: jnp.where(self > 0, self, negative_slope * self),
    self=lambda grad, self, negative_slope: jnp.where(self > 0, grad, negative_slope * grad),
    negative_slope=None,
    inplace=True,
    doc="""`input` above 0, a small multiple of it below.

    >>> dg.nn.functional.leaky_relu(dg.tensor([-1.0, 2.0]), 0.1)
    tensor([-0.1000,  2.0000])
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
    inplace=True,
    doc="""`clamp` with gradient 0 at the edges.

    >>> dg.nn.functional.hardtanh(dg.tensor([-2.0, 0.5]))
    tensor([-1.0000,  0.5000])
    """,
)


hardsigmoid = define(
    "hardsigmoid",
    lambda self: jnp.clip(self / 6 + 0.5, 0, 1),
    self=lambda grad, self: jnp.where((self > -3) & (self < 3), grad / 6, 0),
    inplace=True,
    doc="""A `sigmoid` of three straight lines.

    >>> dg.nn.functional.hardsigmoid(dg.tensor([0.0, 4.0]))
    tensor([0.5000, 1.0000])
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


threshold = define(
    "threshold",
    lambda self, threshold, value: jnp.where(
        self > threshold, self, jnp.asarray(value).astype(self.dtype)
    ),
    self=lambda grad, self, threshold: jnp.where(self > threshold, grad, 0),
    threshold=None,
    value=None,
    inplace=True,
    doc="""The input where it is above `threshold`, and `value` where it is not.

    >>> dg.threshold(dg.tensor([1.0, 3.0]), 2.0, 0.0)
    tensor([0., 3.])
    """,
)


def _prelu_weight(self: Any, weight: Any) -> Any:
    """The weight, one value or one a channel, made to broadcast."""
    channels = self.shape[1] if self.ndim > 1 else 1
    if weight.ndim > 1 or weight.size not in (1, channels):
        raise RuntimeError(
            f"Mismatch of parameter numbers and input channel size. Found parameter numbers = "
            f"{list(weight.shape)} and channel size = {channels}."
        )
    return weight.reshape(-1, *[1] * (self.ndim - 2)) if self.ndim > 1 else weight.reshape(())


def _prelu(self: Any, weight: Any) -> Any:
    return jnp.where(self > 0, self, _prelu_weight(self, weight) * self)


def _prelu_weight_rule(grad: Any, self: Any, weight_shape: Any) -> Any:
    slope = jnp.where(self > 0, 0, grad * self)
    if weight_shape in ((), (1,)):
        return slope.sum().reshape(weight_shape)
    return slope.sum([d for d in range(slope.ndim) if d != 1])


prelu = define(
    "prelu",
    _prelu,
    node="PreluKernelBackward0",
    self=lambda grad, self, weight: jnp.where(self > 0, grad, _prelu_weight(self, weight) * grad),
    weight=_prelu_weight_rule,
    doc="""`leaky_relu` with a slope that is learnt: one `weight`, or one a channel.

    He et al. 2015, https://arxiv.org/abs/1502.01852. Raises RuntimeError for another number.

    >>> dg.prelu(dg.tensor([-1.0, 2.0]), dg.tensor([0.5]))
    tensor([-0.5000,  2.0000])
    """,
)


__all__ = [
    "hardshrink",
    "prelu",
    "relu",
    "threshold",
]

METHODS = ("hardshrink", "prelu", "relu")
"""The functions of this file that are methods of Tensor too."""
