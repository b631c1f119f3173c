"""View: where a tensor looks that shares another's memory, and how it is made one.

A view that was written to past it is emptied (see Note [Views are emptied, and fill themselves]);
what its root shows along its path then fills it, and its place in the graph is found again behind
its base, as the operator `view_again` of what the base is now.
"""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import jax

from dyngraph import modes
from dyngraph.dispatch import define_dispatcher, plain
from dyngraph.errors import InPlaceError
from dyngraph.kernels import Kernel, OperatorSpec, is_differentiable
from dyngraph.pending import resolved
from dyngraph.pure import current_pure, is_outside, stop, unseen
from dyngraph.sequence import call
from dyngraph.storage import Storage, cell_of
from dyngraph.tangents import are_carried, share_tangent, tangents_of
from dyngraph.tensor import Tensor, new_tensor
from dyngraph.viewing import Layout, Viewing, contiguous_stride, look, write_through

RECORDED, UNRECORDED, INFERENCE, SEVERAL = "", "no_grad", "inference_mode", "several"
CUSTOM = "function"
"""How a view was made: of all but the first, writes are refused while operators are recorded."""
Step = tuple[Kernel, tuple[Any, ...]]


class View:
    """Where a tensor looks: what it has in place of a Storage of its own.

    `path` are the steps from `root`, the Storage, to the tensor; `steps` those from `base`, the
    tensor that it is a view of as far as autograd knows; None for an alias such as `detach()` makes
    of a view. `family` says whose writes it counts as its own.
    """

    __slots__ = ("_layout", "base", "family", "hidden", "made", "path", "root", "steps")

    base: Tensor | None
    steps: tuple[Step, ...]
    root: Storage
    path: tuple[Step, ...]
    family: object
    made: str
    hidden: bool
    _layout: Layout | None

    def layout(self) -> Layout:
        """Where the elements are in the root's memory."""
        if self._layout is None:
            shape = self.root.held.shape
            layout: Layout | None = Layout(shape, contiguous_stride(shape), 0)
            for kernel, others in self.path:
                assert layout is not None, "a step that needs a copy makes no view"
                layout = layout.after(kernel, others)
            self._layout = layout
        assert self._layout is not None
        return self._layout

    def may_overlap(self) -> bool:
        """Whether a step is of the kind that may show an element twice."""
        return any([kernel.spec.viewing.scatter is None for kernel, _ in self.path])  # type: ignore[union-attr]

    def refill(self, tensor: Tensor) -> None:
        """Fills the view's cell from the root, after a write."""
        base = self.base
        if base is not None and not self.made and tensor._edge_is_lost() and _is_followed(base):
            self.update(tensor)
            return
        kernel, places = kernel_through(_view_again, self.path)
        root = self.root.held
        with jax.ensure_compile_time_eval() if is_outside(root) else contextlib.nullcontext():
            tensor._cell.hold(call(kernel.forward, root, *places))

    def write(self, value: jax.Array) -> None:
        """Writes a value over what is shown, into the root; the view fills itself from there."""
        array = value
        if self.path:
            kernel, places = kernel_through(copy_slices, self.path)
            try:
                array = call(kernel.forward, self.root.held, value, *places)
            except RuntimeError as error:
                raise plain(error) from None
        if any([kernel is _stopped for kernel, _ in self.path]):
            array = unseen(resolved(array), self.root.array)
        self.root.write(array, self.family)

    def update(self, tensor: Tensor) -> None:
        """Puts the tensor behind its base again in the graph, as a view of what that is now.

        A view whose making does not allow that has no place in the graph from now on: raises
        RuntimeError while operators are recorded.
        """
        base = self.base
        if self.made != CUSTOM and (base is None or not _is_followed(base)):
            tensor._edge = None
            return
        if self.made:
            if modes.is_recording():
                raise InPlaceError.view(self.made, None, indirect=True)
            return
        assert base is not None
        before = modes.get_flags()
        modes.set_flags(before & ~modes.INFERENCE | modes.GRAD)
        outside = is_outside(self.root.held)
        try:
            with jax.ensure_compile_time_eval() if outside else contextlib.nullcontext():
                shown = run_through(_view_again, self.steps, base)
        finally:
            modes.set_flags(before)
        if tensor._cell.is_empty():
            tensor._cell.hold(shown._cell.held)
        tensor._edge = shown._edge if is_differentiable(shown._cell.held.dtype) else None
        share_tangent(shown, tensor)
        if tensor.retains_grad:
            tensor._retain()


def _is_followed(tensor: Tensor) -> bool:
    """Whether something is to be known of a view of it, beside its value."""
    return tensor._edge is not None or (are_carried() and bool(tangents_of(tensor)))


def as_view(
    parent: Tensor, result: Tensor, kernel: Kernel, others: tuple[Any, ...], flags: int
) -> Tensor:
    """Makes `result`, which `kernel` has shown of `parent`, share its memory."""
    view = view_of(parent, (kernel, others), flags)
    if view is not None:
        result._view = view
        connect(result, parent._cell.version)
    return result


def view_of(parent: Tensor, step: Step, flags: int) -> View | None:
    """Where a tensor looks that `step` shows of `parent`; None where only a copy shows that."""
    above = parent._view
    kernel, others = step
    made, layout, path = RECORDED, None, (step,)
    if flags != modes.GRAD:
        made = INFERENCE if flags & modes.INFERENCE else UNRECORDED
    base, steps, root, family = parent, path, parent._cell, None
    if above is not None:
        if kernel.spec.viewing.reshapes:  # type: ignore[union-attr]
            layout = above.layout().after(kernel, others)
            if layout is None:
                return None
        root, family, path = above.root, above.family, above.path + path
        if above.base is not None:
            base, made = above.base, made or above.made
            steps = path if above.steps is above.path else above.steps + steps
    if parent._cell.version is None or not kernel.spec.differentiable:
        base = None
    view = new_view(base, steps, root, path, family, made)
    view._layout = layout
    return view


def new_view(
    base: Tensor | None,
    steps: tuple[Step, ...],
    root: Storage,
    path: tuple[Step, ...],
    family: object,
    made: str = RECORDED,
) -> View:
    """A View; called where every tensor that shares memory is made, so it is no `__init__`."""
    view = object.__new__(View)
    view.base, view.steps, view.root, view.path = base, steps, root, path
    view.family, view.made, view.hidden, view._layout = family, made, False, None
    return view


def connect(tensor: Tensor, version: int | None) -> None:
    """Makes the cell of a view known to its root and to its tensor."""
    cell, view = tensor._cell, tensor._view
    cell.version = version
    cell.show(tensor)
    entry, views = (weakref.ref(cell), view.family), view.root.views
    if views is None:
        view.root.views = [entry]
    elif len(views) < 8:
        views.append(entry)
    else:
        view.root.add_view(entry)


def as_views(parent: Tensor, results: Sequence[Tensor], kernel: Kernel, flags: int) -> Any:
    """Makes the parts that `kernel` has shown of `parent` share its memory."""
    steps = _pieces(kernel, parent._cell.held.shape)
    for result, step in zip(results, steps, strict=True):
        as_view(parent, result, *step, flags)
        if flags == modes.GRAD:
            result._view.made = SEVERAL
    return results


@functools.lru_cache(64)
def _pieces(kernel: Kernel, shape: tuple[int, ...]) -> list[Step]:
    """The steps to the parts that `kernel` shows of a tensor of this shape."""
    pieces = kernel.spec.viewing.pieces(shape, **kernel.statics)  # type: ignore[union-attr]
    return [(operator.table.find(statics), others) for operator, others, statics in pieces]


_stopped = Kernel(
    OperatorSpec(
        "stop_gradient",
        lambda self: jax.lax.stop_gradient(self),
        inputs=["self"],
        rules={"self": None},
        viewing=Viewing(scatter=lambda parent, value: value, strided=lambda parent: parent),
    ),
    (),
)


def detached(tensor: Tensor, family: object = None, version: int | None = None) -> Tensor:
    """An `alias` that is a constant to JAX's derivatives too, inside a pure function."""
    view, cell, pure = tensor._view, tensor._cell, current_pure()
    if pure is None or not pure.is_differentiated or not is_differentiable(cell.held.dtype):
        return alias(tensor, family, version)
    if family is None:
        family, version = (None if view is None else view.family), cell.version
    result = new_tensor(cell_of(stop(cell.array)[0]))
    root, path = memory_of(tensor)
    result._view = new_view(None, (), root, (*path, (_stopped, ())), family)
    connect(result, version)
    return result


def alias(tensor: Tensor, family: object = None, version: int | None = None) -> Tensor:
    """A tensor without history over the same memory; with a `family`, it counts its own writes."""
    view, cell = tensor._view, tensor._cell
    if view is None and family is None:
        return new_tensor(cell)
    result = new_tensor(cell_of(cell.held))
    root, path = memory_of(tensor)
    if view is not None and family is None:
        family, version = view.family, cell.version
    result._view = new_view(None, (), root, path, family)
    connect(result, version)
    return result


def memory_of(tensor: Tensor) -> tuple[Storage, tuple[Step, ...]]:
    """The Storage that the tensor looks into, and the path to what it shows."""
    view = tensor._view
    return (tensor._cell, ()) if view is None else (view.root, view.path)


def counter_of(tensor: Tensor) -> tuple[Storage, object]:
    """The Storage that knows all whose writes the tensor counts, and which of them these are."""
    view = tensor._view
    return (tensor._cell, None) if view is None else (view.root, view.family)


def whole_memory(tensor: Tensor) -> Tensor:
    """The tensor that shows all of the memory that `tensor` looks into."""
    view = tensor._view
    if view is None:
        return tensor
    base = view.base
    return base if base is not None and base._view is None else new_tensor(view.root)


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
def copy_slices(count: int) -> Callable[..., Any]:
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


def kernel_through(family: Callable[[int], Any], path: Sequence[Step]) -> tuple[Kernel, list[Any]]:
    """The kernel of an operator through a path, and the places that it looks at."""
    kernels, places = _split(path)
    return family(len(places)).table[kernels,], places


def run_through(family: Callable[[int], Any], path: Sequence[Step], *tensors: Any) -> Tensor:
    kernels, places = _split(path)
    return family(len(places))(*tensors, *places, steps=kernels)
