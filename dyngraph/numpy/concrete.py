"""Functions that need the values of their inputs, such as `unique`: run outside jit, yet recorded.

JAX's `vjp` runs a function on values, so that one whose output shape depends on them has its
gradient too. What is saved is the inputs; the backward function is again one of these, which gives
derivatives of any order.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from dyngraph import modes
from dyngraph.dispatch import attach, is_recorded, lift
from dyngraph.forward import jvp_of, run_carrying
from dyngraph.graph.node import NO_EDGE, creation_numbers
from dyngraph.kernels import BackwardPlan, Kernel, OperatorSpec, fill_absent, fit, is_differentiable
from dyngraph.observed import observe
from dyngraph.operator_node import OperatorNode, node_class
from dyngraph.storage import cell_of
from dyngraph.tensor import LEAF, Tensor, leaf_edge, new_tensor, wrap


def run_concrete(
    name: str, node_name: str, function: Callable[..., Sequence[Any]], inputs: Sequence[Any]
) -> list[Tensor]:
    """`function(*arrays)`, which returns a flat list of arrays, on values, recorded.

    Nothing is compiled, so JAX may look at the values. Inputs that are no tensors are constants.
    """
    flags = modes.get_flags()
    if flags & modes.FORWARD:
        return _run_dual(name, node_name, function, inputs)
    if flags & modes.OBSERVED & ~modes.DEFERRED:
        return observe(lambda: run_concrete(name, node_name, function, inputs), inputs)
    arrays = [
        x._cell.array if isinstance(x, Tensor) else lift(x, name, f"input{i}")
        for i, x in enumerate(inputs)
    ]
    outs = [jnp.asarray(o) for o in function(*arrays)]
    needed = [i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]
    if not needed or not modes.is_recording():
        return [wrap(o) for o in outs]
    results: list[Tensor | None] = [new_tensor(cell_of(o)) for o in outs]
    spec, kind = _spec(name, node_name, len(inputs), len(outs))
    cells = [x._cell if isinstance(x, Tensor) else None for x in inputs]
    guards = tuple(g for c in cells for g in ((c, c.version) if c is not None else (None, 0)))
    if not is_recorded(spec, guards, cells):
        return [wrap(o) for o in outs]
    node = kind()
    edges = tuple(_edge(x) if i in needed else NO_EDGE for i, x in enumerate(inputs))
    outputs = attach(node, outs, results)
    plan = ConcretePlan(spec, function, needed)
    node.record = (edges, next(creation_numbers), outputs, None, plan, tuple(arrays), guards)
    return results  # type: ignore[return-value]


def _run_dual(
    name: str, node_name: str, function: Callable[..., Sequence[Any]], inputs: Sequence[Any]
) -> list[Tensor]:
    """The same in forward mode."""
    count = len(inputs)

    def tangents(
        places: tuple[int, ...], inputs: Sequence[Any], carried: Sequence[Tensor]
    ) -> list[Tensor]:
        def jvp(*values: Any) -> Sequence[Any]:
            given = {
                i: t.astype(values[i].dtype) for i, t in zip(places, values[count:], strict=True)
            }
            return jvp_of(lambda *arrays: tuple(function(*arrays)), values[:count], given)

        return run_concrete(f"{name}_jvp", f"{node_name}Jvp", jvp, [*inputs, *carried])

    def run() -> list[Tensor]:
        return run_concrete(name, node_name, function, inputs)

    return run_carrying(run, inputs, range(count), tangents)


def _edge(tensor: Tensor) -> Any:
    return leaf_edge(tensor) if tensor._edge is LEAF else tensor._edge


@functools.cache
def _spec(
    name: str, node_name: str, inputs: int, outputs: int
) -> tuple[OperatorSpec, type[OperatorNode]]:
    spec = OperatorSpec(
        name,
        _never_compiled,
        inputs=[f"input{i}" for i in range(inputs)],
        outputs=[f"output{i}" for i in range(outputs)],
        node_name=node_name,
    )
    return spec, node_class(spec)


def _never_compiled(*inputs: Any) -> Any:
    raise AssertionError("a concrete function runs on values, by its plan")


class ConcretePlan(BackwardPlan):
    """The plan of one call on values: saved is every input."""

    __slots__ = ("forward",)

    def __init__(
        self, spec: OperatorSpec, function: Callable[..., Sequence[Any]], needed: Sequence[int]
    ) -> None:
        names = [spec.inputs[i] for i in needed]
        super().__init__(Kernel(spec, ()), names, range(len(spec.inputs)))
        self.forward = function
        self.operators = _Operators(self)

    def jitted(self, targets: Any, absent: Any) -> Callable[..., Any]:
        return self.function(targets, absent)

    def make(self, targets: Any, absent: Any) -> Callable[..., Any]:
        function, count = self.forward, len(self.sources)
        places = [i for i, target in enumerate(targets) if target is not None]

        def backward(*values: Any) -> tuple[Any, ...]:
            inputs = list(values[:count])

            def of_needed(*needed: Any) -> list[Any]:
                for place, value in zip(places, needed, strict=True):
                    inputs[place] = value
                return [o for o in function(*inputs) if is_differentiable(o.dtype)]

            outs, vjp = jax.vjp(of_needed, *(inputs[p] for p in places))
            grads = fill_absent(values[count:], absent)
            # see Note [Complex gradients]
            given = [jnp.conj(g).astype(o.dtype) for g, o in zip(grads, outs, strict=True)]
            found = iter([jnp.conj(g) for g in vjp(given)])
            return tuple(None if t is None else fit(next(found), *t) for t in targets)

        return backward


class _Operators(dict[Any, Callable[..., Any]]):
    """A plan's backward functions as functions on tensors, for `create_graph=True`."""

    def __init__(self, plan: ConcretePlan) -> None:
        self.plan = plan

    def __missing__(self, key: Any) -> Callable[..., Any]:
        targets, absent = key
        backward, spec = self.plan.function(targets, absent), self.plan.kernel.spec

        def needed_only(*values: Any) -> list[Any]:
            return [g for g in backward(*values) if g is not None]

        def run(*values: Any) -> list[Any]:
            name = spec.node_name
            found = iter(run_concrete(spec.name, f"{name}Backward0", needed_only, values))
            return [None if target is None else next(found) for target in targets]

        return run
