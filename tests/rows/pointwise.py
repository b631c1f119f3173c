"""Rows of the operators that work element by element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy import special

from tests.opinfo import (
    OpInfo,
    Sample,
    between,
    booleans,
    call,
    complex_normal,
    integers,
    normal,
    positive,
    spread,
)


def unary(
    name: str, reference: Callable[..., Any], values: np.ndarray, *more: Sample, **options: Any
) -> OpInfo:
    return OpInfo(name, [call(values), *more], reference, **options)


def binary(
    name: str,
    reference: Callable[..., Any],
    a: np.ndarray,
    b: np.ndarray,
    *more: Sample,
    **options: Any,
) -> OpInfo:
    """A row whose samples are equal shapes, and a broadcast in either direction."""
    return OpInfo(name, [call(a, b), call(a, b[:1]), call(a[0], b), *more], reference, **options)


def scaled(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, b, alpha=1: function(a, alpha * b)


def clip(x: Any, min: Any = None, max: Any = None) -> Any:
    return jnp.minimum(
        jnp.maximum(x, -jnp.inf if min is None else min), jnp.inf if max is None else max
    )


DOMAIN = positive(2, 3)
UNIT = between(-0.9, 0.9, 2, 3)
NO_TIES = spread(2, 3)
COMPLEX = complex_normal(2, 3)

ROWS: list[OpInfo] = [
    binary(
        "add",
        scaled(jnp.add),
        normal(2, 3),
        normal(2, 3),
        call(normal(2), 2.5),
        call(normal(2), normal(2), alpha=3),
        call(integers(5, 2), integers(5, 2)),
        call(COMPLEX, COMPLEX),
    ),
    binary(
        "sub",
        scaled(jnp.subtract),
        normal(2, 3),
        normal(2, 3),
        call(normal(2), 1),
        call(normal(2), normal(2), alpha=0.5),
    ),
    OpInfo("rsub", [call(normal(2), normal(2)), call(normal(2), 1.0)], lambda a, b: b - a),
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
    ),
    binary("floor_divide", jnp.floor_divide, normal(2, 3), positive(2, 3), gradient=False),
    binary("remainder", jnp.remainder, normal(2, 3, scale=3), positive(2, 3), second=False),
    binary("fmod", jnp.fmod, normal(2, 3, scale=3), positive(2, 3), second=False),
    OpInfo(
        "pow",
        [
            call(positive(2, 3), normal(2, 3)),
            call(positive(2, 3), normal(3)),
            call(normal(2, 3), 2),
            call(normal(2, 3), 3.0),
            call(positive(3), -1),
            call(positive(3), 0.5),
            call(2.0, normal(3)),
            call(integers(4, 3), 2),
        ],
        jnp.power,
    ),
    OpInfo("float_power", [call(positive(3), normal(3))], jnp.float_power),
    unary("neg", jnp.negative, normal(2, 3), call(COMPLEX), call(integers(5, 2))),
    unary("positive", jnp.positive, normal(2, 3)),
    unary("reciprocal", lambda x: 1 / x, DOMAIN, call(COMPLEX)),
    unary("square", jnp.square, normal(2, 3), call(COMPLEX), call(integers(5, 2))),
    OpInfo(
        "addcmul",
        [
            call(normal(2, 3), normal(3), normal(2, 1)),
            call(normal(2), normal(2), normal(2), value=0.5),
        ],
        lambda a, b, c, value=1: a + value * b * c,
    ),
    OpInfo(
        "addcdiv",
        [
            call(normal(2, 3), normal(3), positive(2, 1)),
            call(normal(2), normal(2), positive(2), value=0.5),
        ],
        lambda a, b, c, value=1: a + value * b / c,
    ),
    OpInfo(
        "lerp",
        [call(normal(2, 3), normal(2, 3), 0.3), call(normal(2, 3), normal(3), UNIT)],
        lambda a, b, w: a + w * (b - a),
    ),
    unary("exp", jnp.exp, normal(2, 3), call(COMPLEX), call(integers(3, 2))),
    unary("exp2", jnp.exp2, normal(2, 3)),
    unary("expm1", jnp.expm1, normal(2, 3)),
    unary("log", jnp.log, DOMAIN, call(COMPLEX)),
    unary("log2", jnp.log2, DOMAIN),
    unary("log10", jnp.log10, DOMAIN),
    unary("log1p", jnp.log1p, DOMAIN),
    unary("sqrt", jnp.sqrt, DOMAIN, call(COMPLEX)),
    unary("rsqrt", jax.lax.rsqrt, DOMAIN),
    unary("abs", jnp.abs, NO_TIES, call(COMPLEX)),
    unary("sin", jnp.sin, normal(2, 3), call(COMPLEX)),
    unary("cos", jnp.cos, normal(2, 3), call(COMPLEX)),
    unary("tan", jnp.tan, UNIT),
    unary("asin", jnp.arcsin, UNIT),
    unary("acos", jnp.arccos, UNIT),
    unary("atan", jnp.arctan, normal(2, 3)),
    binary("atan2", jnp.arctan2, normal(2, 3), positive(2, 3)),
    unary("sinh", jnp.sinh, normal(2, 3)),
    unary("cosh", jnp.cosh, normal(2, 3)),
    unary("tanh", jnp.tanh, normal(2, 3), call(COMPLEX)),
    unary("asinh", jnp.arcsinh, normal(2, 3)),
    unary("acosh", jnp.arccosh, 1 + DOMAIN),
    unary("atanh", jnp.arctanh, UNIT),
    unary("erf", special.erf, normal(2, 3)),
    unary("erfc", special.erfc, normal(2, 3)),
    unary("erfinv", special.erfinv, UNIT, rtol=1e-3),
    unary("lgamma", special.gammaln, DOMAIN),
    unary("digamma", special.digamma, DOMAIN),
    unary("sinc", jnp.sinc, NO_TIES),
    unary("logit", special.logit, between(0.1, 0.9, 2, 3)),
    unary("deg2rad", jnp.deg2rad, normal(2, 3)),
    unary("rad2deg", jnp.rad2deg, normal(2, 3)),
    unary("floor", jnp.floor, normal(2, 3), second=False),  # the second derivative is zero too
    unary("ceil", jnp.ceil, normal(2, 3), second=False),
    unary("round", jnp.round, normal(2, 3), second=False),
    unary("trunc", jnp.trunc, normal(2, 3), second=False),
    unary("frac", lambda x: x - jnp.trunc(x), normal(2, 3)),
    unary("sign", jnp.sign, NO_TIES, second=False),
    unary("sgn", lambda x: x / jnp.abs(x), NO_TIES, call(COMPLEX)),
    unary("real", jnp.real, COMPLEX, call(normal(2))),
    unary("imag", jnp.imag, COMPLEX),
    unary("conj", jnp.conj, COMPLEX, call(normal(2))),
    unary("angle", jnp.angle, COMPLEX),
    OpInfo("complex", [call(normal(2, 3), normal(2, 3))], jax.lax.complex),
    OpInfo(
        "polar",
        [call(DOMAIN, normal(2, 3))],
        lambda r, t: jax.lax.complex(r * jnp.cos(t), r * jnp.sin(t)),
    ),
    binary("maximum", jnp.maximum, spread(2, 3), spread(2, 3) + 0.05),
    binary("minimum", jnp.minimum, spread(2, 3), spread(2, 3) + 0.05),
    binary("fmax", jnp.fmax, spread(2, 3), spread(2, 3) + 0.05),
    binary("fmin", jnp.fmin, spread(2, 3), spread(2, 3) + 0.05),
    OpInfo(
        "clamp",
        [
            call(NO_TIES, -0.2, 0.2),
            call(NO_TIES, min=0.1),
            call(NO_TIES, max=0.1),
            call(NO_TIES, between(-0.3, -0.1, 3), between(0.1, 0.3, 2, 1)),
        ],
        clip,
    ),
    OpInfo("clamp_min", [call(NO_TIES, 0.1)], jnp.maximum),
    OpInfo("clamp_max", [call(NO_TIES, 0.1)], jnp.minimum),
    OpInfo(
        "where",
        [
            call(booleans(2, 3), normal(2, 3), normal(3)),
            call(booleans(2, 3), normal(2, 3), 0.0),
            call(booleans(2, 1), 1.5, normal(3)),
        ],
        jnp.where,
    ),
    unary("nan_to_num", jnp.nan_to_num, normal(2, 3)),
    binary("copysign", jnp.copysign, spread(2, 3), spread(2, 3), second=False),
    binary("hypot", jnp.hypot, positive(2, 3), positive(2, 3)),
    binary("logaddexp", jnp.logaddexp, normal(2, 3), normal(2, 3)),
    binary("logaddexp2", jnp.logaddexp2, normal(2, 3), normal(2, 3)),
    binary("xlogy", special.xlogy, normal(2, 3), positive(2, 3)),
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
    unary("relu", jax.nn.relu, NO_TIES),
    unary("nn.functional.relu6", jax.nn.relu6, 10 * NO_TIES),
    unary("sigmoid", jax.nn.sigmoid, normal(2, 3)),
    unary("nn.functional.logsigmoid", jax.nn.log_sigmoid, normal(2, 3)),
    OpInfo(
        "nn.functional.softplus",
        [call(normal(2, 3)), call(normal(3), beta=2, threshold=1)],
        lambda x, beta=1, threshold=20: jnp.where(
            beta * x > threshold, x, jnp.log1p(jnp.exp(beta * x)) / beta
        ),
    ),
    unary("nn.functional.silu", jax.nn.silu, normal(2, 3)),
    unary("nn.functional.mish", jax.nn.mish, normal(2, 3)),
    OpInfo(
        "nn.functional.gelu",
        [call(normal(2, 3)), call(normal(2, 3), approximate="tanh")],
        lambda x, approximate="none": jax.nn.gelu(x, approximate=approximate == "tanh"),
    ),
    OpInfo(
        "nn.functional.leaky_relu",
        [call(NO_TIES), call(NO_TIES, 0.2)],
        lambda x, slope=0.01: jnp.where(x > 0, x, slope * x),
    ),
    OpInfo("nn.functional.elu", [call(NO_TIES), call(NO_TIES, 0.5)], jax.nn.elu),
    OpInfo("nn.functional.celu", [call(NO_TIES), call(NO_TIES, 0.5)], jax.nn.celu),
    unary("nn.functional.selu", jax.nn.selu, NO_TIES),
    OpInfo(
        "nn.functional.hardtanh",
        [call(NO_TIES), call(NO_TIES, -0.1, 0.2)],
        lambda x, low=-1.0, high=1.0: clip(x, low, high),
    ),
    unary("nn.functional.hardsigmoid", jax.nn.hard_sigmoid, 10 * NO_TIES, second=False),
    unary("nn.functional.hardswish", jax.nn.hard_swish, 10 * NO_TIES),
    unary("nn.functional.softsign", jax.nn.soft_sign, NO_TIES),
    unary("nn.functional.tanhshrink", lambda x: x - jnp.tanh(x), normal(2, 3)),
    OpInfo(
        "nn.functional.softshrink",
        [call(NO_TIES, 0.2)],
        lambda x, lambd: jnp.sign(x) * jnp.maximum(jnp.abs(x) - lambd, 0),
    ),
    OpInfo(
        "nn.functional.hardshrink",
        [call(NO_TIES, 0.2)],
        lambda x, lambd: jnp.where(jnp.abs(x) > lambd, x, 0),
    ),
]
