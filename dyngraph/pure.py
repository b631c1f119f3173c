"""Pure: the stretch of a program that runs as a pure function of arrays, on JAX's tracers.

# Note [Nothing of a trace stays]
What a program writes inside may be a tensor of its own, or one from outside, which would then hold
a tracer. The two can't be told apart when they are written, so each write is noted, with what was
there. At the end what is noted is put back, and what is still alive then came from outside.
"""

from __future__ import annotations

import contextlib
import gc
import weakref
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Self

import jax
import jax.numpy as jnp
import numpy as np

from dyngraph import modes
from dyngraph.tracing import Tracer
from dyngraph.user_code import shown_place

if TYPE_CHECKING:
    from dyngraph.storage import Storage

_current: ContextVar[Pure | None] = ContextVar("dyngraph_pure", default=None)
current_pure = _current.get


class Pure:
    """Inside, writes and gradients are noted, and the default generator draws from `words`.

    `words` are those of a PRNG key; None where the function was given none. `apply_function(cls,
    args, kwargs)` runs a Function.
    """

    is_differentiated = True
    """Whether JAX may differentiate what runs inside."""

    def __init__(self, name: str, apply_function: Callable[..., Any], words: Any = None) -> None:
        self.name = name
        self.apply_function = apply_function
        self.words = words
        self.draws = 0
        self.cells: dict[int, _Cell] = {}
        self.grads: dict[int, _Grad] = {}
        self.memories: dict[int, _Memory] = {}

    def __enter__(self) -> Self:
        self._token = _current.set(self)
        return self

    def __exit__(self, *exception: object) -> None:
        _current.reset(self._token)
        for entry in (*self.memories.values(), *self.cells.values(), *self.grads.values()):
            entry.put_back()

    def write(self, cell: Storage, array: Any) -> Any:
        """Notes that `array` is about to be written to a Storage; returns what to write.

        A write that is not recorded leaves the derivative as it was, as in PyTorch.
        """
        self.note_write(cell)
        old = cell.array
        same = old.shape == array.shape and old.dtype == array.dtype
        return array if modes.is_recording() or not same else unseen(array, old)

    def note_write(self, cell: Storage) -> None:
        """Notes that a Storage is about to be written."""
        if id(cell) not in self.cells:
            self.cells[id(cell)] = _Cell(cell)

    def renew(self, cell: Storage, array: Any) -> None:
        """Replaces the array of a Storage of outside by one that a node may have saved before."""
        cell.write(array)

    def note_grad(self, tensor: Any) -> None:
        """Notes that the `.grad` of a tensor is about to be set."""
        if id(tensor) not in self.grads:
            self.grads[id(tensor)] = _Grad(tensor)

    def note_memory(self, tensor: Any) -> None:
        """Notes that a tensor is about to look at other memory."""
        if id(tensor) not in self.memories:
            self.memories[id(tensor)] = _Memory(tensor)

    def take(self, generator: Any, *, is_default: bool) -> tuple[Any, Any] | None:
        """What the generator's next draw folds together; None where it is to say so itself."""
        if not is_default:
            return None
        if self.words is None:
            raise RuntimeError(
                f"to_jax({self.name}): a random operator draws from the default generator, and a "
                "pure function has no such state. Make it by to_jax(fn, takes_key=True), and pass "
                "a PRNG key as its first argument."
            )
        self.draws += 1
        return self.words, np.uint32(self.draws - 1)

    def note_seed(self, generator: Any, seed: int, count: int, *, restored: bool) -> None:
        """Notes that a generator is about to go on from elsewhere; `restored`: from a state that
        it had."""

    def note_leaf(self, tensor: Any) -> None:
        """Notes that the `.grad` of a tensor is read."""

    def note_flag(self, tensor: Any) -> None:
        """Notes that a leaf is about to require grad, or to do so no more."""

    def note_history(self, tensor: Any) -> None:
        """Notes that a tensor is about to get another place in the graph."""

    def note_module(self, module: Any) -> None:
        """Notes that a module is called."""

    def note_optimizer(self, optimizer: Any) -> None:
        """Notes that an optimizer steps, or forgets gradients."""

    def lift(self, owner: Any, key: Any, array: Any) -> Any:
        """An array of Python's numbers, which `owner.lifted(key)` gives as they are by then."""
        return array

    def is_outside(self, array: Any) -> bool:
        """Whether an array is of before, and must not be replaced by one that is computed here."""
        return not isinstance(array, Tracer)

    def check_outside(self) -> None:
        """Raises RuntimeError where a tensor from outside was written to; called at the end."""
        entries = (*self.memories.values(), *self.grads.values(), *self.cells.values())
        if any(entry.is_alive() for entry in entries):
            gc.collect()  # what only a cycle keeps is not outside
        for entry in entries:
            if entry.is_alive():
                raise RuntimeError(
                    f"to_jax({self.name}): {entry.what} of a Tensor from outside, of shape "
                    f"{entry.shape}, which a pure function can't change. {entry.remedy}"
                )


class _Cell:
    """A Storage that was written to, and what it was before."""

    remedy = "Pass the tensor as an argument and return it, or write to a clone() of it."

    def __init__(self, cell: Storage) -> None:
        views = [reference() for reference, _ in cell.views or ()]
        members = [cell, *(view for view in views if view is not None)]
        self.cell = weakref.ref(cell)
        self.versions = [(weakref.ref(member), member.version) for member in members]
        self.array = cell.array
        self.shape = list(cell.array.shape)
        self.where = ""

    def is_alive(self) -> bool:
        return self.cell() is not None

    @property
    def writes(self) -> int:
        """How many writes have been counted since then."""
        (reference, before), *_ = self.versions
        cell = reference()
        return 0 if cell is None or before is None else cell.version - before  # type: ignore[operator]

    @property
    def what(self) -> str:
        return f"an in-place operation{self.where} changed the value"

    def put_back(self) -> None:
        cell = self.cell()
        if cell is None:
            return
        with contextlib.suppress(AttributeError):
            self.where = f" at {shown_place(*cell.written_at)}"
        for looker in cell.lookers():
            with contextlib.suppress(AttributeError):
                del looker._cell.array
        cell.array = self.array
        for reference, version in self.versions:
            member = reference()
            if member is not None:
                member.version = version


class _Memory:
    """A tensor that was given other memory, and what it had before."""

    what = "an assignment to .data changed the memory"
    remedy = "Pass the tensor as an argument and return it, or write to a clone() of it."

    def __init__(self, tensor: Any) -> None:
        self.tensor = weakref.ref(tensor)
        self.cell, self.view = tensor._cell, tensor._view
        self.root = self.cell if self.view is None else self.view.root
        self.shape = list(tensor.shape)

    def is_alive(self) -> bool:
        return self.tensor() is not None

    def put_back(self) -> None:
        tensor = self.tensor()
        if tensor is not None:
            tensor._cell, tensor._view = self.cell, self.view


class _Grad:
    """A tensor whose `.grad` was set, and what that was before."""

    what = "backward set the .grad"
    remedy = "Use autograd.grad() inside, or pass the tensor as an argument."

    def __init__(self, tensor: Any) -> None:
        self.tensor = weakref.ref(tensor)
        self.grad = tensor._meta.grad if tensor._meta is not None else None
        self.shape = list(tensor._cell.array.shape)

    def is_alive(self) -> bool:
        return self.tensor() is not None

    def put_back(self) -> None:
        tensor = self.tensor()
        if tensor is not None:
            tensor.need_meta().grad = self.grad


def unseen(array: Any, old: Any) -> Any:
    """`array`, written over `old` where autograd does not see it: the derivative stays `old`'s."""
    return _like_before(array, old) if jnp.issubdtype(old.dtype, jnp.inexact) else array


@jax.custom_jvp
def _like_before(array: Any, old: Any) -> Any:
    return array


@_like_before.defjvp
def _derivative_of_old(arrays: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
    return arrays[0], tangents[1]


@jax.jit
def stop(*arrays: Any) -> Any:
    """The arrays as constants to JAX's derivatives."""
    return jax.lax.stop_gradient(arrays)


def is_outside(array: Any) -> bool:
    """Whether what is computed of this array must be no tracer, although a function is traced."""
    return current_pure() is not None and not isinstance(array, Tracer)
