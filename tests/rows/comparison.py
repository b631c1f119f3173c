"""Rows of the operators in `dyngraph/ops/comparison.py`."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from tests.opinfo import OpInfo, binary, booleans, call, integers, unary

ROWS: list[OpInfo] = [
    *(
        binary(name, function, integers(3, 2, 3), integers(3, 2, 3), gradient=False)
        for name, function in {
            "eq": jnp.equal,
            "ne": jnp.not_equal,
            "lt": jnp.less,
            "le": jnp.less_equal,
            "gt": jnp.greater,
            "ge": jnp.greater_equal,
            "logical_and": jnp.logical_and,
            "logical_or": jnp.logical_or,
            "logical_xor": jnp.logical_xor,
            "bitwise_and": jnp.bitwise_and,
            "bitwise_or": jnp.bitwise_or,
            "bitwise_xor": jnp.bitwise_xor,
            "bitwise_left_shift": jnp.left_shift,
            "bitwise_right_shift": jnp.right_shift,
            "isclose": jnp.isclose,
        }.items()
    ),
    *(
        unary(
            name,
            function,
            np.array([[0.0, -1.5, np.nan], [np.inf, -np.inf, 2]], np.float32),
            gradient=False,
        )
        for name, function in {
            "logical_not": jnp.logical_not,
            "isnan": jnp.isnan,
            "isinf": jnp.isinf,
            "isfinite": jnp.isfinite,
            "isposinf": jnp.isposinf,
            "isneginf": jnp.isneginf,
            "isreal": jnp.isreal,
            "signbit": jnp.signbit,
        }.items()
    ),
    unary("bitwise_not", jnp.bitwise_not, integers(5, 3), call(booleans(3)), gradient=False),
]
