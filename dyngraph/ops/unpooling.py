"""Maxima put back where `max_pool` found them."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp

from dyngraph.ops.convolution import one_for_each_dim
from dyngraph.ops.host_values import described, outside
from dyngraph.ops.operator import define
from dyngraph.ops.pooling import check_input
from dyngraph.tensor import Tensor


def _placed(self: Any, indices: Any, *, sizes: tuple[int, ...]) -> Any:
    lead = self.shape[: -len(sizes)]
    rows = math.prod(lead)
    count = math.prod(self.shape[-len(sizes) :])
    zeros = jnp.zeros((rows, math.prod(sizes)), self.dtype)
    flat = indices.reshape(rows, count)
    placed = zeros.at[jnp.arange(rows)[:, None], flat].set(self.reshape(rows, count))
    return placed.reshape(*lead, *sizes)


def _picked(grad: Any, indices: Any, sizes: tuple[int, ...]) -> Any:
    lead = grad.shape[: -len(sizes)]
    lines = grad.reshape(*lead, math.prod(sizes))
    flat = indices.reshape(*lead, math.prod(indices.shape[len(lead) :]))
    return jnp.take_along_axis(lines, flat, -1).reshape(indices.shape)


_max_unpool = define("max_unpool", _placed, self=_picked, indices=None)


def _unpool(
    count: int,
    input: Tensor,
    indices: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    output_size: Any,
) -> Tensor:
    where, shape = f"max_unpool{count}d", described(input).shape
    if described(indices).shape != shape:
        raise RuntimeError(
            f"Expected shape of indices to be same as that of the input tensor ({list(shape)}), "
            f"but got indices tensor with shape: {list(described(indices).shape)}"
        )
    check_input(where, described(input), count, fixed=len(shape) - 1)
    kernel = one_for_each_dim(where, "kernel_size", kernel_size, count)
    steps = kernel if not stride else one_for_each_dim(where, "stride", stride, count)
    widths = one_for_each_dim(where, "padding", padding, count)
    rows = list(zip(shape[-count:], kernel, steps, widths, strict=True))
    sizes = tuple((n - 1) * s - 2 * p + k for n, k, s, p in rows)
    if output_size is not None:
        wanted = tuple(int(n) for n in output_size)[-count:]
        for (_, _, s, _), size, given in zip(rows, sizes, wanted, strict=True):
            if not size - s < given < size + s:
                raise ValueError(
                    f"invalid output_size {list(wanted)}: expected each size within a stride of "
                    f"{list(sizes)}"
                )
        sizes = wanted
    bad = outside(indices, 0, math.prod(sizes))
    if bad is not None:
        raise RuntimeError(
            f"Found an invalid max index: {bad} (output volumes are of size {sizes})"
        )
    return _max_unpool(input, indices, sizes)


def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Any = None,
) -> Tensor:
    """Zeros with the maxima of `max_pool1d` at the positions they came from.

    Raises RuntimeError for a position that is not in the result.

    >>> values, places = dg.nn.functional.max_pool1d(
    ...     dg.tensor([[1.0, 3.0, 2.0, 0.0]]), 2, return_indices=True
    ... )
    >>> dg.nn.functional.max_unpool1d(values, places, 2)
    tensor([[0., 3., 2., 0.]])
    """
    return _unpool(1, input, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Any = None,
) -> Tensor:
    """Zeros with the maxima of `max_pool2d` at the positions they came from.

    >>> dg.nn.functional.max_unpool2d(dg.ones(1, 1, 1), dg.tensor([[[3]]]), 2)
    tensor([[[0., 0.],
             [0., 1.]]])
    """
    return _unpool(2, input, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Any = None,
) -> Tensor:
    """Zeros with the maxima of `max_pool3d` at the positions they came from.

    >>> dg.nn.functional.max_unpool3d(dg.ones(1, 1, 1, 1), dg.tensor([[[[3]]]]), 2).sum()
    tensor(1.)
    """
    return _unpool(3, input, indices, kernel_size, stride, padding, output_size)


__all__: list[str] = []  # these are functions of nn.functional
METHODS: tuple[str, ...] = ()
