"""Elements where a boolean mask is true: filled, selected, or written."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from dyngraph.ops.host_values import array_of, as_int, described, on_host
from dyngraph.ops.operator import define
from dyngraph.ops.out import takes_out
from dyngraph.tensor import Tensor
from dyngraph.tracing import Tracer


def _masked_fill(self: Any, mask: Any, value: Any) -> Any:
    if mask.dtype != bool:
        raise RuntimeError(
            f"masked_fill_ only supports boolean masks, but got mask with dtype {mask.dtype}. "
            "Convert it by .bool()."
        )
    if value.ndim:
        raise RuntimeError(
            "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with "
            f"{value.ndim} dimension(s). Use where()."
        )
    if not jnp.can_cast(value.dtype, self.dtype, "same_kind"):
        raise RuntimeError(
            f"value cannot be converted to type {self.dtype} without overflow, got a value of "
            f"{value.dtype}"
        )
    return jnp.where(mask, value.astype(self.dtype), self)


_fill_rules: dict[str, Any] = {
    "self": lambda grad, mask: jnp.where(mask, jnp.zeros((), grad.dtype), grad),
    "mask": None,
}
_masked_fill_number = define("masked_fill", _masked_fill, **_fill_rules, value=None)
_masked_fill_tensor = define(
    "masked_fill",
    _masked_fill,
    node="MaskedFillBackward1",
    **_fill_rules,
    value=lambda grad, mask: jnp.where(mask, grad, jnp.zeros((), grad.dtype)),
)


def masked_fill(input: Tensor, mask: Any, value: Any) -> Tensor:
    """The input with `value`, a number or a tensor without dims, wherever `mask` is True.

    `mask`, of booleans, broadcasts with the input. Raises RuntimeError for any other dtype.

    >>> dg.ones(3).masked_fill(dg.tensor([True, False, True]), 0.0)
    tensor([0., 1., 0.])
    """
    run = _masked_fill_tensor if isinstance(value, Tensor) else _masked_fill_number
    return run(input, mask, value)


_masked_select = define(
    "masked_select",
    lambda self, positions, *, shape: jnp.broadcast_to(self, shape).reshape(-1)[positions],
    signature="self, positions, shape",
    self=lambda grad, positions, shape: (
        jnp.zeros(math.prod(shape), grad.dtype).at[positions].add(grad).reshape(shape)
    ),
    positions=None,
)


@takes_out
def masked_select(input: Tensor, mask: Any) -> Tensor:
    """The elements where `mask` is True, in a row; input and mask broadcast.

    The length depends on the mask's values, so that each new length compiles a kernel, and under a
    compiled step it raises RuntimeError.

    >>> dg.masked_select(dg.tensor([1.0, 2.0, 3.0]), dg.tensor([True, False, True]))
    tensor([1., 3.])
    """
    values = on_host("masked_select", mask)
    if values.dtype != bool:
        raise RuntimeError(
            f"masked_select: expected BoolTensor for mask, got {values.dtype}. Use mask.bool()."
        )
    shape = np.broadcast_shapes(described(input).shape, values.shape)
    positions = np.flatnonzero(np.broadcast_to(values, shape))
    return _masked_select(input, as_int(positions), shape)


def _masked_scatter_kernel(self: Any, mask: Any, source: Any) -> Any:
    if mask.dtype != bool:
        raise RuntimeError(
            f"masked_scatter_ only supports boolean masks, but got mask with dtype {mask.dtype}. "
            "Convert it by .bool()."
        )
    if self.dtype != source.dtype:
        raise RuntimeError(
            "masked_scatter: expected self and source to have same dtypes but got "
            f"{self.dtype} and {source.dtype}. Convert one of them by .to()."
        )
    shape = np.broadcast_shapes(self.shape, mask.shape)
    mask = jnp.broadcast_to(mask, shape)
    order = (jnp.cumsum(mask.reshape(-1)) - 1).reshape(shape)
    return jnp.where(mask, source.reshape(-1)[jnp.maximum(order, 0)], self)


_masked_scatter = define("masked_scatter", _masked_scatter_kernel, mask=None)


def masked_scatter(input: Tensor, mask: Any, source: Any) -> Tensor:
    """The input with the elements of `source`, in order, where `mask` is True.

    Raises RuntimeError where `source` has fewer elements than the mask has places.

    >>> dg.zeros(3).masked_scatter(dg.tensor([True, False, True]), dg.tensor([1.0, 2.0]))
    tensor([1., 0., 2.])
    """
    array, values = array_of(mask), array_of(source)
    if not isinstance(array, Tracer):
        shape = np.broadcast_shapes(described(input).shape, array.shape)
        count = int(np.broadcast_to(np.asarray(array), shape).sum())
        if count > values.size:
            raise RuntimeError(
                "masked_scatter: source has too few elements for the places of the mask, "
                f"got {count} places and {values.size} elements"
            )
    return _masked_scatter(input, mask, source)


__all__ = [
    "masked_fill",
    "masked_scatter",
    "masked_select",
]

METHODS = tuple(__all__)
"""The functions of this file that are methods of Tensor too."""
