"""Rows of the operators in `dyngraph/ops/repetition.py`."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from tests.opinfo import OpInfo, call, integers, normal
from tests.references import varargs


def expanded(x: Any, sizes: Any) -> Any:
    own = (1,) * (len(sizes) - x.ndim) + x.shape
    return jnp.broadcast_to(x, [m if n == -1 else n for m, n in zip(own, sizes, strict=True)])


matrix, cube, vector, scalar = normal(2, 3), normal(2, 3, 4), normal(4), np.array(0.7, np.float32)

ROWS: list[OpInfo] = [
    OpInfo(
        "expand",
        [call(normal(2, 1), 2, 3), call(normal(2, 1), (4, -1, 3)), call(scalar, 2)],
        varargs(expanded),
    ),
    OpInfo(
        "expand_as",
        [call(normal(1, 3), integers(2, 2, 3))],
        lambda x, y: jnp.broadcast_to(x, y.shape),
    ),
    OpInfo("broadcast_to", [call(normal(1, 3), (2, 2, 3))], jnp.broadcast_to),
    OpInfo("broadcast_tensors", [call(normal(2, 1), normal(3))], jnp.broadcast_arrays),
    OpInfo("repeat", [call(matrix, 2, 1), call(matrix, (2, 3, 2))], varargs(jnp.tile)),
    OpInfo("tile", [call(matrix, 2), call(vector, (2, 2))], varargs(jnp.tile)),
    OpInfo(
        "repeat_interleave",
        [
            call(matrix, 2),
            call(matrix, 3, 0),
            call(matrix, 2, dim=-1),
            call(vector, np.array([2, 0, 1, 3])),
            call(matrix, np.array([1, 2]), 0),
        ],
        lambda x, n, dim=None: jnp.repeat(x, n if isinstance(n, int) else np.asarray(n), dim),
    ),
]
