"""Tensors from data: numbers, nested lists, numpy's and JAX's arrays, other tensors.

Nothing here is recorded, apart from a conversion that `as_tensor` and `asarray` may make. Values
that Python computed go to the device by one copy.

Every function takes `dtype`, `device` and `requires_grad`; `layout`, `pin_memory` and
`memory_format` are accepted as PyTorch's programs pass them, and change nothing.
"""

from __future__ import annotations

import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dyngraph import dtypes
from dyngraph.ops.conversion import convert
from dyngraph.ops.factory_arguments import number, place_like, place_of
from dyngraph.ops.literals import host_values
from dyngraph.tensor import Tensor, wrap


def tensor(
    data: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A new leaf with the values of a number, nested lists, or an array, which is copied.

    Python floats become the default dtype, ints the default integer; numpy's and JAX's arrays and
    scalars keep their dtype. While JAX has x64 off, 64-bit ones become 32-bit ones, but
    asking for a 64-bit `dtype` raises TypeError. Raises ValueError for lists of unequal
    lengths, and RuntimeError for an integer that does not fit its dtype.

    >>> dg.tensor([[1.0, 2.0], [3.0, 4.0]])
    tensor([[1., 2.],
            [3., 4.]])
    >>> dg.tensor([1, 2], dtype=dg.float16, requires_grad=True)
    tensor([1., 2.], dtype=dyngraph.float16, requires_grad=True)
    """
    if isinstance(data, Tensor):
        _warn_of_copy("dg.tensor")
    return from_values("tensor", data, dtype, place_of(device), requires_grad)


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """`data` as a tensor, with as little work as that takes.

    A Tensor keeps its history, and is returned itself where nothing changes; a `jax.Array` is
    shared; numpy arrays are copied, since a JAX array must not change.

    >>> x = dg.ones(2)
    >>> dg.as_tensor(x) is x
    True
    """
    if isinstance(data, Tensor):
        return convert(data, None if dtype is None else dtypes.as_dtype(dtype), device)
    return from_values("as_tensor", data, dtype, place_of(device), False)


def asarray(
    obj: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    copy: bool | None = None,
    requires_grad: bool | None = None,
) -> Tensor:
    """`obj` as a tensor; `copy=True` forces a copy, `copy=False` refuses one by a ValueError.

    A Tensor keeps its history, unless `requires_grad=False` asks for one outside the graph.

    >>> dg.asarray([1, 2], dtype=dg.float32)
    tensor([1., 2.])
    """
    shared = obj
    if isinstance(obj, jax.Array):
        shared = from_jax_array(obj)
    if not isinstance(shared, Tensor):
        if copy is False:
            raise ValueError(
                f"can't alias {type(obj).__name__} into a tensor, since JAX arrays do not change. "
                "Leave copy out."
            )
        return from_values("asarray", obj, dtype, place_of(device), bool(requires_grad))
    wanted = None if dtype is None else dtypes.as_dtype(dtype)
    result = convert(shared, wanted, device, copy=bool(copy))
    if copy is False and result is not shared:
        raise ValueError("can't alias the tensor with another dtype or device. Leave copy out.")
    if requires_grad is None or requires_grad == result.requires_grad:
        return result
    return result.requires_grad_() if requires_grad else result.detach()


def from_numpy(ndarray: np.ndarray) -> Tensor:
    """A tensor with the values and dtype of a numpy array.

    It does not share the array's memory, as PyTorch's does: JAX arrays do not change. Raises
    TypeError for anything but a numpy array.

    >>> dg.from_numpy(np.array([1, 2], np.int8))
    tensor([1, 2], dtype=dyngraph.int8)
    """
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(
            f"expected np.ndarray (got {type(ndarray).__name__}). Use dg.tensor() for other data."
        )
    return from_values("from_numpy", ndarray, None, None, False)


def from_jax_array(array: jax.Array, *, requires_grad: bool = False) -> Tensor:
    """A leaf over a `jax.Array`, which is shared, with its dtype and sharding.

    Raises TypeError for anything else, typed PRNG keys among them.

    >>> dg.from_jax_array(jnp.arange(3.0), requires_grad=True)
    tensor([0., 1., 2.], requires_grad=True)
    """
    if not isinstance(array, jax.Array) or jnp.issubdtype(array.dtype, jax.dtypes.prng_key):
        found = array.dtype if isinstance(array, jax.Array) else type(array).__name__
        raise TypeError(f"expected a jax.Array of numbers, got {found}. Use dg.tensor().")
    return wrap(array, requires_grad=requires_grad)


def scalar_tensor(
    s: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A tensor without dims from a number, in the default dtype whatever the number's type.

    >>> dg.scalar_tensor(3)
    tensor(3.)
    """
    wanted = dtypes.get_default_dtype() if dtype is None else dtype
    value = number("scalar_tensor", "s", s)
    return from_values("scalar_tensor", value, wanted, place_of(device), requires_grad)


def from_values(where: str, data: Any, dtype: Any, place: Any, requires_grad: bool) -> Tensor:
    wanted = None if dtype is None else dtypes.as_dtype(dtype)
    if isinstance(data, Tensor):
        data = data._cell.array
    if isinstance(data, jax.Array):
        array = convert(from_jax_array(data), wanted, None)._cell.array
        if place is not None:  # two arrays in one memory can't tell that an update overwrites it
            array = jax.device_put(array, place, may_alias=False)
        return wrap(array, requires_grad=requires_grad)
    values = host_values(where, data, wanted)
    if place is not None:
        array = jax.device_put(values, place)
    else:
        array = _upload_number(values) if values.ndim == 0 else jax.device_put(values)
    return wrap(array, requires_grad=requires_grad)


_upload_number = jax.jit(lambda value: value)
"""Puts a number on the default device in a third of the time that `jnp.asarray` takes."""


def _warn_of_copy(where: str) -> None:
    warnings.warn(
        "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone(), "
        f"with requires_grad_() where that is wanted, rather than {where}(sourceTensor).",
        UserWarning,
        stacklevel=3,
    )


def new_tensor(
    input: Tensor,
    data: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A tensor of `data`, as `dg.tensor` makes it, with the dtype and device of this one.

    >>> dg.ones(2).new_tensor([1, 2])
    tensor([1., 2.])
    """
    if isinstance(data, Tensor):
        _warn_of_copy("tensor.new_tensor")
    wanted = input.dtype if dtype is None else dtype
    place = place_like(input, device, same_shape=False)
    return from_values("new_tensor", data, wanted, place, requires_grad)


__all__ = [
    "as_tensor",
    "asarray",
    "from_jax_array",
    "from_numpy",
    "scalar_tensor",
    "tensor",
]

METHODS = ("new_tensor",)
"""The methods of Tensor that this file has."""
