"""Attention: scaled dot products as one node, and the many-headed layer around them.

16-bit inputs are computed in float32 and cast back.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from dyngraph.ops.affine import linear
from dyngraph.ops.arguments import is_inexact, widened
from dyngraph.ops.arithmetic import add, mul
from dyngraph.ops.dropouts import check_probability, draw_mask_key, dropout, dropped
from dyngraph.ops.host_values import array_of, described
from dyngraph.ops.joining import cat
from dyngraph.ops.operator import define
from dyngraph.ops.padding import pad
from dyngraph.ops.parts import chunk
from dyngraph.ops.permutation import transpose
from dyngraph.ops.products import bmm
from dyngraph.ops.reduction import mean
from dyngraph.ops.repetition import expand
from dyngraph.ops.shape import reshape
from dyngraph.ops.softmaxes import softmax
from dyngraph.storage import cell_of
from dyngraph.tensor import Tensor, new_tensor


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
    # without any element of a query the scores are 0, whatever scales them
    scale = 1 / math.sqrt(max(query.shape[-1], 1)) if scale is None else scale
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


def _added_mask(where: str, mask: Tensor | None, dtype: Any) -> Tensor | None:
    """A mask that is added to scores: True in a boolean one means -inf."""
    if mask is None:
        return None
    array = array_of(mask)
    if array.dtype == bool:
        return _forbidding(mask, dtype)
    if not is_inexact(array):
        raise AssertionError(
            f"only bool and floating types of {where} are supported, got {array.dtype}"
        )
    return mask


_forbidding = define(
    "forbidding",
    lambda mask, *, dtype: jnp.where(mask, -jnp.inf, 0).astype(dtype),
    signature="mask, dtype",
    differentiable=False,
)


def _projections(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    together: Tensor | None,
    apart: Sequence[Tensor | None],
    bias: Tensor | None,
    use_separate: bool,
) -> list[Tensor]:
    """Query, key and value by their weights, which may be the thirds of one."""
    biases = [None] * 3 if bias is None else chunk(bias, 3)
    if use_separate:
        if any(weight is None for weight in apart):
            raise AssertionError(
                "use_separate_proj_weight is True but q_proj_weight, k_proj_weight or "
                "v_proj_weight is None"
            )
        weights: Any = apart
    elif together is None:
        raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
    elif query is key is value:
        return list(chunk(linear(query, together, bias), 3, -1))
    else:
        weights = chunk(together, 3)
    inputs = (query, key, value)
    return [linear(x, w, b) for x, w, b in zip(inputs, weights, biases, strict=True)]


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Projections, attention in `num_heads` parts of the last dim, and a projection of the result.

    Inputs are (length, batch, embed) or (length, embed). Returns the result and, with
    `need_weights`, the shares (batch, length, source), averaged over heads or not. True in a mask
    forbids; other masks are added. `static_k` and `static_v`, (batch * heads, source, embed /
    heads), stand for projected keys and values. Vaswani et al. 2017,
    https://arxiv.org/abs/1706.03762, section 3.2.2. Raises AssertionError and RuntimeError where
    shapes do not fit.

    >>> x, eye = dg.ones(3, 2), dg.eye(2)
    >>> out, shares = dg.nn.functional.multi_head_attention_forward(
    ...     x, x, x, 2, 1, dg.ones(6, 2), None, None, None, False, 0.0, eye, None
    ... )
    >>> out[0], shares.shape
    (tensor([2., 2.]), dyngraph.Size([3, 3]))
    """
    batched = described(query).ndim == 3
    shapes = [described(t).shape for t in (query, key, value)]
    if len({len(s) for s in shapes}) > 1 or len(shapes[0]) not in (2, 3):
        raise AssertionError(
            "query, key and value should all be unbatched 2D or batched 3D tensors, got shapes "
            f"{[list(s) for s in shapes]}"
        )
    if not batched:
        whole = query is key is value
        query = reshape(query, (shapes[0][0], 1, shapes[0][1]))
        key = query if whole else reshape(key, (shapes[1][0], 1, shapes[1][1]))
        value = query if whole else reshape(value, (shapes[2][0], 1, shapes[2][1]))
    length, batch, embed = described(query).shape
    source = described(key).shape[0]
    dtype = described(query).dtype
    if embed != embed_dim_to_check or embed % num_heads:
        raise AssertionError(
            f"was expecting embedding dimension of {embed_dim_to_check}, divisible by num_heads "
            f"{num_heads}, but got {embed}"
        )
    if not use_separate_proj_weight and shapes[1] != shapes[2]:
        raise AssertionError(
            f"key shape {list(shapes[1])} does not match value shape {list(shapes[2])}"
        )
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint: a mask with True above the diagonal."
        )
    size, rows = embed // num_heads, batch * num_heads
    mask = _added_mask("attn_mask", attn_mask, dtype)
    if mask is not None:
        shape = described(mask).shape
        if shape not in ((length, source), (rows, length, source)):
            raise RuntimeError(
                f"The shape of the attn_mask is {list(shape)}, but should be {[length, source]} or "
                f"{[rows, length, source]}."
            )
    padding = _added_mask("key_padding_mask", key_padding_mask, dtype)
    projected = _projections(
        query,
        key,
        value,
        in_proj_weight,
        (q_proj_weight, k_proj_weight, v_proj_weight),
        in_proj_bias,
        use_separate_proj_weight,
    )
    added = 0
    if (bias_k is None) != (bias_v is None):
        raise AssertionError("bias_k and bias_v are given together or not at all")
    if bias_k is not None and bias_v is not None:
        if static_k is not None or static_v is not None:
            raise AssertionError("bias cannot be added to static key or value.")
        for i, bias in ((1, bias_k), (2, bias_v)):
            row = expand(reshape(bias, (1, 1, embed)), (1, batch, embed))
            projected[i] = cat([projected[i], row])
        added += 1
    heads = [transpose(reshape(t, (-1, rows, size)), 0, 1) for t in projected]
    for i, given in ((1, static_k), (2, static_v)):
        if given is not None:
            shape = described(given).shape
            if (shape[0], shape[2]) != (rows, size):
                raise AssertionError(
                    f"expecting static keys and values of shape [{rows}, source, {size}], got "
                    f"{list(shape)}"
                )
            heads[i] = given
    if add_zero_attn:
        zeros = new_tensor(cell_of(jnp.zeros((rows, 1, size), dtype)))
        heads[1:] = [cat([t, zeros], 1) for t in heads[1:]]
        added += 1
    if added and mask is not None:
        mask = pad(mask, (0, added))
    if added and padding is not None:
        padding = pad(padding, (0, added))
    source = described(heads[1]).shape[1]
    if padding is not None:
        if described(padding).size != batch * source:
            raise AssertionError(
                f"expecting key_padding_mask shape of {(batch, source)}, but got "
                f"{described(padding).shape}"
            )
        padding = expand(reshape(padding, (batch, 1, 1, source)), (batch, num_heads, 1, source))
        padding = reshape(padding, (rows, 1, source))
        mask = padding if mask is None else add(mask, padding)
    dropout_p = dropout_p if training else 0.0
    if need_weights:
        scores = bmm(mul(heads[0], math.sqrt(1 / size)), transpose(heads[1], 1, 2))
        shares = dropout(softmax(scores if mask is None else add(scores, mask), -1), dropout_p)
        mixed = bmm(shares, heads[2])
        shares = reshape(shares, (batch, num_heads, length, source))
        if average_attn_weights:
            shares = mean(shares, 1)
        shares = shares if batched else reshape(shares, described(shares).shape[1:])
    else:
        q, k, v = heads
        mixed, shares = scaled_dot_product_attention(q, k, v, mask, dropout_p), None
    out = linear(
        reshape(transpose(mixed, 0, 1), (length, batch, embed)), out_proj_weight, out_proj_bias
    )
    return out if batched else reshape(out, (length, -1)), shares


__all__: list[str] = []  # these are functions of nn.functional
METHODS = ()
