"""What the compiled backward did, and why: counts, the last events in words, the log."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from dyngraph.graph.anomaly import frames_of_ours
from dyngraph.graph.node import Node

if TYPE_CHECKING:
    from dyngraph.compiled.program import Call, Program

logger = logging.getLogger("dyngraph.compiled")
if "compiled" in os.environ.get("DYNGRAPH_LOGS", "").replace(" ", "").split(","):
    logger.addHandler(logging.StreamHandler())
    logger.setLevel(logging.DEBUG)

KEPT_EVENTS = 200
CHURN_WINDOW = 64
CHURN_MISSES = 48
"""How many of the last `CHURN_WINDOW` sequences must be new, and not compiled, for a warning."""


class Stats(NamedTuple):
    """Counts since the process began, or since `reset`.

    `hits` and `misses` count sequences of kernels that were known, or new; `segments` the calls of
    compiled programs, `python_steps` the places at which Python had to run between them, `eager`
    the backwards that were not compiled at all. `compilations` took `compile_seconds` together;
    `programs` are kept now, `evictions` had to go.
    """

    hits: int
    misses: int
    segments: int
    python_steps: int
    eager: int
    compilations: int
    compile_seconds: float
    programs: int
    evictions: int


class Explanation(tuple[str, ...]):
    """Events in words, oldest first; printed one a line."""

    __slots__ = ()

    def __str__(self) -> str:
        return "\n".join(self) if self else "The compiled backward has not run yet."

    __repr__ = __str__


class _Counts:
    def __init__(self) -> None:
        self.hits = self.misses = self.segments = self.python_steps = self.eager = 0
        self.compilations = 0
        self.compile_seconds = 0.0


_lock = threading.Lock()
_counts = _Counts()
_events: deque[tuple[str, int]] = deque(maxlen=KEPT_EVENTS)
_last_lookups: deque[str | None] = deque(maxlen=CHURN_WINDOW)
_has_warned = False


def counts() -> _Counts:
    """The counts as they are now."""
    return _counts


def reset() -> None:
    """Sets the counts to 0 and forgets the events; what is compiled stays."""
    global _counts, _has_warned
    with _lock:
        _counts, _has_warned = _Counts(), False
        _events.clear()
        _last_lookups.clear()


def explain() -> Explanation:
    """The last events of the compiled backward in words: what was new and in what it differs from
    what was known, where Python runs between compiled parts, what was compiled and how long it
    took.

    >>> x = dg.tensor([2.0], requires_grad=True)
    >>> dg.compiled.clear()
    >>> with dg.compiled_autograd():
    ...     (x * x).backward()
    ...     x.exp().backward()
    >>> print(dg.compiled.explain()[1])
    new: 2 calls; call 0 was MulBackward0, is ExpBackward0
    """
    with _lock:
        return Explanation(
            [text if times == 1 else f"{text} ({times} times)" for text, times in _events]
        )


def _note(text: str) -> None:
    """Adds an event; one that came just before is counted."""
    logger.debug(text)
    for place, (known, times) in enumerate(_events):
        if known == text:
            del _events[place]
            _events.append((text, times + 1))
            return
    _events.append((text, 1))


def note_hit() -> None:
    """A sequence was known."""
    with _lock:
        _counts.hits += 1
        _last_lookups.append(None)


def note_miss(difference: str, *, is_compiled: bool) -> None:
    """A sequence was new; `is_compiled` if all its pieces were known and compiled."""
    with _lock:
        _counts.misses += 1
        _note(f"new: {difference}")
        _last_lookups.append(None if is_compiled else difference)


def warn_of_churn() -> None:
    """Warns, once, where nearly every backward has a structure of its own."""
    global _has_warned
    with _lock:
        if _has_warned or len(_last_lookups) < CHURN_MISSES:
            return
        new = [difference for difference in _last_lookups if difference is not None]
        if len(new) < CHURN_MISSES:
            return
        _has_warned = True
        text = (
            f"{len(new)} of the last {len(_last_lookups)} backwards had a structure that was not "
            f"seen before, so nothing that is compiled served them. The last one: {new[-1]}. Pad "
            "to few lengths, make what changes a tensor's value instead of a shape or of a Python "
            "number that shapes the graph, or leave compiled_autograd() for these steps; "
            "dyngraph.compiled.explain() lists the differences."
        )
    warnings.warn(text, UserWarning, stacklevel=frames_of_ours())


class Watcher(Protocol):
    """What is told of a compiled backward. What comes between `settled` and the next `settling` is
    Python."""

    def settling(self, what: str, node: Node | None) -> None:
        """What was noted down will run now, before `what` of `node`."""
        ...

    def ran(self, calls: int, made: Sequence[Any], *, compiled: bool) -> None:
        """So many of the calls have run, as one program or kernel by kernel."""
        ...

    def settled(self, calls: Sequence[Call], given: Sequence[Any]) -> None:
        """All these calls have run, on these arrays from outside."""
        ...


class _Watched(NamedTuple):
    watcher: Watcher
    run: Callable[..., None]
    every_node: bool


_watched: ContextVar[_Watched | None] = ContextVar("dyngraph_compiled_watcher", default=None)


@contextlib.contextmanager
def watched_by(
    watcher: Watcher, run: Callable[..., None], *, every_node: bool = False
) -> Iterator[None]:
    """Inside, `watcher` is told what a compiled backward does, and `run` stands for
    `GraphTask.run`; with `every_node` it walks all graphs, those of a known structure too."""
    token = _watched.set(_Watched(watcher, run, every_node))
    try:
        yield
    finally:
        _watched.reset(token)


def runner() -> Callable[..., None] | None:
    """What stands for `GraphTask.run` while someone watches."""
    watched = _watched.get()
    return None if watched is None else watched.run


def wants_every_node() -> bool:
    """Whether someone watches each node."""
    watched = _watched.get()
    return watched is not None and watched.every_node


def note_settling(what: str, node: Node | None) -> None:
    """What was noted down is about to run, before `what` of `node`."""
    watched = _watched.get()
    if watched is not None:
        watched.watcher.settling(what, node)


def note_settled(calls: Sequence[Call], given: Sequence[Any]) -> None:
    """What was noted down has run."""
    watched = _watched.get()
    if watched is not None:
        watched.watcher.settled(calls, given)


def note_segment(calls: int, made: Sequence[Any]) -> None:
    """A compiled program was called."""
    _counts.segments += 1
    watched = _watched.get()
    if watched is not None:
        watched.watcher.ran(calls, made, compiled=True)


def note_piece(calls: int, made: Sequence[Any]) -> None:
    """A piece ran kernel by kernel."""
    watched = _watched.get()
    if watched is not None:
        watched.watcher.ran(calls, made, compiled=False)


def note_python_step(what: str, node: Node) -> None:
    """Python runs between two sequences."""
    with _lock:
        _counts.python_steps += 1
        _note(f"split: {what} of {node.name()} is Python, which runs every time")


def note_eager(why: str) -> None:
    """A backward ran as it does without the mode."""
    with _lock:
        _counts.eager += 1
        _note(f"not compiled: {why}")


def note_compilation(program: Program) -> None:
    """A Program was compiled."""
    with _lock:
        _counts.compilations += 1
        _counts.compile_seconds += program.seconds
        fused = "without XLA's fusion, " if program.options else ""
        _note(f"compiled: {len(program)} calls, {fused}{program.seconds:.2f} s")


def note_failure(calls: int, error: BaseException) -> None:
    """Calls could not be compiled together."""
    reason = str(error).partition("\n")[0]
    with _lock:
        _note(f"failed: {calls} calls, which run one by one: {type(error).__name__}: {reason}")


def shown(value: Any) -> str:
    """Shape and dtype in short."""
    return f"{value.dtype.name}[{','.join(map(str, value.shape))}]"
