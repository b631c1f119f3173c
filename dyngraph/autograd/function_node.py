"""BackwardCFunction: the node of a user's Function, which is also the `ctx` that its methods get.

Invariant: the node holds no tensor that the Function returned (an output is saved as its array), so
node and tensors form no cycle, unless the user's own attributes make one.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp

from dyngraph import devices, dtypes
from dyngraph.autograd.function_batch import (
    Lifted,
    collect_saved,
    lift_saved,
    run_lifted,
    saved_of_example,
)
from dyngraph.autograd.function_trace import what_it_depends_on, with_saved
from dyngraph.errors import (
    FunctionError,
    GraphFreedError,
    InferenceTensorError,
    SavedTensorModifiedError,
)
from dyngraph.graph import anomaly, engine, mutation, packing
from dyngraph.graph.node import Edge, InputMetadata, Node, PythonCall, Values
from dyngraph.graph.packing import Hooks, Packed, pack
from dyngraph.graph.saved import SavedTensor
from dyngraph.operator_node import unpacked
from dyngraph.placement import place_of, put
from dyngraph.storage import Storage, cell_of
from dyngraph.tensor import Tensor, new_tensor, tensor_at


class FunctionCtx:
    """What the methods of a `Function` may do with their `ctx`, beside setting attributes of it."""

    to_save: tuple[Any, ...] = ()
    saved_for_forward: tuple[Any, ...] | None = None
    dirty_tensors: tuple[Any, ...] = ()
    non_differentiable: tuple[Any, ...] = ()
    materialize_grads: bool = True
    _materialize_non_diff_grads: bool = True

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Saves inputs, outputs or other tensors: `ctx.saved_tensors` has them in backward.

        They are saved as an operator's are: their version is checked, saved-tensor hooks apply,
        they are freed with the graph. A tensor that is neither an input nor an output has no
        history in backward, so second derivatives through it are lost.
        """
        self.to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Saves tensors for `jvp`, where they are `ctx.saved_tensors`."""
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, Tensor):
                raise AssertionError(
                    "save_for_forward expects all arguments to be tensors, got "
                    f"{type(tensor).__name__}; you should save non-tensors as attributes on ctx."
                )
        self.saved_for_forward = tensors

    def mark_dirty(self, *args: Tensor) -> None:
        """Names inputs that `forward` wrote to in place; it must return each of them."""
        self.dirty_tensors = args

    def mark_non_differentiable(self, *args: Tensor) -> None:
        """Names outputs that have no gradient; backward gets zeros for them."""
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Whether gradients that are missing come to `backward` and `jvp` as zeros, which they do
        unless this is off, or as None."""
        self.materialize_grads = value

    def mark_shared_storage(self, *pairs: Any) -> None:
        """Does nothing: tensors that share memory know it."""
        warnings.warn(
            "`mark_shared_storage` is deprecated. Tensors with shared storages are automatically "
            "tracked. Leave out the call.",
            FutureWarning,
            stacklevel=2,
        )


class SavedValue(NamedTuple):
    """What the node keeps of one saved tensor: its array, and where its gradient goes.

    `owner` and `version` tell whether it was written to since. An output has the number
    `output_nr` of its place at the node itself, and no edge. `origin` is the tensor, weakly;
    `tangent` what it carries in forward mode.
    """

    value: Any
    owner: Storage | None
    version: int | None
    edge: Edge | None
    output_nr: int | None
    origin: Any
    tangent: Any


class Output(NamedTuple):
    """What is known of one output that is a tensor."""

    shape: tuple[int, ...]
    dtype: Any
    place: Any


class BackwardCFunction(FunctionCtx, Node):
    """The node of one call of a Function; each has a class `<name>Backward` of its own."""

    _forward_cls: ClassVar[Any]

    needs_input_grad: tuple[bool, ...]
    places: tuple[int | None, ...]
    """For each argument of `forward` the place of its edge; None for what is no tensor."""
    returned: tuple[Output | None, ...]
    """For each output what it was; None for what is no tensor."""
    saved: tuple[SavedValue | None, ...] | None
    lifted: Lifted | None = None
    """Set where the call was in a mapped function, and the node is that of all examples."""
    collect, lift = collect_saved, lift_saved

    def __init__(self, args: Sequence[Any], edges: tuple[Edge, ...], number: int) -> None:
        count = iter(range(len(args)))
        self.places = tuple([next(count) if isinstance(a, Tensor) else None for a in args])
        self.record = (edges, number, (), None)
        self.returned = self.saved = ()

    # --- saved tensors ------------------------------------------------------------------------

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """What was saved: for forward in `jvp`, for backward elsewhere.

        Raises RuntimeError where one was written to in place since, and once an earlier backward
        has freed them.
        """
        if self.saved_for_forward is not None:
            return self.saved_for_forward
        if self.lifted is not None:
            shown = saved_of_example(self)
            if shown is not None:
                return shown
        if self.saved is None:
            if self._forward_cls.clear_saved_tensors_on_access:
                raise FunctionError(
                    f"saved_tensors can only be accessed once where {self._forward_cls.__name__} "
                    "sets clear_saved_tensors_on_access=True. Read them once, into names, or leave "
                    "that out."
                )
            raise GraphFreedError(self.name())
        tensors = tuple([self.show(i) for i in range(len(self.saved))])
        if self._forward_cls.clear_saved_tensors_on_access:
            self.saved = None
        return tensors

    @property
    def saved_variables(self) -> tuple[Tensor | None, ...]:
        """The old name of `saved_tensors`."""
        warnings.warn(
            "'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2
        )
        return self.saved_tensors

    @property
    def _raw_saved_tensors(self) -> tuple[SavedTensor, ...]:
        if self.saved is None:
            raise GraphFreedError(self.name())
        return tuple([SavedTensor(self, i) for i in range(len(self.saved))])

    def save(self, outputs: Sequence[Any]) -> None:
        """Saves what `save_for_backward` named, now that the outputs have their place here."""
        hooks = packing.hooks_in_force()
        self.saved = ()
        for position, tensor in enumerate(self.to_save):
            if tensor is not None and not isinstance(tensor, Tensor):
                raise TypeError(
                    "save_for_backward can only save variables, but argument "
                    f"{position} is of type {type(tensor).__name__}. Set it as an attribute of ctx."
                )
            self.saved += (None if tensor is None else self._saved_value(tensor, outputs),)
            if hooks is not None and tensor is not None:
                self.pack(position, tensor, hooks)
        self.to_save = ()

    def forget_marks(self) -> None:
        """Lets go of the tensors that forward told of, of which outputs would form a cycle."""
        self.to_save = self.dirty_tensors = self.non_differentiable = ()
        self.saved_for_forward = None

    def _saved_value(self, tensor: Tensor, outputs: Sequence[Any]) -> SavedValue:
        cell, edge = tensor._cell, None if tensor._edge is None else tensor.gradient_edge()
        if cell.version is None:
            raise InferenceTensorError(self.name())
        number = next((i for i, o in enumerate(outputs) if o is tensor), None)
        if edge is not None and edge[0] is self:
            number = edge[1]
        tangent = None if tensor._meta is None else tensor._meta.tangent
        origin = None
        if number is not None and edge is not None:
            edge = None
        else:
            number, origin = None, weakref.ref(tensor)
        return SavedValue(cell.held, cell, cell.version, edge, number, origin, tangent)

    def show(self, position: int) -> Tensor | None:
        """A saved tensor, with its history; a leaf, or one that is as it was, is itself."""
        if self.saved is None:
            raise GraphFreedError(self.name())
        entry = self.saved[position]
        if entry is None:
            return None
        value, owner, version, edge, number, origin, tangent = entry
        if owner is not None and owner.version != version and not mutation.is_allowed(self):
            raise SavedTensorModifiedError(
                self.name(),
                f"saved_tensors[{position}]",
                f"{dtypes.of(value.dtype).name}{list(value.shape)}",
                version or 0,
                owner.version or 0,
                getattr(owner, "written_at", None),
                anomaly.origin(self),
            )
        if type(value) is Packed:
            tensor = unpacked(value)
            if edge is number is tangent is None and not tensor.requires_grad:
                return tensor
            cell = tensor._cell if tensor._view is None else cell_of(tensor._cell.held)
        else:
            tensor = origin() if origin is not None else None
            if tensor is not None and tensor._cell is owner and _is_at(tensor, edge):
                return tensor
            cell = owner if owner is not None and owner.holds(value) else cell_of(value)
        tensor = tensor_at(cell, edge) if number is None else new_tensor(cell, (self, number))
        if tangent is not None:
            tensor.need_meta().tangent = tangent
        return tensor

    def pack(self, position: int, tensor: Tensor, hooks: Hooks) -> None:
        """Keeps what a pack hook makes of a saved tensor, whose version is not checked from now
        on."""
        assert self.saved is not None
        entry = self.saved[position]
        assert entry is not None
        entry = entry._replace(value=pack(tensor, hooks), owner=None, version=None, origin=None)
        self.saved = (*self.saved[:position], entry, *self.saved[position + 1 :])

    def release(self) -> None:
        self.saved = None

    def maybe_clear_saved_tensors(self) -> None:
        """Frees the saved tensors, unless the graph is kept by the backward that is running."""
        task = engine.running_task()
        if task is None or not task.keep_graph:
            self.saved = None

    # --- backward -----------------------------------------------------------------------------

    def apply(self, grads: Sequence[Any], values: Values) -> Sequence[Any]:
        cls, what = self._forward_cls, "a backward in Python"
        if cls.traceable and self.lifted is None:
            call = PythonCall(cls, what, self, self._apply, *what_it_depends_on(self))
        else:
            call = PythonCall(None, what, self, self._apply)
        return values.call(call, list(grads))

    def _apply(self, grads: Sequence[Any], values: Values, saved: Sequence[Any] = ()) -> list[Any]:
        """What the user's backward makes of gradients; `saved` stand in for what was saved."""
        if saved:
            return with_saved(self, saved)._apply(grads, values)
        given = [
            self._zeros(output) if grad is None else values.wrap(grad)
            for grad, output in zip(grads, self.returned, strict=True)
        ]
        if self.lifted is None:
            checked = self._run_backward(given)
        else:
            checked = run_lifted(self, self._run_backward, given)
        return [None if g is None else values.unwrap(g, None, self.name()) for g in checked]

    def _run_backward(self, given: list[Tensor | None]) -> list[Tensor | None]:
        """What the user's backward makes of gradients; of one example, where the node is of
        many."""
        cls = self._forward_cls
        backward = _backward_of(cls)
        results = backward(self, given) if cls.boxed_grads_call else backward(self, *given)
        given.clear()
        return self._checked(results if isinstance(results, tuple) else (results,))

    def _zeros(self, output: Output | None) -> Tensor | None:
        if output is None or not self.materialize_grads:
            return None
        zeros = jnp.zeros(output.shape, output.dtype)
        return new_tensor(cell_of(put(zeros, output.place)))

    def _checked(self, results: tuple[Any, ...]) -> list[Tensor | None]:
        """What backward returned, for each edge, in shape and dtype of what it is for."""
        places, count = self.places, len(self.places)
        if len(results) > count and all(r is None for r in results[count:]):
            results = results[:count]
        if len(results) != count:
            raise FunctionError(
                f"function {self.name()} returned an incorrect number of gradients (expected "
                f"{count}, got {len(results)}). Return one for each argument of forward, None for "
                "those that need none."
            )
        found: list[Tensor | None] = []
        for position, (place, result) in enumerate(zip(places, results, strict=True)):
            if result is not None and not isinstance(result, Tensor):
                raise FunctionError(
                    f"function {self.name()}: expected Variable or None (got "
                    f"{type(result).__name__}) as gradient {position}. Return Tensors, in a tuple "
                    "where there are several."
                )
            if place is None:
                if result is not None:
                    raise FunctionError(
                        f"function {self.name()} returned a gradient different than None at "
                        f"position {position + 1}, but the corresponding forward input was not a "
                        "Variable. Return None there."
                    )
                continue
            node, number = self.edges[place]
            if result is None or node is None:
                found.append(None)
            else:
                shape, dtype = node.outputs[number]
                shape = shape if self.lifted is None else shape[1:]
                found.append(self._fit(position, result, shape, dtype))
        return found

    def _fit(self, position: int, grad: Tensor, shape: tuple[int, ...], dtype: Any) -> Tensor:
        """A gradient in the shape and dtype of the input that it is for."""
        if grad.shape != shape:
            try:
                fits = jnp.broadcast_shapes(grad.shape, shape) == grad.shape
            except ValueError:
                fits = False
            if not fits:
                raise FunctionError(
                    f"Function {self.name()} returned an invalid gradient at index {position} - "
                    f"got {list(grad.shape)} but expected shape compatible with {list(shape)}"
                )
            grad = grad.sum_to_size(shape)
        wanted = dtypes.of(dtype)
        if grad.dtype != wanted:
            if grad.is_complex() != wanted.is_complex and not grad.is_floating_point():
                raise FunctionError(
                    f"Function {self.name()} returned an invalid gradient at index {position}: got "
                    f"{grad.dtype}, but the input is {wanted}. Return its real part, or a complex "
                    "one for a complex input."
                )
            grad = grad.to(wanted)
        return grad

    def output_metadata(self) -> tuple[InputMetadata, ...]:
        return tuple(
            InputMetadata((), None)
            if o is None
            else InputMetadata(o.shape, dtypes.of(o.dtype), _device_of(o.place))
            for o in self.returned
        )


def describe(tensor: Tensor) -> Output:
    """What a Function's node keeps of an output."""
    array = tensor._cell.held
    return Output(array.shape, array.dtype, place_of(array))


def _device_of(place: Any) -> devices.device | None:
    if place is None:
        return None
    return devices.device(min(place.device_set, key=lambda d: d.id))


def _is_at(tensor: Tensor, edge: Edge | None) -> bool:
    current = None if tensor._edge is None else tensor.gradient_edge()
    return current == edge


def _backward_of(cls: Any) -> Callable[..., Any]:
    """The user's `backward`, or `vjp`."""
    own, default = (cls.backward, cls.vjp), cls._default_backward
    if all(f is not default for f in own):
        raise FunctionError(
            "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You "
            f"should only implement one of them: {cls.__name__} has both."
        )
    return own[0] if own[0] is not default else own[1]
