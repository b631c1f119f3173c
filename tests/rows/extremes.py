"""Rows of the operators in `dyngraph/ops/extremes.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from tests.opinfo import OpInfo, booleans, call, integers, spread
from tests.references import numpy_names


def values_and_indices(reduce: Any, find: Any) -> Callable[..., Any]:
    """What max(dim) returns; without a dim the reduction alone."""

    def reference(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
        if dim is None:
            return reduce(x)
        return reduce(x, dim, keepdims=keepdim), find(x, dim, keepdims=keepdim)

    return reference


EXTREMES = [call(spread(2, 3)), call(spread(2, 3, 2), dim=(0, -1)), call(spread(2, 3), 1, True)]
PICKED = [call(spread(3, 4)), call(spread(3, 4), 1), call(spread(3, 4), dim=-2, keepdim=True)]

ROWS: list[OpInfo] = [
    OpInfo("amax", [*EXTREMES, call(integers(50, 2, 3), 1)], numpy_names(jnp.max)),
    OpInfo("amin", [*EXTREMES, call(integers(50, 2, 3), 1)], numpy_names(jnp.min)),
    OpInfo(
        "max",
        [*PICKED, call(booleans(2, 3), 1)],
        values_and_indices(jnp.max, jnp.argmax),
    ),
    OpInfo(
        "min",
        [*PICKED, call(integers(9, 2, 3))],
        values_and_indices(jnp.min, jnp.argmin),
    ),
    OpInfo(
        "aminmax",
        [call(spread(2, 3)), call(spread(2, 3), dim=1, keepdim=True)],
        lambda x, dim=None, keepdim=False: (
            jnp.min(x, dim, keepdims=keepdim),
            jnp.max(x, dim, keepdims=keepdim),
        ),
    ),
    OpInfo(
        "argmax",
        [call(spread(3, 4)), call(spread(3, 4), 1), call(integers(9, 3, 4), dim=0, keepdim=True)],
        numpy_names(jnp.argmax),
        gradient=False,
    ),
    OpInfo(
        "argmin",
        [call(spread(3, 4)), call(spread(3, 4), 1), call(integers(9, 3, 4), dim=0, keepdim=True)],
        numpy_names(jnp.argmin),
        gradient=False,
    ),
]
