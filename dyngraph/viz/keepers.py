"""Keepers: which arrays a graph keeps for its backward, and who keeps them.

A node keeps what it saved. What a checkpoint computes again is kept by no node; the checkpoint
itself keeps its function's arguments, and the results that its policy has chosen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from dyngraph.graph.node import Node
from dyngraph.utils.checkpoint_policies import kept_results
from dyngraph.utils.recomputation import TENSOR, Region
from dyngraph.viz.contents import arrays_in, contents


class Keeper(NamedTuple):
    """Who keeps an array: the places of nodes in a backward, their kind, and what it is to them.

    Prints as `#2 MulBackward0.self`, or, for a checkpoint, `#2-#5 checkpoint.args[0]`.
    """

    places: tuple[int, ...]
    kind: str
    field: str

    def __str__(self) -> str:
        first, last = self.places[0], self.places[-1]
        span = f"#{first}" if first == last else f"#{first}-#{last}"
        return f"{span} {self.kind}.{self.field}"


def kept_arrays(order: Sequence[Node]) -> Iterator[tuple[Keeper, Any]]:
    """The arrays that the nodes of a backward keep, each as often as it has keepers."""
    regions: dict[Region, list[int]] = {}
    for place, node in enumerate(order):
        kind = node.name().rpartition("::")[2]
        for kept in contents(node):
            yield from [(Keeper((place,), kind, kept.field), array) for array in kept.arrays]
        for region in _regions_of(node):
            regions.setdefault(region, []).append(place)
    for region, places in regions.items():
        for field, array in _of_region(region):
            yield Keeper(tuple(places), "checkpoint", field), array


def _regions_of(node: Node) -> list[Region]:
    """The checkpoints that a node is part of, the innermost first."""
    found: list[Region] = []
    todo = [node]
    while todo:
        for kept in contents(todo.pop()):
            if kept.region is not None and kept.region not in found:
                found.append(kept.region)
                todo.append(kept.region.inputs)
    return found


def _of_region(region: Region) -> Iterator[tuple[str, Any]]:
    """What a checkpoint keeps by itself."""
    positions = [i for i, argument in enumerate(region.args) if argument is TENSOR]
    for position, kept in zip(positions, contents(region.inputs), strict=True):
        yield from [(f"args[{position}]", array) for array in kept.arrays]
    others = [(f"args[{i}]", a) for i, a in enumerate(region.args) if a is not TENSOR]
    for name, value in [*others, *region.kwargs.items()]:
        yield from [(name, array) for array in arrays_in(value)]
    yield from [(f"{name} (policy)", array) for name, array in kept_results(region.context)]
