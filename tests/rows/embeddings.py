"""Rows of the operators in `dyngraph/ops/embeddings.py`."""

from __future__ import annotations

import jax
import numpy as np

from tests.opinfo import OpInfo, call, functional, integers, normal

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
]
