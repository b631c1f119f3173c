"""Watching: a backward that tells of each node it runs, and of each compiled part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, Self

from dyngraph.compiled import report
from dyngraph.compiled.recording import RecordedValues
from dyngraph.compiled.toggle import is_enabled
from dyngraph.graph import engine
from dyngraph.graph.engine import GraphTask
from dyngraph.graph.node import Edge, Node
from dyngraph.values import ARRAYS


class Watcher(Protocol):
    """What is told of a backward."""

    def before(self, node: Node, grads: list[Any]) -> None:
        """A node will run, on gradients that are complete."""
        ...

    def after(self, node: Node, grads: list[Any], results: Sequence[Any]) -> None:
        """A node has run, its hooks as well."""
        ...


class watched:  # noqa: N801 - it is used as a function is
    """Inside, the backwards of this thread tell `watcher` what they do, else they run as before.

    Where they are compiled, `parts` is told of what runs together, and `noted` of each node, whose
    gradients are Symbols. Without `parts` nothing is compiled.
    """

    def __init__(
        self, watcher: Watcher, parts: report.Watcher | None = None, noted: Watcher | None = None
    ) -> None:
        self.watcher = watcher
        self.parts = parts
        self.noted = noted

    def __enter__(self) -> Self:
        self.before = engine.get_runner()
        self.is_compiled = self.parts is not None and is_enabled()
        engine.set_runner(self._run)
        return self

    def __exit__(self, *exception: object) -> None:
        engine.set_runner(self.before)

    def _run(self, task: GraphTask, edges: Sequence[Edge], gradients: Sequence[Any]) -> None:
        if self.parts is None or not self.is_compiled:
            run_watched(task, edges, gradients, self.watcher)
            return
        runner = self.before or engine.default_runner
        with report.watched_by(self.parts, self._walk, every_node=self.noted is not None):
            runner(task, edges, gradients)

    def _walk(self, task: GraphTask, edges: Sequence[Edge], gradients: Sequence[Any]) -> None:
        values = task.values
        if type(values) is not RecordedValues:
            run_watched(task, edges, gradients, self.watcher)
        elif self.noted is None or values.how is not ARRAYS:  # with create_graph, inside a hook
            GraphTask.run(task, edges, gradients)
        else:
            run_watched(task, edges, gradients, self.noted)


def run_watched(
    task: GraphTask, edges: Sequence[Edge], gradients: Sequence[Any], watcher: Watcher
) -> None:
    """`GraphTask.run`, one node after the other under the watcher's eyes."""

    def run_node(node: Node, grads: list[Any]) -> Sequence[Any]:
        watcher.before(node, grads)
        results = task.run_with_hooks(node, grads)
        watcher.after(node, grads, results)
        return results

    task.run(edges, gradients, run_node)


def part_name(calls: int, *, compiled: bool) -> str:
    """What a part of a compiled backward is called."""
    size = "1 call" if calls == 1 else f"{calls} calls"
    return f"a compiled part of {size}" if compiled else f"{size}, kernel by kernel"
