"""Norms of the windows of the last dims."""

from __future__ import annotations

import math
from typing import Any

from dyngraph.ops.arithmetic import abs as _abs, mul, sign
from dyngraph.ops.convolution import one_for_each_dim
from dyngraph.ops.piecewise_linear import relu
from dyngraph.ops.pooling import avg_pool1d, avg_pool2d, avg_pool3d
from dyngraph.ops.powers import pow as _pow
from dyngraph.tensor import Tensor


def _power_pool(
    count: int, input: Tensor, norm_type: float, kernel_size: Any, stride: Any, ceil_mode: bool
) -> Tensor:
    kernel = one_for_each_dim(f"lp_pool{count}d", "kernel_size", kernel_size, count)
    average = {1: avg_pool1d, 2: avg_pool2d, 3: avg_pool3d}[count]
    mean = average(_pow(input, norm_type), kernel, stride, 0, ceil_mode)
    total = mul(mul(sign(mean), relu(_abs(mean))), math.prod(kernel))
    return _pow(total, 1.0 / norm_type)


def lp_pool1d(
    input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """The root of the sum of the powers of each window of the last dim: its `norm_type`-norm.

    >>> dg.nn.functional.lp_pool1d(dg.tensor([[3.0, 4.0]]), 2, 2)
    tensor([[5.]])
    """
    return _power_pool(1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(
    input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """The `norm_type`-norm of each window of the last two dims.

    >>> dg.nn.functional.lp_pool2d(dg.ones(1, 2, 2), 2, 2)
    tensor([[[2.]]])
    """
    return _power_pool(2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(
    input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """The `norm_type`-norm of each window of the last three dims.

    >>> dg.nn.functional.lp_pool3d(dg.ones(1, 2, 2, 2), 3, 2)
    tensor([[[[2.]]]])
    """
    return _power_pool(3, input, norm_type, kernel_size, stride, ceil_mode)


__all__: list[str] = []  # these are functions of nn.functional
METHODS: tuple[str, ...] = ()
