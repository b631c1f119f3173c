"""Element types: PyTorch's names for JAX's dtypes, the default dtype, and 64-bit checks.

One `dtype` object stands for one numpy dtype, so identity and equality agree.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

__all__ = [
    "bfloat16",
    "bool",
    "can_cast",
    "cdouble",
    "cfloat",
    "complex128",
    "complex64",
    "double",
    "dtype",
    "finfo",
    "float",
    "float16",
    "float32",
    "float64",
    "get_default_dtype",
    "half",
    "iinfo",
    "int",
    "int16",
    "int32",
    "int64",
    "int8",
    "long",
    "promote_types",
    "set_default_dtype",
    "short",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
]

_INTERNED: dict[np.dtype, dtype] = {}


class dtype:  # noqa: N801 - PyTorch's name
    """The type of a tensor's elements; equal to the numpy or JAX dtype that it stands for.

    >>> dg.tensor([1.0]).dtype
    dyngraph.float32
    >>> dg.float32 == jnp.float32
    True
    """

    __slots__ = ("dtype", "is_complex", "is_floating_point", "itemsize", "name")

    def __init__(self, numpy_dtype: np.dtype) -> None:
        self.dtype = (
            numpy_dtype  # the attribute by which numpy and JAX accept this object as a dtype
        )
        self.name = numpy_dtype.name
        self.itemsize = numpy_dtype.itemsize
        self.is_floating_point = builtins.bool(jnp.issubdtype(numpy_dtype, jnp.floating))
        self.is_complex = builtins.bool(jnp.issubdtype(numpy_dtype, jnp.complexfloating))
        _INTERNED[numpy_dtype] = self

    @property
    def is_differentiable(self) -> builtins.bool:
        """Whether tensors of this dtype may require grad: floating point and complex ones may."""
        return self.is_floating_point or self.is_complex

    @property
    def is_signed(self) -> builtins.bool:
        """Whether values below zero exist in it."""
        return not jnp.issubdtype(self.dtype, jnp.unsignedinteger) and self.name != "bool"

    def to_real(self) -> dtype:
        """The dtype of a complex dtype's parts; a real one is its own."""
        return of(np.dtype(jnp.finfo(self.dtype).dtype)) if self.is_complex else self

    def to_complex(self) -> dtype:
        """The complex dtype whose parts have this dtype."""
        return self if self.is_complex else of(jnp.promote_types(self.dtype, jnp.complex64))

    def __repr__(self) -> str:
        return f"dyngraph.{self.name}"

    def __eq__(self, other: object) -> builtins.bool:
        if isinstance(other, dtype):
            return self.dtype == other.dtype
        if other is None:  # which numpy takes for float64
            return False
        try:
            return self.dtype == np.dtype(other)  # type: ignore[call-overload]
        except TypeError:
            return False

    def __hash__(self) -> builtins.int:
        return hash(self.dtype)

    def __reduce__(self) -> str:
        return self.name


bool = dtype(np.dtype("bool"))
uint8 = dtype(np.dtype("uint8"))
uint16 = dtype(np.dtype("uint16"))
uint32 = dtype(np.dtype("uint32"))
uint64 = dtype(np.dtype("uint64"))
int8 = dtype(np.dtype("int8"))
int16 = short = dtype(np.dtype("int16"))
int32 = int = dtype(np.dtype("int32"))
int64 = long = dtype(np.dtype("int64"))
float16 = half = dtype(np.dtype("float16"))
bfloat16 = dtype(np.dtype(jnp.bfloat16))
float32 = float = dtype(np.dtype("float32"))
float64 = double = dtype(np.dtype("float64"))
complex64 = cfloat = dtype(np.dtype("complex64"))
complex128 = cdouble = dtype(np.dtype("complex128"))

_WIDE = {int64: int32, uint64: uint32, float64: float32, complex128: complex64}
_default = float32
on_new_default: list[Callable[[], None]] = []
"""What to call when the default dtype changes: whoever compiled it in forgets what it compiled."""


def of(numpy_dtype: np.dtype) -> dtype:
    """The dtype object of a numpy dtype."""
    return _INTERNED.get(numpy_dtype) or dtype(numpy_dtype)


def as_dtype(value: Any) -> dtype:
    """The dtype that `value` names: a dtype of ours, of numpy's or JAX's, a string, `bool`.

    Raises TypeError for anything else, and for a 64-bit dtype while JAX has x64 off.
    """
    if not isinstance(value, dtype):
        if value is builtins.float:
            value = _default
        elif value is builtins.int:
            value = default_int()
        elif value is builtins.complex:
            value = _default.to_complex()
        try:
            value = of(np.dtype(value))
        except TypeError:
            raise TypeError(
                f"expected a dtype such as dyngraph.float32, got {value!r} "
                f"({type(value).__name__}). Pass one of dyngraph's dtypes, a numpy dtype or its "
                f"name."
            ) from None
    if value in _WIDE and not jax.config.jax_enable_x64:  # type: ignore[attr-defined]
        raise TypeError(
            f"{value.name} needs 64-bit types, which JAX has switched off. Call "
            "jax.config.update('jax_enable_x64', True) before making tensors, or use "
            f"{_WIDE[value].name}."
        )
    return value


def default_int() -> dtype:
    """The dtype of tensors made from Python ints: int64 where JAX has it, else int32."""
    return int64 if jax.config.jax_enable_x64 else int32  # type: ignore[attr-defined]


def get_default_dtype() -> dtype:
    """The dtype of tensors made from Python floats.

    >>> dg.get_default_dtype()
    dyngraph.float32
    """
    return _default


def set_default_dtype(d: Any) -> None:
    """Makes `d`, a floating point dtype, the dtype of tensors made from Python floats.

    Raises TypeError for a dtype that is not floating point.

    >>> dg.set_default_dtype(dg.bfloat16)
    >>> dg.tensor(1.0).dtype
    dyngraph.bfloat16
    >>> dg.set_default_dtype(dg.float32)
    """
    global _default
    wanted = as_dtype(d)
    if not wanted.is_floating_point:
        raise TypeError(
            f"only floating-point types are supported as the default type, got {wanted}. "
            "Pass float16, bfloat16, float32 or float64."
        )
    _default = wanted
    for forget in on_new_default:
        forget()


def promote_types(type1: Any, type2: Any) -> dtype:
    """The dtype of a result of operands of both dtypes, by JAX's lattice.

    >>> dg.promote_types(dg.int32, dg.float16)
    dyngraph.float16
    """
    return of(np.dtype(jnp.promote_types(as_dtype(type1).dtype, as_dtype(type2).dtype)))


def can_cast(from_: Any, to: Any) -> builtins.bool:
    """Whether a result of the first dtype may be written to a tensor of the second.

    Complex numbers do not go into real ones, floats not into integers, nothing else into bools.

    >>> dg.can_cast(dg.float32, dg.float16), dg.can_cast(dg.float32, dg.int32)
    (True, False)
    """
    given, wanted = as_dtype(from_), as_dtype(to)
    if given.is_complex:
        return wanted.is_complex
    if given.is_floating_point:
        return wanted.is_differentiable
    return given.name == "bool" or wanted.name != "bool"


def finfo(type: Any = None) -> Any:
    """Limits of a floating point dtype, the default one without an argument.

    >>> dg.finfo(dg.float32).eps
    np.float32(1.1920929e-07)
    """
    return jnp.finfo(as_dtype(_default if type is None else type).dtype)


def iinfo(type: Any) -> Any:
    """Limits of an integer dtype.

    >>> dg.iinfo(dg.int8).max
    127
    """
    return jnp.iinfo(as_dtype(type).dtype)
