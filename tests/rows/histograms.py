"""Rows of the operators in `dyngraph/ops/histograms.py`."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from tests.opinfo import OpInfo, call, normal, positive


def histogramdd(points: Any, bins: Any, range: Any, weight: Any, density: bool) -> Any:
    limits = list(zip(range[::2], range[1::2], strict=True))
    hist, edges = jnp.histogramdd(points, bins, limits, weight, density)
    return hist, tuple(edges)


ROWS: list[OpInfo] = [
    OpInfo(
        "histc",
        [call(normal(20), 5, -1, 1)],
        lambda x, bins, low, high: jnp.histogram(x, bins, (low, high))[0].astype(x.dtype),
        gradient=False,
    ),
    OpInfo(
        "histogram",
        [call(normal(20), 5, range=(-1.0, 1.0), density=True)],
        lambda x, bins, range, density: jnp.histogram(x, bins, range, density=density),
        gradient=False,
    ),
    OpInfo(
        "histogramdd",
        [call(normal(20, 2), [3, 2], [-1.0, 1.0, -2.0, 0.5], positive(20), True)],
        histogramdd,
        gradient=False,
    ),
]
