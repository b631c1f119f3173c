"""Pooling: each window of the last dims made one value, a mean, a maximum or a norm.

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


def check_input(where: str, self: Any, count: int) -> None:
    if self.ndim not in (count + 1, count + 2):
        raise RuntimeError(
            f"{where}: Expected {count + 1}D or {count + 2}D input, but got input of size: "
            f"{list(self.shape)}"
        )
    if 0 in self.shape[-count - 1 :]:
        raise RuntimeError(
            f"{where}: Expected input with non-zero channels and sizes, but got {list(self.shape)}"
        )


def _windows(
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


def _reduce_windows(self: Any, windows: Windows, start: Any, operation: Any) -> Any:
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
        windows = _windows(where, self, kernel_size, stride, padding, 1, ceil_mode, count)
        if divisor_override == 0:
            raise RuntimeError(f"{where}: divisor must be not zero")
        sums = _reduce_windows(widened(self), windows, 0.0, jax.lax.add)
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


def _adaptive_sizes(where: str, self: Any, output_size: Any, count: int) -> tuple[int, ...]:
    check_input(where, self, count)
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
        for i, out in enumerate(_adaptive_sizes(where, self, output_size, count)):
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


# --- maxima -----------------------------------------------------------------------------------


def _positions(
    sizes: Sequence[int], places: Sequence[np.ndarray], valid: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Flat positions of the elements of each window, and which of them there are.

    `places` has, for each dim, (windows, elements); both results are (windows, elements) of all
    dims together.
    """
    flat: Any = np.zeros((1, 1), np.int32)
    inside: Any = np.ones((1, 1), bool)
    for n, place, there in zip(sizes, places, valid, strict=True):
        place = np.where(there, place, 0).astype(np.int32)
        shape = (flat.shape[0] * place.shape[0], flat.shape[1] * place.shape[1])
        flat = (flat[:, None, :, None] * n + place[None, :, None, :]).reshape(shape)
        inside = (inside[:, None, :, None] & there[None, :, None, :]).reshape(shape)
    return flat, inside


def _pick_maxima(
    self: Any, out: Sequence[int], flat: np.ndarray, inside: np.ndarray
) -> tuple[Any, Any]:
    """The first maximum of each window and its flat position; NaN counts as the largest."""
    count = len(out)
    lines = self.reshape(*self.shape[:-count], -1)
    if inside.shape[0] == 0:
        empty = (*self.shape[:-count], *out)
        return jnp.zeros(empty, self.dtype), jnp.zeros(empty, _index_dtype())
    lowest = -jnp.inf if jnp.issubdtype(self.dtype, jnp.floating) else jnp.iinfo(self.dtype).min
    choice = jnp.argmax(jnp.where(inside, lines[..., flat], lowest), -1)
    indices = jnp.asarray(flat)[np.arange(flat.shape[0]), choice]
    values = jnp.take_along_axis(lines, indices, -1)
    shape = (*self.shape[:-count], *out)
    return values.reshape(shape), indices.astype(_index_dtype()).reshape(shape)


def _index_dtype() -> Any:
    return jnp.int64 if jax.config.jax_enable_x64 else jnp.int32  # type: ignore[attr-defined]


def _window_positions(sizes: Sequence[int], windows: Windows) -> tuple[np.ndarray, np.ndarray]:
    places, valid = [], []
    for n, k, s, p, d, o in zip(sizes, *windows, strict=True):
        place = (np.arange(o) * s - p)[:, None] + d * np.arange(k)
        places.append(place)
        valid.append((place >= 0) & (place < n))
    return _positions(sizes, places, valid)


def _define_maximum(count: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The operators that give the maxima, and the maxima with their positions."""
    where = f"max_pool{count}d"

    def maxima(
        self: Any, *, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
    ) -> Any:
        windows = _windows(where, self, kernel_size, stride, padding, dilation, ceil_mode, count)
        if max(windows.dilation) > 1 or not jnp.issubdtype(self.dtype, jnp.floating):
            # JAX has no gradient of maxima over windows with holes.
            positions = _window_positions(self.shape[-count:], windows)
            return _pick_maxima(self, windows.out, *positions)[0]
        return _reduce_windows(self, windows, -np.inf, jax.lax.max)

    def with_indices(
        self: Any, *, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
    ) -> Any:
        windows = _windows(where, self, kernel_size, stride, padding, dilation, ceil_mode, count)
        positions = _window_positions(self.shape[-count:], windows)
        return _pick_maxima(self, windows.out, *positions)

    node = f"MaxPool{count}DWithIndicesBackward0"
    signature = "self, kernel_size, stride, padding, dilation, ceil_mode"
    return (
        define(where, maxima, signature=signature, node=node),
        define(
            f"{where}_with_indices",
            with_indices,
            signature=signature,
            outputs=("result", "indices"),
            node=node,
        ),
    )


_MAXIMA = {count: _define_maximum(count) for count in (1, 2, 3)}


def _max_pool(
    count: int,
    input: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    return_indices: bool,
) -> Any:
    run = _MAXIMA[count][1 if return_indices else 0]
    return run(input, kernel_size, stride, padding, dilation, bool(ceil_mode))


def max_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest element of each window of the last dim; windows follow each other by `stride`.

    The gradient goes to the first of equal maxima. With `return_indices` also their positions,
    which `max_unpool1d` takes. Raises RuntimeError where sizes do not fit.

    >>> dg.nn.functional.max_pool1d(dg.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    tensor([[3., 2.]])
    """
    return _max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest element of each window of the last two dims; as `max_pool1d`.

    >>> dg.nn.functional.max_pool2d(dg.tensor([[[1.0, 3.0], [2.0, 0.0]]]), 2)
    tensor([[[3.]]])
    """
    return _max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest element of each window of the last three dims; as `max_pool1d`.

    >>> dg.nn.functional.max_pool3d(dg.arange(8.0).reshape(1, 2, 2, 2), 2).flatten()
    tensor([7.])
    """
    return _max_pool(3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def _define_adaptive_maximum(count: int) -> Callable[..., Any]:
    where = f"adaptive_max_pool{count}d"

    def maxima(self: Any, *, output_size: Any) -> Any:
        out = _adaptive_sizes(where, self, output_size, count)
        places, valid = [], []
        for n, o in zip(self.shape[-count:], out, strict=True):
            starts, ends = adaptive_edges(n, o)
            longest = int((ends - starts).max()) if o else 1
            place = starts[:, None] + np.arange(longest)
            places.append(place)
            valid.append(place < ends[:, None])
        return _pick_maxima(self, out, *_positions(self.shape[-count:], places, valid))

    return define(where, maxima, outputs=("result", "indices"))


_ADAPTIVE = {count: _define_adaptive_maximum(count) for count in (1, 2, 3)}


def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Maxima of windows chosen so that the last dim gets `output_size`.

    >>> dg.nn.functional.adaptive_max_pool1d(dg.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    tensor([[3., 2.]])
    """
    values, indices = _ADAPTIVE[1](input, output_size)
    return (values, indices) if return_indices else values


def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Maxima of windows chosen so that the last two dims get `output_size`; None keeps a size.

    >>> dg.nn.functional.adaptive_max_pool2d(dg.tensor([[[1.0, 3.0], [2.0, 0.0]]]), 1)
    tensor([[[3.]]])
    """
    values, indices = _ADAPTIVE[2](input, output_size)
    return (values, indices) if return_indices else values


def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Maxima of windows chosen so that the last three dims get `output_size`.

    >>> dg.nn.functional.adaptive_max_pool3d(dg.arange(8.0).reshape(1, 2, 2, 2), 1).flatten()
    tensor([7.])
    """
    values, indices = _ADAPTIVE[3](input, output_size)
    return (values, indices) if return_indices else values


__all__ = [
    "adaptive_avg_pool1d",
    "avg_pool1d",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
]
METHODS: tuple[str, ...] = ()
"""The functions of this file that are methods of Tensor too."""
