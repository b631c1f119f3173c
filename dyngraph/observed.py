"""Calls in the modes that look at them: autocast, forward mode, saved-tensor hooks, anomaly mode,
and inside functions that are mapped.

A dispatcher that finds one of these modes on comes here; the call then runs with the mode off, and
what the mode wants to know or to change is read from, or done to, the node that was made.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Self

from dyngraph import autocasting, batches, forward, modes
from dyngraph.graph import anomaly, packing
from dyngraph.graph.node import Node
from dyngraph.operator_node import OperatorNode
from dyngraph.storage import Place
from dyngraph.tensor import Tensor
from dyngraph.user_code import caller, shown_place


def run_observed(
    write: Callable[..., Any], call: Any, recorded: bool, given: Mapping[str, Any]
) -> Any:
    """One call of an operator, which `recorded` says can be recorded.

    `call(**given)` is the call, `given` its inputs, then its static arguments. `write` writes the
    function that runs an operator.
    """
    flags = modes.get_flags()
    if flags & modes.AUTOCAST:  # first, so that the other modes look at the casts too
        return autocasting.run_cast(call, given)
    if flags & modes.DEFERRED and flags & modes.OBSERVED != modes.DEFERRED | modes.PACKING:
        modes.set_flags(flags & ~modes.DEFERRED)  # the other modes look at what has happened
        try:
            return run_observed(write, call, recorded, given)
        finally:
            modes.switch(modes.DEFERRED, on=True)
    if flags & modes.INTERCEPTED:
        return _interceptors.get()[-1].run(call, given)
    spec = call.spec
    if flags & modes.FORWARD:
        return forward.run_dual(write, call, spec if recorded else None, given)
    return observe(lambda: call(**given), list(given.values())[: len(spec.inputs)])


def unobserved(run: Callable[[], Any]) -> Any:
    """`run()` with the observing modes off; kernels may be put off."""
    flags = modes.get_flags()
    modes.set_flags(flags & ~modes.OBSERVED | flags & modes.DEFERRED)
    try:
        return run()
    finally:
        modes.set_flags(flags)


def observe(run: Callable[[], Any], inputs: Sequence[Any]) -> Any:
    """`run()`, which records one operator at most; then the modes that are on look at its node."""
    results = unobserved(run)
    tensors = [results] if isinstance(results, Tensor) else results
    if tensors is NotImplemented:
        return results
    if modes.get_flags() & modes.MAPPED:
        batches.note(inputs, tensors, Tensor)
    node = next((t.grad_fn for t in tensors if t is not None and t.grad_fn is not None), None)
    if node is not None:
        look_at_node(node)
        if isinstance(node, OperatorNode):
            pack_saved(node, [*inputs, *tensors])
    return results


def look_at_node(node: Node) -> None:
    """What anomaly mode does with a node that was just made."""
    if modes.get_flags() & modes.ANOMALY:
        anomaly.remember_origin(node)


def pack_saved(node: OperatorNode, fields: Sequence[Any]) -> None:
    """Has the hooks in force pack what a node saved.

    `fields` are the operator's inputs and results, which `node.plan.sources` counts through.
    Numbers are not packed, nor are the positions of an index or a slice.
    """
    hooks = packing.hooks_in_force()
    if hooks is None or not node.saved:
        return
    for position in node.hook_order():
        tensor = fields[node.plan.sources[position]]
        if isinstance(tensor, Tensor) and type(tensor._cell) is not Place:
            node.pack(position, tensor, hooks)


# --- asking before an operator runs ---------------------------------------------------------------

_interceptors: ContextVar[tuple[Interceptor, ...]] = ContextVar("dyngraph_interceptors", default=())


class Interceptor(ABC):
    """A context inside of which `intercept` is asked to run each operator; of several, the one
    entered last comes first."""

    def __enter__(self) -> Self:
        _set_interceptors((*_interceptors.get(), self))
        return self

    def __exit__(self, *exception: object) -> None:
        _set_interceptors(_interceptors.get()[:-1])

    def run(self, call: Any, given: Mapping[str, Any]) -> Any:
        """Has `intercept` run a call, without this interceptor in force."""
        stack = _interceptors.get()
        _set_interceptors(stack[:-1])
        try:
            return self.intercept(call, given, lambda: call(**given))
        finally:
            _set_interceptors(stack)

    @abstractmethod
    def intercept(self, op: Any, given: Mapping[str, Any], run: Callable[[], Any]) -> Any:
        """The results of `op(**given)`, which is what `run()` gives."""


def _set_interceptors(stack: tuple[Interceptor, ...]) -> None:
    _interceptors.set(stack)
    modes.switch(modes.INTERCEPTED, on=bool(stack))


class OperatorLog(Interceptor):
    """Notes each operator that runs inside, with its arguments and the user's line."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def intercept(self, op: Any, given: Mapping[str, Any], run: Callable[[], Any]) -> Any:
        shown = [
            f"{v.dtype.name}{list(v.shape)}" if isinstance(v, Tensor) else repr(v)
            for v in given.values()
        ]
        place = shown_place(*caller(1))
        self.lines.append(f"{op.__name__}({', '.join(shown)}) at {place}")
        return run()

    def __str__(self) -> str:
        return "\n".join(self.lines)
