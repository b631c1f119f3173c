"""Patches and channels: sliding blocks as columns, and elements moved between channels and dims."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from dyngraph.ops.convolution import one_for_each_dim
from dyngraph.ops.operator import define

# --- sliding blocks ---------------------------------------------------------------------------


def _blocks(
    where: str, sizes: Sequence[int], kernel_size: Any, dilation: Any, padding: Any, stride: Any
) -> tuple[np.ndarray, tuple[int, ...]]:
    """Flat positions (kernel elements, blocks) in the padded input, and the padding of each dim."""
    kernel = one_for_each_dim(where, "kernel_size", kernel_size, 2)
    holes = one_for_each_dim(where, "dilation", dilation, 2)
    widths = one_for_each_dim(where, "padding", padding, 2)
    steps = one_for_each_dim(where, "stride", stride, 2)
    if min(*kernel, *holes, *steps) <= 0 or min(widths) < 0:
        raise RuntimeError(
            f"{where}: kernel_size, dilation and stride should be greater than zero, and padding "
            f"not negative, but got {list(kernel)}, {list(holes)}, {list(steps)}, {list(widths)}"
        )
    flat = np.zeros((1, 1), np.int32)
    for n, k, d, p, s in zip(sizes, kernel, holes, widths, steps, strict=True):
        count = (n + 2 * p - d * (k - 1) - 1) // s + 1
        if count <= 0:
            raise RuntimeError(
                f"{where}: Given input with spatial size {list(sizes)}, "
                f"kernel_size={list(kernel)}, dilation={list(holes)}, padding={list(widths)}: no "
                "block fits"
            )
        line = (d * np.arange(k))[:, None] + s * np.arange(count)
        grid = flat[:, None, :, None] * (n + 2 * p) + line[None, :, None, :]
        flat = grid.reshape(flat.shape[0] * k, flat.shape[1] * count).astype(np.int32)
    return flat, widths


def _unfold(self: Any, *, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    if self.ndim not in (3, 4) or 0 in self.shape[-3:]:
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero "
            f"dimensions for input, but got: {list(self.shape)}"
        )
    flat, widths = _blocks("unfold", self.shape[-2:], kernel_size, dilation, padding, stride)
    pairs = [(0, 0)] * (self.ndim - 2) + [(p, p) for p in widths]
    padded = jnp.pad(self, pairs)
    lines = padded.reshape(*self.shape[:-2], math.prod(padded.shape[-2:]))
    columns = lines[..., flat]
    return columns.reshape(*self.shape[:-3], self.shape[-3] * flat.shape[0], flat.shape[1])


def _fold(
    self: Any, *, output_size: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any
) -> Any:
    sizes = one_for_each_dim("fold", "output_size", output_size, 2)
    flat, widths = _blocks("fold", sizes, kernel_size, dilation, padding, stride)
    if self.ndim not in (2, 3) or self.shape[-2] % flat.shape[0] or self.shape[-1] != flat.shape[1]:
        raise RuntimeError(
            f"fold: Expected input (batch, channels * {flat.shape[0]}, {flat.shape[1]}) for "
            f"output_size={list(sizes)} and this kernel, but got {list(self.shape)}"
        )
    channels = self.shape[-2] // flat.shape[0]
    high, wide = (n + 2 * p for n, p in zip(sizes, widths, strict=True))
    columns = self.reshape(*self.shape[:-2], channels, *flat.shape)
    lines = jnp.zeros((*columns.shape[:-2], high * wide), self.dtype).at[..., flat].add(columns)
    padded = lines.reshape(*columns.shape[:-2], high, wide)
    return padded[..., widths[0] : high - widths[0], widths[1] : wide - widths[1]]


def _unfold_rule(
    grad: Any, self_shape: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any
) -> Any:
    return _fold(
        grad,
        output_size=self_shape[-2:],
        kernel_size=kernel_size,
        dilation=dilation,
        padding=padding,
        stride=stride,
    )


unfold = define(
    "im2col",
    _unfold,
    signature="self, kernel_size, dilation=1, padding=0, stride=1",
    self=_unfold_rule,
    doc="""The blocks under a sliding kernel as columns: (N, C, H, W) to (N, C * kernel, blocks).

    Raises RuntimeError where no block fits.

    >>> dg.nn.functional.unfold(dg.arange(4.0).reshape(1, 1, 2, 2), (1, 2))
    tensor([[[0., 2.],
             [1., 3.]]])
    """,
)

fold = define(
    "col2im",
    _fold,
    signature="self, output_size, kernel_size, dilation=1, padding=0, stride=1",
    self=lambda grad, kernel_size, dilation, padding, stride: _unfold(
        grad, kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride
    ),
    doc="""Columns added up where their blocks lie: the adjoint of `unfold`, (N, C, *output_size).

    Raises RuntimeError where the columns do not fit the output.

    >>> dg.nn.functional.fold(dg.ones(1, 2, 2), (1, 3), (1, 2))
    tensor([[[[1., 2., 1.]]]])
    """,
)


# --- channels ---------------------------------------------------------------------------------


def _check_image(where: str, self: Any, parameter: str, factor: int) -> None:
    if self.ndim < 3:
        raise RuntimeError(
            f"{where} expects input to have at least 3 dimensions, but got input with {self.ndim} "
            "dimension(s)"
        )
    if factor <= 0:
        raise RuntimeError(f"{where} expects a positive {parameter}, but got {factor}")


def _pixel_shuffle(self: Any, *, upscale_factor: int) -> Any:
    r = upscale_factor
    _check_image("pixel_shuffle", self, "upscale_factor", r)
    *lead, channels, high, wide = self.shape
    if channels % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square "
            f"of upscale_factor, but input.size(-3)={channels} is not divisible by {r * r}"
        )
    count, deep = math.prod(lead), channels // (r * r)
    parts = self.reshape(count, deep, r, r, high, wide).transpose(0, 1, 4, 2, 5, 3)
    return parts.reshape(*lead, deep, high * r, wide * r)


def _pixel_unshuffle(self: Any, *, downscale_factor: int) -> Any:
    r = downscale_factor
    _check_image("pixel_unshuffle", self, "downscale_factor", r)
    *lead, channels, high, wide = self.shape
    if high % r or wide % r:
        raise RuntimeError(
            "pixel_unshuffle expects height and width to be divisible by downscale_factor, but "
            f"{high}x{wide} is not divisible by {r}"
        )
    count = math.prod(lead)
    parts = self.reshape(count, channels, high // r, r, wide // r, r).transpose(0, 1, 3, 5, 2, 4)
    return parts.reshape(*lead, channels * r * r, high // r, wide // r)


pixel_shuffle = define(
    "pixel_shuffle",
    _pixel_shuffle,
    self=lambda grad, upscale_factor: _pixel_unshuffle(grad, downscale_factor=upscale_factor),
    doc="""Channels made pixels: (..., C * r * r, H, W) to (..., C, H * r, W * r).

    Shi et al. 2016, https://arxiv.org/abs/1609.05158.

    >>> dg.pixel_shuffle(dg.arange(4.0).reshape(1, 4, 1, 1), 2)
    tensor([[[[0., 1.],
              [2., 3.]]]])
    """,
)

pixel_unshuffle = define(
    "pixel_unshuffle",
    _pixel_unshuffle,
    self=lambda grad, downscale_factor: _pixel_shuffle(grad, upscale_factor=downscale_factor),
    doc="""Pixels made channels: (..., C, H * r, W * r) to (..., C * r * r, H, W).

    >>> dg.pixel_unshuffle(dg.arange(4.0).reshape(1, 1, 2, 2), 2).flatten()
    tensor([0., 1., 2., 3.])
    """,
)


def _channel_shuffle(self: Any, *, groups: int) -> Any:
    _check_image("channel_shuffle", self, "groups", groups)
    if self.shape[1] % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {self.shape[1]} channels and "
            f"{groups} groups."
        )
    parts = self.reshape(self.shape[0], groups, self.shape[1] // groups, *self.shape[2:])
    return parts.swapaxes(1, 2).reshape(self.shape)


channel_shuffle = define(
    "channel_shuffle",
    _channel_shuffle,
    self=lambda grad, groups: _channel_shuffle(grad, groups=grad.shape[1] // groups),
    doc="""Channels dealt out from `groups` in turn: (N, C, ...). Zhang et al. 2017.

    >>> dg.channel_shuffle(dg.arange(4.0).reshape(1, 4, 1), 2).flatten()
    tensor([0., 2., 1., 3.])
    """,
)
native_channel_shuffle = channel_shuffle


__all__ = [
    "channel_shuffle",
    "native_channel_shuffle",
    "pixel_shuffle",
    "pixel_unshuffle",
]
METHODS: tuple[str, ...] = ()
"""The functions of this file that are methods of Tensor too."""
