"""Diagram: an outline drawn as SVG: boxes in the colours of their kinds, arrows with labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from dyngraph.viz import graphviz
from dyngraph.viz.drawing import FAINT, INK, PAPER, WARNING, Drawing, number
from dyngraph.viz.layout import LANDING, Layout, Line, Size, lay_out
from dyngraph.viz.lettering import width_of
from dyngraph.viz.outline import (
    ACCUMULATE,
    CHECKPOINT,
    COMPILED,
    DONE,
    FOLDED,
    FUNCTION,
    KINDS,
    LEAF,
    NOW,
    OPERATOR,
    ROOT,
    Box,
    Outline,
)

COLOURS = {
    ROOT: ("#fef3c7", "#d97706"),
    OPERATOR: ("#eff6ff", "#3b82f6"),
    FUNCTION: ("#f3e8ff", "#9333ea"),
    CHECKPOINT: ("#cffafe", "#0891b2"),
    COMPILED: ("#ffe4e6", "#e11d48"),
    ACCUMULATE: ("#dcfce7", "#16a34a"),
    LEAF: ("#f7fee7", "#65a30d"),
    FOLDED: ("#f1f5f9", "#475569"),
}
"""For each kind its fill and its outline."""
FREED = ("#f3f4f6", "#9ca3af")
STATES = {DONE: "#e5e7eb", NOW: "#fde047"}
"""Fills of boxes that have run, and of the one that runs."""
TITLE, LINE, LABEL = 12.5, 10.5, 10.0
"""Sizes of letters."""
PAD = 9.0


def diagram(shown: Outline, *, engine: str = "auto") -> str:
    """The SVG of an outline."""
    boxes, labels = shown.boxes, _labels(shown)
    entries = [_entries(i, box, labels) for i, box in enumerate(boxes)]
    sizes = [_size(box, labels.get(i, {}), entries[i]) for i, box in enumerate(boxes)]
    order = [sorted(labels.get(i, {0: ""})) for i in range(len(boxes))]
    lines = [
        Line(a.source, a.position, a.target, order[a.target].index(a.output_nr))
        for a in shown.arrows
    ]
    layout = graphviz.lay_out(sizes, lines, entries) if graphviz.is_wanted(engine) else None
    if layout is None:
        layout = lay_out(sizes, lines, entries)
    drawing = Drawing()
    _draw_arrows(drawing, shown, layout)
    for i, (box, size) in enumerate(zip(boxes, sizes, strict=True)):
        x, y = layout.places[i]
        _draw_box(drawing, box, x, y, size)
    _draw_labels(drawing, shown, layout)
    width, height = _draw_legend(drawing, boxes, layout.width, layout.height)
    return drawing.svg(width, height, f"backward graph of {shown.nodes} nodes")


def _labels(shown: Outline) -> dict[int, dict[int, str]]:
    """For each box what stands above it, by the number of the output that the gradient is for."""
    found: dict[int, dict[int, str]] = {}
    counts: Counter[tuple[int, int]] = Counter()
    for arrow in shown.arrows:
        counts[arrow.target, arrow.output_nr] += arrow.count if arrow.label else 0
        mine = found.setdefault(arrow.target, {})
        if not mine.get(arrow.output_nr):
            mine[arrow.output_nr] = arrow.label
    many = {(a.target, a.output_nr) for a in shown.arrows if a.count > 1}
    for target, mine in found.items():
        for output_nr, label in mine.items():
            if label and (target, output_nr) in many:
                label = f"{counts[target, output_nr]} × {label}"
            numbered = label and shown.boxes[target].outputs > 1
            mine[output_nr] = f"{output_nr}: {label}" if numbered else label
    return found


def _entries(place: int, box: Box, labels: Mapping[int, Mapping[int, str]]) -> list[float]:
    """Where arrows arrive, from the middle of the box, one for each of its outputs in use."""
    mine = labels.get(place, {0: ""})
    widths = [_label_width(mine[nr]) for nr in sorted(mine)]
    at, found = -sum(widths) / 2, []
    for width in widths:
        found.append(at + width / 2)
        at += width
    return found


def _label_width(label: str) -> float:
    return max(width_of(label, LABEL) + 8, 24.0)


def _size(box: Box, labels: Mapping[int, str], entries: Sequence[float]) -> Size:
    inner = max(
        [width_of(box.title, TITLE, bold=True), *(width_of(line, LINE) for line in box.lines)]
    )
    width = max(inner + 2 * PAD, 2 * max(map(abs, entries), default=0.0) + 2 * PAD, 44.0)
    height = 24.0 + 15.0 * len(box.lines)
    room = max(width, sum([_label_width(label) for label in labels.values()]))
    return Size(width, height, room)


def _draw_box(drawing: Drawing, box: Box, x: float, y: float, size: Size) -> None:
    fill, stroke = FREED if box.freed else COLOURS[box.kind]
    if box.warnings:
        stroke = WARNING
    if box.kind == FOLDED:
        drawing.rectangle(
            x - size.width / 2 + 4, y + 4, size.width, size.height,
            fill=PAPER, stroke=stroke, radius=6,
        )  # fmt: skip
    drawing.rectangle(
        x - size.width / 2, y, size.width, size.height,
        fill=STATES.get(box.state, fill),
        stroke=stroke,
        radius=size.height / 2 if box.kind == LEAF and len(box.lines) < 2 else 6,
        thickness=2 if box.warnings else 1.3,
        dashed=box.freed,
        title=tip(box),
        name="box",
    )  # fmt: skip
    drawing.text(x, y + 16.5, box.title, TITLE, bold=True)
    for i, line in enumerate(box.lines):
        fill = WARNING if line in box.warnings else FAINT if line == "freed" else INK
        drawing.text(x, y + 31 + 15 * i, line, LINE, fill=fill)


def tip(box: Box) -> str:
    """What shows when the mouse is over a box."""
    first = box.title if box.order is None else f"#{box.order} {box.title}"
    return "\n".join([first, box.kind, *box.lines])


def _draw_arrows(drawing: Drawing, shown: Outline, layout: Layout) -> None:
    for arrow, path, (x, y) in zip(shown.arrows, layout.paths, layout.ends, strict=True):
        source, target = shown.boxes[arrow.source], shown.boxes[arrow.target]
        edges = "" if arrow.count == 1 else f"{arrow.count} edges, "
        drawing.line(
            path,
            stroke=FAINT,
            dashed=source.kind == ROOT or target.kind == LEAF,
            name="arrow",
            title=f"{edges}{source.title}, input {arrow.position} of the forward operator → "
            f"{target.title}, output {arrow.output_nr}: {arrow.label}"
            if arrow.label
            else f"{source.title} → {target.title}",
        )
        tip_path = f"M{number(x - 4)} {number(y - 8)}L{number(x)} {number(y)}"
        drawing.line(f"{tip_path}L{number(x + 4)} {number(y - 8)}Z", stroke=FAINT, fill=FAINT)


def _draw_labels(drawing: Drawing, shown: Outline, layout: Layout) -> None:
    labels = _labels(shown)
    drawn: set[tuple[int, int]] = set()
    for arrow, (x, y) in zip(shown.arrows, layout.ends, strict=True):
        label = labels[arrow.target][arrow.output_nr]
        if not label or (arrow.target, arrow.output_nr) in drawn:
            continue
        drawn.add((arrow.target, arrow.output_nr))
        width = width_of(label, LABEL) + 4
        drawing.rectangle(
            x - width / 2, y - LANDING + 3, width, 13, fill=PAPER, radius=2, name="label"
        )
        drawing.text(x, y - LANDING + 13, label, LABEL, fill=FAINT)


def _draw_legend(
    drawing: Drawing, boxes: Sequence[Box], width: float, height: float
) -> tuple[float, float]:
    """What the colours mean, below the graph, which is put in the middle; the size of it all."""
    kinds = [kind for kind in KINDS if any([box.kind == kind and not box.freed for box in boxes])]
    entries = [(kind, *COLOURS[kind]) for kind in kinds]
    if any([box.freed for box in boxes]):
        entries.append(("freed", *FREED))
    room, total = max(width, 320.0), sum([16 + width_of(name, LABEL) + 14 for name, *_ in entries])
    widest = max(width, min(total - 14, room))
    drawing.shift((widest - width) / 2)
    x, y = 0.0, height + 22.0
    for name, fill, stroke in entries:
        needed = 16 + width_of(name, LABEL) + 14
        if x and x + needed > room:
            x, y = 0.0, y + 18
        drawing.rectangle(x, y, 11, 11, fill=fill, stroke=stroke, radius=2, dashed=name == "freed")
        drawing.text(x + 16, y + 9.5, name, LABEL, fill=FAINT, anchor="start")
        x += needed
    return widest, y + 11
