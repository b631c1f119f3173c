"""Names: what the user calls the tensors of a graph."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from dyngraph.graph.anomaly import user_frame
from dyngraph.tensor import LEAF, Tensor

Given = Any
"""A dict from names to tensors, pairs of both, a module with `named_parameters()`, or None."""
MOST_ITEMS = 1000
"""How many items of a list or a dict of the caller's are looked at."""


class Names:
    """Names of leaves, and of the outputs of nodes; the first name that a tensor is given counts.

    They are found by identity, so that they hold while the tensors and nodes live.
    """

    def __init__(self) -> None:
        self.leaves: dict[int, str] = {}
        self.outputs: dict[tuple[int, int], str] = {}
        self.arrays: dict[int, list[str]] = {}

    def add(self, name: str, tensor: Tensor) -> None:
        """Names a tensor."""
        if not tensor._cell.is_empty():
            holders = self.arrays.setdefault(id(tensor._cell.array), [])
            if name not in holders:
                holders.append(name)
        edge = None if tensor._edge_is_lost() else tensor._edge
        if edge is None or edge is LEAF:
            self.leaves.setdefault(id(tensor), name)
        else:
            self.outputs.setdefault((id(edge[0]), edge[1]), name)

    def of_leaf(self, tensor: Any) -> str:
        """The name of a leaf; "" where it has none."""
        return self.leaves.get(id(tensor), "")

    def of_output(self, node: Any, output_nr: int) -> str:
        """The name of what a node made; "" where it has none."""
        return self.outputs.get((id(node), output_nr), "")

    def of_array(self, array: Any) -> list[str]:
        """The names of the tensors that hold an array."""
        return self.arrays.get(id(array), [])

    def of(self, tensor: Tensor) -> str:
        """The name of a tensor; "" where it has none."""
        edge = tensor._edge
        if edge is None or edge is LEAF:
            return self.of_leaf(tensor)
        return self.of_output(*edge)


def names_of(given: Given) -> Names:
    """The names that are given, then those of the variables of the function which calls dyngraph.

    `given` is a dict from names to tensors, pairs of both, or a module with `named_parameters()`.
    Raises TypeError for something else.
    """
    names = Names()
    for name, tensor in _pairs(given):
        if not isinstance(name, str) or not isinstance(tensor, Tensor):
            raise TypeError(
                f"names: expected pairs of a str and a Tensor, got {type(name).__name__} and "
                f"{type(tensor).__name__}. Pass a dict from names to tensors, or a module."
            )
        names.add(name, tensor)
    frame = user_frame(sys._getframe(1))
    variables = dict(frame.f_locals)
    if frame.f_globals is not frame.f_locals:
        variables = {
            **{k: v for k, v in frame.f_globals.items() if k not in variables},
            **variables,
        }
    for name, value in variables.items():
        if not name.startswith("_"):
            for full, tensor in _tensors_of(name, value):
                names.add(full, tensor)
    return names


def _pairs(given: Given) -> Iterator[tuple[Any, Any]]:
    if given is None:
        return
    if hasattr(given, "named_parameters"):
        yield from given.named_parameters()
    elif isinstance(given, Mapping):
        yield from given.items()
    else:
        for item in given:
            if not isinstance(item, tuple) or len(item) != 2:
                raise TypeError(
                    f"names: expected pairs of a str and a Tensor, got {type(item).__name__}. Pass "
                    "a dict from names to tensors, or a module."
                )
            yield item


def _tensors_of(name: str, value: Any) -> Iterator[tuple[str, Tensor]]:
    """The tensors that a variable holds, with what they would be called in the program."""
    if isinstance(value, Tensor):
        yield name, value
    elif type(value) in (list, tuple):
        for i, item in enumerate(value[:MOST_ITEMS]):
            if isinstance(item, Tensor):
                yield f"{name}[{i}]", item
    elif type(value) is dict:
        for key, item in list(value.items())[:MOST_ITEMS]:
            if isinstance(item, Tensor):
                yield f"{name}[{key!r}]", item
    elif hasattr(type(value), "named_parameters") and not isinstance(value, type):
        for inner, tensor in value.named_parameters():
            if isinstance(tensor, Tensor):
                yield f"{name}.{inner}", tensor
