"""Linear maps, and the module that does nothing."""

from __future__ import annotations

import math
from typing import Any

from dyngraph.nn import functional as F, init
from dyngraph.nn.modules.module import Module
from dyngraph.nn.parameter import Parameter
from dyngraph.ops.filled import empty
from dyngraph.tensor import Tensor

__all__ = ["Bilinear", "Identity", "Linear"]


class Identity(Module):
    """Returns its input; takes any arguments, so that it can stand for any module.

    >>> dg.nn.Identity(54, unused=True)(dg.ones(2))
    tensor([1., 1.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        return input


class Linear(Module):
    """`input @ weight.T + bias`; input: (..., in_features) -> (..., out_features).

    weight: (out_features, in_features) and bias: (out_features,) are drawn from
    [-1/sqrt(in_features), 1/sqrt(in_features)).

    >>> dg.nn.Linear(2, 3)(dg.ones(4, 2)).shape
    dyngraph.Size([4, 3])
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(empty(out_features, in_features, device=device, dtype=dtype))
        register_bias(self, out_features if bias else None, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the initial values anew."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        draw_bias(self)

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class Bilinear(Module):
    """`input1 @ weight[k] @ input2 + bias[k]` for each feature k of the output.

    input1: (..., in1_features), input2: (..., in2_features) -> (..., out_features). weight:
    (out_features, in1_features, in2_features) and bias: (out_features,) are drawn from
    [-1/sqrt(in1_features), 1/sqrt(in1_features)). Raises ValueError where in1_features is not above
    zero.

    >>> dg.nn.Bilinear(2, 2, 3)(dg.ones(4, 2), dg.ones(4, 2)).shape
    dyngraph.Size([4, 3])
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got (in1_features={in1_features})")
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        shape = (out_features, in1_features, in2_features)
        self.weight = Parameter(empty(shape, device=device, dtype=dtype))
        register_bias(self, out_features if bias else None, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the initial values anew."""
        bound = 1 / math.sqrt(self.weight.size(1))
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )


def register_bias(module: Module, count: int | None, device: Any, dtype: Any) -> None:
    """Gives a module its `bias`: an empty one of `count` numbers, or None."""
    bias = None if count is None else Parameter(empty(count, device=device, dtype=dtype))
    module.register_parameter("bias", bias)


def draw_bias(module: Any) -> None:
    """Draws a module's bias from [-1/sqrt(fan_in), 1/sqrt(fan_in)), the fan that of its weight."""
    if module.bias is not None:
        fan_in, _ = init._calculate_fan_in_and_fan_out(module.weight)
        bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
        init.uniform_(module.bias, -bound, bound)
