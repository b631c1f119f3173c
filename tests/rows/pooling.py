"""Rows of the operators in `dyngraph/ops/pooling.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from tests.opinfo import OpInfo, call, functional, normal, spread


def along(
    x: Any, dims: int, starts_and_ends: Callable[[int, int], list[tuple[int, int, int]]], fold: Any
) -> Any:
    """Windows (start, end, step) of each of the last dims reduced by `fold`, dim after dim."""
    for i in range(dims):
        axis = x.ndim - dims + i
        cuts = [
            fold(jnp.take(x, np.arange(*cut), axis=axis), axis=axis, keepdims=True)
            for cut in starts_and_ends(i, x.shape[axis])
        ]
        x = jnp.concatenate(cuts, axis)
    return x


def windows(kernel: int, stride: int | None, padding: int, dilation: int, ceil_mode: bool) -> Any:
    """The windows of a pooling function, cut to the elements there are."""
    step, span = stride or kernel, dilation * (kernel - 1) + 1

    def cut(_: int, n: int) -> list[tuple[int, int, int]]:
        last = n + padding - (1 if ceil_mode else span)
        starts = [s for s in range(-padding, last + 1, step) if s < n + padding]
        return [
            (s if s >= 0 else s + -(s // dilation) * dilation, min(s + span, n), dilation)
            for s in starts
        ]

    return cut


def max_pool(dims: int) -> Callable[..., Any]:
    return lambda x, kernel, stride=None, padding=0, dilation=1, ceil_mode=False: along(
        x, dims, windows(kernel, stride, padding, dilation, ceil_mode), jnp.max
    )


def avg_pool(dims: int, *, count_pad: bool) -> Callable[..., Any]:
    def reference(x: Any, kernel: int, stride: Any = None, padding: int = 0, *_: Any) -> Any:
        if not count_pad:
            return along(x, dims, windows(kernel, stride, padding, 1, False), jnp.mean)
        x = jnp.pad(x, [(0, 0)] * (x.ndim - dims) + [(padding, padding)] * dims)
        return along(x, dims, windows(kernel, stride, 0, 1, False), jnp.mean)

    return reference


def adaptive(dims: int, fold: Any) -> Callable[..., Any]:
    def reference(x: Any, out: Any) -> Any:
        sizes = out if isinstance(out, tuple) else (out,) * dims

        def cut(i: int, n: int) -> list[tuple[int, int, int]]:
            m = sizes[i] or n
            return [(j * n // m, -(-(j + 1) * n // m), 1) for j in range(m)]

        return along(x, dims, cut, fold)

    return reference


ROWS: list[OpInfo] = [
    functional("avg_pool1d", [call(normal(2, 5), 3, 2, 1)], avg_pool(1, count_pad=True)),
    functional(
        "avg_pool2d",
        [call(normal(1, 1, 5, 4), 3, 2, 1, False, False)],
        avg_pool(2, count_pad=False),
    ),
    functional("avg_pool3d", [call(normal(1, 3, 4, 2), 2)], avg_pool(3, count_pad=True)),
    functional("max_pool1d", [call(spread(2, 7), 2, 3, 1, 2, True)], max_pool(1)),
    functional("max_pool2d", [call(spread(1, 2, 5, 4), 3, 2, 1)], max_pool(2)),
    functional("max_pool3d", [call(spread(1, 3, 3, 4), 2, 1)], max_pool(3)),
    functional("adaptive_avg_pool1d", [call(normal(2, 5), 3)], adaptive(1, jnp.mean)),
    functional("adaptive_avg_pool2d", [call(normal(1, 5, 4), (3, None))], adaptive(2, jnp.mean)),
    functional("adaptive_avg_pool3d", [call(normal(1, 3, 2, 4), 2)], adaptive(3, jnp.mean)),
    functional("adaptive_max_pool1d", [call(spread(2, 5), 3)], adaptive(1, jnp.max)),
    functional("adaptive_max_pool2d", [call(spread(1, 5, 4), (3, None))], adaptive(2, jnp.max)),
    functional("adaptive_max_pool3d", [call(spread(1, 3, 2, 4), 2)], adaptive(3, jnp.max)),
]
