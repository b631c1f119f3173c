"""What the compiled backward did, and why: counts, misses, Python steps."""

from __future__ import annotations

from typing import Any


class Statistics:
    hits = misses = python_steps = compilations = 0
    seconds = 0.0


S = Statistics()


def note_python_step(what: str, node: Any) -> None:
    S.python_steps += 1


def note_compilation(program: Any) -> None:
    S.compilations += 1
    S.seconds += program.seconds


def note_failure(program: Any, error: Any) -> None:
    pass


def note_hit():
    S.hits += 1


def note_miss(walk):
    S.misses += 1


def note_eager(why):
    pass
