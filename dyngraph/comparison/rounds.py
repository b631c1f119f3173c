"""Rounds: ways take turns, so that a slow second hits them all, and only ratios within a round
count."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple


class Stopwatch:
    """Seconds since it was made, or since the last lap."""

    def __init__(self) -> None:
        self.start = time.perf_counter()

    def lap(self) -> float:
        """The seconds until now; starts anew."""
        now = time.perf_counter()
        passed, self.start = now - self.start, now
        return passed


class Spread(NamedTuple):
    """A median and its middle half."""

    median: float
    low: float
    high: float


def spread(values: Sequence[float]) -> Spread:
    """Of numbers; all three are the one number where there is only one."""
    if len(values) < 2:
        return Spread(values[0], values[0], values[0])
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return Spread(median, low, high)


def take_turns(
    runs: Mapping[str, Callable[[], object]], *, rounds: int, seconds: float
) -> dict[str, list[float]]:
    """The seconds of each run in each round, the first of which turns; stops after `rounds`, or
    when `seconds` have passed and there is one round."""
    names = list(runs)
    times: dict[str, list[float]] = {name: [] for name in names}
    gc.collect()
    began = time.perf_counter()
    for turn in range(rounds):
        if turn and time.perf_counter() - began > seconds:
            break
        first = turn % max(len(names), 1)
        for name in names[first:] + names[:first]:
            timer = Stopwatch()
            runs[name]()
            times[name].append(timer.lap())
    return times
