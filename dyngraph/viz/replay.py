"""Replay: `trace`, which runs a backward and keeps what each of its nodes did."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from dyngraph.autograd.function_node import BackwardCFunction
from dyngraph.backward import backward
from dyngraph.graph.accumulate import AccumulateGrad
from dyngraph.graph.node import Edge, Node
from dyngraph.tensor import Tensor
from dyngraph.viz.buffers import device_of
from dyngraph.viz.charts import BLUE, GREEN, GREY, RED, Bar, bars
from dyngraph.viz.contents import contents
from dyngraph.viz.lettering import in_seconds
from dyngraph.viz.names import Given, names_of
from dyngraph.viz.outline import DONE, NOW, Outline, outline, visits
from dyngraph.viz.picture import LIMIT, GraphPicture, roots_of
from dyngraph.viz.table import Table
from dyngraph.viz.watching import watched

MOST_BARS = 60
"""How many steps a timeline shows, the longest."""
PYTHON, SEGMENT = "Python", "compiled"


class Step(NamedTuple):
    """One node of a backward as it ran, or one part of a compiled backward.

    `order` is the node's place in the graph's picture, None for a compiled part. `arrived` and
    `passed` are the norms of the gradients that it was given and that it made, together, None where
    there were none. `born` names what of "NaN" and "Inf" is in what it made and not in what it was
    given. `moved` tells between which devices it carried a gradient.
    """

    order: int | None
    name: str
    start: float
    seconds: float
    arrived: float | None
    passed: float | None
    born: str
    moved: str
    kind: str


@jax.jit
def _look(arrays: Sequence[jax.Array]) -> jax.Array:
    """Of several arrays the sum of squares, the number of NaNs, and of infinite elements."""
    total = jnp.zeros(3, jnp.float32)
    for array in arrays:
        size = jnp.abs(array).astype(jnp.float32)
        total += jnp.stack([(size * size).sum(), jnp.isnan(size).sum(), jnp.isinf(size).sum()])
    return total


class _Recorder:
    """Watches a backward."""

    def __init__(self, order: dict[Node, int]) -> None:
        self.order = order
        self.rows: list[dict[str, Any]] = []
        self.began = self.since = time.perf_counter()
        self.next = "the walk"

    def before(self, node: Node, grads: list[Any]) -> None:
        given = arrays_of(grads)
        jax.block_until_ready(given)
        self.given = given, [_look([array]) for array in given]
        self.kind = _kind(node)
        self.since = time.perf_counter()

    def after(self, node: Node, grads: list[Any], results: Sequence[Any]) -> None:
        made = arrays_of(results)
        jax.block_until_ready(made)
        if isinstance(node, AccumulateGrad) and node.variable is not None:
            jax.block_until_ready([node.variable.grad._cell.array])
        now = time.perf_counter()
        given, looked = self.given
        places = [sorted({device_of(array) for array in arrays}) for arrays in (given, made)]
        self.rows.append(
            {
                "order": self.order.get(node),
                "name": node.name().rpartition("::")[2],
                "start": self.since - self.began,
                "seconds": now - self.since,
                "given": looked,
                "made": [_look([array]) for array in made],
                "moved": " → ".join(["+".join(p) for p in places]) if _differ(*places) else "",
                "kind": self.kind,
            }
        )
        del self.given

    def compiled(self, what: str, detail: str) -> None:
        now = time.perf_counter()
        name, kind = f"a compiled part of {detail}", SEGMENT
        if what == "settle":
            name, kind, self.next = self.next, PYTHON, detail
        row = {"order": None, "name": name, "start": self.since - self.began}
        row |= {"seconds": now - self.since, "given": [], "made": [], "moved": "", "kind": kind}
        self.rows.append(row)
        self.since = now

    def steps(self) -> list[Step]:
        """What was recorded, fetched from the devices in one go."""
        found = []
        for row in jax.device_get(self.rows):
            given, made = row.pop("given"), row.pop("made")
            born = ", ".join(
                name
                for kind, name in ((1, "NaN"), (2, "Inf"))
                if any(look[kind] for look in made) and not any(look[kind] for look in given)
            )
            found.append(Step(**row, arrived=_norm(given), passed=_norm(made), born=born))
        return found


def _differ(given: list[str], made: list[str]) -> bool:
    return bool(given and made and given != made)


def _norm(looks: Sequence[Any]) -> float | None:
    return math.sqrt(sum([float(look[0]) for look in looks])) if looks else None


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
        return PYTHON if hooks or after else "AccumulateGrad"
    packed = any([kept.state in ("packed", "recomputed") for kept in contents(node)])
    return PYTHON if hooks or packed or isinstance(node, BackwardCFunction) else "operator"


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
                in_seconds(s.seconds),
                s.arrived,
                s.passed,
                " ".join([f"{s.born} born here" if s.born else "", s.moved]).strip(),
                s.kind,
            )
            for i, s in enumerate(self.steps)
        ]
        headings = ("step", "node", "time", "norm in", "norm out", "", "kind")
        return Table(headings, rows, self._summary())

    def _summary(self) -> str:
        python = sum([step.kind == PYTHON for step in self.steps])
        segments = sum([step.kind == SEGMENT for step in self.steps])
        total = sum([step.seconds for step in self.steps])
        note = f"{len(self.steps)} steps in {in_seconds(total)}, {python} of them in Python"
        return f"{note}, {segments} compiled" if segments else note

    def svg(self) -> str:
        """The timeline: a bar for each step, from when it began for as long as it took."""
        shown = sorted(self.steps, key=lambda step: -step.seconds)[:MOST_BARS]
        colours = {PYTHON: RED, SEGMENT: GREEN, "AccumulateGrad": GREY}
        rows = []
        for i, step in enumerate(self.steps):
            if step in shown:
                born = f", {step.born} born here" if step.born else ""
                text = f"{in_seconds(step.seconds)}{born}"
                colour = colours.get(step.kind, BLUE)
                rows.append(Bar(f"{i} {step.name}", step.start, step.seconds, text, colour))
        title = f"backward: {self._summary()}"
        if len(shown) < len(self.steps):
            title += f"; the {len(rows)} longest are shown"
        kinds = [("operator", BLUE), ("AccumulateGrad", GREY), (PYTHON, RED), (SEGMENT, GREEN)]
        used = {step.kind for step in self.steps}
        return bars(rows, title, [(name, colour) for name, colour in kinds if name in used])

    def step(self, number: int) -> GraphPicture:
        """The graph's picture at one step: what has run is grey, what runs is yellow, and each
        says the norm of the gradient that it was given.

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
        for i, step in enumerate(self.steps[: number + 1]):
            place = place_of.get(step.order) if step.order is not None else None
            if place is None:
                continue
            box = boxes[place] = copy.copy(boxes[place])
            norm = "" if step.arrived is None else f"grad norm {step.arrived:.4g}"
            box.lines = [*box.lines, f"step {i}: {norm}".rstrip(": ")]
            if step.born:
                box.lines.append(f"{step.born} born here")
                box.warnings = {*box.warnings, box.lines[-1]}
            box.state = NOW if i == number else DONE
        whole = Outline(boxes, self._whole.arrows, self._whole.nodes)
        return GraphPicture(whole, LIMIT)

    def __len__(self) -> int:
        return len(self.steps)

    def __repr__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.svg() + self.table().html()


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
    that runs for the first time is compiled, which its time includes. While `compiled_autograd` is
    on, the compiled parts and the Python between them are the steps, without norms, and times are
    those at which calls returned.

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
    recorder = _Recorder({node: place for place, node in enumerate(visits(edges))})
    with watched(recorder):
        recorder.began = recorder.since = time.perf_counter()
        backward(of, gradient, retain_graph=retain_graph)
    return Trace(recorder.steps(), whole)
