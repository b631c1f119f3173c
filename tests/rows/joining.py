"""Rows of the operators in `dyngraph/ops/joining.py`."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax.scipy import linalg

from tests.opinfo import OpInfo, call, integers, normal

matrix, cube, vector, scalar = normal(2, 3), normal(2, 3, 4), normal(4), np.array(0.7, np.float32)

ROWS: list[OpInfo] = [
    OpInfo(
        "cat",
        [
            call([matrix, matrix]),
            call([matrix, normal(2, 1), normal(2, 2)], 1),
            call([vector, integers(5, 2)], dim=-1),
            call([vector]),
        ],
        lambda tensors, dim=0: jnp.concatenate(tensors, dim),
    ),
    OpInfo("concat", [call([matrix, matrix], 1)], jnp.concatenate),
    OpInfo("concatenate", [call((matrix, matrix), 1)], jnp.concatenate),
    OpInfo(
        "stack",
        [call([matrix, normal(2, 3)]), call([vector, normal(4), normal(4)], dim=-1)],
        lambda tensors, dim=0: jnp.stack(tensors, dim),
    ),
    OpInfo("hstack", [call([vector, vector]), call([matrix, matrix])], jnp.hstack),
    OpInfo("vstack", [call([vector, vector]), call([matrix, matrix])], jnp.vstack),
    OpInfo("row_stack", [call([vector, vector])], jnp.vstack),
    OpInfo("dstack", [call([vector, vector]), call([matrix, matrix])], jnp.dstack),
    OpInfo("column_stack", [call([normal(2), matrix])], jnp.column_stack),
    OpInfo("block_diag", [call(matrix, vector, scalar)], linalg.block_diag),
    OpInfo(
        "meshgrid",
        [call(vector, normal(2), normal(3)), call([vector, normal(2)], indexing="xy")],
        lambda *v, indexing="ij": jnp.meshgrid(
            *(v[0] if isinstance(v[0], list) else v), indexing=indexing
        ),
    ),
    OpInfo(
        "cartesian_prod",
        [call(vector, normal(2))],
        lambda x, y: jnp.stack([jnp.repeat(x, len(y)), jnp.tile(y, len(x))], 1),
    ),
    OpInfo(
        "combinations",
        [call(normal(4), 2), call(normal(3), 2, with_replacement=True)],
        lambda x, r, with_replacement=False: x[
            np.array(
                [(i, j) for i in range(x.size) for j in range(x.size) if i < j + with_replacement]
            )
        ],
        no_empty="the twin is written for some elements",
    ),
]
