"""The compiled backward: see `compiled_autograd`. Its reports: what it did, and why."""

from dyngraph.compiled.compilation import wait_for_compilations
from dyngraph.compiled.deferral import deferred
from dyngraph.compiled.overview import clear, programs, stats
from dyngraph.compiled.program import Program
from dyngraph.compiled.report import Explanation, Stats, explain, reset
from dyngraph.compiled.toggle import compiled_autograd, is_enabled
from dyngraph.compiled.traced import is_traceable, traceable

__all__ = [
    "Explanation",
    "Program",
    "Stats",
    "clear",
    "compiled_autograd",
    "deferred",
    "explain",
    "is_enabled",
    "is_traceable",
    "programs",
    "reset",
    "stats",
    "traceable",
    "wait_for_compilations",
]
