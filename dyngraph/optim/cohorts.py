"""Cohorts: which parameters a step moves together, and the tensors that it writes.

To look at every parameter in Python takes as long as it takes XLA to move them, so what one step
has found is kept, and the next only checks that it is still so.
"""

from __future__ import annotations

import itertools
import operator
from collections import Counter
from typing import Any, NamedTuple

import jax

from dyngraph import batches, modes
from dyngraph.errors import InPlaceError
from dyngraph.storage import Storage, write_all
from dyngraph.tensor import Tensor

State = dict[str, Tensor]
NEVER = -1
"""The version of a parameter whose array no update has made."""


class Cohort:
    """Parameters of one group, on the same devices, with as many steps behind them.

    `own` are the tensors of their states by name, None for a parameter that has none of a name;
    `shared` the tensors that hold a number of all their states. `versions` are those that the last
    update has left the parameters with.
    """

    __slots__ = ("cells", "first", "group", "own", "params", "shared", "states", "versions")

    def __init__(
        self, group: int, params: list[Tensor], states: list[State], shared: tuple[str, ...]
    ) -> None:
        self.group = group
        self.params = params
        self.states = states
        self.first = False
        self.cells = [p._cell for p in params]
        self.versions = [NEVER] * len(params)
        self.shared = {name: states[0][name] for name in shared}
        names = dict.fromkeys(name for state in states for name in state)
        self.own = {n: [state.get(n) for state in states] for n in names if n not in shared}

    def split(self) -> list[Cohort]:
        """A cohort for each parameter."""
        parts = []
        for p, state, version in zip(self.params, self.states, self.versions, strict=True):
            part = Cohort(self.group, [p], [state], tuple(self.shared))
            part.first, part.versions = self.first, [version]
            parts.append(part)
        return parts

    def grads(self) -> list[Tensor] | None:
        """The gradients as they are now; None if one is missing."""
        metas = [p._meta for p in self.params]
        if None in metas:
            return None
        grads = [meta.grad for meta in metas]  # type: ignore[union-attr]
        return None if any([grad is None for grad in grads]) else grads  # type: ignore[return-value]

    def is_as_found(self) -> bool:
        """Whether these are still the tensors that a step reads and writes."""
        if [p._cell for p in self.params] != self.cells:
            return False
        for name, tensors in self.own.items():
            if not _are_same([state.get(name) for state in self.states], tensors):
                return False
        for name, tensor in self.shared.items():
            now = [state.get(name) for state in self.states]
            if not all(map(operator.is_, now, itertools.repeat(tensor))):
                return False
        return True


class Found(NamedTuple):
    """What a step has found.

    `lists` are the parameters of the groups, `states` all states, `idle` the parameters without a
    gradient. Each of `calls` is moved by one call: there are several where parameters are on
    different devices. `users` counts who shares each number.
    """

    lists: list[list[Tensor]]
    states: list[State]
    idle: list[Tensor]
    calls: list[list[Cohort]]
    users: Counter[int]

    def holds(self, lists: list[list[Tensor]], states: list[State]) -> bool:
        """Whether a step finds this again, gradients apart."""
        return (
            len(lists) == len(self.lists)
            and all(map(_are_same, lists, self.lists))
            and _are_same(states, self.states)
            and not any([has_grad(p) for p in self.idle])
            and all([cohort.is_as_found() for cohorts in self.calls for cohort in cohorts])
        )


def _are_same(now: list[Any], before: list[Any]) -> bool:
    return len(now) == len(before) and all(map(operator.is_, now, before))


def has_grad(param: Tensor) -> bool:
    return param._meta is not None and param._meta.grad is not None


def check_writable(param: Tensor) -> None:
    """Raises RuntimeError where a parameter can't be written to."""
    flags = modes.get_flags()
    if param._cell.version is None and not flags & modes.INFERENCE:
        raise InPlaceError.inference()
    if flags & modes.MAPPED:
        assert param._meta is not None and param._meta.grad is not None
        batches.check_write(param._cell, param._meta.grad._cell.array)


def write_params(params: list[Tensor], cells: list[Storage], moved: list[jax.Array]) -> None:
    """Writes new values to parameters, whose cells are given, as one in-place operation."""
    if any([p._view is not None for p in params]):
        for p, array in zip(params, moved, strict=True):
            p._write(array)
    else:
        write_all(cells, moved)


def versions_of(found: Found | None) -> dict[Storage, int]:
    """The versions that updates have left the parameters with."""
    if found is None:
        return {}
    cohorts = [cohort for call in found.calls for cohort in call]
    return {c: v for cohort in cohorts for c, v in zip(cohort.cells, cohort.versions, strict=True)}
