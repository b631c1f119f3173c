"""The backward in deferred mode: its kernels join the calls that were put off.

The Engine walks a graph whose structure is new, and notes a kernel a node. What it noted is kept as
a Fragment, by the structure's key: the next backward of that structure is one call.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence as Row
from typing import Any, NamedTuple

from dyngraph.compiled.program import Cache
from dyngraph.compiled.walk import Walk, walk
from dyngraph.graph.accumulate import Held
from dyngraph.graph.engine import GraphTask
from dyngraph.graph.node import Edge
from dyngraph.pending import Kind, Pending
from dyngraph.sequence import Sequence, current_sequence
from dyngraph.values import PENDING


class Fragment:
    """Calls of a sequence as one call of it.

    `flat` and `kinds` are the calls as a Sequence has them, with what they take from elsewhere
    numbered -1, -2, ..., `outputs` the numbers of what they make for others.
    """

    __slots__ = ("__name__", "flat", "kinds", "made", "outputs")

    def __init__(self, flat: Row[Any], kinds: Row[Any], outputs: Row[int]) -> None:
        self.__name__ = "backward"
        self.flat = flat
        self.kinds = kinds
        self.outputs = outputs
        every = [k for kind in kinds for k in (kind if type(kind) is tuple else (kind,)) if k]
        self.made: tuple[Kind, ...] = tuple([every[number] for number in outputs])


class Joined(NamedTuple):
    """How the backward of one structure joins a sequence.

    `inputs` are the Fragment's, by their places among the walk's arrays. `stored` says for each of
    the walk's leaves what its `.grad` becomes, `captured` what is asked: the number of an output,
    or `~` the place of an array of the walk; None where nothing arrives.
    """

    fragment: Fragment
    inputs: tuple[int, ...]
    stored: tuple[int | None, ...]
    captured: tuple[tuple[int, int | None], ...]


_known = Cache(lambda joined: len(joined.fragment.kinds))


def run_joined(task: GraphTask, edges: Row[Edge], gradients: Row[Any]) -> None:
    """Sends gradients through a graph as the Engine does, with its kernels put off."""
    found = walk(task, edges, gradients)
    if found is None or found.retained:
        GraphTask.run(task, edges, gradients)
        return
    joined = _known.find(found.key)
    if joined is not None and _join(joined, found, task):
        return
    sequence = current_sequence()
    at = len(sequence.kinds), len(sequence.flat), len(sequence.refs)
    GraphTask.run(task, edges, gradients)
    if current_sequence() is sequence and joined is None:
        joined = _note(sequence, at, found, task)
        if joined is not None:
            _known.keep(found.key, joined)


def _note(
    sequence: Sequence, at: tuple[int, int, int], found: Walk, task: GraphTask
) -> Joined | None:
    """What a backward has added to a sequence; None where it used what the walk did not see."""
    calls, start, first = at
    places: dict[int | None, int] = {}
    for place, value in enumerate(found.arrays):
        known = value
        if type(value) is not Pending or value.sequence is not sequence:
            known = sequence.entries.get(id(value))
        if known is not None:
            places.setdefault(known.number, place)
    inputs: dict[int, int] = {}
    arrays = {id(value): place for place, value in enumerate(found.arrays)}
    results = []
    for node, before in zip(found.accumulating, found.grads, strict=True):
        grad = node.variable.need_meta().grad
        held = None if grad is None else grad._cell.held
        results.append(None if held is before else held)
    made = {
        value.number - first
        for value in (*results, *task.captured.values())
        if type(value) is Pending and value.sequence is sequence and value.number >= first
    }
    outputs = sorted(made)  # a Schedule gives its outputs in the order of their numbers

    def source(value: Any) -> int | None:
        if value is None:
            return None
        if type(value) is Pending and value.sequence is sequence and value.number >= first:
            return outputs.index(value.number - first)
        return ~arrays[id(value)]

    def local(number: int | None) -> int | None:
        if number is None or number >= first:
            return number if number is None else number - first
        return ~inputs.setdefault(places[number], len(inputs))

    try:
        flat = [
            local(item) if item is None or type(item) is int else item
            for item in sequence.flat[start:]
        ]
        stored = tuple([source(result) for result in results])
        captured = tuple([(i, source(value)) for i, value in task.captured.items()])
    except KeyError:
        return None
    fragment = Fragment(flat, sequence.kinds[calls:], outputs)
    return Joined(fragment, tuple(inputs), stored, captured)


def _join(joined: Joined, found: Walk, task: GraphTask) -> bool:
    """Adds a backward whose structure is known to what is put off; False where another thread came
    between."""
    arrays, accumulating = found.arrays, found.accumulating
    with Held(accumulating):
        for node, grad in zip(accumulating, found.grads, strict=True):
            now = node.variable.need_meta().grad
            if (None if now is None else now._cell.held) is not grad:
                return False
        made = note_fragment(joined.fragment, [arrays[i] for i in joined.inputs])

        def value(source: int) -> Any:
            return made[source] if source >= 0 else arrays[~source]

        for node, source in zip(accumulating, joined.stored, strict=True):
            if source is not None:
                PENDING.store(node.variable, value(source))
    for index, source in joined.captured:
        task.captured[index] = None if source is None else value(source)
    if not task.keep_graph:
        for node in found.operators:
            node.release()
    return True


def note_fragment(fragment: Fragment, values: Row[Any]) -> list[Any]:
    """Notes the calls of a Fragment as one: what its outputs will be."""
    if not fragment.kinds:
        return []
    return current_sequence().note_whole(fragment, fragment.made, values, sys._getframe(1))


def clear() -> None:
    """Forgets what backwards have added."""
    _known.clear()
