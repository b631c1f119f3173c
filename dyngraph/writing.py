"""In-place writes: the value of an operator's result, given to the tensor that it was made from.

# Note [Writing is computing and putting back]
An in-place operator runs out of place on a snapshot of the tensor; `assign` then gives the tensor
the result's value and history. A view's value is written through its path into the root Storage,
and the write is recorded as one operator, `copy_slices`, whose node becomes the base's grad_fn. The
view's own place in the graph, and those of all other views of that base, are looked up again when
they are next asked for.
"""

from __future__ import annotations

import copy
import functools
import weakref
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from dyngraph import batches, modes
from dyngraph.dispatch import define_dispatcher
from dyngraph.errors import InPlaceError
from dyngraph.graph.node import Edge
from dyngraph.kernels import OperatorSpec, same
from dyngraph.operator_node import OperatorNode
from dyngraph.pure import current_pure
from dyngraph.storage import Storage
from dyngraph.tangents import are_carried, carries_more, share_tangent, tangents_of
from dyngraph.tensor import LEAF, Tensor, new_tensor
from dyngraph.viewing import fit_value
from dyngraph.views import (
    RECORDED,
    Step,
    View,
    connect,
    copy_slices,
    memory_of,
    new_view,
    run_through,
    view_of,
)


def snapshot(tensor: Tensor) -> Tensor:
    """The tensor as it is now: what an in-place operator computes with.

    Its Storage is its own, so a node that saves it does not take the write that follows for a
    change of what it saved.
    """
    cell, edge = tensor._cell, tensor._edge
    if edge is not None and tensor._view is not None:
        edge = _without_hooks(edge)
    result = new_tensor(Storage(cell.array, cell.version), edge)
    if edge is LEAF:
        result._meta = tensor.need_meta()
    if tensor._meta is not None:
        share_tangent(tensor, result)
    return result


def _without_hooks(edge: Edge) -> Edge:
    """The place of a view in the graph, without hooks: they belong to the value before a write,
    whose gradient is then the base's."""
    node, number = edge
    if node is None or node.extra is None or not (node.extra.tensor_hooks or node.extra.retained):
        return edge
    duplicate = copy.copy(node)
    duplicate.extra = None
    batches.note_copy(node, duplicate)
    return duplicate, number


def assign(tensor: Tensor, result: Tensor, where: str, *, overlap: bool = False) -> Tensor:
    """Gives `tensor` the value and the history of `result`, as the in-place form of `where`.

    Raises RuntimeError where PyTorch does: for leaves that require grad and views of them, for
    views that share memory with themselves or were made together or without recording, for
    inference tensors outside inference mode, and for results of another shape or kind of dtype.
    `overlap` allows a tensor that shares memory with itself, because all elements get one value.
    """
    cell, view = tensor._cell, tensor._view
    array, value = cell.array, result._cell.array
    if value.shape != array.shape:
        raise InPlaceError.shape(where, array.shape, value.shape)
    if value.dtype != array.dtype:
        result = _cast_like(tensor, result)
    elif (
        view is None
        and tensor._edge is tensor._meta is result._edge is result._meta is None
        and modes.get_flags() <= modes.GRAD
        and cell.version is not None
    ):  # nothing is to be known of it but its value
        cell.write(value)
        return tensor
    if (result._edge is None and tensor._edge is not None and modes.is_recording()) or (
        tensor._meta is not None and carries_more(tensor, result)
    ):  # the result does not depend on what was there, whose gradient is zero then
        result = overwritten(snapshot(tensor), result)
    recording = _check_write(tensor, view, result, overlap=overlap)
    value = result._cell.array
    if view is None:
        cell.write(value)
    else:
        _write_through(view, result, recording=recording)
        cell.array = value
    if recording and result._edge is not None:
        if view is None or view.base is None:
            _take_history(tensor, result)
        _move_guards(result, tensor)
    if tensor._meta is not None or result._meta is not None:
        share_tangent(result, tensor)
    return tensor


def run_in_place(function: Callable[..., Any], input: Tensor, *args: Any) -> Tensor:
    """What `function` gives, written to its first argument."""
    return assign(input, function(snapshot(input), *args), f"{function.__name__}_")


overwritten = define_dispatcher(
    OperatorSpec(
        "copy",
        lambda self, src: fit_value(src, self),
        inputs=["self", "src"],
        rules={"self": lambda grad: jnp.zeros_like(grad), "src": same},
        node_name="CopyBackwards",
    )
)
"""The second tensor in the shape and dtype of the first, whose gradient is zero."""


@functools.cache
def _caster(dtype: Any) -> Callable[..., Any]:
    spec = OperatorSpec(
        "cast_in_place",
        lambda self: (self.real if jnp.iscomplexobj(self) else self).astype(dtype),
        inputs=["self"],
        rules={"self": same},
        node_name="ToCopyBackward0",
    )
    return define_dispatcher(spec)


def _cast_like(tensor: Tensor, result: Tensor) -> Tensor:
    """The result in the tensor's dtype; RuntimeError for one of a wider kind."""
    _check_dtype(tensor, result)
    return _caster(tensor.dtype.dtype)(result)


def _check_dtype(tensor: Tensor, result: Tensor) -> None:
    own, other = tensor.dtype, result.dtype
    if _KINDS.index(_kind(other)) > _KINDS.index(_kind(own)):
        raise InPlaceError.dtype(own.name, other.name)


_KINDS = ("bool", "integer", "floating point", "complex")


def _kind(dtype: Any) -> str:
    if dtype.is_complex or dtype.is_floating_point:
        return "complex" if dtype.is_complex else "floating point"
    return "bool" if dtype.name == "bool" else "integer"


def check_out(tensor: Tensor, result: Tensor) -> None:
    """Raises where `tensor` can't take the values of `result`, whatever its shape is."""
    _check_write(tensor, tensor._view, result)
    _check_dtype(tensor, result)
    if tensor.device != result.device:
        raise RuntimeError(
            "Expected all tensors to be on the same device, but found the result on "
            f"{result.device} and out on {tensor.device}. Move them by .to()."
        )


def assign_part(tensor: Tensor, step: Step, value: Tensor) -> None:
    """Writes `value` over what `step` shows of a tensor, which is not computed for it."""
    view = view_of(tensor, step, modes.get_flags() & ~modes.OBSERVED)
    assert view is not None, "a part of a tensor can be written in place"
    recording = _check_write(tensor, view, value)
    _write_through(view, value, recording=recording)


def _check_write(
    tensor: Tensor, view: View | None, result: Tensor | None, *, overlap: bool = False
) -> bool:
    """Raises where it is refused to write `result` to `tensor`, or to the `view` of it; returns
    whether operators are recorded."""
    flags = modes.get_flags()
    if result is not None and flags & modes.MAPPED:
        root = tensor._cell if view is None else view.root
        batches.check_write(root, result._cell.array)
    if tensor._cell.version is None and not flags & modes.INFERENCE:
        raise InPlaceError.inference()
    if not overlap and view is not None and view.may_overlap() and view.layout().overlaps:
        raise InPlaceError.overlap()
    if flags & (modes.GRAD | modes.INFERENCE) != modes.GRAD:
        return False
    edge = tensor._edge
    base = None if view is None else view.base
    if (
        edge is None
        and (base is None or base._edge is None)
        and (result is None or result._edge is None)
    ):
        return True
    if view is not None and base is not None:
        if view.made:
            place = None if edge is None or edge[0] is None else _output(*edge)
            raise InPlaceError.view(view.made, place, indirect=False)
        if edge is not None and base.is_leaf:
            raise InPlaceError.leaf(view=not view.hidden)
    elif edge is LEAF:
        raise InPlaceError.leaf(view=False)
    return True


def _output(node: Any, number: int) -> str:
    return f"Output {number} of {node.name()}"


def _write_through(view: View, value: Tensor, *, recording: bool) -> None:
    """Writes into the root, and records it at the base."""
    base, written = view.base, None
    if base is not None and (
        (recording and (base._edge is not None or value._edge is not None))
        or (are_carried() and (tangents_of(base) or tangents_of(value)))
    ):
        written = run_through(copy_slices, view.steps, snapshot(base), value)
    if written is not None and view.steps is view.path:
        view.root.write(written._cell.array, view.family)
    else:
        view.write(value._cell.array)
    if base is not None and written is not None:
        if recording:
            _take_history(base, written)
        share_tangent(written, base)


def rebase(tensor: Tensor, edge: Edge) -> None:
    """Gives a tensor that was written to, without being recorded, the place in the graph that the
    write has; of a view, its base gets it.

    Raises RuntimeError where a recorded write would be refused.
    """
    written = new_tensor(Storage(tensor._cell.array), edge)
    view = tensor._view
    _check_write(tensor, view, written)
    if view is None or view.base is None:
        _take_history(tensor, written)
        return
    base = view.base
    _take_history(base, run_through(copy_slices, view.steps, snapshot(base), written))
    for other in view.root.lookers():
        other._forget_edge()


def _take_history(tensor: Tensor, result: Tensor) -> None:
    """Makes the node behind `result` the tensor's grad_fn; what it retained is retained there."""
    if result._edge is None:
        return
    pure = current_pure()
    if pure is not None:
        pure.note_history(tensor)
    if tensor.retains_grad:
        tensor._stop_retaining()
    tensor._edge = result._edge
    if tensor.retains_grad:
        tensor._retain()


def _move_guards(result: Tensor, tensor: Tensor) -> None:
    """Makes a node that has saved its result watch the tensor that the result was written to."""
    node = result._edge[0] if result._edge is not None else None
    if isinstance(node, OperatorNode) and result._cell in node.guards:
        pairs = zip(node.guards[::2], node.guards[1::2], strict=True)
        node.guards = tuple(
            part
            for owner, version in pairs
            for part in (
                (tensor._cell, tensor._cell.version) if owner is result._cell else (owner, version)
            )
        )


# --- the same tensor, looking elsewhere -------------------------------------------------------


def turn(tensor: Tensor, shown: Tensor) -> Tensor:
    """Makes `tensor` look where `shown`, a view of it, does: `t_()` and its like."""
    view, own = shown._view, tensor._view
    recording = _check_write(tensor, own, None)
    if own is None or own.base is None:
        base = _hand_over(tensor)  # which both are views of from now on
        view.base, view.hidden, view.made = base, True, RECORDED
    else:
        view.hidden, view.made = own.hidden, own.made
    tensor._cell, tensor._view = shown._cell, view
    tensor._cell.looking = weakref.ref(tensor)
    if recording:
        _take_history(tensor, shown)
    elif not (view.hidden or view.made):
        tensor._forget_edge()
    share_tangent(shown, tensor)
    view.root.count_write(view.family)
    return tensor


def _hand_over(tensor: Tensor) -> Tensor:
    """Another tensor with the memory, the place in the graph, and the views of `tensor`."""
    heir = new_tensor(tensor._cell, None if tensor._edge is LEAF else tensor._edge)
    heir._view = tensor._view
    if heir._view is not None:
        heir._cell.looking = weakref.ref(heir)
    root, _ = memory_of(heir)
    for other in root.lookers():
        if other._view.base is tensor:
            other._view.base = heir
    return heir


def look_at(tensor: Tensor, other: Tensor) -> None:
    """Makes `tensor` share the memory of `other` from now on, counting writes of its own."""
    pure = current_pure()
    if pure is not None:
        pure.note_memory(tensor)
    root, path = memory_of(other)
    version = tensor._cell.version
    tensor._cell = Storage(other._cell.array)
    tensor._view = new_view(None, (), root, path, object())
    connect(tensor, version)
