"""Rows of the operators in `dyngraph/ops/contractions.py`."""

from __future__ import annotations

import jax.numpy as jnp

from tests.opinfo import OpInfo, call, complex_normal, normal

ROWS: list[OpInfo] = [
    OpInfo(
        "einsum",
        [
            call("ij,jk->ik", normal(2, 3), normal(3, 4)),
            call("bij, bjk", normal(2, 3, 4), normal(2, 4, 2)),
            call("ii->i", normal(3, 3)),
            call("...ij,...j->...i", normal(2, 3, 4), normal(2, 4)),
            call("i,j,k->kij", [normal(2), normal(3), normal(4)]),
            call("ij,kj->i", complex_normal(2, 3), complex_normal(4, 3)),
        ],
        lambda equation, *operands: jnp.einsum(
            equation, *(operands[0] if isinstance(operands[0], list) else operands)
        ),
    ),
    OpInfo(
        "tensordot",
        [
            call(normal(2, 3, 4), normal(3, 4, 5)),
            call(normal(2, 3), normal(4, 5), dims=0),
            call(normal(2, 3, 4), normal(4, 2, 5), dims=([0, 2], [1, 0])),
        ],
        lambda a, b, dims=2: jnp.tensordot(a, b, dims),
    ),
    OpInfo("kron", [call(normal(2, 3), normal(2, 1)), call(normal(2), normal(2, 2))], jnp.kron),
    OpInfo(
        "cross",
        [call(normal(2, 3), normal(1, 3), dim=-1), call(normal(3, 2), normal(3, 2))],
        lambda a, b, dim=0: jnp.cross(a, b + 0 * a, axis=dim),
        broadcasts=True,
    ),
    OpInfo(
        "tensordot",  # a dim of size 1 broadcasts
        [call(normal(1, 3, 2), normal(3, 4, 5), dims=([0, 1], [1, 0]))],
        lambda a, b, dims: a[0].T @ b.sum(1),
    ),
]
