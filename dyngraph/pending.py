"""Pending: a value that a kernel call which was put off will make, of a Kind that is known.

# Note [Kernels are put off]
In deferred mode an operator notes its kernel's call in a Sequence, and its result's Storage holds a
Pending in place of an array. Shape and dtype are known at once. Whoever asks a Storage for its
`array` makes the whole sequence run; what looks no further than `held`, as operators, views, writes
and nodes do, makes nothing run. So no rule has to be learned: a program that asks for a value gets
it.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

if TYPE_CHECKING:
    from dyngraph.sequence import Sequence

MAX_KINDS = 1 << 16
PUT_OFF = "dyngraph_put_off"
"""The attribute that marks the error of a call that was put off: where it was made."""


class Kind:
    """Shape and dtype of a value, and whether its dtype gives way to others; equal ones are one
    object, so that they are compared and hashed at once. `x64` says in which of JAX's modes it
    is."""

    __slots__ = ("dtype", "shape", "weak_type", "x64")

    def __init__(self, shape: tuple[int, ...], dtype: Any, weak_type: bool, x64: bool) -> None:
        self.shape = shape
        self.dtype = dtype
        self.weak_type = weak_type
        self.x64 = x64

    def struct(self) -> jax.ShapeDtypeStruct:
        """The same for JAX."""
        return jax.ShapeDtypeStruct(self.shape, self.dtype, weak_type=self.weak_type)


_kinds: dict[Any, Kind] = {}


def kind_of(value: Any, x64: bool) -> Kind:
    """The Kind of an array, or of what JAX knows of one."""
    weak = getattr(value, "weak_type", False)
    dtype = value.dtype
    if not x64 and dtype.itemsize == 8 and isinstance(value, (np.ndarray, np.generic)):
        dtype = jax.dtypes.canonicalize_dtype(dtype)
    key = value.shape, dtype, weak, x64
    kind = _kinds.get(key)
    if kind is None:
        if len(_kinds) >= MAX_KINDS:
            _kinds.clear()
        kind = _kinds.setdefault(key, Kind(*key))
    return kind


class Failed:
    """In place of a value: the error of the call that was to make it."""

    __slots__ = ("error",)

    def __init__(self, error: BaseException) -> None:
        self.error = error


class Pending:
    """What a call will make: the `number`th value of its sequence, of a known kind.

    Once the call has run, `value` is the array and `sequence` None.
    """

    __slots__ = ("__weakref__", "kind", "number", "sequence", "value")

    kind: Kind
    number: int
    sequence: Sequence | None
    value: Any

    def force(self) -> Any:
        """The array; what is needed for it runs now. Raises what its call raised."""
        sequence = self.sequence
        if sequence is not None:
            sequence.run()
        value = self.value
        if value.__class__ is Failed:
            raise value.error.with_traceback(None)
        assert value is not None, "a kernel asks for a value that it is to make"
        return value

    @property
    def shape(self) -> tuple[int, ...]:
        return self.kind.shape

    @property
    def dtype(self) -> Any:
        return self.kind.dtype

    @property
    def weak_type(self) -> bool:
        return self.kind.weak_type

    @property
    def aval(self) -> Kind:
        return self.kind

    @property
    def ndim(self) -> int:
        return len(self.kind.shape)

    @property
    def size(self) -> int:
        count = 1
        for n in self.kind.shape:
            count *= n
        return count

    @property
    def nbytes(self) -> int:
        return self.size * self.kind.dtype.itemsize

    @property
    def sharding(self) -> Any:
        """Where it will be; spread over several devices, only running it tells how."""
        sequence = self.sequence
        if sequence is None or len(sequence.devices or ()) > 1:
            return self.force().sharding
        device = next(iter(sequence.devices or ()), None)
        return _sharding(device or jax.config.jax_default_device)  # type: ignore[attr-defined]

    @property
    def committed(self) -> bool:
        sequence = self.sequence
        return self.force().committed if sequence is None else sequence.devices is not None

    def devices(self) -> set[Any]:
        return self.sharding.device_set


@functools.cache
def _sharding(device: Any) -> Any:
    """That of an array on one device, by default JAX's first one; made once, since its hash is
    slow."""
    return jax.sharding.SingleDeviceSharding(device or jax.devices()[0])


def resolved(value: Any) -> Any:
    """The array of what a Storage holds."""
    return value.force() if value.__class__ is Pending else value
