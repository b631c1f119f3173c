"""Rows of the operators in `dyngraph/ops/differences.py`."""

from __future__ import annotations

import functools
from typing import Any

import jax.numpy as jnp
import numpy as np

from tests.opinfo import OpInfo, call, normal


def slopes(x: Any, spacing: Any = 1, dim: Any = None, edge_order: int = 1) -> Any:
    """By `numpy.gradient`, which is linear in the values: as a matrix for each dim."""
    axes = range(x.ndim) if dim is None else [dim] if isinstance(dim, int) else dim
    steps = spacing if isinstance(spacing, (list, tuple)) else [spacing] * len(axes)
    results = []
    for axis, step in zip(axes, steps, strict=True):
        of = functools.partial(np.gradient, axis=0, edge_order=edge_order)  # type: ignore[call-overload]
        weights = of(np.eye(x.shape[axis]), step)
        product = jnp.tensordot(jnp.asarray(weights, x.dtype), x, (1, axis))
        results.append(jnp.moveaxis(product, 0, axis))
    return tuple(results)


def area(y: Any, x: Any = None, dx: Any = 1.0, dim: int = -1) -> Any:
    return jnp.trapezoid(y, x, dx, dim)


def running_area(y: Any, x: Any = None, dx: Any = 1.0, dim: int = -1) -> Any:
    y = jnp.moveaxis(y, dim, -1)
    widths = dx if x is None else jnp.diff(x)
    return jnp.moveaxis(jnp.cumsum((y[..., 1:] + y[..., :-1]) / 2 * widths, -1), -1, dim)


AREAS = [call(normal(2, 4), normal(4)), call(normal(3, 2), dx=0.5, dim=0)]

ROWS: list[OpInfo] = [
    OpInfo(
        "diff",
        [call(normal(2, 5), 2), call(normal(3, 2), 1, 0, normal(1, 2), normal(2, 2))],
        lambda x, n, dim=-1, prepend=None, append=None: jnp.diff(
            x, n, dim, prepend=prepend, append=append
        ),
    ),
    OpInfo(
        "gradient",
        [
            call(normal(3, 4), spacing=0.5),
            call(normal(2, 4), spacing=[np.array([0.0, 1.0, 3.0, 3.5])], dim=1, edge_order=2),
        ],
        slopes,
    ),
    OpInfo("trapezoid", AREAS, area),
    OpInfo("trapz", AREAS[:1], area),
    OpInfo("cumulative_trapezoid", AREAS, running_area),
]
