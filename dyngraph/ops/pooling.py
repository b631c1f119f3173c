"""The windows of pooling, and their means.

Inputs are (batch, channels, *sizes), or without the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dyngraph.ops.arguments import widened
from dyngraph.ops.convolution import one_for_each_dim
from dyngraph.ops.operator import define
from dyngraph.tensor import Tensor


class Windows(NamedTuple):
    """Where the windows of each dim lie."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    out: tuple[int, ...]

    def beyond(self, sizes: Sequence[int]) -> list[int]:
        """How far the last window of each dim reaches beyond the elements."""
        rows = zip(sizes, *self, strict=True)
        return [max((o - 1) * s + d * (k - 1) + 1 - n - p, 0) for n, k, s, p, d, o in rows]


def check_input(where: str, self: Any, count: int, *, fixed: int | None = None) -> None:
    """RuntimeError unless the last `fixed` dims, by default channels and sizes, have elements."""
    if self.ndim not in (count + 1, count + 2):
        raise RuntimeError(
            f"{where}: Expected {count + 1}D or {count + 2}D input, but got input of size: "
            f"{list(self.shape)}"
        )
    if 0 in self.shape[-(count + 1 if fixed is None else fixed) :]:
        raise RuntimeError(
            f"{where}: Expected input with non-zero channels and sizes, but got {list(self.shape)}"
        )


def windows_of(
    where: str,
    self: Any,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    count: int,
) -> Windows:
    """The windows that the arguments of a pooling function mean, in PyTorch's checks."""
    check_input(where, self, count)
    kernel = one_for_each_dim(where, "kernel_size", kernel_size, count)
    given = stride is not None and stride != ()
    steps = one_for_each_dim(where, "stride", stride, count) if given else kernel
    widths = one_for_each_dim(where, "padding", padding, count)
    holes = one_for_each_dim(where, "dilation", dilation, count)
    out = []
    for n, k, s, p, d in zip(self.shape[-count:], kernel, steps, widths, holes, strict=True):
        if min(k, s, d) <= 0:
            raise RuntimeError(
                f"{where}: kernel_size, stride and dilation should be greater than zero, but got "
                f"kernel_size: {k} stride: {s} dilation: {d}"
            )
        if not 0 <= p <= (d * (k - 1) + 1) // 2:
            raise RuntimeError(
                f"{where}: pad should be at least 0 and at most half of effective kernel size, but "
                f"got pad={p}, kernel_size={k} and dilation={d}"
            )
        room = n + 2 * p - d * (k - 1) - 1
        windows = (-(-room // s) if ceil_mode else room // s) + 1
        if ceil_mode and (windows - 1) * s >= n + p:
            windows -= 1  # a window must begin before the padding at the far end
        out.append(windows)
    if min(out) <= 0:
        raise RuntimeError(
            f"{where}: Given input size: {list(self.shape)}. Calculated output size: {out}. Output "
            "size is too small"
        )
    return Windows(kernel, steps, widths, holes, tuple(out))


def reduce_windows(self: Any, windows: Windows, start: Any, operation: Any) -> Any:
    before = (1,) * (self.ndim - len(windows.out))
    ends = windows.beyond(self.shape[len(before) :])
    pairs = [(0, 0)] * len(before) + list(zip(windows.padding, ends, strict=True))
    return jax.lax.reduce_window(
        self,
        start,
        operation,
        before + windows.kernel,
        before + windows.stride,
        pairs,
        window_dilation=before + windows.dilation,
    )


# --- means ------------------------------------------------------------------------------------


def _divisors(sizes: Sequence[int], windows: Windows, *, count_include_pad: bool) -> np.ndarray:
    """How many elements each window counts: those in the padding too, or not."""
    counts = np.ones((), np.float32)
    for n, k, s, p, _, o in zip(sizes, *windows, strict=True):
        starts = np.arange(o) * s - p
        ends = np.minimum(starts + k, n + p)
        if not count_include_pad:
            starts, ends = np.maximum(starts, 0), np.minimum(ends, n)
        counts = np.multiply.outer(counts, (ends - starts).astype(np.float32))
    return counts


def _average(count: int) -> Callable[..., Any]:
    where = f"avg_pool{count}d"

    def average(
        self: Any,
        *,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        ceil_mode: bool,
        count_include_pad: bool,
        divisor_override: int | None = None,
    ) -> Any:
        windows = windows_of(where, self, kernel_size, stride, padding, 1, ceil_mode, count)
        if divisor_override == 0:
            raise RuntimeError(f"{where}: divisor must be not zero")
        sums = reduce_windows(widened(self), windows, 0.0, jax.lax.add)
        divisor = divisor_override or _divisors(
            self.shape[-count:], windows, count_include_pad=count_include_pad
        )
        return (sums / divisor).astype(self.dtype)

    def average_of_one(
        self: Any,
        *,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        ceil_mode: bool,
        count_include_pad: bool,
    ) -> Any:
        return average(
            self,
            kernel_size=kernel_size,
            stride=stride,
            padding=padding,
            ceil_mode=ceil_mode,
            count_include_pad=count_include_pad,
        )

    return average if count > 1 else average_of_one


def _define_average(count: int) -> Callable[..., Tensor]:
    ones = ", ".join(["1"] * (count - 1))
    return define(
        f"avg_pool{count}d",
        _average(count),
        signature="self, kernel_size, stride=None, padding=0, ceil_mode=False, "
        "count_include_pad=True" + (", divisor_override=None" if count > 1 else ""),
        doc=f"""The mean of each window of the last {count} dim(s); windows are `stride` apart.

    `stride` is the kernel's size by default; `ceil_mode` keeps a window that is cut off at the end;
    `count_include_pad` counts zeros of the `padding`. Raises RuntimeError where sizes do not fit.

    >>> x = dg.arange(4.0).reshape(1{", 1" * (count - 1)}, 4)
    >>> dg.nn.functional.avg_pool{count}d(x, ({ones}{", " if ones else ""}2,)).flatten()
    tensor([0.5000, 2.5000])
    """,
    )


avg_pool1d = _define_average(1)
avg_pool2d = _define_average(2)
avg_pool3d = _define_average(3)


def adaptive_edges(size: int, out: int) -> tuple[np.ndarray, np.ndarray]:
    """Where the `out` windows begin and end that together cover `size` elements."""
    places = np.arange(out)
    return places * size // out, -(-(places + 1) * size // out)


def averaging_matrix(size: int, out: int) -> np.ndarray:
    """(out, size): the shares of elements in the means of adaptive windows."""
    starts, ends = adaptive_edges(size, out)
    places = np.arange(size)
    inside = (places >= starts[:, None]) & (places < ends[:, None])
    return (inside / (ends - starts)[:, None]).astype(np.float32)


def along_dim(values: Any, matrix: Any, dim: int) -> Any:
    """Each line of `values` along `dim` multiplied by a matrix (out, size)."""
    moved = jnp.moveaxis(values, dim, -1)
    out = jnp.matmul(moved, matrix.T.astype(values.dtype), precision=jax.lax.Precision.HIGHEST)
    return jnp.moveaxis(out, -1, dim)


def adaptive_sizes(where: str, self: Any, output_size: Any, count: int) -> tuple[int, ...]:
    check_input(where, self, count, fixed=self.ndim - 1)
    wanted = output_size if isinstance(output_size, (tuple, list)) else (output_size,) * count
    if len(wanted) != count:
        raise RuntimeError(f"{where}: output_size must have {count} elements, got {list(wanted)}")
    sizes = tuple(
        n if o is None else int(o) for n, o in zip(self.shape[-count:], wanted, strict=True)
    )
    if min(sizes) < 0:
        raise RuntimeError(f"{where}: output_size must not be negative, got {list(wanted)}")
    return sizes


def _define_adaptive_average(count: int) -> Callable[..., Tensor]:
    where = f"adaptive_avg_pool{count}d"

    def average(self: Any, *, output_size: Any) -> Any:
        values = widened(self)
        for i, out in enumerate(adaptive_sizes(where, self, output_size, count)):
            dim = self.ndim - count + i
            values = along_dim(values, averaging_matrix(self.shape[dim], out), dim)
        return values.astype(self.dtype)

    return define(
        where,
        average,
        doc=f"""Means of windows chosen so that the last {count} dim(s) get `output_size`.

    A size of None keeps the input's. Windows that do not divide a dim evenly overlap.

    >>> x = dg.arange(4.0).reshape(1{", 1" * (count - 1)}, 4)
    >>> dg.nn.functional.adaptive_avg_pool{count}d(x, ({"1, " * (count - 1)}2,)).flatten()
    tensor([0.5000, 2.5000])
    """,
    )


adaptive_avg_pool1d = _define_adaptive_average(1)
adaptive_avg_pool2d = _define_adaptive_average(2)
adaptive_avg_pool3d = _define_adaptive_average(3)


__all__ = ["adaptive_avg_pool1d", "avg_pool1d"]
METHODS: tuple[str, ...] = ()
"""The functions of this file that are methods of Tensor too."""
