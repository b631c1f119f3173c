"""Grad mode and inference mode: flags of a thread, set by context managers and read by dispatch.

The flags are one integer, which the hot path reads once: an operator on which no further mode looks
records exactly when it equals `GRAD`.
"""

from __future__ import annotations

import functools
import inspect
import types
import warnings
from collections.abc import Callable, Generator
from contextvars import ContextVar
from typing import Any, Self

__all__ = [
    "ANOMALY",
    "AUTOCAST",
    "DEFERRED",
    "FORWARD",
    "GRAD",
    "INFERENCE",
    "INTERCEPTED",
    "MAPPED",
    "OBSERVED",
    "PACKING",
    "enable_grad",
    "get_flags",
    "inference_mode",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "is_multithreading_enabled",
    "is_recording",
    "no_grad",
    "restore_flags",
    "set_flags",
    "set_grad_enabled",
    "set_multithreading_enabled",
    "switch",
]

GRAD = 1
"""Operators on tensors that require grad are recorded."""
INFERENCE = 2
"""New tensors get no version counter, and nothing is recorded whatever `GRAD` says."""
FORWARD = 4
"""A level of forward mode is open: tensors may carry tangents, which operators pass on."""
PACKING = 8
"""Hooks are in force that pack what is saved for backward."""
ANOMALY = 16
"""Nodes remember which line of the user's program made them."""
INTERCEPTED = 32
"""Something is asked before each operator runs, and may run it otherwise."""
MAPPED = 64
"""A function is being mapped over a batch, by `func.vmap`."""
DEFERRED = 128
"""Kernels are noted when they are called, and run together later."""
AUTOCAST = 256
"""Operators run in the precision that is theirs, see `cast_policies`."""
OBSERVED = FORWARD | PACKING | ANOMALY | INTERCEPTED | MAPPED | DEFERRED | AUTOCAST
"""The modes that look at what an operator does, by a slower way; `FORWARD` is the lowest bit."""


# A ContextVar is read in a fifth of the time that a threading.local takes. Each thread has its own,
# and so has each asyncio task.
_flags = ContextVar("dyngraph_modes", default=GRAD)
get_flags = _flags.get
set_flags = _flags.set
_multithreading = ContextVar("dyngraph_multithreading", default=True)


def restore_flags(flags: int) -> None:
    """Goes back to an earlier mode; those that observe stay as they are, since they need not
    nest."""
    set_flags((flags & ~OBSERVED) | (get_flags() & OBSERVED))


def switch(bit: int, *, on: bool) -> None:
    """Switches one flag of this thread."""
    set_flags(get_flags() | bit if on else get_flags() & ~bit)


def is_recording() -> bool:
    """Whether operators on tensors that require grad make nodes: grad mode, and no inference."""
    return get_flags() & (GRAD | INFERENCE) == GRAD


def is_grad_enabled() -> bool:
    """Whether operators are recorded in this thread.

    >>> dg.is_grad_enabled()
    True
    """
    return bool(get_flags() & GRAD)


def is_inference_mode_enabled() -> bool:
    """Whether this thread is inside `inference_mode`.

    >>> with dg.inference_mode():
    ...     dg.is_inference_mode_enabled()
    True
    """
    return bool(get_flags() & INFERENCE)


class ModeSwitch:
    """A set of flags to enter: a context manager, and a decorator for whatever can be called.

    A decorated generator or coroutine has the mode while its own body runs, not while its caller
    does.
    """

    def __init__(self, set_bits: int = 0, clear_bits: int = 0) -> None:
        self.set_bits = set_bits
        self.clear_bits = clear_bits
        self.previous: list[int] = []

    def __enter__(self) -> Self:
        flags = get_flags()
        self.previous.append(flags)
        set_flags((flags & ~self.clear_bits) | self.set_bits)
        return self

    def __exit__(self, *exception: object) -> None:
        restore_flags(self.previous.pop())

    def clone(self) -> ModeSwitch:
        """A switch of the same effect with a state of its own: one for each call of a function."""
        return ModeSwitch(self.set_bits, self.clear_bits)

    def __call__(self, function: Callable[..., Any]) -> Any:
        if inspect.isclass(function):
            warnings.warn(
                "Decorating classes is deprecated: the mode applies to __init__ alone. "
                "Decorate the methods that should run in this mode.",
                FutureWarning,
                stacklevel=2,
            )
            function.__init__ = self(function.__init__)
            return function
        if inspect.isgeneratorfunction(function):
            return self._wrap_generator(function)
        if inspect.iscoroutinefunction(function):
            return self._wrap_coroutine(function)

        @functools.wraps(function)
        def in_mode(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                return function(*args, **kwargs)

        return in_mode

    def _wrap_generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def in_mode(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
            return (yield from self._drive(function(*args, **kwargs)))

        return in_mode

    def _wrap_coroutine(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        async def in_mode(*args: Any, **kwargs: Any) -> Any:
            return await types.coroutine(self._drive)(function(*args, **kwargs))

        return in_mode

    def _drive(self, body: Any) -> Generator[Any, Any, Any]:
        """Runs `body`, a generator or a coroutine, with the mode on between its suspensions."""
        step: Callable[[], Any] = functools.partial(body.send, None)
        while True:
            try:
                with self.clone():
                    request = step()
            except StopIteration as stop:
                return stop.value
            try:
                step = functools.partial(body.send, (yield request))
            except GeneratorExit:
                with self.clone():
                    body.close()
                raise
            except BaseException as error:
                step = functools.partial(body.throw, error)


class _Bare(ModeSwitch):
    """A switch without parameters, which may decorate without parentheses."""

    bits: tuple[int, int]

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        switch = super().__new__(cls)
        if function is None:
            return switch
        switch.__init__()
        return switch(function)

    def __init__(self, function: None = None) -> None:
        super().__init__(*self.bits)


class no_grad(_Bare):  # noqa: N801 - PyTorch's name
    """Operators are not recorded inside: results do not require grad.

    A context manager and a decorator, with or without parentheses.

    >>> x = dg.ones(2, requires_grad=True)
    >>> with dg.no_grad():
    ...     (x * 2).requires_grad
    False
    """

    bits = (0, GRAD)


class enable_grad(_Bare):  # noqa: N801 - PyTorch's name
    """Operators are recorded inside, also within `no_grad`.

    >>> x = dg.ones(2, requires_grad=True)
    >>> with dg.no_grad(), dg.enable_grad():
    ...     (x * 2).requires_grad
    True
    """

    bits = (GRAD, 0)


class set_grad_enabled(ModeSwitch):  # noqa: N801 - PyTorch's name
    """Switches recording on or off: at once when called, until the block's end in a `with`.

    >>> x = dg.ones(2, requires_grad=True)
    >>> with dg.set_grad_enabled(False):
    ...     (x * 2).requires_grad
    False
    """

    def __init__(self, mode: bool) -> None:
        super().__init__(*((GRAD, 0) if mode else (0, GRAD)))
        self.mode = bool(mode)
        self.before = get_flags()
        set_flags((self.before & ~self.clear_bits) | self.set_bits)

    def __enter__(self) -> Self:
        restore_flags(self.before)
        return super().__enter__()

    def __call__(self, function: Callable[..., Any]) -> Any:
        restore_flags(self.before)  # used as a decorator, it must not have switched anything yet
        return super().__call__(function)

    def __str__(self) -> str:
        return f"{type(self).__name__}(mode={self.mode})"

    __repr__ = __str__


class inference_mode(ModeSwitch):  # noqa: N801 - PyTorch's name
    """No recording, and new tensors that may never enter a backward graph: the cheapest mode.

    `inference_mode(False)` is normal mode, with recording on, inside it.

    >>> with dg.inference_mode():
    ...     x = dg.ones(2)
    >>> x.is_inference()
    True
    """

    def __new__(cls, mode: Any = True) -> Any:
        switch = super().__new__(cls)
        if isinstance(mode, bool):
            return switch
        switch.__init__()
        return switch(mode)

    def __init__(self, mode: bool = True) -> None:
        super().__init__(*((INFERENCE, GRAD) if mode else (GRAD, INFERENCE)))
        self.mode = mode


class set_multithreading_enabled:  # noqa: N801 - PyTorch's name
    """A switch that PyTorch has for its worker threads; here one thread walks a graph either way.

    >>> with dg.autograd.set_multithreading_enabled(False):
    ...     dg.autograd.is_multithreading_enabled()
    False
    """

    def __init__(self, mode: bool) -> None:
        self.previous = _multithreading.get()
        _multithreading.set(bool(mode))

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        _multithreading.set(self.previous)


def is_multithreading_enabled() -> bool:
    """The state of `set_multithreading_enabled` in this thread."""
    return _multithreading.get()
