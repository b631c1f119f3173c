"""Precision: 64 bits for a check, whatever JAX is set to and whatever the tensors were made as.

Invariant: when the check is over, every tensor is what it was before.
"""

from __future__ import annotations

import functools
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import jax
import numpy as np

from dyngraph import dtypes
from dyngraph.storage import cell_of
from dyngraph.tensor import LEAF, AutogradMeta, Tensor

MAX_VISITED = 10_000
"""How many objects are looked at in search of the tensors that a function reads."""
LIBRARIES = frozenset({"dyngraph", "jax", "jaxlib", "numpy"})


@contextmanager
def in_double(func: Callable[..., Any], inputs: Iterable[Any]) -> Iterator[Callable[..., Any]]:
    """A stretch of the program with x64 on, where `func` and its inputs have 64-bit precision.

    # Note [Tensors are lifted in place]
    Without x64 nobody can make a float64 tensor, and with 32 bits finite differences say little. So
    if an input that requires grad has less than 64 bits, it gets a 64-bit value for this stretch,
    and so do the other inputs and the tensors that `func` reads beside them: operators such as
    matmul refuse mixed dtypes. The tensor objects stay the same, so a function that reads the
    tensor itself, and not its argument, is differentiated too. Gives the function to call: `func`,
    with a note about this on what it raises.
    """
    with jax.enable_x64(True):
        inputs = tuple(inputs)
        if not any(isinstance(x, Tensor) and x.requires_grad and is_short(x) for x in inputs):
            yield func
            return
        given = {id(x) for x in inputs}
        lifted = [(t, _Kept(t)) for t in tensors_of((inputs, func)) if is_short(t)]
        try:
            for tensor, _ in lifted:
                _lift(tensor, is_input=id(tensor) in given)
            yield _noted(func)
        finally:
            for tensor, kept in lifted:
                kept.put_back(tensor)


def is_short(tensor: Tensor) -> bool:
    """Whether the elements are floating point numbers of less than 64 bits, or pairs of them."""
    dtype = tensor.dtype
    return dtype.is_differentiable and dtype not in (dtypes.float64, dtypes.complex128)


def place(value: np.ndarray, like: jax.Array) -> jax.Array:
    """`value` as an array that lives where `like` does."""
    return jax.device_put(value, like.sharding if like.committed else None)


class _Kept:
    """What a tensor was before it was lifted."""

    __slots__ = ("cell", "edge", "meta", "view")

    def __init__(self, tensor: Tensor) -> None:
        self.edge = tensor._edge  # first: a view that was written to finds it again
        self.cell, self.meta, self.view = tensor._cell, tensor._meta, tensor._view

    def put_back(self, tensor: Tensor) -> None:
        lifted = tensor._cell
        tensor._cell, tensor._view = self.cell, self.view
        tensor._edge, tensor._meta = self.edge, self.meta
        if lifted.version:  # `func` has written to it, as to a running mean
            value = np.asarray(lifted.array).astype(self.cell.array.dtype)
            tensor._write(place(value, self.cell.array))


def _lift(tensor: Tensor, *, is_input: bool) -> None:
    array = tensor._cell.array
    wide = np.complex128 if tensor.is_complex() else np.float64
    version = None if tensor._cell.version is None else 0
    tensor._cell = cell_of(place(np.asarray(array).astype(wide), array), version)
    tensor._view = None
    if is_input and not tensor.is_leaf:  # the node that made it would give it 32-bit gradients
        hooks = tensor._backward_hooks
        tensor._edge, tensor._meta = LEAF, AutogradMeta()
        tensor._meta.hooks = hooks


def _noted(func: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(func, updated=())
    def noted(*args: Any) -> Any:
        try:
            return func(*args)
        except Exception as error:
            error.add_note(
                "The check runs func in 64-bit precision: inputs, and tensors that func captured, "
                "are float64 meanwhile. Make tensors inside func with dtype=x.dtype."
            )
            raise

    return noted


def tensors_of(root: Any) -> list[Tensor]:
    """The tensors that can be reached from an object: items of containers, attributes, and what a
    function reads: its closure, its defaults and the globals that it names."""
    found: list[Tensor] = []
    seen: dict[int, Any] = {}  # with the objects, so that no id is used twice
    todo = deque([root])
    while todo and len(seen) < MAX_VISITED:
        value = todo.popleft()
        if id(value) in seen:
            continue
        seen[id(value)] = value
        if isinstance(value, Tensor):
            found.append(value)
        else:
            todo.extend(_parts(value))
    return found


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, (str, bytes, type, types.ModuleType)):
        return ()
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, (list, tuple, set, frozenset)):
        return value
    if isinstance(value, types.MethodType):
        return value.__self__, value.__func__
    if isinstance(value, types.FunctionType):
        return _read_by(value)
    if isinstance(value, functools.partial):
        return value.func, value.args, value.keywords
    return getattr(value, "__dict__", {}).values()


def _read_by(function: types.FunctionType) -> Iterator[Any]:
    if function.__module__ and function.__module__.partition(".")[0] in LIBRARIES:
        return
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not yet assigned
            continue
    yield function.__defaults__
    yield function.__kwdefaults__
    codes = [function.__code__]
    for code in codes:
        codes.extend(c for c in code.co_consts if isinstance(c, types.CodeType))
        yield from (function.__globals__.get(name) for name in code.co_names)
