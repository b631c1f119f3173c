"""Segment: kernel calls that were noted down while the Engine walked, and how they are settled.

# Note [What is alive goes out]
A Symbol that nobody refers to when its calls run is a value that nobody will ask for. So the
outputs of a Schedule are those of its Symbols that are alive, and nothing has to be said of it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import jax

from dyngraph.compiled import report
from dyngraph.compiled.program import Aval, Call, run_call
from dyngraph.compiled.schedule import Schedule, find_schedule, forget
from dyngraph.graph.accumulate import AccumulateGrad, Held
from dyngraph.graph.node import Node, blame
from dyngraph.kernels import weak_type
from dyngraph.placement import constraint, spread_of
from dyngraph.tensor import LEAF, Tensor
from dyngraph.tracing import Tracer
from dyngraph.values import ARRAYS, add_gradients, sum_arrays


class Symbol:
    """A gradient that a noted call will make; `value` is it, once the call has run."""

    __slots__ = ("__weakref__", "aval", "number", "value")

    def __init__(self, number: int, aval: Aval) -> None:
        self.number = number
        self.aval = aval
        self.value: Any = None


class Segment:
    """The calls noted since calls were last run.

    `given` are the values that come from outside, `symbols` those that the calls will make;
    `nodes` says whose kernel each call runs, None for a sum. What is to happen once the calls have
    run is in `accumulated`, `retained` and `released`, each time with the number of calls that came
    before it.
    """

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.nodes: list[Node | None] = []
        self.accumulated: list[tuple[Tensor, Any, int]] = []
        self.retained: list[tuple[Tensor, Any, int]] = []
        self.released: list[tuple[Node, int]] = []
        self.recorded: list[Callable[..., Any]] = []
        self.given: list[Any] = []
        self.numbers: dict[Any, int] = {}
        self.symbols: list[weakref.ref[Symbol]] = []
        self.avals: list[Aval] = []
        self.devices: Any = None
        self.leaves: set[int] = set()

    def note(
        self,
        kernel: Callable[..., Any],
        values: Sequence[Any],
        avals: Sequence[Aval | None],
        node: Node | None,
        recorded: Callable[..., Any] | None = None,
    ) -> list[Symbol | None]:
        """Notes a call; a Symbol for each thing that it makes, None where it makes None.

        `recorded` is the kernel on tensors.
        """
        inputs = tuple([self._number(value) for value in values])
        made: list[Symbol | None] = []
        first = len(self.symbols)
        for aval in avals:
            if aval is None:
                made.append(None)
                continue
            symbol = Symbol(len(self.symbols), aval)
            self.symbols.append(weakref.ref(symbol))
            self.avals.append(aval)
            made.append(symbol)
        self.calls.append(Call(kernel, inputs, len(self.symbols) - first))
        self.nodes.append(node)
        if recorded is not None:
            self.recorded.append(recorded)
        return made

    def _number(self, value: Any) -> int | None:
        if type(value) is Symbol:
            if value.value is None:
                return value.number
            value = value.value
        elif value is None:
            return None
        key: Any = id(value)
        if isinstance(value, Tensor):
            edge = value.gradient_edge() if value._edge is LEAF else value._edge
            key = (id(value._cell.array), edge)
        number = self.numbers.get(key)
        if number is None:
            number = self.numbers[key] = ~len(self.given)
            self.given.append(value)
        return number

    def sum_of(self, parts: Sequence[Any]) -> Any:
        """The sum of gradients, noted."""
        (total,) = self.note(sum_arrays, parts, [aval_of(parts[0])], None, add_gradients)
        return total

    def put(self, value: Symbol, place: Any) -> Any:
        """The gradient, noted to be spread like that; itself where it is to be as XLA makes it."""
        if place is None or self.devices != place.device_set:
            return value
        (moved,) = self.note(constraint(place), [value], [value.aval], None)
        return moved

    def can_take(self, array: Any) -> bool:
        """Whether an array is on the devices of what was noted."""
        return devices_of(array) in (None, self.devices) or self.devices is None


class Settled:
    """A segment that has run or is running, and what became of its results.

    `totals` are sums with the `.grad` that was there, `accumulated` gradients that are added after
    the calls.
    """

    def __init__(self, how: Any, segment: Segment) -> None:
        self.how = how
        self.segment = segment
        self.schedule: Schedule | None = None
        self.totals: list[tuple[Tensor, Any]] = []
        self.accumulated: list[tuple[Tensor, Any]] = []

    def run(self) -> None:
        """Runs the calls, then adds into `.grad` what has arrived at leaves."""
        segment = self.segment
        if self.how is not ARRAYS:  # operators run, with hooks that may take the locks themselves
            self.accumulated += [(leaf, value) for leaf, value, _ in segment.accumulated]
            self._run_calls_or_each()
            for leaf, value in self.accumulated:
                with accumulator(leaf).lock:
                    self.how.accumulate(leaf, known(value))
        else:
            with Held({accumulator(leaf) for leaf, _, _ in segment.accumulated}):
                self._note_sums()
                self._run_calls_or_each()
                for leaf, total in self.totals:
                    self.how.store(leaf, known(total))
                for leaf, value in self.accumulated:
                    self.how.accumulate(leaf, known(value))
        for tensor, value, _ in segment.retained:
            self.how.retain(tensor, known(value))
        for node, _ in segment.released:
            node.release()

    def _note_sums(self) -> None:
        """Notes the additions to the `.grad`s that are there and on the same device."""
        segment = self.segment
        for place, (leaf, value, at) in enumerate(segment.accumulated):
            grad = leaf.need_meta().grad
            if type(value) is not Symbol or value.value is not None:
                self.accumulated.append((leaf, value))
                continue
            segment.accumulated[place] = leaf, value.number, at  # lets go of the Symbol
            spread = spread_of(leaf._cell.array)
            if grad is None or not segment.can_take(grad._cell.array):
                self.accumulated.append((leaf, segment.put(value, spread)))
            else:
                total = segment.sum_of([grad._cell.array, value])
                self.totals.append((leaf, segment.put(total, spread)))

    def _run_calls_or_each(self) -> None:
        try:
            self._run_calls()
        except Exception as error:
            self._run_one_by_one()
            report.note_failure(len(self.segment.calls), error)  # only together did they fail

    def _run_calls(self) -> None:
        segment = self.segment
        if not segment.calls:
            return
        alive = [symbol for ref in segment.symbols if (symbol := ref()) is not None]
        inputs = [aval_of(value) for value in segment.given]
        outputs = [symbol.number for symbol in alive]
        sums = len(self.totals)
        schedule = find_schedule(segment.calls, inputs, segment.avals, outputs, sums)
        schedule.note_sighting()
        try:
            if self.how is ARRAYS:
                results = schedule.run(segment.given)
            else:
                results = schedule.run_recorded(segment.given, segment.recorded)
        except Exception:
            forget(schedule)
            raise
        for symbol, result in zip(alive, results, strict=True):
            symbol.value = result
        self.schedule = schedule

    def _run_one_by_one(self) -> None:
        """Runs the calls again, each by itself: the one that fails names its node, after all that
        comes before it has happened."""
        segment = self.segment
        kernels = [call.kernel for call in segment.calls]
        runs = kernels if self.how is ARRAYS else segment.recorded
        values: list[Any] = []
        done, failure = 0, None
        for run, call, node in zip(runs, segment.calls, segment.nodes, strict=True):
            try:
                run_call(call._replace(kernel=run), segment.given, values)
            except Exception as error:
                if node is not None:
                    blame(node, error)
                failure = error
                break
            done += 1
        for reference in segment.symbols[: len(values)]:
            symbol = reference()
            if symbol is not None:
                symbol.value = values[symbol.number]
        if failure is None:
            return
        for leaf, value, at in segment.accumulated:
            if at <= done:
                self.how.accumulate(leaf, values[value] if type(value) is int else known(value))
        for tensor, value, at in segment.retained:
            if at <= done:
                self.how.retain(tensor, known(value))
        for node, at in segment.released:
            if at <= done:
                node.release()
        raise failure


def accumulator(leaf: Tensor) -> AccumulateGrad:
    """The node where gradients of a leaf arrive."""
    return leaf.gradient_edge()[0]  # type: ignore[return-value]


def known(value: Any) -> Any:
    return value.value if type(value) is Symbol else value


def aval_of(value: Any) -> Aval:
    if type(value) is Symbol:
        return value.aval
    array = value._cell.array if isinstance(value, Tensor) else value
    return Aval(array.shape, array.dtype, weak_type(array))


def devices_of(value: Any) -> Any:
    """The devices that an array was put on; None for one that may be anywhere."""
    array = value._cell.array if isinstance(value, Tensor) else value
    if not isinstance(array, jax.Array) or isinstance(array, Tracer) or not array.committed:
        return None
    return array.sharding.device_set
