"""A reference engine in forty lines: no queue, no counts, no captures, no hooks.

It calls nodes by hand, in the order of their numbers from the newest on, which is a topological
order because an edge leads to an older node.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import dyngraph as dg


def reachable(root: Any) -> list[Any]:
    """Every node behind `root`, the newest first, leaves' accumulators last."""
    found: dict[Any, None] = {root: None}
    todo = [root]
    while todo:
        for node, _ in todo.pop().next_functions:
            if node is not None and node not in found:
                found[node] = None
                todo.append(node)
    leaves = [n for n in found if hasattr(n, "variable")]
    inner = [n for n in found if not hasattr(n, "variable")]
    return [*sorted(inner, key=lambda n: -n._sequence_nr()), *leaves]


def gradients(loss: dg.Tensor) -> dict[dg.Tensor, dg.Tensor]:
    """The gradient of a scalar for every leaf behind it."""
    arrived: dict[Any, dict[int, dg.Tensor]] = defaultdict(dict)
    results: dict[dg.Tensor, dg.Tensor] = {}
    arrived[loss.grad_fn][loss.output_nr] = dg.ones_like(loss)
    with dg.no_grad():
        for node in reachable(loss.grad_fn):
            given = arrived.pop(node, {})
            grads = [given.get(i) for i in range(len(node._input_metadata))]
            if hasattr(node, "variable"):
                results[node.variable] = given[0]
                continue
            made = node(*grads)
            for (below, nr), grad in zip(
                node.next_functions, made if isinstance(made, tuple) else (made,), strict=True
            ):
                if below is not None and grad is not None:
                    before = arrived[below].get(nr)
                    arrived[below][nr] = grad if before is None else before + grad
    return results
