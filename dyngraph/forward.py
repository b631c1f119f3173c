"""Forward mode: an operator on tensors that carry tangents gives results that carry theirs.

# Note [Tangents are the backward, transposed]
The tangents of an operator's results are a function of its inputs and their tangents. It is made
from the operator itself: where backward has the default rule, `jax.jvp` of the function; where it
has rules written by hand, these are linear in the gradient, and their transpose is the tangent. So
one set of rules serves both directions, and conventions (ties, subgradients) can't differ.

That function is run as an operator of its own, so it is recorded like any other, and its
derivatives are `jax.vjp` of it: backward over forward. A node keeps the tangents of what it saved,
and a backward inside a level runs on tensors, whose operators pass tangents on: forward over
backward.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dyngraph import modes
from dyngraph.dispatch_source import PARAMETERS
from dyngraph.graph.node import Node
from dyngraph.kernels import Kernel, OperatorSpec, RulePlan, is_differentiable, weak_type
from dyngraph.storage import are_inference, cell_of
from dyngraph.tangents import are_carried, current_level, give_tangent, open_level, tangent_of
from dyngraph.tensor import LEAF, Tensor, new_tensor
from dyngraph.tracing import trace_live


def run_dual(
    write: Callable[..., Any],
    call: Callable[..., Any],
    spec: OperatorSpec | None,
    given: Mapping[str, Any],
) -> Any:
    """One call of an operator in forward mode; `spec` is None where it is never recorded.

    `call(**given)` is the call, `given` its inputs, then its static arguments. `write` writes the
    function that runs an operator.
    """
    if spec is None:
        return run_carrying(lambda: call(**given), (), (), no_tangents)
    values = list(given.values())
    count = len(spec.inputs)
    statics = values[count : count + len(spec.statics)]  # behind them may be a result that is known

    def tangents(
        places: tuple[int, ...], inputs: Sequence[Any], carried: Sequence[Tensor]
    ) -> Sequence[Tensor]:
        return jvp_operator(write, spec, places)(inputs, carried, statics)

    places = [spec.inputs.index(n) for n in spec.differentiable]
    return run_carrying(lambda: call(**given), values[:count], places, tangents)


def no_tangents(
    places: tuple[int, ...], inputs: Sequence[Any], carried: Sequence[Tensor]
) -> Sequence[Tensor]:
    """The tangents of a function without a derivative."""
    return ()


def run_carrying(
    run: Callable[[], Any],
    inputs: Sequence[Any],
    differentiable: Sequence[int],
    tangents: Callable[[tuple[int, ...], Sequence[Any], Sequence[Tensor]], Sequence[Tensor]],
) -> Any:
    """`run()`, outside the innermost level, then its results get the tangents that follow from
    inputs.

    `differentiable` are the places of inputs whose tangents count. `tangents(places, inputs,
    carried)` gives one for each result that can have a gradient, from those that the inputs at
    `places` carry.
    """
    carried = {}
    if are_carried() and not all(_is_inference(x) for x in inputs):
        found = {i: tangent_of(inputs[i]) for i in differentiable if isinstance(inputs[i], Tensor)}
        carried = {i: tangent for i, tangent in found.items() if tangent is not None}
    before = [_state(x) for x in inputs]
    level, flags = current_level(), modes.get_flags()
    open_level(None if level is None else level.outer)  # see Note [Levels nest]
    try:
        results = run()
        if not carried or results is NotImplemented:
            return results
        unwritten = [_as_before(x, was) for x, was in zip(inputs, before, strict=True)]
        made = tangents(tuple(carried), unwritten, tuple(carried.values()))
    finally:
        open_level(level)
        modes.set_flags(flags)
    tensors = [results] if isinstance(results, Tensor) else list(results)
    with_gradient = [t for t in tensors if t is not None and is_differentiable(t._cell.held.dtype)]
    for result, tangent in zip(with_gradient, made, strict=True):
        give_tangent(result, tangent)
    node = next((t.grad_fn for t in with_gradient if t.grad_fn is not None), None)
    if node is not None:
        keep_tangents(node, [*before, *map(_state, tensors)])
    return results


class State(NamedTuple):
    """What an operator reads of a tensor, which it may write to as well."""

    array: Any
    edge: Any
    tangent: Any


def _is_inference(value: Any) -> bool:
    return isinstance(value, Tensor) and are_inference([value._cell])


def _state(value: Any) -> State | None:
    if not isinstance(value, Tensor):
        return None
    meta = value._meta
    return State(value._cell.array, value._edge, None if meta is None else meta.tangent)


def _as_before(value: Any, was: State | None) -> Any:
    """An input as it was before the operator ran."""
    if was is None or value._cell.array is was.array:
        return value
    before = new_tensor(cell_of(was.array), None if was.edge is LEAF else was.edge)
    if was.tangent is not None:
        before.need_meta().tangent = was.tangent
    return before


def keep_tangents(node: Node, fields: Sequence[State | None]) -> None:
    """Has a node that was just recorded keep the tangents of what it saved.

    `fields` are the operator's inputs and results, which `node.plan.sources` counts through.
    """
    if node.saved:
        saved = [fields[source] for source in node.plan.sources]
        node.need_extra().tangents = [None if s is None else s.tangent for s in saved]


# --- the tangents of an operator's results, as an operator --------------------------------------


class JvpOperator:
    """The operator `(*inputs, *tangents of those at places, *statics) -> tangents of results`.

    `write` writes the function that runs it.
    """

    def __init__(
        self, write: Callable[..., Any], spec: OperatorSpec, places: tuple[int, ...]
    ) -> None:
        count = len(spec.inputs)

        def function(*values: Any, **statics: Any) -> tuple[Any, ...]:
            kernel = Kernel(spec, tuple(statics.values()))
            return jvp(kernel, values[:count], dict(zip(places, values[count:], strict=True)))

        made = OperatorSpec(
            f"{spec.name}_jvp",
            function,
            # levels nest, so that the inputs may be another's tangents: names count all inputs
            inputs=[*spec.inputs, *(f"tangent{place}_of_{count}" for place in places)],
            statics=spec.statics,
            outputs=(),
            rules={n: None for n in spec.inputs if n not in spec.differentiable},
        )
        names = [PARAMETERS.get(n, n) for n in (*made.inputs, *made.statics)]
        self.run = write(made, ", ".join(names), optional=spec.inputs)
        self._live: dict[Any, tuple[bool, ...]] = {}

    def __call__(
        self, inputs: Sequence[Any], tangents: Sequence[Tensor], statics: Sequence[Any]
    ) -> Sequence[Tensor]:
        if any(isinstance(x, Tensor) and x.requires_grad for x in inputs):
            live = self.live([*inputs, *tangents], statics)
            inputs = [
                x if not isinstance(x, Tensor) or reads else x.detach()
                for x, reads in zip(inputs, live, strict=False)
            ]
        return self.run(*inputs, *tangents, *statics)

    def live(self, values: Sequence[Any], statics: Sequence[Any]) -> tuple[bool, ...]:
        """Which of `values` the tangents depend on: of a linear operator, they alone.

        A value that is not read would get a gradient of zeros, and what is behind it NaN from it.
        """
        kernel = self.run.table.find(tuple(statics))
        arrays = [
            v._cell.array if isinstance(v, Tensor) else v if v is None else jnp.asarray(v)
            for v in values
        ]
        avals = [
            x if x is None else jax.ShapeDtypeStruct(x.shape, x.dtype, weak_type=weak_type(x))
            for x in arrays
        ]
        key = (kernel, *[a if a is None else (a.shape, a.dtype, a.weak_type) for a in avals])
        try:
            return self._live[key]
        except KeyError:
            pass

        def of_arrays(*given: Any) -> list[Any]:
            rest = iter(given)
            return list(kernel.function(*[a if a is None else next(rest) for a in avals]))

        reads = iter(trace_live(of_arrays, [a for a in avals if a is not None]).live)
        live = self._live[key] = tuple(a is not None and next(reads) for a in avals)
        return live


def jvp_operator(
    write: Callable[..., Any], spec: OperatorSpec, places: tuple[int, ...]
) -> JvpOperator:
    """The operator for one set of inputs that carry tangents."""
    try:
        return spec.jvps[places]
    except KeyError:
        made = spec.jvps[places] = JvpOperator(write, spec, places)
        return made


def jvp(kernel: Kernel, inputs: Sequence[Any], tangents: Mapping[int, Any]) -> tuple[Any, ...]:
    """The tangents of the results that can have a gradient, from arrays and their tangents.

    `tangents` are by the place of their input. See Note [Tangents are the backward, transposed].
    """
    spec = kernel.spec
    needs = sum(1 << spec.differentiable.index(spec.inputs[place]) for place in tangents)
    plan = kernel.plans[needs]
    # a tangent may have another precision than its tensor
    tangents = {i: t.astype(inputs[i].dtype) for i, t in sorted(tangents.items())}
    if isinstance(plan, RulePlan):
        return _transposed_rules(plan, inputs, tangents)
    return jvp_of(kernel.function, inputs, tangents)


def jvp_of(
    function: Callable[..., Any], inputs: Sequence[Any], tangents: Mapping[int, Any]
) -> tuple[Any, ...]:
    """The same by JAX's own rules."""

    def of_moving(*moving: Any) -> list[Any]:
        values = list(inputs)
        for place, value in zip(tangents, moving, strict=True):
            values[place] = value
        return _with_gradient(function(*values))

    _, made = jax.jvp(of_moving, [inputs[i] for i in tangents], list(tangents.values()))
    return tuple(made)


def _transposed_rules(
    plan: RulePlan, inputs: Sequence[Any], tangents: Mapping[int, Any]
) -> tuple[Any, ...]:
    """The same by the transpose of hand-written rules."""
    outs = _listed(with_rules(plan.kernel)(*inputs))

    def rules(*grads: Any) -> list[Any]:
        found = _gradients(plan, tangents, inputs, outs, grads)
        return [found[i] for i in tangents]

    # The derivative of a linear function is the same wherever it is taken; but some rules ask
    # where the gradient is 0, as they must not divide there, so it is not taken there.
    _, transpose = jax.vjp(rules, *[_nowhere_zero(o) for o in _with_gradient(outs)])
    # see Note [Complex gradients]: backward conjugates what JAX's transpose does not
    return tuple(jnp.conj(t) for t in transpose([jnp.conj(t) for t in tangents.values()]))


def _gradients(
    plan: RulePlan,
    places: Iterable[int],
    inputs: Sequence[Any],
    outs: Sequence[Any],
    grads: Sequence[Any],
) -> dict[int, Any]:
    """What hand-written rules make of the gradients of `outs`: those of the inputs at `places`."""
    spec = plan.kernel.spec
    targets = {spec.inputs[i]: (inputs[i].shape, inputs[i].dtype) for i in places}
    backward = plan.function(tuple(targets.get(n) for n in spec.differentiable), None)
    fields = [*inputs, *outs]
    found = backward(*[fields[source] for source in plan.sources], *grads)
    pairs = zip(spec.differentiable, found, strict=True)
    return {spec.inputs.index(n): g for n, g in pairs if g is not None}


def with_rules(kernel: Kernel) -> Callable[..., Any]:
    """The operator's function, with its hand-written rules for JAX's own.

    A rule may name the result, and the tangent is derived through it: JAX's derivative of a norm at
    0 is NaN, which the rule avoids.
    """
    spec = kernel.spec
    plan = kernel.plans[(1 << len(spec.differentiable)) - 1]
    if not isinstance(plan, RulePlan):
        return kernel.function

    @jax.custom_jvp
    def function(*inputs: Any) -> Any:
        return kernel.function(*inputs)

    @function.defjvp
    def derivative(inputs: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
        outs = function(*inputs)
        places = [spec.inputs.index(n) for n in spec.differentiable]
        places = [i for i in places if inputs[i] is not None and is_differentiable(inputs[i].dtype)]
        found = iter(_transposed_rules(plan, inputs, {i: tangents[i] for i in places}))
        made = [
            None
            if o is None
            else next(found)
            if is_differentiable(o.dtype)
            else np.zeros(o.shape, jax.dtypes.float0)
            for o in _listed(outs)
        ]
        return outs, type(outs)(made) if isinstance(outs, (tuple, list)) else made[0]

    return function


def _nowhere_zero(like: Any) -> Any:
    values = jnp.sin(1 + jnp.arange(like.size, dtype=jnp.float32)).reshape(like.shape)
    return (values * (1 + 1j) if jnp.iscomplexobj(like) else values).astype(like.dtype)


def _listed(outs: Any) -> list[Any]:
    return list(outs) if isinstance(outs, (tuple, list)) else [outs]


def _with_gradient(outs: Any) -> list[Any]:
    return [o for o in _listed(outs) if o is not None and is_differentiable(o.dtype)]
