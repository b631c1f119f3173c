"""Modules that put elements elsewhere: flattening, windows, pixels, channels, and other sizes."""

from __future__ import annotations

from typing import Any

from dyngraph.nn import functional as F
from dyngraph.nn.modules.layer import Layer, layer
from dyngraph.nn.modules.module import Module
from dyngraph.tensor import Tensor

__all__ = [
    "ChannelShuffle",
    "Flatten",
    "Fold",
    "PixelShuffle",
    "PixelUnshuffle",
    "Unflatten",
    "Unfold",
    "Upsample",
    "UpsamplingBilinear2d",
    "UpsamplingNearest2d",
]


@layer
class Flatten(Layer):
    """Makes the dims from `start_dim` to `end_dim` one; (N, ...) -> (N, n) as it is made.

    >>> dg.nn.Flatten()(dg.ones(2, 3, 4)).shape
    dyngraph.Size([2, 12])
    """

    start_dim: int = 1
    end_dim: int = -1

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)


@layer
class Unflatten(Layer):
    """Makes the dim `dim` several, of sizes `unflattened_size`; TypeError where these are no ints.

    >>> dg.nn.Unflatten(1, (3, 4))(dg.ones(2, 12)).shape
    dyngraph.Size([2, 3, 4])
    """

    dim: int
    unflattened_size: Any

    def check(self) -> None:
        size = self.unflattened_size
        if not isinstance(size, tuple | list):
            raise TypeError(
                f"unflattened_size must be a tuple of ints, but found type {type(size).__name__}"
            )
        for place, length in enumerate(size):
            if not isinstance(length, int):
                raise TypeError(
                    "unflattened_size must be tuple of ints, but found element of type "
                    f"{type(length).__name__} at pos {place}"
                )

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)


@layer
class Fold(Layer):
    """Adds up windows into an image, the transpose of Unfold; input: (N, C * window, places) or
    (C * window, places) -> (N, C, *output_size).

    >>> dg.nn.Fold((2, 2), 1)(dg.ones(1, 1, 4)).shape
    dyngraph.Size([1, 1, 2, 2])
    """

    output_size: Any
    kernel_size: Any
    dilation: Any = 1
    padding: Any = 0
    stride: Any = 1

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(
            input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride
        )


@layer
class Unfold(Layer):
    """The windows of an image as columns; input: (N, C, H, W) or (C, H, W) -> (N, C * window,
    places).

    >>> dg.nn.Unfold(2)(dg.ones(1, 1, 2, 3)).shape
    dyngraph.Size([1, 4, 2])
    """

    kernel_size: Any
    dilation: Any = 1
    padding: Any = 0
    stride: Any = 1

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)


@layer
class PixelShuffle(Layer):
    """Channels become pixels; input: (..., C * r * r, H, W) -> (..., C, H * r, W * r), r =
    `upscale_factor`.

    >>> dg.nn.PixelShuffle(2)(dg.ones(1, 4, 1, 1)).shape
    dyngraph.Size([1, 1, 2, 2])
    """

    upscale_factor: int

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)


@layer
class PixelUnshuffle(Layer):
    """Pixels become channels; input: (..., C, H * r, W * r) -> (..., C * r * r, H, W), r =
    `downscale_factor`.

    >>> dg.nn.PixelUnshuffle(2)(dg.ones(1, 1, 2, 2)).shape
    dyngraph.Size([1, 4, 1, 1])
    """

    downscale_factor: int

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)


@layer
class ChannelShuffle(Layer):
    """Takes the channels of `groups` groups in turns; input: (N, C, ...).

    >>> dg.nn.ChannelShuffle(2)(dg.arange(4.0).reshape(1, 4, 1, 1)).flatten()
    tensor([0., 2., 1., 3.])
    """

    groups: int

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)


class Upsample(Module):
    """Another size, `size` or `scale_factor` times the input's; input: (N, C, ...).

    `mode` is `"nearest"`, `"linear"` (3 dims), `"bilinear"` or `"bicubic"` (4), or `"trilinear"`
    (5); the others as in `functional.interpolate`.

    >>> dg.nn.Upsample(scale_factor=2)(dg.tensor([[[1.0, 2.0]]]))
    tensor([[[1., 1., 2., 2.]]])
    """

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        if isinstance(scale_factor, tuple):
            self.scale_factor: Any = tuple(float(factor) for factor in scale_factor)
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.interpolate(
            input,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            self.recompute_scale_factor,
        )

    def extra_repr(self) -> str:
        name = "size" if self.scale_factor is None else "scale_factor"
        return f"{name}={getattr(self, name)!r}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Upsample by the nearest pixel; input: (N, C, H, W).

    >>> dg.nn.UpsamplingNearest2d(scale_factor=2)(dg.ones(1, 1, 1, 1)).shape
    dyngraph.Size([1, 1, 2, 2])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Upsample between the pixels, which are at the corners; input: (N, C, H, W).

    >>> dg.nn.UpsamplingBilinear2d(size=(1, 3))(dg.tensor([[[[0.0, 2.0]]]]))
    tensor([[[[0., 1., 2.]]]])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)
