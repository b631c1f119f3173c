"""Rows of the operators in `dyngraph/ops/scans.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import lax

import dyngraph as dg
from tests.opinfo import OpInfo, booleans, call, integers, normal, positive, spread


def along(function: Callable[..., Any]) -> Callable[..., Any]:
    """A jnp function of an array and an axis."""
    return lambda x, dim, dtype=None: function(
        x if dtype is None else x.astype(dtype.dtype), axis=dim % x.ndim
    )


def running(compare: Any) -> Callable[..., Any]:
    """What cummax and cummin return, for values without ties."""

    def reference(x: Any, dim: int) -> Any:
        moved = jnp.moveaxis(x, dim, -1)
        length = moved.shape[-1]
        before = jnp.tril(jnp.ones((length, length), bool))
        index = compare(moved, before)
        value = jnp.take_along_axis(moved, index, -1)
        return jnp.moveaxis(value, -1, dim), jnp.moveaxis(index, -1, dim)

    return reference


def latest_max(x: Any, before: Any) -> Any:
    return jnp.argmax(jnp.where(before, x[..., None, :], -jnp.inf), -1)


def latest_min(x: Any, before: Any) -> Any:
    return jnp.argmin(jnp.where(before, x[..., None, :], jnp.inf), -1)


with_zeros = positive(3, 4)
with_zeros[0, 1] = with_zeros[2, 0] = with_zeros[2, 3] = 0

ROWS: list[OpInfo] = [
    OpInfo(
        "cumsum",
        [
            call(normal(2, 3), 1),
            call(normal(2, 3), dim=-2),
            call(integers(5, 4), 0),
            call(booleans(4), 0, dtype=dg.float32),
        ],
        along(lax.cumsum),
    ),
    OpInfo(
        "cumprod",
        [call(normal(2, 3), 1), call(with_zeros, dim=-1), call(integers(5, 4), 0)],
        along(lax.cumprod),
    ),
    OpInfo("logcumsumexp", [call(normal(2, 3), 1)], along(lax.cumlogsumexp)),
    OpInfo(
        "cummax",
        [call(spread(2, 5), 1), call(spread(3, 2), dim=0)],
        running(latest_max),
        no_empty="the twin is written for some elements",
    ),
    OpInfo(
        "cummin",
        [call(spread(2, 5), 1), call(spread(3, 2), dim=0)],
        running(latest_min),
        no_empty="the twin is written for some elements",
    ),
]
