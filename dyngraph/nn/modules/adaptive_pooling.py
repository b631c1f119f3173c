"""Pools of as many windows as the output is to have elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from dyngraph.nn import functional as F
from dyngraph.nn.modules.layer import Layer, layer
from dyngraph.tensor import Tensor

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
]


@layer
class _AdaptiveMaxPool(Layer):
    shown = ("output_size",)
    function: ClassVar[Callable[..., Any]]
    output_size: Any
    return_indices: bool = False

    def forward(self, input: Tensor) -> Any:
        return type(self).function(input, self.output_size, self.return_indices)


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """The maximum of as many windows as `output_size` says; input: (N, C, L) or (C, L). With
    `return_indices`, a pair: the maxima, and their places in the input.

    >>> dg.nn.AdaptiveMaxPool1d(2)(dg.tensor([[1.0, 3.0, 2.0, 0.0]]))
    tensor([[3., 2.]])
    """

    function = staticmethod(F.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """The maximum of as many windows as `output_size` says, a number or a pair, None for a dim as
    it is; input: (N, C, H, W) or (C, H, W).

    >>> dg.nn.AdaptiveMaxPool2d((1, None))(dg.tensor([[[1.0, 3.0], [2.0, 0.0]]]))
    tensor([[[2., 3.]]])
    """

    function = staticmethod(F.adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """The maximum of as many windows as `output_size` says, a number or a triple, None for a dim
    as it is; input: (N, C, D, H, W) or (C, D, H, W).

    >>> dg.nn.AdaptiveMaxPool3d(1)(dg.ones(1, 2, 2, 2)).shape
    dyngraph.Size([1, 1, 1, 1])
    """

    function = staticmethod(F.adaptive_max_pool3d)


@layer
class _AdaptiveAvgPool(Layer):
    function: ClassVar[Callable[..., Tensor]]
    output_size: Any

    def forward(self, input: Tensor) -> Tensor:
        return type(self).function(input, self.output_size)


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """The mean of as many windows as `output_size` says; input: (N, C, L) or (C, L).

    >>> dg.nn.AdaptiveAvgPool1d(2)(dg.tensor([[1.0, 3.0, 2.0, 0.0]]))
    tensor([[2., 1.]])
    """

    function = staticmethod(F.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """The mean of as many windows as `output_size` says, a number or a pair, None for a dim as it
    is; input: (N, C, H, W) or (C, H, W).

    >>> dg.nn.AdaptiveAvgPool2d((1, None))(dg.tensor([[[1.0, 3.0], [2.0, 0.0]]]))
    tensor([[[1.5000, 1.5000]]])
    """

    function = staticmethod(F.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """The mean of as many windows as `output_size` says, a number or a triple, None for a dim as
    it is; input: (N, C, D, H, W) or (C, D, H, W).

    >>> dg.nn.AdaptiveAvgPool3d(1)(dg.ones(1, 2, 2, 2)).shape
    dyngraph.Size([1, 1, 1, 1])
    """

    function = staticmethod(F.adaptive_avg_pool3d)
