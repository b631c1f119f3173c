"""Scaled dot-product attention, as one node.

16-bit inputs are computed in float32 and cast back.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp

from dyngraph.ops.arguments import widened
from dyngraph.ops.dropouts import check_probability, draw_mask_key, dropped
from dyngraph.ops.operator import define
from dyngraph.tensor import Tensor


def _attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    scale: Any = None,
    dropout_key: Any = None,
    dropout_p: Any = None,
    *,
    is_causal: bool,
    enable_gqa: bool,
) -> Any:
    if not query.dtype == key.dtype == value.dtype:
        raise RuntimeError(
            "Expected query, key, and value to have the same dtype, but got query.dtype: "
            f"{query.dtype} key.dtype: {key.dtype} and value.dtype: {value.dtype} instead."
        )
    if min(query.ndim, key.ndim, value.ndim) < 2:
        raise RuntimeError(
            "Expected query, key, and value to be at least 2 dimensional, got shapes "
            f"{list(query.shape)}, {list(key.shape)}, {list(value.shape)}"
        )
    if query.shape[-1] != key.shape[-1] or key.shape[-2] != value.shape[-2]:
        raise RuntimeError(
            "Expected query (..., L, E), key (..., S, E) and value (..., S, Ev), got shapes "
            f"{list(query.shape)}, {list(key.shape)} and {list(value.shape)}"
        )
    if enable_gqa:
        if query.shape[-3] % key.shape[-3] or query.shape[-3] % value.shape[-3]:
            raise RuntimeError(
                "Expected the number of heads of query to be a multiple of that of key and value, "
                f"got {query.shape[-3]}, {key.shape[-3]} and {value.shape[-3]}"
            )
        key = jnp.repeat(key, query.shape[-3] // key.shape[-3], axis=-3)
        value = jnp.repeat(value, query.shape[-3] // value.shape[-3], axis=-3)
    dtype = query.dtype
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = widened(query) @ widened(key).mT * scale
    if is_causal:
        lower = jnp.tril(jnp.ones(scores.shape[-2:], bool))
        scores = jnp.where(lower, scores, -jnp.inf)
    if attn_mask is not None:
        if attn_mask.dtype == bool:
            scores = jnp.where(attn_mask, scores, -jnp.inf)
        else:
            scores = scores + attn_mask
    # Rows that see nothing get 0, and not the NaN of 0 / 0.
    top = jax.lax.stop_gradient(scores.max(-1, keepdims=True))
    shares = jnp.exp(scores - jnp.where(jnp.isfinite(top), top, 0))
    total = shares.sum(-1, keepdims=True)
    shares = shares / jnp.where(total == 0, 1, total)
    if dropout_key is not None:
        shares = dropped(shares, dropout_key, dropout_p)
    return (shares @ widened(value)).astype(dtype)


# The rule is JAX's: it saves query, key and value, and computes the shares again in backward.
_sdpa = define(
    "scaled_dot_product_attention",
    _attention,
    signature=(
        "query, key, value, attn_mask, scale, dropout_key, dropout_p, is_causal, enable_gqa"
    ),
    scale=None,
    dropout_key=None,
    dropout_p=None,
)


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """`softmax(query @ key.mT * scale + mask) @ value`: (..., L, E), (..., S, E), (..., S, Ev).

    `scale` is 1 / sqrt(E) by default. A boolean `attn_mask` says what may be seen, another is
    added; `is_causal` lets position i see 0 to i; a row that sees nothing gives 0. `enable_gqa`
    repeats the heads of key and value. `dropout_p` applies whenever it is not 0. Vaswani et al.
    2017, https://arxiv.org/abs/1706.03762. Raises RuntimeError where shapes or dtypes do not fit.

    >>> q = dg.ones(1, 2)
    >>> dg.nn.functional.scaled_dot_product_attention(q, q, dg.tensor([[5.0]]))
    tensor([[5.]])
    """
    check_probability(dropout_p)
    if is_causal and attn_mask is not None:
        raise RuntimeError(
            "Explicit attn_mask should not be set when is_causal=True. Pass one of them."
        )
    drawn = draw_mask_key() if dropout_p > 0 else None
    return _sdpa(
        query,
        key,
        value,
        attn_mask,
        scale,
        drawn,
        None if drawn is None else float(dropout_p),
        bool(is_causal),
        bool(enable_gqa),
    )


__all__: list[str] = []  # these are functions of nn.functional
METHODS = ()
