"""Rows of products."""

from __future__ import annotations

import jax.numpy as jnp

from tests.opinfo import OpInfo, call, complex_normal, integers, normal

ROWS: list[OpInfo] = [
    OpInfo(
        "matmul",
        [
            call(normal(2, 3), normal(3, 4)),
            call(normal(3), normal(3)),
            call(normal(2, 3), normal(3)),
            call(normal(3), normal(3, 4)),
            call(normal(5, 2, 3), normal(3, 4)),
            call(normal(4, 1, 2, 3), normal(5, 3, 4)),
            call(normal(5, 2, 3), normal(3)),
            call(normal(3), normal(5, 3, 4)),
            call(complex_normal(5, 2, 3), complex_normal(3, 4)),
            call(complex_normal(3), complex_normal(2, 3, 4)),
        ],
        jnp.matmul,
    ),
    OpInfo("matmul", [call(integers(5, 2, 3), integers(5, 3, 2))], jnp.matmul, gradient=False),
    OpInfo(
        "mm",
        [call(normal(2, 3), normal(3, 4)), call(complex_normal(2, 3), complex_normal(3, 4))],
        jnp.matmul,
    ),
    OpInfo("bmm", [call(normal(5, 2, 3), normal(5, 3, 4))], jnp.matmul),
    OpInfo("mv", [call(complex_normal(2, 3), complex_normal(3))], jnp.matmul),
    OpInfo(
        "dot", [call(normal(3), normal(3)), call(complex_normal(3), complex_normal(3))], jnp.dot
    ),
    OpInfo("vdot", [call(complex_normal(3), complex_normal(3))], jnp.vdot),
    OpInfo("inner", [call(normal(2, 3), normal(4, 3)), call(normal(2, 3), normal())], jnp.inner),
    OpInfo(
        "outer",
        [call(normal(2), normal(3)), call(complex_normal(2), complex_normal(3))],
        jnp.outer,
    ),
    OpInfo(
        "addmm",
        [
            call(normal(4), normal(2, 3), normal(3, 4)),
            call(normal(2, 1), normal(2, 3), normal(3, 4), beta=0.5, alpha=2.0),
        ],
        lambda x, a, b, beta=1, alpha=1: beta * x + alpha * (a @ b),
    ),
    OpInfo(
        "addmv",
        [call(normal(2), normal(2, 3), normal(3), alpha=2)],
        lambda x, a, b, alpha: x + alpha * (a @ b),
    ),
    OpInfo(
        "baddbmm",
        [call(normal(2, 1), normal(5, 2, 3), normal(5, 3, 4))],
        lambda x, a, b: x + a @ b,
    ),
    OpInfo(
        "addbmm",
        [call(normal(2, 4), normal(5, 2, 3), normal(5, 3, 4), beta=0.5)],
        lambda x, a, b, beta: beta * x + (a @ b).sum(0),
    ),
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
    OpInfo("trace", [call(normal(2, 3))], jnp.trace),
    OpInfo(
        "cross",
        [call(normal(2, 3), normal(1, 3), dim=-1), call(normal(3, 2), normal(3, 2))],
        lambda a, b, dim=0: jnp.cross(a, b + 0 * a, axis=dim),
    ),
]
