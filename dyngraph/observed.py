"""Calls in the modes that look at them: forward mode, saved-tensor hooks, anomaly mode.

A dispatcher that finds one of these modes on comes here; the call then runs with the mode off, and
what the mode wants to know or to change is read from, or done to, the node that was made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dyngraph import forward, modes
from dyngraph.graph import anomaly, packing
from dyngraph.graph.node import Node
from dyngraph.kernels import OperatorSpec
from dyngraph.operator_node import OperatorNode
from dyngraph.tensor import Tensor


def run_observed(
    write: Callable[..., Any],
    call: Callable[..., Any],
    spec: OperatorSpec | None,
    given: Mapping[str, Any],
) -> Any:
    """One call of an operator; `spec` is None where it is never recorded.

    `call(**given)` is the call, `given` its inputs, then its static arguments. `write` writes the
    function that runs an operator.
    """
    if modes.get_flags() & modes.FORWARD:
        return forward.run_dual(write, call, spec, given)
    if spec is None:
        return unobserved(lambda: call(**given))
    return observe(lambda: call(**given), list(given.values())[: len(spec.inputs)])


def unobserved(run: Callable[[], Any]) -> Any:
    """`run()` with the observing modes off."""
    flags = modes.get_flags()
    modes.set_flags(flags & ~modes.OBSERVED)
    try:
        return run()
    finally:
        modes.set_flags(flags)


def observe(run: Callable[[], Any], inputs: Sequence[Any]) -> Any:
    """`run()`, which records one operator; then the modes that are on look at its node."""
    results = unobserved(run)
    tensors = [results] if isinstance(results, Tensor) else results
    if tensors is NotImplemented:
        return results
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

    `fields` are the operator's inputs and results, which `node.plan.sources` counts through. A
    constant is not packed.
    """
    hooks = packing.hooks_in_force()
    if hooks is None or not node.saved:
        return
    for position, source in enumerate(node.plan.sources):
        tensor = fields[source]
        if isinstance(tensor, Tensor):
            node.pack(position, tensor, hooks)
