"""Rows of the operators in `dyngraph/ops/attention.py`."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tests.opinfo import OpInfo, call, functional, normal


def attention(
    q: Any, k: Any, v: Any, mask: Any = None, is_causal: bool = False, scale: Any = None
) -> Any:
    scores = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        mask = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    if mask is not None:
        scores = jnp.where(mask, scores, -1e9) if mask.dtype == bool else scores + mask
    return jax.nn.softmax(scores, -1) @ v


ROWS: list[OpInfo] = [
    functional(
        "scaled_dot_product_attention",
        [
            call(normal(2, 3, 4), normal(2, 5, 4), normal(2, 5, 2)),
            call(normal(2, 3, 4), normal(2, 3, 4), normal(2, 3, 2), is_causal=True, scale=0.3),
            call(
                normal(2, 4),
                normal(3, 4),
                normal(3, 4),
                np.array([[True, False, True], [True, True, False]]),
            ),
            call(normal(2, 4), normal(3, 4), normal(3, 4), normal(2, 3)),
        ],
        attention,
    ),
]
