"""PyTorch's older names of tensors by dtype: `FloatTensor([1.0])`, and `isinstance` of them."""

from __future__ import annotations

from typing import Any

from dyngraph import dtypes
from dyngraph.described import Size
from dyngraph.ops.filled import empty
from dyngraph.ops.from_data import tensor
from dyngraph.ops.memory import detach
from dyngraph.tensor import Tensor

__all__ = [
    "BFloat16Tensor",
    "BoolTensor",
    "ByteTensor",
    "CharTensor",
    "DoubleTensor",
    "FloatTensor",
    "HalfTensor",
    "IntTensor",
    "LongTensor",
    "ShortTensor",
]


class TypedMeta(type):
    """Makes `isinstance` ask for the dtype, and the call a function."""

    dtype: dtypes.dtype

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance.dtype is cls.dtype

    def __call__(cls, *args: Any, device: Any = None) -> Tensor:
        if args and all(isinstance(n, int) and not isinstance(n, bool) for n in args):
            return empty(*args, dtype=cls.dtype, device=device)
        if len(args) > 1:
            raise TypeError(
                f"{cls.__name__}() takes sizes, or one sequence or tensor, got {len(args)} "
                "arguments. Put the values into a list."
            )
        data = args[0] if args else Size((0,))
        if isinstance(data, Size):
            return empty(data, dtype=cls.dtype, device=device)
        if isinstance(data, Tensor):
            return cls._alias(data)
        if isinstance(data, str) or not hasattr(data, "__len__"):
            raise TypeError(
                f"{cls.__name__}(): data must be a sequence (got {type(data).__name__}). For a "
                f"number write dg.tensor(..., dtype={cls.dtype})."
            )
        return tensor(data, dtype=cls.dtype, device=device)

    def _alias(cls, data: Tensor) -> Tensor:
        if data.dtype is not cls.dtype:
            raise TypeError(
                f"{cls.__name__}(): expected a tensor of dtype {cls.dtype}, got {data.dtype}. "
                "Convert it by .to()."
            )
        return detach(data)


class BFloat16Tensor(metaclass=TypedMeta):
    """Tensors of bfloat16; see `FloatTensor`."""

    dtype = dtypes.bfloat16


class BoolTensor(metaclass=TypedMeta):
    """Tensors of bool; see `FloatTensor`."""

    dtype = dtypes.bool


class ByteTensor(metaclass=TypedMeta):
    """Tensors of uint8; see `FloatTensor`."""

    dtype = dtypes.uint8


class CharTensor(metaclass=TypedMeta):
    """Tensors of int8; see `FloatTensor`."""

    dtype = dtypes.int8


class DoubleTensor(metaclass=TypedMeta):
    """Tensors of float64, which JAX has with `jax_enable_x64`; see `FloatTensor`."""

    dtype = dtypes.float64


class FloatTensor(metaclass=TypedMeta):
    """Tensors of float32, on whatever device.

    Called with a sequence it makes one of its values, with sizes an empty one, with a tensor of its
    dtype another over the same memory. Raises TypeError for other arguments, and for a tensor of
    another dtype.

    >>> dg.FloatTensor([1, 2])
    tensor([1., 2.])
    >>> dg.FloatTensor(2, 3).shape
    dyngraph.Size([2, 3])
    >>> isinstance(dg.ones(2), dg.FloatTensor), isinstance(dg.ones(2), dg.HalfTensor)
    (True, False)
    """

    dtype = dtypes.float32


class HalfTensor(metaclass=TypedMeta):
    """Tensors of float16; see `FloatTensor`."""

    dtype = dtypes.float16


class IntTensor(metaclass=TypedMeta):
    """Tensors of int32; see `FloatTensor`."""

    dtype = dtypes.int32


class LongTensor(metaclass=TypedMeta):
    """Tensors of int64, which JAX has with `jax_enable_x64`; see `FloatTensor`."""

    dtype = dtypes.int64


class ShortTensor(metaclass=TypedMeta):
    """Tensors of int16; see `FloatTensor`."""

    dtype = dtypes.int16
