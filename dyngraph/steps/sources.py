"""Sources: where a compiled step finds what goes into it, each time that it is called."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

from dyngraph.steps.reached import Reached, root_of
from dyngraph.storage import Storage
from dyngraph.tensor import Tensor


class Found(NamedTuple):
    """What the sources of a step come to in one call."""

    cells: list[Storage]
    leaves: list[Tensor]


class Sources(NamedTuple):
    """Everything that goes into a step, in the order in which it does.

    First Storages: `cells`, those of the `.grad`s of the leaves with the numbers in `grads`, and
    those of the tensors with the places in `arguments`. Then a key and a count for each of
    `generators`, and the numbers that are `lifted`, each an owner and a key; the arrays among the
    arguments come behind. The leaves, whose `.grad` matters, are `leaves` and the tensors with the
    places in `own_leaves`.
    """

    cells: tuple[weakref.ref[Storage], ...]
    grads: tuple[int, ...]
    arguments: tuple[int, ...]
    leaves: tuple[weakref.ref[Tensor], ...]
    own_leaves: tuple[int, ...]
    generators: tuple[weakref.ref[Any], ...]
    lifted: tuple[tuple[weakref.ref[Any], Any], ...]

    def find(self, given: Sequence[Tensor]) -> Found | None:
        """The Storages and the leaves, where `given` are the tensors among the arguments; None
        where something is gone."""
        cells: list[Any] = [reference() for reference in self.cells]
        leaves: list[Any] = [reference() for reference in self.leaves]
        others = [*self.generators, *[owner for owner, _ in self.lifted]]
        if None in cells or any([x is None for x in leaves]) or None in [x() for x in others]:
            return None
        leaves += [given[place] for place in self.own_leaves]
        grads = [grad_of(leaves[number]) for number in self.grads]
        if any([grad is None for grad in grads]):
            return None
        cells += [grad._cell for grad in grads]  # type: ignore[union-attr]
        cells += [given[place]._cell for place in self.arguments]
        return Found(cells, leaves)

    def numbers(self) -> list[Any]:
        """The arrays that are in no Storage: keys and counts of draws, and lifted numbers."""
        arrays: list[Any] = []
        for reference in self.generators:
            arrays += reference().next()  # type: ignore[union-attr]
        return arrays + [owner().lifted(key)[1] for owner, key in self.lifted]  # type: ignore[union-attr]

    def is_grad(self, place: int) -> bool:
        """Whether the Storage with this number is that of a `.grad`."""
        return len(self.cells) <= place < len(self.cells) + len(self.grads)


def sources_of(reached: Reached, given: Sequence[Tensor]) -> Sources:
    """The sources of a step that reaches this, and is called with these tensors."""
    reached.take_in_optimizers()
    own = {id(tensor) for tensor in given}
    leaves = [leaf for leaf in reached.leaves if id(leaf) not in own]
    own_leaves = [place for place, tensor in enumerate(given) if tensor.is_leaf]
    arguments = {id(tensor._cell): place for place, tensor in enumerate(given)}
    taken = set(arguments)
    grads = []
    for number, leaf in enumerate([*leaves, *[given[place] for place in own_leaves]]):
        grad = grad_of(leaf)
        if grad is not None and id(grad._cell) not in taken:
            taken.add(id(grad._cell))
            grads.append(number)
    cells = [c for c in reached.cells if id(c) not in taken and root_of(c) is c]
    return Sources(
        tuple([weakref.ref(cell) for cell in cells]),
        tuple(grads),
        tuple(arguments.values()),  # last: one may be a view of another, and has its own value
        tuple([weakref.ref(leaf) for leaf in leaves]),
        tuple(own_leaves),
        tuple([weakref.ref(generator) for generator in reached.generators]),
        tuple([entry for entry in reached.lifted.values() if entry[0]() is not None]),
    )


def grad_of(leaf: Tensor) -> Tensor | None:
    """The `.grad` of a tensor, without asking whether it can have one."""
    return None if leaf._meta is None else leaf._meta.grad
