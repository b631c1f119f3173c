"""Where to cut a long sequence of calls, so that its pieces compile fast and are found again.

# Note [Cut where it repeats]
XLA's compile time grows faster than a program, and a Python loop unrolls. The calls of a loop's
body come again and again in the same order, so a sequence is cut by that period: all pieces of one
body have the same structure, and one executable serves them, however long the loop ran. Several
short periods share a piece; what is left over is cut into powers of two of them, so that loops of
other lengths need few other pieces. What repeats nowhere is cut into pieces of bounded length; if
it can be put together from known pieces, as a loop that ran too few times to show its period, it
is cut into those.
"""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

from dyngraph.compiled.program import Aval, Call

TARGET = 64
"""How many calls a piece of short periods should have; no shorter sequence is cut."""
GRAIN = 32
"""The same where pieces are parts of one program: XLA fuses small ones better."""
LONGEST = 400
"""How many calls a piece may have."""
MOST_KNOWN = 1000
"""How many pieces are remembered."""
_GRAM = 4
_CANDIDATES = 6


def boundaries(kernels: Sequence[Hashable], target: int = TARGET) -> list[int]:
    """The positions at which to cut a sequence that calls these kernels, 0 and its end among
    them."""
    numbers: dict[Hashable, int] = {}
    tokens = [numbers.setdefault(kernel, len(numbers)) for kernel in kernels]
    found = {0, len(tokens)}
    todo = [(0, len(tokens))]
    while todo:
        start, end = todo.pop()
        if end - start <= target:
            continue
        period, regions = _best_period(tokens[start:end])
        if not regions:
            count = -(-(end - start) // LONGEST)
            found.update(start + (end - start) * i // count for i in range(count))
            continue
        before = start
        for first, last in regions:
            cuts = list(_cuts(start + first, start + last, period, target))
            found.update(cuts)
            todo.append((before, cuts[0]))
            before = cuts[-1]
        todo.append((before, end))
    return sorted(found)


def _best_period(tokens: list[int]) -> tuple[int, list[tuple[int, int]]]:
    """The period by which most of the sequence repeats at least twice, and where it does."""
    seen: dict[tuple[int, ...], int] = {}
    distances: Counter[int] = Counter()
    for i in range(len(tokens) - _GRAM + 1):
        gram = tuple(tokens[i : i + _GRAM])
        if gram in seen:
            distances[i - seen[gram]] += 1
        seen[gram] = i
    best: tuple[int, int, list[tuple[int, int]]] = (0, 0, [])
    for period, _ in distances.most_common(_CANDIDATES):
        regions = _regions(tokens, period) if period <= LONGEST else []
        covered = sum(last - first for first, last in regions)
        if (covered, -period) > (best[0], -best[1]):
            best = covered, period, regions
    return best[1], best[2]


def _regions(tokens: list[int], period: int) -> list[tuple[int, int]]:
    """The stretches of at least three periods."""
    found = []
    start = period
    for i in range(period, len(tokens) + 1):
        if i == len(tokens) or tokens[i] != tokens[i - period]:
            if i - start >= 2 * period:
                first = start - period
                if found and first < found[-1][1]:
                    first = found[-1][1]
                if i - first >= 3 * period:
                    found.append((first, i))
            start = i + 1
    return found


def _cuts(first: int, last: int, period: int, target: int) -> Iterator[int]:
    """Where to cut whole periods: many together, then powers of two of them."""
    left = (last - first) // period
    together = 1
    while 2 * together * period <= target:
        together *= 2
    yield first
    while left:
        while together > left:
            together //= 2
        first += together * period
        left -= together
        yield first


class KnownPieces:
    """The kernels of the pieces into which sequences that repeat were cut, by all threads."""

    def __init__(self) -> None:
        self._pieces: dict[tuple[Hashable, ...], None] = {}
        self._lock = threading.Lock()

    def remember(self, kernels: Sequence[Hashable], cuts: Sequence[int]) -> None:
        """Keeps the pieces of a sequence; of too many, the oldest go."""
        with self._lock:
            for start, end in itertools.pairwise(cuts):
                self._pieces[tuple(kernels[start:end])] = None
            while len(self._pieces) > MOST_KNOWN:
                del self._pieces[next(iter(self._pieces))]

    def cuts(self, kernels: Sequence[Hashable]) -> list[int] | None:
        """Where to cut a sequence so that all its pieces are known, and few; None if it can't
        be."""
        kernels = tuple(kernels)
        with self._lock:
            lengths = sorted({len(piece) for piece in self._pieces}, reverse=True)
            ways: dict[int, list[int]] = {0: [0]}
            for start in range(len(kernels)):
                for length in lengths if start in ways else ():
                    end = start + length
                    if end in ways and len(ways[end]) <= len(ways[start]) + 1:
                        continue
                    if kernels[start:end] in self._pieces:
                        ways[end] = [*ways[start], end]
        return ways.get(len(kernels))

    def clear(self) -> None:
        """Forgets them all."""
        with self._lock:
            self._pieces.clear()


class Piece(NamedTuple):
    """Calls `start` to `end` of a sequence as a sequence of their own.

    `calls` are numbered anew. `inputs` and `outputs` are the numbers, in the whole sequence, of
    the values that they take and of those that they make for others.
    """

    calls: tuple[Call, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    first: int

    def local_outputs(self) -> tuple[int, ...]:
        """The numbers of the outputs within the piece."""
        return tuple(number - self.first for number in self.outputs)


def cut(calls: Sequence[Call], outputs: Sequence[int], cuts: Sequence[int]) -> list[Piece]:
    """The pieces of a sequence whose results `outputs` are."""
    last_use: dict[int, int] = {}
    for position, call in enumerate(calls):
        for number in call.inputs:
            if number is not None:
                last_use[number] = position
    for number in outputs:
        last_use[number] = len(calls)
    pieces = []
    number = 0
    for start, end in itertools.pairwise(cuts):
        first, inputs = number, {}
        made = []
        for call in calls[start:end]:
            local = tuple(
                [
                    None
                    if i is None
                    else i - first
                    if i >= first
                    else ~inputs.setdefault(i, len(inputs))
                    for i in call.inputs
                ]
            )
            made.append(Call(call.kernel, local, call.made))
            number += call.made
        kept = tuple([i for i in range(first, number) if last_use.get(i, -1) >= end])
        pieces.append(Piece(tuple(made), tuple(inputs), kept, first))
    return pieces


def avals_of(piece: Piece, known: Sequence[Aval], made: Sequence[Aval]) -> list[Aval]:
    """What the piece takes, from what comes from outside and what the whole sequence makes."""
    return [made[i] if i >= 0 else known[~i] for i in piece.inputs]
