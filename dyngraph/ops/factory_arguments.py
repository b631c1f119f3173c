"""Arguments that functions which make tensors share: sizes, devices, numbers."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from dyngraph import devices
from dyngraph.ops.operator import UNSET
from dyngraph.tensor import Tensor
from dyngraph.tracing import Tracer


def read_size(where: str, sizes: Sequence[Any], size: Any = UNSET) -> tuple[int, ...]:
    """The shape that `f(2, 3)`, `f((2, 3))` or `f(size=(2, 3))` ask for.

    Raises TypeError for what is no int, RuntimeError for a negative one.
    """
    if size is not UNSET:
        if sizes:
            raise TypeError(f"{where}() got its size twice: by position and by keyword.")
        sizes = (size,)
    elif not sizes:
        raise TypeError(
            f"{where}() missing 1 required positional argument: 'size'. Pass () for a tensor "
            "without dims."
        )
    if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)):
        sizes = sizes[0]
    try:
        shape = tuple([operator.index(n) for n in sizes])
    except TypeError:
        raise TypeError(
            f"{where}(): argument 'size' must be tuple of ints, got {tuple(sizes)!r}."
        ) from None
    if shape and min(shape) < 0:
        raise RuntimeError(
            f"{where}: Dimension size must be non-negative, got a negative one in {list(shape)}."
        )
    return shape


def only_size(where: str, size: Any) -> tuple[int, ...]:
    """The shape of a function that takes it as one tuple, with another argument after it."""
    if not isinstance(size, (tuple, list)):
        raise TypeError(
            f"{where}(): argument 'size' (position 1) must be tuple of ints, not "
            f"{type(size).__name__}. Write {where}(({size},), ...)."
        )
    return read_size(where, (size,))


def place_of(device: Any) -> jax.sharding.Sharding | None:
    """Where to make a tensor, by default the default device; None is JAX's, to which the array is
    not bound."""
    if device is None:
        device = devices.default()
        if device is None:
            return None
    place = devices.as_jax_device(device)
    is_device = isinstance(place, jax.Device)
    return jax.sharding.SingleDeviceSharding(place) if is_device else place  # type: ignore[arg-type]


def place_like(tensor: Tensor, device: Any, *, same_shape: bool = True) -> Any:
    """The place that `device` names, by default that of `tensor`."""
    array = tensor._cell.held
    if device is not None:
        return place_of(device)
    if isinstance(array, Tracer) or not array.committed:
        return None
    if same_shape or len(array.devices()) == 1:
        return array.sharding
    return None


def check_tensor(where: str, input: Any) -> None:
    """Raises TypeError where the first argument is no Tensor."""
    if not isinstance(input, Tensor):
        raise TypeError(
            f"{where}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}. "
            "Make one by dg.tensor(...)."
        )


def number(where: str, name: str, value: Any) -> Any:
    """A Python number from a number or a tensor of one element."""
    if isinstance(value, (Tensor, jax.Array, np.ndarray, np.generic)) and value.ndim == 0:
        return value.item()
    if not isinstance(value, (bool, int, float, complex)):
        raise TypeError(f"{where}(): argument '{name}' must be Number, not {type(value).__name__}.")
    return value
