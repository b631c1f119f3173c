"""Normalization of each example by itself: over its last dims, or over groups of channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dyngraph.nn import functional as F, init
from dyngraph.nn.modules.layer import Layer, layer
from dyngraph.nn.modules.linear import register_bias
from dyngraph.nn.modules.module import Module
from dyngraph.nn.parameter import Parameter
from dyngraph.ops.filled import empty
from dyngraph.ops.ranges import arange
from dyngraph.tensor import Tensor

__all__ = ["CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


@layer
class LocalResponseNorm(Layer):
    """x / (k + alpha * mean of the squares of `size` channels round it) ** beta; input: (N, C,
    ...).

    >>> dg.nn.LocalResponseNorm(1, alpha=3.0, beta=0.5)(dg.ones(1, 2, 1)).flatten()
    tensor([0.5000, 0.5000])
    """

    size: int
    alpha: float = 1e-4
    beta: float = 0.75
    k: float = 1.0

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return super().extra_repr().removeprefix("size=")


@layer
class CrossMapLRN2d(Layer):
    """`LocalResponseNorm` of images, with the sums that networks of PyTorch's were trained with.

    input: (N, C, H, W). The window is `size` channels, one less where that is even; and channel 0
    counts for all channels behind it too. The gradient is that of this function. Raises ValueError
    for other dims.

    >>> dg.nn.CrossMapLRN2d(1, alpha=3.0, beta=0.5)(dg.ones(1, 1, 1, 1)).flatten()
    tensor([0.5000])
    """

    size: int
    alpha: float = 1e-4
    beta: float = 0.75
    k: float = 1

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.")
        half = (self.size - 1) // 2
        squares = input * input
        sums = F.pad(squares, (0, 0, 0, 0, half, half)).unfold(1, 2 * half + 1, 1).sum(-1)
        behind = arange(input.shape[1], device=input.device) > half
        sums = sums + squares[:, :1] * behind[:, None, None]
        return input * (sums * (self.alpha / self.size) + self.k) ** -self.beta

    def extra_repr(self) -> str:
        return super().extra_repr().removeprefix("size=")


class _Affine(Module):
    weight: Parameter | None
    bias: Parameter | None

    def _make_parameters(
        self, shape: Any, device: Any, dtype: Any, *, weight: bool, bias: bool
    ) -> None:
        made = Parameter(empty(shape, device=device, dtype=dtype)) if weight else None
        self.register_parameter("weight", made)
        register_bias(self, shape if weight and bias else None, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets weight to ones, and bias to zeros."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


class LayerNorm(_Affine):
    """(x - mean) / sqrt(variance + eps) * weight + bias over the last dims; input: (...,
    *normalized_shape).

    weight and bias: (*normalized_shape) start as ones and zeros, and are there with
    `elementwise_affine`, bias only with `bias`.

    >>> dg.nn.LayerNorm(2)(dg.tensor([1.0, 3.0])).tolist()
    [-0.9999949932098389, 0.9999949932098389]
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self._make_parameters(
            self.normalized_shape, device, dtype, weight=elementwise_affine, bias=bias
        )

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )


class GroupNorm(_Affine):
    """(x - mean) / sqrt(variance + eps) * weight + bias over groups of channels; input: (N, C,
    ...), C = `num_channels`.

    weight and bias: (C,) start as ones and zeros, and are there with `affine`, bias only with
    `bias`. Raises ValueError where `num_groups` does not divide the channels.

    >>> dg.nn.GroupNorm(1, 2)(dg.tensor([[1.0, 3.0]])).tolist()
    [[-0.9999949932098389, 0.9999949932098389]]
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(
                f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})"
            )
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self._make_parameters(num_channels, device, dtype, weight=affine, bias=bias)

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """x / sqrt(mean of squares + eps) * weight over the last dims; input: (...,
    *normalized_shape).

    weight: (*normalized_shape) starts as ones, and is there with `elementwise_affine`; `eps` is the
    smallest step of the input's dtype where it is None.

    >>> dg.nn.RMSNorm(2)(dg.tensor([3.0, 3.0]))
    tensor([1., 1.], grad_fn=<RmsNormBackward0>)
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        weight = None
        if elementwise_affine:
            weight = Parameter(empty(self.normalized_shape, device=device, dtype=dtype))
        self.register_parameter("weight", weight)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets weight to ones."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )


def _shape(normalized_shape: int | Sequence[int]) -> tuple[int, ...]:
    if isinstance(normalized_shape, Sequence):
        return tuple(normalized_shape)
    return (normalized_shape,)
