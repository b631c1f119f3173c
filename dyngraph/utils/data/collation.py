"""Collation: a list of samples becomes one batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from dyngraph import dtypes
from dyngraph.ops.from_data import as_tensor
from dyngraph.ops.interchange import from_dlpack
from dyngraph.ops.joining import stack
from dyngraph.tensor import Tensor, wrap
from dyngraph.tracing import Tracer

__all__ = ["default_collate", "default_convert"]


def default_convert(data: Any) -> Any:
    """Tensors in the place of arrays, in containers of any depth; the rest as it is.

    >>> dg.utils.data.default_convert([np.ones(2, np.float32), "name"])
    [tensor([1., 1.]), 'name']
    """
    if isinstance(data, (Tensor, str, bytes)):
        return data
    if is_array(data):
        return tensor_of(data)
    return _in_container(data, default_convert)


def default_collate(batch: Sequence[Any]) -> Any:
    """One batch of samples: tensors, arrays and numbers stacked, strings listed, and containers
    collated part by part (tuples as a list).

    Python's floats become the default dtype. Raises RuntimeError for samples of different shapes or
    lengths, TypeError for what can't be put in a batch.

    >>> dg.utils.data.default_collate([{"x": 1.0, "name": "a"}, {"x": 2.0, "name": "b"}])
    {'x': tensor([1., 2.]), 'name': ['a', 'b']}
    >>> dg.utils.data.default_collate([(0, np.zeros(2, np.float32)), (1, np.ones(2, np.float32))])
    [tensor([0, 1]), tensor([[0., 0.],
            [1., 1.]])]
    """
    first = batch[0]
    if isinstance(first, Tensor):
        return _stacked(batch)
    if is_array(first):
        arrays = [np.asarray(sample) for sample in batch]
        _check_shapes([a.shape for a in arrays])
        return tensor_of(np.stack(arrays))
    if isinstance(first, bool):
        return wrap(jax.numpy.asarray(batch))
    if isinstance(first, float):
        return as_tensor(list(batch), dtype=dtypes.get_default_dtype())
    if isinstance(first, int):
        return as_tensor(list(batch))
    if isinstance(first, (str, bytes)):
        return list(batch)
    if isinstance(first, Mapping):
        collated = {key: default_collate([sample[key] for sample in batch]) for key in first}
        return _like(first, collated)
    if isinstance(first, Sequence):
        if len({len(sample) for sample in batch}) > 1:
            raise RuntimeError(
                "each element in list of batch should be of equal size, got lengths "
                f"{[len(sample) for sample in batch]}. Pad them, or pass a collate_fn."
            )
        parts = [default_collate(samples) for samples in zip(*batch, strict=True)]
        return type(first)(*parts) if hasattr(first, "_fields") else parts
    raise TypeError(
        "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; "
        f"found {type(first)}. Pass a collate_fn."
    )


def is_array(data: Any) -> bool:
    """Whether this is another library's array."""
    if isinstance(data, (np.ndarray, np.generic)):
        return data.dtype.kind in "biufcV"  # bfloat16 and its like are of kind V
    return isinstance(data, jax.Array) or hasattr(data, "__dlpack__")


def tensor_of(array: Any) -> Tensor:
    """A tensor of another library's array, without a copy where that can be."""
    if isinstance(array, jax.Array):
        return wrap(array)
    if isinstance(array, (np.ndarray, np.generic)):
        return as_tensor(array)
    return from_dlpack(array)


def _stacked(batch: Sequence[Tensor]) -> Tensor:
    _check_shapes([tuple(sample.shape) for sample in batch])
    arrays = [sample._cell.array for sample in batch]
    on_host = all(s.device.type == "cpu" and not s.requires_grad for s in batch)
    if not on_host or any(isinstance(a, Tracer) for a in arrays):
        return stack(list(batch))
    return wrap(jax.numpy.asarray(np.stack([np.asarray(a) for a in arrays])))


def _check_shapes(shapes: Sequence[tuple[int, ...]]) -> None:
    if len(set(shapes)) > 1:
        raise RuntimeError(
            "stack expects each tensor to be equal size, but the samples of this batch have the "
            f"shapes {sorted(set(shapes))}. Pad them, or pass a collate_fn."
        )


def _in_container(data: Any, convert: Callable[[Any], Any]) -> Any:
    if isinstance(data, Mapping):
        return _like(data, {key: convert(value) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*map(convert, data))
    if isinstance(data, (list, tuple)):
        return type(data)(map(convert, data))
    return data


def _like(mapping: Any, values: dict[Any, Any]) -> Any:
    """The values in a mapping of the same class, where that takes them."""
    try:
        return type(mapping)(values)
    except TypeError:
        return values
