"""The backward pass: visits every needed node once, after all gradients for it have arrived.

One Python thread walks one GraphTask; what runs in parallel is XLA's asynchronous execution.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import itertools
import threading
from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush
from typing import Any

from dyngraph import modes
from dyngraph.graph import anomaly, packing
from dyngraph.graph.calling import call_post_hook, call_pre_hook, call_tensor_hook
from dyngraph.graph.node import (
    EDGES,
    EXTRA,
    OUTPUTS,
    SEQUENCE_NR,
    Edge,
    Extra,
    Node,
    PythonCall,
    Values,
    kept_graphs,
)

MAX_NESTING = 25
"""How many backward calls nest on one Python stack before the next one gets a stack of its own."""
MAX_WAITING = 16
"""How many small gradients wait at one input before they are added in one go."""


class _Running(threading.local):
    def __init__(self) -> None:
        self.task: GraphTask | None = None
        self.nesting = 0


_running = _Running()

RunNode = Callable[[Node, list[Any]], Sequence[Any]]
"""What runs a node and its hooks on gradients that are complete."""
Runner = Callable[["GraphTask", Sequence[Edge], Sequence[Any]], None]
"""What sends gradients from the roots' edges through a graph: `GraphTask.run`, or another way to
the same results."""


class InputBuffer(list[Any]):
    """Several gradients that have arrived at one input of a node, and wait to be added."""

    # Note [Gradients wait to be added]
    # A kernel call costs the same for two gradients as for sixteen, so small ones wait in a list.
    # The order of the sum is the order of arrival either way.

    __slots__ = ()


def add(arrived: Any, value: Any, values: Values) -> Any:
    """What has arrived at an input, with a value more: a sum, or an InputBuffer."""
    if type(arrived) is not InputBuffer:
        pair = InputBuffer((arrived, value))
        return pair if values.is_small(value) else values.total(pair)
    arrived.append(value)
    return values.total(arrived) if len(arrived) == MAX_WAITING else arrived


class ReadyQueue(list[tuple[int, int, Node, list[Any]]]):
    """Nodes whose gradients are complete, each with these, as a heap: the one created last comes
    first, and of those that were created together the one that got ready first."""

    __slots__ = ("ticks",)

    def __init__(self) -> None:
        self.ticks = itertools.count()


class GraphTask:
    """The state of one backward: what is still to come for each node, what has arrived, what is
    asked.

    `asked` are the edges whose gradients are returned, in `captured`; `targets` the nodes that must
    run, as with `backward(inputs=...)`. With neither, every node runs that the roots reach.
    """

    __slots__ = (
        "__weakref__",
        "asked",
        "buffers",
        "callbacks",
        "captured",
        "captures",
        "dependencies",
        "keep_graph",
        "needed",
        "targets",
        "values",
    )

    def __init__(
        self,
        values: Values,
        *,
        keep_graph: bool,
        asked: Sequence[Edge] = (),
        targets: Sequence[Node] = (),
    ) -> None:
        self.values = values
        self.keep_graph = keep_graph
        self.asked = asked
        self.targets = targets
        self.dependencies: dict[Node, int] = {}
        self.buffers: dict[Node, list[Any]] = {}
        self.captures: dict[Node, list[tuple[int, int]]] = {}
        self.captured: dict[int, Any] = {}
        self.needed: set[Node] | None = None
        self.callbacks: list[Callable[[], Any]] = []

    def count_dependencies(self, roots: Iterable[Node]) -> None:
        """Counts for every node that `roots` reach how many edges lead to it."""
        dependencies = self.dependencies
        todo = []
        for root in roots:
            if root not in dependencies:
                todo.append(root)
                dependencies[root] = 0
            dependencies[root] += 1
        while todo:
            for node, _ in todo.pop().record[EDGES]:
                if node is None:
                    continue
                if node in dependencies:
                    dependencies[node] += 1
                else:
                    dependencies[node] = 1
                    todo.append(node)

    def restrict(self) -> None:
        """Finds the nodes that lead to what is asked: only these run."""
        consumers: dict[Node, list[Node]] = {}
        for consumer in self.dependencies:
            for node, _ in consumer.record[EDGES]:
                if node is not None:
                    consumers.setdefault(node, []).append(consumer)
        for index, (node, output_nr) in enumerate(self.asked):
            if node is not None:
                self.captures.setdefault(node, []).append((output_nr, index))
        self.needed = {node for node in self.targets if node in self.dependencies}
        todo = [*self.captures, *self.needed]
        while todo:
            for consumer in consumers.get(todo.pop(), ()):
                if consumer not in self.needed:
                    self.needed.add(consumer)
                    todo.append(consumer)

    def will_run(self, node: Node) -> bool:
        """Whether a gradient will reach `node`."""
        if self.needed is None:
            return node in self.dependencies
        return node in self.needed or node in self.captures

    def run(
        self, edges: Sequence[Edge], gradients: Sequence[Any], run_node: RunNode | None = None
    ) -> None:
        """Sends the roots' gradients along `edges` and runs until no node is ready.

        `run_node` runs each node in place of `run_with_hooks`, which it calls.
        """
        self.count_dependencies([node for node, _ in edges if node is not None])
        if self.asked or self.targets:
            self.restrict()
        if anomaly.is_enabled():
            run = run_node or self.run_with_hooks
            run_node = functools.partial(anomaly.run_watched, self.values, run)
        dependencies, buffers, captures = self.dependencies, self.buffers, self.captures
        values, needed = self.values, self.needed
        ready = ReadyQueue()
        summed: set[Node] = set()
        results = gradients
        while True:
            # Each result is added to what has arrived where its edge leads.
            for (below, output_nr), value in zip(edges, results, strict=True):
                if below is None or (needed is not None and not self.will_run(below)):
                    continue
                grads = buffers.pop(below, None)
                if grads is None:
                    grads = [None] * len(below.record[OUTPUTS])
                if value is not None:
                    arrived = grads[output_nr]
                    if arrived is None:
                        grads[output_nr] = value
                    else:
                        grads[output_nr] = add(arrived, value, values)
                        summed.add(below)
                left = dependencies[below] = dependencies[below] - 1
                if left:
                    buffers[below] = grads
                else:
                    heappush(ready, (-below.record[SEQUENCE_NR], next(ready.ticks), below, grads))
            if not ready:
                return
            # A node that has all its gradients runs.
            _, _, node, grads = heappop(ready)
            if node in summed:
                grads = [values.total(g) if type(g) is InputBuffer else g for g in grads]
            edges = results = ()
            try:
                if node in captures:
                    grads = self.capture(node, grads)
                if needed is not None and node not in needed:
                    continue
                if run_node is not None:
                    results = run_node(node, grads)
                elif node.record[EXTRA] is None:
                    results = node.apply(grads, values)
                else:
                    results = self.run_with_hooks(node, grads)
            except Exception as error:
                values.blame(node, error)
                raise
            edges = node.record[EDGES]
            if not self.keep_graph:
                values.release(node)

    def run_with_hooks(self, node: Node, grads: list[Any]) -> Sequence[Any]:
        """Runs a node and what hangs on it; `grads` are afterwards what the hooks made of them."""
        extra = node.extra
        if extra is not None:
            self.run_tensor_hooks(node, extra, grads)
            grads[:] = self.run_pre_hooks(node, extra, grads)
        results = node.apply(list(grads), self.values)
        if extra is not None and extra.post_hooks:
            results = self.run_post_hooks(node, extra, grads, results)
        return results

    def drop(self) -> None:
        """Lets go of all gradients, after a failure."""
        self.buffers.clear()
        self.captured.clear()

    def capture(self, node: Node, grads: list[Any]) -> list[Any]:
        """Keeps the asked gradients of `node`; after its tensor hooks if these do not run later."""
        if node.extra is not None and node not in (self.needed or ()):
            grads = self.run_tensor_hooks(node, node.extra, grads)
        for output_nr, index in self.captures[node]:
            self.captured[index] = grads[output_nr]
        return grads

    def run_tensor_hooks(self, node: Node, extra: Extra, grads: list[Any]) -> list[Any]:
        """Runs the hooks of the tensors that the node made, then sets retained gradients."""
        values = self.values
        for output_nr, hooks in list(extra.tensor_hooks.items()):
            for hook in list(hooks.values()):
                run = functools.partial(call_tensor_hook, hook, output_nr)
                call = PythonCall(hook, "a tensor hook", node, run, output_nr)
                grads[:] = values.call(call, grads)
        for output_nr, tensor_ref in list(extra.retained.items()):
            tensor = tensor_ref()
            if tensor is not None and grads[output_nr] is not None:
                values.retain(tensor, grads[output_nr])
        return grads

    def run_pre_hooks(self, node: Node, extra: Extra, grads: list[Any]) -> list[Any]:
        """Runs the node's own pre-hooks."""
        for hook in list(extra.pre_hooks.values()) if extra.pre_hooks else ():
            run = functools.partial(call_pre_hook, hook)
            grads = self.values.call(PythonCall(hook, "a pre-hook", node, run), grads)
        return grads

    def run_post_hooks(
        self, node: Node, extra: Extra, grads: Sequence[Any], results: Sequence[Any]
    ) -> Sequence[Any]:
        """Runs the node's hooks on what it made of its gradients."""
        assert extra.post_hooks is not None
        for hook in list(extra.post_hooks.values()):
            count = len(results)
            run = functools.partial(call_post_hook, hook, count)
            call = PythonCall(hook, "a hook", node, run, count)
            results = self.values.call(call, [*results, *grads])
        return results


default_runner: Runner = GraphTask.run
"""The runner of threads that have chosen none."""
_runner: contextvars.ContextVar[Runner | None] = contextvars.ContextVar(
    "dyngraph_runner", default=None
)
get_runner, set_runner = _runner.get, _runner.set


def execute(
    task: GraphTask, edges: Sequence[Edge], gradients: Sequence[Any], *, create_graph: bool
) -> None:
    """Runs `task` from its roots in this thread, then the callbacks that were queued meanwhile.

    A backward may call another from a hook, to any depth. Whatever is raised, the thread's modes
    and its running task are afterwards what they were.
    """
    if _running.nesting >= MAX_NESTING:
        _execute_on_new_stack(task, edges, gradients, create_graph=create_graph)
        return
    outer, flags, hooks = _running.task, modes.get_flags(), packing.get_stack()
    _running.task = task
    _running.nesting += 1
    modes.set_flags((flags & ~modes.GRAD) | (modes.GRAD if create_graph else 0))
    runner = _runner.get() or default_runner
    if kept_graphs and not task.keep_graph:
        kept_graphs.clear()
    try:
        runner(task, edges, gradients)
        for callback in task.callbacks:  # a callback may queue another
            callback()
    except BaseException as error:
        task.drop()
        _empty_frames(error)
        raise
    finally:
        modes.restore_flags(flags)
        if packing.get_stack() is not hooks:
            packing.set_stack(hooks)
        _running.task = outer
        _running.nesting -= 1


def _empty_frames(error: BaseException | None) -> None:
    """Empties this package's frames in an error's traceback: a notebook, which keeps the last
    error, would keep the gradients in them."""
    while error is not None:
        trace = error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_globals.get("__name__", "").startswith("dyngraph."):
                with contextlib.suppress(RuntimeError):  # this frame is still running
                    trace.tb_frame.clear()
            trace = trace.tb_next
        error = error.__context__


def _execute_on_new_stack(
    task: GraphTask, edges: Sequence[Edge], gradients: Sequence[Any], *, create_graph: bool
) -> None:
    """`execute` in a thread of its own, because Python bounds the depth of one thread's stack."""
    outer = _running.task
    failure: list[BaseException] = []

    def body() -> None:
        _running.task = outer
        try:
            execute(task, edges, gradients, create_graph=create_graph)
        except BaseException as error:
            failure.append(error)

    context = contextvars.copy_context()  # with the modes of this thread
    thread = threading.Thread(target=context.run, args=(body,), name="dyngraph-backward")
    thread.start()
    thread.join()
    if failure:
        raise failure[0]


def current_task() -> GraphTask:
    """The backward that is running in this thread."""
    assert _running.task is not None, "no backward is running in this thread"
    return _running.task


def running_task() -> GraphTask | None:
    """The backward that is running in this thread, if one is."""
    return _running.task


def queue_callback(callback: Callable[[], Any]) -> None:
    """Calls `callback()` at the end of the backward that is running in this thread.

    Raises RuntimeError outside of one.
    """
    if _running.task is None:
        raise RuntimeError(
            "Final callbacks can only be installed during backward pass: no backward is running in "
            "this thread. Queue it from a hook or from a Function's backward."
        )
    _running.task.callbacks.append(callback)
