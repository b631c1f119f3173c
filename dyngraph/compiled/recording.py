"""Recording: how the Engine handles gradients when kernels are noted down first and run later.

The Engine walks the graph as it always does, in its order, with its hooks; only that a gradient is
a Symbol, whose value comes later. What needs a value calls `settle`, which runs all that was noted
as one Schedule; then the walk goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax

from dyngraph.compiled import report
from dyngraph.compiled.program import Aval
from dyngraph.compiled.segment import Segment, Settled, Symbol, aval_of, devices_of, known
from dyngraph.compiled.traced import is_traceable, trace
from dyngraph.graph.node import Node, PythonCall, blame
from dyngraph.graph.packing import Packed, PackedValues
from dyngraph.operator_node import OperatorNode
from dyngraph.tensor import Tensor
from dyngraph.values import ARRAYS, recorded_backward


class RecordedValues:
    """Gradients are Symbols, or arrays (tensors, with `create_graph=True`) that were there before.

    `how` is the way in which gradients are handled when nothing is put off.
    """

    def __init__(self, how: Any) -> None:
        self.how = how
        self.segment = Segment()
        self.trail: list[Settled] = []
        self._many_devices = jax.device_count() > 1
        self._has_failed = False

    # --- noting calls -------------------------------------------------------------------------

    def run(self, node: OperatorNode, targets: Any, absent: Any, grads: Sequence[Any]) -> Any:
        _, _, _, _, plan, saved, _ = node.record
        if type(saved) is PackedValues:
            self.settle("an unpack hook", node)
            saved = node.arrays() if self.how is ARRAYS else saved
        elif type(saved) is list:  # recorded in deferred mode
            saved = node.arrays()
        kernel = plan.jitted(targets, absent)
        avals = [None if t is None else Aval(*t) for t in targets]
        if self.how is ARRAYS:
            values, recorded = [*saved, *grads], None
        else:
            values = [*node.tensors(), *grads]
            recorded = recorded_backward(plan, targets, absent, len(grads))
        self._keep_apart(values)
        return self.segment.note(kernel, values, avals, node, recorded)

    def total(self, parts: Sequence[Any]) -> Any:
        self._keep_apart(parts)
        return self.segment.sum_of(parts)

    def is_small(self, value: Any) -> bool:
        return False  # adding two by two costs nothing here, and repeats from step to step

    def _keep_apart(self, values: Sequence[Any]) -> None:
        """Runs what was noted if it is for other devices than these values are on."""
        for value in values if self._many_devices else ():
            value = known(value)
            devices = devices_of(value)
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
        avals = [None if g is None else aval_of(g) for g in grads]
        kernel, consts, made = trace(call, avals, [aval_of(a) for a in call.inputs])
        given = [*consts, *call.inputs, *(g for g in grads if g is not None)]
        self._keep_apart(given)
        return self.segment.note(kernel, given, made, call.node)

    def settle(self, what: str, node: Any) -> None:
        segment, self.segment = self.segment, Segment()
        report.note_settling(what, node)
        if node is not None:
            report.note_python_step(what, node)
        settled = Settled(self.how, segment)
        self.trail.append(settled)
        try:
            settled.run()
        except BaseException:
            self._has_failed = True
            raise
        if self.how is ARRAYS:
            report.note_settled(segment.calls, segment.given)

    def blame(self, node: Any, error: Exception) -> None:
        if not self._has_failed:  # else the node that failed has been noted
            blame(node, error)

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
        if id(variable) in self.segment.leaves:
            self.settle("a second gradient of one leaf", None)
        segment = self.segment
        segment.leaves.add(id(variable))
        segment.accumulated.append((variable, value, len(segment.calls)))

    def retain(self, tensor: Tensor, value: Any) -> None:
        segment = self.segment
        segment.retained.append((tensor, value, len(segment.calls)))

    def release(self, node: Node) -> None:
        segment = self.segment
        segment.released.append((node, len(segment.calls)))
