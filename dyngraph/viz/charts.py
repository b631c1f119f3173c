"""Charts as SVG: bars in rows, which also make a timeline, and a curve over time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from dyngraph.viz.drawing import FAINT, Drawing, number
from dyngraph.viz.lettering import shortened, width_of

BLUE, GREY, RED, GREEN = "#3b82f6", "#9ca3af", "#dc2626", "#16a34a"
WIDTH = 420.0
"""The width of the part with the bars, or of a curve."""
ROW = 19.0
SIZE = 11.0
MOST_POINTS = 600
"""A curve of more is drawn by the highest of several points that follow each other."""


class Bar(NamedTuple):
    """A bar from `start` on, with its name to the left and `text` to the right."""

    name: str
    start: float
    length: float
    text: str
    colour: str = BLUE
    tip: str = ""


def bars(rows: Sequence[Bar], title: str, keys: Sequence[tuple[str, str]] = ()) -> str:
    """Bars under each other; `keys` say what their colours mean, as pairs of name and colour."""
    drawing = Drawing()
    names = [shortened(row.name, 60) for row in rows]
    left = max([width_of(name, SIZE) for name in names], default=0.0) + 8
    most = max([row.start + row.length for row in rows], default=0.0) or 1.0
    right = max([width_of(row.text, SIZE) for row in rows], default=0.0) + 6
    drawing.text(0, 13, title, 13, anchor="start", bold=True)
    y = _draw_keys(drawing, keys, 24.0)
    for row, name in zip(rows, names, strict=True):
        x, length = left + row.start / most * WIDTH, max(row.length / most * WIDTH, 1.0)
        drawing.text(left - 8, y + 12.5, name, SIZE, anchor="end")
        tip = row.tip or f"{row.name}: {row.text}"
        drawing.rectangle(
            x, y + 2, length, ROW - 5, fill=row.colour, radius=2, title=tip, name="bar"
        )
        drawing.text(x + length + 5, y + 12.5, row.text, SIZE, fill=FAINT, anchor="start")
        y += ROW
    width = max(left + WIDTH + right, width_of(title, 13, bold=True), _keys_width(keys))
    return drawing.svg(width, y, title)


def _keys_width(keys: Sequence[tuple[str, str]]) -> float:
    return sum([32 + width_of(name, SIZE) for name, _ in keys])


def _draw_keys(drawing: Drawing, keys: Sequence[tuple[str, str]], y: float) -> float:
    x = 0.0
    for name, colour in keys:
        drawing.rectangle(x, y, 11, 11, fill=colour, radius=2)
        drawing.text(x + 16, y + 9.5, name, SIZE, fill=FAINT, anchor="start")
        x += 32 + width_of(name, SIZE)
    return y + (20.0 if keys else 0.0)


class Point(NamedTuple):
    """A value from a time on, drawn in a colour, with what happened then."""

    time: float
    value: float
    colour: str
    tip: str


def steps(
    points: Sequence[Point],
    title: str,
    in_units: Callable[[float], str],
    in_time: Callable[[float], str],
    keys: Sequence[tuple[str, str]] = (),
) -> str:
    """A value over time, as a filled curve of steps."""
    drawing = Drawing()
    points = _fewer(points)
    drawing.text(0, 13, title, 13, anchor="start", bold=True)
    top = _draw_keys(drawing, keys, 24.0) + 6
    height = 160.0
    most = max([p.value for p in points], default=0.0) or 1.0
    last = max([p.time for p in points], default=0.0) or 1.0
    ticks = [most * i / 4 for i in range(5)]
    left = max([width_of(in_units(tick), SIZE) for tick in ticks]) + 8
    wide = WIDTH * 1.4
    for tick in ticks:
        y = top + height * (1 - tick / most)
        drawing.line(
            f"M{number(left)} {number(y)}H{number(left + wide)}", stroke="#e5e7eb", thickness=1
        )
        drawing.text(left - 6, y + 4, in_units(tick), SIZE, fill=FAINT, anchor="end")
    bottom = top + height
    for i, point in enumerate(points):
        end = points[i + 1].time if i + 1 < len(points) else last
        x, right = left + point.time / last * wide, left + end / last * wide
        y = bottom - point.value / most * height
        drawing.rectangle(
            x, y, max(right - x, 0.8), bottom - y,
            fill=point.colour, title=point.tip, name="bar",
        )  # fmt: skip
    for part in range(5):
        x = left + wide * part / 4
        anchor = "end" if part == 4 else "start" if not part else "middle"
        drawing.text(x, bottom + 16, in_time(last * part / 4), SIZE, fill=FAINT, anchor=anchor)
    width = max(left + wide, width_of(title, 13, bold=True), _keys_width(keys))
    return drawing.svg(width, bottom + 20, title)


def _fewer(points: Sequence[Point]) -> Sequence[Point]:
    """So many points as can be seen: of several the highest, from when the first was."""
    size = -(-len(points) // MOST_POINTS)
    if size <= 1:
        return points
    groups = [points[i : i + size] for i in range(0, len(points), size)]
    return [max(g, key=lambda point: point.value)._replace(time=g[0].time) for g in groups]
