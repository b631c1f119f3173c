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


def multi_head(
    query: Any,
    key: Any,
    value: Any,
    embed: int,
    heads: int,
    weight: Any,
    bias: Any,
    bias_k: Any,
    bias_v: Any,
    add_zero: bool,
    _: float,
    out_weight: Any,
    out_bias: Any,
) -> Any:
    """Head after head, batch after batch."""
    biases = (0, 0, 0) if bias is None else jnp.split(bias, 3)
    parts = zip((query, key, value), jnp.split(weight, 3), biases, strict=True)
    q, k, v = (x @ w.T + b for x, w, b in parts)
    batch, size = query.shape[1], embed // heads
    if bias_k is not None:
        k = jnp.concatenate([k, jnp.broadcast_to(bias_k, (1, batch, embed))])
        v = jnp.concatenate([v, jnp.broadcast_to(bias_v, (1, batch, embed))])
    if add_zero:
        k, v = (jnp.pad(x, [(0, 1), (0, 0), (0, 0)]) for x in (k, v))
    outs, shares = [], []
    for n in range(batch):
        for h in range(heads):
            cut = slice(h * size, (h + 1) * size)
            share = jax.nn.softmax(q[:, n, cut] @ k[:, n, cut].T * size**-0.5, -1)
            shares.append(share)
            outs.append(share @ v[:, n, cut])
    out = jnp.stack([jnp.concatenate(outs[n * heads :][:heads], 1) for n in range(batch)], 1)
    out = out @ out_weight.T + (0 if out_bias is None else out_bias)
    return out, jnp.stack([jnp.stack(shares[n * heads :][:heads]).mean(0) for n in range(batch)])


MHA_INPUTS = (normal(3, 2, 4), normal(2, 2, 4), normal(2, 2, 4))


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
        no_empty="the twin divides by the root of the size 0",
    ),
    functional(
        "multi_head_attention_forward",
        [
            call(
                *MHA_INPUTS,
                4,
                2,
                normal(12, 4),
                normal(12),
                None,
                None,
                False,
                0.0,
                normal(4, 4),
                normal(4),
            ),
            call(
                *MHA_INPUTS,
                4,
                2,
                normal(12, 4),
                None,
                normal(1, 1, 4),
                normal(1, 1, 4),
                True,
                0.0,
                normal(4, 4),
                None,
            ),
        ],
        multi_head,
        second=False,  # slow to compile; all of its parts have rows of their own
        refuses_empty="was expecting embedding dimension of 4",
    ),
]
