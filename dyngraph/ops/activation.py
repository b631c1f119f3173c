"""Curved activations, element by element, and `glu`; those of straight lines are in
`piecewise_linear`."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy import special

from dyngraph.ops.operator import define
from dyngraph.tensor import canonical_dim

sigmoid = define(
    "sigmoid",
    lambda self: jax.nn.sigmoid(self),
    self=lambda grad, result: grad * jnp.conj(result * (1 - result)),
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
    inplace=True,
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
    inplace=True,
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
    doc="""`input` times the normal distribution's share below it (https://arxiv.org/abs/1606.08415).

    >>> dg.nn.functional.gelu(dg.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8413])
    """,
)


elu = define(
    "elu",
    lambda self, alpha=1.0: jnp.where(self > 0, self, alpha * jnp.expm1(jnp.minimum(self, 0))),
    self=lambda grad, self, alpha: jnp.where(
        self > 0, grad, grad * alpha * jnp.exp(jnp.minimum(self, 0))
    ),
    alpha=None,
    inplace=True,
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
    inplace=True,
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
    inplace=True,
    doc="""The self-normalizing scaled `elu` (https://arxiv.org/abs/1706.02515).

    >>> dg.nn.functional.selu(dg.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """,
)


hardswish = define(
    "hardswish",
    lambda self: self * jnp.clip(self / 6 + 0.5, 0, 1),
    self=lambda grad, self: jnp.where(
        self <= -3, 0, jnp.where(self < 3, grad * (self / 3 + 0.5), grad)
    ),
    inplace=True,
    doc="""`input * hardsigmoid(input)`.

    >>> dg.nn.functional.hardswish(dg.tensor([0.0, 4.0]))
    tensor([0., 4.])
    """,
)


softsign = define(
    "softsign",
    lambda self: self / (1 + jnp.abs(self)),
    self=lambda grad, self: grad / (1 + jnp.abs(self)) ** 2,
    doc="""`input / (1 + |input|)`, between -1 and 1.

    >>> dg.nn.functional.softsign(dg.tensor([0.0, 1.0]))
    tensor([0.0000, 0.5000])
    """,
)


tanhshrink = define(
    "tanhshrink",
    lambda self: self - jnp.tanh(self),
    self=lambda grad, self: grad * jnp.tanh(self) ** 2,
    doc="""`input - tanh(input)`.

    >>> dg.nn.functional.tanhshrink(dg.tensor([0.0, 1.0]))
    tensor([0.0000, 0.2384])
    """,
)


def _halves(self: Any, dim: int) -> Any:
    axis = canonical_dim(dim, self.ndim)
    if not self.ndim or self.shape[axis] % 2:
        size = self.shape[axis] if self.ndim else 1
        raise RuntimeError(f"Halving dimension must be even, but dimension {axis} is size {size}")
    return jnp.split(self, 2, axis)


def _glu(self: Any, *, dim: int = -1) -> Any:
    first, second = _halves(self, dim)
    return first * jax.nn.sigmoid(second)


def _glu_rule(grad: Any, self: Any, dim: int) -> Any:
    first, second = _halves(self, dim)
    gate = jax.nn.sigmoid(second)
    return jnp.concatenate([grad * gate, grad * first * gate * (1 - gate)], axis=dim)


glu = define(
    "glu",
    _glu,
    signature="self, dim=-1",
    self=_glu_rule,
    doc="""The first half of the input along `dim`, times the sigmoid of the second half.

    Dauphin et al. 2017, https://arxiv.org/abs/1612.08083. RuntimeError where the size is odd.

    >>> dg.nn.functional.glu(dg.tensor([4.0, 0.0]))
    tensor([2.])
    """,
)


__all__ = ["celu", "selu", "sigmoid"]

METHODS = ("sigmoid",)
"""The functions of this file that are methods of Tensor too."""
