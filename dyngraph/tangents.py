"""Tangents of forward mode: which tensor carries one, and the level that they end with.

Invariant: what tensors and nodes keep are `Tangent`s, boxes that their level empties when it is
left. So nothing computed at a level outlives it, whoever still holds the tensors.

# Note [Levels nest]
A tensor may carry one tangent for each open level. An operator handles the innermost one, and runs
the operators for that with the level outside it open; so the tangents of an inner level carry those
of the outer ones, which makes derivatives of derivatives. `forward_ad` opens no level inside
another, as in PyTorch; `func.jvp` does.
"""

from __future__ import annotations

import weakref
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from dyngraph import modes

if TYPE_CHECKING:
    from dyngraph.tensor import Tensor


class Tangent:
    """The tangent of one tensor at one level; empty once that level has been left."""

    __slots__ = ("__weakref__", "level", "tensor")

    def __init__(self, tensor: Tensor, level: Level) -> None:
        self.tensor: Tensor | None = tensor
        self.level = level
        level.tangents.add(self)


class Level:
    """The stretch of a program between entering forward mode and leaving it.

    `outer` is the level inside which it was opened.
    """

    __slots__ = ("outer", "tangents")

    def __init__(self, outer: Level | None = None) -> None:
        self.outer = outer
        self.tangents: weakref.WeakSet[Tangent] = weakref.WeakSet()

    def empty(self) -> None:
        """Drops every tangent of this level."""
        for tangent in list(self.tangents):
            tangent.tensor = None


# As with the modes, each thread and each asyncio task has a level of its own.
_level: ContextVar[Level | None] = ContextVar("dyngraph_level", default=None)
_enabled = ContextVar("dyngraph_forward_enabled", default=True)


def enter_level() -> None:
    """Opens a level; RuntimeError where one is open."""
    if _level.get() is not None:
        raise RuntimeError(
            "Nested forward mode AD is not supported at the moment. Exit the open level first; for "
            "second derivatives use autograd.grad() inside it, or dg.func.jvp, which nests."
        )
    open_level(Level())


def nest_level() -> Level:
    """Opens a level inside the one that is open here, if any."""
    level = Level(_level.get())
    open_level(level)
    return level


def exit_level() -> None:
    """Leaves the open level and drops its tangents; RuntimeError where none is open."""
    level = _level.get()
    if level is None:
        raise RuntimeError(
            "Dual level must be a positive number: no level of forward mode is open here. Call "
            "enter_dual_level() first."
        )
    open_level(level.outer)
    level.empty()


def current_level() -> Level | None:
    """The innermost level that is open in this thread."""
    return _level.get()


def open_level(level: Level | None) -> None:
    """Makes `level` the innermost one; with None, no level is open."""
    _level.set(level)
    _set_flag()


def is_level_open() -> bool:
    """Whether this thread is between entering a level and leaving it."""
    return _level.get() is not None


def is_enabled() -> bool:
    """Whether tensors carry tangents inside a level."""
    return _enabled.get()


def set_enabled(enabled: bool) -> None:
    """Switches off, or on again, that tensors carry tangents inside a level."""
    _enabled.set(enabled)
    _set_flag()


def _set_flag() -> None:
    on = _enabled.get() and _level.get() is not None
    modes.set_flags(modes.get_flags() & ~modes.FORWARD | (modes.FORWARD if on else 0))


def are_carried() -> bool:
    """Whether tensors carry tangents here: a level is open, and inference mode is off."""
    return modes.get_flags() & (modes.FORWARD | modes.INFERENCE) == modes.FORWARD


def tangent_of(tensor: Any) -> Tensor | None:
    """The tangent that a tensor carries at the level which is innermost here."""
    meta = tensor._meta
    if meta is None or meta.tangent is None or not are_carried():
        return None
    level = _level.get()
    return next((t.tensor for t in meta.tangent if t.level is level), None)


def tangents_of(tensor: Any) -> tuple[Tangent, ...]:
    """The tangents that a tensor carries, of all levels."""
    meta = tensor._meta
    if meta is None or meta.tangent is None:
        return ()
    return tuple(t for t in meta.tangent if t.tensor is not None)


def give_tangent(tensor: Any, tangent: Tensor, level: Level | None = None) -> None:
    """Makes `tangent` the tangent of `tensor` until `level`, else the innermost one, is left."""
    level = _level.get() if level is None else level
    assert level is not None, "a tangent belongs to a level"
    others = [t for t in tangents_of(tensor) if t.level is not level]
    tensor.need_meta().tangent = (*others, Tangent(tangent, level))


def share_tangent(source: Any, target: Any) -> None:
    """Gives `target` the tangents that `source` carries, and takes its own where there are none."""
    tangent = None if source._meta is None else source._meta.tangent
    if tangent is not None or target._meta is not None:
        target.need_meta().tangent = tangent


def carries_more(tensor: Any, other: Any) -> bool:
    """Whether `tensor` carries a tangent of a level of which `other` carries none."""
    levels = {t.level for t in tangents_of(other)}
    return are_carried() and any(t.level not in levels for t in tangents_of(tensor))
