"""Conversion: a module's parameters and buffers moved to another dtype or device, in place."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from dyngraph import dtypes, modes
from dyngraph.nn.parameter import is_lazy
from dyngraph.ops.conversion import convert, cuda, parse_to, type as type_of
from dyngraph.ops.filled import empty_like
from dyngraph.storage import cell_of
from dyngraph.tensor import Tensor
from dyngraph.writing import look_at


class Conversion:
    """The part of Module that converts it. Parameters stay the tensors that they are, so that an
    optimizer made before the conversion still updates them."""

    if TYPE_CHECKING:
        _parameters: dict[str, Any]
        _buffers: dict[str, Tensor | None]

        def children(self) -> Any: ...

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        for module in self.children() if recurse else ():
            module._apply(fn)
        for parameter in self._parameters.values():
            if is_lazy(parameter):
                parameter.convert(fn)
                continue
            if parameter is None:
                continue
            grad = parameter.grad
            with modes.no_grad():
                become(parameter, fn(parameter))
                if grad is not None:
                    become(grad, fn(grad))
        for name, buffer in self._buffers.items():
            if is_lazy(buffer):
                buffer.convert(fn)  # type: ignore[union-attr]
            elif buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Converts and moves parameters and buffers in place, by the arguments of `Tensor.to`: a
        dtype, a device, both, or a tensor that has them. Only floating point and complex ones
        change their dtype.

        Raises TypeError for a dtype that is neither.

        >>> dg.nn.Linear(2, 3).to(dg.bfloat16).weight.dtype
        dyngraph.bfloat16
        """
        dtype, device = parse_to(args, kwargs.pop("dtype", None), kwargs.pop("device", None))
        if kwargs.keys() - {"non_blocking", "memory_format"}:
            raise TypeError(f"nn.Module.to() got unexpected keyword arguments {sorted(kwargs)}")
        if dtype is not None and not dtype.is_differentiable:
            raise TypeError(
                "nn.Module.to only accepts floating point or complex dtypes, but got desired "
                f"dtype={dtype}"
            )
        if dtype is not None and dtype.is_complex:
            warnings.warn(
                "Complex modules are a new feature: some modules might not work as expected when "
                "their parameters or buffers are complex.",
                UserWarning,
                stacklevel=2,
            )
        return self._apply(lambda t: _converted(t, dtype, device))

    def float(self) -> Self:
        """Converts floating point parameters and buffers to float32."""
        return self._apply(lambda t: _converted(t, dtypes.float32, floating=True))

    def double(self) -> Self:
        """Converts floating point parameters and buffers to float64; TypeError while JAX has x64
        off."""
        return self._apply(lambda t: _converted(t, dtypes.float64, floating=True))

    def half(self) -> Self:
        """Converts floating point parameters and buffers to float16."""
        return self._apply(lambda t: _converted(t, dtypes.float16, floating=True))

    def bfloat16(self) -> Self:
        """Converts floating point parameters and buffers to bfloat16."""
        return self._apply(lambda t: _converted(t, dtypes.bfloat16, floating=True))

    def type(self, dst_type: Any) -> Self:
        """Converts all parameters and buffers to a dtype, or what a type string names."""
        return self._apply(lambda t: type_of(t, dst_type))

    def cpu(self) -> Self:
        """Moves parameters and buffers to the host's memory."""
        return self._apply(lambda t: _converted(t, None, "cpu"))

    def cuda(self, device: Any = None) -> Self:
        """Moves parameters and buffers to a GPU; RuntimeError where there is none."""
        return self._apply(lambda t: cuda(t, device))

    def to_empty(self, *, device: Any, recurse: bool = True) -> Self:
        """Moves parameters and buffers to a device without their values."""
        return self._apply(lambda t: empty_like(t, device=device), recurse)


def _converted(
    tensor: Tensor, dtype: dtypes.dtype | None, device: Any = None, *, floating: bool = False
) -> Tensor:
    """`tensor` on that device, with that dtype where it is of the kind that has one."""
    changes = tensor.dtype.is_floating_point if floating else tensor.dtype.is_differentiable
    return convert(tensor, dtypes.as_dtype(dtype) if changes and dtype else None, device)


def become(tensor: Tensor, other: Tensor) -> None:
    """Gives `tensor` the value of `other`, which may have another dtype, shape or device."""
    if other is tensor:
        return
    if other._view is not None:
        look_at(tensor, other)
    else:
        tensor._cell, tensor._view = cell_of(other._cell.array, tensor._cell.version), None
    if tensor._meta is not None:
        tensor._meta.accumulator = None  # what was recorded before leads to the old value
