"""WaysOut: what leaves dyngraph, as arrays of other libraries, as Python numbers, and as text.

A tensor that requires grad gives no array while grad mode is on, since what is done with it would
be outside the graph; numbers and text it gives.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from dyngraph import batches, dtypes, modes, printing
from dyngraph.errors import InPlaceError
from dyngraph.placement import place_of, words
from dyngraph.tangents import tangent_of
from dyngraph.tracing import Tracer
from dyngraph.user_code import caller, shown_place

if TYPE_CHECKING:
    from dyngraph.storage import Storage

_listener: ContextVar[Callable[[Any, str], None] | None]
_listener = ContextVar("dyngraph_way_out_listener", default=None)


@contextlib.contextmanager
def heard_by(listener: Callable[[Any, str], None]) -> Iterator[None]:
    """Inside, `listener(array, how)` is called when the value of a tensor is handed out."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def _tell(array: Any, how: str) -> None:
    listener = _listener.get()
    if listener is not None:
        listener(array, how)


_traced: ContextVar[str | None] = ContextVar("dyngraph_traced_function", default=None)


@contextlib.contextmanager
def refusing_tensors(function: str) -> Iterator[None]:
    """Inside, no jax function takes a tensor: `function`, which is being traced, closes over it."""
    token = _traced.set(function)
    try:
        yield
    finally:
        _traced.reset(token)


def closed_over(function: str | None) -> TypeError:
    """The error for a tensor that a jax function uses, without having got it."""
    return TypeError(
        f"from_jax({function}): the function uses a Tensor that it closes over, which would be a "
        "constant. Pass it as an argument; or make it a constant by tensor.detach().jax() outside."
    )


_ITEM = operator.methodcaller("item")


def read(array: Any, what: str, convert: Callable[[Any], Any]) -> Any:
    """A value for Python; where JAX traces and there is none, its error says who asked for it."""
    _tell(array, what)
    if not isinstance(array, Tracer):
        if not (array.is_fully_addressable or array.is_fully_replicated):
            raise RuntimeError(
                f"the value of a Tensor of shape {list(array.shape)} was asked for ({what}), and "
                "parts of it are on devices of other processes: expected one that this process "
                "has as a whole. Call dg.sharding.replicate(tensor, mesh) first, in every process."
            )
        return convert(array)
    batches.refuse_value(array, what)
    try:
        return convert(array)
    except jax.errors.JAXTypeError as error:
        error.add_note(
            f"dyngraph: {shown_place(*caller(1))} asked for the value of a Tensor of shape "
            f"{list(array.shape)} ({what}) while JAX traces, when it has none yet. Choose by "
            "dg.where() or jax.lax.cond instead, compute the value outside and pass it as a "
            "static argument, or return the Tensor and read it afterwards."
        )
        raise


class WaysOut:
    """The part of Tensor that hands out its value."""

    __slots__ = ()

    if TYPE_CHECKING:
        _cell: Storage
        _edge: Any
        device: Any
        dtype: Any
        grad_fn: Any
        is_leaf: Any
        requires_grad: Any

    def numpy(self, *, force: bool = False) -> np.ndarray:
        """The value as a numpy array, read-only.

        `force=True` is `detach().cpu().numpy()`. Raises RuntimeError where the tensor requires
        grad.
        """
        if not force:
            self._refuse_grad("numpy()", "numpy")
        return read(self._cell.array, ".numpy()", np.asarray)

    def jax(self) -> jax.Array:
        """The value as a `jax.Array`; RuntimeError where the tensor requires grad."""
        self._refuse_grad("jax()", "jax")
        _tell(self._cell.array, ".jax()")
        return self._cell.array

    def __jax_array__(self) -> jax.Array:
        if _traced.get() is not None:
            raise closed_over(_traced.get())
        self._refuse_grad("a jax function", "jax")
        _tell(self._cell.array, "a jax function")
        return self._cell.array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        self._refuse_grad("numpy()", "numpy")
        array = read(self._cell.array, ".numpy()", np.asarray)
        return array.astype(dtype, copy=bool(copy)) if dtype is not None or copy else array

    def __dlpack__(self, **kwargs: Any) -> Any:
        self._refuse_grad("__dlpack__()", "__dlpack__")
        return self._cell.array.__dlpack__(**kwargs)

    def __dlpack_device__(self) -> Any:
        return self._cell.array.__dlpack_device__()  # type: ignore[attr-defined]

    def _refuse_grad(self, where: str, method: str) -> None:
        if self._edge is not None and modes.get_flags() & modes.GRAD:
            raise RuntimeError(
                f"Can't call {where} on Tensor that requires grad, because the result would be "
                f"outside the graph. Use tensor.detach().{method}() instead."
            )

    def item(self) -> Any:
        """The one element as a Python number; RuntimeError where there are more."""
        array = self._cell.array
        if array.size != 1:
            raise RuntimeError(
                f"a Tensor with {array.size} elements cannot be converted to Scalar. Reduce it "
                "first, or use tolist()."
            )
        return read(array, ".item()", _ITEM)

    def tolist(self) -> Any:
        """The values as nested lists of Python numbers."""
        return read(self._cell.array, ".tolist()", np.asarray).tolist()

    def __bool__(self) -> bool:
        array = self._cell.array
        if array.size != 1:
            values = "no values" if array.size == 0 else "more than one value"
            raise RuntimeError(
                f"Boolean value of Tensor with {values} is ambiguous. Reduce it by any() or all(), "
                "or test numel()."
            )
        return bool(read(array, "bool", _ITEM))

    def _number(self) -> Any:
        array = self._cell.array
        if array.size != 1:
            raise ValueError(
                "only one element tensors can be converted to Python scalars, got shape "
                f"{list(array.shape)}. Reduce it first, or use tolist()."
            )
        return read(array, ".item()", _ITEM)

    def __int__(self) -> int:
        return int(self._number())

    def __float__(self) -> float:
        value = self._number()
        if isinstance(value, complex):
            if value.imag:
                raise RuntimeError(
                    "value cannot be converted to type double without overflow: it has an "
                    "imaginary part. Take .real first."
                )
            value = value.real
        return float(value)

    def __complex__(self) -> complex:
        return complex(self._number())

    def __index__(self) -> int:
        array = self._cell.array
        if array.size != 1 or array.dtype.kind not in "iub":
            raise TypeError(
                "only integer tensors of a single element can be converted to an index, got "
                f"{self.dtype} of shape {list(array.shape)}. Use .item() or .long()."
            )
        return int(read(array, ".item()", _ITEM))

    def __format__(self, spec: str) -> str:
        if self._cell.array.ndim == 0:
            return format(self.item(), spec)
        return object.__format__(self, spec)

    def __repr__(self) -> str:
        array = self._cell.array
        suffixes = []
        place = place_of(array)
        if place is not None and place.num_devices > 1:
            suffixes.append(f"sharding={words(place)}")
        elif self.device.type != "cpu":
            suffixes.append(f"device='{self.device}'")
        usual = (dtypes.get_default_dtype(), dtypes.default_int(), dtypes.bool)
        default_complex = dtypes.get_default_dtype().to_complex()
        if self.dtype not in (*usual, default_complex) or (
            array.size == 0 and self.dtype != dtypes.get_default_dtype()
        ):
            suffixes.append(f"dtype={self.dtype}")
        try:
            if self.requires_grad and self.is_leaf:
                suffixes.append("requires_grad=True")
            elif self.grad_fn is not None:
                suffixes.append(f"grad_fn={self.grad_fn!r}")
        except InPlaceError:  # a view that may not be used any more
            suffixes.append("grad_fn=<Invalid>")
        tangent = tangent_of(self)
        if tangent is not None:
            suffixes.append(f"tangent={tangent!r}")
        if isinstance(array, Tracer):
            return f"tensor({', '.join([str(array), *suffixes])})"
        if not (array.is_fully_addressable or array.is_fully_replicated):
            return f"tensor({', '.join(['...', f'size={array.shape}', *suffixes])})"
        return printing.format_tensor(np.asarray(array), suffixes=suffixes)
