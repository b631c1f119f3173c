"""Reached: what a step reads and writes that was there before it and stays behind it.

It is known weakly: what is gone has no value to be read, and no place to be written.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

from dyngraph.storage import Storage
from dyngraph.tensor import Tensor

T = TypeVar("T")


class Known(Generic[T]):
    """Things by identity, in the order in which they were added; those that are gone are left
    out."""

    def __init__(self) -> None:
        self._refs: dict[int, weakref.ref[Any]] = {}

    def add(self, thing: T) -> None:
        """Adds one that is not there."""
        if thing not in self:
            self._refs[id(thing)] = weakref.ref(thing)

    def discard(self, thing: T) -> None:
        """Takes one out, if it is there."""
        if thing in self:
            del self._refs[id(thing)]

    def add_all(self, others: Known[T]) -> bool:
        """Adds those of others; returns whether one was not there."""
        before = len(self._refs)
        for thing in others:
            self.add(thing)
        return len(self._refs) > before

    def __contains__(self, thing: object) -> bool:
        reference = self._refs.get(id(thing))
        return reference is not None and reference() is thing

    def __iter__(self) -> Iterator[T]:
        for reference in list(self._refs.values()):
            thing = reference()
            if thing is not None:
                yield thing


class Reached:
    """Storages, the tensors that they were read by, tensors whose `.grad` matters, generators,
    modules, optimizers, and `lifted`: the numbers of Python's that these gave, each an owner and a
    key."""

    def __init__(self) -> None:
        self.cells: Known[Storage] = Known()
        self.tensors: Known[Tensor] = Known()
        self.leaves: Known[Tensor] = Known()
        self.generators: Known[Any] = Known()
        self.modules: Known[Any] = Known()
        self.optimizers: Known[Any] = Known()
        self.lifted: dict[tuple[int, Any], tuple[weakref.ref[Any], Any]] = {}

    def add_all(self, other: Reached) -> bool:
        """Adds what another has; returns whether some of it is new."""
        grown = [
            self.cells.add_all(other.cells),
            self.tensors.add_all(other.tensors),
            self.leaves.add_all(other.leaves),
            self.generators.add_all(other.generators),
            self.modules.add_all(other.modules),
            self.optimizers.add_all(other.optimizers),
            not self.lifted.keys() >= other.lifted.keys(),
        ]
        self.lifted |= other.lifted
        return any(grown)

    def forget(self, tensors: Iterable[Tensor]) -> None:
        """Leaves out tensors that are another's each time: the arguments of a call."""
        for tensor in tensors:
            self.tensors.discard(tensor)
            self.leaves.discard(tensor)
            self.cells.discard(tensor._cell)

    def take_in_optimizers(self) -> None:
        """Adds the parameters of the optimizers, and what they keep of them."""
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                for tensor in group["params"]:
                    self.leaves.add(tensor)
                    self.tensors.add(tensor)
                    self.cells.add(root_of(tensor._cell))
            for tensor in state_of(optimizer):
                self.tensors.add(tensor)
                self.cells.add(root_of(tensor._cell))


def root_of(cell: Storage) -> Storage:
    """The Storage that has the memory of a cell: its own, or the one that its view looks into."""
    looking = getattr(cell, "looking", None)
    tensor = None if looking is None else looking()
    return cell if tensor is None or tensor._cell is not cell else tensor._view.root


def state_of(optimizer: Any) -> list[Tensor]:
    """The tensors of an optimizer beside its parameters: state, and options that are tensors."""
    found: list[Tensor] = []
    options = [{**group, "params": None} for group in optimizer.param_groups]
    pending: list[Any] = [*optimizer.state.values(), *options]
    while pending:
        value = pending.pop()
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, dict):
            pending += value.values()
        elif isinstance(value, list | tuple):
            pending += value
    return found
