"""Paired timing: candidates take turns, and only the ratio within a round counts.

Machines are noisy, and a slow second hits whoever runs in it. Each round runs every candidate once,
in an order that turns; the figure of a candidate is the median over rounds of its time divided by
the baseline's in the same round.
"""

from __future__ import annotations

import ctypes
import gc
import statistics
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple


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


def compare(
    candidates: Mapping[str, Callable[[], object]], *, rounds: int, warm_up: int = 3
) -> list[Figure]:
    """Times each candidate, which must wait for its own result; the first one is the baseline."""
    for run in candidates.values():
        for _ in range(warm_up):
            run()
    names = list(candidates)
    times: dict[str, list[float]] = {name: [] for name in names}
    gc.collect()
    for turn in range(rounds):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            start = time.perf_counter()
            candidates[name]()
            times[name].append(time.perf_counter() - start)
    base = times[names[0]]
    figures = []
    for name in names:
        ratios = [t / b for t, b in zip(times[name], base, strict=True)]
        low, middle, high = statistics.quantiles(ratios, n=4)
        figures.append(Figure(name, 1e3 * statistics.median(times[name]), middle, low, high))
    return figures
