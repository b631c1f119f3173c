"""Tensors with a margin around their elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dyngraph.ops.operator import define
from dyngraph.tensor import Tensor


def _pad_pairs(pad: Sequence[int], ndim: int) -> list[tuple[int, int]]:
    """(before, after) for each dim, from PyTorch's list, which begins at the last dim."""
    if len(pad) % 2 or len(pad) > 2 * ndim:
        raise RuntimeError(
            f"Padding length should be even and at most twice the number of dims ({ndim}), got "
            f"{list(pad)}"
        )
    pairs = [(pad[i], pad[i + 1]) for i in range(0, len(pad), 2)]
    return [(0, 0)] * (ndim - len(pairs)) + pairs[::-1]


def _pad_constant(self: Any, value: Any, *, pad: Any) -> Any:
    widths = [(a, b, 0) for a, b in _pad_pairs(pad, self.ndim)]
    return jax.lax.pad(self, jnp.asarray(value).astype(self.dtype), widths)


_constant_pad = define(
    "constant_pad_nd",
    _pad_constant,
    signature="self, pad, value",
    self=lambda grad, pad: _pad_constant(grad, 0, pad=[-n for n in pad]),
    value=None,
)

_PAD_MODES = ("reflect", "replicate", "circular")


def _padded_places(before: int, after: int, size: int, mode: str) -> np.ndarray:
    """Which element of a dim of `size` stands at each place of the padded dim.

    Negative widths take places away. A copy of the edge and a reflection still see what was there,
    a circle does not.
    """
    if size + before + after < 0:
        raise RuntimeError(
            f"pad(): the padding ({before}, {after}) leaves less than nothing of a dim of {size}"
        )
    places = np.arange(-before, size + after)
    if mode == "replicate":
        return np.clip(places, 0, size - 1)
    if mode == "circular":
        first = max(-before, 0)
        return first + (places - first) % max(size - first - max(-after, 0), 1)
    last = size - 1
    return last - np.abs(last - np.abs(places))


def _pad_otherwise(self: Any, *, pad: Any, mode: str) -> Any:
    pairs = _pad_pairs(pad, self.ndim)
    for dim, (pair, size) in enumerate(zip(pairs, self.shape, strict=True)):
        limit = {"reflect": size - 1, "circular": size}.get(mode)
        if limit is not None and max(pair) > max(limit, 0):
            raise RuntimeError(
                f"Padding size should be less than the corresponding input dimension, but got: "
                f"padding {pair} at dimension {dim} of input {list(self.shape)}"
            )
    for dim, ((before, after), size) in enumerate(zip(pairs, self.shape, strict=True)):
        if before or after:
            self = jnp.take(self, _padded_places(before, after, size, mode), dim)
    return self


_pad_by_mode = define("pad", _pad_otherwise, signature="self, pad, mode")


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: Any = None) -> Tensor:
    """Adds elements at both ends of the last dims; negative widths take elements away.

    `pad` is (before, after) of the last dim, then of the one before, and so on. `mode`: constant
    (`value`, by default 0), reflect, replicate or circular. Raises RuntimeError where a reflection
    is wider than its dim.

    >>> dg.nn.functional.pad(dg.tensor([1.0, 2.0]), (1, 2), value=9.0)
    tensor([9., 1., 2., 9., 9.])
    """
    if mode == "constant":
        return _constant_pad(input, tuple(pad), 0 if value is None else value)
    if mode not in _PAD_MODES:
        raise NotImplementedError(
            f"Unrecognised padding mode {mode}: expected constant, reflect, replicate or circular"
        )
    if value is not None and value != 0:
        raise ValueError(f'Padding mode "{mode}" doesn\'t take in value argument, got {value}')
    return _pad_by_mode(input, tuple(pad), mode)


def constant_pad_nd(input: Tensor, pad: Sequence[int], value: Any = 0) -> Tensor:
    """`nn.functional.pad` with a constant.

    >>> dg.constant_pad_nd(dg.tensor([1.0, 2.0]), (1, 0))
    tensor([0., 1., 2.])
    """
    return _constant_pad(input, tuple(pad), value)


__all__ = ["constant_pad_nd"]
METHODS = ()
