"""Rows of the operators in `dyngraph/ops/sorting.py`."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from tests.opinfo import OpInfo, call, integers, spread


def sorted_values(x: Any, dim: int = -1, descending: bool = False) -> tuple[Any, Any]:
    order = jnp.argsort(x, axis=dim, descending=descending)
    return jnp.take_along_axis(x, order, dim), order


def topk(x: Any, k: int, dim: int = -1, largest: bool = True) -> tuple[Any, Any]:
    values, order = sorted_values(x, dim, largest)
    return jnp.take(values, jnp.arange(k), dim), jnp.take(order, jnp.arange(k), dim)


def kthvalue(x: Any, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Any, Any]:
    values, order = sorted_values(x, dim)
    at = jnp.array([k - 1]) if keepdim else k - 1
    return jnp.take(values, at, dim), jnp.take(order, at, dim)


ROWS: list[OpInfo] = [
    OpInfo(
        "sort",
        [
            call(spread(3, 4)),
            call(spread(3, 4), dim=0, descending=True),
            call(integers(3, 8), descending=True),
        ],
        sorted_values,
        gradient=False,
    ),
    OpInfo("sort", [call(spread(3, 4)), call(spread(3, 4), 0, True)], sorted_values),
    OpInfo("argsort", [call(spread(3, 4), dim=0)], lambda x, dim: jnp.argsort(x, dim), False),
    OpInfo(
        "topk",
        [call(spread(3, 4), 2), call(spread(3, 4), 1, 0), call(spread(5), 3, largest=False)],
        topk,
    ),
    OpInfo("topk", [call(np.array([1, 3, 3, 2], np.int32), 3)], topk, gradient=False),
    OpInfo(
        "kthvalue", [call(spread(3, 4), 2), call(spread(3, 4), 1, dim=0, keepdim=True)], kthvalue
    ),
    OpInfo("msort", [call(spread(3, 2))], lambda x: jnp.sort(x, 0)),
]
