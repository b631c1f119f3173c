"""Saved-tensor hooks: what packs a value when a node saves it, and unpacks it when backward reads
it.

One pair of hooks is in force at a time, the one entered last. With none, nothing here runs.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, NamedTuple, Self

from dyngraph import modes


class Hooks(NamedTuple):
    """A pair of saved-tensor hooks."""

    pack: Callable[[Any], Any]
    unpack: Callable[[Any], Any]


class Packed(NamedTuple):
    """What a pack hook made of a saved value, and the hook that gets a tensor back from it."""

    value: Any
    unpack_hook: Callable[[Any], Any]


class PackedValues(tuple[Any, ...]):
    """The saved values of a node, some of them `Packed`: its type tells that they must be read one
    by one."""

    __slots__ = ()


_stack: ContextVar[tuple[Hooks, ...]] = ContextVar("dyngraph_saved_tensor_hooks", default=())
_disabled: ContextVar[str | None] = ContextVar("dyngraph_hooks_disabled", default=None)
get_stack = _stack.get


def set_stack(stack: tuple[Hooks, ...]) -> None:
    """Puts hooks in force, the last pair of `stack`."""
    _stack.set(stack)
    modes.switch(modes.PACKING, on=bool(stack))


def hooks_in_force() -> Hooks | None:
    """The pair of hooks that packs what is saved now."""
    stack = get_stack()
    return stack[-1] if stack else None


def pack(tensor: Any, hooks: Hooks) -> Packed:
    """What the hooks make of a tensor; RuntimeError where they write to it."""
    version, flags = tensor._cell.version, modes.get_flags()
    modes.set_flags(flags & ~(modes.GRAD | modes.OBSERVED & ~modes.DEFERRED))
    try:
        value = hooks.pack(tensor)
        if tensor._cell.version != version:
            raise RuntimeError(
                "A saved tensor pack hook is modifying its input in place. Tensors provided as "
                "input to pack hook cannot be modified by in-place operations: the program goes "
                "on with them. Write to a clone() of it, and return that."
            )
        if value is tensor and tensor.grad_fn is not None:
            value = tensor.detach()  # an output, which its own node must not hold
    finally:
        modes.set_flags(flags)
    return Packed(value, hooks.unpack)


class saved_tensors_hooks:  # noqa: N801 - PyTorch's name
    """Inside, each tensor that is saved for backward is packed, and unpacked when it is read.

    `pack_hook(tensor)` is called when an operator saves a tensor, and what it returns is kept in
    the tensor's place: any object. `unpack_hook(object)` is called when backward, or someone who
    looks at the node, reads it, and must return a tensor of the same values. Of blocks in each
    other the innermost counts. The version of a tensor that was packed is not checked.

    Raises RuntimeError where a pack hook writes to its argument, TypeError where an unpack hook
    returns something else than a tensor.

    >>> x = dg.tensor([2.0, 3.0], requires_grad=True)
    >>> with dg.autograd.graph.saved_tensors_hooks(lambda t: t.numpy(), dg.tensor):
    ...     y = (x.detach() * x).sum()
    >>> y.backward()
    >>> x.grad
    tensor([2., 3.])
    """

    def __init__(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> Self:
        message = _disabled.get()
        if message is not None:
            raise RuntimeError(message)
        set_stack((*get_stack(), checked(self.pack_hook, self.unpack_hook)))
        return self

    def __exit__(self, *exception: object) -> None:
        set_stack(get_stack()[:-1])


def checked(pack_hook: Any, unpack_hook: Any) -> Hooks:
    """The pair; TypeError where one of them can't be called."""
    for what, hook in (("pack_hook", pack_hook), ("unpack_hook", unpack_hook)):
        if not callable(hook):
            raise TypeError(
                f"{what} must be callable, got {hook!r} ({type(hook).__name__}). Pass a function "
                "of one argument."
            )
    return Hooks(pack_hook, unpack_hook)


class disable_saved_tensors_hooks(modes.ModeSwitch):  # noqa: N801 - PyTorch's name
    """Inside, entering `saved_tensors_hooks` raises RuntimeError with `error_message`.

    So does entering this inside of one. A context manager, and a decorator.

    >>> with dg.autograd.graph.disable_saved_tensors_hooks("no hooks in here"):
    ...     with dg.autograd.graph.saved_tensors_hooks(print, print):
    ...         pass
    Traceback (most recent call last):
    ...
    RuntimeError: no hooks in here
    """

    def __init__(self, error_message: str) -> None:
        super().__init__()
        self.error_message = error_message
        self.before: list[str | None] = []

    def __enter__(self) -> Self:
        if get_stack():
            raise RuntimeError(self.error_message)
        self.before.append(_disabled.get())
        _disabled.set(self.error_message)
        return self

    def __exit__(self, *exception: object) -> None:
        _disabled.set(self.before.pop())

    def clone(self) -> disable_saved_tensors_hooks:
        return disable_saved_tensors_hooks(self.error_message)
