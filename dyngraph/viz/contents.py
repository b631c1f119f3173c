"""Contents: what a node keeps for its backward, without asking any unpack hook for it."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np

from dyngraph.autograd.function_node import BackwardCFunction
from dyngraph.graph.node import Node
from dyngraph.graph.packing import Packed
from dyngraph.operator_node import OperatorNode
from dyngraph.storage import Place, Storage
from dyngraph.tensor import Tensor
from dyngraph.utils.recomputation import Region, Slot
from dyngraph.viz.lettering import described, in_bytes

MODIFIED, RECOMPUTED, PACKED = "modified", "recomputed", "packed"


class Kept(NamedTuple):
    """One saved value: its field, its arrays, and what is special about it.

    `owner` is the Storage that it was saved from, where that is known. `state` is "" or one of
    MODIFIED (backward will refuse it), RECOMPUTED (by a checkpoint, see `region`) and PACKED (by a
    hook).
    """

    field: str
    arrays: tuple[Any, ...]
    owner: Storage | None
    state: str
    versions: tuple[int | None, int | None]
    source: int | None
    """Which of an operator's fields it is; None for a Function's."""
    region: Region | None = None

    @property
    def nbytes(self) -> int:
        """The bytes of its arrays."""
        return sum([array.nbytes for array in self.arrays])

    @property
    def line(self) -> str:
        """What stands of it in a node's box."""
        return f"{self}" if self.field.startswith("saved") else f"saved {self}"

    def __str__(self) -> str:
        if self.state == RECOMPUTED:
            return f"{self.field}: recomputed"
        shown = ", ".join([described(a.shape, a.dtype) for a in self.arrays])
        text = f"{self.field}: {shown}, {in_bytes(self.nbytes)}" if shown else f"{self.field}:"
        if self.state == MODIFIED:
            return f"{text}, modified: version {self.versions[0]}, now {self.versions[1]}"
        return f"{text} ({self.state})" if self.state else text


def contents(node: Node) -> list[Kept]:
    """What a node keeps; nothing once it is freed."""
    if isinstance(node, OperatorNode):
        return _of_operator(node)
    if isinstance(node, BackwardCFunction):
        return _of_function(node)
    return []


def is_freed(node: Node) -> bool:
    """Whether what a node kept was freed, so that it can't run again."""
    return isinstance(node, OperatorNode | BackwardCFunction) and node.saved is None


def _of_operator(node: OperatorNode) -> list[Kept]:
    found: list[Kept] = []
    names = node.field_names()
    for position, value in enumerate(node.saved or ()):
        source = node.plan.sources[position]
        owner, version = node.guards[2 * position : 2 * position + 2]
        if value is not None and type(owner) is not Place:
            kept = _kept(names[source], value, owner, version, source)
            if kept is not None:
                found.append(kept)
    return found


def _of_function(node: BackwardCFunction) -> list[Kept]:
    entries = enumerate(node.saved or ())
    found = [
        _kept(f"saved_tensors[{i}]", entry.value, entry.owner, entry.version, None)
        for i, entry in entries
        if entry is not None
    ]
    return [kept for kept in found if kept is not None]


def _kept(
    field: str, value: Any, owner: Storage | None, version: int | None, source: int | None
) -> Kept | None:
    if type(value) is Packed:
        slot = value.value
        if isinstance(slot, Slot):
            return Kept(field, (), None, RECOMPUTED, (None, None), source, slot.region)
        return Kept(field, tuple(arrays_in(slot)), None, PACKED, (None, None), source)
    if not isinstance(value, jax.Array | np.ndarray):
        return None  # a number
    now = None if owner is None else owner.version
    state = MODIFIED if owner is not None and now != version else ""
    return Kept(field, (value,), owner, state, (version, now), source)


def arrays_in(packed: Any) -> list[Any]:
    """The arrays in what a pack hook returned."""
    is_tensor = lambda value: isinstance(value, Tensor)  # noqa: E731
    leaves = jax.tree_util.tree_leaves(packed, is_leaf=is_tensor)
    values = [leaf._cell.array if isinstance(leaf, Tensor) else leaf for leaf in leaves]
    return [value for value in values if isinstance(value, jax.Array | np.ndarray)]
