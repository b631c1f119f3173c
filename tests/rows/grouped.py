"""Rows of the operators in `dyngraph/ops/grouped.py`."""

from __future__ import annotations

import itertools
from typing import Any

import jax.numpy as jnp
import numpy as np

from tests.opinfo import OpInfo, call, functional, normal


def grouped(a: Any, b: Any, offs: Any = None) -> Any:
    """One group after the other."""
    if offs is None:
        return a @ b
    groups = [slice(*pair) for pair in itertools.pairwise([0, *offs])]
    if b.ndim == 3:
        return jnp.concatenate([a[g] @ b[i] for i, g in enumerate(groups)])
    if a.ndim == 3:
        return jnp.concatenate([a[i] @ b[:, g] for i, g in enumerate(groups)], 1)
    return jnp.stack([a[:, g] @ b[g] for g in groups])


ENDS = np.array([1, 1, 4], np.int32)
NO_EMPTY = "the twin's groups are not there"

ROWS: list[OpInfo] = [
    functional(
        "grouped_mm",
        [
            call(normal(4, 2), normal(3, 2, 3), offs=ENDS),
            call(normal(3, 2, 2), normal(2, 4), offs=ENDS),
            call(normal(2, 4), normal(4, 3), offs=ENDS),
            call(normal(2, 2, 3), normal(2, 3, 2)),
        ],
        grouped,
        no_empty=NO_EMPTY,
    ),
]
