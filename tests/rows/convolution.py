"""Rows of the operators in `dyngraph/ops/convolution.py`."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp

from tests.opinfo import OpInfo, call, functional, normal


def convolved(
    x: Any,
    w: Any,
    b: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    """The sum over the kernel's elements of the input, moved, times that element."""
    if x.ndim == w.ndim - 1:
        return convolved(x[None], w, b, stride, padding, dilation, groups)[0]
    dims = w.ndim - 2
    each = [v if isinstance(v, tuple) else (v,) * dims for v in (stride, dilation)]
    kernel = w.shape[2:]
    if padding == "same":
        total = [d * (k - 1) for d, k in zip(each[1], kernel)]
        pairs = [(t // 2, t - t // 2) for t in total]
    else:
        pairs = [(p, p) for p in (padding if isinstance(padding, tuple) else (padding,) * dims)]
    x = jnp.pad(x, [(0, 0), (0, 0), *pairs])
    sizes = [(n - d * (k - 1) - 1) // s + 1 for n, k, s, d in zip(x.shape[2:], kernel, *each)]
    x = x.reshape(x.shape[0], groups, -1, *x.shape[2:])
    w = w.reshape(groups, -1, *w.shape[1:])
    out: Any = 0
    for place in itertools.product(*map(range, kernel)):
        cut = [slice(i * d, i * d + (n - 1) * s + 1, s) for i, n, s, d in zip(place, sizes, *each)]
        piece = x[(..., *cut)].reshape(*x.shape[:3], -1)
        out = out + jnp.einsum("ngix,goi->ngox", piece, w[(..., *place)])
    out = out.reshape(x.shape[0], -1, *sizes)
    return out if b is None else out + b.reshape(-1, *[1] * dims)


def transposed(
    x: Any,
    w: Any,
    b: Any = None,
    stride: int = 1,
    padding: int = 0,
    output_padding: int = 0,
    groups: int = 1,
    dilation: int = 1,
) -> Any:
    """What a convolution does to gradients."""
    sizes = [
        (n - 1) * stride - 2 * padding + dilation * (k - 1) + output_padding + 1
        for n, k in zip(x.shape[2:], w.shape[2:])
    ]
    shape = (x.shape[0], w.shape[1] * groups, *sizes)

    def forward(y: Any) -> Any:
        return convolved(y, w, None, stride, padding, dilation, groups)

    (out,) = jax.linear_transpose(forward, jax.ShapeDtypeStruct(shape, x.dtype))(x)
    return out if b is None else out + b.reshape(-1, *[1] * len(sizes))


ROWS: list[OpInfo] = [
    functional(
        "conv1d",
        [
            call(normal(2, 4, 5), normal(6, 2, 3), normal(6), groups=2, padding="same"),
            call(normal(2, 5), normal(3, 2, 2)),
        ],
        convolved,
        no_empty="the twin divides by the batch's size",
    ),
    functional(
        "conv2d",
        [call(normal(2, 2, 5, 4), normal(3, 2, 2, 3), normal(3), (2, 1), (1, 0), (1, 1))],
        convolved,
        no_empty="the twin divides by the batch's size",
    ),
    functional(
        "conv3d",
        [call(normal(1, 1, 3, 3, 4), normal(2, 1, 2, 2, 2))],
        convolved,
        no_empty="the twin divides by the batch's size",
    ),
    functional(
        "conv_transpose1d",
        [call(normal(2, 4, 3), normal(4, 3, 2), normal(6), 2, 1, 1, 2, 2)],
        transposed,
        no_empty="the twin divides by the batch's size",
    ),
    functional(
        "conv_transpose2d",
        [call(normal(1, 2, 2, 3), normal(2, 1, 2, 2), normal(1), stride=2)],
        transposed,
        no_empty="the twin divides by the batch's size",
    ),
    functional(
        "conv_transpose3d",
        [call(normal(1, 1, 2, 2, 2), normal(1, 2, 2, 1, 2))],
        transposed,
        no_empty="the twin divides by the batch's size",
    ),
    OpInfo(
        "conv_tbc",
        [call(normal(4, 2, 3), normal(2, 3, 2), normal(2), 1)],
        lambda x, w, b, pad: convolved(
            x.transpose(1, 2, 0), w.transpose(2, 1, 0), b, padding=pad
        ).transpose(2, 0, 1),
    ),
]
