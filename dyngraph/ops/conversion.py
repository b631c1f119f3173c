"""Conversions of dtype and device: `to` and the methods that are short for it.

A conversion that changes nothing returns the tensor itself. One to a floating point or complex
dtype is recorded as ToCopyBackward0, whose gradient goes back to the dtype and device of the input.
"""

from __future__ import annotations

import builtins
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Sharding

from dyngraph import devices, dtypes, modes
from dyngraph.graph.node import InputMetadata, Node, Values, creation_numbers
from dyngraph.kernels import same
from dyngraph.ops.operator import define
from dyngraph.pending import Pending
from dyngraph.placement import can_constrain, devices_of, place_beside
from dyngraph.storage import cell_of
from dyngraph.tangents import give_tangent, tangents_of
from dyngraph.tensor import Tensor, new_tensor
from dyngraph.tracing import Tracer
from dyngraph.values import spreader


def _cast(self: Any, *, dtype: Any) -> Any:
    if jnp.iscomplexobj(self) and not jnp.issubdtype(dtype, jnp.complexfloating):
        self = self != 0 if dtype == np.bool_ else self.real
    return self.astype(dtype)


_to_copy = define("to_copy", _cast, node="ToCopyBackward0", self=same)
_to_copy_without_gradient = define("to_copy_without_gradient", _cast, differentiable=False)
_cast_array = jax.jit(_cast, static_argnames="dtype")


class MoveNode(Node):
    """The node of a copy to another device: sends the gradient back to where the input is.

    It is no operator's node, because a kernel runs on one set of devices only.
    """

    __slots__ = ("destination", "source", "source_dtype")

    def __init__(self, moved: Tensor, result: jax.Array) -> None:
        outputs = ((result.shape, result.dtype),)
        self.record = ((moved.gradient_edge(),), next(creation_numbers), outputs, None)
        self.destination = result.sharding
        self.source = moved._cell.array.sharding
        self.source_dtype = moved._cell.held.dtype

    def name(self) -> str:
        return "ToCopyBackward0"

    def apply(self, grads: Sequence[Any], values: Values) -> Sequence[Any]:
        (grad,) = grads
        if grad is None:
            return (None,)
        values.settle("a move to another device", self)
        moved = _move(values.wrap(grad), self.source_dtype, self.source)
        return (values.unwrap(moved, None, self.name()),)

    def output_metadata(self) -> tuple[InputMetadata, ...]:
        ((shape, dtype),) = self.outputs
        device = devices.device(min(self.destination.device_set, key=lambda d: d.id))
        return (InputMetadata(shape, dtypes.of(dtype), device),)


def _move(tensor: Tensor, dtype: Any, place: Any) -> Tensor:
    """A copy on another device, recorded where it has a gradient."""
    flags = modes.get_flags()
    array = tensor._cell.array
    if array.dtype != dtype:
        array = _cast_array(array, dtype=dtype)
    array = jax.device_put(array, place)
    result = new_tensor(cell_of(array, None if flags & modes.INFERENCE else 0))
    if not result.dtype.is_differentiable:
        return result
    if modes.is_recording() and tensor._edge is not None:
        result._edge = (MoveNode(tensor, array), 0)
    for tangent in tangents_of(tensor):
        if tangent.tensor is not None:
            give_tangent(result, _move(tangent.tensor, dtype, place), tangent.level)
    return result


def convert(
    tensor: Tensor, dtype: dtypes.dtype | None, device: Any, *, copy: builtins.bool = False
) -> Tensor:
    """`tensor` with that dtype and on that device, None meaning its own; itself if it is so."""
    array = tensor._cell.held
    wanted = array.dtype if dtype is None else dtype.dtype
    if array.dtype.kind == "c" and not (wanted == np.bool_ or dtypes.of(wanted).is_complex):
        warnings.warn(
            "Casting complex values to real discards the imaginary part. Take .real to say so.",
            UserWarning,
            stacklevel=3,
        )
    if isinstance(device, Sharding):
        return _spread(tensor, wanted, device, copy=copy)
    if device is not None and not isinstance(array, Tracer):
        place = devices.as_jax_device(device)
        if array.devices() != {place}:
            return _move(tensor, wanted, place)
    if array.dtype == wanted and not copy:
        return tensor
    if dtype is None or dtype.is_differentiable:
        return _to_copy(tensor, dtype=wanted)
    return _to_copy_without_gradient(tensor, dtype=wanted)


def _spread(tensor: Tensor, dtype: Any, place: Any, *, copy: builtins.bool) -> Tensor:
    """`tensor` with that dtype, spread over devices; an operator, unless other devices are to
    have it."""
    array, own = tensor._cell.held, None
    if not isinstance(array, Tracer):
        if array.__class__ is not Pending:
            own = array.sharding
            if own == place and array.dtype == dtype and not copy:
                return tensor
        if not can_constrain(place) or devices_of(array) != place.device_set:
            return _move(tensor, dtype, place)
    elif place.num_devices == 1:  # where a traced function runs is not its own choice
        return convert(tensor, dtypes.of(dtype), None, copy=copy)
    if array.dtype != dtype:
        tensor = convert(tensor, dtypes.of(dtype), None)
    return spreader(place, place if own is None else own)(tensor)


def beside(tensor: Tensor, other: Tensor) -> Tensor:
    """`tensor` on the devices of `other`, spread as that is where it has the same shape."""
    array, like = tensor._cell.held, other._cell.held
    devices = devices_of(array), devices_of(like)
    if None in devices or devices[0] == devices[1]:
        return tensor
    return convert(tensor, None, place_beside(like, array.shape))


def to(
    input: Tensor,
    *args: Any,
    dtype: Any = None,
    device: Any = None,
    non_blocking: builtins.bool = False,
    copy: builtins.bool = False,
    memory_format: Any = None,
) -> Tensor:
    """The tensor with another dtype, on another device, or with both as another tensor has them.

    `to(dtype)`, `to(device)`, `to(device, dtype)` or `to(other)`, each with `copy=True` to get a
    copy even where nothing changes; `non_blocking` and `memory_format` have no effect. In place of
    a device may stand a `jax.sharding.Sharding`, which spreads the tensor over several. Raises
    TypeError for a 64-bit dtype while JAX has x64 off, RuntimeError for an unknown device.

    >>> dg.tensor([1.7, -1.7]).to(dg.int32)
    tensor([ 1, -1])
    >>> x = dg.ones(2)
    >>> x.to(dg.float32) is x
    True
    """
    found = parse_to(args, dtype, device, input._cell.held.shape)
    return convert(input, *found, copy=copy or _says_copy(args))


def parse_to(
    args: Sequence[Any], dtype: Any = None, device: Any = None, shape: Sequence[builtins.int] = ()
) -> tuple[dtypes.dtype | None, Any]:
    """The dtype and the device that the arguments of `to`, of a tensor of this shape, name; None
    for those they do not."""
    rest = list(args)
    if rest and isinstance(rest[0], Tensor):
        other = rest.pop(0)
        dtype, device = other.dtype, place_beside(other._cell.held, shape)
    elif rest and (rest[0] is None or isinstance(rest[0], _DEVICES)):
        device = rest.pop(0)
        if rest and not isinstance(rest[0], builtins.bool):
            dtype = rest.pop(0)
    elif rest:
        dtype = rest.pop(0)
    if len(rest) > 2:
        raise TypeError(
            f"to() takes at most 4 positional arguments, got {len(args)}. Pass device and "
            "dtype, and copy= by keyword."
        )
    if isinstance(device, builtins.int):
        device = devices.device("cuda", device)
    return None if dtype is None else dtypes.as_dtype(dtype), device


def _says_copy(args: Sequence[Any]) -> builtins.bool:
    """Whether `copy`, which stands behind `non_blocking`, is among positional arguments."""
    flags = [a for a in args if isinstance(a, builtins.bool)]
    return len(flags) == 2 and flags[1]


_DEVICES = (str, devices.device, jax.Device, Sharding, builtins.int)

_TYPE_NAMES = {
    dtypes.bool: "Bool",
    dtypes.uint8: "Byte",
    dtypes.int8: "Char",
    dtypes.int16: "Short",
    dtypes.int32: "Int",
    dtypes.int64: "Long",
    dtypes.float16: "Half",
    dtypes.bfloat16: "BFloat16",
    dtypes.float32: "Float",
    dtypes.float64: "Double",
    dtypes.complex64: "ComplexFloat",
    dtypes.complex128: "ComplexDouble",
}


def type(input: Tensor, dtype: Any = None, non_blocking: builtins.bool = False) -> Any:
    """The tensor's type as a string; with a dtype, or such a string, the tensor converted to it.

    Raises ValueError for a string that names no type.

    >>> dg.ones(2).type()
    'dyngraph.FloatTensor'
    >>> dg.ones(2).type("dyngraph.IntTensor")
    tensor([1, 1])
    """
    if dtype is None:
        place = input.device.type
        middle = "" if place == "cpu" else f"{place}."
        name = _TYPE_NAMES.get(input.dtype, input.dtype.name.capitalize())
        return f"dyngraph.{middle}{name}Tensor"
    device = None
    if isinstance(dtype, str):
        _, *middle, last = dtype.split(".") if "." in dtype else ("", dtype)
        named = [d for d, name in _TYPE_NAMES.items() if f"{name}Tensor" == last]
        if not named:
            raise ValueError(
                f"invalid type: {dtype!r}. Expected a name such as 'dyngraph.FloatTensor', or a "
                "dtype."
            )
        dtype, device = named[0], middle[0] if middle else "cpu"
    elif isinstance(dtype, builtins.type) and hasattr(dtype, "dtype"):  # such as FloatTensor
        dtype = dtype.dtype
    return convert(input, dtypes.as_dtype(dtype), device)


def type_as(input: Tensor, other: Tensor) -> Tensor:
    """The tensor with the dtype and on the device of `other`.

    >>> dg.tensor([1.7]).type_as(dg.tensor([2]))
    tensor([1])
    """
    return convert(input, other.dtype, place_beside(other._cell.held, input.shape))


def cpu(input: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor in the host's memory.

    >>> dg.ones(2).cpu().device.type
    'cpu'
    """
    return convert(input, None, "cpu")


def cuda(
    input: Tensor,
    device: Any = None,
    non_blocking: builtins.bool = False,
    memory_format: Any = None,
) -> Tensor:
    """The tensor on a GPU, the first unless `device` says which; RuntimeError where there is none.

    >>> dg.ones(2).to("cpu").is_cuda
    False
    """
    if device is None or isinstance(device, builtins.int):
        device = devices.device("cuda", device)
    return convert(input, None, device)


def _conversion(name: str, dtype: dtypes.dtype) -> Callable[..., Tensor]:
    def method(input: Tensor, memory_format: Any = None) -> Tensor:
        return convert(input, dtypes.as_dtype(dtype), None)

    method.__name__ = method.__qualname__ = name
    more = (
        "\n\n    Raises TypeError while JAX has x64 off."
        if dtype in (dtypes.float64, dtypes.int64, dtypes.complex128)
        else f"\n\n    >>> dg.tensor([1, 0]).{name}().dtype\n    {dtype}\n    "
    )
    method.__doc__ = f"The tensor converted to {dtype.name}; itself where it already is.{more}"
    return method


bool = _conversion("bool", dtypes.bool)
byte = _conversion("byte", dtypes.uint8)
char = _conversion("char", dtypes.int8)
short = _conversion("short", dtypes.int16)
int = _conversion("int", dtypes.int32)
long = _conversion("long", dtypes.int64)
half = _conversion("half", dtypes.float16)
bfloat16 = _conversion("bfloat16", dtypes.bfloat16)
float = _conversion("float", dtypes.float32)
double = _conversion("double", dtypes.float64)
cfloat = _conversion("cfloat", dtypes.complex64)
cdouble = _conversion("cdouble", dtypes.complex128)


def result_type(tensor1: Any, tensor2: Any) -> dtypes.dtype:
    """The dtype of a result of both, tensors or numbers, by JAX's lattice; numbers give way.

    >>> dg.result_type(dg.tensor([1, 2]), 1.0)
    dyngraph.float32
    """
    values = [v._cell.array if isinstance(v, Tensor) else v for v in (tensor1, tensor2)]
    return dtypes.of(np.dtype(jnp.result_type(*values)))


__all__ = [
    "result_type",
]

METHODS = (
    "bfloat16",
    "bool",
    "byte",
    "cdouble",
    "cfloat",
    "char",
    "cpu",
    "cuda",
    "double",
    "float",
    "half",
    "int",
    "long",
    "short",
    "to",
    "type",
    "type_as",
)
