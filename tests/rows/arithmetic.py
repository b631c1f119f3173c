"""Rows of the operators in `dyngraph/ops/arithmetic.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from tests.opinfo import (
    OpInfo,
    between,
    binary,
    call,
    complex_normal,
    integers,
    normal,
    positive,
    spread,
    unary,
)


def with_alpha(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, b, alpha=1: function(a, alpha * b)


UNIT = between(-0.9, 0.9, 2, 3)
NO_TIES = spread(2, 3)
COMPLEX = complex_normal(2, 3)

ROWS: list[OpInfo] = [
    binary(
        "add",
        with_alpha(jnp.add),
        normal(2, 3),
        normal(2, 3),
        call(normal(2), 2.5),
        call(normal(2), normal(2), alpha=3),
        call(integers(5, 2), integers(5, 2)),
        call(COMPLEX, COMPLEX),
    ),
    binary(
        "sub",
        with_alpha(jnp.subtract),
        normal(2, 3),
        normal(2, 3),
        call(normal(2), 1),
        call(normal(2), normal(2), alpha=0.5),
    ),
    OpInfo(
        "rsub",
        [call(normal(2), normal(2)), call(normal(2), 1.0)],
        lambda a, b: b - a,
        broadcasts=True,
    ),
    binary(
        "mul",
        jnp.multiply,
        normal(2, 3),
        normal(2, 3),
        call(normal(2), 2.5),
        call(integers(5, 2), normal(2)),
        call(COMPLEX, COMPLEX),
        call(COMPLEX, normal(2, 3)),
    ),
    binary("true_divide", jnp.true_divide, normal(2, 3), positive(2, 3), call(COMPLEX, COMPLEX)),
    OpInfo(
        "div",
        [call(normal(2, 3), positive(3)), call(normal(2), 2), call(integers(9, 3), 2)],
        jnp.true_divide,
        broadcasts=True,
    ),
    binary("floor_divide", jnp.floor_divide, normal(2, 3), positive(2, 3), gradient=False),
    binary("remainder", jnp.remainder, normal(2, 3, scale=3), positive(2, 3), second=False),
    binary("fmod", jnp.fmod, normal(2, 3, scale=3), positive(2, 3), second=False),
    unary("neg", jnp.negative, normal(2, 3), call(COMPLEX), call(integers(5, 2))),
    unary("positive", jnp.positive, normal(2, 3)),
    OpInfo(
        "addcmul",
        [
            call(normal(2, 3), normal(3), normal(2, 1)),
            call(normal(2), normal(2), normal(2), value=0.5),
        ],
        lambda a, b, c, value=1: a + value * b * c,
        broadcasts=True,
    ),
    OpInfo(
        "addcdiv",
        [
            call(normal(2, 3), normal(3), positive(2, 1)),
            call(normal(2), normal(2), positive(2), value=0.5),
        ],
        lambda a, b, c, value=1: a + value * b / c,
        broadcasts=True,
    ),
    OpInfo(
        "lerp",
        [call(normal(2, 3), normal(2, 3), 0.3), call(normal(2, 3), normal(3), UNIT)],
        lambda a, b, w: a + w * (b - a),
        broadcasts=True,
    ),
    unary("abs", jnp.abs, NO_TIES, call(COMPLEX)),
    unary("sign", jnp.sign, NO_TIES, second=False),
    unary("sgn", lambda x: x / jnp.abs(x), NO_TIES, call(COMPLEX)),
    binary("copysign", jnp.copysign, spread(2, 3), spread(2, 3), second=False),
]
