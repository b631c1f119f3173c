"""Rows of the operators in `dyngraph/ops/segments.py`."""

from __future__ import annotations

import itertools
from typing import Any

import jax.numpy as jnp
import numpy as np

from tests.opinfo import OpInfo, call, normal, spread


def segments(
    x: Any,
    reduce: str,
    lengths: Any = None,
    offsets: Any = None,
    axis: int = 0,
    initial: float | None = None,
) -> Any:
    """One segment after the other."""
    if axis:
        rows = [segments(row, reduce, part) for row, part in zip(x, lengths, strict=True)]
        return jnp.stack(rows)
    bounds = offsets if lengths is None else np.cumsum([0, *lengths])
    parts = [x[start:end] for start, end in itertools.pairwise(bounds)]
    neutral = {"sum": 0.0, "max": -jnp.inf, "min": jnp.inf, "prod": 1.0}
    if reduce == "mean":
        return jnp.stack([part.mean(0) for part in parts])
    start = neutral[reduce] if initial is None else initial
    return jnp.stack([getattr(jnp, reduce)(part, axis=0, initial=start) for part in parts])


with_zeros = normal(5)
with_zeros[[1, 3, 4]] = 0
THREE = np.array([3, 0, 2])

ROWS: list[OpInfo] = [
    OpInfo(
        "segment_reduce",
        [
            call(normal(5, 2), "sum", lengths=THREE, initial=2.0),
            call(normal(2, 4), "mean", lengths=np.array([[3, 1], [2, 2]]), axis=1),
            call(spread(5), "max", offsets=np.array([0, 2, 5])),
            call(with_zeros, "prod", lengths=THREE),
        ],
        segments,
        refuses_empty="to sum to 0",
    ),
]
