"""Gradients as the Engine meets them: as jax arrays, or, with `create_graph=True`, as tensors.

# Note [Backward is recorded as operators]
With `create_graph=True` a node's backward kernel is called as an operator of its own, so it
records a node when it runs, and that node's rule is `jax.vjp` of the kernel. Derivatives of any
order come from this, without a second set of rules.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding

from dyngraph import batches, dtypes, modes
from dyngraph.dispatch import define_dispatcher, write_dispatcher
from dyngraph.graph.node import Node, PythonCall, Values, blame
from dyngraph.graph.packing import PackedValues
from dyngraph.kernels import BackwardPlan, OperatorSpec, Target, same
from dyngraph.operator_node import OperatorNode
from dyngraph.pending import PUT_OFF
from dyngraph.placement import is_at, place_of, put, spread_of
from dyngraph.pure import current_pure
from dyngraph.sequence import are_many, is_deferring, note
from dyngraph.storage import cell_of
from dyngraph.tangents import are_carried, share_tangent
from dyngraph.tensor import Tensor, new_tensor
from dyngraph.tracing import Tracer

_IS = {"nan": jax.jit(jnp.isnan), "inf": jax.jit(jnp.isinf)}
SMALL_BYTES = 1 << 20
"""Up to which size gradients that meet may wait for each other."""


@jax.jit
def sum_arrays(*parts: jax.Array) -> jax.Array:
    return functools.reduce(operator.add, parts)


def sum_in_order(parts: Sequence[Any], add: Callable[..., Any]) -> Any:
    """The sum from left to right, by calls of 2, 4, 8 or 16 terms: each count compiles a kernel."""
    parts = list(parts)
    while len(parts) > 1:
        count = 1 << min(len(parts).bit_length() - 1, 4)
        parts[:count] = [add(*parts[:count])]
    return parts[0]


class Immediate:
    """Gradients whose values are known at once: nothing is put off, and anomaly mode can look."""

    def settle(self, what: str, node: Any) -> None:
        pass

    def call(self, call: PythonCall, grads: list[Any]) -> list[Any]:
        return call.run(grads, self, ())

    def blame(self, node: Node, error: Exception) -> None:
        blame(node, error)

    release = staticmethod(operator.methodcaller("release"))

    def has(self, kind: str, value: Any) -> bool:
        return bool(_IS[kind](_array(value)).any())

    def is_zero_where(self, value: Any, kind: str, other: Any) -> bool:
        array, found = _array(value), _IS[kind](_array(other))
        return array.shape == found.shape and not bool(array[found].any())


def _array(value: Any) -> Any:
    return value._cell.array if isinstance(value, Tensor) else value


class ArrayValues(Immediate):
    """Gradients are jax arrays: an ordinary backward, where nothing is recorded."""

    def run(self, node: OperatorNode, targets: Any, absent: Any, grads: Sequence[Any]) -> Any:
        _, _, _, _, plan, saved, _ = node.record
        if type(saved) is not tuple:
            saved = node.arrays()
        kernel = plan.kernels.get((targets, absent)) or plan.jitted(targets, absent)
        return kernel(*saved, *grads)

    def total(self, parts: Sequence[jax.Array]) -> jax.Array:
        return sum_in_order(parts, sum_arrays)

    def is_small(self, value: jax.Array) -> bool:
        return value.nbytes <= SMALL_BYTES

    def is_tensor(self, value: Any) -> bool:
        return isinstance(value, Tensor)

    def wrap(self, value: jax.Array) -> Tensor:
        return new_tensor(cell_of(value))

    def unwrap(self, tensor: Any, like: jax.Array | None, where: str) -> Any:
        return check_gradient(tensor, like, where)._cell.array

    def accumulate(self, variable: Tensor, value: jax.Array) -> None:
        batches.check_write(variable._cell, value)
        grad = variable.need_meta().grad
        if are_many():
            value = put(value, place_of(variable._cell.array))
        self.store(variable, value if grad is None else sum_arrays(grad._cell.array, value))

    def store(self, variable: Tensor, total: jax.Array) -> None:
        """Sets `.grad` to a sum that has in it what was there."""
        _note(variable)
        meta = variable.need_meta()
        if meta.grad is None or meta.grad._edge is not None:
            meta.grad = new_tensor(cell_of(total))
        else:
            meta.grad._write(total)

    def retain(self, tensor: Tensor, value: jax.Array) -> None:
        meta = tensor.need_meta()
        before = () if meta.grad is None else (meta.grad._cell.array,)
        meta.grad = new_tensor(cell_of(self.total([*before, value])))


class PendingValues(ArrayValues):
    """Gradients are pending, or arrays: an ordinary backward in deferred mode, whose kernels are
    noted as operators' are."""

    def run(self, node: OperatorNode, targets: Any, absent: Any, grads: Sequence[Any]) -> Any:
        _, _, _, _, plan, saved, _ = node.record
        if type(saved) is PackedValues:
            saved = node.held()
        return note(plan.jitted(targets, absent), *saved, *grads)

    def total(self, parts: Sequence[Any]) -> Any:
        return sum_in_order(parts, _note_sum)

    def is_small(self, value: Any) -> bool:
        return True  # what waits has no memory yet

    def unwrap(self, tensor: Any, like: Any, where: str) -> Any:
        return check_gradient(tensor, like, where)._cell.held

    def accumulate(self, variable: Tensor, value: Any) -> None:
        grad = variable.need_meta().grad
        value = put(value, place_of(variable._cell.held))
        self.store(variable, value if grad is None else _note_sum(grad._cell.held, value))

    def retain(self, tensor: Tensor, value: Any) -> None:
        meta = tensor.need_meta()
        total = value if meta.grad is None else _note_sum(meta.grad._cell.held, value)
        meta.grad = new_tensor(cell_of(total))

    def blame(self, node: Node, error: Exception) -> None:
        if not hasattr(error, PUT_OFF):  # else it is that of another call
            blame(node, error)


def _note_sum(*parts: Any) -> Any:
    return note(sum_arrays, *parts)


class TensorValues(Immediate):
    """Gradients are tensors: `create_graph=True`, where backward is recorded as it runs."""

    def run(self, node: OperatorNode, targets: Any, absent: Any, grads: Sequence[Any]) -> Any:
        return recorded_backward(node.plan, targets, absent, len(grads))(*node.tensors(), *grads)

    def total(self, parts: Sequence[Tensor]) -> Tensor:
        return sum_in_order(parts, add_gradients)

    def is_small(self, value: Tensor) -> bool:
        return value.nbytes <= SMALL_BYTES

    def is_tensor(self, value: Any) -> bool:
        return isinstance(value, Tensor)

    def wrap(self, value: Tensor) -> Tensor:
        return value

    def unwrap(self, tensor: Any, like: Tensor | None, where: str) -> Tensor:
        return check_gradient(tensor, None if like is None else like._cell.held, where)

    def accumulate(self, variable: Tensor, value: Tensor) -> None:
        batches.check_write(variable._cell, value._cell.held)
        _note(variable)
        place = spread_of(variable._cell.held)
        held = value._cell.held
        if place is not None and (isinstance(held, Tracer) or not is_at(held, place)):
            value = spreader(place, place)(value)
        meta = variable.need_meta()
        meta.grad = _alias(value) if meta.grad is None else add_gradients(meta.grad, value)

    def retain(self, tensor: Tensor, value: Tensor) -> None:
        meta = tensor.need_meta()
        meta.grad = _alias(value) if meta.grad is None else add_gradients(meta.grad, value)


def _note(variable: Tensor) -> None:
    """Tells the pure function that runs here, if one does, that `.grad` is about to be set."""
    pure = current_pure()
    if pure is not None:
        pure.note_grad(variable)


def _alias(value: Tensor) -> Tensor:
    """The same value and history as a tensor of its own, so that no two `.grad`s are one tensor."""
    alias = new_tensor(cell_of(value._cell.held), value._edge)
    share_tangent(value, alias)
    return alias


class DualValues(TensorValues):
    """Gradients are tensors that carry tangents, and nothing is recorded."""

    def accumulate(self, variable: Tensor, value: Tensor) -> None:
        grad = variable.need_meta().grad
        if grad is None or grad._edge is not None:
            super().accumulate(variable, value)
            return
        total = add_gradients(grad, value)
        grad._write(total._cell.array)
        share_tangent(total, grad)


ARRAYS, TENSORS, DUALS = ArrayValues(), TensorValues(), DualValues()
PENDING = PendingValues()


def values_of(*, create_graph: bool) -> Values:
    """How a backward handles gradients."""
    if create_graph:
        return TENSORS
    if is_deferring():
        return PENDING
    return DUALS if are_carried() else ARRAYS


def current_values() -> Values:
    """How a node called by hand handles gradients: recorded if grad mode is on."""
    return values_of(create_graph=modes.is_recording())


Node.current_values = staticmethod(current_values)


def check_gradient(tensor: Any, like: jax.Array | None, where: str) -> Tensor:
    """A hook's answer, moved to the device of `like`; raises where it is no fitting tensor."""
    if not isinstance(tensor, Tensor):
        raise TypeError(
            f"expected a Tensor, but hook returned '{type(tensor).__name__}' (in hook '{where}'). "
            "Return None to leave the gradient as it is."
        )
    if like is None:
        return tensor
    array = tensor._cell.held
    if array.shape != like.shape:
        raise RuntimeError(
            f"hook '{where}' has changed the size of value: got shape {list(array.shape)}, "
            f"expected {list(like.shape)}. Return a gradient of the tensor's own shape."
        )
    if array.dtype != like.dtype:
        raise RuntimeError(
            f"hook '{where}' has changed the type of value (was {dtypes.of(like.dtype)} got "
            f"{dtypes.of(array.dtype)}). Convert what it returns by .to()."
        )
    moved = put(array, place_of(like))
    return tensor if moved is array else new_tensor(cell_of(moved))


@functools.lru_cache(maxsize=1024)
def spreader(place: NamedSharding, source: Any) -> Callable[..., Tensor]:
    """The operator that has a tensor spread over devices like this, and its gradient like
    `source`."""
    constrain = jax.lax.with_sharding_constraint
    spec = OperatorSpec(
        "constrain",
        lambda self: constrain(self, place),
        inputs=["self"],
        rules={"self": lambda grad: constrain(grad, source)},
        node_name="ToCopyBackward0",
    )
    return define_dispatcher(spec)


def recorded_backward(
    plan: BackwardPlan, targets: tuple[Target, ...], absent: Any, gradients: int
) -> Callable[..., Any]:
    """A plan's backward kernel as an operator of its own, so that it records a node when it
    runs."""
    try:
        return plan.operators[targets, absent]
    except KeyError:
        pass
    places = [i for i, target in enumerate(targets) if target is not None]

    def needed_only(function: Callable[..., Any]) -> Callable[..., tuple[Any, ...]]:
        def call(*values: Any) -> tuple[Any, ...]:
            results = function(*values)
            return tuple([results[i] for i in places])

        return call

    def noted(*values: Any) -> list[Any]:
        results = note(plan.jitted(targets, absent), *values)
        return [results[i] for i in places]

    jitted = needed_only(plan.jitted(targets, absent))  # compiled once for both backwards
    jitted.noted = noted  # type: ignore[attr-defined]
    forward = plan.kernel.spec
    spec = OperatorSpec(
        forward.node_name,
        needed_only(plan.function(targets, absent)),
        inputs=[f"value{i}" for i in range(len(plan.sources) + gradients)],
        outputs=[f"grad_{forward.differentiable[i]}" for i in places],
        jitted=jitted,
    )
    run = write_dispatcher(spec, ", ".join(spec.inputs), optional=spec.inputs)

    def backward(*values: Any) -> list[Any]:
        results = iter(run(*values))
        return [None if target is None else next(results) for target in targets]

    plan.operators[targets, absent] = backward
    return backward


def _variadic_sum(*parts: Any) -> Any:
    return functools.reduce(operator.add, parts)


@functools.cache
def _adder(count: int) -> Callable[..., Tensor]:
    names = [f"part{i}" for i in range(count)]
    rules = dict.fromkeys(names, same)
    spec = OperatorSpec("add", _variadic_sum, inputs=names, rules=rules)
    return write_dispatcher(spec, ", ".join(names))


def add_gradients(*parts: Tensor) -> Tensor:
    """The recorded sum of gradients that met."""
    return _adder(len(parts))(*parts)
