"""Transformers: layers of attention and a feed-forward part, stacked to encoders and decoders.

Vaswani et al. 2017, https://arxiv.org/abs/1706.03762. Masks are those of `MultiheadAttention`: True
forbids, other masks are added. An `is_causal` that is true says that a mask is causal; the mask is
what counts.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from dyngraph.nn import functional as F, init
from dyngraph.nn.modules.attention import MultiheadAttention
from dyngraph.nn.modules.container import ModuleList
from dyngraph.nn.modules.dropout import Dropout
from dyngraph.nn.modules.linear import Linear
from dyngraph.nn.modules.module import Module
from dyngraph.nn.modules.normalization import LayerNorm
from dyngraph.ops.diagonals import triu
from dyngraph.ops.filled import full
from dyngraph.tensor import Tensor

__all__ = [
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]

Activation = str | Callable[[Tensor], Tensor]


def _activation(given: Activation) -> Callable[[Tensor], Tensor]:
    if not isinstance(given, str):
        return given
    if given not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {given}")
    return getattr(F, given)


class _Layer(Module):
    """What layers of encoders and decoders share; a decoder's attends to `memory` too."""

    def __init__(
        self,
        attends_to_memory: bool,
        d_model: int,
        nhead: int,
        dim_feedforward: int,
        dropout: float,
        activation: Activation,
        layer_norm_eps: float,
        batch_first: bool,
        norm_first: bool,
        bias: bool,
        device: Any,
        dtype: Any,
    ) -> None:
        super().__init__()
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        attention = {"dropout": dropout, "bias": bias, "batch_first": batch_first, **made}
        self.self_attn = MultiheadAttention(d_model, nhead, **attention)
        if attends_to_memory:
            self.multihead_attn = MultiheadAttention(d_model, nhead, **attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias, **made)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **made)
        self.norm_first = norm_first
        places = range(1, 4 if attends_to_memory else 3)
        for i in places:
            self.add_module(f"norm{i}", LayerNorm(d_model, layer_norm_eps, bias=bias, **made))
        for i in places:
            self.add_module(f"dropout{i}", Dropout(dropout))
        self.activation = _activation(activation)

    def _add(self, x: Tensor, place: int, block: Callable[[Tensor], Tensor]) -> Tensor:
        """`x` and what the block makes of it, normalized before or after."""
        norm, dropout = self._modules[f"norm{place}"], self._modules[f"dropout{place}"]
        if self.norm_first:
            return x + dropout(block(norm(x)))
        return norm(x + dropout(block(x)))

    def _attend(self, x: Tensor, mask: Any, padding: Any, is_causal: Any) -> Tensor:
        options = {"attn_mask": mask, "key_padding_mask": padding, "is_causal": bool(is_causal)}
        return self.self_attn(x, x, x, need_weights=False, **options)[0]

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(_Layer):
    """Attends to its input, then feeds it forward; each is added to the input, and normalized.

    src: (length, batch, d_model), the batch first with `batch_first`, or none. `norm_first`
    normalizes the input of each part, not the sum. `activation` is "relu", "gelu" or a function.

    >>> layer = dg.nn.TransformerEncoderLayer(d_model=4, nhead=2, dim_feedforward=8)
    >>> layer(dg.ones(3, 1, 4)).shape
    dyngraph.Size([3, 1, 4])
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            False,
            d_model,
            nhead,
            dim_feedforward,
            dropout,
            activation,
            layer_norm_eps,
            batch_first,
            norm_first,
            bias,
            device,
            dtype,
        )

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        x = self._add(src, 1, lambda x: self._attend(x, src_mask, src_key_padding_mask, is_causal))
        return self._add(x, 2, self._feed_forward)


class TransformerDecoderLayer(_Layer):
    """Attends to its input and to `memory`, then feeds forward; arguments as of an encoder's layer.

    >>> layer = dg.nn.TransformerDecoderLayer(d_model=4, nhead=2, dim_feedforward=8)
    >>> layer(dg.ones(3, 1, 4), memory=dg.ones(5, 1, 4)).shape
    dyngraph.Size([3, 1, 4])
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            True,
            d_model,
            nhead,
            dim_feedforward,
            dropout,
            activation,
            layer_norm_eps,
            batch_first,
            norm_first,
            bias,
            device,
            dtype,
        )

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        def attend_to_memory(x: Tensor) -> Tensor:
            return self.multihead_attn(
                x,
                memory,
                memory,
                attn_mask=memory_mask,
                key_padding_mask=memory_key_padding_mask,
                is_causal=memory_is_causal,
                need_weights=False,
            )[0]

        x = self._add(
            tgt, 1, lambda x: self._attend(x, tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        )
        x = self._add(x, 2, attend_to_memory)
        return self._add(x, 3, self._feed_forward)


def _copies(layer: Module, count: int) -> ModuleList:
    return ModuleList([copy.deepcopy(layer) for _ in range(count)])


class TransformerEncoder(Module):
    """`num_layers` copies of a layer in a row, and a `norm` after them, if one is given.

    `enable_nested_tensor` and `mask_check` have no effect: there are no nested tensors here, and
    results at padded places are as computed, not 0.

    >>> layer = dg.nn.TransformerEncoderLayer(d_model=4, nhead=2, dim_feedforward=8)
    >>> dg.nn.TransformerEncoder(layer, num_layers=2)(dg.ones(3, 1, 4)).shape
    dyngraph.Size([3, 1, 4])
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _copies(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        output = src
        for layer in self.layers:
            output = layer(
                output,
                src_mask=mask,
                src_key_padding_mask=src_key_padding_mask,
                is_causal=bool(is_causal),
            )
        return output if self.norm is None else self.norm(output)


class TransformerDecoder(Module):
    """`num_layers` copies of a layer in a row, and a `norm` after them, if one is given.

    >>> layer = dg.nn.TransformerDecoderLayer(d_model=4, nhead=2, dim_feedforward=8)
    >>> dg.nn.TransformerDecoder(layer, 2)(dg.ones(3, 1, 4), dg.ones(5, 1, 4)).shape
    dyngraph.Size([3, 1, 4])
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _copies(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        output = tgt
        for layer in self.layers:
            output = layer(
                output,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=bool(tgt_is_causal),
                memory_is_causal=memory_is_causal,
            )
        return output if self.norm is None else self.norm(output)


class Transformer(Module):
    """An encoder of `src`, and a decoder of `tgt` that attends to what the encoder made.

    src: (source, batch, d_model), tgt: (length, batch, d_model) -> as tgt, the batch first with
    `batch_first`, or none. Weight matrices are drawn by `init.xavier_uniform_`. Raises RuntimeError
    where batches or features do not fit.

    >>> model = dg.nn.Transformer(4, 2, num_encoder_layers=1, num_decoder_layers=1)
    >>> model(dg.ones(5, 1, 4), dg.ones(3, 1, 4)).shape
    dyngraph.Size([3, 1, 4])
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        options = (
            d_model,
            nhead,
            dim_feedforward,
            dropout,
            activation,
            layer_norm_eps,
            batch_first,
            norm_first,
            bias,
        )

        def norm() -> LayerNorm:
            return LayerNorm(d_model, layer_norm_eps, bias=bias, **made)

        if custom_encoder is None:
            layer = TransformerEncoderLayer(*options, **made)
            custom_encoder = TransformerEncoder(layer, num_encoder_layers, norm())
        if custom_decoder is None:
            layer = TransformerDecoderLayer(*options, **made)
            custom_decoder = TransformerDecoder(layer, num_decoder_layers, norm())
        self.encoder = custom_encoder
        self.decoder = custom_decoder
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        """Draws the matrices anew."""
        for parameter in self.parameters():
            if parameter.dim() > 1:
                init.xavier_uniform_(parameter)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        batch_dim = 0 if self.batch_first else 1
        if src.dim() == 3 and src.size(batch_dim) != tgt.size(batch_dim):
            raise RuntimeError(
                "the batch number of src and tgt must be equal, got "
                f"{src.size(batch_dim)} and {tgt.size(batch_dim)}"
            )
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError(
                "the feature number of src and tgt must be equal to d_model, got "
                f"{src.size(-1)}, {tgt.size(-1)} and {self.d_model}"
            )
        memory = self.encoder(
            src,
            mask=src_mask,
            src_key_padding_mask=src_key_padding_mask,
            is_causal=src_is_causal,
        )
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """The mask (sz, sz) that is added so that each position sees itself and those before.

        >>> dg.nn.Transformer.generate_square_subsequent_mask(2)
        tensor([[0., -inf],
                [0., 0.]])
        """
        return triu(full((sz, sz), -jnp.inf, dtype=dtype, device=device), 1)
