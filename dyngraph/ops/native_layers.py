"""Layers as `torch` itself has them, beside those of `nn.functional`.

Arguments come in another order and mostly without defaults, and some functions return what their
derivative reads as well. `sparse` and `cudnn_enabled` are accepted, and have no effect.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dyngraph.ops import (
    channel_normalization,
    convolution as convolutions,
    dropouts,
    embeddings,
    local_normalization,
    max_pooling,
    random_slopes,
    resampling,
)
from dyngraph.ops.arguments import widened
from dyngraph.ops.filled import ones_like
from dyngraph.ops.host_values import described
from dyngraph.ops.operator import define
from dyngraph.ops.out import takes_out
from dyngraph.ops.shape import clone
from dyngraph.random import Generator
from dyngraph.tensor import Tensor

# --- tables -----------------------------------------------------------------------------------


def embedding(
    weight: Tensor,
    indices: Tensor,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """`nn.functional.embedding` with the table first; a negative `padding_idx` is none.

    >>> dg.embedding(dg.tensor([[0.0, 0.0], [1.0, 2.0]]), dg.tensor([1]))
    tensor([[1., 2.]])
    """
    padding = padding_idx if padding_idx >= 0 else None
    return embeddings.embedding(indices, weight, padding, None, 2.0, scale_grad_by_freq)


_MODES = ("sum", "mean", "max")


def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """`nn.functional.embedding_bag` with the table first and a number as `mode`.

    The mode is 0 for sums, 1 for means, 2 for maxima. Beside the bags it returns the bag of each
    index, the indices in each bag without `padding_idx`, and for maxima which index each came from
    (for others the second again). PyTorch leaves out those of sums, which it does not need.

    >>> table = dg.tensor([[0.0, 0.0], [1.0, 2.0]])
    >>> bags = dg.embedding_bag(table, dg.tensor([1, 0, 1]), dg.tensor([0, 2]))
    >>> bags[0], bags[1]
    (tensor([[1., 2.],
            [1., 2.]]), tensor([0, 0, 1]))
    """
    if mode not in (0, 1, 2):
        raise RuntimeError(f"mode has to be 0 (sum), 1 (mean) or 2 (max), got {mode}")
    name = _MODES[mode]
    result = embeddings.embedding_bag(
        indices,
        weight,
        offsets,
        scale_grad_by_freq=scale_grad_by_freq,
        mode=name,
        per_sample_weights=per_sample_weights,
        include_last_offset=include_last_offset,
        padding_idx=padding_idx,
    )
    count = described(weight).shape[0]
    padding = -1 if padding_idx is None else padding_idx % count
    bags = described(result).shape[0]
    bag, size, largest = _bag_parts(weight, indices, offsets, padding, bags, name)
    return result, bag, size, largest


def _parts_of_bags(
    weight: Any, indices: Any, offsets: Any, *, padding_idx: int, bags: int, mode: str
) -> Any:
    bag = embeddings.bag_of_each(indices, offsets).astype(indices.dtype)
    counted = indices != padding_idx
    size = jax.ops.segment_sum(counted.astype(indices.dtype), bag, bags)
    if mode != "max":
        return bag, size, size
    rows = jnp.where(counted[:, None], weight[indices], -jnp.inf)
    is_top = rows == jax.ops.segment_max(rows, bag, bags)[bag]
    count = indices.shape[0]
    places = jnp.where(is_top & counted[:, None], jnp.arange(count)[:, None], count)
    first = jax.ops.segment_min(places, bag, bags)
    found = jnp.take(indices, jnp.minimum(first, count - 1))
    return bag, size, jnp.where(first < count, found, 0)


_bag_parts = define(
    "embedding_bag_parts",
    _parts_of_bags,
    outputs=("offset2bag", "bag_size", "max_indices"),
    differentiable=False,
)


# --- normalisation ----------------------------------------------------------------------------


def batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    """`nn.functional.batch_norm` with the parameters before the running statistics.

    >>> x = dg.tensor([[1.0], [3.0]])
    >>> dg.batch_norm(x, None, None, None, None, True, 0.1, 1e-5, False).flatten()
    tensor([-1.0000,  1.0000])
    """
    return channel_normalization.batch_norm(
        input, running_mean, running_var, weight, bias, training, momentum, eps
    )


def _statistics(self: Any, *, eps: float) -> Any:
    axes = (0, *range(2, self.ndim))
    wide = widened(self)
    return wide.mean(axes), jax.lax.rsqrt(wide.var(axes) + eps)


_batch_statistics = define(
    "batch_norm_statistics", _statistics, outputs=("mean", "invstd"), differentiable=False
)


@takes_out
def native_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """`batch_norm`, and the mean and reciprocal deviation of each channel of the batch.

    These two have no gradient, and are empty where it is not `training`.

    >>> x = dg.tensor([[1.0], [3.0]])
    >>> dg.native_batch_norm(x, None, None, None, None, True, 0.1, 0.0)[1:]
    (tensor([2.]), tensor([1.]))
    """
    result = batch_norm(
        input, weight, bias, running_mean, running_var, training, momentum, eps, False
    )
    if not training:
        none = input.new_empty(0)  # type: ignore[attr-defined]
        return result, none, none.clone()
    mean, invstd = _batch_statistics(input, float(eps))
    return result, mean, invstd


def instance_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    """`nn.functional.instance_norm` with the parameters before the running statistics.

    >>> x = dg.tensor([[[1.0, 3.0]]])
    >>> dg.instance_norm(x, None, None, None, None, True, 0.1, 1e-5, False).flatten()
    tensor([-1.0000,  1.0000])
    """
    return local_normalization.instance_norm(
        input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps
    )


# --- windows ----------------------------------------------------------------------------------


def convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Tensor:
    """`conv1d`, `conv2d`, `conv3d` or their transposed forms, as the weight's dims say.

    Raises RuntimeError for weights of other dims, and as those functions do.

    >>> x, kernel = dg.ones(1, 1, 3), dg.ones(1, 1, 2)
    >>> dg.convolution(x, kernel, None, [1], [0], [1], False, [0], 1)
    tensor([[[2., 2.]]])
    """
    count = described(weight).ndim - 2
    if count not in (1, 2, 3):
        raise RuntimeError(
            "convolution expects weight to have 3 to 5 dims, (out, in / groups, *kernel size), "
            f"got {list(described(weight).shape)}"
        )
    if transposed:
        run = getattr(convolutions, f"conv_transpose{count}d")
        return run(input, weight, bias, stride, padding, output_padding, groups, dilation)
    return getattr(convolutions, f"conv{count}d")(
        input, weight, bias, stride, padding, dilation, groups
    )


def adaptive_max_pool1d(input: Tensor, output_size: int | Sequence[int]) -> tuple[Tensor, Tensor]:
    """`nn.functional.adaptive_max_pool1d`, and the positions of the maxima.

    >>> dg.adaptive_max_pool1d(dg.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    (tensor([[3., 2.]]), tensor([[1, 2]]))
    """
    return max_pooling.adaptive_max_pool1d_with_indices(input, output_size)


def affine_grid_generator(theta: Tensor, size: Sequence[int], align_corners: bool) -> Tensor:
    """`nn.functional.affine_grid`.

    >>> theta = dg.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    >>> dg.affine_grid_generator(theta, (1, 1, 1, 2), False)
    tensor([[[[-0.5000,  0.0000],
              [ 0.5000,  0.0000]]]])
    """
    return resampling.affine_grid(theta, size, align_corners)


# --- drawn at random --------------------------------------------------------------------------


_mask = define(
    "dropout_mask",
    lambda key, p, *, shape: dropouts.kept(key, p, shape),
    differentiable=False,
)


def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """`nn.functional.dropout`, and the mask of what it kept; a `train` of None is True.

    >>> dg.native_dropout(dg.ones(2), 0.5, False)
    (tensor([1., 1.]), tensor([True, True]))
    """
    if not 0 <= p <= 1:
        raise RuntimeError(f"native_dropout expects p to be in [0, 1], but got p={p}")
    if train is False:
        return clone(input), ones_like(input, dtype=np.bool_)
    key = dropouts.draw_mask_key()
    result = dropouts.drop(input, key, float(p))
    return result, _mask(key, float(p), input._cell.held.shape)


def rrelu(
    input: Tensor,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """`nn.functional.rrelu`, which may draw from another generator.

    >>> dg.rrelu(dg.tensor([-1.0, 2.0]), 0.25, 0.75)
    tensor([-0.5000,  2.0000])
    """
    return random_slopes.rectified(input, lower, upper, training, generator)


__all__ = [
    "adaptive_max_pool1d",
    "affine_grid_generator",
    "batch_norm",
    "convolution",
    "embedding",
    "embedding_bag",
    "instance_norm",
    "native_batch_norm",
    "native_dropout",
    "rrelu",
]
METHODS = ()
"""The functions of this file that are methods of Tensor too."""
