"""Tensors of memory that others wrote: buffers, files, and arrays that speak DLPack."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np

from dyngraph import devices, dtypes
from dyngraph.ops.factory_arguments import check_tensor, place_of
from dyngraph.ops.from_data import from_values
from dyngraph.tensor import Tensor, wrap


def frombuffer(
    buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Tensor:
    """A vector of `count` elements (-1: all) that begin `offset` bytes into a buffer, as a copy.

    PyTorch's shares the buffer's memory: JAX's arrays do not change. Raises ValueError for an
    object without a buffer, and for bytes that are too few or do not come out even.

    >>> dg.frombuffer(bytes([1, 0, 2, 0]), dtype=dg.int16)
    tensor([1, 2], dtype=dyngraph.int16)
    """
    wanted = dtypes.as_dtype(dtype)
    size = wanted.itemsize
    try:
        held = memoryview(buffer).cast("B")
    except TypeError:
        raise ValueError(
            f"object does not implement Python buffer protocol: {type(buffer).__name__}. Use "
            "dg.tensor() for lists."
        ) from None
    length = held.nbytes
    if not length or not count:
        raise ValueError(f"both buffer length ({length}) and count ({count}) must not be 0")
    if not 0 <= offset < length:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length "
            f"({length} bytes) minus 1"
        )
    if count < 0 and (length - offset) % size:
        raise ValueError(
            f"buffer length ({length - offset} bytes) after offset ({offset} bytes) must be a "
            f"multiple of element size ({size}). Pass count for the part to read."
        )
    if count > 0 and offset + count * size > length:
        raise ValueError(
            f"requested buffer length ({count} * {size} bytes) after offset ({offset} bytes) must "
            f"not be greater than actual buffer length ({length} bytes)"
        )
    values = np.frombuffer(held, wanted.dtype, max(count, -1), offset)
    return from_values("frombuffer", values, wanted, None, requires_grad)


def from_file(
    filename: str,
    shared: bool | None = None,
    size: int = 0,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """A vector of the first `size` elements of a file of numbers, as a copy.

    Raises RuntimeError for `shared=True`, by which PyTorch's tensor would write to the file, and
    for a file that is too short.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     dg.from_file(file.name, size=0)
    tensor([])
    """
    if shared:
        raise RuntimeError(
            "from_file() does not map files, since JAX arrays do not change. Pass shared=False, "
            "and write the file anew by x.numpy().tofile(filename)."
        )
    wanted = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    held = Path(filename).stat().st_size
    if held < size * wanted.itemsize:
        raise RuntimeError(
            f"from_file(): expected a file of at least {size} * {wanted.itemsize} bytes, but "
            f"{filename} has {held}. Pass the size that it has."
        )
    values = np.fromfile(filename, wanted.dtype, size)
    return from_values("from_file", values, wanted, place_of(device), requires_grad)


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A leaf with the values of another library's array, whose memory it shares where it can.

    The other side is not to write to that from then on: `copy=True` asks for memory of its own.
    Raises TypeError for an object that does not speak DLPack, a capsule among them, which does not
    say where its memory is.

    >>> dg.from_dlpack(np.ones(2, np.float32))
    tensor([1., 1.])
    """
    if not (hasattr(ext_tensor, "__dlpack__") and hasattr(ext_tensor, "__dlpack_device__")):
        raise TypeError(
            "from_dlpack() expects an array with __dlpack__ and __dlpack_device__, got "
            f"{type(ext_tensor).__name__}. Pass the array itself rather than a capsule of it."
        )
    place = None if device is None else devices.as_jax_device(device)
    array = jax.dlpack.from_dlpack(ext_tensor, device=place, copy=copy)
    return wrap(jax.numpy.array(array) if copy else array)  # JAX may not have copied


def to_dlpack(tensor: Tensor) -> Any:
    """A DLPack capsule of the values, which another library may read once, and not write to.

    >>> type(dg.to_dlpack(dg.ones(2))).__name__
    'PyCapsule'
    """
    check_tensor("to_dlpack", tensor)
    return tensor._cell.array.__dlpack__()  # type: ignore[attr-defined]


__all__ = ["from_dlpack", "from_file", "frombuffer", "to_dlpack"]
METHODS = ()
"""The functions of this file that are methods of Tensor too."""
