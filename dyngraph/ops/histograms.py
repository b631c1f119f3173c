"""Histograms: how many elements, or points, fall into each of several bins.

A bin holds its lower edge, the last one both. Nothing here has a gradient.
"""

from __future__ import annotations

import functools
import math
from collections import namedtuple
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dyngraph.ops.arguments import as_ints
from dyngraph.ops.host_values import array_of, described, from_host, on_host
from dyngraph.ops.operator import define
from dyngraph.ops.out import takes_out
from dyngraph.tensor import Tensor, wrap

_Histogram = namedtuple("histogram", ("hist", "bin_edges"))
_Histogramdd = namedtuple("histogramdd", ("hist", "bin_edges"))


def _histogram_kernel(
    self: Any, edges: Any, weight: Any = None, *, density: bool, integers: bool
) -> Any:
    values = self.reshape(-1)
    count = edges.shape[0] - 1
    inside = (values >= edges[0]) & (values <= edges[-1])
    bins = jnp.clip(jnp.searchsorted(edges, values, side="right") - 1, 0, count - 1)
    given = jnp.ones_like(values, edges.dtype) if weight is None else weight.reshape(-1)
    hist = jnp.zeros(count, given.dtype).at[bins].add(jnp.where(inside, given, 0))
    if density:
        hist = hist / (hist.sum() * jnp.diff(edges))
    return hist.astype(self.dtype) if integers else hist


_histogram = define(
    "histogram",
    _histogram_kernel,
    signature="self, edges, weight, density, integers",
    differentiable=False,
)


def _bin_edges(where: str, values: np.ndarray, bins: int, low: float, high: float) -> np.ndarray:
    if bins <= 0:
        raise RuntimeError(f"{where}(): bins must be > 0, but got {bins}")
    if low > high:
        raise RuntimeError(f"{where}(): max must be larger than min, got {low} and {high}")
    if low == high and values.size:
        low, high = float(values.min()), float(values.max())
    if low == high:
        low, high = (low - 1, high + 1) if where == "histc" else (low - 0.5, high + 0.5)
    if not (np.isfinite(low) and np.isfinite(high)):
        raise RuntimeError(f"{where}(): range of [{low}, {high}] is not finite")
    dtype = values.dtype if values.dtype.kind == "f" and values.dtype.itemsize > 2 else np.float32
    return np.linspace(low, high, bins + 1, dtype=dtype)


@takes_out
def histc(input: Any, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """How many elements fall into each of `bins` equal parts of `min` to `max`.

    Both 0 stand for the smallest and the largest element. What lies outside is not counted. It
    can't be traced, and has no gradient.

    >>> dg.histc(dg.tensor([1.0, 2.0, 1.0]), bins=4, min=0, max=3)
    tensor([0., 2., 1., 0.])
    """
    values = on_host("histc", input)
    edges = _bin_edges("histc", values, bins, float(min), float(max))
    return _histogram(input, edges, None, False, True)


@takes_out
def histogram(
    input: Any, bins: Any, *, range: Any = None, weight: Any = None, density: bool = False
) -> Any:
    """Counts in bins, and the bins' edges: a named tuple (hist, bin_edges).

    `bins` is a number of equal parts of `range` (the elements' own without it), or a vector of
    edges in ascending order. `weight` counts each element so much, `density` makes the area 1. It
    can't be traced, and has no gradient.

    >>> dg.histogram(dg.tensor([1.0, 2.0, 1.0]), bins=2, range=(0.0, 3.0)).hist
    tensor([2., 1.])
    """
    if isinstance(bins, int):
        low, high = range or (0.0, 0.0)
        values = on_host("histogram", input)
        bins = from_host(_bin_edges("histogram", values, bins, low, high), input)
    hist = _histogram(input, bins, weight, bool(density), False)
    dtype = described(
        input
    ).dtype  # one of 16 bits is given back last, so that all counts are right
    return _Histogram(*(wrap(array_of(x).astype(dtype)) for x in (hist, bins)))


# --- points of several coordinates -------------------------------------------------------------


@functools.partial(jax.jit, static_argnames="density")
def _counted(self: Any, edges: tuple[Any, ...], weight: Any, *, density: bool) -> Any:
    points = self.reshape(-1, self.shape[-1])
    sizes = [edge.shape[0] - 1 for edge in edges]
    place: Any = 0
    inside: Any = True
    for axis, (edge, size) in enumerate(zip(edges, sizes, strict=True)):
        values = points[:, axis]
        found = jnp.searchsorted(edge, values, side="right") - 1
        place = place * size + jnp.clip(found, 0, size - 1)
        inside = inside & (values >= edge[0]) & (values <= edge[-1])
    given = jnp.ones(points.shape[0], self.dtype) if weight is None else weight.reshape(-1)
    hist = jnp.zeros(math.prod(sizes), given.dtype).at[place].add(jnp.where(inside, given, 0))
    hist = hist.reshape(sizes)
    if density:
        volume = functools.reduce(jnp.multiply.outer, [jnp.diff(edge) for edge in edges])
        hist = hist / (hist.sum() * volume)
    return hist.astype(self.dtype)


def _edges_of_dims(input: Tensor, bins: Sequence[int], range: Any) -> list[Tensor]:
    """Equal bins of each coordinate's range, by default that of the points."""
    points = on_host("histogramdd", input).reshape(-1, len(bins))
    limits = np.zeros(2 * len(bins)) if range is None else np.asarray(range, float)
    if limits.shape != (2 * len(bins),):
        raise RuntimeError(
            f"histogramdd(): for a {len(bins)}-dimensional histogram range should have "
            f"{2 * len(bins)} elements, a lower and an upper bound for each, but got {limits.size}"
        )
    made = []
    for axis, count in enumerate(as_ints(tuple(bins))):
        if count <= 0:
            raise RuntimeError(
                f"histogramdd(): bins must be > 0, but got {count} for dimension {axis}"
            )
        low, high = limits[2 * axis : 2 * axis + 2]
        if range is None and not len(points):
            low, high = 0.0, 1.0
        edges = _bin_edges("histogramdd", points[:, axis], count, float(low), float(high))
        made.append(from_host(edges, input))
    return made


def histogramdd(
    input: Tensor,
    bins: Any,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Any:
    """Counts of points (..., n) in bins of their n coordinates: a named tuple (hist, bin_edges).

    `bins` is a number of bins for all coordinates or one for each, of equal parts of `range`: (low,
    high, low, high, ...), by default that of the points; or a vector of ascending edges for each.
    `weight`, (...), counts each point so much, `density` makes the volume 1. It has no gradient.

    >>> points = dg.tensor([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]])
    >>> dg.histogramdd(points, bins=[2, 1]).hist
    tensor([[1.],
            [2.]])
    """
    array = array_of(input)
    if array.dtype.kind != "f" and array.dtype != jnp.bfloat16:
        raise NotImplementedError(
            f"histogramdd() counts floating point numbers, not {array.dtype}. Convert the input by "
            ".float()."
        )
    if array.ndim < 2:
        raise RuntimeError(
            f"histogramdd(): input tensor should have at least 2 dimensions, got {array.ndim}"
        )
    if weight is not None and described(weight).shape != array.shape[:-1]:
        raise RuntimeError(
            "histogramdd(): if weight tensor is provided it should have the same shape as the "
            "input tensor excluding its innermost dimension, but got input with shape "
            f"{list(array.shape)} and weight with shape {list(described(weight).shape)}"
        )
    each = [bins] * array.shape[-1] if isinstance(bins, int) else list(bins)
    if len(each) != array.shape[-1]:
        raise RuntimeError(
            "histogramdd(): The size of bins must be equal to the innermost dimension of the "
            f"input, {array.shape[-1]}, got {len(each)}."
        )
    given = any(isinstance(edges, Tensor) for edges in each)
    edges = each if given else _edges_of_dims(input, each, range)
    weights = None if weight is None else array_of(weight)
    places = tuple(array_of(edge) for edge in edges)
    hist = _counted(array, places, weights, density=bool(density))
    return _Histogramdd(wrap(hist), tuple(wrap(edge.astype(array.dtype)) for edge in places))


__all__ = ["histc", "histogram", "histogramdd"]
METHODS = ("histc", "histogram")
"""The functions of this file that are methods of Tensor too."""
