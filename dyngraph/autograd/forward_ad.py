"""PyTorch's `torch.autograd.forward_ad`: dual tensors, which carry a tangent through a program.

Inside a level, what is computed from a dual tensor is dual too. One run gives the product of the
program's Jacobian and the tangent; backward over it, and it over backward, give second derivatives.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from dyngraph import tangents
from dyngraph.dispatch import write_dispatcher
from dyngraph.kernels import OperatorSpec, same
from dyngraph.modes import ModeSwitch
from dyngraph.ops.conversion import convert
from dyngraph.tangents import give_tangent, tangent_of
from dyngraph.tensor import Tensor
from dyngraph.tracing import Tracer
from dyngraph.views import alias

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]


def _level() -> int:
    """The number of the open level, -1 where none is."""
    return 0 if tangents.is_level_open() else -1


def __getattr__(name: str) -> Any:
    if name == "_current_level":
        return _level()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def enter_dual_level() -> int:
    """Opens a level of forward mode in this thread, and returns its number, 0.

    Raises RuntimeError where one is open: levels do not nest.
    """
    tangents.enter_level()
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Leaves the level that is open in this thread: every tangent of it is dropped.

    Raises RuntimeError where none is open, or `level` is another one.
    """
    if level not in (None, _level()):
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created: got "
            f"{level}, and the last one is {_level()}. This is not supported."
        )
    tangents.exit_level()


class dual_level(ModeSwitch):  # noqa: N801 - PyTorch's name
    """A level of forward mode: a context manager, and a decorator.

    >>> from dyngraph.autograd import forward_ad as fwd
    >>> with fwd.dual_level():
    ...     x = fwd.make_dual(dg.tensor([2.0, 3.0]), dg.tensor([1.0, 0.0]))
    ...     fwd.unpack_dual(x * x).tangent
    tensor([4., 0.])
    """

    def __init__(self) -> None:
        super().__init__()

    def __enter__(self) -> Any:
        return enter_dual_level()

    def __exit__(self, *exception: object) -> None:
        exit_dual_level()

    def clone(self) -> dual_level:
        return dual_level()


class UnpackedDualTensor(NamedTuple):
    """What `unpack_dual` returns."""

    primal: Tensor
    tangent: Tensor | None


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """An alias of `tensor` that carries `tangent`, which must have the same shape.

    It is recorded, so that backward reaches `tensor`. Under `inference_mode` it carries nothing.
    Raises RuntimeError outside a level, for a tangent of another shape, and where either tensor is
    dual already; ValueError for integers.

    >>> from dyngraph.autograd import forward_ad as fwd
    >>> with fwd.dual_level():
    ...     fwd.make_dual(dg.ones(2), dg.tensor([1.0, 5.0])) * 3
    tensor([3., 3.], tangent=tensor([ 3., 15.]))
    """
    open_level = _level()
    if open_level < 0 or (level is not None and level < 0):
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to "
            "enter_dual_level() first."
        )
    if level not in (None, open_level):
        raise RuntimeError(f"Invalid level given to make_dual: {level}, but {open_level} is open.")
    for what, value in (("primal", tensor), ("tangent", tangent)):
        if not isinstance(value, Tensor):
            raise TypeError(
                f"make_dual(): {what} must be Tensor, not {type(value).__name__}. Make one by "
                "dg.tensor(...)."
            )
        if not value.dtype.is_differentiable:
            raise ValueError(
                f"Expected {what} to be floating point or complex, but got: {value.dtype}. "
                "Convert it by .float()."
            )
    if tangent.shape != tensor.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original "
            f"Tensor, this is not supported. Tensor is of size {list(tensor.shape)} while the "
            f"given forward gradient is of size {list(tangent.shape)}. Expand it first."
        )
    if tangent.is_complex() and not tensor.is_complex():
        raise RuntimeError(
            f"Trying to set a forward gradient of {tangent.dtype} on a Tensor of {tensor.dtype}: a "
            "real value moves in a real direction. Take its .real."
        )
    if tangent_of(tensor) is not None:
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the "
            "same level 0 is not supported. Take the primal of unpack_dual(tensor)."
        )
    if tangent_of(tangent) is not None:
        raise RuntimeError(
            "Setting a forward grad that itself has a forward gradient at the same level 0 is not "
            "supported. Take the primal of unpack_dual(tangent)."
        )
    dual = _aliased(tensor)
    if tangents.are_carried():
        traced = isinstance(tensor._cell.array, Tracer)  # which is nowhere yet
        give_tangent(dual, tangent if traced else convert(tangent, None, tensor.device))
    return dual


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The value without its tangent, and the tangent, None where there is none. Both are recorded.

    Outside a level, the tensor itself and None.

    >>> from dyngraph.autograd import forward_ad as fwd
    >>> with fwd.dual_level():
    ...     x = fwd.make_dual(dg.tensor([0.0]), dg.tensor([2.0]))
    ...     fwd.unpack_dual(x.exp())
    UnpackedDualTensor(primal=tensor([1.]), tangent=tensor([2.]))
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(
            f"unpack_dual(): argument 'tensor' must be Tensor, not {type(tensor).__name__}"
        )
    open_level = _level()
    level = open_level if level is None else level
    if level < 0:
        return UnpackedDualTensor(tensor, None)
    return UnpackedDualTensor(_aliased(tensor), tangent_of(tensor) if level == open_level else None)


_view = write_dispatcher(
    OperatorSpec(
        "view",
        lambda self: self,
        inputs=["self"],
        rules={"self": same},
        node_name="ViewBackward0",
    ),
    "input",
)


def _aliased(tensor: Tensor) -> Tensor:
    """Another tensor over the same memory, with the same history and no tangent of this level."""
    result = alias(tensor)
    if tensor.requires_grad:
        result._edge = _view(tensor)._edge
    for tangent in tangents.tangents_of(tensor):
        if tangent.level is not tangents.current_level():
            give_tangent(result, tangent.tensor, tangent.level)  # type: ignore[arg-type]
    return result


# --- switching tangents off inside a level ------------------------------------------------------

_is_fwd_grad_enabled = tangents.is_enabled


class _set_fwd_grad_enabled(ModeSwitch):  # noqa: N801 - PyTorch's name
    """Switches off, at once and until the block's end, that tensors carry tangents."""

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self.mode = bool(mode)
        self.before = tangents.is_enabled()
        tangents.set_enabled(self.mode)

    def __enter__(self) -> Any:
        tangents.set_enabled(self.mode)

    def __exit__(self, *exception: object) -> None:
        tangents.set_enabled(self.before)

    def clone(self) -> _set_fwd_grad_enabled:
        return _set_fwd_grad_enabled(self.mode)

    def __call__(self, function: Any) -> Any:
        tangents.set_enabled(self.before)  # a decorator must not have switched anything yet
        return super().__call__(function)
