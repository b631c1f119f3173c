"""Replay: `trace`, which runs a backward and keeps what each of its nodes did."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

from dyngraph.backward import backward
from dyngraph.graph.node import Edge
from dyngraph.tensor import Tensor
from dyngraph.viz.charts import BLUE, GREEN, GREY, RED, Bar, bars
from dyngraph.viz.figures import Figures
from dyngraph.viz.frame import framed
from dyngraph.viz.lettering import in_seconds
from dyngraph.viz.names import Given, names_of
from dyngraph.viz.outline import DONE, NOW, Outline, outline, visits
from dyngraph.viz.picture import LIMIT, GraphPicture, roots_of
from dyngraph.viz.recorder import (
    ACCUMULATE,
    OPERATOR,
    PYTHON,
    SEGMENT,
    PartRecorder,
    Recorder,
    Row,
)
from dyngraph.viz.table import Table
from dyngraph.viz.watching import watched

MOST_BARS = 60
"""How many steps a timeline shows, the longest."""
WITHIN = (
    "'in 1': its time is in that of step 1; norms inside a compiled part come from running its "
    "kernels once more, one by one, after its time was taken"
)


class Step(NamedTuple):
    """One node of a backward as it ran, or one part of a compiled backward.

    `order` is the node's place in the graph's picture, None for a compiled part. `start` and
    `seconds` are its time, None for a node inside a compiled part; `within` is the number of the
    step whose time it is part of. `arrived` and `passed` are the norms of the gradients that it was
    given and that it made, together, None where there were none. `born` names what of "NaN" and
    "Inf" is in what it made and not in what it was given. `moved` tells between which devices it
    carried a gradient.
    """

    order: int | None
    name: str
    kind: str
    start: float | None
    seconds: float | None
    within: int | None
    arrived: float | None
    passed: float | None
    born: str
    moved: str


def step_of(row: Row) -> Step:
    """The step that was recorded."""
    given = [look.figures for look in row.given]
    made = [look.figures for look in row.made]
    born = ", ".join(
        name
        for name, count in (("NaN", attrgetter("nan")), ("Inf", attrgetter("inf")))
        if any(map(count, made)) and not any(map(count, given))
    )
    places = [sorted({look.device for look in looks}) for looks in (row.given, row.made)]
    moved = " → ".join(["+".join(p) for p in places]) if _differ(*places) else ""
    return Step(
        row.order, row.name, row.kind, row.start, row.seconds, row.within,
        arrived=_norm(given), passed=_norm(made), born=born, moved=moved,
    )  # fmt: skip


def _differ(given: list[str], made: list[str]) -> bool:
    return bool(given and made and given != made)


def _norm(found: Sequence[Figures]) -> float | None:
    """The norm of several arrays together."""
    return math.hypot(*[figures.norm for figures in found]) if found else None


class Trace:
    """A backward as it ran: `steps` in their order, as a table, a timeline, and on the graph."""

    def __init__(self, steps: list[Step], whole: Outline) -> None:
        self.steps = steps
        self._whole = whole

    @property
    def first_nan(self) -> Step | None:
        """The first step that made NaN out of gradients without."""
        return next((step for step in self.steps if "NaN" in step.born), None)

    def table(self) -> Table:
        """A row for each step."""
        rows = [
            (
                i,
                s.name,
                f"in {s.within}" if s.seconds is None else in_seconds(s.seconds),
                s.arrived,
                s.passed,
                " ".join([f"{s.born} born here" if s.born else "", s.moved]).strip(),
                s.kind,
            )
            for i, s in enumerate(self.steps)
        ]
        headings = ("step", "node", "time", "norm in", "norm out", "", "kind")
        is_compiled = any([step.seconds is None for step in self.steps])
        return Table(headings, rows, f"{self._summary()}{f'; {WITHIN}' if is_compiled else ''}")

    def _summary(self) -> str:
        apart = [step for step in self.steps if step.within is None and step.seconds is not None]
        python = sum([step.kind == PYTHON for step in apart])
        segments = sum([step.kind == SEGMENT for step in apart])
        total = sum([step.seconds or 0.0 for step in apart])
        note = f"{len(apart)} steps in {in_seconds(total)}, {python} of them in Python"
        return f"{note}, {segments} compiled" if segments else note

    def svg(self) -> str:
        """The timeline: a bar for each step, from when it began for as long as it took."""
        timed = [(i, s, s.start or 0.0, s.seconds) for i, s in enumerate(self.steps) if s.seconds]
        colours = {PYTHON: RED, SEGMENT: GREEN, ACCUMULATE: GREY}
        rows = []
        for i, step, start, seconds in sorted(
            sorted(timed, key=lambda entry: -entry[3])[:MOST_BARS], key=lambda entry: entry[0]
        ):
            born = f", {step.born} born here" if step.born else ""
            colour = colours.get(step.kind, BLUE)
            rows.append(
                Bar(f"{i} {step.name}", start, seconds, f"{in_seconds(seconds)}{born}", colour)
            )
        title = f"backward: {self._summary()}"
        if len(rows) < len(timed):
            title += f"; the {len(rows)} longest are shown"
        kinds = [(OPERATOR, BLUE), (ACCUMULATE, GREY), (PYTHON, RED), (SEGMENT, GREEN)]
        used = {step.kind for _, step, *_ in timed}
        return bars(rows, title, [(name, colour) for name, colour in kinds if name in used])

    def step(self, number: int) -> GraphPicture:
        """The graph's picture at one step: what has run is grey, what runs is yellow (all nodes of
        a compiled part), and each says the norm of the gradient that it was given.

        Raises IndexError where there is no such step.
        """
        if not -len(self.steps) <= number < len(self.steps):
            raise IndexError(
                f"step {number} of a backward of {len(self.steps)} steps: expected a number from 0 "
                f"to {len(self.steps) - 1}"
            )
        number %= len(self.steps)
        boxes = list(self._whole.boxes)
        place_of = {box.order: i for i, box in enumerate(boxes) if box.order is not None}
        for i, step in enumerate(self.steps):
            if i > number and step.within != number:
                continue
            place = place_of.get(step.order) if step.order is not None else None
            if place is None:
                continue
            box = boxes[place] = copy.copy(boxes[place])
            if step.arrived is not None:
                box.lines = [*box.lines, f"step {i}: grad norm {step.arrived:.4g}"]
            if step.born:
                box.lines.append(f"{step.born} born here")
                box.warnings = {*box.warnings, box.lines[-1]}
            box.state = NOW if number in (i, step.within) else DONE
        whole = Outline(boxes, self._whole.arrows, self._whole.nodes)
        return GraphPicture(whole, LIMIT)

    def __len__(self) -> int:
        return len(self.steps)

    def __repr__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        return framed(self.svg()) + self.table().html()


def trace(
    of: Tensor | Sequence[Tensor],
    gradient: Tensor | Sequence[Tensor | None] | None = None,
    names: Given = None,
    *,
    retain_graph: bool | None = None,
) -> Trace:
    """Runs `backward()` of a tensor, or of several, and keeps what each node did.

    Gradients go into `.grad`, and hooks run, as in any backward; `gradient` and `retain_graph` are
    those of `dg.autograd.backward`. Each node is waited for, so that times are its own; a kernel
    that runs for the first time is compiled, which its time includes.

    While `compiled_autograd` is on, the compiled parts and the Python between them have a time
    each, and the nodes stand below the part that they are in. For their norms, its kernels run once
    more, one by one, which is in no time. The walk is the Engine's, also for a graph whose
    structure is known, which is walked faster where nobody watches.

    Raises ValueError for a tensor without a graph; else what `backward` raises.

    >>> x = dg.tensor([0.0, 4.0], requires_grad=True)
    >>> ran = dg.viz.trace(x.sqrt().sum())
    >>> [(step.name, step.arrived) for step in ran.steps]
    [('SumBackward0', 1.0), ('SqrtBackward0', 1.414...), ('AccumulateGrad', inf)]
    >>> ran.steps[1].born
    'Inf'
    """
    known = names_of(names)
    roots = roots_of(of, known)
    edges: list[Edge] = [edge for edge, _ in roots]
    whole = outline(roots, known, limit=LIMIT, saved=False)
    recorder = Recorder({node: place for place, node in enumerate(visits(edges))})
    parts = PartRecorder(recorder)
    with watched(recorder, parts, parts):
        recorder.began = time.perf_counter()
        backward(of, gradient, retain_graph=retain_graph)
    return Trace([step_of(row) for row in recorder.rows], whole)
