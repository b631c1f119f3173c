"""Names: what the user calls the tensors of a graph."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from dyngraph.tensor import LEAF, Tensor
from dyngraph.user_code import user_frame

Given = Any
"""A dict from names to tensors, pairs of both, a module with `named_parameters()`, or None."""
HISTORY = ("In", "Out")
"""Where IPython keeps what was typed and shown: no names of the user's."""
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
        """Names a tensor that has no name yet."""
        edge = None if tensor._edge_is_lost() else tensor._edge
        if edge is None or edge is LEAF:
            known = self.leaves.setdefault(id(tensor), name)
        else:
            known = self.outputs.setdefault((id(edge[0]), edge[1]), name)
        if known is name and not tensor._cell.is_empty():
            self.arrays.setdefault(id(tensor._cell.array), []).append(name)

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
    """The names that are given, then those of the variables of the function which calls dyngraph:
    first of the tensors, then of lists, dicts and modules that hold some.

    `given` is a dict from names to tensors, pairs of both, or a module with `named_parameters()`.
    Raises TypeError for something else.
    """
    names = Names()
    for name, tensor in pairs_of(given):
        names.add(name, tensor)
    frame = user_frame(sys._getframe(1))
    variables = _variables_of(frame)
    variables = {n: v for n, v in variables.items() if not n.startswith("_") and n not in HISTORY}
    for name, value in sorted(variables.items(), key=lambda item: not isinstance(item[1], Tensor)):
        for full, tensor in _tensors_of(name, value):
            names.add(full, tensor)
    return names


def _variables_of(frame: Any) -> dict[str, Any]:
    """The variables that a function sees: its own, then those of its module."""
    found = dict(frame.f_locals)
    found.update({k: v for k, v in frame.f_globals.items() if k not in found})
    if frame.f_code.co_flags & inspect.CO_OPTIMIZED and type(frame.f_locals) is dict:
        # Before Python 3.13 these are a copy, which would live, with all in it, as long as the call
        frame.f_locals.clear()
    return found


def pairs_of(given: Given) -> Iterator[tuple[str, Tensor]]:
    """Names and tensors; TypeError for something else."""
    if given is None:
        return
    if hasattr(given, "named_parameters"):
        given = given.named_parameters()
    elif isinstance(given, Mapping):
        given = given.items()
    for item in given:
        if not isinstance(item, tuple) or len(item) != 2:
            raise TypeError(
                f"expected pairs of a name and a Tensor, got {type(item).__name__}. Pass a dict "
                "from names to tensors, or a module."
            )
        name, tensor = item
        if not isinstance(name, str) or not isinstance(tensor, Tensor):
            raise TypeError(
                f"expected pairs of a name and a Tensor, got {type(name).__name__} and "
                f"{type(tensor).__name__}. Pass a dict from names to tensors, or a module."
            )
        yield name, tensor


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
