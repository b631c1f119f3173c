"""Rows of the operators in `dyngraph/ops/embeddings.py`."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tests.opinfo import OpInfo, call, functional, integers, normal


def bags(
    index: Any,
    weight: Any,
    offsets: Any = None,
    max_norm: None = None,
    norm_type: float = 2.0,
    by_frequency: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    weights: Any = None,
) -> Any:
    """One bag after the other."""
    rows = weight[index]
    if offsets is None:
        return rows.mean(1)
    rows = rows if weights is None else rows * weights[:, None]
    ends = [*np.asarray(offsets).tolist(), len(index)]
    pieces = [rows[a:b] for a, b in itertools.pairwise(ends)]
    fold = getattr(jnp, mode)
    return jnp.stack([fold(p, axis=0) if len(p) else jnp.zeros_like(weight[0]) for p in pieces])


ROWS: list[OpInfo] = [
    functional(
        "embedding",
        [call(integers(4, 2, 3), normal(4, 2))],
        lambda index, weight: weight[index],
    ),
    functional(
        "one_hot",
        [call(integers(4, 2, 3), 5)],
        lambda x, n: jax.nn.one_hot(x, n, dtype=np.int32),
        gradient=False,
    ),
    functional(
        "embedding_bag",
        [
            call(integers(4, 3, 2), normal(4, 2)),
            call(
                np.array([0, 2, 1, 1], np.int32),
                normal(4, 2),
                np.array([0, 3, 3], np.int32),
                None,
                2.0,
                False,
                "max",
            ),
            call(
                np.array([0, 2, 1, 2], np.int32),
                normal(4, 2),
                np.array([0, 3], np.int32),
                None,
                2.0,
                False,
                "sum",
                False,
                normal(4),
            ),
        ],
        bags,
    ),
]
