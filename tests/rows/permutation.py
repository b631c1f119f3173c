"""Rows of the operators in `dyngraph/ops/permutation.py`."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from tests.opinfo import OpInfo, call, complex_normal, normal
from tests.references import varargs

matrix, cube, vector, scalar = normal(2, 3), normal(2, 3, 4), normal(4), np.array(0.7, np.float32)

ROWS: list[OpInfo] = [
    OpInfo("transpose", [call(cube, 0, -1), call(complex_normal(2, 3), 0, 1)], jnp.swapaxes),
    OpInfo("swapaxes", [call(cube, 0, 1)], jnp.swapaxes),
    OpInfo("swapdims", [call(cube, 0, 1)], jnp.swapaxes),
    OpInfo("permute", [call(cube, 2, 0, 1), call(cube, (1, -1, 0))], varargs(jnp.transpose)),
    OpInfo("movedim", [call(cube, 0, -1), call(cube, (0, 1), (2, 0))], jnp.moveaxis),
    OpInfo("moveaxis", [call(cube, 0, 1)], jnp.moveaxis),
    OpInfo("t", [call(matrix), call(vector)], jnp.transpose),
    OpInfo("T", [call(matrix), call(cube)], jnp.transpose),
    OpInfo("mT", [call(cube)], lambda x: jnp.swapaxes(x, -1, -2)),
    OpInfo("H", [call(complex_normal(2, 3))], lambda x: jnp.conj(x.T)),
    OpInfo(
        "mH", [call(cube), call(complex_normal(2, 3))], lambda x: jnp.conj(jnp.swapaxes(x, -1, -2))
    ),
    OpInfo("adjoint", [call(complex_normal(2, 3))], lambda x: jnp.conj(x.T)),
    OpInfo("flip", [call(cube, 0, 2), call(cube, [1])], varargs(jnp.flip)),
    OpInfo("fliplr", [call(matrix)], jnp.fliplr),
    OpInfo("flipud", [call(matrix)], jnp.flipud),
    OpInfo("roll", [call(matrix, 2), call(matrix, (1, -1), (0, 1)), call(cube, 1, 2)], jnp.roll),
    OpInfo("rot90", [call(matrix), call(cube, 3, (1, 2)), call(matrix, -2)], jnp.rot90),
]
