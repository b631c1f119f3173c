"""Rows of the operators in `dyngraph/ops/shape.py`."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from tests.opinfo import OpInfo, call, integers, normal
from tests.references import varargs


def squeezed(x: Any, dim: Any = None) -> Any:
    dims = range(x.ndim) if dim is None else dim if isinstance(dim, tuple) else (dim,)
    return jnp.squeeze(x, tuple(d for d in dims if x.shape[d] == 1))


def flattened(x: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    end = end_dim % x.ndim + 1
    return x.reshape((*x.shape[:start_dim], -1, *x.shape[end:]))


matrix, cube, vector, scalar = normal(2, 3), normal(2, 3, 4), normal(4), np.array(0.7, np.float32)

ROWS: list[OpInfo] = [
    OpInfo(
        "reshape",
        [call(matrix, 3, 2), call(cube, (-1, 4)), call(normal(1), ()), call(integers(9, 6), -1)],
        varargs(jnp.reshape),
    ),
    OpInfo("view", [call(matrix, 3, 2), call(cube, [4, -1])], varargs(jnp.reshape)),
    OpInfo("view_as", [call(matrix, integers(2, 6))], lambda x, y: x.reshape(y.shape)),
    OpInfo("reshape_as", [call(matrix, integers(2, 6))], lambda x, y: x.reshape(y.shape)),
    OpInfo("flatten", [call(cube), call(cube, 1), call(cube, 0, 1)], flattened),
    OpInfo("ravel", [call(cube)], jnp.ravel),
    OpInfo(
        "unflatten",
        [call(normal(2, 6), 1, (3, -1)), call(normal(6), -1, [2, 3])],
        lambda x, dim, sizes: x.reshape((*x.shape[: dim % x.ndim], *sizes)),
        no_empty="the twin reshapes to a size that it divides out",
    ),
    OpInfo(
        "squeeze",
        [call(normal(1, 2, 1)), call(normal(1, 2, 1), -1), call(normal(1, 2, 1), dim=(0, 1))],
        squeezed,
    ),
    OpInfo(
        "unsqueeze", [call(matrix, 0), call(matrix, dim=-1)], lambda x, dim: jnp.expand_dims(x, dim)
    ),
    OpInfo("atleast_1d", [call(scalar), call(matrix)], jnp.atleast_1d),
    OpInfo("atleast_2d", [call(scalar, vector)], jnp.atleast_2d),
    OpInfo(
        "atleast_3d",
        [call(scalar), call(vector), call(matrix)],
        jnp.atleast_3d,
    ),
    OpInfo("clone", [call(matrix), call(integers(4, 2))], lambda x: x),
    OpInfo("contiguous", [call(matrix)], lambda x: x, gradient=False),
]
