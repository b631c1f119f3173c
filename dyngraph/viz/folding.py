"""Folding: a large outline with few boxes, in which what repeats is one box.

# Note [Folding keeps the order]
Boxes are folded only with their neighbours in the order of a backward. An edge leads from an
earlier place to a later one, so between folded boxes it does too: they form no cycle.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from dyngraph.compiled.pieces import boundaries
from dyngraph.viz.outline import FOLDED, Arrow, Box, Outline

SHORTEST = 8
"""Bodies that repeat are put together until they have more than half as many nodes."""
MOST_TITLES = 4
"""How many kinds of nodes a folded box lists."""


class Group(NamedTuple):
    """Boxes `start` to `end` of an outline: a body that comes `times` times."""

    start: int
    end: int
    times: int


def fold(whole: Outline, limit: int) -> Outline:
    """An outline of at most `limit` boxes, or the same one if it has no more."""
    if len(whole.boxes) <= limit:
        return whole
    groups = _groups(whole)
    if len(groups) > limit:
        groups = _merged(groups, limit)
    boxes = []
    place_of: dict[int, int] = {}
    for place, group in enumerate(groups):
        place_of.update(dict.fromkeys(range(group.start, group.end), place))
        one = group.end - group.start == 1
        boxes.append(whole.boxes[group.start] if one else _folded(whole, group))
    return Outline(boxes, _arrows(whole.arrows, place_of, boxes), whole.nodes)


def _groups(whole: Outline) -> list[Group]:
    """What repeats as one group, each other box as one of its own."""
    labels: list[list[str]] = [[] for _ in whole.boxes]
    for arrow in whole.arrows:
        labels[arrow.source].append(arrow.label)
    tokens = [(box.title, *labels[i]) for i, box in enumerate(whole.boxes)]
    pieces = list(itertools.pairwise(boundaries(tokens, SHORTEST)))
    groups: list[Group] = []
    for _, run in itertools.groupby(pieces, key=lambda piece: tuple(tokens[slice(*piece)])):
        same = list(run)
        start, end = same[0][0], same[-1][1]
        if len(same) > 1:
            groups.append(Group(start, end, len(same)))
        else:
            groups += [Group(i, i + 1, 1) for i in range(start, end)]
    return groups


def _merged(groups: list[Group], limit: int) -> list[Group]:
    """Neighbours put together, as many as it takes."""
    size = -(-len(groups) // limit)
    parts = [groups[i : i + size] for i in range(0, len(groups), size)]
    return [
        Group(part[0].start, part[-1].end, part[0].times if len(part) == 1 else 1) for part in parts
    ]


def _folded(whole: Outline, group: Group) -> Box:
    inside = whole.boxes[group.start : group.end]
    length = len(inside) // group.times
    title = f"{length} nodes" if group.times == 1 else f"{group.times} × {length} nodes"
    counts = Counter([box.title for box in inside[:length]])
    lines = [f"{n} × {name}" if n > 1 else name for name, n in counts.most_common(MOST_TITLES)]
    left = len(counts) - MOST_TITLES
    if left > 0:
        lines.append(f"and {left} kinds more")
    box = Box(FOLDED, title, lines)
    box.members = tuple(range(group.start, group.end))
    box.order = inside[0].order
    box.freed = any([b.freed for b in inside])
    if any([b.warnings for b in inside]):
        box.lines.append("a saved tensor was modified")
        box.warnings.add(box.lines[-1])
    return box


def _arrows(arrows: Sequence[Arrow], place_of: dict[int, int], boxes: list[Box]) -> list[Arrow]:
    """The edges between groups; those that start and end at the same two are one."""
    found: dict[tuple[int, int, int, int], Arrow] = {}
    for arrow in arrows:
        source, target = place_of[arrow.source], place_of[arrow.target]
        if source == target:
            continue
        position = 0 if boxes[source].members else arrow.position
        output_nr = 0 if boxes[target].members else arrow.output_nr
        key = (source, position, target, output_nr)
        known = found.get(key)
        if known is None:
            found[key] = Arrow(source, position, target, output_nr, arrow.label, arrow.count)
        else:
            known.count += arrow.count
            if known.label != arrow.label:
                known.label = "several" if known.label else arrow.label
    return list(found.values())


def body(whole: Outline, box: Box) -> Outline:
    """The first of what a folded box stands for, as an outline of its own."""
    times = int(box.title.partition(" × ")[0]) if " × " in box.title else 1
    members = box.members[: len(box.members) // times]
    number = {old: new for new, old in enumerate(members)}
    arrows = [
        Arrow(number[a.source], a.position, number[a.target], a.output_nr, a.label, a.count)
        for a in whole.arrows
        if a.source in number and a.target in number
    ]
    return Outline([whole.boxes[i] for i in members], arrows, len(members))
