"""Activations: functions of each element by itself, but for GLU."""

from __future__ import annotations

import warnings
from dataclasses import InitVar
from typing import Any

from dyngraph.nn import functional as F, init as initial
from dyngraph.nn.modules.layer import Layer, layer
from dyngraph.nn.modules.module import Module
from dyngraph.nn.parameter import Parameter
from dyngraph.ops.filled import empty
from dyngraph.tensor import Tensor

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "Mish",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SELU",
    "SiLU",
    "Sigmoid",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
]


@layer
class Threshold(Layer):
    """x where it is above `threshold`, `value` elsewhere.

    >>> dg.nn.Threshold(0.5, 9.0)(dg.tensor([0.0, 1.0]))
    tensor([9., 1.])
    """

    threshold: float
    value: float
    inplace: bool = False

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)


@layer
class ReLU(Layer):
    """max(x, 0), written over the input with `inplace`.

    >>> dg.nn.ReLU()(dg.tensor([-1.0, 1.0]))
    tensor([0., 1.])
    """

    inplace: bool = False

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(input, self.inplace)


@layer
class RReLU(Layer):
    """x above zero, a * x below it: a is drawn from [lower, upper) in training, else their mean.

    >>> dg.nn.RReLU(0.5, 0.5).eval()(dg.tensor([-1.0, 1.0]))
    tensor([-0.5000,  1.0000])
    """

    lower: float = 1.0 / 8
    upper: float = 1.0 / 3
    inplace: bool = False

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)


@layer
class Hardtanh(Layer):
    """x between `min_val` and `max_val`, and these beyond; AssertionError where the second is not
    above the first.

    >>> dg.nn.Hardtanh(-1, 0.5)(dg.tensor([-2.0, 1.0]))
    tensor([-1.0000,  0.5000])
    """

    min_val: float = -1.0
    max_val: float = 1.0
    inplace: bool = False
    min_value: InitVar[float | None] = None
    max_value: InitVar[float | None] = None

    def check(self, min_value: float | None = None, max_value: float | None = None) -> None:
        for old, name, value in (
            ("min_value", "min_val", min_value),
            ("max_value", "max_val", max_value),
        ):
            if value is not None:
                warnings.warn(
                    f"keyword argument `{old}` is deprecated and renamed to `{name}`",
                    FutureWarning,
                    stacklevel=4,
                )
                setattr(self, name, value)
        if self.max_val <= self.min_val:
            raise AssertionError(
                f"max_val ({self.max_val}) must be greater than min_val ({self.min_val})"
            )

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)


class ReLU6(Hardtanh):
    """x between 0 and 6, and these beyond.

    >>> dg.nn.ReLU6()(dg.tensor([-1.0, 7.0]))
    tensor([0., 6.])
    """

    shown = ("inplace",)

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)


class Sigmoid(Module):
    """1 / (1 + exp(-x)).

    >>> dg.nn.Sigmoid()(dg.zeros(2))
    tensor([0.5000, 0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.sigmoid(input)


@layer
class Hardsigmoid(Layer):
    """x / 6 + 1/2 between -3 and 3, and 0 and 1 beyond.

    >>> dg.nn.Hardsigmoid()(dg.zeros(2))
    tensor([0.5000, 0.5000])
    """

    shown = ()
    inplace: bool = False

    def forward(self, input: Tensor) -> Tensor:
        return F.hardsigmoid(input, self.inplace)


class Tanh(Module):
    """tanh(x).

    >>> dg.nn.Tanh()(dg.zeros(2))
    tensor([0., 0.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.tanh(input)


@layer
class SiLU(Layer):
    """x * sigmoid(x).

    >>> dg.nn.SiLU()(dg.zeros(2))
    tensor([0., 0.])
    """

    inplace: bool = False

    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input, self.inplace)


@layer
class Mish(Layer):
    """x * tanh(softplus(x)).

    >>> dg.nn.Mish()(dg.zeros(2))
    tensor([0., 0.])
    """

    inplace: bool = False

    def forward(self, input: Tensor) -> Tensor:
        return F.mish(input, self.inplace)


@layer
class Hardswish(Layer):
    """x * hardsigmoid(x).

    >>> dg.nn.Hardswish()(dg.tensor([-3.0, 3.0])).abs()
    tensor([0., 3.])
    """

    shown = ()
    inplace: bool = False

    def forward(self, input: Tensor) -> Tensor:
        return F.hardswish(input, self.inplace)


@layer
class ELU(Layer):
    """x above zero, alpha * (exp(x) - 1) below.

    >>> dg.nn.ELU()(dg.tensor([-1.0, 1.0]))
    tensor([-0.6321,  1.0000])
    """

    alpha: float = 1.0
    inplace: bool = False

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, self.inplace)


@layer
class CELU(Layer):
    """x above zero, alpha * (exp(x / alpha) - 1) below.

    >>> dg.nn.CELU(2.0)(dg.tensor([-1.0, 1.0]))
    tensor([-0.7869,  1.0000])
    """

    alpha: float = 1.0
    inplace: bool = False

    def forward(self, input: Tensor) -> Tensor:
        return F.celu(input, self.alpha, self.inplace)


@layer
class SELU(Layer):
    """An ELU whose scales keep mean 0 and variance 1 (Klambauer et al., 2017).

    >>> dg.nn.SELU()(dg.tensor([-1.0, 1.0]))
    tensor([-1.1113,  1.0507])
    """

    inplace: bool = False

    def forward(self, input: Tensor) -> Tensor:
        return F.selu(input, self.inplace)


@layer
class GLU(Layer):
    """a * sigmoid(b), the input's halves along `dim`; (..., 2 n, ...) -> (..., n, ...).

    >>> dg.nn.GLU()(dg.tensor([2.0, 0.0]))
    tensor([1.])
    """

    dim: int = -1

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)


@layer
class GELU(Layer):
    """x times the normal distribution function of x; `approximate="tanh"` approximates that.

    >>> dg.nn.GELU()(dg.tensor([-1.0, 1.0]))
    tensor([-0.1587,  0.8413])
    """

    approximate: str = "none"

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)


@layer
class Hardshrink(Layer):
    """x where it is beyond `lambd` on either side, 0 between.

    >>> dg.nn.Hardshrink()(dg.tensor([-1.0, 0.2]))
    tensor([-1.,  0.])
    """

    lambd: float = 0.5

    def forward(self, input: Tensor) -> Tensor:
        return F.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


@layer
class LeakyReLU(Layer):
    """x above zero, negative_slope * x below.

    >>> dg.nn.LeakyReLU(0.1)(dg.tensor([-1.0, 1.0]))
    tensor([-0.1000,  1.0000])
    """

    negative_slope: float = 0.01
    inplace: bool = False

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)


class LogSigmoid(Module):
    """log(sigmoid(x)).

    >>> dg.nn.LogSigmoid()(dg.zeros(2))
    tensor([-0.6931, -0.6931])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.logsigmoid(input)


@layer
class Softplus(Layer):
    """log(1 + exp(beta * x)) / beta, and x where beta * x is above `threshold`.

    >>> dg.nn.Softplus()(dg.zeros(2))
    tensor([0.6931, 0.6931])
    """

    beta: float = 1.0
    threshold: float = 20.0

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)


@layer
class Softshrink(Layer):
    """x moved by `lambd` towards zero, 0 where it is not so far away.

    >>> dg.nn.Softshrink()(dg.tensor([-1.0, 0.2]))
    tensor([-0.5000,  0.0000])
    """

    lambd: float = 0.5

    def forward(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class PReLU(Module):
    """x above zero, weight * x below, the weight learned: one, or one for each of `num_parameters`
    channels, which are dim 1.

    weight: (num_parameters,) starts at `init`.

    >>> dg.nn.PReLU()(dg.tensor([-1.0, 1.0])).tolist()
    [-0.25, 1.0]
    """

    weight: Parameter

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets the initial values anew."""
        initial.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class Softsign(Module):
    """x / (1 + |x|).

    >>> dg.nn.Softsign()(dg.tensor([-1.0, 1.0]))
    tensor([-0.5000,  0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softsign(input)


class Tanhshrink(Module):
    """x - tanh(x).

    >>> dg.nn.Tanhshrink()(dg.zeros(2))
    tensor([0., 0.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.tanhshrink(input)
