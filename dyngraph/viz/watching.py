"""Watching: a backward that tells of each node it runs, and of each compiled part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, Self

from dyngraph.compiled import report
from dyngraph.compiled.toggle import is_enabled
from dyngraph.graph import engine
from dyngraph.graph.engine import GraphTask
from dyngraph.graph.node import Edge, Node


class Watcher(Protocol):
    """What is told of a backward."""

    def before(self, node: Node, grads: list[Any]) -> None:
        """A node will run, on gradients that are complete."""
        ...

    def after(self, node: Node, grads: list[Any], results: Sequence[Any]) -> None:
        """A node has run, its hooks as well."""
        ...

    def compiled(self, what: str, detail: str) -> None:
        """In a compiled backward: a "segment" has run, or some will, because of what follows them:
        "settle"."""
        ...


class watched:  # noqa: N801 - it is used as a function is
    """Inside, the backwards of this thread tell `watcher` what they do, else they run as before:
    compiled, where that is on, unless `compiled` is False."""

    def __init__(self, watcher: Watcher, *, compiled: bool = True) -> None:
        self.watcher = watcher
        self.may_compile = compiled

    def __enter__(self) -> Self:
        self.before = engine.get_runner()
        self.compiled = self.may_compile and is_enabled()
        engine.set_runner(self._run)
        return self

    def __exit__(self, *exception: object) -> None:
        engine.set_runner(self.before)

    def _run(self, task: GraphTask, edges: Sequence[Edge], gradients: Sequence[Any]) -> None:
        if not self.compiled:
            run_watched(task, edges, gradients, self.watcher)
            return
        runner = self.before or engine.default_runner
        with report.watched_by(self.watcher.compiled):
            runner(task, edges, gradients)


def run_watched(
    task: GraphTask, edges: Sequence[Edge], gradients: Sequence[Any], watcher: Watcher
) -> None:
    """`GraphTask.run`, one node after the other under the watcher's eyes."""
    task.count_dependencies([node for node, _ in edges if node is not None])
    if task.asked or task.targets:
        task.restrict()
    task.distribute(edges, gradients)
    while task.ready:
        node = task.ready.pop()
        grads = task.buffers.pop(node).collect(task.values)
        try:
            if node in task.captures:
                grads = task.capture(node, grads)
            if task.needed is not None and node not in task.needed:
                continue
            watcher.before(node, grads)
            results = task.run_with_hooks(node, grads)
            watcher.after(node, grads, results)
        except Exception as error:
            error.add_note(f"This happened in backward, at {node.name()}.")
            raise
        if not task.keep_graph:
            task.values.release(node)
        task.distribute(node.edges, results)
