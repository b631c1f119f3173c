"""What is compiled now: counts, the Programs that are kept, and how to forget them."""

from __future__ import annotations

from dyngraph.compiled import backward, deferral, joined, report, schedule
from dyngraph.compiled.program import Program
from dyngraph.compiled.report import Stats


def stats() -> Stats:
    """Counts of what the compiled backward did: see `Stats`.

    >>> x = dg.tensor([2.0], requires_grad=True)
    >>> dg.compiled.clear()
    >>> with dg.compiled_autograd():
    ...     for _ in range(3):
    ...         x.grad = None
    ...         x.erf().backward()
    >>> dg.compiled.stats().hits, dg.compiled.stats().misses
    (2, 1)
    """
    counts = report.counts()
    return Stats(
        counts.hits,
        counts.misses,
        counts.segments,
        counts.python_steps,
        counts.eager,
        counts.compilations,
        counts.compile_seconds,
        len(schedule.kept()),
        schedule.evictions(),
    )


def programs() -> list[Program]:
    """The Programs that are kept, the one used last at the end.

    >>> x = dg.tensor([2.0], requires_grad=True)
    >>> with dg.compiled_autograd():
    ...     x.erfc().backward()
    >>> print(dg.compiled.programs()[-1])
    in0: float32[1]
    in1: float32[1]
    %0 = ErfcBackward0(in0, in1)
    return %0
    """
    return schedule.kept()


def clear() -> None:
    """Forgets everything that was compiled, and sets the counts to 0."""
    backward.clear()
    deferral.clear()
    joined.clear()
    schedule.clear()
    report.reset()
