"""The key walk: one pass over a graph that tells whether its backward has run before.

It finds the graph's structure, as a key, and gathers the arrays that its kernels read. A graph in
which Python runs, or where something is wrong that the Engine would raise, has no key: the Engine
walks it, as `recording` says.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import count, islice
from operator import attrgetter, gt
from typing import Any, NamedTuple

import jax

from dyngraph.graph.accumulate import AccumulateGrad
from dyngraph.graph.engine import GraphTask
from dyngraph.graph.node import Edge, Node
from dyngraph.placement import are_many, spread_of
from dyngraph.tensor import Tensor
from dyngraph.values import PENDING

_created = attrgetter("sequence_nr")

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


def walk(task: GraphTask, edges: Sequence[Edge], gradients: Sequence[Any]) -> Walk | None:
    """The walk of a backward from these edges; None where its graph has no key."""
    if len(edges) > 1 and jax.device_count() > 1:
        return None  # the roots may be on several devices
    pending = task.values is PENDING
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
    try:
        for node in islice(nodes, len(ends), None):
            ways, sequence_nr, made, extra, plan, saved, watched = node.record
            if type(saved) is not tuple:
                if type(saved) is not list:  # freed, or packed
                    return None
                saved = saved if pending else node.arrays()
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
    for owner, version in zip(guards[::2], guards[1::2], strict=True):
        if owner is not None and owner.version != version:
            return None
    retained: list[tuple[int, int]] = []
    with_extra += [node for node in accumulating if node.extra is not None]
    if with_extra and not _note_extras(with_extra, numbers, retained):
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

    operators = nodes[len(ends) :]
    lifted += gradients
    lifted += [grad for grad in grads if grad is not None]
    ids = list(map(id, lifted))
    first: dict[int, int] = {}
    shared = tuple([*map(first.setdefault, ids, count())])
    arrays = [lifted[place] for place in first.values()]
    key = (
        tuple(plans),
        tuple(outputs),
        _order(created),
        tuple(belows),
        tuple(later),
        shared,
        _types(arrays),
        _types(values),
        tuple([spread_of(value) for value in values]) if are_many() else (),
        tuple([grad is not None for grad in grads]),
        tuple([(numbers[node], number) for node, number in edges]),
        tuple(retained),
        _restriction(task, ends, operators, numbers) if task.asked or task.targets else (),
    )
    return Walk(key, ends, operators, arrays, accumulating, grads, retained)


def _restriction(
    task: GraphTask, ends: Sequence[Node], operators: Sequence[Node], numbers: dict[Any, int]
) -> tuple[Any, ...]:
    """What the key of a backward says that is not to reach every leaf."""
    onward = [edge for node in operators for edge in node.edges]
    return (
        tuple([(numbers.get(node, BESIDE), number) for node, number in task.asked]),
        tuple([numbers.get(node, BESIDE) for node in task.targets]),
        tuple([tuple(node.outputs) for node in ends]),
        tuple([below.outputs[nr] for below, nr in onward if numbers[below] == BESIDE]),
    )


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


def _restrict(roots: list[Any], task: GraphTask) -> tuple[list[Any], list[Any]]:
    """Where a backward ends that is not to reach every leaf: the nodes at whose inputs it is
    asked, and those that nothing asked lies below."""
    nodes = dict.fromkeys(roots)
    todo = roots[:]
    while todo:
        for node, _ in todo.pop().edges:
            if node is not None and node not in nodes:
                nodes[node] = None
                todo.append(node)
    asked = {node for node, _ in task.asked}
    runs = {node for node in task.targets if node is not None}
    for node in sorted(nodes, key=_created):
        if node not in runs:
            for below, _ in node.edges:
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
