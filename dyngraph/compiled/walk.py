"""The key walk: one pass over a graph that tells whether its backward has run before.

It finds the graph's structure, as a key, and gathers the arrays that its kernels read. A graph in
which Python runs, or where something is wrong that the Engine would raise, has no key: the Engine
walks it, as `recording` says.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import count, islice
from operator import attrgetter, gt, is_
from typing import Any, NamedTuple

import jax

from dyngraph.compiled.program import Sealed
from dyngraph.graph.accumulate import AccumulateGrad
from dyngraph.graph.engine import GraphTask
from dyngraph.graph.node import EDGES, SEQUENCE_NR, Edge, Node, kept_graphs
from dyngraph.placement import are_many, spread_of
from dyngraph.tensor import Tensor
from dyngraph.values import PENDING

_record = attrgetter("record")

NOWHERE, BESIDE, FIRST_LEAF = -1, -2, -3
"""What stands in a key for a node's number: no gradient is needed, or nothing that is asked lies
below; leaves count downwards."""


class Walk(NamedTuple):
    """What the walk has found: the operators' nodes, the arrays, each once, and the key.

    `ends` are the nodes where the backward stops without running them; `accumulating` those that
    add to leaves, each with what is the leaf's `.grad`; `retained` the tensors that retain their
    gradient, by the number of their node, among `ends` and `operators`, and their place there.
    """

    key: Hashable
    ends: list[Any]
    operators: list[Any]
    arrays: list[Any]
    accumulating: list[AccumulateGrad]
    grads: list[Any]
    retained: list[tuple[int, int]]

    def retaining(self, place: int) -> Tensor | None:
        """The tensor behind one of `retained`, if it still lives."""
        number, output_nr = self.retained[place]
        count = len(self.ends)
        node = self.ends[number] if number < count else self.operators[number - count]
        return node.extra.retained[output_nr]()


class Structure(NamedTuple):
    """What a look at every node has found: all that depends on their records alone.

    `arrays` is what is saved, each array once, and `places` where each was met first, by its id;
    `guards` tell of writes to it. `limits` are the edges to nodes that do not run.
    """

    key: Sealed
    ends: list[Any]
    operators: list[Any]
    accumulating: list[AccumulateGrad]
    arrays: list[Any]
    places: dict[int, int]
    guards: list[Any]
    retained: list[tuple[int, int]]
    limits: list[tuple[Node, int]]


def walk(task: GraphTask, edges: Sequence[Edge], gradients: Sequence[Any]) -> Walk | None:
    """The walk of a backward from these edges; None where its graph has no key."""
    if len(edges) > 1 and jax.device_count() > 1:
        return None  # the roots may be on several devices
    pending = task.values is PENDING
    structure = _recall(task, edges) if kept_graphs else None
    if structure is None:
        structure = _look(task, edges, pending=pending)
        if structure is None:
            return None
    known, ends, operators, accumulating, arrays, places, guards, retained, limits = structure
    for owner, version in zip(guards[::2], guards[1::2], strict=True):
        if owner is not None and owner.version != version:
            return None

    grads, values = [], []
    for node in accumulating:
        variable = node.variable
        values.append(variable._cell.held if pending else variable._cell.array)
        meta = variable._meta
        grad = None
        if meta is not None:
            if meta.post_accumulate_hooks:
                return None
            if meta.grad is not None:
                if meta.grad._edge is not None:
                    return None
                grad = meta.grad._cell.held if pending else meta.grad._cell.array
        grads.append(grad)

    # What comes in beside what is saved, each array once as well.
    beyond: dict[int, Any] = {}
    used = []
    for array in [*gradients, *[grad for grad in grads if grad is not None]]:
        place = places.get(id(array))
        if place is None:
            place, _ = beyond.setdefault(id(array), (~len(beyond), array))
        used.append(place)
    others = [array for _, array in beyond.values()]
    key = (
        known,
        tuple(used),
        _types(others),
        _types(values),
        tuple([spread_of(value) for value in values]) if are_many() else (),
        tuple([grad is not None for grad in grads]),
        tuple([node.outputs[number] for node, number in limits]),
    )
    return Walk(key, ends, operators, arrays + others, accumulating, grads, retained)


def _look(task: GraphTask, edges: Sequence[Edge], *, pending: bool) -> Structure | None:
    """Looks at every node that the backward runs; None where one has Python to run, or is freed."""
    roots = list(dict.fromkeys([node for node, _ in edges if node is not None]))
    ends, beside = _restrict(roots, task) if task.asked or task.targets else ([], [])
    numbers: dict[Any, int] = dict.fromkeys(beside, BESIDE)
    numbers[None] = NOWHERE
    nodes = ends[:]
    for root in roots:
        if root not in numbers and root not in ends:
            nodes.append(root)
    numbers.update(zip(nodes, range(len(nodes)), strict=True))

    # One pass that looks at everything of a node: between two backwards a large graph has left
    # the processor's cache, so looking costs more than computing. `nodes` grows as it goes.
    accumulating: list[AccumulateGrad] = []
    with_extra = [node for node in ends if node.extra is not None]
    plans, outputs, created, lifted, guards = [], [], [], [], []
    belows: list[int] = []  # the number of the node behind each edge
    later: list[tuple[int, int]] = []  # of the edges to another output than a node's first
    number_of = numbers.get
    is_lasting = not pending
    try:
        for node in islice(nodes, len(ends), None):
            ways, sequence_nr, made, extra, plan, saved, watched = node.record
            if type(saved) is not tuple:
                if type(saved) is not list:  # freed, or packed
                    return None
                saved = saved if pending else node.arrays()
                is_lasting = False
            plans.append(plan)
            outputs.append(made)
            created.append(sequence_nr)
            lifted += saved
            guards += watched
            for below, output_nr in ways:
                number = number_of(below)
                if number is None:
                    if type(below) is AccumulateGrad:
                        number = FIRST_LEAF - len(accumulating)
                        accumulating.append(below)
                    else:
                        number = len(nodes)
                        nodes.append(below)
                    numbers[below] = number
                if output_nr:
                    later.append((len(belows), output_nr))
                belows.append(number)
            if extra is not None:
                with_extra.append(node)
    except ValueError:  # a node that is no operator's
        return None
    retained: list[tuple[int, int]] = []
    with_extra += [node for node in accumulating if node.extra is not None]
    if with_extra and not _note_extras(with_extra, numbers, retained):
        return None

    operators = nodes[len(ends) :]
    limits = [(node, i) for node in ends for i in range(len(node.outputs))]
    if beside:
        onward = [edge for node in operators for edge in node.record[EDGES]]
        limits += [edge for edge in onward if numbers[edge[0]] == BESIDE]
    ids = list(map(id, lifted))
    places: dict[int, int] = {}
    shared = tuple([*map(places.setdefault, ids, count())])
    arrays = [lifted[place] for place in places.values()]
    key = (
        tuple(plans),
        tuple(outputs),
        _order(created),
        tuple(belows),
        tuple(later),
        shared,
        _types(arrays),
        tuple([(numbers[node], number) for node, number in edges]),
        tuple([(numbers.get(node, BESIDE), number) for node, number in task.asked]),
        tuple([numbers.get(node, BESIDE) for node in task.targets]),
        tuple(retained),
        len(ends),
    )
    found = Structure(
        Sealed(key), ends, operators, accumulating, arrays, places, guards, retained, limits
    )
    if task.keep_graph and is_lasting and not with_extra:
        _remember(task, edges, found)
    return found


# --- graphs that are kept -------------------------------------------------------------------------


class Remembered(NamedTuple):
    """The Structure of a graph that a backward has kept.

    It holds while all nodes have the records that they had: whatever changes a node gives it
    another. `top`, the node made last, is not in it, so that it goes when that goes.
    """

    top_record: Any
    others: list[Node]
    records: list[Any]
    edges: list[Edge]
    asked: Sequence[Edge]
    targets: Sequence[Node]
    structure: Structure


def _remember(task: GraphTask, edges: Sequence[Edge], structure: Structure) -> None:
    """Keeps the Structure for a third backward, where this is the second."""
    top = max([node for node, _ in edges if node is not None], key=_created)
    _, ends, operators, accumulating, *_ = structure
    if top in ends or top in task.targets or top in [node for node, _ in task.asked]:
        return
    if top not in kept_graphs:
        kept_graphs[top] = None
        return
    operators = [node for node in operators if node is not top]
    others = [*ends, *operators, *accumulating]
    kept_graphs[top] = Remembered(
        top.record,
        others,
        list(map(_record, others)),
        _without(top, edges),
        task.asked,
        task.targets,
        structure._replace(operators=operators),
    )


def _recall(task: GraphTask, edges: Sequence[Edge]) -> Structure | None:
    """The Structure of a backward that was just so, of a graph that is as it was."""
    if not task.keep_graph or task.values is PENDING:
        return None
    top = max([node for node, _ in edges if node is not None], key=_created)
    found = kept_graphs.get(top)
    if (
        found is None
        or found.top_record is not top.record
        or found.edges != _without(top, edges)
        or found.asked != task.asked
        or found.targets != task.targets
        or not all(map(is_, map(_record, found.others), found.records))
    ):
        return None
    return found.structure


def _without(top: Node, edges: Sequence[Edge]) -> list[Edge]:
    return [(None if node is top else node, number) for node, number in edges]


# --- parts of the key -----------------------------------------------------------------------------


def _order(created: Sequence[int]) -> tuple[int, ...]:
    """The places of the nodes from the one made first to the one made last; () where that is the
    walk's own order backward."""
    if all(map(gt, created, created[1:])):
        return ()
    return tuple(sorted(range(len(created)), key=created.__getitem__))


def _types(arrays: Sequence[Any]) -> tuple[Any, ...]:
    """Shape, dtype and weak type of each array; None for None."""
    try:
        return tuple([None if array is None else array.aval for array in arrays])
    except AttributeError:  # one is numpy's, which JAX describes more slowly
        return tuple([_type_of(array) for array in arrays])


def _type_of(array: Any) -> Any:
    known = getattr(array, "aval", None)
    if known is None and array is not None:
        return jax.typeof(array)
    return known


def _created(node: Node) -> int:
    return node.record[SEQUENCE_NR]


def _restrict(roots: list[Any], task: GraphTask) -> tuple[list[Any], list[Any]]:
    """Where a backward ends that is not to reach every leaf: the nodes at whose inputs it is
    asked, and those that nothing asked lies below."""
    nodes = dict.fromkeys(roots)
    todo = roots[:]
    while todo:
        for node, _ in todo.pop().record[EDGES]:
            if node is not None and node not in nodes:
                nodes[node] = None
                todo.append(node)
    asked = {node for node, _ in task.asked}
    runs = {node for node in task.targets if node is not None}
    for node in sorted(nodes, key=_created):
        if node not in runs:
            for below, _ in node.record[EDGES]:
                if below in runs or below in asked:
                    runs.add(node)
                    break
    others = [node for node in nodes if node not in runs]
    return [n for n in others if n in asked], [n for n in others if n not in asked]


def _note_extras(
    nodes: Sequence[Node], numbers: dict[Any, int], retained: list[tuple[int, int]]
) -> bool:
    """Notes who retains a gradient; False where a hook hangs on a node."""
    for node in nodes:
        extra = node.extra
        assert extra is not None
        if extra.pre_hooks or extra.post_hooks or any(extra.tensor_hooks.values()):
            return False
        for place, reference in extra.retained.items():
            if reference() is not None:
                retained.append((numbers[node], place))
    return True
