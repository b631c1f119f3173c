"""Pools: the maximum, mean or norm of windows, and their inverse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from dyngraph.nn import functional as F
from dyngraph.nn.modules.layer import Layer, layer
from dyngraph.nn.modules.module import Module
from dyngraph.nn.modules.utils import _ntuple
from dyngraph.tensor import Tensor

__all__ = [
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "FractionalMaxPool2d",
    "FractionalMaxPool3d",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
]


@layer
class _MaxPool(Layer):
    shown = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")
    function: ClassVar[Callable[..., Any]]
    kernel_size: Any
    stride: Any = None
    padding: Any = 0
    dilation: Any = 1
    return_indices: bool = False
    ceil_mode: bool = False

    def check(self) -> None:
        if self.stride is None:
            self.stride = self.kernel_size

    def forward(self, input: Tensor) -> Any:
        return type(self).function(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            self.ceil_mode,
            self.return_indices,
        )


class MaxPool1d(_MaxPool):
    """The maximum of each window; input: (N, C, L) or (C, L) -> (N, C, L_out).

    L_out = (L + 2 * padding - dilation * (kernel_size - 1) - 1) / stride + 1, rounded down, or up
    with `ceil_mode`; the stride is the kernel size where it is None. With `return_indices`, a pair:
    the maxima, and their places in the input, which MaxUnpool1d takes.

    >>> dg.nn.MaxPool1d(2)(dg.tensor([[1.0, 3.0, 2.0, 0.0]]))
    tensor([[3., 2.]])
    """

    function = staticmethod(F.max_pool1d)


class MaxPool2d(_MaxPool):
    """The maximum of each window; input: (N, C, H, W) or (C, H, W) -> (N, C, H_out, W_out), each
    as in MaxPool1d. Sizes are numbers, for both dims, or pairs.

    >>> dg.nn.MaxPool2d(2)(dg.tensor([[[1.0, 3.0], [2.0, 0.0]]]))
    tensor([[[3.]]])
    """

    function = staticmethod(F.max_pool2d)


class MaxPool3d(_MaxPool):
    """The maximum of each window; input: (N, C, D, H, W) or (C, D, H, W) -> (N, C, D_out, H_out,
    W_out), each as in MaxPool1d. Sizes are numbers, for all dims, or triples.

    >>> dg.nn.MaxPool3d(2)(dg.ones(1, 2, 2, 2)).shape
    dyngraph.Size([1, 1, 1, 1])
    """

    function = staticmethod(F.max_pool3d)


class _MaxUnpool(Module):
    dims: ClassVar[int]
    function: ClassVar[Callable[..., Tensor]]

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        for_each_dim = _ntuple(self.dims)
        self.kernel_size = for_each_dim(kernel_size)
        self.stride = for_each_dim(kernel_size if stride is None else stride)
        self.padding = for_each_dim(padding)

    def forward(
        self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None
    ) -> Tensor:
        return type(self).function(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpool):
    """Puts maxima back to their places, zeros between; input and indices: (N, C, L) or (C, L) ->
    (N, C, L_out), the smallest that MaxPool1d makes L of, or `output_size`.

    >>> maxima, places = dg.nn.MaxPool1d(2, return_indices=True)(dg.tensor([[1.0, 3.0]]))
    >>> dg.nn.MaxUnpool1d(2)(maxima, places)
    tensor([[0., 3.]])
    """

    dims = 1
    function = staticmethod(F.max_unpool1d)


class MaxUnpool2d(_MaxUnpool):
    """Puts maxima back to their places, zeros between; input and indices: (N, C, H, W) or (C, H,
    W), as MaxUnpool1d.

    >>> maxima, places = dg.nn.MaxPool2d(2, return_indices=True)(dg.tensor([[[1.0, 3], [2, 0]]]))
    >>> dg.nn.MaxUnpool2d(2)(maxima, places)
    tensor([[[0., 3.],
             [0., 0.]]])
    """

    dims = 2
    function = staticmethod(F.max_unpool2d)


class MaxUnpool3d(_MaxUnpool):
    """Puts maxima back to their places, zeros between; input and indices: (N, C, D, H, W) or (C,
    D, H, W), as MaxUnpool1d.

    >>> maxima, places = dg.nn.MaxPool3d(2, return_indices=True)(dg.ones(1, 2, 2, 2))
    >>> dg.nn.MaxUnpool3d(2)(maxima, places).sum()
    tensor(1.)
    """

    dims = 3
    function = staticmethod(F.max_unpool3d)


class AvgPool1d(Module):
    """The mean of each window; input: (N, C, L) or (C, L) -> (N, C, L_out).

    L_out = (L + 2 * padding - kernel_size) / stride + 1, rounded down, or up with `ceil_mode`; the
    stride is the kernel size where it is None. The zeros of the padding count, unless
    `count_include_pad=False`.

    >>> dg.nn.AvgPool1d(2)(dg.tensor([[1.0, 3.0, 2.0, 0.0]]))
    tensor([[2., 1.]])
    """

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        single = _ntuple(1)
        self.kernel_size = single(kernel_size)
        self.stride = single(kernel_size if stride is None else stride)
        self.padding = single(padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
        )

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


@layer
class _AvgPool(Layer):
    shown = ("kernel_size", "stride", "padding")
    function: ClassVar[Callable[..., Tensor]]
    kernel_size: Any
    stride: Any = None
    padding: Any = 0
    ceil_mode: bool = False
    count_include_pad: bool = True
    divisor_override: int | None = None

    def check(self) -> None:
        if self.stride is None:
            self.stride = self.kernel_size

    def forward(self, input: Tensor) -> Tensor:
        return type(self).function(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


class AvgPool2d(_AvgPool):
    """The mean of each window; input: (N, C, H, W) or (C, H, W) -> (N, C, H_out, W_out), each as
    in AvgPool1d. The sum is divided by `divisor_override` where that is given.

    >>> dg.nn.AvgPool2d(2)(dg.tensor([[[1.0, 3.0], [2.0, 0.0]]]))
    tensor([[[1.5000]]])
    """

    function = staticmethod(F.avg_pool2d)


class AvgPool3d(_AvgPool):
    """The mean of each window; input: (N, C, D, H, W) or (C, D, H, W) -> (N, C, D_out, H_out,
    W_out), each as in AvgPool1d. The sum is divided by `divisor_override` where that is given.

    >>> dg.nn.AvgPool3d(2)(dg.ones(1, 2, 2, 2)).shape
    dyngraph.Size([1, 1, 1, 1])
    """

    function = staticmethod(F.avg_pool3d)


class _FractionalMaxPool(Module):
    dims: ClassVar[int]
    function: ClassVar[Callable[..., Any]]

    def __init__(
        self,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        name, for_each_dim = type(self).__name__, _ntuple(self.dims)
        self.kernel_size = for_each_dim(kernel_size)
        if any(n <= 0 for n in self.kernel_size):
            raise ValueError(f"kernel_size must be greater than 0, but got {kernel_size}")
        if output_size is None and output_ratio is None:
            raise ValueError(
                f"{name} requires specifying either an output size, or a pooling ratio"
            )
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else for_each_dim(output_size)
        self.output_ratio = None if output_ratio is None else for_each_dim(output_ratio)
        if self.output_ratio is not None and any(not 0 < r < 1 for r in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input: Tensor) -> Any:
        return type(self).function(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            _random_samples=self._random_samples,
        )


class FractionalMaxPool2d(_FractionalMaxPool):
    """The maximum of windows at drawn distances (Graham, 2014); input: (N, C, H, W) or (C, H, W)
    -> (N, C, *output_size).

    The output's size is `output_size`, or `output_ratio` times the input's. With `return_indices`,
    a pair: the maxima, and their places in the input. Raises ValueError unless exactly one of the
    two is given, the ratio between 0 and 1.

    >>> dg.nn.FractionalMaxPool2d(2, output_size=2)(dg.ones(1, 4, 4)).shape
    dyngraph.Size([1, 2, 2])
    """

    dims = 2
    function = staticmethod(F.fractional_max_pool2d)


class FractionalMaxPool3d(_FractionalMaxPool):
    """The maximum of windows at drawn distances; input: (N, C, D, H, W) or (C, D, H, W) -> (N, C,
    *output_size), as FractionalMaxPool2d.

    >>> dg.nn.FractionalMaxPool3d(2, output_size=2)(dg.ones(1, 4, 4, 4)).shape
    dyngraph.Size([1, 2, 2, 2])
    """

    dims = 3
    function = staticmethod(F.fractional_max_pool3d)


@layer
class _LPPool(Layer):
    function: ClassVar[Callable[..., Tensor]]
    norm_type: float
    kernel_size: Any
    stride: Any = None
    ceil_mode: bool = False

    def forward(self, input: Tensor) -> Tensor:
        return type(self).function(
            input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode
        )


class LPPool1d(_LPPool):
    """The norm of each window, by its sum of powers of `norm_type`; input: (N, C, L) or (C, L) ->
    (N, C, L_out), L_out as in AvgPool1d.

    >>> dg.nn.LPPool1d(2, 2)(dg.tensor([[3.0, 4.0]]))
    tensor([[5.]])
    """

    function = staticmethod(F.lp_pool1d)


class LPPool2d(_LPPool):
    """The norm of each window, as LPPool1d; input: (N, C, H, W) or (C, H, W).

    >>> dg.nn.LPPool2d(2, (1, 2))(dg.tensor([[[3.0, 4.0]]]))
    tensor([[[5.]]])
    """

    function = staticmethod(F.lp_pool2d)


class LPPool3d(_LPPool):
    """The norm of each window, as LPPool1d; input: (N, C, D, H, W) or (C, D, H, W).

    >>> dg.nn.LPPool3d(2, (1, 1, 2))(dg.tensor([[[[3.0, 4.0]]]]))
    tensor([[[[5.]]]])
    """

    function = staticmethod(F.lp_pool3d)
