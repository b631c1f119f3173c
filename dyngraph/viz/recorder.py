"""Recorder: what a trace keeps of a backward while it runs, a row for each step.

# Note [Norms inside a compiled part]
A compiled part gives back what leaves it, so the gradients between its nodes are seen by nobody.
The trace keeps the numbers that these have in the part's calls. When the part has run, and its time
is taken, it runs the calls once more, one by one, and looks at what each makes. So the Program is
the one that runs without a trace.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from dyngraph.autograd.function_node import BackwardCFunction
from dyngraph.compiled.program import Call, run_call
from dyngraph.compiled.segment import Symbol, known
from dyngraph.graph.accumulate import AccumulateGrad
from dyngraph.graph.node import Node
from dyngraph.tensor import Tensor
from dyngraph.viz.buffers import device_of
from dyngraph.viz.contents import PACKED, RECOMPUTED, contents
from dyngraph.viz.figures import Figures, measured
from dyngraph.viz.watching import part_name

PYTHON, SEGMENT, OPERATOR, ACCUMULATE = "Python", "compiled", "operator", "AccumulateGrad"


class Look(NamedTuple):
    """What an array is like, and where it is."""

    figures: Figures
    device: str


_measure = jax.jit(measured)


def looks_at(arrays: Sequence[Any]) -> list[Look]:
    """A look at each array, once it is there."""
    found = [_measure(array) for array in arrays]
    return [
        Look(Figures(*np.asarray(figures).tolist()), device_of(array))
        for figures, array in zip(found, arrays, strict=True)
    ]


class Row:
    """A step as it is recorded; `given` and `made` hold the number of a gradient that a part will
    make until it is there. `number` is the last of these that the step is about."""

    __slots__ = ("given", "kind", "made", "name", "number", "order", "seconds", "start", "within")

    def __init__(self, name: str, kind: str, order: int | None = None) -> None:
        self.name = name
        self.kind = kind
        self.order = order
        self.start: float | None = None
        self.seconds: float | None = None
        self.given: list[Any] = []
        self.made: list[Any] = []
        self.within: int | None = None
        self.number: int | None = None


class Recorder:
    """Watches the nodes of a backward that runs kernel by kernel."""

    def __init__(self, order: dict[Node, int]) -> None:
        self.order = order
        self.rows: list[Row] = []
        self.open: list[tuple[Row, int]] = []
        self.began = time.perf_counter()
        self.looking = 0.0

    def clock(self) -> float:
        """The time since the backward began, without what looking took."""
        return time.perf_counter() - self.began - self.looking

    @contextlib.contextmanager
    def off_the_clock(self) -> Iterator[None]:
        """Inside, the clock stands still."""
        began = time.perf_counter()
        yield
        self.looking += time.perf_counter() - began

    def row_of(self, node: Node) -> Row:
        """A row for a node that is about to run."""
        return Row(node.name().rpartition("::")[2], _kind(node), self.order.get(node))

    def before(self, node: Node, grads: list[Any]) -> None:
        with self.off_the_clock():
            row = self.row_of(node)
            row.given = looks_at(arrays_of(grads))
            self.open.append((row, len(self.rows)))
        row.start = self.clock()

    def after(self, node: Node, grads: list[Any], results: Sequence[Any]) -> None:
        made = arrays_of(results)
        jax.block_until_ready(made)
        if isinstance(node, AccumulateGrad) and node.variable is not None:
            jax.block_until_ready([node.variable.grad._cell.array])
        row, first = self.open.pop()
        assert row.start is not None
        row.seconds = self.clock() - row.start
        with self.off_the_clock():
            row.made = looks_at(made)
        for inner in self.rows[first:]:  # a backward that a hook or a Function ran
            inner.within = len(self.rows) if inner.within is None else inner.within
        self.rows.append(row)


class PartRecorder:
    """Watches a compiled backward: its parts, the Python between them, and the nodes, which are
    noted down and have no time of their own; see Note [Norms inside a compiled part]."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.open: list[Row] = []
        self.noted: list[Row] = []
        self.waiting: list[list[Any]] = []
        self.parts: list[tuple[Row, int]] = []
        self.next = Row("the walk", PYTHON)
        self.since = 0.0

    # --- the walk, node by node -----------------------------------------------------------------

    def before(self, node: Node, grads: list[Any]) -> None:
        row = self.recorder.row_of(node)
        row.given = self._seen(grads)
        self.open.append(row)

    def after(self, node: Node, grads: list[Any], results: Sequence[Any]) -> None:
        row = self.open.pop()
        row.made = self._seen(results)
        made = _numbers_of(results) or _numbers_of(grads)  # a leaf makes none
        row.number = max(made, default=None)
        self.noted.append(row)

    def _seen(self, values: Sequence[Any]) -> list[Any]:
        """What there is of gradients, and the numbers of those that come later."""
        with self.recorder.off_the_clock():
            looks = looks_at(arrays_of([known(value) for value in values]))
            seen = [*looks, *_numbers_of(values)]
            self.waiting.append(seen)
        return seen

    # --- what runs ------------------------------------------------------------------------------

    def settling(self, what: str, node: Node | None) -> None:
        row, self.next = self.next, Row(what, PYTHON)
        if node is not None:
            self.next.name = f"{what} of {node.name().rpartition('::')[2]}"
            self.next.order = self.recorder.order.get(node)
        self._end(row)
        self.recorder.rows.append(row)

    def ran(self, calls: int, made: Sequence[Any], *, compiled: bool) -> None:
        jax.block_until_ready(made)
        row = Row(part_name(calls, compiled=compiled), SEGMENT if compiled else OPERATOR)
        self._end(row)
        self.parts.append((row, calls))

    def _end(self, row: Row) -> None:
        """Gives a step the time since the one before it ended."""
        now = self.recorder.clock()
        row.start, row.seconds, self.since = self.since, now - self.since, now

    def settled(self, calls: Sequence[Call], given: Sequence[Any]) -> None:
        with self.recorder.off_the_clock():
            looks = _looks_of(calls, given)
            for seen in self.waiting:
                seen[:] = [looks[found] if type(found) is int else found for found in seen]
        self.waiting = [row.given for row in self.open]
        self._add_rows([0, *itertools.accumulate([call.made for call in calls])])
        self.noted, self.parts = [], []

    def _add_rows(self, ends: Sequence[int]) -> None:
        """Adds the parts, each with the nodes below it whose gradients it has made; `ends` is how
        many gradients so many calls make."""
        rows, left = self.recorder.rows, self.noted
        end, part = 0, len(rows) - 1  # what no part has made is of the Python before them
        for row, size in [(None, 0), *self.parts]:
            if row is not None:
                part = len(rows)
                rows.append(row)
            end += size
            inside = [r.number is None or r.number < ends[end] for r in left]
            for inner in itertools.compress(left, inside):
                inner.within = part
                rows.append(inner)
            left = [r for r, is_inside in zip(left, inside, strict=True) if not is_inside]
        rows += left


def _numbers_of(values: Sequence[Any]) -> list[int]:
    """The numbers of the gradients that are not there yet."""
    return [v.number for v in values if type(v) is Symbol and v.value is None]


def _looks_of(calls: Sequence[Call], given: Sequence[Any]) -> list[Look]:
    """A look at everything that calls make, which are run one by one."""
    last = {number: i for i, call in enumerate(calls) for number in call.inputs}
    looks: list[Look] = []
    values: list[Any] = []
    for i, call in enumerate(calls):
        run_call(call, given, values)
        looks += looks_at(values[len(looks) :])
        for number in call.inputs:
            if number is not None and number >= 0 and last[number] == i:
                values[number] = None
    return looks


def arrays_of(values: Sequence[Any]) -> list[Any]:
    """The arrays among gradients."""
    arrays = [v._cell.array if isinstance(v, Tensor) else v for v in values]
    return [array for array in arrays if array is not None]


def _kind(node: Node) -> str:
    """What a node is, or PYTHON where the user's functions run in it."""
    extra = node.extra
    hooks = extra is not None and (extra.tensor_hooks or extra.pre_hooks or extra.post_hooks)
    if isinstance(node, AccumulateGrad):
        leaf = node.variable
        after = leaf._post_accumulate_grad_hooks if isinstance(leaf, Tensor) else None
        return PYTHON if hooks or after else ACCUMULATE
    packed = any([kept.state in (PACKED, RECOMPUTED) for kept in contents(node)])
    return PYTHON if hooks or packed or isinstance(node, BackwardCFunction) else OPERATOR
