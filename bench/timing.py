"""Paired timing: candidates take turns, and only the ratio within a round counts.

Machines are noisy, and a slow second hits whoever runs in it. Each round times every candidate
once, in an order that is drawn anew; the figure of a candidate is the median over rounds of its
time divided by the baseline's in the same round. Before it is timed a candidate runs once
untimed: else it would find the processor's caches as the one before left them, and a fixed order
would favour those that run after their like.
"""

from __future__ import annotations

import ctypes
import gc
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

Candidates = dict[str, Callable[[], object]]
Times = dict[str, list[float]]


class Figure(NamedTuple):
    """A candidate's median time in milliseconds, and its ratio to the baseline with its
    quartiles."""

    name: str
    milliseconds: float
    ratio: float
    low: float
    high: float


def keep_freed_memory() -> None:
    """Has malloc keep what is freed, where it is glibc's.

    It hands a freed block of megabytes back to the system or keeps it, as the blocks beside it
    happen to lie. Where it does hand it back, the next array costs a page fault for every 4 KB,
    which is more than the kernel that fills it: some processes measure that in one candidate, and
    some in another.
    """
    trim_threshold, mmap_threshold = -1, -3
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(trim_threshold, 1 << 30)
        mallopt(mmap_threshold, 1 << 25)  # the largest that it takes


class Bound(NamedTuple):
    """What the ratio of two candidates should be at most."""

    name: str
    baseline: str
    most: float


def take_turns(candidates: Mapping[str, Callable[[], object]], *, rounds: int) -> Times:
    """The seconds that each candidate took in each round; it must wait for its own result."""
    for run in candidates.values():
        for _ in range(2):
            run()
    names = list(candidates)
    times: Times = {name: [] for name in names}
    draws = random.Random(0)
    gc.collect()
    for _ in range(rounds):
        draws.shuffle(names)
        for name in names:
            candidates[name]()
            start = time.perf_counter()
            candidates[name]()
            times[name].append(time.perf_counter() - start)
    return times


def ratio(name: str, baseline: str, times: Times) -> Figure:
    """A candidate against another one."""
    ratios = [t / b for t, b in zip(times[name], times[baseline], strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    return Figure(name, 1e3 * statistics.median(times[name]), middle, low, high)


def compare(candidates: Mapping[str, Callable[[], object]], *, rounds: int) -> list[Figure]:
    """Times each candidate; the first one is the baseline."""
    times = take_turns(candidates, rounds=rounds)
    return [ratio(name, next(iter(times)), times) for name in times]


def show(title: str, figures: Sequence[Figure]) -> None:
    """One section of the table."""
    print(f"\n{title}\n{'':32}{'ms':>9}{'ratio':>9}   middle half")
    for f in figures:
        print(f"{f.name:32}{f.milliseconds:9.2f}{f.ratio:9.2f}   {f.low:.2f} - {f.high:.2f}")


def show_bounds(bounds: Sequence[Bound], times: Times) -> list[Figure]:
    """Under a section: the ratios that should be below a bound; those of a candidate that was not
    measured are left out."""
    found = []
    for name, baseline, most in bounds:
        if name in times and baseline in times:
            f = ratio(name, baseline, times)
            said = "met" if f.ratio <= most else "MISSED"
            what = f"{name} / {baseline}"
            print(f"  {what:47} {f.ratio:5.2f}   {f.low:.2f} - {f.high:.2f}", end="")
            print(f"   at most {most:.2f}: {said}")
            found.append(f._replace(name=what))
    return found
