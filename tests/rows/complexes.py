"""Rows of the operators in `dyngraph/ops/complexes.py`."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from tests.opinfo import OpInfo, call, complex_normal, normal, positive, unary

DOMAIN = positive(2, 3)
COMPLEX = complex_normal(2, 3)

ROWS: list[OpInfo] = [
    unary("real", jnp.real, COMPLEX, call(normal(2))),
    unary("imag", jnp.imag, COMPLEX),
    unary("conj", jnp.conj, COMPLEX, call(normal(2))),
    unary("angle", jnp.angle, COMPLEX),
    OpInfo(
        "complex",
        [call(normal(2, 3), normal(2, 3))],
        jax.lax.complex,
        no_half="expected both inputs to be float32 or float64",
        broadcasts=True,
    ),
    OpInfo(
        "polar",
        [call(DOMAIN, normal(2, 3))],
        lambda r, t: jax.lax.complex(r * jnp.cos(t), r * jnp.sin(t)),
        no_half="expected both inputs to be float32 or float64",
        broadcasts=True,
    ),
    unary("conj_physical", jnp.conj, COMPLEX),
    unary("resolve_conj", lambda x: x, COMPLEX),
    unary("resolve_neg", lambda x: x, COMPLEX),
    unary("view_as_real", lambda x: jnp.stack([x.real, x.imag], -1), COMPLEX),
    unary(
        "view_as_complex",
        lambda x: jax.lax.complex(x[..., 0], x[..., 1]),
        normal(3, 2),
        no_half="only supported for float32 and float64",
    ),
]
