"""The key walk: one pass over a graph that tells whether its backward has run before.

It finds the graph's structure, as a key, and gathers the arrays that its kernels read. A graph in
which Python runs, or where something is wrong that the Engine would raise, has no key: the Engine
walks it, as `recording` says.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any, NamedTuple

import jax

from dyngraph.graph.accumulate import FIRST, AccumulateGrad
from dyngraph.graph.engine import GraphTask
from dyngraph.graph.node import Edge, Node
from dyngraph.tensor import Tensor

_created = attrgetter("sequence_nr")


class Walk(NamedTuple):
    """What the walk has found: the nodes in the Engine's order, those of them that run, the arrays,
    each once, and the key.

    `leaves` are the leaves that accumulate, each with its number among the nodes; `retained` the
    tensors that retain their gradient, by the number of their node and their place there.
    """

    key: Hashable
    nodes: list[Any]
    running: list[Any]
    arrays: list[Any]
    leaves: list[tuple[int, Tensor]]
    grads: list[Any]
    retained: list[tuple[int, int]]


def walk(task: GraphTask, edges: Sequence[Edge], gradients: Sequence[Any]) -> Walk | None:
    """The walk of a backward from these edges; None where its graph has no key."""
    if len(edges) > 1 and jax.device_count() > 1:
        return None  # the roots may be on several devices
    seen: dict[Any, None] = dict.fromkeys([node for node, _ in edges])
    seen[None] = None
    nodes = [node for node in seen if node is not None]
    todo = nodes[:]
    while todo:
        for node, _ in todo.pop().edges:
            if node not in seen:
                seen[node] = None
                nodes.append(node)
                todo.append(node)
    nodes.sort(key=_created, reverse=True)
    running, asked, beside = nodes, [], []
    if task.asked or task.targets:
        nodes, running, asked, beside = _restrict(nodes, task)
    count = 0
    while count < len(running) and running[count].sequence_nr == FIRST:
        if type(running[count]) is not AccumulateGrad:
            return None
        count += 1
    accumulating, operators = running[:count], running[count:]
    ends = [*accumulating, *asked]

    index: dict[Any, int] = dict(zip(nodes, range(len(nodes)), strict=True))
    for node in beside:
        index[node] = -2
    index[None] = -1
    retained: list[tuple[int, int]] = []
    if not _note_extras([node for node in nodes if node.extra is not None], index, retained):
        return None
    # One pass that looks at everything of a node: between two backwards a large graph has left
    # the processor's cache, so looking costs more than computing.
    plans, outputs, lifted, guards, targets, numbers = [], [], [], [], [], []
    try:
        for node in operators:
            plans.append(node.plan)
            outputs.append(node.outputs)
            if type(node.saved) is not tuple:  # freed, or packed
                return None
            lifted += node.saved
            guards += node.guards
            for target, number in node.edges:
                targets.append(index[target])
                numbers.append(number)
    except AttributeError:  # a node that is no operator's
        return None
    for owner, version in zip(guards[::2], guards[1::2], strict=True):
        if owner is not None and owner.version != version:
            return None

    leaves, grads = [], []
    for node in accumulating:
        variable = node.variable
        meta = variable.need_meta()
        if meta.post_accumulate_hooks:
            return None
        grad = meta.grad
        if grad is not None and grad._edge is not None:
            return None
        leaves.append((index[node], variable))
        grads.append(None if grad is None else grad._cell.array)

    lifted += gradients
    lifted += [grad for grad in grads if grad is not None]
    ids = list(map(id, lifted))
    unique = dict(zip(ids, lifted, strict=True))
    places = dict(zip(unique, range(len(unique)), strict=True))
    arrays = list(unique.values())
    key = (
        tuple(plans),
        tuple(outputs),
        tuple(targets),
        tuple(numbers),
        tuple([places[i] for i in ids]),
        _types(arrays),
        tuple([(index[node], number) for node, number in edges]),
        tuple([grad is not None for grad in grads]),
        tuple([(index.get(node, -2), number) for node, number in task.asked]),
        tuple([index.get(node, -2) for node in task.targets]),
        tuple(retained),
        tuple([node.outputs for node in ends]),
        _shapes_beside(operators, set(beside)) if beside else (),
    )
    return Walk(key, nodes, running, arrays, leaves, grads, retained)


def _types(arrays: Sequence[Any]) -> tuple[Any, ...]:
    """Shape, dtype and weak type of each array; None for None."""
    try:
        return tuple([array.aval for array in arrays])
    except AttributeError:  # one is None, or numpy's, which JAX describes more slowly
        return tuple([_type_of(array) for array in arrays])


def _type_of(array: Any) -> Any:
    known = getattr(array, "aval", None)
    if known is None and array is not None:
        return jax.typeof(array)
    return known


def _shapes_beside(operators: Sequence[Any], beside: set[Any]) -> tuple[Any, ...]:
    """Shape and dtype of the gradients that are made and go nowhere."""
    edges = chain.from_iterable([node.edges for node in operators])
    return tuple([node.outputs[number] for node, number in edges if node in beside])


def _restrict(
    nodes: list[Any], task: GraphTask
) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
    """The nodes that matter to what is asked; of them those that run, and those at whose inputs it
    ends; and the others."""
    asked = {node for node, _ in task.asked}
    runs = {node for node in task.targets if node is not None}
    for node in reversed(nodes):
        if node not in runs:
            for below, _ in node.edges:
                if below in runs or below in asked:
                    runs.add(node)
                    break
    kept = [node for node in nodes if node in runs or node in asked]
    return (
        kept,
        [node for node in kept if node in runs],
        [node for node in kept if node not in runs],
        [node for node in nodes if node not in runs and node not in asked],
    )


def _note_extras(
    nodes: Sequence[Node], index: dict[Any, int], retained: list[tuple[int, int]]
) -> bool:
    """Notes who retains a gradient; False where a hook hangs on a node."""
    for node in nodes:
        extra = node.extra
        assert extra is not None
        if extra.pre_hooks or extra.post_hooks or any(extra.tensor_hooks.values()):
            return False
        for place, reference in extra.retained.items():
            if reference() is not None:
                retained.append((index[node], place))
    return True
