"""Activations: what stands between the layers of a neural network, element by element.

Where one has a kink, its gradient there is PyTorch's.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy import special

from dyngraph.ops.operator import define
from dyngraph.tensor import canonical_dim

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

threshold = define(
    "threshold",
    lambda self, threshold, value: jnp.where(
        self > threshold, self, jnp.asarray(value).astype(self.dtype)
    ),
    self=lambda grad, self, threshold: jnp.where(self > threshold, grad, 0),
    threshold=None,
    value=None,
    doc="""The input where it is above `threshold`, and `value` where it is not.

    >>> dg.threshold(dg.tensor([1.0, 3.0]), 2.0, 0.0)
    tensor([0., 3.])
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
    "celu",
    "hardshrink",
    "prelu",
    "relu",
    "selu",
    "sigmoid",
    "threshold",
]

METHODS = (
    "hardshrink",
    "prelu",
    "relu",
    "sigmoid",
)
"""The functions of this file that are methods of Tensor too."""
