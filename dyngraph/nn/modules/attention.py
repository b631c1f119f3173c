"""Attention in several heads."""

from __future__ import annotations

from typing import Any

from dyngraph.nn import init
from dyngraph.nn.modules.linear import Linear
from dyngraph.nn.modules.module import Module
from dyngraph.nn.parameter import Parameter
from dyngraph.ops.attention import multi_head_attention_forward
from dyngraph.ops.filled import empty
from dyngraph.ops.permutation import transpose
from dyngraph.tensor import Tensor

__all__ = ["MultiheadAttention"]


class MultiheadAttention(Module):
    """Attends in `num_heads` parts of the embedding, and projects what they found.

    query: (length, batch, embed_dim), key: (source, batch, kdim), value: (source, batch, vdim) ->
    (length, batch, embed_dim), the batch first with `batch_first`, or none at all. With
    `need_weights` the shares of attention follow, (batch, length, source), averaged over the heads
    unless `average_attn_weights` is False. True in a mask forbids, and other masks are added to the
    scores: `attn_mask` is (length, source) or (batch * num_heads, length, source),
    `key_padding_mask` (batch, source). `is_causal` says that `attn_mask` is causal, and needs it.
    Vaswani et al. 2017, https://arxiv.org/abs/1706.03762, section 3.2.2.

    >>> attention = dg.nn.MultiheadAttention(4, num_heads=2)
    >>> x = dg.ones(3, 1, 4)
    >>> output, shares = attention(x, x, x)
    >>> output.shape, shares.shape
    (dyngraph.Size([3, 1, 4]), dyngraph.Size([1, 3, 3]))
    """

    in_proj_weight: Parameter | None
    q_proj_weight: Parameter | None
    k_proj_weight: Parameter | None
    v_proj_weight: Parameter | None
    in_proj_bias: Parameter | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                "embed_dim and num_heads must be greater than 0, got "
                f"embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        if embed_dim % num_heads:
            raise AssertionError(
                f"embed_dim must be divisible by num_heads, got {embed_dim} and {num_heads}"
            )
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.add_zero_attn = add_zero_attn
        self._qkv_same_embed_dim = self.kdim == self.vdim == embed_dim
        shapes: dict[str, tuple[int, ...] | None] = dict.fromkeys(
            ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight", "in_proj_bias")
        )
        if self._qkv_same_embed_dim:
            shapes["in_proj_weight"] = (3 * embed_dim, embed_dim)
        else:
            for name, size in zip("qkv", (embed_dim, self.kdim, self.vdim), strict=True):
                shapes[f"{name}_proj_weight"] = (embed_dim, size)
        if bias:
            shapes["in_proj_bias"] = (3 * embed_dim,)
        if add_bias_kv:
            shapes["bias_k"] = shapes["bias_v"] = (1, 1, embed_dim)
        else:
            self.bias_k = self.bias_v = None
        for name, shape in shapes.items():
            made = None if shape is None else Parameter(empty(shape, device=device, dtype=dtype))
            self.register_parameter(name, made)
        self.out_proj = Linear(embed_dim, embed_dim, bias, device, dtype)
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        """Draws the initial values anew."""
        for weight in (
            self.in_proj_weight,
            self.q_proj_weight,
            self.k_proj_weight,
            self.v_proj_weight,
        ):
            if weight is not None:
                init.xavier_uniform_(weight)
        for bias in (self.in_proj_bias, self.out_proj.bias):
            if bias is not None:
                init.zeros_(bias)
        for row in (self.bias_k, self.bias_v):
            if row is not None:
                init.xavier_normal_(row)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        exchanged = self.batch_first and query.dim() == 3
        if exchanged:  # equal tensors stay the same one: they are projected together
            turned = {id(t): transpose(t, 0, 1) for t in (query, key, value)}
            query, key, value = (turned[id(t)] for t in (query, key, value))
        output, shares = multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim,
            q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight,
            v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        return transpose(output, 0, 1) if exchanged else output, shares
