"""Functions of `jax.nn` that PyTorch does not have, by JAX's names and with JAX's gradients."""

from __future__ import annotations

from typing import Any

import jax

from dyngraph.ops.operator import define

hard_sigmoid = define(
    "hard_sigmoid",
    lambda self: jax.nn.hard_sigmoid(self),
    doc="""`relu6(input + 3) / 6`, a sigmoid made of lines.

    >>> dg.nn.functional.hard_sigmoid(dg.tensor([-4.0, 0.0]))
    tensor([0.0000, 0.5000])
    """,
)

hard_silu = define(
    "hard_silu",
    lambda self: jax.nn.hard_silu(self),
    doc="""`input * hard_sigmoid(input)`. Howard et al. 2019, https://arxiv.org/abs/1905.02244.

    >>> dg.nn.functional.hard_silu(dg.tensor([-4.0, 3.0]))
    tensor([-0.,  3.])
    """,
)
hard_swish = hard_silu

hard_tanh = define(
    "hard_tanh",
    lambda self: jax.nn.hard_tanh(self),
    doc="""The input, clipped to -1 and 1.

    >>> dg.nn.functional.hard_tanh(dg.tensor([-2.0, 0.5]))
    tensor([-1.0000,  0.5000])
    """,
)

identity = define(
    "identity",
    lambda self: jax.nn.identity(self),
    doc="""The input's values, as a new tensor.

    >>> dg.nn.functional.identity(dg.tensor([1.0]))
    tensor([1.])
    """,
)

log_sigmoid = define(
    "log_sigmoid",
    lambda self: jax.nn.log_sigmoid(self),
    doc="""`log(sigmoid(input))`, without overflow.

    >>> dg.nn.functional.log_sigmoid(dg.tensor([0.0]))
    tensor([-0.6931])
    """,
)

log1mexp = define(
    "log1mexp",
    lambda self: jax.nn.log1mexp(self),
    doc="""`log(1 - exp(-input))` for positive inputs, exact near 0 too. Mächler 2012.

    >>> dg.nn.functional.log1mexp(dg.tensor([0.6931]))
    tensor([-0.6932])
    """,
)

soft_sign = define(
    "soft_sign",
    lambda self: jax.nn.soft_sign(self),
    doc="""`input / (1 + |input|)`.

    >>> dg.nn.functional.soft_sign(dg.tensor([1.0]))
    tensor([0.5000])
    """,
)

sparse_plus = define(
    "sparse_plus",
    lambda self: jax.nn.sparse_plus(self),
    doc="""0 up to -1, the input from 1, and `(input + 1) ** 2 / 4` between.

    >>> dg.nn.functional.sparse_plus(dg.tensor([-2.0, 0.0, 2.0]))
    tensor([0.0000, 0.2500, 2.0000])
    """,
)

sparse_sigmoid = define(
    "sparse_sigmoid",
    lambda self: jax.nn.sparse_sigmoid(self),
    doc="""`(input + 1) / 2`, clipped to 0 and 1: the derivative of `sparse_plus`.

    >>> dg.nn.functional.sparse_sigmoid(dg.tensor([-2.0, 0.0]))
    tensor([0.0000, 0.5000])
    """,
)

squareplus = define(
    "squareplus",
    lambda self, b=4.0: jax.nn.squareplus(self, b),
    doc="""`(input + sqrt(input ** 2 + b)) / 2`. Barron 2021, https://arxiv.org/abs/2112.11687.

    >>> dg.nn.functional.squareplus(dg.tensor([0.0]))
    tensor([1.])
    """,
)

swish = define(
    "swish",
    lambda self: jax.nn.swish(self),
    doc="""`input * sigmoid(input)`, which PyTorch calls `silu`.

    >>> dg.nn.functional.swish(dg.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7311])
    """,
)


def _axes(axis: Any) -> Any:
    return tuple(axis) if isinstance(axis, (tuple, list)) else axis


standardize = define(
    "standardize",
    lambda self, mean=None, variance=None, epsilon=1e-5, *, axis, where=None: jax.nn.standardize(
        self, _axes(axis), mean, variance, epsilon, where
    ),
    signature="self, axis=-1, mean=None, variance=None, epsilon=1e-5, where=None",
    doc="""The input with mean 0 and variance 1 over `axis`, or by a given `mean` and `variance`.

    >>> dg.nn.functional.standardize(dg.tensor([1.0, 3.0]))
    tensor([-1.0000,  1.0000])
    """,
)

logsumexp = define(
    "logsumexp",
    lambda self, *, axis, keepdims: jax.nn.logsumexp(self, _axes(axis), keepdims=keepdims),
    signature="self, axis=None, keepdims=False",
    doc="""`log(sum(exp(input)))` over `axis`, or all elements, without overflow.

    >>> dg.nn.functional.logsumexp(dg.zeros(2))
    tensor(0.6931)
    """,
)

logmeanexp = define(
    "logmeanexp",
    lambda self, *, axis, keepdims: jax.nn.logmeanexp(self, _axes(axis), keepdims=keepdims),
    signature="self, axis=None, keepdims=False",
    doc="""`log(mean(exp(input)))` over `axis`, or all elements, without overflow.

    >>> dg.nn.functional.logmeanexp(dg.ones(2))
    tensor(1.)
    """,
)


def _attention(
    query: Any,
    key: Any,
    value: Any,
    bias: Any = None,
    mask: Any = None,
    *,
    scale: float | None,
    is_causal: bool,
) -> Any:
    return jax.nn.dot_product_attention(
        query, key, value, bias, mask, scale=scale, is_causal=is_causal
    )


dot_product_attention = define(
    "dot_product_attention",
    _attention,
    signature="query, key, value, bias=None, mask=None, scale=None, is_causal=False",
    mask=None,
    doc="""Attention of (batch, length, heads, size), where True in `mask` says what may be seen.

    `scaled_dot_product_attention` is PyTorch's, with heads before lengths.

    >>> q = dg.ones(1, 1, 1, 2)
    >>> dg.nn.functional.dot_product_attention(q, q, 5 * q).flatten()
    tensor([5., 5.])
    """,
)

__all__ = [
    "dot_product_attention",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "identity",
    "log1mexp",
    "log_sigmoid",
    "logmeanexp",
    "logsumexp",
    "soft_sign",
    "sparse_plus",
    "sparse_sigmoid",
    "squareplus",
    "standardize",
    "swish",
]
