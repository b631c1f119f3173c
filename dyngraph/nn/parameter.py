"""Parameter and Buffer: the tensors that a Module registers when they are assigned to it.

A tensor of a class of one's own stays of that class; it then counts as a Parameter, or a Buffer, by
a mark.
"""

from __future__ import annotations

from typing import Any

from dyngraph.ops.filled import empty
from dyngraph.ops.memory import detach
from dyngraph.tensor import Tensor

__all__ = ["Buffer", "Parameter"]


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
    made = detach(data)
    if type(data) is not Parameter:
        made.__class__ = type(data)
    return made
