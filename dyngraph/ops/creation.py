"""Tensors from data, and tensors filled by a rule: `tensor`, `zeros`, `arange`, `*_like`, `new_*`.

Nothing here is recorded, apart from a conversion that `as_tensor` and `asarray` may make. Values
that Python computed go to the device by one copy; constants are filled there by a kernel kept for
each shape and dtype.

Every function takes `dtype`, `device` and `requires_grad`; `layout`, `pin_memory` and
`memory_format` are accepted as PyTorch's programs pass them, and change nothing.
"""

from __future__ import annotations

import functools
import math
import operator
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dyngraph import devices, dtypes
from dyngraph.ops.conversion import convert
from dyngraph.ops.literals import dtype_of_number, fit_numbers, host_values
from dyngraph.tensor import Tensor, wrap
from dyngraph.tracing import Tracer

MAX_FILLERS = 2048
"""How many kernels that fill a tensor are kept."""

UNSET: Any = type("Unset", (), {"__repr__": lambda self: "<unset>"})()


# --- arguments --------------------------------------------------------------------------------


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
    """Where to make a tensor; None is JAX's default device, to which the array is not bound."""
    if device is None:
        return None
    return jax.sharding.SingleDeviceSharding(devices.as_jax_device(device))  # type: ignore[arg-type]


def place_like(tensor: Tensor, device: Any, *, same_shape: bool = True) -> Any:
    """The place that `device` names, by default that of `tensor`."""
    array = tensor._cell.array
    if device is not None or isinstance(array, Tracer) or not array.committed:
        return place_of(device)
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


# --- from data --------------------------------------------------------------------------------


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
    return _from_data("tensor", data, dtype, place_of(device), requires_grad)


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
    return _from_data("as_tensor", data, dtype, place_of(device), False)


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
        return _from_data("asarray", obj, dtype, place_of(device), bool(requires_grad))
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
    return _from_data("from_numpy", ndarray, None, None, False)


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
    return _from_data("scalar_tensor", value, wanted, place_of(device), requires_grad)


def _from_data(where: str, data: Any, dtype: Any, place: Any, requires_grad: bool) -> Tensor:
    wanted = None if dtype is None else dtypes.as_dtype(dtype)
    if isinstance(data, Tensor):
        data = data._cell.array
    if isinstance(data, jax.Array):
        array = convert(from_jax_array(data), wanted, None)._cell.array
        return wrap(
            array if place is None else jax.device_put(array, place), requires_grad=requires_grad
        )
    values = host_values(where, data, wanted)
    if place is not None:
        array = jax.device_put(values, place)
    else:
        array = _upload_number(values) if values.ndim == 0 else jnp.asarray(values)
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


# --- constants --------------------------------------------------------------------------------


@functools.lru_cache(MAX_FILLERS)
def _filler(shape: tuple[int, ...], dtype: Any, place: Any, value: Any) -> Callable[..., Any]:
    """The kernel that fills a tensor with `value`, or with its argument where that is None."""
    if value is None:
        return jax.jit(lambda v: jnp.full(shape, v, dtype), out_shardings=place)
    return jax.jit(lambda: jnp.full(shape, value, dtype), out_shardings=place)


def _filled(shape: Any, value: int, dtype: Any, place: Any, requires_grad: bool) -> Tensor:
    wanted = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    array = _filler(shape, wanted.dtype, place, value)()
    return wrap(array, requires_grad=requires_grad)


def _full(
    where: str, shape: Any, fill_value: Any, dtype: Any, place: Any, requires_grad: bool
) -> Tensor:
    value = number(where, "fill_value", fill_value)
    wanted = dtype_of_number(type(value)) if dtype is None else dtypes.as_dtype(dtype)
    array = _filler(shape, wanted.dtype, place, None)(fit_numbers(value, wanted))
    return wrap(array, requires_grad=requires_grad)


def zeros(
    *sizes: Any,
    size: Any = UNSET,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A tensor of zeros, in the default dtype unless told; sizes are numbers or one tuple.

    Raises RuntimeError for a negative size.

    >>> dg.zeros(2, 3)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    shape = read_size("zeros", sizes, size)
    return _filled(shape, 0, dtype, place_of(device), requires_grad)


def ones(
    *sizes: Any,
    size: Any = UNSET,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A tensor of ones, in the default dtype unless told; sizes are numbers or one tuple.

    >>> dg.ones(2, dtype=dg.int32)
    tensor([1, 1])
    """
    shape = read_size("ones", sizes, size)
    return _filled(shape, 1, dtype, place_of(device), requires_grad)


def empty(
    *sizes: Any,
    size: Any = UNSET,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A tensor whose values are not to be relied on: zeros, since JAX has no uninitialized arrays.

    >>> dg.empty(2, 3).shape
    dyngraph.Size([2, 3])
    """
    shape = read_size("empty", sizes, size)
    return _filled(shape, 0, dtype, place_of(device), requires_grad)


def full(
    size: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A tensor filled with one number, in the dtype that `dg.tensor` gives it unless told.

    >>> dg.full((2,), 7)
    tensor([7, 7])
    """
    shape = only_size("full", size)
    return _full("full", shape, fill_value, dtype, place_of(device), requires_grad)


def eye(
    n: int,
    m: int | None = None,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Ones on the diagonal, zeros elsewhere: (n, m), square without m.

    >>> dg.eye(2, 3)
    tensor([[1., 0., 0.],
            [0., 1., 0.]])
    """
    rows = operator.index(n)
    columns = rows if m is None else operator.index(m)
    for name, count in (("n", rows), ("m", columns)):
        if count < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {count}")
    wanted = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    array = _eye(rows, columns, wanted.dtype, place_of(device))()
    return wrap(array, requires_grad=requires_grad)


@functools.lru_cache(MAX_FILLERS)
def _eye(rows: int, columns: int, dtype: Any, place: Any) -> Callable[..., Any]:
    return jax.jit(lambda: jnp.eye(rows, columns, dtype=dtype), out_shardings=place)


# --- ranges -----------------------------------------------------------------------------------


def arange(
    start: Any = UNSET,
    end: Any = UNSET,
    step: Any = 1,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Numbers from `start` (0 if there is one argument) to before `end`, `step` apart.

    Integers where all arguments are, else the default dtype. Element i is start + i * step,
    computed in double precision. Raises RuntimeError for a step of 0 or away from `end`, and for a
    bound that is not finite.

    >>> dg.arange(5)
    tensor([0, 1, 2, 3, 4])
    >>> dg.arange(0, 1, 0.25)
    tensor([0.0000, 0.2500, 0.5000, 0.7500])
    """
    if end is UNSET:
        start, end = (0, start) if start is not UNSET else (0, UNSET)
    if end is UNSET:
        raise TypeError("arange() missing 1 required positional argument: 'end'")
    start = 0 if start is UNSET else start
    bounds = [("start", start), ("end", end), ("step", step)]
    start, end, step = numbers = [number("arange", name, v) for name, v in bounds]
    if not all(isinstance(v, (int, float)) for v in numbers):
        raise RuntimeError("arange() expects real numbers, got complex ones.")
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {start} -> {end}. Both bounds must be finite.")
    if (end - start) * step < 0:
        raise RuntimeError(
            f"upper bound and lower bound inconsistent with step sign: {start} to {end} by {step}"
        )
    integers = all(isinstance(v, int) for v in numbers)
    inferred = dtypes.default_int() if integers else dtypes.get_default_dtype()
    wanted = inferred if dtype is None else dtypes.as_dtype(dtype)
    if wanted == dtypes.bool:
        raise NotImplementedError(
            "arange() counts in numbers, not in bool. Compare the result with 0."
        )
    count = -((start - end) // step) if integers else math.ceil((end - start) / step)
    if not integers or count == 0 or wanted.is_differentiable:
        return _from_host(start + step * np.arange(count), wanted, device, requires_grad)
    ends = fit_numbers([start, start + step * (count - 1)], wanted)
    count_up = _counter(count, wanted.dtype, place_of(device))
    if start == 0 and step == 1:
        return wrap(count_up(), requires_grad=requires_grad)
    return wrap(count_up(ends[0], wanted.dtype.type(step)), requires_grad=requires_grad)


@functools.lru_cache(MAX_FILLERS)
def _counter(count: int, dtype: Any, place: Any) -> Callable[..., Any]:
    return jax.jit(
        lambda start=0, step=1: start + step * jnp.arange(count, dtype=dtype), out_shardings=place
    )


def _from_host(values: Any, dtype: dtypes.dtype, device: Any, requires_grad: bool) -> Tensor:
    return _from_data("", fit_numbers(values, dtype), dtype, place_of(device), requires_grad)


def _line(where: str, start: Any, end: Any, steps: Any) -> np.ndarray:
    """`steps` numbers from `start` to `end`, counted from both ends as PyTorch does."""
    start, end = number(where, "start", start), number(where, "end", end)
    count = operator.index(steps)
    if count < 0:
        raise RuntimeError(f"number of steps must be non-negative, got {count} (negative)")
    if count == 1:
        return np.array([start])
    places = np.arange(count)
    step = (end - start) / max(count - 1, 1)
    return np.where(places < count / 2, start + places * step, end - places[::-1] * step)


def _line_dtype(dtype: Any, values: np.ndarray) -> dtypes.dtype:
    if dtype is not None:
        return dtypes.as_dtype(dtype)
    default = dtypes.get_default_dtype()
    return default.to_complex() if values.dtype.kind == "c" else default


def linspace(
    start: Any,
    end: Any,
    steps: int,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """`steps` numbers at equal distances, `start` and `end` among them, in the default dtype.

    >>> dg.linspace(0, 1, 5)
    tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    """
    values = _line("linspace", start, end, steps)
    return _from_host(values, _line_dtype(dtype, values), device, requires_grad)


def logspace(
    start: Any,
    end: Any,
    steps: int,
    base: float = 10.0,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """`base` to the power of each number of `linspace(start, end, steps)`.

    >>> dg.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    values = np.power(float(base), _line("logspace", start, end, steps))
    return _from_host(values, _line_dtype(dtype, values), device, requires_grad)


# --- like another tensor ----------------------------------------------------------------------


def _filled_like(
    where: str, input: Any, value: int, dtype: Any, device: Any, requires_grad: bool
) -> Tensor:
    check_tensor(where, input)
    array = input._cell.array
    wanted = input.dtype if dtype is None else dtype
    return _filled(array.shape, value, wanted, place_like(input, device), requires_grad)


def zeros_like(
    input: Tensor,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Zeros with the shape, dtype and device of `input`, but not its history.

    >>> dg.zeros_like(dg.tensor([1, 2]))
    tensor([0, 0])
    """
    return _filled_like("zeros_like", input, 0, dtype, device, requires_grad)


def ones_like(
    input: Tensor,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Ones with the shape, dtype and device of `input`, but not its history.

    >>> dg.ones_like(dg.zeros(2))
    tensor([1., 1.])
    """
    return _filled_like("ones_like", input, 1, dtype, device, requires_grad)


def empty_like(
    input: Tensor,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A tensor of the shape, dtype and device of `input`, whose values are not to be relied on.

    >>> dg.empty_like(dg.ones(2, 3)).shape
    dyngraph.Size([2, 3])
    """
    return _filled_like("empty_like", input, 0, dtype, device, requires_grad)


def full_like(
    input: Tensor,
    fill_value: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """One number in the shape, dtype and device of `input`; a fraction is cut off for integers.

    >>> dg.full_like(dg.tensor([1, 2]), 7.5)
    tensor([7, 7])
    """
    check_tensor("full_like", input)
    wanted = input.dtype if dtype is None else dtype
    place = place_like(input, device)
    return _full("full_like", tuple(input.shape), fill_value, wanted, place, requires_grad)


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
    return _from_data("new_tensor", data, wanted, place, requires_grad)


def _new_filled(
    input: Tensor, shape: Any, value: int, dtype: Any, device: Any, requires_grad: bool
) -> Tensor:
    wanted = input.dtype if dtype is None else dtype
    place = place_like(input, device, same_shape=False)
    return _filled(shape, value, wanted, place, requires_grad)


def new_zeros(
    input: Tensor,
    *sizes: Any,
    size: Any = UNSET,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Zeros of a shape, with the dtype and device of this tensor.

    >>> dg.tensor([1]).new_zeros(2)
    tensor([0, 0])
    """
    shape = read_size("new_zeros", sizes, size)
    return _new_filled(input, shape, 0, dtype, device, requires_grad)


def new_ones(
    input: Tensor,
    *sizes: Any,
    size: Any = UNSET,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Ones of a shape, with the dtype and device of this tensor.

    >>> dg.tensor([1]).new_ones(2)
    tensor([1, 1])
    """
    shape = read_size("new_ones", sizes, size)
    return _new_filled(input, shape, 1, dtype, device, requires_grad)


def new_empty(
    input: Tensor,
    *sizes: Any,
    size: Any = UNSET,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A tensor of a shape, with the dtype and device of this one, whose values mean nothing.

    >>> dg.tensor([1]).new_empty(2, 3).shape
    dyngraph.Size([2, 3])
    """
    shape = read_size("new_empty", sizes, size)
    return _new_filled(input, shape, 0, dtype, device, requires_grad)


def new_full(
    input: Tensor,
    size: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """One number in a shape, with the dtype and device of this tensor.

    >>> dg.ones(1).new_full((2,), 7)
    tensor([7., 7.])
    """
    shape = only_size("new_full", size)
    wanted = input.dtype if dtype is None else dtype
    place = place_like(input, device, same_shape=False)
    return _full("new_full", shape, fill_value, wanted, place, requires_grad)


__all__ = [
    "arange",
    "as_tensor",
    "asarray",
    "empty",
    "empty_like",
    "eye",
    "from_jax_array",
    "from_numpy",
    "full",
    "full_like",
    "linspace",
    "logspace",
    "ones",
    "ones_like",
    "scalar_tensor",
    "tensor",
    "zeros",
    "zeros_like",
]

METHODS = ("new_empty", "new_full", "new_ones", "new_tensor", "new_zeros")
"""The functions of this file that are methods of Tensor, and no functions of the package."""
