"""Rows of the operators in `dyngraph/ops/copies.py`."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from tests.opinfo import OpInfo, call, complex_normal, normal


def windows(x: Any, dim: int, size: int, step: int) -> Any:
    return jnp.stack([x[i : i + size] for i in range(0, x.shape[0] - size + 1, step)])


ROWS: list[OpInfo] = [
    OpInfo("alias_copy", [call(normal(2, 3))], lambda x: x),
    OpInfo(
        "as_strided_copy",
        [call(normal(5), (2, 2), (2, 1))],
        lambda x, size, stride: jnp.stack([x[:2], x[2:4]]),
        refuses_empty="but the tensor has 0",
    ),
    OpInfo("diagonal_copy", [call(normal(3, 3))], jnp.diagonal),
    OpInfo("expand_copy", [call(normal(3, 1), (2, 3, 4))], jnp.broadcast_to),
    OpInfo(
        "narrow_copy",
        [call(normal(4), 0, 1, 2)],
        lambda x, dim, start, n: x[1:3],
        refuses_empty="start out of range",
    ),
    OpInfo("permute_copy", [call(normal(2, 3, 1), (2, 0, 1))], jnp.transpose),
    OpInfo(
        "select_copy",
        [call(normal(2, 3), 1, 2)],
        lambda x, dim, i: x[:, i],
        refuses_empty="out of range",
    ),
    OpInfo(
        "slice_copy",
        [call(normal(5, 2), 0, 1, None, 2)],
        lambda x, dim, start, end, step: x[start:end:step],
    ),
    OpInfo(
        "split_copy", [call(normal(3), 2)], lambda x, size: (x[:size], x[size:]) if len(x) else (x,)
    ),
    OpInfo(
        "split_with_sizes_copy",
        [call(normal(3), [1, 2])],
        lambda x, sizes: (x[:1], x[1:]),
        refuses_empty="sum exactly to 0",
    ),
    OpInfo("squeeze_copy", [call(normal(1, 3, 1))], jnp.squeeze),
    OpInfo("t_copy", [call(normal(2, 3))], jnp.transpose),
    OpInfo("transpose_copy", [call(normal(2, 3), 0, 1)], jnp.swapaxes),
    OpInfo("unbind_copy", [call(normal(2, 3))], tuple),
    OpInfo("unfold_copy", [call(normal(5), 0, 3, 2)], windows),
    OpInfo("unsqueeze_copy", [call(normal(2, 3), 1)], jnp.expand_dims),
    OpInfo(
        "view_as_complex_copy",
        [call(normal(3, 2))],
        lambda x: x[:, 0] + 1j * x[:, 1],
        no_half="float32 and float64",
    ),
    OpInfo(
        "view_as_real_copy",
        [call(complex_normal(3))],
        lambda x: jnp.stack([x.real, x.imag], -1),
    ),
    OpInfo("view_copy", [call(normal(2, 3), (3, 2))], jnp.reshape),
]
