"""Rows of the operators in `dyngraph/ops/indexing.py`."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from tests.opinfo import OpInfo, call, normal


def getitem(x: Any, index: Any) -> Any:
    """numpy's indexing, with lists as arrays."""
    items = index if isinstance(index, tuple) else (index,)
    return x[tuple(jnp.asarray(i) if isinstance(i, list) else i for i in items)]


ROWS: list[OpInfo] = [
    OpInfo(
        "__getitem__",
        [
            call(normal(4, 3), 1),
            call(normal(4, 3), (slice(None), -1)),
            call(normal(4, 3), (slice(1, 4, 2), None)),
            call(normal(4, 3), Ellipsis),
            call(normal(4, 3), (slice(3, 1), slice(0, 2))),
            call(normal(4, 3), [0, 0, -1]),
            call(normal(4, 3, 2), ([0, 3], slice(None), [[1], [0]])),
            call(normal(4, 3), (None, slice(None, None, 2), [2, 0])),
        ],
        getitem,
    ),
    OpInfo(
        "index_put",
        [
            call(normal(4, 2), (np.array([3, 0], np.int32),), normal(2, 2)),
            call(normal(4, 2), (np.array([3, 3], np.int32),), normal(2), accumulate=True),
            call(normal(4, 2), (None, np.array([1], np.int32)), normal(4, 1)),
        ],
        lambda x, indices, values, accumulate=False: (
            x.at[tuple(slice(None) if i is None else i for i in indices)].add(values)
            if accumulate
            else x.at[tuple(slice(None) if i is None else i for i in indices)].set(values)
        ),
        refuses_empty="out of bounds for dimension . with size 0",
    ),
]
