"""Folding: a large outline with few boxes, in which what repeats is one box.

# Note [Folding keeps the order]
Boxes are folded only with their neighbours in the order of a backward. An edge leads from an
earlier place to a later one, so between folded boxes it does too: they form no cycle. Only leaves,
from which no edge leads on, may be moved.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from dyngraph.compiled.pieces import boundaries
from dyngraph.viz.lettering import shortened
from dyngraph.viz.outline import ACCUMULATE, DONE, FOLDED, LEAF, NOW, Arrow, Box, Outline
from dyngraph.viz.scopes import Scope

SHORTEST = 8
"""Bodies that repeat are put together until they have more than half as many nodes."""
MOST_TITLES = 4
"""How many kinds of nodes a folded box lists."""


class Group(NamedTuple):
    """Boxes of an outline, by number: a body that comes `times` times, or what a scope of the
    program made, which has a name."""

    members: tuple[int, ...]
    times: int = 1
    name: str = ""


def fold(whole: Outline, limit: int) -> Outline:
    """An outline of at most `limit` boxes, or the same one if it has no more."""
    if len(whole.boxes) <= limit:
        return whole
    groups = _by_scope(whole, limit)
    if not 1 < len(groups) <= limit:
        groups = _groups(whole)
    if len(groups) > limit:
        groups = _merged(groups, limit)
    boxes = []
    place_of: dict[int, int] = {}
    for place, group in enumerate(groups):
        place_of.update(dict.fromkeys(group.members, place))
        one = len(group.members) == 1
        boxes.append(whole.boxes[group.members[0]] if one else _folded(whole, group))
    return Outline(boxes, _arrows(whole.arrows, place_of, boxes), whole.nodes)


def _by_scope(whole: Outline, limit: int) -> list[Group]:
    """What a scope of the program made as one group: scopes as small as it can be done with, or
    the outermost; nothing where there are no scopes.

    A leaf's nodes go to the scope that all its uses are in, or stay by themselves, at the end.
    """
    deepest = max([len(box.scopes) for box in whole.boxes])
    groups: list[Group] = []
    for depth in range(deepest, 0, -1):
        groups = _at_depth(whole, depth)
        if len(groups) <= limit:
            break
    return groups


def _at_depth(whole: Outline, depth: int) -> list[Group]:
    groups: list[Group] = []
    place_of: dict[Scope, int] = {}
    ends: list[int] = []
    before: Scope | None = None
    for i, box in enumerate(whole.boxes):
        scope = box.scopes[min(depth, len(box.scopes)) - 1] if box.scopes else None
        if box.kind in (ACCUMULATE, LEAF):
            ends.append(i)
        elif scope is not None and scope is before:
            last = groups[-1]
            groups[-1] = last._replace(members=(*last.members, i))
        else:
            groups.append(Group((i,), 1, "" if scope is None else scope.name))
            if scope is not None:
                place_of[scope] = len(groups) - 1
            before = scope
    for i in ends:
        scopes = whole.boxes[i].scopes[:depth]
        place = place_of.get(scopes[-1]) if scopes else None
        if place is None:
            groups.append(Group((i,)))
        else:
            groups[place] = groups[place]._replace(members=(*groups[place].members, i))
    return groups


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
        members = range(same[0][0], same[-1][1])
        if len(same) > 1:
            groups.append(Group(tuple(members), len(same)))
        else:
            groups += [Group((i,)) for i in members]
    return groups


def _merged(groups: list[Group], limit: int) -> list[Group]:
    """Neighbours put together, as many as it takes."""
    size = -(-len(groups) // limit)
    parts = [groups[i : i + size] for i in range(0, len(groups), size)]
    return [
        part[0] if len(part) == 1 else Group(tuple([i for group in part for i in group.members]))
        for part in parts
    ]


def _folded(whole: Outline, group: Group) -> Box:
    inside = [whole.boxes[i] for i in group.members]
    length = len(inside) // group.times
    title = f"{length} nodes" if group.times == 1 else f"{group.times} × {length} nodes"
    named = [title] if group.name else []
    title = shortened(group.name) or title
    counts = Counter([box.title for box in inside[:length]])
    lines = named + [
        f"{n} × {name}" if n > 1 else name for name, n in counts.most_common(MOST_TITLES)
    ]
    left = len(counts) - MOST_TITLES
    if left > 0:
        lines.append(f"and {left} more kind{'s' if left > 1 else ''}")
    box = Box(FOLDED, title, lines)
    box.members = group.members
    box.times = group.times
    box.order = inside[0].order
    box.freed = any([b.freed for b in inside])
    states = {b.state for b in inside}
    box.state = NOW if NOW in states else DONE if states == {DONE} else ""
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
    members = box.members[: len(box.members) // box.times]
    number = {old: new for new, old in enumerate(members)}
    arrows = [
        Arrow(number[a.source], a.position, number[a.target], a.output_nr, a.label, a.count)
        for a in whole.arrows
        if a.source in number and a.target in number
    ]
    return Outline([whole.boxes[i] for i in members], arrows, len(members))
