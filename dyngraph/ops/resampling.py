"""Values between elements, sampled at positions of a grid, and grids of affine maps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dyngraph.ops.arguments import is_inexact, widened
from dyngraph.ops.host_values import described
from dyngraph.ops.operator import define
from dyngraph.tensor import Tensor


def cubic_weight(distance: Any, a: float, where: Any = np.where) -> Any:
    """The cubic convolution kernel. Keys 1981, https://doi.org/10.1109/TASSP.1981.1163711."""
    x = abs(distance)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return where(x <= 1, near, where(x < 2, far, 0.0))


# --- sampling on a grid -----------------------------------------------------------------------


def _clipped(place: Any, size: int) -> Any:
    """Positions brought inside; at the border and beyond their gradient is 0, as in PyTorch."""
    return jnp.where(place <= 0, 0, jnp.where(place >= size - 1, size - 1.0, place))


def _reflected(place: Any, low: float, high: float) -> Any:
    """Positions folded back at `low` and `high`, as often as they need."""
    span = high - low
    if span == 0:
        return jnp.zeros_like(place)
    distance = jnp.abs(place - low)
    folds = jax.lax.stop_gradient(jnp.floor(distance / span))
    rest = distance - folds * span
    return jnp.where(folds % 2 == 0, rest + low, high - rest)


def _inside(place: Any, size: int, padding_mode: str, align_corners: bool) -> Any:
    """Positions after padding; those of "zeros" stay outside."""
    if padding_mode == "reflection":
        low, high = (0.0, size - 1.0) if align_corners else (-0.5, size - 0.5)
        place = _reflected(place, low, high)
    return place if padding_mode == "zeros" else _clipped(place, size)


def _read(self: Any, places: Sequence[Any]) -> Any:
    """The elements at whole positions (K, batch, *out) of each dim, 0 outside.

    (batch, C, K, *out).
    """
    there, flat = jnp.bool_(True), jnp.int32(0)
    for place, size in zip(places, self.shape[2:], strict=True):
        there &= (place >= 0) & (place <= size - 1)
        flat = flat * size + jnp.clip(place, 0, size - 1).astype(jnp.int32)
    there, flat = jnp.moveaxis(there, 0, 1), jnp.moveaxis(flat, 0, 1)
    lines = self.reshape(*self.shape[:2], math.prod(self.shape[2:]))
    index = flat.reshape(flat.shape[0], 1, math.prod(flat.shape[1:]))
    values = jnp.take_along_axis(lines, index, -1).reshape(*self.shape[:2], *flat.shape[1:])
    return jnp.where(there[:, None], values, 0)


def _grid_sampler(
    self: Any, grid: Any, *, mode: str, padding_mode: str, align_corners: bool
) -> Any:
    sizes = self.shape[2:]
    wide, where = widened(self), widened(grid)
    cubic = mode == "bicubic"
    steps = np.indices([4 if cubic else 2] * len(sizes)) - cubic  # of each dim to each corner
    steps = steps.reshape(len(sizes), -1, *[1] * (grid.ndim - 1))
    corners, weight = [], jnp.float32(1)
    for i, size in enumerate(sizes):  # the last coordinate of the grid is that of the first dim
        place = where[..., len(sizes) - 1 - i]
        place = (place + 1) / 2 * (size - 1) if align_corners else ((place + 1) * size - 1) / 2
        if not cubic:
            place = _inside(place, size, padding_mode, align_corners)
        if mode == "nearest":
            corners.append(jax.lax.stop_gradient(jnp.round(place))[None])  # to even, as PyTorch
            continue
        near = jax.lax.stop_gradient(jnp.floor(place)) + steps[i]
        if cubic:
            weight = weight * cubic_weight(place - near, -0.75, jnp.where)
            near = _inside(near, size, padding_mode, align_corners)
        else:
            weight = weight * (1 + (2 * steps[i] - 1) * (place - near))
        corners.append(near)
    values = _read(wide, corners)
    if mode == "nearest":
        return values[:, :, 0].astype(self.dtype)
    return (values * jnp.moveaxis(weight, 0, 1)[:, None]).sum(2).astype(self.dtype)


_grid_sample = define("grid_sampler", _grid_sampler)

_SAMPLING = ("bilinear", "nearest", "bicubic")
_OUTSIDE = ("zeros", "border", "reflection")


def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Values of (N, C, H, W) at positions (N, *out, 2) of (x, y): (N, C, *out); also in 3-D.

    Positions go from -1 to 1; with `align_corners` these are the middles of the corner elements,
    otherwise their outer edges. `mode`: bilinear, nearest or bicubic (2-D only). `padding_mode`
    says what lies outside: zeros, border or reflection. Raises ValueError for other modes,
    RuntimeError where shapes do not fit. Jaderberg et al. 2015, https://arxiv.org/abs/1506.02025.

    >>> x = dg.tensor([[[[0.0, 1.0]]]])
    >>> dg.nn.functional.grid_sample(x, dg.zeros(1, 1, 1, 2))
    tensor([[[[0.5000]]]])
    """
    if mode not in _SAMPLING:
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', "
            f"but got: '{mode}'"
        )
    if padding_mode not in _OUTSIDE:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or "
            f"'reflection', but got: '{padding_mode}'"
        )
    x, g = described(input), described(grid)
    if (
        x.ndim not in (4, 5)
        or g.ndim != x.ndim
        or g.shape[0] != x.shape[0]
        or g.shape[-1] != x.ndim - 2
        or 0 in x.shape[2:]
    ):
        raise RuntimeError(
            "grid_sampler(): expected input (N, C, H, W) and grid (N, *out, 2), or one dim more in "
            f"each, with sizes above 0; got shapes {list(x.shape)} and {list(g.shape)}"
        )
    if x.dtype != g.dtype:
        raise RuntimeError(
            f"grid_sampler(): expected input and grid to have the same dtype, but input has "
            f"{x.dtype} and grid has {g.dtype}"
        )
    if mode == "bicubic" and x.ndim != 4:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    return _grid_sample(input, grid, mode, padding_mode, bool(align_corners))


def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """`nn.functional.grid_sample` with its modes as numbers, in the order they are listed there.

    >>> dg.grid_sampler(dg.ones(1, 1, 2, 2), dg.zeros(1, 1, 1, 2), 0, 0, False).flatten()
    tensor([1.])
    """
    return grid_sample(
        input, grid, _SAMPLING[interpolation_mode], _OUTSIDE[padding_mode], align_corners
    )


def grid_sampler_2d(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """`grid_sampler` of inputs with two dims to sample.

    >>> dg.grid_sampler_2d(dg.ones(1, 1, 2, 2), dg.zeros(1, 1, 1, 2), 0, 0, False).flatten()
    tensor([1.])
    """
    return grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)


def grid_sampler_3d(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """`grid_sampler` of inputs with three dims to sample.

    >>> x, grid = dg.ones(1, 1, 2, 2, 2), dg.zeros(1, 1, 1, 1, 3)
    >>> dg.grid_sampler_3d(x, grid, 0, 0, False).flatten()
    tensor([1.])
    """
    return grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)


def _affine_grid(theta: Any, *, size: tuple[int, ...], align_corners: bool) -> Any:
    count = len(size) - 2
    if count not in (1, 2, 3) or theta.shape != (size[0], count, count + 1):
        raise ValueError(
            f"Expected a batch of {count}D affine matrices of shape {size[0]}x{count}x{count + 1} "
            f"for size {list(size)}. Got {list(theta.shape)}."
        )
    lines = []
    for n in size[2:]:
        line = np.linspace(-1, 1, n) if n > 1 else np.zeros(1)
        lines.append(line if align_corners else line * (n - 1) / n)
    places = np.stack([*np.meshgrid(*lines, indexing="ij")[::-1], np.ones(size[2:])], -1)
    flat = jnp.asarray(places.reshape(-1, count + 1), theta.dtype)
    grid = jnp.matmul(flat, theta.mT, precision=jax.lax.Precision.HIGHEST)
    return grid.reshape(size[0], *size[2:], count)


_affine_grid_generator = define(
    "affine_grid_generator", _affine_grid, signature="theta, size, align_corners"
)


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """The grid of `grid_sample` that maps positions by matrices `theta`, (N, 2, 3) or (N, 3, 4).

    `size` is that of the output: (N, C, H, W) or (N, C, D, H, W). Raises ValueError where shapes do
    not fit.

    >>> theta = dg.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    >>> dg.nn.functional.affine_grid(theta, (1, 1, 1, 2), align_corners=True)
    tensor([[[[-1.,  0.],
              [ 1.,  0.]]]])
    """
    if not is_inexact(described(theta)):
        raise ValueError(
            f"Expected theta to have floating point type, but got {described(theta).dtype}"
        )
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {list(size)}")
    return _affine_grid_generator(theta, tuple(int(n) for n in size), bool(align_corners))


__all__ = [
    "grid_sampler",
    "grid_sampler_2d",
    "grid_sampler_3d",
]
METHODS: tuple[str, ...] = ()
"""The functions of this file that are methods of Tensor too."""
