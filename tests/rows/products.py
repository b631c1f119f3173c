"""Rows of the operators in `dyngraph/ops/products.py`."""

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
            call(normal(2, 3, 0), normal(0, 2)),
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
    OpInfo("ger", [call(normal(2), normal(3))], jnp.outer),
]
