"""Reductions of segments: rows that follow each other, as many as a list of lengths says."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dyngraph.ops.arguments import is_inexact
from dyngraph.ops.host_values import array_of, as_int, described
from dyngraph.ops.operator import define
from dyngraph.tensor import Tensor, canonical_dim
from dyngraph.tracing import Tracer

_REDUCTIONS = ("sum", "mean", "max", "min", "prod")


def _products(rows: Any, segment: Any, bounds: Any) -> Any:
    """The product of each segment, by a scan that starts anew with each; right with zeros too."""

    def combine(first: Any, second: Any) -> Any:
        (x, of), (y, to) = first, second
        return jnp.where((of == to)[:, None], x * y, y), to

    scanned, _ = jax.lax.associative_scan(combine, (rows, segment))
    last = jnp.maximum(bounds[1:] - 1, 0)
    return jnp.where((bounds[1:] > bounds[:-1])[:, None], scanned[last], 1)


def _reduce(rows: Any, bounds: Any, initial: Any, reduce: str) -> Any:
    """(n, m) to (segments, m): segment i is the rows from `bounds[i]` to before `bounds[i + 1]`."""
    length, count = rows.shape[0], bounds.shape[0] - 1
    places = jnp.arange(length)
    segment = jnp.searchsorted(bounds[1:], places, side="right")
    segment = jnp.where(places < bounds[0], count, segment)  # one more, which is left out
    if reduce == "prod":
        if not length:
            return jnp.full((count, rows.shape[1]), initial, rows.dtype)
        return initial * _products(rows, segment, bounds)
    if reduce in ("max", "min"):
        run = getattr(jax.ops, f"segment_{reduce}")
        extreme = run(rows, segment, count + 1)[:count]
        is_beaten = extreme < initial if reduce == "max" else extreme > initial
        return jnp.where(is_beaten, initial, extreme)
    total = jax.ops.segment_sum(rows, segment, count + 1)[:count] + initial
    if reduce == "sum":
        return total
    sizes = (bounds[1:] - bounds[:-1])[:, None]
    return total / jnp.maximum(sizes, 1)


_NEUTRAL = {"sum": 0.0, "mean": 0.0, "max": -math.inf, "min": math.inf, "prod": 1.0}


def _kernel(self: Any, bounds: Any, initial: Any = None, *, reduce: str, axis: int) -> Any:
    if not is_inexact(self):
        raise NotImplementedError(
            f"segment_reduce() reduces floating point numbers, not {self.dtype}. Convert the data "
            "by .float()."
        )
    lead, length, rest = self.shape[:axis], self.shape[axis], self.shape[axis + 1 :]
    count = bounds.shape[-1] - 1
    start = _NEUTRAL[reduce] if initial is None else initial
    start = jnp.asarray(start).astype(self.dtype)
    rows = self.reshape(math.prod(lead), length, math.prod(rest))
    ends = bounds.reshape(math.prod(lead), count + 1)
    out = jax.vmap(lambda r, b: _reduce(r, b, start, reduce))(rows, ends)
    out = out.reshape(*lead, count, *rest)
    if reduce == "mean" and initial is None:
        empty = bounds[..., 1:] == bounds[..., :-1]
        out = jnp.where(empty.reshape(*empty.shape, *[1] * len(rest)), jnp.nan, out)
    return out


_segment_reduce = define(
    "segment_reduce",
    _kernel,
    signature="self, bounds, initial, reduce, axis",
    bounds=None,
    initial=None,
)


def segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
) -> Tensor:
    """The sum, mean, max, min or prod of each segment along `axis`, each reduction with `initial`.

    `lengths` is (*the dims of data before axis, segments), and the lengths of a row add up to
    data's, unless `unsafe`; `offsets` is where each begins, and the last ends. An empty segment
    has `initial`, or what the reduction leaves unchanged (a mean: NaN). Equal extremes share
    the gradient. Raises RuntimeError for lengths that do not fit, and other reductions.

    >>> dg.segment_reduce(dg.tensor([1.0, 2.0, 3.0]), "sum", lengths=dg.tensor([2, 1]))
    tensor([3., 3.])
    """
    name = reduce.removeprefix("a") if reduce in ("amax", "amin") else reduce
    if name not in _REDUCTIONS:
        raise RuntimeError(
            f"reduce argument must be either sum, prod, mean, max or min, got {reduce}"
        )
    if indices is not None:
        raise RuntimeError(
            "segment_reduce(): indices based reduction is not supported. Pass lengths or offsets, "
            "or call scatter_reduce()."
        )
    if offsets is None and lengths is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    parts = array_of(lengths if offsets is None else offsets)
    if isinstance(parts, np.ndarray) and parts.dtype.kind in "iu":
        parts = as_int(parts)
    shape = described(data).shape
    axis = canonical_dim(axis, len(shape))
    if parts.dtype.kind not in "iu":
        raise NotImplementedError(
            f"segment_reduce() counts in integers, not {parts.dtype}. Convert lengths by .long()."
        )
    if parts.ndim != axis + 1 or parts.shape[:-1] != shape[:axis]:
        raise RuntimeError(
            f"segment_reduce(): Expected axis to be the last dimension of lengths, whose shape "
            f"then begins with {list(shape[:axis])}, but got axis {axis} and shape "
            f"{list(parts.shape)}."
        )
    if offsets is None:
        padding = [(0, 0)] * axis + [(1, 0)]
        parts = jnp.pad(jnp.cumsum(parts, -1, dtype=parts.dtype), padding)
    _check_bounds(parts, shape[axis], whole=offsets is None and not unsafe)
    return _segment_reduce(data, parts, initial, name, axis)


def _check_bounds(bounds: Any, length: int, *, whole: bool) -> None:
    if isinstance(bounds, Tracer):
        return
    held = np.asarray(bounds)
    if (np.diff(held) < 0).any():
        raise RuntimeError("segment_reduce(): lengths contains negative value!")
    if held.size and whole and (held[..., -1] != length).any():
        raise RuntimeError(
            "segment_reduce(): Expected all rows of lengths along axis to sum to "
            f"{length}, the data's size, when !unsafe, got {held[..., -1].ravel().tolist()}."
        )


__all__ = ["segment_reduce"]
METHODS = ()
"""The functions of this file that are methods of Tensor too."""
