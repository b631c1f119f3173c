"""Parameter and Buffer: the tensors that a Module registers when they are assigned to it.

A tensor of a class of one's own stays of that class; it then counts as a Parameter, or a Buffer, by
a mark.

Uninitialized ones have no shape yet: their Storage has no value, and whatever asks for it raises.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from dyngraph.described import Size
from dyngraph.ops.filled import empty
from dyngraph.ops.memory import detach
from dyngraph.storage import Storage
from dyngraph.tensor import LEAF, Tensor

__all__ = [
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "UninitializedTensorMixin",
    "is_lazy",
]


class _ParameterMeta(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        if super().__instancecheck__(instance):
            return True
        return cls is Parameter and isinstance(instance, Tensor) and hasattr(instance, "_is_param")


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A leaf over the memory of `data` (none: an empty tensor) that a Module finds as its own.

    It requires grad unless `requires_grad=False`. Raises RuntimeError where it is to require grad
    and the dtype is neither floating point nor complex.

    >>> weight = dg.nn.Parameter(dg.ones(2))
    >>> weight
    Parameter containing:
    tensor([1., 1.], requires_grad=True)
    >>> isinstance(weight * 2, dg.nn.Parameter)
    False
    """

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        made = _alias(data, "Parameter")
        if type(data) in (Tensor, Parameter, type(None)):
            made.__class__ = cls
        else:
            made._is_param = True  # type: ignore[attr-defined]
        return made.requires_grad_(requires_grad)  # type: ignore[return-value]

    def __init__(self, data: Tensor | None = None, requires_grad: bool = True) -> None:
        pass

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        if id(self) not in memo:
            with_grad, self._meta = self._meta, None  # a copy starts without a gradient
            try:
                super().__deepcopy__(memo)
            finally:
                self._meta = with_grad
        return memo[id(self)]

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()


class _BufferMeta(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        if super().__instancecheck__(instance):
            return True
        return cls is Buffer and isinstance(instance, Tensor) and hasattr(instance, "_is_buffer")


class Buffer(Tensor, metaclass=_BufferMeta):
    """A tensor over the memory of `data` that a Module registers as a buffer when it is assigned.

    With `persistent=False` it is not part of the module's `state_dict`.

    >>> module = dg.nn.Module()
    >>> module.count = dg.nn.Buffer(dg.zeros(1))
    >>> list(module.state_dict())
    ['count']
    """

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Any:
        made: Any = _alias(data, "Buffer")
        made.requires_grad_(data is not None and data.requires_grad)
        made.persistent = persistent
        made._is_buffer = True
        return made

    def __init__(self, data: Tensor | None = None, *, persistent: bool = True) -> None:
        pass


def _alias(data: Any, what: str) -> Tensor:
    """A tensor of the same class over the same memory, without history."""
    if data is None:
        return empty(0)
    if not isinstance(data, Tensor):
        raise TypeError(
            f"{what} data has to be a tensor, but got {type(data).__name__}. Wrap it by "
            "dg.tensor(...)."
        )
    if is_lazy(data):
        data.numel()  # raises
    made = detach(data)
    if type(data) is not Parameter:
        made.__class__ = type(data)
    return made


# --- without a shape ------------------------------------------------------------------------------


class _NoStorage(Storage):
    """A cell without a value."""

    __slots__ = ()

    @property
    def array(self) -> NoReturn:  # type: ignore[override]
        raise ValueError(
            "Attempted to use an uninitialized parameter or buffer: its shape is not known before "
            "the first call of its lazy module. Call the module with a batch first."
        )

    held = array


class UninitializedTensorMixin:
    """What uninitialized parameters and buffers share: a dtype and a device, and no shape."""

    __slots__ = ()

    cls_to_become: type[Tensor] = Tensor
    _data: Tensor

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Makes this an ordinary tensor of a shape, whose values are not set.

        >>> weight = dg.nn.UninitializedParameter()
        >>> weight.materialize((2, 3))
        >>> type(weight).__name__, weight.shape
        ('Parameter', dyngraph.Size([2, 3]))
        """
        like = self.__dict__.pop("_data")
        made = empty(
            tuple(shape),
            dtype=like.dtype if dtype is None else dtype,
            device=self._place(like) if device is None else device,
        )
        self._cell = made._cell
        self.__class__ = self.cls_to_become  # type: ignore[assignment]

    @staticmethod
    def _place(like: Tensor) -> Any:
        """The device that a tensor was bound to, None for JAX's default one."""
        return like.device if like._cell.array.committed else None

    def convert(self, fn: Callable[[Tensor], Tensor]) -> None:
        """Does to the dtype and the device what `fn` does to those of a tensor."""
        self._data = fn(self._data)

    @property
    def dtype(self) -> Any:
        """The type that the elements will have."""
        return self._data.dtype

    @property
    def device(self) -> Any:
        """Where the elements will be."""
        return self._data.device

    @property
    def shape(self) -> Size:
        """Raises RuntimeError: there is none yet."""
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This happens in "
            "load_state_dict where the state is that of a lazy module which was never called. "
            "Call `forward` to initialize the parameters before accessing their attributes."
        )

    def numel(self) -> NoReturn:
        """Raises ValueError: there are none yet."""
        return self._cell.array  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self), (self.requires_grad, None, self.dtype)  # type: ignore[attr-defined]

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            place = self._place(self._data)
            memo[id(self)] = type(self)(self.requires_grad, place, self.dtype)  # type: ignore
        return memo[id(self)]


def _made(cls: type[Any], requires_grad: bool, device: Any, dtype: Any) -> Any:
    made = object.__new__(cls)
    cell = _NoStorage()
    cell.version, cell.views = 0, None
    made._cell, made._view, made._meta = cell, None, None
    made._known_edge = LEAF if requires_grad else None
    made._data = empty(0, device=device, dtype=dtype)
    return made


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A Parameter whose shape is not known yet; `materialize` makes it an ordinary one.

    What needs its value raises ValueError, what needs its shape RuntimeError.

    >>> dg.nn.UninitializedParameter(dtype=dg.float16)
    <UninitializedParameter>
    """

    cls_to_become = Parameter

    def __new__(  # type: ignore[misc]
        cls, requires_grad: bool = True, device: Any = None, dtype: Any = None
    ) -> Any:
        return _made(cls, requires_grad, device, dtype)

    def __init__(self, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> None:
        pass


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer whose shape is not known yet; `materialize` makes it an ordinary tensor.

    >>> dg.nn.UninitializedBuffer()
    <UninitializedBuffer>
    """

    def __new__(
        cls,
        requires_grad: bool = False,
        device: Any = None,
        dtype: Any = None,
        persistent: bool = True,
    ) -> Any:
        made = _made(cls, requires_grad, device, dtype)
        made.persistent = persistent
        made._is_buffer = True
        return made

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass


def is_lazy(param: Any) -> bool:
    """Whether a parameter or a buffer is uninitialized.

    >>> dg.nn.parameter.is_lazy(dg.nn.LazyLinear(2).weight)
    True
    """
    return isinstance(param, UninitializedTensorMixin)
