"""Lazy modules: they learn from their first input what they are to be."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, ClassVar

from dyngraph.nn.parameter import is_lazy

if TYPE_CHECKING:
    from dyngraph.nn.modules.module import Module as Base
else:
    Base = object

__all__ = ["LazyModuleMixin"]


class LazyModuleMixin(Base):
    """To be named before a Module in a class's bases: its first call initializes parameters.

    The class makes `UninitializedParameter`s and `UninitializedBuffer`s, and defines
    `initialize_parameters`, which gets the arguments of the first call and materializes them. Then
    the module becomes one of `cls_to_become`, where that is set. Until then `state_dict` has the
    uninitialized ones, and loading an ordinary state gives them its shapes.

    Raises RuntimeError where something stays uninitialized.

    >>> class Scale(dg.nn.modules.lazy.LazyModuleMixin, dg.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.weight = dg.nn.UninitializedParameter()
    ...
    ...     def initialize_parameters(self, input):
    ...         if self.has_uninitialized_params():
    ...             self.weight.materialize(input.shape[-1:])
    ...             dg.nn.init.ones_(self.weight)
    ...
    ...     def forward(self, input):
    ...         return input * self.weight
    >>> Scale()(dg.ones(2))
    tensor([1., 1.], grad_fn=<MulBackward0>)
    """

    cls_to_become: ClassVar[Any] = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._was_called = False

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Materializes what is uninitialized, by the arguments of a call; to be overridden."""
        raise NotImplementedError(
            f"initialize_parameters is not implemented for {type(self).__name__}. Define it in the "
            "class, with the parameters of forward."
        )

    def has_uninitialized_params(self) -> bool:
        """Whether a parameter or a buffer of this module itself is uninitialized."""
        return any(map(is_lazy, itertools.chain(self._parameters.values(), self._buffers.values())))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._was_called:
            return super().__call__(*args, **kwargs)
        self.initialize_parameters(*args, **kwargs)
        if self.has_uninitialized_params():
            raise RuntimeError(
                f"module {type(self).__name__} has not been fully initialized: "
                "initialize_parameters must materialize all parameters and buffers."
            )
        self._was_called = True
        if self.cls_to_become is not None:
            del self._was_called
            self.__class__ = self.cls_to_become
        return self(*args, **kwargs)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        for name, tensor in self._own_state().items():
            destination[prefix + name] = tensor if keep_vars or is_lazy(tensor) else tensor.detach()

    def _load_tensor(self, name: str, key: str, tensor: Any, value: Any, *, assign: bool) -> Any:
        if is_lazy(tensor):
            if is_lazy(value):
                return None
            if hasattr(value, "shape"):
                tensor.materialize(value.shape)
        return super()._load_tensor(name, key, tensor, value, assign=assign)
