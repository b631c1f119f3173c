"""Which memory a tensor looks at, and how: `detach`, `data`, strides, `is_set_to`.

JAX arrays have no strides. Those that are told here are what PyTorch's tensors have: a tensor made
by an operator is contiguous, a view has its base's.
"""

from __future__ import annotations

from typing import Any

from dyngraph import modes
from dyngraph.errors import InPlaceError
from dyngraph.ops import memory_formats
from dyngraph.storage import Storage
from dyngraph.tensor import Tensor, canonical_dim
from dyngraph.viewing import Layout, contiguous_stride
from dyngraph.views import counter_of, detached, memory_of
from dyngraph.writing import look_at


def layout_of(input: Tensor) -> Layout:
    """Where the tensor's elements are in its memory."""
    if input._view is None:
        shape = input._cell.held.shape
        return Layout(shape, contiguous_stride(shape), 0)
    return input._view.layout()


def stride(input: Tensor, dim: int | None = None) -> Any:
    """How many elements of memory lie from one element to the next, along each dim or one.

    >>> x = dg.ones(2, 3)
    >>> x.stride(), x.t().stride(), x.stride(0)
    ((3, 1), (1, 3), 3)
    """
    steps = layout_of(input).stride
    return steps if dim is None else steps[canonical_dim(dim, len(steps))]


def storage_offset(input: Tensor) -> int:
    """How many elements of memory lie before the first one.

    >>> dg.ones(2, 3)[1].storage_offset()
    3
    """
    return layout_of(input).offset


def is_contiguous(input: Tensor, memory_format: Any = None) -> bool:
    """Whether the elements follow each other in memory: in row order, or as the format says.

    >>> dg.ones(2, 3).is_contiguous(), dg.ones(2, 3).t().is_contiguous()
    (True, False)
    """
    if memory_format in (
        None,
        memory_formats.contiguous_format,
        memory_formats.preserve_format,
    ):
        return input._view is None or layout_of(input).is_contiguous
    if not isinstance(memory_format, memory_formats.memory_format):
        raise TypeError(
            "is_contiguous(): argument 'memory_format' must be dyngraph.memory_format, not "
            f"{type(memory_format).__name__}. Pass for example dg.channels_last."
        )
    shape = input._cell.held.shape
    if len(shape) != memory_format.ndim:
        return False
    laid = layout_of(input).stride
    wanted = memory_format.stride(shape)
    return all(s == w for s, w, n in zip(laid, wanted, shape, strict=True) if n != 1)


class UntypedStorage:
    """The memory that a tensor looks at; equal to that of every tensor that shares it."""

    __slots__ = ("_root",)

    def __init__(self, root: Storage) -> None:
        self._root = root

    def data_ptr(self) -> int:
        """A number that only tensors of this memory share while it is alive."""
        return id(self._root)

    def nbytes(self) -> int:
        """The bytes of all elements."""
        return self._root.array.nbytes

    size = __len__ = nbytes

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UntypedStorage) and other._root is self._root

    def __hash__(self) -> int:
        return id(self._root)

    def __repr__(self) -> str:
        return f"<dyngraph.UntypedStorage of {self.nbytes()} bytes at version {self._root.version}>"


def untyped_storage(input: Tensor) -> UntypedStorage:
    """The memory that the tensor looks at.

    >>> x = dg.ones(3)
    >>> x[1:].untyped_storage() == x.untyped_storage()
    True
    """
    return UntypedStorage(memory_of(input)[0])


storage = untyped_storage


def data_ptr(input: Tensor) -> int:
    """A number that tells where the first element is: two views that begin there have the same.

    It is no address: JAX's arrays move when they are written to.

    >>> x = dg.ones(3)
    >>> x.data_ptr() == x[:2].data_ptr(), x.data_ptr() == x[1:].data_ptr()
    (True, False)
    """
    return id(memory_of(input)[0]) + layout_of(input).offset * input.itemsize


def is_set_to(input: Tensor, tensor: Tensor) -> bool:
    """Whether both look at the same memory in the same way.

    >>> x = dg.ones(3)
    >>> x.is_set_to(x.detach()), x.is_set_to(x[1:])
    (True, False)
    """
    return memory_of(input)[0] is memory_of(tensor)[0] and layout_of(input) == layout_of(tensor)


def _is_view(input: Tensor) -> bool:
    """Whether the tensor is a view of another that autograd knows."""
    return input._view is not None and input._view.base is not None and not input._view.hidden


def _base(input: Tensor) -> Tensor | None:
    """The tensor that this one is a view of."""
    return input._view.base if _is_view(input) else None


def detach(input: Tensor) -> Tensor:
    """The same memory and version counter, outside the graph.

    >>> x = dg.ones(2, requires_grad=True)
    >>> (x * 2).detach()
    tensor([2., 2.])
    """
    return detached(input)


def detach_(input: Tensor) -> Tensor:
    """Takes the tensor out of the graph; RuntimeError for a view.

    >>> x = dg.ones(2, requires_grad=True) * 2
    >>> x.detach_().requires_grad
    False
    """
    if _is_view(input):
        raise InPlaceError(
            "Can't detach views in-place. Use detach() instead: a view that was detached would "
            "not follow its base."
        )
    if input.retains_grad:
        input._stop_retaining()
        input.need_meta().retains_grad = False
    input._edge = None
    return input


def _data(input: Tensor) -> Tensor:
    """The same memory outside the graph, with a version counter of its own.

    Assigning a tensor makes this one look at that one's memory, unseen by autograd.
    """
    inference = input._cell.version is None
    return detached(input, family=object(), version=None if inference else 0)


def _set_data(input: Tensor, value: Tensor) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(
            f"Variable data has to be a tensor, but got {type(value).__name__}. "
            "Wrap it by dg.tensor(...)."
        )
    if input.requires_grad and not value.dtype.is_differentiable:
        raise RuntimeError(
            "data set to a tensor that requires gradients must be floating point or complex "
            f"dtype, got {value.dtype}. Convert it by .float()."
        )
    look_at(input, value)


def _delete_data(input: Tensor) -> None:
    raise RuntimeError("Deleting tensor data is not allowed. Delete tensor instead!")


def set_(input: Tensor, source: Tensor) -> Tensor:
    """Makes the tensor look at the memory of `source`, as assigning to `.data` does.

    >>> x, y = dg.zeros(2), dg.ones(2)
    >>> x.set_(y).is_set_to(y)
    True
    """
    if modes.is_recording() and input.requires_grad:
        raise InPlaceError.leaf(view=False)
    _set_data(input, source)
    root, family = counter_of(input)
    root.count_write(family)
    if input._meta is not None:  # what was recorded led to the leaf with its old memory
        input._meta.accumulator = None
    return input


__all__ = ["detach"]

METHODS = (
    "_is_view",
    "data_ptr",
    "detach",
    "detach_",
    "is_contiguous",
    "is_set_to",
    "set_",
    "storage",
    "storage_offset",
    "stride",
    "untyped_storage",
)
"""The methods of Tensor that this file has."""
PROPERTIES = {"_base": _base, "data": (_data, _set_data, _delete_data)}
"""The properties of Tensor that this file has, by name."""
