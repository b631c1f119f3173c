"""Traceable Python: hooks and Functions that are traced into the compiled backward, not called."""

from __future__ import annotations

import inspect
import traceback
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax

from dyngraph.compiled.program import Aval
from dyngraph.errors import TraceableError
from dyngraph.graph.node import PythonCall
from dyngraph.tensor import Tensor
from dyngraph.tracing import jaxpr_as_fun, without_constants
from dyngraph.user_code import is_ours
from dyngraph.values import ARRAYS


def traceable(function: Any) -> Any:
    """Marks a hook as traceable: the compiled backward traces it into its program.

    Such a hook computes with operators alone, and only from its arguments: it looks at no value, as
    `if`, `print` and `item()` do, and does nothing else that must happen every time. It is traced
    once for each shape that it meets. A `Function` is marked by its attribute `traceable = True`;
    its backward may also read what it saved, and attributes of `ctx`.

    In other modes the mark has no effect. Raises TypeError where the function can't be marked.

    >>> @dg.compiled.traceable
    ... def halve(grad):
    ...     return grad / 2
    >>> x = dg.tensor([2.0], requires_grad=True)
    >>> handle = x.register_hook(halve)
    >>> with dg.compiled_autograd():
    ...     (x * x).backward()
    >>> x.grad
    tensor([2.])
    """
    try:
        function.traceable = True
    except AttributeError:
        raise TypeError(
            f"{function!r} can't be marked as traceable: expected a function or an object that "
            "takes attributes. Wrap it in a function."
        ) from None
    return function


def is_traceable(function: Any) -> bool:
    """Whether a hook or a Function class is marked."""
    return getattr(function, "traceable", False) is True


class Traced(NamedTuple):
    """What tracing found: the kernel, and what it makes; None for a gradient that is None."""

    kernel: Callable[..., Any]
    consts: Sequence[Any]
    made: tuple[Aval | None, ...]


_known: weakref.WeakKeyDictionary[Any, dict[Any, Traced]] = weakref.WeakKeyDictionary()
_kernels: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()


def trace(call: PythonCall, grads: Sequence[Aval | None], inputs: Sequence[Aval]) -> Traced:
    """The kernel `(*consts, *inputs, *gradients present) -> gradients present` of a traceable call.

    Arrays that the function has from elsewhere are `consts`. Where they may be others next time, it
    is traced each time; and a kernel that does the same as one known is that one.
    """
    key = (call.what, call.key, tuple(grads), tuple(inputs))
    found = _known.get(call.function, {}).get(key)
    if found is None:
        found = _trace(call, grads, inputs)
        numbers = all(const.ndim == 0 for const in found.consts)
        if call.key is not None and numbers and not _captures(call.function):
            _known.setdefault(call.function, {})[key] = found
    return found


def _trace(call: PythonCall, grads: Sequence[Aval | None], inputs: Sequence[Aval]) -> Traced:
    present: list[bool] = []

    def flat(*arrays: Any) -> list[Any]:
        rest = iter(arrays[len(inputs) :])
        given = [None if g is None else next(rest) for g in grads]
        results = call.run(given, ARRAYS, arrays[: len(inputs)])
        present[:] = [r is not None for r in results]
        return [r for r in results if r is not None]

    avals = [*inputs, *(g for g in grads if g is not None)]
    try:
        closed = jax.make_jaxpr(flat)(
            *[jax.ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in avals]
        )
    except jax.errors.JAXTypeError as error:
        raise TraceableError(_name(call), *_line(call.function, error)) from error
    made = iter([Aval(a.shape, a.dtype, a.weak_type) for a in closed.out_avals])
    consts = list(closed.consts)
    closed = without_constants(closed)
    text = f"{_name(call)} {closed.jaxpr}"
    kernel = _kernels.get(text)
    if kernel is None:
        function = jaxpr_as_fun(closed)

        def run(*arrays: Any) -> tuple[Any, ...]:
            return tuple(function(*arrays))

        run.__name__ = run.__qualname__ = _name(call)
        kernel = _kernels[text] = jax.jit(run)
    return Traced(kernel, consts, tuple([next(made) if there else None for there in present]))


def _captures(function: Any) -> bool:
    """Whether a function has tensors in its closure, whose values may be others next time."""
    found = [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
    found += getattr(function, "__defaults__", None) or ()
    return any(isinstance(value, Tensor) for value in found)


def _name(call: PythonCall) -> str:
    return getattr(call.function, "__name__", type(call.function).__name__)


def _line(function: Any, error: BaseException) -> tuple[str, int]:
    """File and line of the user's that asked for a value; the function's own, where unknown."""
    frames = list(traceback.walk_tb(error.__traceback__))
    for frame, line in reversed(frames):
        module = frame.f_globals.get("__name__", "")
        if not is_ours(frame) and not module.startswith("jax"):
            return frame.f_code.co_filename, line
    code = inspect.unwrap(getattr(function, "backward", function)).__code__
    return code.co_filename, code.co_firstlineno
