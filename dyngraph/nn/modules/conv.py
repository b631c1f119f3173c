"""Convolutions in one to three dims, and transposed ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from dyngraph.nn import functional as F, init
from dyngraph.nn.modules.linear import draw_bias, register_bias
from dyngraph.nn.modules.module import Module
from dyngraph.nn.modules.utils import _ntuple, _reverse_repeat_tuple
from dyngraph.nn.parameter import Parameter
from dyngraph.ops.filled import empty
from dyngraph.tensor import Tensor

__all__ = [
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
]

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    weight: Parameter
    bias: Parameter | None
    dims: ClassVar[int]
    function: ClassVar[Callable[..., Tensor]]
    transposed: ClassVar[bool] = False

    def _set_up(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        dilation: Any,
        output_padding: Any,
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any,
        dtype: Any,
    ) -> None:
        super().__init__()
        if groups <= 0:
            raise ValueError(f"groups must be a positive integer, got {groups}")
        for name, channels in (("in_channels", in_channels), ("out_channels", out_channels)):
            if channels % groups:
                raise ValueError(f"{name} must be divisible by groups, got {channels} and {groups}")
        if padding_mode not in _PADDING_MODES:
            raise ValueError(
                f"padding_mode must be one of {_PADDING_MODES}, but got "
                f"padding_mode='{padding_mode}'"
            )
        for_each_dim = _ntuple(self.dims)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = for_each_dim(kernel_size)
        self.stride = for_each_dim(stride)
        self.padding = padding if isinstance(padding, str) else for_each_dim(padding)
        self.dilation = for_each_dim(dilation)
        self.output_padding = for_each_dim(output_padding)
        self.groups = groups
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = self._padding_by_side()
        channels = (out_channels, in_channels // groups)
        if self.transposed:
            channels = (in_channels, out_channels // groups)
        self.weight = Parameter(empty(*channels, *self.kernel_size, device=device, dtype=dtype))
        register_bias(self, out_channels if bias else None, device, dtype)
        self.reset_parameters()

    def _padding_by_side(self) -> tuple[int, ...]:
        """What is added before and after each dim, from the last dim to the first."""
        padding = self.padding
        if not isinstance(padding, str):
            return _reverse_repeat_tuple(padding, 2)
        if padding not in ("same", "valid"):
            raise ValueError(
                f"Invalid padding string {padding!r}, should be one of 'same' and 'valid'"
            )
        if padding == "valid":
            return (0, 0) * self.dims
        if any(step != 1 for step in self.stride):
            raise ValueError("padding='same' is not supported for strided convolutions")
        totals = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size, strict=True)]
        return tuple(side for n in reversed(totals) for side in (n // 2, n - n // 2))

    def reset_parameters(self) -> None:
        """Draws the initial values anew."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        draw_bias(self)

    def extra_repr(self) -> str:
        usual = {
            "padding": (0,) * len(self.padding),
            "dilation": (1,) * self.dims,
            "output_padding": (0,) * self.dims,
            "groups": 1,
        }
        shown = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}"
        shown += f", stride={self.stride}"
        for name, value in usual.items():
            if getattr(self, name) != value:
                shown += f", {name}={getattr(self, name)}"
        if self.bias is None:
            shown += ", bias=False"
        if self.padding_mode != "zeros":
            shown += f", padding_mode={self.padding_mode}"
        return shown


class _Conv(_ConvNd):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        self._set_up(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            0,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        padding = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._reversed_padding_repeated_twice, self.padding_mode)
            padding = 0
        convolve = type(self).function
        return convolve(input, weight, bias, self.stride, padding, self.dilation, self.groups)


class Conv1d(_Conv):
    """A convolution; input: (N, in_channels, L) or (in_channels, L) -> (N, out_channels, L_out).

    L_out = (L + 2 * padding - dilation * (kernel_size - 1) - 1) // stride + 1. `padding` may be
    `"same"`, with stride 1, or `"valid"`; `padding_mode` is `"zeros"`, `"reflect"`, `"replicate"`
    or `"circular"`. With `groups`, each group of the inputs makes a group of the outputs.

    weight: (out_channels, in_channels // groups, kernel_size) and bias: (out_channels,) are drawn
    from [-b, b), b = 1/sqrt(in_channels // groups * kernel_size). Raises ValueError for channels
    that `groups` does not divide and for other paddings.

    >>> dg.nn.Conv1d(2, 3, 3, padding=1)(dg.ones(1, 2, 4)).shape
    dyngraph.Size([1, 3, 4])
    """

    dims = 1
    function = staticmethod(F.conv1d)


class Conv2d(_Conv):
    """A convolution; input: (N, in_channels, H, W) or (in_channels, H, W) -> (N, out_channels,
    H_out, W_out), each as in Conv1d.

    Sizes are numbers, for both dims, or pairs. weight: (out_channels, in_channels // groups, kH,
    kW) and bias: (out_channels,) are drawn as in Conv1d.

    >>> dg.nn.Conv2d(1, 2, 3, stride=2)(dg.ones(1, 1, 5, 5)).shape
    dyngraph.Size([1, 2, 2, 2])
    """

    dims = 2
    function = staticmethod(F.conv2d)


class Conv3d(_Conv):
    """A convolution; input: (N, in_channels, D, H, W) or (in_channels, D, H, W) -> (N,
    out_channels, D_out, H_out, W_out), each as in Conv1d.

    Sizes are numbers, for all dims, or triples. weight: (out_channels, in_channels // groups, kD,
    kH, kW) and bias: (out_channels,) are drawn as in Conv1d.

    >>> dg.nn.Conv3d(1, 2, (1, 2, 2))(dg.ones(1, 1, 2, 3, 3)).shape
    dyngraph.Size([1, 2, 2, 2, 2])
    """

    dims = 3
    function = staticmethod(F.conv3d)


class _ConvTranspose(_ConvNd):
    transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(
                f'Only "zeros" padding mode is supported for {type(self).__name__}, got '
                f"{padding_mode!r}"
            )
        self._set_up(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            output_padding,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        return type(self).function(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self.output_padding if output_size is None else self._padding_for(input, output_size),
            self.groups,
            self.dilation,
        )

    def _padding_for(self, input: Tensor, output_size: Sequence[int]) -> tuple[int, ...]:
        """The output padding that gives an output of that size."""
        dims = self.dims
        others = 2 if input.dim() == dims + 2 else 1
        wanted = tuple(output_size)[others:] if len(output_size) == others + dims else output_size
        if len(wanted) != dims:
            raise ValueError(
                f"ConvTranspose{dims}D: for {input.dim()}D input, output_size must have {dims} or "
                f"{others + dims} elements (got {len(output_size)})"
            )
        assert not isinstance(self.padding, str)
        least = [
            (n - 1) * step - 2 * pad + gap * (width - 1) + 1
            for n, step, pad, gap, width in zip(
                input.shape[others:],
                self.stride,
                self.padding,
                self.dilation,
                self.kernel_size,
                strict=True,
            )
        ]
        found = tuple(n - low for n, low in zip(wanted, least, strict=True))
        if any(not 0 <= n < step for n, step in zip(found, self.stride, strict=True)):
            most = [low + step - 1 for low, step in zip(least, self.stride, strict=True)]
            raise ValueError(
                f"requested an output size of {tuple(wanted)}, but valid sizes range from {least} "
                f"to {most} (for an input of {list(input.shape[others:])})"
            )
        return found


class ConvTranspose1d(_ConvTranspose):
    """The transpose of Conv1d, which gives its inputs' size back; input: (N, in_channels, L) or
    (in_channels, L) -> (N, out_channels, L_out).

    L_out = (L - 1) * stride - 2 * padding + dilation * (kernel_size - 1) + output_padding + 1, or
    what `output_size` asks for. weight: (in_channels, out_channels // groups, kernel_size) and
    bias: (out_channels,) are drawn from [-b, b), b = 1/sqrt(out_channels // groups * kernel_size).
    Raises ValueError for an output size that no output padding gives.

    >>> dg.nn.ConvTranspose1d(2, 3, 3, stride=2)(dg.ones(1, 2, 4), output_size=[10]).shape
    dyngraph.Size([1, 3, 10])
    """

    dims = 1
    function = staticmethod(F.conv_transpose1d)


class ConvTranspose2d(_ConvTranspose):
    """The transpose of Conv2d; input: (N, in_channels, H, W) or (in_channels, H, W) -> (N,
    out_channels, H_out, W_out), each as in ConvTranspose1d.

    >>> dg.nn.ConvTranspose2d(1, 2, 2, stride=2)(dg.ones(1, 1, 3, 3)).shape
    dyngraph.Size([1, 2, 6, 6])
    """

    dims = 2
    function = staticmethod(F.conv_transpose2d)


class ConvTranspose3d(_ConvTranspose):
    """The transpose of Conv3d; input: (N, in_channels, D, H, W) or (in_channels, D, H, W) -> (N,
    out_channels, D_out, H_out, W_out), each as in ConvTranspose1d.

    >>> dg.nn.ConvTranspose3d(1, 2, (1, 2, 2))(dg.ones(1, 1, 2, 2, 2)).shape
    dyngraph.Size([1, 2, 2, 3, 3])
    """

    dims = 3
    function = staticmethod(F.conv_transpose3d)
