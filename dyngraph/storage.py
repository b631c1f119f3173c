"""Storage: one mutable cell round an immutable `jax.Array`, with the version that writes raise.

Invariant: whoever needs a tensor's value asks `storage.array`, and nothing else holds one. Aliases
share a Storage, so a write through one is seen by all.

# Note [Views are emptied, and fill themselves]
A view has a cell of its own, a ViewStorage, whose array is a copy of a part of the root's: the
Storage that the view looks into. The root knows the cells of its views, weakly. A write to the root
takes the array out of each of these, and `__getattr__`, which Python calls for a slot that holds
nothing, asks the view's tensor to compute it again. So one that is not up to date holds no old
values. Other cells have no `__getattr__`, since Python 3.11 reads the slots of a class with one
four times slower. The version is kept in each cell, so what compares versions needs no root, and
keeps none alive.

# Note [What a cell holds]
`held` is another name of the slot of `array`. In a `PendingStorage` it holds a Pending, which has a
shape and a dtype and no value yet: `array` computes it, and makes the cell an ordinary one. In an
ordinary cell both are the array, and cost the same.

# Note [Kinds of cells change]
A cell is made as what most cells are, an ordinary Storage, by `cell_of`: an `__init__` would take
longer than all else. It becomes a view's, or one whose value is pending, when that happens.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from dyngraph.pending import Pending, resolved
from dyngraph.placement import put, spread_of
from dyngraph.pure import current_pure
from dyngraph.user_code import caller


class Looking(Protocol):
    """The tensor of a view, as its cell knows it."""

    _cell: Storage
    _view: Any

    def _refill(self) -> None:
        """Fills the view's cell from the root."""
        ...

    def _forget_edge(self) -> None:
        """Makes the view's place in the graph be looked up again."""
        ...


class Storage:
    """The current array, and how many in-place writes led to it (None: an inference tensor's).

    `views` are the cells of the views of it, weakly, each with its family: views of one family
    count their writes together, and None is the root's own. `looking` is the tensor of a view's
    cell, weakly; `written_at` the file and the line of the last write; `batch` the mapped function
    that it was made in, see `batches`. These are set only where they mean something.
    """

    __slots__ = ("__weakref__", "array", "batch", "looking", "version", "views", "written_at")

    array: jax.Array
    held: Any
    """The array, or the Pending that stands for it."""
    version: int | None
    views: list[tuple[weakref.ref[Storage], object]] | None
    looking: weakref.ref[Looking]
    written_at: tuple[str, int]
    batch: Any

    pending: ClassVar[type[Storage]]
    """The kind that a cell of this kind becomes when its value is pending."""
    shown: ClassVar[type[Storage]]
    """The kind that a cell of this kind becomes when it is a view's."""
    settled: ClassVar[type[Storage]]
    """The kind that a cell of this kind becomes when it has its value."""

    def is_empty(self) -> bool:
        """Whether this is a view's cell that a write has emptied."""
        try:
            object.__getattribute__(self, "held")
        except AttributeError:
            return True
        return False

    def empty(self) -> None:
        """Takes out what is there: a view's cell fills itself again."""
        with contextlib.suppress(AttributeError):
            del self.held

    def hold(self, value: Any) -> None:
        """Replaces what is there, by an array or by what is pending; no write is counted."""
        if value.__class__ is Pending:
            self.__class__ = self.pending  # type: ignore[assignment]
            self.held = value
        else:
            self.array = value

    def show(self, tensor: Looking) -> None:
        """Makes this the cell of a view: that of `tensor`."""
        self.__class__ = self.shown  # type: ignore[assignment]
        self.looking = weakref.ref(tensor)

    def holds(self, value: Any) -> bool:
        """Whether this is the Storage of an array, or of what is pending, and of no view."""
        if hasattr(self, "looking"):
            return False
        held = self.held
        return held is value or (held.__class__ is Pending and held.value is value)

    def write(self, array: jax.Array, family: object = None) -> None:
        """Replaces the array as an in-place operation by a tensor of `family` does."""
        pure = current_pure()
        if pure is not None:
            array = pure.write(self, resolved(array))
        place = spread_of(self.held)
        if place is not None:  # see Note [What belongs to a spread array is spread as it is]
            array = put(array, place)
        if array.__class__ is Pending:
            self.hold(array)
        else:
            self.array = array
        if self.views is None:
            if self.version is not None:
                self.version += 1
                self.written_at = caller(3)  # writes come by an in-place form and `assign`
            return
        for tensor in self.lookers():
            tensor._cell.empty()
            if tensor._view.family is family:  # for others nothing is new in the graph
                tensor._forget_edge()
        self.count_write(family)

    def lookers(self) -> Iterator[Looking]:
        """The tensors that are views of this Storage now; one may have moved to another cell."""
        for reference, _ in self.views or ():
            cell = reference()
            tensor = None if cell is None else cell.looking()
            if tensor is not None and tensor._cell is cell:
                yield tensor

    def count_write(self, family: object = None) -> None:
        """Raises the version of all that count their writes together."""
        place = caller(2)
        for cell in self._members(family):
            if cell.version is not None:
                cell.version += 1
                cell.written_at = place

    def set_version(self, version: int, family: object = None) -> None:
        """Sets the version of all that count their writes together."""
        for cell in self._members(family):
            cell.version = version

    def _members(self, family: object) -> list[Storage]:
        members: list[Storage] = [self] if family is None else []
        if not self.views:
            return members
        self.views = [entry for entry in self.views if entry[0]() is not None]
        cells = [reference() for reference, own in self.views if own is family]
        return members + [cell for cell in cells if cell is not None]

    def add_view(self, entry: tuple[weakref.ref[Storage], object]) -> None:
        """Adds to many views, now and then without those that are gone."""
        assert self.views is not None
        if not len(self.views) & (len(self.views) - 1):  # at 8, 16, 32, ...
            self.views = [old for old in self.views if old[0]() is not None]
        self.views.append(entry)


Storage.held = vars(Storage)["array"]


class ViewStorage(Storage):
    """The cell of a view, which fills itself."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if name in ("array", "held"):
            tensor = self.looking()
            if tensor is not None:
                tensor._refill()
                return object.__getattribute__(self, name)
        raise AttributeError(f"this Storage has no {name}")


class PendingStorage(Storage):
    """A cell whose value is pending, until it is asked for its array."""

    __slots__ = ()

    @property
    def array(self) -> jax.Array:
        held = self.held
        array = held.force() if held.__class__ is Pending else held
        self.held = array
        self.__class__ = self.settled  # type: ignore[assignment]
        return array

    @array.setter
    def array(self, array: jax.Array) -> None:  # type: ignore[override]
        self.held = array
        self.__class__ = self.settled  # type: ignore[assignment]


class PendingViewStorage(PendingStorage, ViewStorage):  # type: ignore[misc]
    """The cell of a view whose value is pending."""

    __slots__ = ()


Storage.pending = PendingStorage.pending = PendingStorage
Storage.shown = ViewStorage.shown = ViewStorage
ViewStorage.pending = PendingStorage.shown = PendingViewStorage
PendingViewStorage.pending = PendingViewStorage.shown = PendingViewStorage
Storage.settled = PendingStorage.settled = Storage  # another thread may have settled it
ViewStorage.settled = PendingViewStorage.settled = ViewStorage


def cell_of(held: Any, version: int | None = 0) -> Storage:
    """A new cell of an array, or of what is pending."""
    cell = PendingStorage() if held.__class__ is Pending else Storage()
    cell.held, cell.version, cell.views = held, version, None
    return cell


class Place(Storage):
    """Numbers that a kernel takes as an array: numpy's the first time, JAX's own from then on.

    One of JAX's takes fifty microseconds to make, and saves two in each call.
    """

    __slots__ = ("_array", "_was_read")

    def __init__(self, numbers: tuple[int, ...]) -> None:
        self._array: Any = np.array(numbers, np.int32)
        self._was_read = False
        self.version = 0
        self.views = None

    @property
    def array(self) -> Any:  # type: ignore[override]
        array = self._array
        if array.__class__ is np.ndarray:
            if self._was_read:
                with jax.ensure_compile_time_eval():  # it is kept, so it must be no tracer
                    array = self._array = jnp.asarray(array)
            self._was_read = True
        return array

    held = array


def write_all(cells: Iterable[Storage], arrays: Iterable[jax.Array]) -> None:
    """Replaces the array of each cell, none of a view, as one in-place operation."""
    place, noted = caller(2), current_pure() is not None
    for cell, array in zip(cells, arrays, strict=True):
        if cell.views is None and cell.version is not None and not noted:
            cell.array = array
            cell.version += 1
            cell.written_at = place
        else:
            cell.write(array)


def are_inference(cells: Iterable[Storage | None]) -> bool:
    """Whether all tensors here are inference tensors; None, for a number, and Places do not
    count."""
    return all(c is None or c.version is None or type(c) is Place for c in cells)
