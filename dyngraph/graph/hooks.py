"""Hook lists, and the handles that take a hook out again, also while the list is being run."""

from __future__ import annotations

import itertools
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Self

_ids = itertools.count()


class HookList(OrderedDict[int, Callable[..., Any]]):
    """Hooks by id, in the order of registration."""

    def add(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Appends a hook; raises TypeError where it can't be called."""
        if not callable(hook):
            raise TypeError(
                f"a hook must be callable, got {hook!r} ({type(hook).__name__}). Pass a function."
            )
        handle = RemovableHandle(self)
        self[handle.id] = hook
        return handle


class RemovableHandle:
    """Removes its hook by `remove()`, or at the end of a `with` block; twice is harmless."""

    __slots__ = ("_hooks", "id")

    def __init__(self, hooks: HookList) -> None:
        self.id = next(_ids)
        self._hooks = weakref.ref(hooks)

    def remove(self) -> None:
        """Takes the hook out of its list."""
        hooks = self._hooks()
        if hooks is not None:
            hooks.pop(self.id, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()
