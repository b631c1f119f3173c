"""Layout: where boxes and arrows go, in layers from the roots down.

# Note [Layers]
A box stands one layer below the lowest box that leads to it. An arrow over several layers passes
each in a gap of its own, a point, which all arrows to the same place share. Boxes and points of a
layer are ordered by the mean place of what they are connected with (the barycentre heuristic of
Sugiyama, Tagawa and Toda, 1981), then moved near to it as far as their order and their widths
allow: the least squares under these bounds, by pooling neighbours that would overlap. So boxes
never overlap, and no arrow crosses a box.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right, insort
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from dyngraph.viz.drawing import curve

BETWEEN = 22.0
"""Room between neighbours in a layer."""
POINT = 14.0
"""Room for an arrow that passes a layer."""
GAP = 50.0
"""Room between layers."""
LANDING = 27.0
"""The last, straight part of an arrow, on which its label stands."""
SWEEPS = 8
"""How often the order of the layers is mended; places are moved three times as often."""


class Size(NamedTuple):
    """The size of a box, and the width that it needs with the labels above it."""

    width: float
    height: float
    room: float


class Line(NamedTuple):
    """An arrow to lay out: from exit `leaving` of one box to entry `entry` of another."""

    source: int
    leaving: int
    target: int
    entry: int


class Place(NamedTuple):
    """A point: of a box the middle of its upper side."""

    x: float
    y: float


class Layout(NamedTuple):
    """Places of boxes, paths of lines and where these end, and the size of it all."""

    places: list[Place]
    paths: list[str]
    ends: list[Place]
    width: float
    height: float


def lay_out(
    sizes: Sequence[Size], lines: Sequence[Line], entries: Sequence[Sequence[float]]
) -> Layout:
    """The layout of boxes; a line leads to a box of a higher number.

    `entries` are for each box where its lines may arrive, from the middle of its upper side.
    """
    return _Layers(sizes, lines, entries).layout()


class _Layers:
    def __init__(
        self, sizes: Sequence[Size], lines: Sequence[Line], entries: Sequence[Sequence[float]]
    ) -> None:
        self.sizes = sizes
        self.lines = lines
        self.entries = entries
        self.rank = self._ranks()
        self.rooms = [size.room for size in sizes]
        self.above: list[list[int]] = [[] for _ in sizes]
        self.below: list[list[int]] = [[] for _ in sizes]
        self.chains = self._chains()
        self.layers: list[list[int]] = [[] for _ in range(max(self.rank, default=0) + 1)]
        for vertex in self._first_order():
            self.layers[self.rank[vertex]].append(vertex)

    def _ranks(self) -> list[int]:
        rank = [0] * len(self.sizes)
        for line in sorted(self.lines):
            rank[line.target] = max(rank[line.target], rank[line.source] + 1)
        return rank

    def _chains(self) -> list[list[int]]:
        """For each line the vertices that it goes through, with a point for each layer between."""
        points: dict[tuple[int, int, int], int] = {}
        chains = []
        connected: set[tuple[int, int]] = set()
        for line in self.lines:
            chain = [line.source]
            for rank in range(self.rank[line.source] + 1, self.rank[line.target]):
                key = (line.target, line.entry, rank)
                if key not in points:
                    points[key] = len(self.rooms)
                    self.rooms.append(POINT)
                    self.rank.append(rank)
                    self.above.append([])
                    self.below.append([])
                chain.append(points[key])
            chain.append(line.target)
            chains.append(chain)
            for upper, lower in itertools.pairwise(chain):
                if (upper, lower) not in connected:
                    connected.add((upper, lower))
                    self.below[upper].append(lower)
                    self.above[lower].append(upper)
        return chains

    def _first_order(self) -> Iterable[int]:
        """All vertices, as a walk from the roots meets them: left before right."""
        seen: dict[int, None] = {}
        for start in range(len(self.sizes)):
            todo = [start]
            while todo:
                vertex = todo.pop()
                if vertex not in seen:
                    seen[vertex] = None
                    todo += reversed(self.below[vertex])
        return seen

    # --- the order within layers ----------------------------------------------------------------

    def _order(self) -> None:
        best, fewest = [list(layer) for layer in self.layers], self._crossings()
        for sweep in range(SWEEPS):
            if not fewest:
                break
            down = sweep % 2 == 0
            layers = self.layers[1:] if down else self.layers[-2::-1]
            for layer in layers:
                self._sort(layer, self.above if down else self.below)
            crossings = self._crossings()
            if crossings < fewest:
                best, fewest = [list(layer) for layer in self.layers], crossings
        self.layers = best

    def _sort(self, layer: list[int], neighbours: list[list[int]]) -> None:
        place = self._places_in_layers()
        own = {vertex: i for i, vertex in enumerate(layer)}

        def key(vertex: int) -> tuple[float, int]:
            near = neighbours[vertex]
            if not near:
                return own[vertex] / max(len(layer) - 1, 1), own[vertex]
            return sum([place[n] for n in near]) / len(near), own[vertex]

        layer.sort(key=key)

    def _places_in_layers(self) -> dict[int, float]:
        return {
            vertex: i / max(len(layer) - 1, 1) if len(layer) > 1 else 0.5
            for layer in self.layers
            for i, vertex in enumerate(layer)
        }

    def _crossings(self) -> int:
        """How often lines cross between neighbouring layers."""
        total = 0
        for upper, lower in zip(self.layers, self.layers[1:], strict=False):
            place = {vertex: i for i, vertex in enumerate(lower)}
            ends: list[int] = []
            for vertex in upper:
                mine = sorted([place[n] for n in self.below[vertex]])
                total += sum([len(ends) - bisect_right(ends, end) for end in mine])
                for end in mine:
                    insort(ends, end)
        return total

    # --- coordinates ----------------------------------------------------------------------------

    def layout(self) -> Layout:
        self._order()
        x = [0.0] * len(self.rooms)
        for layer in self.layers:
            self._settle(layer, x, dict.fromkeys(layer, 0.0))
        for sweep in range(3 * SWEEPS):
            down = sweep % 2 == 0
            for layer in self.layers if down else reversed(self.layers):
                near = self.above if down else self.below
                self._settle(layer, x, {v: self._wish(v, x, near[v]) for v in layer})
        for layer in self.layers:
            both = {v: self._wish(v, x, [*self.above[v], *self.below[v]]) for v in layer}
            self._settle(layer, x, both)
        left = min([x[v] - self.rooms[v] / 2 for v in range(len(x))], default=0.0)
        x = [value - left for value in x]
        width = max([x[v] + self.rooms[v] / 2 for v in range(len(x))], default=0.0)
        return self._with_heights(x, width)

    def _wish(self, vertex: int, x: list[float], near: Sequence[int]) -> float:
        """Where a vertex would stand best: in the middle of what it is connected with."""
        return sum([x[n] for n in near]) / len(near) if near else x[vertex]

    def _settle(self, layer: list[int], x: list[float], wishes: dict[int, float]) -> None:
        """Moves a layer's vertices to where they wish to be, as near as there is room."""
        offsets, offset = [], 0.0
        for i, vertex in enumerate(layer):
            if i:
                offset += (self.rooms[layer[i - 1]] + self.rooms[vertex]) / 2 + BETWEEN
            offsets.append(offset)
        # blocks of neighbours that touch: [sum of weighted wishes, weight, count]
        blocks: list[list[float]] = []
        for vertex, offset in zip(layer, offsets, strict=True):
            weight = 1.0 if vertex < len(self.sizes) else 8.0  # long arrows should be straight
            blocks.append([(wishes[vertex] - offset) * weight, weight, 1])
            while len(blocks) > 1 and (
                blocks[-2][0] / blocks[-2][1] >= blocks[-1][0] / blocks[-1][1]
            ):
                total, weight, count = blocks.pop()
                blocks[-1][0] += total
                blocks[-1][1] += weight
                blocks[-1][2] += count
        place = 0
        for total, weight, count in blocks:
            for _ in range(int(count)):
                x[layer[place]] = total / weight + offsets[place]
                place += 1

    def _with_heights(self, x: list[float], width: float) -> Layout:
        tops, bottoms, y = [], [], 0.0
        for layer in self.layers:
            tops.append(y)
            y += max([self.sizes[v].height for v in layer if v < len(self.sizes)], default=0.0)
            bottoms.append(y)
            y += GAP
        places = [Place(x[v], tops[self.rank[v]]) for v in range(len(self.sizes))]
        exits = self._exits(x)
        paths, ends = [], []
        for line, chain in zip(self.lines, self.chains, strict=True):
            source, target = line.source, line.target
            start = x[source] + exits[source, line.leaving, chain[1]]
            bottom = places[source].y + self.sizes[source].height
            path = [(start, bottom), (start, bottoms[self.rank[source]])]
            for point in chain[1:-1]:
                rank = self.rank[point]
                path += [(x[point], tops[rank]), (x[point], bottoms[rank])]
            end = x[target] + self.entries[target][line.entry]
            top = places[target].y
            paths.append(curve([*path, (end, top - LANDING), (end, top - 6)]))
            ends.append(Place(end, top))
        return Layout(places, paths, ends, width, y - GAP)

    def _exits(self, x: list[float]) -> dict[tuple[int, int, int], float]:
        """Where lines leave their box, from its middle: side by side, as they go on."""
        leaving: dict[int, list[tuple[float, int, int]]] = {}
        for line, chain in zip(self.lines, self.chains, strict=True):
            leaving.setdefault(line.source, []).append((x[chain[1]], line.leaving, chain[1]))
        found = {}
        for source, ends in leaving.items():
            ends = sorted(set(ends))
            step = min(0.8 * self.sizes[source].width / len(ends), 40.0)
            for i, (_, number, after) in enumerate(ends):
                found[source, number, after] = (i - (len(ends) - 1) / 2) * step
        return found
