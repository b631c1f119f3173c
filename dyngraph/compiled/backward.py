"""The compiled backward: how a GraphTask is run while it is on."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from dyngraph import modes
from dyngraph.compiled import report
from dyngraph.compiled.joined import run_joined
from dyngraph.compiled.program import Cache
from dyngraph.compiled.recording import RecordedValues
from dyngraph.compiled.schedule import Schedule
from dyngraph.compiled.segment import Settled, Symbol
from dyngraph.compiled.walk import Walk, walk
from dyngraph.graph import anomaly
from dyngraph.graph.accumulate import Held
from dyngraph.graph.engine import GraphTask
from dyngraph.graph.node import Edge
from dyngraph.values import ARRAYS, PENDING, TENSORS

Source = int
"""Where a result is: the number of an output of the Schedule, or `~` the place of an array of the
walk, where a gradient went through unchanged."""


class Route(NamedTuple):
    """How the backward of one structure runs: what goes into its Schedule, and where its outputs
    go.

    `totals` are sums with the `.grad` that was there, `accumulated` gradients to be added, each
    with the place of its leaf among the walk's; `captured` what is asked, `retained` for each of
    the walk's `retained` the gradient, if there is one. `nodes` is how many nodes the key tells of.
    """

    nodes: int
    schedule: Schedule | None
    inputs: tuple[int, ...]
    totals: tuple[tuple[int, Source], ...]
    accumulated: tuple[tuple[int, Source], ...]
    captured: tuple[tuple[int, Source | None], ...]
    retained: tuple[tuple[int, Source], ...]


_routes = Cache(lambda route: route.nodes)


def run_compiled(task: GraphTask, edges: Sequence[Edge], gradients: Sequence[Any]) -> None:
    """Sends gradients through a graph as the Engine does, with the kernels compiled together."""
    how, run = task.values, report.runner() or GraphTask.run
    if how is PENDING and run is GraphTask.run:
        run_joined(task, edges, gradients)
        return
    if how not in (ARRAYS, TENSORS) or modes.get_flags() & modes.MAPPED:
        run(task, edges, gradients)
        return
    if anomaly.is_enabled():
        report.note_eager("anomaly mode looks at each node's results")
        run(task, edges, gradients)
        return
    found = walk(task, edges, gradients) if how is ARRAYS else None
    if found is not None and not report.wants_every_node():
        route = _routes.find(found.key)
        if route is not None and _follow(route, found, task):
            report.note_hit()
            return
    recorded = RecordedValues(how)
    task.values = recorded
    try:
        run(task, edges, gradients)
        symbols = dict(task.captured)
        recorded.settle("the end", None)
        task.captured.update((index, recorded.value_of(value)) for index, value in symbols.items())
    except BaseException:
        with suppress(Exception):  # what came before the failure has happened
            recorded.settle("a failure", None)
        raise
    finally:
        task.values = how
    report.warn_of_churn()
    if found is not None and len(recorded.trail) == 1:
        (settled,) = recorded.trail
        route = _route_of(found, settled, symbols)
        if route is not None:
            _routes.keep(found.key, route)


def _route_of(found: Walk, settled: Settled, captured: dict[int, Any]) -> Route | None:
    """The way that a backward went, by numbers."""
    places = {id(array): place for place, array in enumerate(found.arrays)}
    leaves = {id(node.variable): place for place, node in enumerate(found.accumulating)}
    schedule = settled.schedule
    outputs = {} if schedule is None else {n: i for i, n in enumerate(schedule.outputs)}

    def source(value: Any) -> Source:
        return outputs[value.number] if type(value) is Symbol else ~places[id(value)]

    tensors = {
        id(tensor): place
        for place in range(len(found.retained))
        if (tensor := found.retaining(place)) is not None
    }
    try:
        return Route(
            len(found.operators),
            schedule,
            tuple([places[id(array)] for array in settled.segment.given]),
            tuple([(leaves[id(leaf)], source(total)) for leaf, total in settled.totals]),
            tuple([(leaves[id(leaf)], source(value)) for leaf, value in settled.accumulated]),
            tuple([(i, None if v is None else source(v)) for i, v in captured.items()]),
            tuple(
                [
                    (tensors[id(tensor)], source(value))
                    for tensor, value, _ in settled.segment.retained
                ]
            ),
        )
    except KeyError:  # something came from elsewhere than the walk looked
        return None


def _follow(route: Route, found: Walk, task: GraphTask) -> bool:
    """Runs a backward whose structure is known; False where another thread came between."""
    arrays, accumulating = found.arrays, found.accumulating
    with Held(accumulating):
        for node, grad in zip(accumulating, found.grads, strict=True):
            now = node.variable.need_meta().grad
            if (None if now is None else now._cell.array) is not grad:
                return False
        results: Sequence[Any] = ()
        if route.schedule is not None:
            route.schedule.note_sighting()
            results = route.schedule.run([arrays[i] for i in route.inputs])

        def value(source: Source) -> Any:
            return results[source] if source >= 0 else arrays[~source]

        for place, source in route.totals:
            ARRAYS.store(accumulating[place].variable, value(source))
        for place, source in route.accumulated:
            ARRAYS.accumulate(accumulating[place].variable, value(source))
    for index, source in route.captured:
        task.captured[index] = None if source is None else value(source)
    for place, source in route.retained:
        tensor = found.retaining(place)
        if tensor is not None:
            ARRAYS.retain(tensor, value(source))
    if not task.keep_graph:
        for node in found.operators:
            node.release()
    return True


def clear() -> None:
    """Forgets how the structures seen so far ran."""
    _routes.clear()
