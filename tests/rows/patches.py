"""Rows of the operators in `dyngraph/ops/patches.py`."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from tests.opinfo import OpInfo, call, functional, normal


def unfolded(x: Any, kernel: Any, dilation: int = 1, padding: int = 0, stride: int = 1) -> Any:
    """Each block cut out by itself."""
    lead = x.shape[:-3]
    x = jnp.pad(x, [(0, 0)] * (x.ndim - 2) + [(padding, padding)] * 2)
    spans = [dilation * (k - 1) + 1 for k in kernel]
    columns = [
        x[..., i : i + spans[0] : dilation, j : j + spans[1] : dilation].reshape(*lead, -1)
        for i in range(0, x.shape[-2] - spans[0] + 1, stride)
        for j in range(0, x.shape[-1] - spans[1] + 1, stride)
    ]
    return jnp.stack(columns, -1)


def folded(x: Any, size: Any, kernel: Any, *options: int) -> Any:
    shape = (*x.shape[:-2], x.shape[-2] // (kernel[0] * kernel[1]), *size)
    (out,) = jax.linear_transpose(
        lambda y: unfolded(y, kernel, *options), jax.ShapeDtypeStruct(shape, x.dtype)
    )(x)
    return out


def shuffled(x: Any, r: int) -> Any:
    """Every r-th pixel of each dim from another channel."""
    *_, channels, high, wide = x.shape
    out = jnp.zeros((*x.shape[:-3], channels // r**2, high * r, wide * r), x.dtype)
    for i in range(r):
        for j in range(r):
            out = out.at[..., i::r, j::r].set(x[..., i * r + j :: r**2, :, :])
    return out


def unshuffled(x: Any, r: int) -> Any:
    parts = [x[..., i::r, j::r] for i in range(r) for j in range(r)]
    *lead, channels, high, wide = parts[0].shape
    return jnp.stack(parts, -3).reshape(*lead, channels * r * r, high, wide)


ROWS: list[OpInfo] = [
    functional(
        "unfold",
        [call(normal(2, 2, 4, 5), (2, 3), 1, 1, 2), call(normal(1, 4, 4), (2, 2), 2)],
        unfolded,
        no_empty="the twin reshapes to a size that it divides out",
    ),
    functional(
        "fold",
        [call(normal(2, 12, 9), (4, 5), (2, 3), 1, 1, 2)],
        folded,
        no_empty="the twin reshapes to a size that it divides out",
    ),
    OpInfo("pixel_shuffle", [call(normal(2, 8, 1, 3), 2)], shuffled),
    OpInfo("pixel_unshuffle", [call(normal(2, 2, 4), 2)], unshuffled),
    OpInfo(
        "channel_shuffle",
        [call(normal(1, 6, 2), 3)],
        lambda x, groups: jnp.stack(jnp.split(x, groups, 1), 2).reshape(x.shape),
    ),
    OpInfo(
        "native_channel_shuffle",
        [call(normal(1, 4, 1, 2), 2)],
        lambda x, groups: jnp.stack(jnp.split(x, groups, 1), 2).reshape(x.shape),
    ),
]
