"""Python's numbers, nested lists and numpy's arrays, read as numpy arrays in a tensor's dtype.

Shapes, dtypes and errors are PyTorch's: the first element of each level tells the shape, all of
them together tell the dtype, and an integer that its dtype does not hold is refused.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from dyngraph import dtypes
from dyngraph.tensor import Tensor

MAX_NESTING = 64


def host_values(where: str, data: Any, wanted: dtypes.dtype | None) -> np.ndarray:
    """The values as a numpy array of our own, in their final dtype."""
    kind = type(data)
    if kind in NUMBERS:
        return fit_numbers(data, wanted or dtype_of_number(kind))
    if hasattr(data, "__array__"):
        array = np.asarray(data)
        if array.dtype.kind not in "biufc" and array.dtype != dtypes.bfloat16.dtype:
            raise TypeError(
                f"can't convert np.ndarray of type {array.dtype}. The supported types are bool, "
                "integers, floating point and complex numbers."
            )
        target = wanted or _narrow(array.dtype)
        if array.dtype.kind in "iu" and target is not wanted:
            _check_range(array, target)
        with np.errstate(all="ignore"):
            return array.astype(target.dtype)
    if isinstance(data, (str, bytes)):
        raise TypeError(f"{where}(): invalid data type '{kind.__name__}'. Pass numbers.")
    if isinstance(data, Sequence):
        return _from_sequence(data, wanted)
    raise RuntimeError(
        f"Could not infer dtype of {kind.__name__}. Pass a number, nested lists of numbers, or an "
        "array."
    )


def _from_sequence(data: Sequence[Any], wanted: dtypes.dtype | None) -> np.ndarray:
    shape: list[int] = []
    first: Any = data
    while _is_sequence(first) and len(shape) <= MAX_NESTING:
        shape.append(len(first))
        if not shape[-1]:
            break
        first = first[0]
    if len(shape) > MAX_NESTING or isinstance(first, (str, bytes)):
        raise ValueError(f"too many dimensions '{type(first).__name__}'. Pass lists of numbers.")
    kinds: set[type] = set()
    _check_rows(data, shape, 0, kinds)
    if kinds <= NUMBERS.keys():
        found = dtypes.get_default_dtype()
        if kinds:
            found = functools.reduce(dtypes.promote_types, [dtype_of_number(k) for k in kinds])
        return fit_numbers(data, wanted or found).reshape(shape)
    found_dtypes: dict[dtypes.dtype, None] = {}
    plain = _plain(data, found_dtypes)
    found = functools.reduce(dtypes.promote_types, found_dtypes)
    return fit_numbers(plain, wanted or found)


def _is_sequence(value: Any) -> bool:
    if isinstance(value, (np.ndarray, jax.Array)):
        return value.ndim > 0
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _check_rows(data: Any, shape: Sequence[int], dim: int, kinds: set[type]) -> None:
    """Raises where `data` is not of that shape from `dim` on; collects its elements' types."""
    if len(data) != shape[dim]:
        raise ValueError(
            f"expected sequence of length {shape[dim]} at dim {dim} (got {len(data)}). All rows "
            "must have equal lengths."
        )
    if dim == len(shape) - 1:
        kinds.update(map(type, data))
        if any(issubclass(k, (list, tuple)) for k in kinds):
            raise TypeError(
                f"expected a number at dim {dim}, got a sequence. All rows must be nested as deep "
                "as the first."
            )
        return
    for row in data:
        if not _is_sequence(row):
            raise TypeError(
                f"not a sequence: expected one of length {shape[dim + 1]} at dim {dim + 1}, got "
                f"{type(row).__name__}. All rows must be nested as deep as the first."
            )
        _check_rows(row, shape, dim + 1, kinds)


def _plain(value: Any, found: dict[dtypes.dtype, None]) -> Any:
    """Nested lists with tensors and arrays replaced by numpy's; notes every dtype."""
    if isinstance(value, Tensor):
        if value.numel() != 1:
            raise ValueError(
                "only one element tensors can be converted to Python scalars, got one of shape "
                f"{list(value.shape)}. Use dg.stack() to put tensors together."
            )
        if value.requires_grad:
            warnings.warn(
                "Converting a tensor with requires_grad=True to a scalar may lead to unexpected "
                "behavior. Consider using tensor.detach() first.",
                UserWarning,
                stacklevel=6,
            )
        found[value.dtype] = None
        return np.asarray(value._cell.array).reshape(())[()]
    if isinstance(value, (np.ndarray, np.generic, jax.Array)):
        found[_narrow(value.dtype)] = None
        return np.asarray(value)[()]
    if _is_sequence(value):
        return [_plain(v, found) for v in value]
    if type(value) not in NUMBERS:
        if isinstance(value, (str, bytes)):
            raise ValueError(
                f"too many dimensions '{type(value).__name__}'. Pass lists of numbers."
            )
        raise RuntimeError(
            f"Could not infer dtype of {type(value).__name__}. Pass numbers, or an array."
        )
    found[dtype_of_number(type(value))] = None
    return value


def fit_numbers(data: Any, target: dtypes.dtype) -> np.ndarray:
    """Python numbers as an array of `target`; RuntimeError for an integer that it does not hold.

    As in PyTorch, a fraction is cut off and a negative number wraps around in an unsigned dtype.
    """
    array = np.array(data)
    if array.dtype == target.dtype:
        return array
    if array.dtype.kind not in "biufc" and array.dtype != dtypes.bfloat16.dtype:  # beyond 64 bits
        _refuse_range(target)
    if array.dtype.kind == "c" and not target.is_complex and target != dtypes.bool:
        raise TypeError(
            f"must be real number, not complex: {target.name} holds no imaginary part. Leave dtype "
            "out, or pass complex64."
        )
    if not target.is_differentiable and target != dtypes.bool:
        _check_range(array, target)
    with np.errstate(all="ignore"):
        return array.astype(target.dtype)


def _check_range(array: np.ndarray, target: dtypes.dtype) -> None:
    if array.size and array.dtype.kind != "b":
        limits = np.iinfo(target.dtype)
        low = limits.min if limits.min else -limits.max
        if not (array.min() > low - 1 and array.max() < limits.max + 1):  # False for NaN
            _refuse_range(target)


def _refuse_range(target: dtypes.dtype) -> None:
    hint = ""
    if target == dtypes.int32 == dtypes.default_int():
        hint = " 64-bit integers need jax.config.update('jax_enable_x64', True)."
    raise RuntimeError(f"value cannot be converted to type {target.name} without overflow.{hint}")


def dtype_of_number(kind: type) -> dtypes.dtype:
    return NUMBERS[kind]()


NUMBERS: dict[type, Callable[[], dtypes.dtype]] = {
    bool: lambda: dtypes.bool,
    int: dtypes.default_int,
    float: dtypes.get_default_dtype,
    complex: lambda: dtypes.get_default_dtype().to_complex(),
}


def _narrow(numpy_dtype: Any) -> dtypes.dtype:
    """The dtype as JAX can hold it: 32-bit for 64-bit ones while x64 is off."""
    native = numpy_dtype.newbyteorder("=")
    return dtypes.of(np.dtype(jax.dtypes.canonicalize_dtype(native)))
