"""Recording: how the Engine handles gradients when kernels are noted down first and run later.

The Engine walks the graph as it always does, in its order, with its hooks; only that a gradient is
a Symbol, whose value comes later. What needs a value calls `settle`, which runs all that was noted
as one Schedule; then the walk goes on.

# Note [What is alive goes out]
A Symbol that nobody refers to when its calls run is a value that nobody will ask for. So the
outputs of a Schedule are those of its Symbols that are alive, and nothing has to be said of it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import jax

from dyngraph.compiled import report
from dyngraph.compiled.program import Aval, Call, run_call
from dyngraph.compiled.schedule import Schedule, find_schedule, forget
from dyngraph.compiled.traced import is_traceable, trace
from dyngraph.graph.node import Node, PythonCall
from dyngraph.graph.packing import Packed, PackedValues
from dyngraph.kernels import weak_type
from dyngraph.operator_node import OperatorNode
from dyngraph.tensor import LEAF, Tensor
from dyngraph.tracing import Tracer
from dyngraph.values import ARRAYS, add_gradients, recorded_backward, sum_arrays


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
    run is in `accumulated`, `retained` and `released`; each accumulation with the number of calls
    that came before it.
    """

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.nodes: list[Node | None] = []
        self.accumulated: list[tuple[Tensor, Any, int]] = []
        self.retained: list[tuple[Tensor, Any]] = []
        self.released: list[tuple[Node, int]] = []
        self.recorded: list[Callable[..., Any]] = []
        self.given: list[Any] = []
        self.numbers: dict[Any, int] = {}
        self.symbols: list[weakref.ref[Symbol]] = []
        self.avals: list[Aval] = []
        self.devices: Any = None


class RecordedValues:
    """Gradients are Symbols, or arrays (tensors, with `create_graph=True`) that were there before.

    `how` is the way in which gradients are handled when nothing is put off.
    """

    def __init__(self, how: Any) -> None:
        self.how = how
        self.segment = Segment()
        self.trail: list[Settled] = []
        self._many_devices = jax.device_count() > 1

    # --- noting calls -------------------------------------------------------------------------

    def run(self, node: OperatorNode, targets: Any, absent: Any, grads: Sequence[Any]) -> Any:
        saved = node.saved
        assert saved is not None
        if type(saved) is PackedValues:
            self.settle("an unpack hook", node)
            saved = node.arrays() if self.how is ARRAYS else saved
        kernel = node.plan.jitted(targets, absent)
        avals = [None if t is None else Aval(*t) for t in targets]
        if self.how is ARRAYS:
            return self.note(kernel, [*saved, *grads], avals, node)
        recorded = recorded_backward(node.plan, targets, absent, len(grads))
        return self.note(kernel, [*node.tensors(), *grads], avals, node, recorded)

    def total(self, parts: Sequence[Any]) -> Any:
        (total,) = self.note(sum_arrays, parts, [_aval_of(parts[0])], None, add_gradients)
        return total

    def is_small(self, value: Any) -> bool:
        return False  # adding two by two costs nothing here, and repeats from step to step

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
        if self._many_devices:
            self._keep_apart(values)
        segment = self.segment
        inputs = tuple([self._number(value) for value in values])
        made: list[Symbol | None] = []
        first = len(segment.symbols)
        for aval in avals:
            if aval is None:
                made.append(None)
                continue
            symbol = Symbol(len(segment.symbols), aval)
            segment.symbols.append(weakref.ref(symbol))
            segment.avals.append(aval)
            made.append(symbol)
        segment.calls.append(Call(kernel, inputs, len(segment.symbols) - first))
        segment.nodes.append(node)
        if recorded is not None:
            segment.recorded.append(recorded)
        return made

    def _number(self, value: Any) -> int | None:
        if type(value) is Symbol:
            if value.value is None:
                return value.number
            value = value.value
        elif value is None:
            return None
        segment, key = self.segment, id(value)
        if isinstance(value, Tensor):
            edge = value.gradient_edge() if value._edge is LEAF else value._edge
            key = (id(value._cell.array), edge)
        number = segment.numbers.get(key)
        if number is None:
            number = segment.numbers[key] = ~len(segment.given)
            segment.given.append(value)
        return number

    def is_here(self, array: Any) -> bool:
        """Whether an array can be used together with those that were noted."""
        if not self._many_devices:
            return True
        devices = _devices_of(array)
        return devices is None or self.segment.devices in (None, devices)

    def _keep_apart(self, values: Sequence[Any]) -> None:
        """Runs what was noted if it is for other devices than these values are on."""
        for value in values:
            value = value.value if type(value) is Symbol else value
            devices = _devices_of(value)
            if devices is not None:
                if self.segment.devices not in (None, devices):
                    self.settle("other devices", None)
                self.segment.devices = devices

    # --- what needs values --------------------------------------------------------------------

    def call(self, call: PythonCall, grads: list[Any]) -> list[Any]:
        packed = any(type(value) is Packed for value in call.inputs)
        if packed or self.how is not ARRAYS or not is_traceable(call.function):
            self.settle(call.what, call.node)
            grads = [self.value_of(g) for g in grads]
            return call.run(grads, self.how, ())
        avals = [None if g is None else _aval_of(g) for g in grads]
        kernel, consts, made = trace(call, avals, [_aval_of(a) for a in call.inputs])
        given = [*consts, *call.inputs, *(g for g in grads if g is not None)]
        return self.note(kernel, given, made, call.node)

    def settle(self, what: str, node: Any) -> None:
        segment, self.segment = self.segment, Segment()
        if node is not None:
            report.note_python_step(what, node)
        settled = Settled(self.how, segment)
        self.trail.append(settled)
        settled.run()

    def value_of(self, value: Any, what: str = "a value", node: Any = None) -> Any:
        """The value of a gradient, computed now if it was not yet."""
        if type(value) is not Symbol:
            return value
        if value.value is None:
            self.settle(what, node)
        return value.value

    def wrap(self, value: Any) -> Tensor:
        return self.how.wrap(self.value_of(value))

    def unwrap(self, tensor: Any, like: Any, where: str) -> Any:
        return self.how.unwrap(tensor, self.value_of(like), where)

    def is_tensor(self, value: Any) -> bool:
        return self.how.is_tensor(value)

    def has(self, kind: str, value: Any) -> bool:
        return self.how.has(kind, self.value_of(value))

    def is_zero_where(self, value: Any, kind: str, other: Any) -> bool:
        return self.how.is_zero_where(self.value_of(value), kind, self.value_of(other))

    # --- what goes out ------------------------------------------------------------------------

    def accumulate(self, variable: Tensor, value: Any) -> None:
        if any(leaf is variable for leaf, _, _ in self.segment.accumulated):
            self.settle("a second gradient of one leaf", None)
        segment = self.segment
        segment.accumulated.append((variable, value, len(segment.calls)))

    def retain(self, tensor: Tensor, value: Any) -> None:
        self.segment.retained.append((tensor, value))

    def release(self, node: Node) -> None:
        segment = self.segment
        segment.released.append((node, len(segment.calls)))


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
        with ExitStack() as stack:
            if self.how is ARRAYS and segment.accumulated:
                for lock in locks_of([leaf for leaf, _, _ in segment.accumulated]):
                    stack.enter_context(lock)
            self._note_sums()
            try:
                self._run_calls()
            except Exception:
                self._run_one_by_one()
            for leaf, total in self.totals:
                self.how.store(leaf, _known(total))
            for leaf, value in self.accumulated:
                self.how.accumulate(leaf, _known(value))
        for tensor, value in segment.retained:
            self.how.retain(tensor, _known(value))
        for node, _ in segment.released:
            node.release()

    def _note_sums(self) -> None:
        """Notes the additions to the `.grad`s that are there and on the same device."""
        segment = self.segment
        recorder = RecordedValues(self.how)
        recorder.segment = segment
        for place, (leaf, value, at) in enumerate(segment.accumulated):
            grad = leaf.need_meta().grad
            if (
                self.how is not ARRAYS
                or grad is None
                or type(value) is not Symbol
                or value.value is not None
                or not recorder.is_here(grad._cell.array)
            ):
                self.accumulated.append((leaf, value))
            else:
                self.totals.append((leaf, recorder.total([grad._cell.array, value])))
                segment.accumulated[place] = leaf, value.number, at  # lets go of the Symbol

    def _run_calls(self) -> None:
        segment = self.segment
        if not segment.calls:
            return
        alive = [symbol for ref in segment.symbols if (symbol := ref()) is not None]
        inputs = [_aval_of(value) for value in segment.given]
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
                    error.add_note(f"This happened in backward, at {node.name()}.")
                failure = error
                break
            done += 1
        for reference in segment.symbols[: len(values)]:
            symbol = reference()
            if symbol is not None:
                symbol.value = values[symbol.number]
        if failure is None:  # only together do they fail
            return
        for leaf, value, at in segment.accumulated:
            if at <= done:
                self.how.accumulate(leaf, values[value] if type(value) is int else _known(value))
        for node, at in segment.released:
            if at <= done:
                node.release()
        raise failure


def locks_of(leaves: Sequence[Tensor]) -> list[Any]:
    """The locks of leaves' accumulations, in the order in which every thread takes them."""
    locks = {leaf.gradient_edge()[0].lock for leaf in leaves}  # type: ignore[union-attr]
    return sorted(locks, key=id)


def _known(value: Any) -> Any:
    return value.value if type(value) is Symbol else value


def _aval_of(value: Any) -> Aval:
    if type(value) is Symbol:
        return value.aval
    array = value._cell.array if isinstance(value, Tensor) else value
    return Aval(array.shape, array.dtype, weak_type(array))


def _devices_of(value: Any) -> Any:
    """The devices that an array was put on; None for one that may be anywhere."""
    array = value._cell.array if isinstance(value, Tensor) else value
    if not isinstance(array, jax.Array) or isinstance(array, Tracer) or not array.committed:
        return None
    return array.sharding.device_set
