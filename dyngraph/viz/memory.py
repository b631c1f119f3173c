"""Memory: `memory`, which follows how many bytes of arrays live while a block runs.

# Note [How live bytes are counted]
What lives when the block is entered is asked of JAX. From then on each array that an operator or a
node of a backward makes is known by a weak reference, and counted until it is gone. So a sample
costs no walk over all arrays. JAX is asked again at the end, and after each part of a compiled
backward: arrays that were made past dyngraph are seen only then, and what a kernel needs while it
runs is not seen.
"""

from __future__ import annotations

import time
import weakref
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import jax

from dyngraph.graph import engine
from dyngraph.graph.accumulate import AccumulateGrad
from dyngraph.graph.node import Node
from dyngraph.observed import Interceptor
from dyngraph.tensor import Tensor
from dyngraph.tracing import Tracer
from dyngraph.viz.charts import BLUE, GREEN, Point, steps
from dyngraph.viz.frame import forms_of
from dyngraph.viz.lettering import in_bytes, in_seconds
from dyngraph.viz.table import Table
from dyngraph.viz.watching import part_name, watched

FORWARD, BACKWARD = "forward", "backward"


class Sample(NamedTuple):
    """The live bytes after something ran: an operator, a node of a backward, a compiled part."""

    seconds: float
    phase: str
    what: str
    nbytes: int


class _Living:
    """The arrays that live, and their bytes by device."""

    def __init__(self) -> None:
        self.bytes: Counter[str] = Counter()
        self._known: dict[int, weakref.ref[Any]] = {}
        self.ask()

    def ask(self) -> None:
        """Counts all that JAX knows of."""
        for platform in {device.platform for device in [*jax.devices(), *_hosts()]}:
            for array in jax.live_arrays(platform):
                self.add(array)

    def add(self, array: Any) -> None:
        """Counts an array, until it is gone."""
        if not isinstance(array, jax.Array) or isinstance(array, Tracer):
            return
        key = id(array)
        if key in self._known or array.is_deleted():
            return
        nbytes, place = array.nbytes, "+".join(sorted(map(str, array.devices())))
        known, counts = self._known, self.bytes

        def forget(_: Any) -> None:
            del known[key]
            counts[place] -= nbytes

        known[key] = weakref.ref(array, forget)
        counts[place] += nbytes

    @property
    def total(self) -> int:
        return sum(self.bytes.values())


def _hosts() -> list[Any]:
    try:
        return jax.local_devices(backend="cpu")
    except RuntimeError:  # JAX was told to have no CPU
        return []


class memory(Interceptor):  # noqa: N801 - it is used as a function is
    """Inside, the bytes of the arrays that live are noted after each operator of this thread, and
    after each node of its backwards.

    `samples` are what was noted, `peak` the most that lived at a time; a notebook shows a curve. A
    compiled backward is noted after each of its parts. Times are those at which calls returned: on
    accelerators kernels may still be running.

    >>> x = dg.ones(1000, requires_grad=True)
    >>> with dg.viz.memory() as used:
    ...     loss = (x * 2).exp().sum()
    ...     loss.backward()
    >>> [(s.phase, s.what, s.nbytes - used.start) for s in used.samples]
    [('forward', 'mul', 4000), ('forward', 'exp', 8000), ('forward', 'sum', 4004), ...]
    """

    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self.start = 0

    def __enter__(self) -> Self:
        self._living = _Living()
        self.start = self._living.total
        self._began = time.perf_counter()
        self._watched = watched(self, self)
        self._watched.__enter__()
        return super().__enter__()

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        self._watched.__exit__(*exception)
        self._living.ask()
        self._note(FORWARD, "the end")
        self.by_device = {place: n for place, n in sorted(self._living.bytes.items()) if n}
        del self._living, self._watched

    @property
    def peak(self) -> int:
        """The most bytes that lived at a time."""
        return max([sample.nbytes for sample in self.samples], default=self.start)

    def intercept(self, op: Any, given: Mapping[str, Any], run: Callable[[], Any]) -> Any:
        results = run()
        made = results if isinstance(results, tuple | list) else (results,)
        for tensor in (*given.values(), *made):  # what was made without an operator is met here
            if isinstance(tensor, Tensor) and not tensor._cell.is_empty():
                self._living.add(tensor._cell.array)
        self._note(BACKWARD if engine.running_task() else FORWARD, op.__name__)
        return results

    def before(self, node: Node, grads: list[Any]) -> None:
        self._add(grads)

    def after(self, node: Node, grads: list[Any], results: Sequence[Any]) -> None:
        self._add(results)
        if isinstance(node, AccumulateGrad) and isinstance(node.variable, Tensor):
            self._add([node.variable._meta.grad] if node.variable._meta else [])
        self._note(BACKWARD, node.name().rpartition("::")[2])

    def settling(self, what: str, node: Node | None) -> None:
        pass

    def ran(self, calls: int, made: Sequence[Any], *, compiled: bool) -> None:
        self._living.ask()
        self._note(BACKWARD, part_name(calls, compiled=compiled))

    def settled(self, calls: Sequence[Any], given: Sequence[Any]) -> None:
        pass

    def _add(self, values: Sequence[Any]) -> None:
        for value in values:
            self._living.add(value._cell.array if isinstance(value, Tensor) else value)

    def _note(self, phase: str, what: str) -> None:
        now = time.perf_counter() - self._began
        self.samples.append(Sample(now, phase, what, self._living.total))

    def table(self) -> Table:
        """A row for each sample, with what it changed."""
        rows, before = [], self.start
        for s in self.samples:
            change = in_bytes(s.nbytes - before)
            rows.append((in_seconds(s.seconds), s.phase, s.what, in_bytes(s.nbytes), change))
            before = s.nbytes
        return Table(("time", "phase", "after", "live", "change"), rows, self._summary())

    def _summary(self) -> str:
        now = self.samples[-1].nbytes if self.samples else self.start
        return (
            f"{in_bytes(self.start)} at the start, {in_bytes(self.peak)} at most, {in_bytes(now)} "
            "at the end"
        )

    def svg(self, over: str = "events") -> str:
        """The live bytes, forward and backward in two colours: over one event after the other, or
        over "seconds".

        Raises ValueError for something else.
        """
        if over not in ("events", "seconds"):
            raise ValueError(f"over: expected 'events' or 'seconds', got {over!r}")
        points = [
            Point(
                s.seconds if over == "seconds" else float(i),
                float(s.nbytes),
                GREEN if s.phase == BACKWARD else BLUE,
                f"{s.what}: {in_bytes(s.nbytes)} at {in_seconds(s.seconds)}",
            )
            for i, s in enumerate(self.samples)
        ]
        in_time = in_seconds if over == "seconds" else "{:.0f}".format
        keys = [(FORWARD, BLUE), (BACKWARD, GREEN)]
        title = f"live bytes over {over}: {self._summary()}"
        return steps(points, title, in_bytes, in_time, keys)

    def __repr__(self) -> str:
        return str(self.table())

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return forms_of(self.svg(), str(self.table()))
