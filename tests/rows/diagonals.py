"""Rows of the operators in `dyngraph/ops/diagonals.py`."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from tests.opinfo import OpInfo, call, normal


def embedded(x: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    length = x.shape[-1] + abs(offset)
    place = jnp.eye(length, k=offset, dtype=x.dtype)[max(-offset, 0) :][
        : x.shape[-1]
    ]  # row i has a 1 at its column
    rows = jnp.eye(length, dtype=x.dtype)[max(-offset, 0) :][: x.shape[-1]]
    matrices = jnp.einsum("...i,ij,ik->...jk", x, rows, place)
    return jnp.moveaxis(matrices, (-2, -1), (dim1, dim2))


matrix, cube, vector, scalar = normal(2, 3), normal(2, 3, 4), normal(4), np.array(0.7, np.float32)

ROWS: list[OpInfo] = [
    OpInfo("trace", [call(normal(2, 3))], jnp.trace),
    OpInfo("tril", [call(matrix), call(cube, -1)], jnp.tril),
    OpInfo(
        "triu", [call(matrix), call(cube, diagonal=1)], lambda x, diagonal=0: jnp.triu(x, diagonal)
    ),
    OpInfo("diag", [call(vector, 1), call(matrix, -1)], jnp.diag),
    OpInfo("diagflat", [call(matrix, 1)], jnp.diagflat),
    OpInfo(
        "diagonal",
        [call(matrix), call(cube, 1, 0, 2), call(cube, -1, dim1=2, dim2=1)],
        lambda x, offset=0, dim1=0, dim2=1: jnp.diagonal(x, offset, dim1, dim2),
    ),
    OpInfo(
        "diag_embed",
        [call(matrix), call(vector, -1), call(matrix, 1, 0, 2), call(matrix, 1, 2, 0)],
        embedded,
    ),
]
