"""Rows of the operators in `dyngraph/ops/quantiles.py`."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from tests.opinfo import OpInfo, call, normal, spread


def lower_median(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    flat = x.reshape(-1) if dim is None else x
    axis = 0 if dim is None else dim
    index = jnp.take(jnp.argsort(flat, axis), jnp.array([(flat.shape[axis] - 1) // 2]), axis)
    value = jnp.take_along_axis(flat, index, axis)
    if dim is None:
        return value[0]
    return (value, index) if keepdim else (value.squeeze(dim), index.squeeze(dim))


with_nan = normal(3, 4)
with_nan[1, 2] = with_nan[0, 0] = np.nan
PICKED = [call(spread(3, 4)), call(spread(3, 4), 1), call(spread(3, 4), dim=-2, keepdim=True)]

ROWS: list[OpInfo] = [
    OpInfo(
        "median",
        [*PICKED, call(spread(3, 5), 1)],
        lower_median,
        no_empty="the twin is written for some elements",
    ),
    OpInfo(
        "nanmedian",
        PICKED,
        lower_median,
        no_empty="the twin is written for some elements",
    ),
    OpInfo(
        "quantile",
        [
            call(spread(7), 0.3),
            call(spread(3, 5), 0.25, dim=1, keepdim=True),
            call(spread(3, 5), 0.3, dim=0, interpolation="lower"),
        ],
        lambda x, q, dim=None, keepdim=False, interpolation="linear": jnp.quantile(
            x, q, axis=dim, keepdims=keepdim, method=interpolation
        ),
    ),
    OpInfo(
        "nanquantile",
        [call(with_nan, 0.3, dim=1)],
        lambda x, q, dim: jnp.nanquantile(x, q, axis=dim),
        refuses_empty="must be non-empty",
    ),
    OpInfo(
        "mode",
        [call(np.array([[3.0, 1.0, 3.0, 2.0, 1.0], [2.0, 5.0, 5.0, 5.0, 2.0]], np.float32), 1)],
        lambda x, dim: (x[jnp.arange(2), jnp.array([4, 3])], jnp.array([4, 3])),
        no_differences="equal values part when they move",
        no_empty="the twin is written for some elements",
    ),
]
