"""Views and in-place writes: what shares memory in PyTorch shares it here, on immutable arrays.

# Note [Writing is computing and putting back]
An in-place operator runs out of place on a snapshot of the tensor; `assign` then gives the tensor
the result's value and history. A view's value is written through its path into the root Storage,
and the write is recorded as one operator, `copy_slices`, whose node becomes the base's grad_fn. The
view's own place in the graph, and those of all other views of that base, are looked up again when
they are next asked for: as what the operator `view_again` shows of the base.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dyngraph import modes
from dyngraph.dispatch import define_dispatcher
from dyngraph.errors import InPlaceError
from dyngraph.kernels import Kernel, OperatorSpec, is_differentiable, same
from dyngraph.operator_node import OperatorNode
from dyngraph.storage import Storage
from dyngraph.tangents import are_carried, share_tangent, tangent_of
from dyngraph.tensor import LEAF, Tensor, new_tensor
from dyngraph.viewing import Layout, contiguous_stride, fit_value, look, write_through

RECORDED = ""
"""How most views are made; other ways are why a write to the view is refused."""
UNRECORDED = (
    "A view was created in no_grad mode and is being modified inplace with grad mode enabled: "
    "whether the write is to be recorded is ambiguous. Move both the view and the write into the "
    "no_grad block, or both outside."
)
INFERENCE = (
    "A view was created in inference mode and is being modified inplace in normal mode. Move both "
    "the view and the write into the inference_mode block, or both outside."
)
SEVERAL = (
    "Output {number} of {node} is a view and is being modified inplace. This view is the output of "
    "a function that returns multiple views, which does not allow it."
)
Step = tuple[Kernel, tuple[Any, ...]]


class View:
    """Where a tensor looks: what it has in place of a Storage of its own.

    `path` are the steps from `root`, the Storage, to the tensor; `steps` those from `base`, the
    tensor that it is a view of as far as autograd knows; None for an alias such as `detach()` makes
    of a view. `family` says whose writes it counts as its own.
    """

    __slots__ = ("_layout", "base", "family", "hidden", "made", "path", "root", "steps")

    def __init__(
        self,
        base: Tensor | None,
        steps: tuple[Step, ...],
        root: Storage,
        path: tuple[Step, ...],
        family: object = None,
        made: str = RECORDED,
    ) -> None:
        self.base = base
        self.steps = steps
        self.root = root
        self.path = path
        self.family = family
        self.made = made
        self.hidden = False
        self._layout: Layout | None = None

    def layout(self) -> Layout:
        """Where the elements are in the root's memory."""
        if self._layout is None:
            shape = self.root.array.shape
            layout = Layout(shape, contiguous_stride(shape), 0)
            for kernel, others in self.path:
                layout = layout.after(kernel, others)
            self._layout = layout
        return self._layout

    def refill(self, tensor: Tensor) -> jax.Array:
        """The array of the view, computed from the root after a write."""
        base = self.base
        if base is not None and tensor._edge_is_lost() and _is_followed(base):
            self.update(tensor)
            return tensor._cell.array
        kernel, places = _through(_view_again, self.path)
        array = tensor._cell.array = kernel.forward(self.root.array, *places)
        return array

    def update(self, tensor: Tensor) -> None:
        """Puts the tensor behind its base again in the graph, as a view of what that is now."""
        base = self.base
        if base is None or not _is_followed(base):
            tensor._edge = None
            return
        before = modes.get_flags()
        modes.set_flags(before & ~modes.INFERENCE | modes.GRAD)
        try:
            shown = _run_through(_view_again, self.steps, base)
        finally:
            modes.set_flags(before)
        if tensor._cell.is_empty():
            tensor._cell.array = shown._cell.array
        tensor._edge = shown._edge if is_differentiable(shown._cell.array.dtype) else None
        share_tangent(shown, tensor)
        if tensor.retains_grad:
            tensor._retain()


def _is_followed(tensor: Tensor) -> bool:
    """Whether something is to be known of a view of it, beside its value."""
    return tensor._edge is not None or tangent_of(tensor) is not None


def as_view(
    parent: Tensor, result: Tensor, kernel: Kernel, others: tuple[Any, ...], flags: int
) -> Tensor:
    """Makes `result`, which `kernel` has shown of `parent`, share its memory."""
    above = parent._view
    layout = None
    if above is not None and kernel.spec.viewing.reshapes:  # type: ignore[union-attr]
        layout = above.layout().after(kernel, others)
        if layout is None:
            return result
    made = RECORDED
    if flags != modes.GRAD:
        made = INFERENCE if flags & modes.INFERENCE else UNRECORDED
    step = (kernel, others)
    if above is None:
        steps = path = (step,)
        base, root, family = parent, parent._cell, None
    else:
        root, family = above.root, above.family
        path = (*above.path, step)
        if above.base is None:
            base, steps = parent, (step,)
        else:
            base, made = above.base, made or above.made
            steps = path if above.steps is above.path else (*above.steps, step)
    view = result._view = View(base, steps, root, path, family, made)
    view._layout = layout
    _connect(result, parent._cell.version)
    return result


def _connect(tensor: Tensor, version: int | None) -> None:
    """Makes the cell of a view known to its root and to its tensor."""
    cell, view = tensor._cell, tensor._view
    cell.version = version
    cell.looking = weakref.ref(tensor)
    view.root.add_view(cell, view.family)


def as_views(parent: Tensor, results: Sequence[Tensor], kernel: Kernel, flags: int) -> Any:
    """Makes the parts that `kernel` has shown of `parent` share its memory."""
    shape = parent._cell.array.shape
    pieces = kernel.spec.viewing.pieces(shape, **kernel.statics)  # type: ignore[union-attr]
    for result, (operator, others, statics) in zip(results, pieces, strict=True):
        as_view(parent, result, operator.table.find(statics), others, flags)
        if flags == modes.GRAD:
            result._view.made = SEVERAL
    return results


def alias(tensor: Tensor, family: object = None, version: int | None = None) -> Tensor:
    """A tensor without history over the same memory; with a `family`, it counts its own writes."""
    view, cell = tensor._view, tensor._cell
    if view is None and family is None:
        return new_tensor(cell)
    result = new_tensor(Storage(cell.array))
    root, path = (cell, ()) if view is None else (view.root, view.path)
    if family is None:
        family, version = view.family, cell.version
    result._view = View(None, (), root, path, family)
    _connect(result, version)
    return result


def whole_memory(tensor: Tensor) -> Tensor:
    """The tensor that shows all of the memory that `tensor` looks into."""
    view = tensor._view
    if view is None:
        return tensor
    base = view.base
    return base if base is not None and base._view is None else new_tensor(view.root)


def lazy_view(parent: Tensor, step: Step) -> Tensor:
    """What `step` shows of `parent`, not computed, to be written over."""
    result = new_tensor(object.__new__(Storage))
    return as_view(parent, result, *step, modes.get_flags() & ~modes.FORWARD)


# --- operators through a path -----------------------------------------------------------------


@functools.cache
def _view_again(count: int) -> Callable[..., Any]:
    """What the steps show, with `count` places to look at: the operator behind a view that was
    written to."""
    names = [f"place{i}" for i in range(count)]
    spec = OperatorSpec(
        "view_again",
        lambda self, *places, steps: look(self, steps, places),
        inputs=["self", *names],
        statics=["steps"],
        rules=dict.fromkeys(names),
        node_name="AsStridedBackward0",
    )
    return define_dispatcher(spec)


@functools.cache
def _copy_slices(count: int) -> Callable[..., Any]:
    """A value written where the steps look: the operator behind a base whose view was written
    to."""
    names = [f"place{i}" for i in range(count)]
    spec = OperatorSpec(
        "copy_slices",
        lambda self, value, *places, steps: write_through(self, value, steps, places),
        inputs=["self", "value", *names],
        statics=["steps"],
        rules=dict.fromkeys(names),
        node_name="CopySlices",
    )
    return define_dispatcher(spec)


def _split(steps: Sequence[Step]) -> tuple[tuple[Kernel, ...], list[Any]]:
    return tuple([k for k, _ in steps]), [place for _, others in steps for place in others]


def _through(family: Callable[[int], Any], path: Sequence[Step]) -> tuple[Kernel, list[Any]]:
    """The kernel of an operator through a path, and the places that it looks at."""
    kernels, places = _split(path)
    return family(len(places)).table.find((kernels,)), places


def _run_through(family: Callable[[int], Any], path: Sequence[Step], *tensors: Any) -> Tensor:
    kernels, places = _split(path)
    return family(len(places))(*tensors, *places, steps=kernels)


# --- in place ---------------------------------------------------------------------------------


def snapshot(tensor: Tensor) -> Tensor:
    """The tensor as it is now: what an in-place operator computes with.

    Its Storage is its own, so a node that saves it does not take the write that follows for a
    change of what it saved.
    """
    result = new_tensor(Storage(tensor._cell.array, tensor._cell.version), tensor._edge)
    if tensor._edge is LEAF:
        result._meta = tensor.need_meta()
    share_tangent(tensor, result)
    return result


def assign(tensor: Tensor, result: Tensor, where: str) -> Tensor:
    """Gives `tensor` the value and the history of `result`, as the in-place form of `where`.

    Raises RuntimeError where PyTorch does: for leaves that require grad and views of them, for
    views that share memory with themselves or were made together or without recording, for
    inference tensors outside inference mode, and for results of another shape or kind of dtype.
    """
    cell, view = tensor._cell, tensor._view
    array = tensor._cell.array
    if result._cell.array.shape != array.shape:
        raise InPlaceError.shape(where, array.shape, result._cell.array.shape)
    if result._cell.array.dtype != array.dtype:
        result = _cast_like(tensor, result)
    if result._edge is None and modes.is_recording() and tensor._edge is not None:
        result = overwritten(snapshot(tensor), result)
    recording = _check_write(tensor, result)
    value = result._cell.array
    if view is None:
        cell.write(value)
    else:
        _write_through(view, result, recording)
        cell.array = value
    if recording:
        if view is None or view.base is None:
            _take_history(tensor, result)
        _move_guards(result, tensor)
    share_tangent(result, tensor)
    return tensor


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
    own, other = tensor.dtype, result.dtype
    if _KINDS.index(_kind(other)) > _KINDS.index(_kind(own)):
        raise InPlaceError.dtype(own.name, other.name)
    return _caster(own.dtype)(result)


_KINDS = ("bool", "integer", "floating point", "complex")


def _kind(dtype: Any) -> str:
    if dtype.is_complex or dtype.is_floating_point:
        return "complex" if dtype.is_complex else "floating point"
    return "bool" if dtype.name == "bool" else "integer"


def assign_part(tensor: Tensor, value: Tensor) -> None:
    """Writes `value` over all of a view that `lazy_view` made."""
    recording = _check_write(tensor, value)
    _write_through(tensor._view, value, recording)


def _check_write(tensor: Tensor, result: Tensor | None) -> bool:
    """Raises where the write is refused; returns whether it is recorded."""
    view, recording = tensor._view, modes.is_recording()
    if tensor._cell.version is None and not modes.is_inference_mode_enabled():
        raise InPlaceError.inference()
    if view is not None and any(k.spec.viewing.scatter is None for k, _ in view.path):
        if view.layout().overlaps:
            raise InPlaceError.overlap()
    if not recording:
        return False
    own = tensor._edge if view is None else (view.base._edge if view.base is not None else None)
    if own is None and (result is None or result._edge is None):
        return True
    if view is not None and view.base is not None:
        if view.made != RECORDED:
            node, number = tensor._edge or (None, 0)
            name = node.name().removesuffix("Backward0") if node else "the function"
            raise InPlaceError.view(view.made.format(node=name, number=number))
        if view.base._edge is LEAF:
            raise InPlaceError.leaf(view=True)
    elif own is LEAF:
        raise InPlaceError.leaf(view=False)
    return True


def _write_through(view: View, value: Tensor, recording: bool) -> None:
    """Writes into the root, and records it at the base."""
    base, root = view.base, view.root
    if not view.path:
        root.write(value._cell.array, view.family)
        return
    recorded = base is not None and (
        (recording and (base._edge is not None or value._edge is not None))
        or (are_carried() and (tangent_of(base) is not None or tangent_of(value) is not None))
    )
    if recorded:
        written = _run_through(_copy_slices, view.steps, snapshot(base), value)
        if view.steps is view.path:
            array = written._cell.array
    if not recorded or view.steps is not view.path:
        kernel, places = _through(_copy_slices, view.path)
        array = kernel.forward(root.array, value._cell.array, *places)
    root.write(array, view.family)
    if recorded:
        if recording:
            _take_history(base, written)
        share_tangent(written, base)


def _take_history(tensor: Tensor, result: Tensor) -> None:
    """Makes the node behind `result` the tensor's grad_fn; what it retained is retained there."""
    if result._edge is None:
        return
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
    recording = _check_write(tensor, None)
    view, own = shown._view, tensor._view
    if own is None:  # its memory goes to a tensor without a name, which both are views of
        base = new_tensor(tensor._cell, None if tensor._edge is LEAF else tensor._edge)
        for reference, _ in tensor._cell.views or ():
            cell = reference()
            other = cell.looking() if cell is not None else None
            if other is not None and other._view.base is tensor:
                other._view.base = base
        view.hidden = True
    else:
        view.hidden = own.hidden
    tensor._cell, tensor._view = shown._cell, view
    tensor._cell.looking = weakref.ref(tensor)
    if recording:
        _take_history(tensor, shown)
    share_tangent(shown, tensor)
    view.root.count_write(view.family)
    return tensor


def look_at(tensor: Tensor, other: Tensor) -> None:
    """Makes `tensor` share the memory of `other` from now on, counting writes of its own."""
    cell, view = other._cell, other._view
    root, path = (cell, ()) if view is None else (view.root, view.path)
    version = tensor._cell.version
    tensor._cell = Storage(cell.array)
    tensor._view = View(None, (), root, path, object())
    _connect(tensor, version)
