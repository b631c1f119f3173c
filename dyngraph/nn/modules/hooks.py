"""Hooks of modules: their lists, the handle that knows what else is kept of a hook, and the hooks
that all modules have in common."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

from dyngraph.graph.hooks import HookList, RemovableHandle

__all__ = [
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]


class ModuleHooks(HookList):
    """Hooks in the order in which they run, and the ids of those that are called in another way.

    `with_kwargs` are the hooks that get the keyword arguments too, `always` those that also run
    when the forward pass raised.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.with_kwargs: set[int] = set()
        self.always: set[int] = set()

    def register(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always: bool = False,
    ) -> RemovableHandle:
        """Adds a hook; raises TypeError where it can't be called."""
        handle = self.add(hook)
        if with_kwargs:
            self.with_kwargs.add(handle.id)
        if always:
            self.always.add(handle.id)
        if prepend:
            self.move_to_end(handle.id, last=False)
        return handle


class GlobalHooks:
    """The hooks that all modules have in common; they run before a module's own."""

    def __init__(self) -> None:
        self.forward_pre = ModuleHooks()
        self.forward = ModuleHooks()
        self.backward_pre = ModuleHooks()
        self.backward = ModuleHooks()
        self.is_full_backward: bool | None = None
        self.buffer_registration = ModuleHooks()
        self.module_registration = ModuleHooks()
        self.parameter_registration = ModuleHooks()


GLOBAL = GlobalHooks()


def registered(hooks: ModuleHooks, module: Any, name: str, value: Any) -> Any:
    """What is registered under `name`: `value`, or what the last hook put in its place."""
    for hook in hooks.values():
        output = hook(module, name, value)
        if output is not None:
            value = output
    return value


class WrappedHook:
    """A hook that is called with a module in front, which it does not keep alive."""

    def __init__(self, hook: Callable[..., Any], module: Any = None) -> None:
        self.hook = hook
        functools.update_wrapper(self, hook)
        self.module = None if module is None else weakref.ref(module)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.module is None:
            return self.hook(*args, **kwargs)
        module = self.module()
        if module is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args, **kwargs)

    def __getstate__(self) -> dict[str, Any]:
        return {"hook": self.hook, "module": self.module and self.module()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["hook"], state["module"])


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(module, name, parameter)` before any module registers a parameter; what it
    returns is registered in its place.

    >>> from dyngraph.nn.modules.module import register_module_parameter_registration_hook
    >>> def show(module, name, parameter):
    ...     print(name)
    >>> with register_module_parameter_registration_hook(show):
    ...     layer = dg.nn.Linear(2, 3)
    weight
    bias
    """
    return GLOBAL.parameter_registration.register(hook)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(module, name, buffer)` before any module registers a buffer; what it returns is
    registered in its place."""
    return GLOBAL.buffer_registration.register(hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(module, name, child)` before any module registers a child; what it returns is
    registered in its place."""
    return GLOBAL.module_registration.register(hook)


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(module, args)` before the forward of every module; it may return other args."""
    return GLOBAL.forward_pre.register(hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Calls `hook(module, args, output)` after the forward of every module; it may return another
    output. The options are those of `Module.register_forward_hook`.

    >>> from dyngraph.nn.modules.module import register_module_forward_hook
    >>> def show(module, args, output):
    ...     print(module)
    >>> with register_module_forward_hook(show):
    ...     _ = dg.nn.Sequential(dg.nn.ReLU(), dg.nn.Tanh()).eval()(dg.ones(2))
    ReLU()
    Tanh()
    Sequential(
      (0): ReLU()
      (1): Tanh()
    )
    """
    return GLOBAL.forward.register(hook, with_kwargs=with_kwargs, always=always_call)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(module, grad_output)` before the backward of every module; it may return other
    gradients."""
    return GLOBAL.backward_pre.register(hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(module, grad_input, grad_output)` after the backward of every module; it may
    return other gradients. Raises RuntimeError beside `register_module_backward_hook`."""
    return _register_backward_hook(hook, is_full=True)


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """`register_module_full_backward_hook` as it was before: the hook gets the gradients of the
    node that made the output, not of the module. Raises RuntimeError beside full ones."""
    return _register_backward_hook(hook, is_full=False)


def _register_backward_hook(hook: Callable[..., Any], *, is_full: bool) -> RemovableHandle:
    if GLOBAL.is_full_backward is not None and GLOBAL.is_full_backward != is_full:
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module "
            "hook. Please use only one of them."
        )
    GLOBAL.is_full_backward = is_full
    return GLOBAL.backward.register(hook)
