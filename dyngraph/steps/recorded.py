"""Recorded: a step whose results have a history, as one node of the graph.

# Note [What a compiled forward keeps]
The forward program returns, beside its results, what JAX's derivative of it reads; the backward
program takes that and the gradients. With `create_graph=True` this would have no derivative of its
own, so the step is then run once more as an operator, whose rule is JAX's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from dyngraph import modes
from dyngraph.autograd.function import Function
from dyngraph.backward import grad
from dyngraph.dispatch import write_dispatcher
from dyngraph.kernels import OperatorSpec, is_differentiable
from dyngraph.storage import cell_of
from dyngraph.tensor import Tensor, new_tensor
from dyngraph.tracing import ClosedJaxpr, jaxpr_as_fun
from dyngraph.writing import snapshot


class Recorded:
    """A traced step on tensors; called with all its inputs, it returns all its outputs."""

    def __init__(self, name: str, jaxpr: ClosedJaxpr) -> None:
        self.name = name
        self.function = jaxpr_as_fun(jaxpr)
        self.inputs = len(jaxpr.in_avals)
        self.outputs = jaxpr.out_avals
        self.places = [i for i, out in enumerate(self.outputs) if is_differentiable(out.dtype)]
        self.forward = functools.cache(self._make_forward)

    def __call__(self, tensors: Sequence[Tensor]) -> Sequence[Tensor]:
        if not (modes.is_recording() and any([tensor.requires_grad for tensor in tensors])):
            return [_tensor(a) for a in self.forward(())[0](*[t._cell.array for t in tensors])[0]]
        return CompiledCall.apply(self, *tensors)

    def _make_forward(self, needed: tuple[int, ...]) -> tuple[Callable[..., Any], Any]:
        """The forward program, which returns outputs and what backward reads; and the backward
        program `(which gradients are there, read, gradients) -> gradients of the needed inputs`."""
        structure: list[Any] = []

        def forward(*values: Any) -> tuple[Sequence[Any], Sequence[Any]]:
            def of_needed(*changed: Any) -> tuple[list[Any], Sequence[Any]]:
                given = list(values)
                for place, value in zip(needed, changed, strict=True):
                    given[place] = value
                outputs = self.function(*given)
                return [outputs[place] for place in self.places], outputs

            if not needed:
                return self.function(*values), ()
            _, pullback, outputs = jax.vjp(of_needed, *[values[i] for i in needed], has_aux=True)
            read, tree = jax.tree.flatten(pullback)
            structure[:] = [tree]
            return outputs, read

        @functools.partial(jax.jit, static_argnums=0)
        def backward(present: tuple[bool, ...], read: Sequence[Any], grads: Sequence[Any]) -> Any:
            given, outs = iter(grads), [self.outputs[place] for place in self.places]
            cotangents = [  # see Note [Complex gradients]
                jnp.conj(next(given)) if is_there else jnp.zeros(out.shape, out.dtype)
                for is_there, out in zip(present, outs, strict=True)
            ]
            return [jnp.conj(g) for g in jax.tree.unflatten(structure[0], read)(cotangents)]

        return jax.jit(forward), backward

    @functools.cached_property
    def operator(self) -> Callable[..., Any]:
        """The step as an operator, whose derivatives are JAX's, to any order."""
        function = self.function
        spec = OperatorSpec(
            self.name,
            lambda *values: tuple(function(*values)),
            inputs=[f"value{i}" for i in range(self.inputs)],
            outputs=[f"result{i}" for i in range(len(self.outputs))],
            node_name="CompiledCallBackward0",
        )
        return write_dispatcher(spec, ", ".join(spec.inputs))


class CompiledCall(Function):
    """The node of a step that is recorded."""

    @staticmethod
    def forward(ctx: Any, recorded: Recorded, *tensors: Tensor) -> tuple[Tensor, ...]:
        needed = tuple([i for i, needs in enumerate(ctx.needs_input_grad[1:]) if needs])
        run, _ = recorded.forward(needed)
        outputs, read = run(*[tensor._cell.array for tensor in tensors])
        ctx.recorded, ctx.needed, ctx.count = recorded, needed, len(tensors)
        # as they are now: the step may be about to write to them
        ctx.save_for_backward(*map(snapshot, tensors), *map(_tensor, read))
        ctx.set_materialize_grads(False)
        results = tuple(map(_tensor, outputs))
        others = [r for i, r in enumerate(results) if i not in recorded.places]
        ctx.mark_non_differentiable(*others)
        return results

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        recorded, found = ctx.recorded, [None] * (ctx.count + 1)
        tensors, read = ctx.saved_tensors[: ctx.count], ctx.saved_tensors[ctx.count :]
        grads = tuple([grads[place] for place in recorded.places])
        present = [g for g in grads if g is not None]
        if modes.is_recording():
            outputs = recorded.operator(*tensors)
            reached = [
                outputs[place]
                for place, g in zip(recorded.places, grads, strict=True)
                if g is not None
            ]
            wanted = [tensors[i] for i in ctx.needed]
            answers = grad(reached, wanted, present, create_graph=True, allow_unused=True)
        else:
            _, run = recorded.forward(ctx.needed)
            there = tuple([g is not None for g in grads])
            arrays = [[t._cell.array for t in some] for some in (read, present)]
            answers = [_tensor(array) for array in run(there, *arrays)]
        for place, answer in zip(ctx.needed, answers, strict=True):
            found[place + 1] = answer
        return tuple(found)


def _tensor(array: Any) -> Tensor:
    return new_tensor(cell_of(array))


__all__ = ["CompiledCall", "Recorded"]
