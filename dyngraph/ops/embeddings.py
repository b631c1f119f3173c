"""Rows of a table at given positions, and positions as rows of zeros with a one."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dyngraph import dtypes
from dyngraph.ops.host_values import array_of, on_host, outside
from dyngraph.ops.norms import norm_of
from dyngraph.ops.operator import define
from dyngraph.tensor import Tensor


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
    count = array_of(weight).shape[0]
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
    weight._cell.write(_shortened(weight._cell.array, array_of(indices), max_norm, ord=norm_type))


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


__all__: list[str] = []  # these are functions of nn.functional
METHODS = ()
