"""Variable: the old name of Tensor, under which programs find the Engine."""

from __future__ import annotations

from typing import Any

from dyngraph.graph import engine
from dyngraph.tensor import Tensor


class _Engine:
    """The Engine as `Variable._execution_engine`."""

    queue_callback = staticmethod(engine.queue_callback)


class _VariableMeta(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=_VariableMeta):
    """PyTorch's old name of a tensor: the constructor returns a Tensor, and every Tensor is one.

    >>> isinstance(dg.ones(2), dg.autograd.Variable)
    True
    """

    _execution_engine = _Engine()

    def __new__(cls, data: Tensor, requires_grad: bool = False) -> Any:
        if not isinstance(data, Tensor):
            raise TypeError(
                f"Variable data has to be a tensor, but got {type(data).__name__}. Use "
                f"dg.tensor(data)."
            )
        return data.detach().requires_grad_(requires_grad)
