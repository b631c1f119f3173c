"""Values of tensors that are read on the host: bounds of indices, sizes that depend on values.

Reading waits for the kernels that make those values, and for nothing else. Under a JAX trace there
are no values: a check then finds nothing, and what needs them raises.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dyngraph import dtypes
from dyngraph.tensor import Tensor, wrap
from dyngraph.tracing import Tracer

_SMALL = 1 << 14


@jax.jit
def _min_and_max(index: jax.Array) -> jax.Array:
    return jnp.stack([index.min(), index.max()])


def array_of(value: Any) -> Any:
    """The jax or numpy array behind a tensor, array, list or number."""
    if isinstance(value, Tensor):
        return value._cell.array
    if isinstance(value, (jax.Array, np.ndarray)):
        return value
    array = np.asarray(value)
    if array.dtype.kind in "OSU":
        raise TypeError(
            f"expected Tensor, an array or numbers, got {value!r} ({type(value).__name__}). Make "
            "one by dg.tensor(...)."
        )
    return array


def described(value: Any) -> Any:
    """What stands for that array, for those who ask for its shape or its dtype: it may be
    pending."""
    return value._cell.held if isinstance(value, Tensor) else array_of(value)


def outside(index: Any, low: int, high: int) -> int | None:
    """A value of `index` that is not in `range(low, high)`; None where there is none.

    Under a JAX trace the values are not known, and nothing is found.
    """
    array = array_of(index)
    if isinstance(array, Tracer) or not array.size:
        return None
    if array.size > _SMALL and isinstance(array, jax.Array):
        array = _min_and_max(array)
    array = np.asarray(array)
    smallest, largest = int(array.min()), int(array.max())
    if smallest < low:
        return smallest
    return largest if largest >= high else None


def refuse_outside(index: Any, size: int, dim: int) -> None:
    """IndexError where a position, counted from either end, is out of bounds."""
    bad = outside(index, -size, size)
    if bad is not None:
        raise IndexError(f"index {bad} is out of bounds for dimension {dim} with size {size}")


def on_host(where: str, value: Any) -> np.ndarray:
    """The values of `value` as a numpy array; under a JAX trace there are none, and it raises."""
    array = array_of(value)
    if isinstance(array, Tracer):
        raise RuntimeError(
            f"{where}: the shape of the result depends on values, which are not known while a "
            "program is traced. Call it outside the compiled function, or use where()."
        )
    return np.asarray(array)


def from_host(values: Any, like: Any) -> Tensor:
    """A tensor of host values on the device of `like`."""
    array, beside = jnp.asarray(values), array_of(like)
    if isinstance(beside, jax.Array) and array.devices() != beside.devices():
        array = jax.device_put(array, min(beside.devices(), key=lambda device: device.id))
    return wrap(array)


def as_int(positions: np.ndarray) -> np.ndarray:
    """Positions as the integer type of index results, which JAX takes without a conversion."""
    return positions.astype(dtypes.default_int().dtype, copy=False)
