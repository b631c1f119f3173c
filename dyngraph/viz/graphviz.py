"""Graphviz: the layout of a graph by the program `dot`, where it is installed."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence

from dyngraph.viz.drawing import number
from dyngraph.viz.layout import Layout, Line, Place, Size

SECONDS = 20
"""How long `dot` may take."""
POINTS = 72.0
"""Points of a picture to an inch of Graphviz's."""
HEAD = 27.0
"""Room above a box, for the label there."""


def is_wanted(engine: str) -> bool:
    """Whether to ask `dot`: `engine` is "auto", "dot" or "own".

    Raises ValueError for another, and RuntimeError where "dot" is asked and not installed.
    """
    if engine not in ("auto", "dot", "own"):
        raise ValueError(f"engine: expected 'auto', 'dot' or 'own', got {engine!r}")
    found = engine != "own" and shutil.which("dot") is not None
    if engine == "dot" and not found:
        raise RuntimeError(
            "engine='dot' needs Graphviz's program `dot`, which is not on the PATH. Install "
            "Graphviz, or leave out `engine`: the package's own layout needs nothing."
        )
    return found


def lay_out(
    sizes: Sequence[Size], lines: Sequence[Line], entries: Sequence[Sequence[float]]
) -> Layout | None:
    """The layout that `dot` gives; None where it fails or takes too long."""
    try:
        done = subprocess.run(
            ["dot", "-Tplain"],
            input=_question(sizes, lines),
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=True,
        )
        return _answer(done.stdout, sizes, lines, entries)
    except (OSError, ValueError, LookupError, subprocess.SubprocessError):
        return None


def _question(sizes: Sequence[Size], lines: Sequence[Line]) -> str:
    """The graph in Graphviz's language: for each box a cell with room for the label above it."""
    text = [
        "digraph {",
        'node [shape=box, fixedsize=true, label=""]',
        "edge [arrowhead=none, headport=n, tailport=s]",
        "ranksep=0.35",
    ]
    for i, size in enumerate(sizes):
        width, height = size.room / POINTS, (size.height + HEAD) / POINTS
        text.append(f"{i} [width={width:.3f}, height={height:.3f}]")
    text += [f"{line.source} -> {line.target}" for line in lines]
    return "\n".join([*text, "}"])


def _answer(
    plain: str, sizes: Sequence[Size], lines: Sequence[Line], entries: Sequence[Sequence[float]]
) -> Layout:
    """Reads Graphviz's plain format: inches, from the lower left; an edge is a chain of cubics."""
    width = height = 0.0
    places: dict[int, Place] = {}
    splines: dict[tuple[int, int], list[list[Place]]] = {}
    for text in plain.splitlines():
        kind, *words = text.split()
        if kind == "graph":
            width, height = float(words[1]) * POINTS, float(words[2]) * POINTS
        elif kind == "node":
            i = int(words[0])
            x, y = float(words[1]) * POINTS, height - float(words[2]) * POINTS
            places[i] = Place(x, y + (HEAD - sizes[i].height) / 2)
        elif kind == "edge":
            source, target, count = int(words[0]), int(words[1]), int(words[2])
            numbers = [float(word) * POINTS for word in words[3 : 3 + 2 * count]]
            points = [Place(x, height - y) for x, y in zip(*[iter(numbers)] * 2, strict=True)]
            splines.setdefault((source, target), []).append(points)
    paths, ends = [], []
    for line in lines:
        *points, last, _ = splines[line.source, line.target].pop(0)
        target = places[line.target]
        end = Place(target.x + entries[line.target][line.entry], target.y)
        above = Place(end.x, end.y - HEAD)
        points += [Place(last.x + end.x - target.x, last.y), above]
        inner = " ".join([f"{number(x)} {number(y)}" for x, y in points[1:]])
        paths.append(f"M{number(points[0].x)} {number(points[0].y)}C{inner}V{number(end.y - 6)}")
        ends.append(end)
    return Layout([places[i] for i in range(len(sizes))], paths, ends, width, height)
