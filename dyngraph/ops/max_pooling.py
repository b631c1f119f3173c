"""Pooling by maxima: each window of the last dims made its largest element.

Inputs are (batch, channels, *sizes), or without the batch. The gradient goes to the first of equal
maxima.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dyngraph.ops.arguments import titled
from dyngraph.ops.operator import define
from dyngraph.ops.pooling import (
    Windows,
    adaptive_edges,
    adaptive_sizes,
    reduce_windows,
    windows_of,
)
from dyngraph.tensor import Tensor


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
    lines = self.reshape(*self.shape[:-count], math.prod(self.shape[-count:]))
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
        windows = windows_of(where, self, kernel_size, stride, padding, dilation, ceil_mode, count)
        if max(windows.dilation) > 1 or not jnp.issubdtype(self.dtype, jnp.floating):
            # JAX has no gradient of maxima over windows with holes.
            positions = _window_positions(self.shape[-count:], windows)
            return _pick_maxima(self, windows.out, *positions)[0]
        return reduce_windows(self, windows, -np.inf, jax.lax.max)

    def with_indices(
        self: Any, *, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
    ) -> Any:
        windows = windows_of(where, self, kernel_size, stride, padding, dilation, ceil_mode, count)
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


def _max_pool(count: int, doc: str, doc_with_indices: str) -> tuple[Callable[..., Any], ...]:
    """The function that gives the maxima, and the one that gives their positions too."""
    maxima, positions = _define_maximum(count)

    def function(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        run = positions if return_indices else maxima
        return run(input, kernel_size, stride, padding, dilation, bool(ceil_mode))

    def with_indices(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        return positions(input, kernel_size, stride, padding, dilation, bool(ceil_mode))

    return (
        titled(function, f"max_pool{count}d", doc),
        titled(with_indices, f"max_pool{count}d_with_indices", doc_with_indices),
    )


max_pool1d, max_pool1d_with_indices = _max_pool(
    1,
    """The largest element of each window of the last dim; windows follow each other by `stride`.

    The gradient goes to the first of equal maxima. With `return_indices` also their positions,
    which `max_unpool1d` takes. Raises RuntimeError where sizes do not fit.

    >>> dg.nn.functional.max_pool1d(dg.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    tensor([[3., 2.]])
    """,
    """The maxima and their positions: `max_pool1d` with `return_indices`.

    >>> dg.nn.functional.max_pool1d_with_indices(dg.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    (tensor([[3., 2.]]), tensor([[1, 2]]))
    """,
)

max_pool2d, max_pool2d_with_indices = _max_pool(
    2,
    """The largest element of each window of the last two dims; as `max_pool1d`.

    >>> dg.nn.functional.max_pool2d(dg.tensor([[[1.0, 3.0], [2.0, 0.0]]]), 2)
    tensor([[[3.]]])
    """,
    """The maxima and their positions: `max_pool2d` with `return_indices`.

    >>> dg.nn.functional.max_pool2d_with_indices(dg.tensor([[[1.0, 3.0], [2.0, 0.0]]]), 2)
    (tensor([[[3.]]]), tensor([[[1]]]))
    """,
)

max_pool3d, max_pool3d_with_indices = _max_pool(
    3,
    """The largest element of each window of the last three dims; as `max_pool1d`.

    >>> dg.nn.functional.max_pool3d(dg.arange(8.0).reshape(1, 2, 2, 2), 2).flatten()
    tensor([7.])
    """,
    """The maxima and their positions: `max_pool3d` with `return_indices`.

    >>> dg.nn.functional.max_pool3d_with_indices(dg.arange(8.0).reshape(1, 2, 2, 2), 2)
    (tensor([[[[7.]]]]), tensor([[[[7]]]]))
    """,
)


def _define_adaptive_maximum(count: int) -> Callable[..., Any]:
    where = f"adaptive_max_pool{count}d"

    def maxima(self: Any, *, output_size: Any) -> Any:
        out = adaptive_sizes(where, self, output_size, count)
        places, valid = [], []
        for n, o in zip(self.shape[-count:], out, strict=True):
            starts, ends = adaptive_edges(n, o)
            longest = int((ends - starts).max()) if o else 1
            place = starts[:, None] + np.arange(longest)
            places.append(place)
            valid.append(place < ends[:, None])
        return _pick_maxima(self, out, *_positions(self.shape[-count:], places, valid))

    return define(where, maxima, outputs=("result", "indices"))


def _adaptive_max_pool(
    count: int, doc: str, doc_with_indices: str
) -> tuple[Callable[..., Any], ...]:
    maxima = _define_adaptive_maximum(count)

    def function(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
        values, indices = maxima(input, output_size)
        return (values, indices) if return_indices else values

    def with_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
        return maxima(input, output_size)

    return (
        titled(function, f"adaptive_max_pool{count}d", doc),
        titled(with_indices, f"adaptive_max_pool{count}d_with_indices", doc_with_indices),
    )


adaptive_max_pool1d, adaptive_max_pool1d_with_indices = _adaptive_max_pool(
    1,
    """Maxima of windows chosen so that the last dim gets `output_size`.

    >>> dg.nn.functional.adaptive_max_pool1d(dg.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    tensor([[3., 2.]])
    """,
    """The maxima and their positions: `adaptive_max_pool1d` with `return_indices`.

    >>> dg.nn.functional.adaptive_max_pool1d_with_indices(dg.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    (tensor([[3., 2.]]), tensor([[1, 2]]))
    """,
)

adaptive_max_pool2d, adaptive_max_pool2d_with_indices = _adaptive_max_pool(
    2,
    """Maxima of windows chosen so that the last two dims get `output_size`; None keeps a size.

    >>> dg.nn.functional.adaptive_max_pool2d(dg.tensor([[[1.0, 3.0], [2.0, 0.0]]]), 1)
    tensor([[[3.]]])
    """,
    """The maxima and their positions: `adaptive_max_pool2d` with `return_indices`.

    >>> x = dg.tensor([[[1.0, 3.0], [2.0, 0.0]]])
    >>> dg.nn.functional.adaptive_max_pool2d_with_indices(x, 1)
    (tensor([[[3.]]]), tensor([[[1]]]))
    """,
)

adaptive_max_pool3d, adaptive_max_pool3d_with_indices = _adaptive_max_pool(
    3,
    """Maxima of windows chosen so that the last three dims get `output_size`.

    >>> dg.nn.functional.adaptive_max_pool3d(dg.arange(8.0).reshape(1, 2, 2, 2), 1).flatten()
    tensor([7.])
    """,
    """The maxima and their positions: `adaptive_max_pool3d` with `return_indices`.

    >>> x = dg.arange(8.0).reshape(1, 2, 2, 2)
    >>> dg.nn.functional.adaptive_max_pool3d_with_indices(x, 1)
    (tensor([[[[7.]]]]), tensor([[[[7]]]]))
    """,
)


__all__ = ["max_pool1d", "max_pool1d_with_indices", "max_pool2d", "max_pool3d"]
METHODS: tuple[str, ...] = ()
"""The functions of this file that are methods of Tensor too."""
