"""Inputs resized along their dims.

Positions and weights depend on sizes alone, so they are constants of the kernel: each dim is
multiplied by a matrix of weights, or, where one element is copied, read by an index.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from dyngraph.ops.arguments import is_inexact, widened
from dyngraph.ops.host_values import array_of
from dyngraph.ops.operator import define
from dyngraph.ops.pooling import along_dim, averaging_matrix
from dyngraph.ops.resampling import cubic_weight
from dyngraph.tensor import Tensor


def _scale(size: int, out: int, factor: float | None, align_corners: bool) -> float:
    """How far apart the positions that are read lie."""
    if align_corners:
        return (size - 1) / (out - 1) if out > 1 else 0.0
    return 1 / factor if factor else size / out


def _nearest(size: int, out: int, factor: float | None, *, exact: bool) -> np.ndarray:
    """The element that each result copies."""
    # In float32, since PyTorch computes so, and the floor depends on it.
    scale = np.float32(_scale(size, out, factor, align_corners=False))
    places = np.arange(out, dtype=np.float32) + np.float32(0.5 if exact else 0)
    return np.minimum(np.floor(places * scale).astype(np.int32), size - 1)


def _centers(size: int, out: int, factor: float | None, align_corners: bool) -> np.ndarray:
    scale = _scale(size, out, factor, align_corners)
    places = np.arange(out)
    return places * scale if align_corners else (places + 0.5) * scale - 0.5


def _matrix(
    mode: str, size: int, out: int, factor: float | None, align_corners: bool, antialias: bool
) -> np.ndarray:
    """(out, size): the weight of each element in each result."""
    if antialias:
        return _smoothing_matrix(mode, size, out, factor, align_corners)
    centers = _centers(size, out, factor, align_corners)
    matrix = np.zeros((out, size))
    if mode == "cubic":
        base = np.floor(centers).astype(int)
        taps = [(base + i, cubic_weight(centers - base - i, -0.75)) for i in (-1, 0, 1, 2)]
    else:
        centers = np.maximum(centers, 0)
        base = np.floor(centers).astype(int)
        taps = [(base, 1 - (centers - base)), (base + 1, centers - base)]
    for places, weights in taps:
        np.add.at(matrix, (np.arange(out), np.clip(places, 0, size - 1)), weights)
    return matrix.astype(np.float32)


def _smoothing_matrix(
    mode: str, size: int, out: int, factor: float | None, align_corners: bool
) -> np.ndarray:
    """The weights of a filter stretched over what a result stands for, as in Pillow."""
    scale = _scale(size, out, factor, align_corners)
    stretch = max(scale, 1.0)
    support = (2 if mode == "cubic" else 1) * stretch
    middles = ((np.arange(out) + 0.5) * scale)[:, None]
    places = np.arange(size)
    first = np.maximum(np.floor(middles - support + 0.5), 0)
    last = np.minimum(np.floor(middles + support + 0.5), size)
    distance = (places - middles + 0.5) / stretch
    weights = cubic_weight(distance, -0.5) if mode == "cubic" else np.maximum(1 - abs(distance), 0)
    weights = np.where((places >= first) & (places < last), weights, 0)
    return (weights / weights.sum(1, keepdims=True)).astype(np.float32)


def _resize(
    self: Any,
    *,
    sizes: tuple[int, ...],
    factors: tuple[float | None, ...],
    mode: str,
    align_corners: bool,
    antialias: bool,
) -> Any:
    values = self
    if mode not in ("nearest", "nearest-exact"):
        values = widened(self)
    for i, (out, factor) in enumerate(zip(sizes, factors, strict=True)):
        dim, size = i + 2, self.shape[i + 2]
        if mode == "area":
            values = along_dim(values, averaging_matrix(size, out), dim)
        elif size == out and (antialias or mode in ("nearest", "linear")):
            continue  # PyTorch copies it, whatever the factor
        elif mode in ("nearest", "nearest-exact"):
            places = _nearest(size, out, factor, exact=mode != "nearest")
            values = jnp.take(values, places, axis=dim)
        else:
            matrix = _matrix(mode, size, out, factor, align_corners, antialias)
            values = along_dim(values, matrix, dim)
    return values.astype(self.dtype)


_interpolate = define("interpolate", _resize, node="UpsampleBackward0")

_MODES = {
    "nearest": ("nearest", (1, 2, 3)),
    "nearest-exact": ("nearest-exact", (1, 2, 3)),
    "area": ("area", (1, 2, 3)),
    "linear": ("linear", (1,)),
    "bilinear": ("linear", (2,)),
    "bicubic": ("cubic", (2,)),
    "trilinear": ("linear", (3,)),
}


def _output_sizes(
    shape: Sequence[int], size: Any, scale_factor: Any, recompute: bool | None
) -> tuple[tuple[int, ...], tuple[float | None, ...]]:
    """The sizes of a resized input, and the factors to compute positions with, if any."""
    dims = len(shape)
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is not None:
        if recompute:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        wanted = tuple(size) if isinstance(size, (tuple, list)) else (size,) * dims
        if len(wanted) != dims:
            raise ValueError(
                f"Input and output must have the same number of spatial dimensions, but got input "
                f"with spatial dimensions of {list(shape)} and output size of {list(wanted)}."
            )
        return tuple(int(n) for n in wanted), (None,) * dims
    if scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    given = scale_factor if isinstance(scale_factor, (tuple, list)) else (scale_factor,) * dims
    if len(given) != dims:
        raise ValueError(
            f"Input and scale_factor must have the same number of spatial dimensions, but got "
            f"input with spatial dimensions of {list(shape)} and scale_factor of shape "
            f"{list(given)}."
        )
    factors = tuple(float(f) for f in given)
    sizes = tuple(math.floor(n * f) for n, f in zip(shape, factors, strict=True))
    return sizes, (None,) * dims if recompute else factors


def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """(batch, channels, *sizes) resized to `size`, or by `scale_factor`.

    `mode`: nearest, nearest-exact, area, or, for one dim linear, for two bilinear or bicubic, for
    three trilinear. `align_corners` maps corner elements to corner elements; otherwise elements are
    areas. `antialias` (bilinear, bicubic) widens the filter when the size shrinks. Raises
    ValueError and NotImplementedError for arguments that do not go together.

    >>> dg.nn.functional.interpolate(dg.tensor([[[0.0, 1.0]]]), scale_factor=2, mode="linear")
    tensor([[[0.0000, 0.2500, 0.7500, 1.0000]]])
    """
    array = array_of(input)
    dims = array.ndim - 2
    if mode not in _MODES or dims not in (1, 2, 3):
        raise NotImplementedError(
            "Input Error: Only 3D, 4D and 5D input Tensors supported (got "
            f"{array.ndim}D) for the modes: {' | '.join(_MODES)} (got {mode})"
        )
    kind, allowed = _MODES[mode]
    if dims not in allowed:
        raise NotImplementedError(
            f"Got {array.ndim}D input, but {mode} mode needs {allowed[0] + 2}D input"
        )
    if kind in ("linear", "cubic"):
        align_corners = bool(align_corners)
    elif align_corners is not None:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear "
            "| bicubic | trilinear"
        )
    if antialias and mode not in ("bilinear", "bicubic"):
        raise ValueError(
            "Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D "
            "tensor as input"
        )
    if not is_inexact(array) and array.dtype != jnp.uint8:
        raise NotImplementedError(
            f"interpolate is not implemented for {array.dtype}. Convert the input by .float()."
        )
    sizes, factors = _output_sizes(array.shape[2:], size, scale_factor, recompute_scale_factor)
    if min(*sizes, *array.shape[1:]) <= 0:
        raise RuntimeError(
            f"Input and output sizes should be greater than 0, but got input {list(array.shape)} "
            f"and output {list(sizes)}"
        )
    return _interpolate(input, sizes, factors, kind, bool(align_corners), bool(antialias))


def upsample(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """`interpolate` by its old name.

    >>> dg.nn.functional.upsample(dg.tensor([[[0.0, 1.0]]]), scale_factor=2)
    tensor([[[0., 0., 1., 1.]]])
    """
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate` that copies the nearest element.

    >>> dg.nn.functional.upsample_nearest(dg.tensor([[[0.0, 1.0]]]), 4)
    tensor([[[0., 0., 1., 1.]]])
    """
    return interpolate(input, size, scale_factor, "nearest")


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate` in bilinear mode, with aligned corners.

    >>> dg.nn.functional.upsample_bilinear(dg.tensor([[[[0.0, 1.0]]]]), (1, 3))
    tensor([[[[0.0000, 0.5000, 1.0000]]]])
    """
    return interpolate(input, size, scale_factor, "bilinear", align_corners=True)


__all__: list[str] = []  # these are functions of nn.functional
METHODS: tuple[str, ...] = ()
