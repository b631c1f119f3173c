"""Convolutions and transposed convolutions, over one, two or three dims.

Inputs are (batch, channels, *sizes), or without the batch. The rules are JAX's: the gradients of a
convolution are convolutions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from dyngraph.ops.operator import define
from dyngraph.tensor import Tensor


def one_for_each_dim(where: str, parameter: str, value: Any, count: int) -> tuple[int, ...]:
    """An argument that may be one int for all dims or one for each, as a tuple."""
    if isinstance(value, (tuple, list)):
        if len(value) == 1:
            return (int(value[0]),) * count
        if len(value) == count:
            return tuple(int(v) for v in value)
        raise RuntimeError(
            f"{where}: expected {parameter} to be a single integer value or a list of {count} "
            f"values to match the convolution dimensions, but got {parameter}={list(value)}"
        )
    return (int(value),) * count


def _check(
    where: str, self: Any, weight: Any, bias: Any, *, count: int, channels: int, out: int
) -> None:
    """RuntimeErrors for shapes and dtypes; `channels` of the input, `out` of the result."""
    if weight.ndim != count + 2 or self.ndim not in (count + 1, count + 2):
        raise RuntimeError(
            f"Expected {count + 1}D (unbatched) or {count + 2}D (batched) input to {where}, and a "
            f"{count + 2}D weight, but got input of size: {list(self.shape)} and weight of size: "
            f"{list(weight.shape)}"
        )
    if self.dtype != weight.dtype or (bias is not None and bias.dtype != self.dtype):
        raise RuntimeError(
            f"Input type ({self.dtype}), weight type ({weight.dtype}) and bias type "
            f"({self.dtype if bias is None else bias.dtype}) should be the same. Convert them to "
            "one dtype."
        )
    if self.shape[-count - 1] != channels:
        raise RuntimeError(
            f"{where}: weight of size {list(weight.shape)} expects input{list(self.shape)} to have "
            f"{channels} channels, but got {self.shape[-count - 1]} channels instead"
        )
    if bias is not None and bias.shape != (out,):
        raise RuntimeError(
            f"Given weight of size {list(weight.shape)}, expected bias to be 1-dimensional with "
            f"{out} elements, but got bias of size {list(bias.shape)} instead"
        )


def _check_groups(where: str, groups: int, channels: int) -> None:
    if groups <= 0:
        raise RuntimeError(f"{where}: non-positive groups is not supported, got {groups}")
    if channels % groups:
        raise RuntimeError(
            f"{where}: expected {channels} channels of the weight to be divisible by groups="
            f"{groups}"
        )


def _check_positive(where: str, **values: Sequence[int]) -> None:
    for name, value in values.items():
        if min(value) <= 0:
            raise RuntimeError(f"{where}: non-positive {name} is not supported, got {list(value)}")


def _pairs(
    where: str, padding: Any, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
) -> list[tuple[int, int]]:
    """What `padding` puts before and after each dim."""
    if isinstance(padding, str):
        if padding == "valid":
            return [(0, 0)] * len(kernel)
        if padding != "same":
            raise RuntimeError(
                f"Invalid padding string: {padding!r}. Expected 'valid', 'same' or numbers."
            )
        if set(stride) != {1}:
            raise RuntimeError("padding='same' is not supported for strided convolutions")
        totals = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
        return [(t // 2, t - t // 2) for t in totals]
    widths = one_for_each_dim(where, "padding", padding, len(kernel))
    if min(widths) < 0:
        raise RuntimeError(f"{where}: negative padding is not supported, got {list(widths)}")
    return [(p, p) for p in widths]


def _with_bias(out: Any, bias: Any, batched: bool) -> Any:
    if bias is not None:
        out = out + bias.reshape(-1, *[1] * (out.ndim - 2))
    return out if batched else out[0]


def _convolution(count: int) -> Callable[..., Any]:
    """The kernel of a convolution over `count` dims."""
    where = f"conv{count}d"

    def convolve(
        self: Any,
        weight: Any,
        bias: Any = None,
        *,
        stride: Any,
        padding: Any,
        dilation: Any,
        groups: int,
    ) -> Any:
        steps = one_for_each_dim(where, "stride", stride, count)
        holes = one_for_each_dim(where, "dilation", dilation, count)
        _check_positive(where, stride=steps, dilation=holes)
        _check_groups(where, groups, weight.shape[0])
        _check(
            where,
            self,
            weight,
            bias,
            count=count,
            channels=weight.shape[1] * groups if weight.ndim > 1 else 0,
            out=weight.shape[0],
        )
        kernel = weight.shape[2:]
        pairs = _pairs(where, padding, kernel, steps, holes)
        padded = [n + a + b for n, (a, b) in zip(self.shape[-count:], pairs, strict=True)]
        spans = [d * (k - 1) + 1 for k, d in zip(kernel, holes, strict=True)]
        if any(n < span for n, span in zip(padded, spans, strict=True)):
            raise RuntimeError(
                f"Calculated padded input size per channel: {padded}. Kernel size: {spans}. "
                "Kernel size can't be greater than actual input size"
            )
        batched = self.ndim == count + 2
        out = jax.lax.conv_general_dilated(
            self if batched else self[None],
            weight,
            steps,
            pairs,
            rhs_dilation=holes,
            feature_group_count=groups,
        )
        return _with_bias(out, bias, batched)

    return convolve


def _transposed(count: int) -> Callable[..., Any]:
    """The kernel of a transposed convolution over `count` dims."""
    where = f"conv_transpose{count}d"

    def convolve(
        self: Any,
        weight: Any,
        bias: Any = None,
        *,
        stride: Any,
        padding: Any,
        output_padding: Any,
        groups: int,
        dilation: Any,
    ) -> Any:
        steps = one_for_each_dim(where, "stride", stride, count)
        holes = one_for_each_dim(where, "dilation", dilation, count)
        widths = one_for_each_dim(where, "padding", padding, count)
        extra = one_for_each_dim(where, "output_padding", output_padding, count)
        _check_positive(where, stride=steps, dilation=holes)
        _check_groups(where, groups, weight.shape[0])
        out_channels = weight.shape[1] * groups if weight.ndim > 1 else 0
        _check(
            where,
            self,
            weight,
            bias,
            count=count,
            channels=weight.shape[0],
            out=out_channels,
        )
        if any(e >= max(s, d) for e, s, d in zip(extra, steps, holes, strict=True)):
            raise RuntimeError(
                "output padding must be smaller than either stride or dilation, but got "
                f"output_padding={list(extra)}, stride={list(steps)}, dilation={list(holes)}"
            )
        kernel = weight.shape[2:]
        if 0 in kernel:
            raise RuntimeError(
                f"{where}: weight should have at least one element at each kernel dim, but got "
                f"weight of size {list(weight.shape)}"
            )
        spans = [d * (k - 1) for k, d in zip(kernel, holes, strict=True)]
        pairs = [(s - p, s - p + e) for s, p, e in zip(spans, widths, extra, strict=True)]
        # The adjoint of a convolution: the input spread by the stride, the kernel turned round,
        # its channels exchanged within each group.
        turned = jnp.flip(weight, tuple(range(2, weight.ndim)))
        turned = turned.reshape(groups, -1, *weight.shape[1:]).swapaxes(1, 2)
        turned = turned.reshape(out_channels, -1, *kernel)
        batched = self.ndim == count + 2
        sizes = [
            (n - 1) * s + 1 + a + b - span
            for n, s, (a, b), span in zip(self.shape[-count:], steps, pairs, spans, strict=True)
        ]
        if min(sizes) <= 0:
            raise RuntimeError(
                f"Given input size per channel: {list(self.shape[-count:])}. Calculated output "
                f"size per channel: {sizes}. Output size is too small"
            )
        out = jax.lax.conv_general_dilated(
            self if batched else self[None],
            turned,
            [1] * count,
            pairs,
            lhs_dilation=steps,
            rhs_dilation=holes,
            feature_group_count=groups,
        )
        return _with_bias(out, bias, batched)

    return convolve


_SIZES = {1: "L", 2: "H, W", 3: "D, H, W"}
_INPUTS = {1: "dg.ones(1, 1, 3)", 2: "dg.ones(1, 1, 3, 3)", 3: "dg.ones(1, 1, 3, 3, 3)"}


def _define_convolution(count: int) -> Callable[..., Tensor]:
    ones = ", ".join(["1", "1", *["2"] * count])
    return define(
        f"conv{count}d",
        _convolution(count),
        signature="self, weight, bias=None, stride=1, padding=0, dilation=1, groups=1",
        node="ConvolutionBackward0",
        doc=f"""Products of (batch, in, {_SIZES[count]}) with a kernel that moves along its dims.

    `weight` is (out, in / groups, *kernel size); nothing is flipped: it is a correlation. `padding`
    is a number, one for each dim, "valid" for none, or "same" for the input's size. Raises
    RuntimeError where shapes or dtypes do not fit. Dumoulin and Visin 2016,
    https://arxiv.org/abs/1603.07285.

    >>> dg.conv{count}d({_INPUTS[count]}, dg.ones({ones})).unique()
    tensor([{2**count}.])
    """,
    )


def _define_transposed(count: int) -> Callable[..., Tensor]:
    ones = ", ".join(["1", "1", *["2"] * count])
    return define(
        f"conv_transpose{count}d",
        _transposed(count),
        signature=(
            "self, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1"
        ),
        node="ConvolutionBackward0",
        doc=f"""The gradient of `conv{count}d` with respect to its input, as a layer.

    `weight` is (in, out / groups, *kernel size). `output_padding` adds to one end of the result,
    whose size `stride` leaves open. Raises RuntimeError where shapes or dtypes do not fit.

    >>> dg.conv_transpose{count}d({_INPUTS[count]}, dg.ones({ones}), stride=2).shape
    dyngraph.Size([1, 1{", 6" * count}])
    """,
    )


conv1d = _define_convolution(1)
conv2d = _define_convolution(2)
conv3d = _define_convolution(3)
conv_transpose1d = _define_transposed(1)
conv_transpose2d = _define_transposed(2)
conv_transpose3d = _define_transposed(3)


def _tbc(self: Any, weight: Any, bias: Any, *, pad: int) -> Any:
    if self.ndim != 3 or weight.ndim != 3 or bias.ndim != 1:
        raise RuntimeError(
            "Expected input (time, batch, in), weight (size, in, out) and bias (out,), got shapes "
            f"{list(self.shape)}, {list(weight.shape)} and {list(bias.shape)}"
        )
    moved, kernel = self.transpose(1, 2, 0), weight.transpose(2, 1, 0)
    out = _convolution(1)(moved, kernel, bias, stride=1, padding=pad, dilation=1, groups=1)
    return out.transpose(2, 0, 1)


conv_tbc = define(
    "conv_tbc",
    _tbc,
    signature="self, weight, bias, pad=0",
    doc="""`conv1d` of (time, batch, in) with a weight (size, in, out).

    >>> dg.conv_tbc(dg.ones(3, 1, 1), dg.ones(2, 1, 1), dg.zeros(1)).flatten()
    tensor([2., 2.])
    """,
)


__all__ = [
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_tbc",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
]
METHODS: tuple[str, ...] = ()
"""The functions of this file that are methods of Tensor too."""
