"""Tensor: a handle over a Storage, an edge into the backward graph, and a lazy AutogradMeta.

Invariant: `_edge` is None exactly when the tensor needs no gradient, `LEAF` when it is a leaf that
does, and otherwise the edge to the node that made it. A tensor that takes no part in autograd has
no AutogradMeta.
"""

from __future__ import annotations

import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Self

import jax
import numpy as np

from dyngraph import batches, devices, dtypes, modes
from dyngraph.described import Described, Size as Size, canonical_dim as canonical_dim
from dyngraph.errors import InPlaceError, LeafError
from dyngraph.graph.accumulate import AccumulateGrad
from dyngraph.graph.hooks import HookList, RemovableHandle
from dyngraph.graph.node import Edge, GradientEdge, Node
from dyngraph.placement import are_many, devices_of
from dyngraph.pure import current_pure
from dyngraph.storage import Storage, cell_of
from dyngraph.ways_out import WaysOut

if TYPE_CHECKING:
    from dyngraph.methods import Methods
else:  # what `methods` binds later, so that operators can be written in terms of Tensor
    Methods = object

LEAF: Edge = (None, -1)
"""The edge of a leaf that requires grad: its accumulator is made when an operator needs it."""
_creating_accumulator = threading.Lock()


class AutogradMeta:
    """What autograd keeps of a tensor beside its edge: the gradient, hooks, the accumulator."""

    __slots__ = ("accumulator", "grad", "hooks", "post_accumulate_hooks", "retains_grad", "tangent")

    def __init__(self) -> None:
        self.grad: Tensor | None = None
        self.accumulator: weakref.ref[AccumulateGrad] | None = None
        self.hooks: HookList | None = None
        self.post_accumulate_hooks: HookList | None = None
        self.retains_grad = False
        self.tangent: Any = None  # its boxes, see dyngraph.tangents


class Tensor(Described, WaysOut, Methods):
    """An n-dimensional array on JAX that records what is done with it.

    Made by `dg.tensor` and the other creation functions. Operators are its methods (see
    `dyngraph.methods`); this class holds its place in the backward graph. `Described` says what its
    value is like, `WaysOut` hands the value out.

    >>> x = dg.tensor([2.0, 3.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([4., 6.])
    """

    __slots__ = ("__dict__", "__weakref__", "_cell", "_known_edge", "_meta", "_view")

    _cell: Storage
    _known_edge: Edge | None  # `_edge`, without the look whether a write has taken it out
    _meta: AutogradMeta | None
    _view: Any  # a `views.View`; None for a tensor that has its memory to itself

    __array_priority__ = 1000  # numpy arrays leave mixed operators to us

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise TypeError(
            "Tensor() is not called directly. Make tensors by dg.tensor(data) or dg.zeros(shape)."
        )

    # --- views: see Note [Views are emptied, and fill themselves] ----------------------------

    @property
    def _edge(self) -> Edge | None:
        """Where the gradient goes; None where there is none."""
        try:
            return self._known_edge
        except AttributeError:  # taken out by `_forget_edge`
            pass
        self._view.update(self)
        return None if self._edge_is_lost() else self._known_edge

    @_edge.setter
    def _edge(self, edge: Edge | None) -> None:
        self._known_edge = edge

    def _refill(self) -> None:
        self._view.refill(self)

    def _write(self, array: Any) -> None:
        """Replaces the value as an in-place operation does that is not recorded."""
        if self._view is None:
            self._cell.write(array)
        else:
            self._view.write(array)

    def _edge_is_lost(self) -> bool:
        return not hasattr(self, "_known_edge")

    def _forget_edge(self) -> None:
        if self._view.base is None or self._edge_is_lost() or self._edge is LEAF:
            return
        if self.retains_grad:
            self._stop_retaining()
        del self._known_edge

    def _stop_retaining(self) -> None:
        """Takes this tensor out of what its node retains, because it moves to another node."""
        node, output_nr = self._edge or (None, 0)
        if node is not None and node.extra is not None:
            node.extra.retained.pop(output_nr, None)

    def _retain(self) -> None:
        """Makes its node retain the gradient of this tensor."""
        node, output_nr = self._edge or (None, 0)
        if node is not None:
            node.need_extra().retained[output_nr] = weakref.ref(self)

    # --- place in the graph ------------------------------------------------------------------

    @property
    def requires_grad(self) -> bool:
        """Whether operators on this tensor are recorded; assignable on leaves.

        >>> x = dg.ones(2)
        >>> x.requires_grad = True
        >>> (x + 1).requires_grad
        True
        """
        try:
            return self._edge is not None
        except InPlaceError:  # a view that may not be used any more: as its base does
            base = self._view.base
            return base is not None and base.requires_grad

    @requires_grad.setter
    def requires_grad(self, flag: bool) -> None:
        if not isinstance(flag, bool):
            raise RuntimeError(
                f"requires_grad must be a bool, got {type(flag).__name__}. Assign True or False."
            )
        self.requires_grad_(flag)

    @requires_grad.deleter
    def requires_grad(self) -> None:
        raise RuntimeError("requires_grad must be a bool, it can't be deleted")

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Sets `requires_grad` and returns the tensor.

        Raises RuntimeError for a tensor that an operator made, for one whose dtype is neither
        floating point nor complex, and for an inference tensor outside inference mode.
        """
        if not isinstance(requires_grad, (bool, np.bool_)):
            raise TypeError(
                "requires_grad_(): argument 'requires_grad' must be bool, not "
                f"{type(requires_grad).__name__}. Pass True or False."
            )
        flag = bool(requires_grad)
        if not self.is_leaf:
            if flag:
                return self
            raise LeafError(flag=flag)
        if flag:
            check_differentiable(self.dtype)
            if self._cell.version is None and not modes.get_flags() & modes.INFERENCE:
                raise RuntimeError(
                    "Setting requires_grad=True on inference tensor outside InferenceMode is not "
                    "allowed. Make a clone() of it, or create it outside inference_mode."
                )
        if flag != (self._edge is not None):
            pure = current_pure()
            if pure is not None:
                pure.note_flag(self)
            self._edge = LEAF if flag else None
            for tensor in self._cell.lookers():  # its views have a gradient from now on
                if tensor._view.base is self and not tensor._view.made:
                    tensor._forget_edge()
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded operator made this tensor."""
        return self._edge is None or self._edge is LEAF

    @property
    def grad_fn(self) -> Node | None:
        """The node that made this tensor; None on leaves."""
        return None if self._edge is None else self._edge[0]

    @property
    def output_nr(self) -> int:
        """Which output of `grad_fn` this tensor is."""
        return 0 if self.is_leaf or self._edge is None else self._edge[1]

    @property
    def grad(self) -> Tensor | None:
        """The gradient that backward calls have added up; None before the first.

        Assignable: a tensor of the same shape, dtype and device, or None.
        """
        meta = self._meta
        pure = current_pure()
        if pure is not None:
            pure.note_leaf(self)
        if meta is not None and meta.grad is not None:
            return meta.grad
        if self._edge is not None and self._edge is not LEAF and not self.retains_grad:
            _warn_no_grad_on_interior()
        return None

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            self._check_grad(value)
        pure = current_pure()
        if pure is not None:
            pure.note_grad(self)
        if value is not None or self._meta is not None:
            self.need_meta().grad = value

    @grad.deleter
    def grad(self) -> None:
        self.grad = None

    def _check_grad(self, value: object) -> None:
        if not isinstance(value, Tensor):
            raise TypeError(
                f"assigned grad expected to be a Tensor or None but got grad of type "
                f"{type(value).__name__}. Wrap it by dg.tensor(...)."
            )
        if value is self:
            raise RuntimeError("can't assign Variable as its own grad. Assign a clone() of it.")
        if value.shape != self.shape:
            raise RuntimeError(
                f"attempting to assign a gradient of size '{list(value.shape)}' to a tensor of "
                f"size '{list(self.shape)}'. Reshape it, or reduce it to the tensor's shape."
            )
        if value.dtype != self.dtype:
            raise RuntimeError(
                f"attempting to assign a gradient with dtype '{value.dtype}' to a tensor with "
                f"dtype '{self.dtype}'. Convert it by .to(dg.{self.dtype.name})."
            )
        if value.device != self.device:
            raise RuntimeError(
                f"attempting to assign a gradient with device type '{value.device}' to a tensor "
                f"with device type '{self.device}'. Move it by .to('{self.device}')."
            )
        if are_many() and (own := devices_of(self._cell.held)) is not None:
            other = devices_of(value._cell.held)
            if other is not None and other != own:
                raise RuntimeError(
                    f"attempting to assign a gradient on {len(other)} device(s) to a tensor on "
                    f"{len(own)}. Spread it by .to(tensor.sharding)."
                )

    _grad = grad
    _grad_fn = grad_fn

    def need_meta(self) -> AutogradMeta:
        """The tensor's AutogradMeta, made when first needed."""
        if self._meta is None:
            self._meta = AutogradMeta()
        return self._meta

    def gradient_edge(self) -> Edge:
        """The edge to the node that made this tensor, or to the accumulator of a leaf."""
        edge = self._edge
        assert edge is not None, "only a tensor that requires grad has an edge"
        return leaf_edge(self) if edge is LEAF else edge

    def register_hook(self, hook: Callable[[Any], Any]) -> RemovableHandle:
        """Calls `hook(grad)` when the gradient of this tensor is known; it may return another.

        Raises RuntimeError where the tensor needs no gradient.

        >>> x = dg.ones(2, requires_grad=True)
        >>> handle = x.register_hook(lambda grad: grad * 10)
        >>> x.sum().backward()
        >>> x.grad
        tensor([10., 10.])
        """
        if self._edge is None:
            raise RuntimeError(
                "cannot register a hook on a tensor that doesn't require gradient. Set "
                "requires_grad=True before the forward pass."
            )
        hooks = self._backward_hooks
        if hooks is None:
            hooks = HookList()
            if self._edge is LEAF:
                meta = self.need_meta()
                meta.hooks = hooks
                accumulator = meta.accumulator() if meta.accumulator else None
                if accumulator is not None:
                    accumulator.need_extra().tensor_hooks[0] = hooks
            else:
                node, output_nr = self._edge
                assert node is not None
                node.need_extra().tensor_hooks[output_nr] = hooks
        return hooks.add(hook)

    @property
    def _backward_hooks(self) -> HookList | None:
        if self._edge is None or self._edge is LEAF:
            return self._meta.hooks if self._meta else None
        node, output_nr = self._edge
        return node.extra.tensor_hooks.get(output_nr) if node and node.extra else None

    def register_post_accumulate_grad_hook(self, hook: Callable[[Any], Any]) -> RemovableHandle:
        """Calls `hook(tensor)` after backward has added to the `.grad` of this leaf.

        Raises RuntimeError where the tensor is no leaf that requires grad.

        >>> x = dg.ones(2, requires_grad=True)
        >>> handle = x.register_post_accumulate_grad_hook(lambda leaf: print(leaf.grad))
        >>> x.sum().backward()
        tensor([1., 1.])
        """
        if self._edge is None:
            raise RuntimeError(
                "cannot register a hook on a tensor that doesn't require gradient. Set "
                "requires_grad=True first."
            )
        if self._edge is not LEAF:
            raise RuntimeError(
                "post accumulate grad hooks cannot be registered on non-leaf tensors. Use "
                "register_hook(), or retain_grad() and a hook of the node."
            )
        meta = self.need_meta()
        if meta.post_accumulate_hooks is None:
            meta.post_accumulate_hooks = HookList()
        return meta.post_accumulate_hooks.add(hook)

    @property
    def _post_accumulate_grad_hooks(self) -> HookList | None:
        return self._meta.post_accumulate_hooks if self._meta else None

    def retain_grad(self) -> None:
        """Keeps `.grad` of a tensor that an operator made; on a leaf it does nothing.

        >>> x = dg.ones(2, requires_grad=True)
        >>> y = x * 2
        >>> y.retain_grad()
        >>> y.sum().backward()
        >>> y.grad
        tensor([1., 1.])
        """
        if self._edge is None:
            raise RuntimeError(
                "can't retain_grad on Tensor that has requires_grad=False. Set requires_grad=True "
                "on an input of the computation first."
            )
        if self._edge is LEAF or self.retains_grad:
            return
        self._retain()
        self.need_meta().retains_grad = True

    @property
    def retains_grad(self) -> bool:
        """Whether `retain_grad()` was called on this interior tensor."""
        return self._meta is not None and self._meta.retains_grad

    @property
    def _version(self) -> int:
        version = self._cell.version
        if version is None:
            raise RuntimeError(
                "Inference tensors do not track version counter. Make a clone() of it outside "
                "inference_mode to get a tensor that does."
            )
        return version

    def is_inference(self) -> bool:
        """Whether the tensor was made under `inference_mode`."""
        return self._cell.version is None

    # --- as a sequence, and copied ---------------------------------------------------------------

    def __len__(self) -> int:
        shape = self._cell.held.shape
        if not shape:
            raise TypeError("len() of a 0-d tensor. Use numel(), or item() for its value.")
        return shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if not self._cell.held.ndim:
            raise TypeError("iteration over a 0-d tensor. Use item() for its value.")
        return iter(self.unbind(0))

    def __hash__(self) -> int:
        return id(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
                "protocol at the moment. Copy detach() of it."
            )
        if id(self) in memo:
            return memo[id(self)]
        copy = type(self).__new__(type(self))
        memo[id(self)] = copy
        copy._cell = new_cell(self._cell.array)
        copy._edge, copy._meta, copy._view = self._edge, None, None
        if self._meta is not None and self._meta.grad is not None:
            copy.need_meta().grad = self._meta.grad.__deepcopy__(memo)
        copy.__dict__.update(deepcopy(self.__dict__, memo))
        return copy

    def __reduce__(self) -> Any:
        if not self.is_leaf:
            raise RuntimeError(
                "a tensor that an operator made carries its graph, which can't be pickled. "
                "Pickle detach() of it."
            )
        array = self._cell.array
        place = str(self.device) if array.committed else None
        parts = (type(self), np.asarray(array), place, self.requires_grad)
        return _rebuild, parts, self.__dict__ or None


def _rebuild(cls: type[Tensor], value: Any, place: str | None, requires_grad: bool) -> Tensor:
    array = jax.device_put(value, devices.as_jax_device(place))
    return new_tensor(cell_of(array), LEAF if requires_grad else None, cls)


def new_tensor(cell: Storage, edge: Edge | None = None, cls: type[Tensor] = Tensor) -> Tensor:
    """A tensor over a Storage, at a place in the graph."""
    tensor = cls.__new__(cls)
    tensor._cell = cell
    tensor._known_edge = edge
    tensor._meta = tensor._view = None
    return tensor


def tensor_at(cell: Storage, edge: Edge | None) -> Tensor:
    """A tensor over a Storage, whose gradient goes where `edge` leads; to a leaf's accumulator,
    then it is a leaf."""
    node = None if edge is None else edge[0]
    if not isinstance(node, AccumulateGrad):
        return new_tensor(cell, edge)
    leaf = new_tensor(cell, LEAF)
    leaf.need_meta().accumulator = weakref.ref(node)
    return leaf


def wrap(array: jax.Array, *, requires_grad: bool = False) -> Tensor:
    """A new leaf over an array, of the kind that the mode asks for."""
    if requires_grad:
        check_differentiable(dtypes.of(array.dtype))
    return new_tensor(new_cell(array), LEAF if requires_grad else None)


def new_cell(array: jax.Array) -> Storage:
    """A Storage of its own for a new tensor, of the kind that the mode asks for."""
    cell = cell_of(array, fresh_version())
    if modes.get_flags() & modes.MAPPED:
        batches.note_made(cell)
    return cell


def fresh_version() -> int | None:
    """The version that a new tensor starts with: None, no counter, in inference mode."""
    return None if modes.get_flags() & modes.INFERENCE else 0


def leaf_edge(leaf: Tensor) -> Edge:
    """The edge to a leaf's accumulator, which the graph keeps alive and the leaf knows weakly."""
    meta = leaf._meta or leaf.need_meta()
    accumulator = meta.accumulator() if meta.accumulator is not None else None
    if accumulator is None:
        with _creating_accumulator:
            accumulator = meta.accumulator() if meta.accumulator is not None else None
            if accumulator is None:
                accumulator = AccumulateGrad(leaf)
                if meta.hooks is not None:
                    accumulator.need_extra().tensor_hooks[0] = meta.hooks
                meta.accumulator = weakref.ref(accumulator)
    return accumulator, 0


def gradient_edge(tensor: Tensor) -> GradientEdge:
    """The place of a tensor in the graph, as `torch.autograd.graph.get_gradient_edge` gives it.

    Raises RuntimeError where the tensor does not require grad.

    >>> x = dg.ones(2, requires_grad=True)
    >>> dg.autograd.graph.get_gradient_edge(x * 2).node
    <MulBackward0>
    """
    if tensor._edge is None:
        raise RuntimeError(
            "It is not possible to get the gradient edge for a Tensor that does not require "
            "gradients. Set requires_grad=True on it or on an input of its computation."
        )
    node, output_nr = tensor.gradient_edge()
    assert node is not None
    return GradientEdge(node, output_nr)


def check_differentiable(dtype: dtypes.dtype) -> None:
    """Raises RuntimeError where tensors of `dtype` can't require grad."""
    if not dtype.is_differentiable:
        raise RuntimeError(
            f"only Tensors of floating point and complex dtype can require gradients, got {dtype}. "
            "Convert it first, for example by .float()."
        )


def _warn_no_grad_on_interior() -> None:
    warnings.warn(
        "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad "
        "attribute won't be populated during autograd.backward(). Call retain_grad() on it if you "
        "want its gradient.",
        UserWarning,
        stacklevel=3,
    )


def is_tensor(obj: Any) -> bool:
    """Whether `obj` is a Tensor.

    >>> dg.is_tensor(dg.ones(2)), dg.is_tensor(jnp.ones(2))
    (True, False)
    """
    return isinstance(obj, Tensor)


def is_inference(tensor: Tensor) -> bool:
    """Whether the tensor was made under `inference_mode`.

    >>> dg.is_inference(dg.ones(2))
    False
    """
    return tensor.is_inference()


def is_floating_point(input: Tensor) -> bool:
    """Whether the dtype is float16, bfloat16, float32 or float64.

    >>> dg.is_floating_point(dg.tensor([1]))
    False
    """
    return input.is_floating_point()


def is_complex(input: Tensor) -> bool:
    """Whether the dtype is complex.

    >>> dg.is_complex(dg.tensor([1j]))
    True
    """
    return input.is_complex()


def numel(input: Tensor) -> int:
    """The number of elements.

    >>> dg.numel(dg.ones(2, 3))
    6
    """
    return input.numel()
