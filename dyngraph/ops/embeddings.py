"""Rows of a table at given positions, and positions as rows of zeros with a one."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dyngraph import dtypes, modes
from dyngraph.ops.host_values import array_of, described, on_host, outside
from dyngraph.ops.norms import norm_of
from dyngraph.ops.operator import define
from dyngraph.tensor import Tensor, wrap
from dyngraph.tracing import Tracer
from dyngraph.writing import assign


def _embedding_kernel(weight: Any, indices: Any, *, padding_idx: int, by_frequency: bool) -> Any:
    if weight.ndim != 2:
        raise RuntimeError(f"'weight' must be 2-D, got shape {list(weight.shape)}")
    if indices.dtype not in (np.int32, np.int64):
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: "
            f"Long, Int; but got {indices.dtype} instead. Convert it by .long()."
        )
    return weight[indices]


def _embedding_rule(
    grad: Any, indices: Any, weight_shape: Any, padding_idx: int, by_frequency: bool
) -> Any:
    flat, grad = indices.reshape(-1), grad.reshape(-1, weight_shape[1])
    if padding_idx >= 0:
        grad = jnp.where((flat == padding_idx)[:, None], 0, grad)
    if by_frequency:
        counts = jnp.zeros(weight_shape[0], grad.dtype).at[flat].add(1)
        grad = grad / counts[flat][:, None]
    return jnp.zeros(weight_shape, grad.dtype).at[flat].add(grad)


_embedding = define(
    "embedding",
    _embedding_kernel,
    signature="weight, indices, padding_idx, by_frequency",
    weight=_embedding_rule,
    indices=None,
)


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of `weight`, (count, size), at the positions `input`: (...) gives (..., size).

    The row `padding_idx` gets no gradient; `scale_grad_by_freq` divides by how often a row was
    read. With `max_norm`, the rows that are read are first scaled in place, unrecorded, to a
    `norm_type`-norm of at most that. Gradients are dense whatever `sparse` says. Raises IndexError
    for positions that are negative or too large.

    >>> table = dg.tensor([[0.0, 0.0], [1.0, 2.0]])
    >>> dg.nn.functional.embedding(dg.tensor([1, 0]), table)
    tensor([[1., 2.],
            [0., 0.]])
    """
    count = described(weight).shape[0]
    if padding_idx is None:
        padding_idx = -1
    elif not -count <= padding_idx < count:
        raise AssertionError(
            f"Padding_idx must be within num_embeddings: got {padding_idx} for {count} rows"
        )
    else:
        padding_idx %= count
    bad = outside(input, 0, count)
    if bad is not None:
        raise IndexError(
            f"index out of range in self: index {bad} is out of bounds for {count} rows of weight"
        )
    if max_norm is not None:
        _shorten_rows(weight, input, float(max_norm), float(norm_type))
    return _embedding(weight, input, padding_idx, bool(scale_grad_by_freq))


def _shorten_rows(weight: Tensor, indices: Any, max_norm: float, norm_type: float) -> None:
    """Scales rows in place to at most `max_norm`: a write that is not recorded."""
    with modes.no_grad():
        embedding_renorm_(weight, indices, max_norm, norm_type)


def embedding_renorm_(input: Tensor, indices: Any, max_norm: float, norm_type: float) -> Tensor:
    """Scales the rows at `indices` in place, to a `norm_type`-norm of at most `max_norm`.

    >>> dg.embedding_renorm_(dg.tensor([[3.0, 4.0], [6.0, 8.0]]), dg.tensor([1]), 1.0, 2.0)
    tensor([[3.0000, 4.0000],
            [0.6000, 0.8000]])
    """
    places = array_of(indices)
    made = _shortened(input._cell.array, places, float(max_norm), ord=float(norm_type))
    return assign(input, wrap(made), "embedding_renorm_")


@functools.partial(jax.jit, static_argnames="ord")
def _shortened(weight: Any, indices: Any, max_norm: Any, *, ord: float) -> Any:
    flat = indices.reshape(-1)
    rows = weight[flat]
    norm = norm_of(rows, ord=ord, dim=1, keepdim=True)
    # PyTorch's quotient, whose small number is there for rows of norm 0.
    scaled = rows * (max_norm / (norm + 1e-7)).astype(rows.dtype)
    return weight.at[flat].set(jnp.where(norm > max_norm, scaled, rows))


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Class numbers as rows of zeros with a one: (...) gives (..., num_classes), integers.

    Without `num_classes` there are as many as the largest number asks for. Raises RuntimeError for
    numbers that are no class.

    >>> dg.nn.functional.one_hot(dg.tensor([0, 2]))
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    array = array_of(tensor)
    if array.dtype.kind not in "iu":
        raise RuntimeError(
            f"one_hot is only applicable to index tensor of type LongTensor, got {array.dtype}. "
            "Convert it by .long()."
        )
    bad = outside(tensor, 0, np.iinfo(np.int32).max)
    if bad is not None:
        raise RuntimeError(f"Class values must be non-negative, got {bad}.")
    if num_classes < 0:
        if not array.size:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        num_classes = int(on_host("one_hot without num_classes", tensor).max()) + 1
    elif (bad := outside(tensor, 0, num_classes)) is not None:
        raise RuntimeError(
            f"Class values must be smaller than num_classes: got {bad} for {num_classes} classes."
        )
    return _one_hot(tensor, num_classes)


_one_hot = define(
    "one_hot",
    lambda self, *, num_classes: jax.nn.one_hot(
        self, num_classes, dtype=dtypes.default_int().dtype
    ),
    signature="self, num_classes",
    differentiable=False,
)


def bag_of_each(indices: Any, offsets: Any) -> Any:
    """The bag that each position of the indices belongs to."""
    places = jnp.arange(indices.shape[0], dtype=offsets.dtype)
    return jnp.searchsorted(offsets, places, side="right") - 1


def _embedding_bag(
    weight: Any,
    indices: Any,
    offsets: Any,
    per_sample_weights: Any = None,
    *,
    bags: int,
    mode: str,
    by_frequency: bool,
    padding_idx: int,
) -> Any:
    if weight.ndim != 2:
        raise RuntimeError(f"'weight' must be 2-D, got shape {list(weight.shape)}")
    bag = bag_of_each(indices, offsets)
    rows = weight[indices]
    if by_frequency:
        counts = jnp.zeros(weight.shape[0], rows.dtype).at[indices].add(1)[indices]
        scaled = rows / counts[:, None]
        # The value of the rows, with the gradient of the scaled ones.
        rows = jax.lax.stop_gradient(rows) + (scaled - jax.lax.stop_gradient(scaled))
    if per_sample_weights is not None:
        rows = rows * per_sample_weights[:, None]
    counted = indices != padding_idx
    if mode == "max":
        rows = jnp.where(counted[:, None], rows, -jnp.inf)
        top = jax.ops.segment_max(rows, bag, bags)
        return jnp.where(jnp.isneginf(top), 0, top)
    sums = jax.ops.segment_sum(jnp.where(counted[:, None], rows, 0), bag, bags)
    if mode == "sum":
        return sums
    sizes = jax.ops.segment_sum(counted.astype(rows.dtype), bag, bags)
    return sums / jnp.maximum(sizes, 1)[:, None]


_bags = define(
    "embedding_bag",
    _embedding_bag,
    signature=(
        "weight, indices, offsets, per_sample_weights, bags, mode, by_frequency, padding_idx"
    ),
    indices=None,
    offsets=None,
)


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """The sum, mean or max of rows of `weight` over bags of positions: (bags, size).

    The rows of a two-dimensional `input` are the bags; those of one dim begin at `offsets`, of
    which the last may be the end (`include_last_offset`). `per_sample_weights` weighs the rows of a
    sum. The row `padding_idx` is left out. The rest as in `embedding`. Raises RuntimeError for
    positions or offsets out of bounds, ValueError for arguments that do not go together.

    >>> table = dg.tensor([[0.0, 0.0], [1.0, 2.0]])
    >>> dg.nn.functional.embedding_bag(dg.tensor([[1, 0]]), table, mode="sum")
    tensor([[1., 2.]])
    """
    if mode not in ("sum", "mean", "max"):
        raise ValueError(f"mode has to be one of sum, mean or max, got {mode}")
    indices, count = array_of(input), described(weight).shape[0]
    if per_sample_weights is not None:
        if mode != "sum":
            raise NotImplementedError(
                f"embedding_bag: per_sample_weights was not None. per_sample_weights is only "
                f"supported for mode='sum' (got mode='{mode}')."
            )
        if described(per_sample_weights).shape != indices.shape:
            raise ValueError(
                "embedding_bag: If per_sample_weights "
                f"({list(described(per_sample_weights).shape)}) is not None, then it must have "
                "the same shape as the input "
                f"({list(indices.shape)})"
            )
    if scale_grad_by_freq and mode == "max":
        raise RuntimeError("embedding_bag: scale_grad_by_freq is not supported with mode='max'")
    if padding_idx is None:
        padding_idx = -1
    elif not -count <= padding_idx < count:
        raise RuntimeError(
            f"Padding_idx must be within num_embeddings: got {padding_idx} for {count} rows"
        )
    else:
        padding_idx %= count
    if (bad := outside(input, 0, count)) is not None:
        raise RuntimeError(
            f"embedding_bag: input takes value {bad} which is not in the valid range [0, {count})"
        )
    if max_norm is not None:
        _shorten_rows(weight, input, float(max_norm), float(norm_type))
    starts: Any = offsets
    if indices.ndim == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated as a mini-batch "
                "of fixed length sequences"
            )
        bags, length = indices.shape
        starts = np.arange(bags, dtype=np.int32) * length
        input = input.reshape(-1)  # type: ignore[attr-defined]
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)  # type: ignore[attr-defined]
    elif indices.ndim != 1:
        raise ValueError(
            f"input has to be 1D or 2D Tensor, but got Tensor of dimension {indices.ndim}"
        )
    else:
        bags = _check_offsets(offsets, indices.shape[0]) - bool(include_last_offset)
    return _bags(
        weight, input, starts, per_sample_weights, bags, mode, bool(scale_grad_by_freq), padding_idx
    )


def _check_offsets(offsets: Tensor | None, length: int) -> int:
    """How many offsets there are; raises where they begin or end wrongly."""
    if offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    array = array_of(offsets)
    if array.ndim != 1:
        raise ValueError(f"offsets has to be a 1D Tensor, got {array.ndim} dims")
    if not isinstance(array, Tracer) and array.size:
        held = np.asarray(array)
        if held[0] != 0 or held[-1] > length:
            raise RuntimeError(
                f"offsets must begin with 0 and end within the input's length {length}, got "
                f"{held.tolist()}"
            )
    return array.shape[0]


__all__ = ["embedding_renorm_"]  # the others are functions of nn.functional
METHODS = ()
