"""A user's Function in a mapped function: its node, and its backward, for all examples at once.

`forward` runs on one example like everything else. Its node is lifted with the graph (see Note [The
graph is lifted]): what it saved is then of all examples, and `backward`, which was written for one,
is mapped each time it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple

from dyngraph.graph.packing import Packed
from dyngraph.lifting import Lift, run_mapped, spread_all
from dyngraph.operator_node import unpacked
from dyngraph.tensor import Tensor


class Lifted(NamedTuple):
    """How many examples a node is of, and which of its saved tensors differ between them."""

    size: int
    batched: tuple[bool, ...]


_shown: ContextVar[tuple[Any, tuple[Any, ...]] | None] = ContextVar("dyngraph_shown", default=None)


def saved_of_example(node: Any) -> tuple[Any, ...] | None:
    """What a lifted node shows as saved while its backward runs on one example."""
    shown = _shown.get()
    return shown[1] if shown is not None and shown[0] is node else None


def collect_saved(node: Any) -> tuple[list[Any], list[Any]]:
    """The saved arrays of a node, and the tensors and nodes behind them."""
    arrays, behind = [], []
    entries = []
    for entry in node.saved or ():
        if entry is not None and type(entry.value) is Packed:
            value = unpacked(entry.value)._cell.array  # what a hook packed belongs to one example
            entry = entry._replace(value=value, owner=None, version=None)
        if entry is not None:
            arrays.append(entry.value)
            if entry.edge is not None:
                behind.append(entry.edge[0])
            behind += [t.tensor for t in entry.tangent or () if t.tensor is not None]
        entries.append(entry)
    if node.saved is not None:
        node.saved = tuple(entries)
    return arrays, behind


def lift_saved(node: Any, lift: Lift) -> None:
    """Makes a node that of all examples."""
    entries, batched = [], []
    for entry in node.saved or ():
        differs = False
        if entry is not None:
            value, differs = lift.array(entry.value)
            if not differs and (entry.output_nr is not None or lift.is_lifted(entry.edge)):
                value, differs = lift.spread(entry.value), True
            edge = lift.edge(entry.edge) if differs else entry.edge
            tangent = entry.tangent and lift.saved_tangents(entry.tangent, spread=differs)
            owner = lift.guard(entry.owner)
            entry = entry._replace(
                value=value, owner=owner, edge=edge, origin=None, tangent=tangent
            )
        entries.append(entry)
        batched.append(differs)
    size = lift.batch.size
    if node.saved is not None:
        node.saved = tuple(entries)
    node.returned = tuple(
        o if o is None else o._replace(shape=(size, *o.shape)) for o in node.returned
    )
    node.lifted = Lifted(size, tuple(batched))


def run_lifted(
    node: Any, backward: Callable[..., Sequence[Any]], grads: Sequence[Tensor | None]
) -> list[Tensor | None]:
    """`backward(grads)`, written for one example, for all: what it returns, checked, for each."""
    size, batched = node.lifted
    saved = [node.show(i) for i in range(len(node.saved or ()))]
    present: list[bool] = []
    inputs = [s for s, differs in zip(saved, batched, strict=True) if differs]
    inputs += [g for g in grads if g is not None]

    def of_example(*examples: Tensor) -> list[Tensor]:
        left = iter(examples)
        pairs = zip(saved, batched, strict=True)
        own = tuple(next(left) if differs else s for s, differs in pairs)
        before = _shown.set((node, own))
        try:
            found = backward([None if g is None else next(left) for g in grads])
        finally:
            _shown.reset(before)
        present[:] = [g is not None for g in found]
        return [g for g in found if g is not None]

    results = iter(spread_all(run_mapped(of_example, inputs, size), size))
    return [next(results) if there else None for there in present]
