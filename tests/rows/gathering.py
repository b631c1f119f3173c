"""Rows of the operators in `dyngraph/ops/gathering.py`."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from tests.opinfo import OpInfo, call, integers, normal
from tests.references import grid_along

ROWS: list[OpInfo] = [
    OpInfo(
        "gather",
        [
            call(normal(3, 4), 1, integers(4, 2, 5)),
            call(normal(3, 4, 2), -3, integers(3, 4, 2, 2)),
        ],
        lambda x, dim, index: x[grid_along(index, dim)],
    ),
    OpInfo(
        "take",
        [call(normal(2, 3), np.array([[0, -1], [0, 4]], np.int32))],
        lambda x, index: x.reshape(-1)[index],
    ),
    OpInfo(
        "take_along_dim",
        [
            call(normal(3, 4), integers(4, 1, 2), dim=1),
            call(normal(1, 4), integers(1, 3, 4), dim=-2),
            call(normal(2, 3), integers(6, 2, 2)),
        ],
        lambda x, index, dim=None: (
            x.reshape(-1)[index.reshape(-1)]
            if dim is None
            else jnp.take_along_axis(
                jnp.broadcast_to(x, (x.shape[0], 4) if dim == 1 else (1, 4)),
                jnp.broadcast_to(index, (3, index.shape[1])),
                dim,
            )
        ),
        no_empty="the twin reshapes to a size that it divides out",
    ),
]
