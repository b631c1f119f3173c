"""What kind of memory a tensor has, for programs that ask: dense, strided, on one of JAX's devices.

No tensor is sparse, quantized, nested or without data.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from dyngraph import dtypes
from dyngraph.ops.arguments import as_ints
from dyngraph.ops.conversion import convert
from dyngraph.ops.factory_arguments import only_size
from dyngraph.ops.filled import empty, new_empty
from dyngraph.ops.memory import layout_of
from dyngraph.ops.memory_formats import channels_last, memory_format, permuted_stride
from dyngraph.ops.placing import as_strided
from dyngraph.tensor import Tensor
from dyngraph.viewing import Layout, contiguous_stride


class layout:  # noqa: N801 - PyTorch's name
    """How elements are kept: `strided`, the only one there is.

    >>> dg.ones(2).layout
    dyngraph.strided
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"dyngraph.{self.name}"

    def __reduce__(self) -> str:
        return self.name


strided = layout("strided")
"""The layout of all tensors, as PyTorch names that of dense ones."""


def _layout(input: Tensor) -> layout:
    """How the elements are kept: always `dyngraph.strided`.

    >>> dg.ones(2).layout == dg.strided
    True
    """
    return strided


def _never(name: str, kind: str) -> Callable[[Tensor], bool]:
    def answer(input: Tensor) -> bool:
        return False

    answer.__name__ = answer.__qualname__ = name
    answer.__doc__ = f"""Whether the tensor {kind}: never.

    >>> dg.ones(2).{name}
    False
    """
    return answer


_KINDS = {
    "is_ipu": "is on a Graphcore processor",
    "is_maia": "is on a Maia processor",
    "is_meta": "has a shape but no data",
    "is_mkldnn": "has MKL-DNN's layout",
    "is_mps": "is on a Metal device of PyTorch's",
    "is_mtia": "is on an MTIA processor",
    "is_nested": "is a list of tensors of several shapes",
    "is_quantized": "has quantized elements",
    "is_sparse": "keeps only some elements",
    "is_sparse_csr": "keeps only some elements, in compressed rows",
    "is_vulkan": "is on a Vulkan device",
    "is_xla": "is on a device of PyTorch/XLA",
    "is_xpu": "is on an Intel XPU",
}


def dense_dim(input: Tensor) -> int:
    """The number of dims that are dense: all.

    >>> dg.ones(2, 3).dense_dim()
    2
    """
    return input.ndim


def sparse_dim(input: Tensor) -> int:
    """The number of dims that are sparse: none.

    >>> dg.ones(2, 3).sparse_dim()
    0
    """
    return 0


def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether both tensors have the same shape.

    >>> dg.is_same_size(dg.ones(2, 1), dg.ones(2))
    False
    """
    if not isinstance(other, Tensor):
        raise TypeError(
            "is_same_size(): argument 'other' (position 2) must be Tensor, not "
            f"{type(other).__name__}. Compare a shape with input.shape."
        )
    return input.shape == other.shape


def is_distributed(input: Tensor) -> bool:
    """Whether the tensor is one of PyTorch's distributed ones: never; see `sharding` for JAX's.

    >>> dg.is_distributed(dg.ones(2))
    False
    """
    return False


def pin_memory(input: Tensor, device: Any = None) -> Tensor:
    """The tensor itself: JAX chooses the memory that copies to a device go through.

    >>> x = dg.ones(2)
    >>> x.pin_memory() is x
    True
    """
    return input


def is_pinned(input: Tensor, device: Any = None) -> bool:
    """Whether the tensor is in memory that was pinned: never.

    >>> dg.ones(2).is_pinned()
    False
    """
    return False


def is_shared(input: Tensor) -> bool:
    """Whether other processes see the tensor's memory: as in PyTorch, that of an accelerator.

    >>> dg.ones(2).is_shared()
    False
    """
    return input.device.type != "cpu"


def is_signed(input: Tensor) -> bool:
    """Whether the dtype has values below zero.

    >>> dg.is_signed(dg.tensor([1], dtype=dg.uint8))
    False
    """
    return input.is_signed()


def get_device(input: Tensor) -> int:
    """The index of the accelerator that the tensor is on, -1 for the CPU.

    >>> dg.get_device(dg.ones(2, device="cpu"))
    -1
    """
    return input.get_device()


def to_dense(input: Tensor, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
    """The tensor, which is dense, in another dtype where one is given.

    >>> x = dg.ones(2)
    >>> x.to_dense() is x
    True
    """
    return convert(input, None if dtype is None else dtypes.as_dtype(dtype), None)


def dim_order(
    input: Tensor, *, ambiguity_check: bool | list[memory_format] = False
) -> tuple[int, ...]:
    """The dims from the outermost in memory to the innermost.

    Dims of length 1 may stand anywhere. `ambiguity_check=True` raises RuntimeError where there are
    any, or equal strides; a list of formats where not exactly one of them then is the tensor's.

    >>> dg.ones(2, 3, 4).transpose(0, 1).dim_order()
    (1, 0, 2)
    """
    formats = ambiguity_check if isinstance(ambiguity_check, list) else []
    if not isinstance(ambiguity_check, (bool, list)) or not all(
        isinstance(f, memory_format) for f in formats
    ):
        raise TypeError(
            "The ambiguity_check argument must be a bool or a list of memory formats, got "
            f"{ambiguity_check!r}."
        )
    laid = layout_of(input)
    checks = ambiguity_check is not False
    if checks and _has_several_orders(laid):
        fitting = [f for f in formats if input.is_contiguous(f)]  # type: ignore[attr-defined]
        if len(fitting) != 1:
            raise RuntimeError(_AMBIGUOUS.format(list(laid.shape), laid.stride))
    in_rows, last = input.is_contiguous(), input.is_contiguous(channels_last)  # type: ignore[attr-defined]
    if in_rows and not last:
        return tuple(range(len(laid.shape)))
    if last and not in_rows:
        return (0, 2, 3, 1)
    order = _by_stride(laid)
    if ambiguity_check and any(
        _compared(laid, inner, outer) >= 0 for outer, inner in itertools.pairwise(order)
    ):
        raise RuntimeError(_AMBIGUOUS.format(list(laid.shape), laid.stride))
    return order


_AMBIGUOUS = (
    "The tensor does not have unique dim order, or cannot map to exact one of the given memory "
    "formats: its shape is {} and its stride {}. Leave out ambiguity_check for one of the orders."
)


def _has_several_orders(laid: Layout) -> bool:
    return 1 in laid.shape or any(a == b for a, b in itertools.pairwise(laid.stride))


def _compared(laid: Layout, a: int, b: int) -> int:
    """-1 where dim `a` lies inside `b`, 1 where it lies outside, 0 where that is open."""
    inner, outer = laid.stride[a], laid.stride[b]
    if 0 in (inner, outer):
        return 0
    if inner == outer:
        return 0 if laid.shape[b] >= laid.shape[a] else 1
    return -1 if inner < outer else 1


def _by_stride(laid: Layout) -> tuple[int, ...]:
    """The dims, outermost first; those whose place is open stay where they are."""
    dims = list(reversed(range(len(laid.shape))))
    for end in range(1, len(dims)):
        place = end
        for before in reversed(range(end)):
            compared = _compared(laid, dims[before], dims[place])
            if compared < 0:
                break
            if compared > 0:
                dims[before], dims[place] = dims[place], dims[before]
                place = before
    return tuple(reversed(dims))


def _strided_over(
    where: str, make: Callable[[int], Tensor], size: Any, stride: Any, *, requires_grad: bool
) -> Tensor:
    """Elements of a size that lie `stride` apart in memory of their own."""
    shape, steps = only_size(where, size), as_ints(stride)
    if len(shape) != len(steps):
        raise RuntimeError(
            f"dimensionality of sizes ({len(shape)}) must match dimensionality of strides "
            f"({len(steps)}). Pass one stride for each dim."
        )
    memory = make(_needed(shape, steps))
    if steps == contiguous_stride(shape):
        made = memory.reshape(shape).detach()
    else:
        made = as_strided(memory, shape, steps).detach()
    return made.requires_grad_(requires_grad)


def _needed(shape: Sequence[int], steps: Sequence[int]) -> int:
    if 0 in shape:
        return 0
    return 1 + sum((n - 1) * step for n, step in zip(shape, steps, strict=True))


def empty_strided(
    size: Any,
    stride: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A tensor whose elements lie `stride` apart in memory, and whose values mean nothing.

    Raises RuntimeError for a negative stride, or where not every dim has one.

    >>> dg.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    return _strided_over(
        "empty_strided",
        lambda count: empty(count, dtype=dtype, device=device),
        size,
        stride,
        requires_grad=requires_grad,
    )


def empty_permuted(
    size: Any,
    physical_layout: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A tensor whose dims lie in memory in another order, and whose values mean nothing.

    `physical_layout` names the dims from the outermost in memory to the innermost. Raises
    RuntimeError where it does not name each once.

    >>> dg.empty_permuted((2, 3), (1, 0)).stride()
    (1, 2)
    """
    shape, order = only_size("empty_permuted", size), as_ints(physical_layout)
    if sorted(order) != list(range(len(shape))):
        raise RuntimeError(
            f"empty_permuted(): physical_layout must name each of the {len(shape)} dims of size "
            f"once, from 0, got {list(order)}."
        )
    return _strided_over(
        "empty_permuted",
        lambda count: empty(count, dtype=dtype, device=device),
        shape,
        permuted_stride(shape, order),
        requires_grad=requires_grad,
    )


def new_empty_strided(
    input: Tensor,
    size: Any,
    stride: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """`empty_strided`, with the dtype and device of this tensor.

    >>> dg.ones(1).new_empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    return _strided_over(
        "new_empty_strided",
        lambda count: new_empty(input, count, dtype=dtype, device=device),
        size,
        stride,
        requires_grad=requires_grad,
    )


__all__ = [
    "empty_permuted",
    "empty_strided",
    "get_device",
    "is_distributed",
    "is_same_size",
    "is_signed",
    "layout",
    "strided",
]
METHODS = (
    "dense_dim",
    "dim_order",
    "is_distributed",
    "is_pinned",
    "is_same_size",
    "is_shared",
    "new_empty_strided",
    "pin_memory",
    "sparse_dim",
    "to_dense",
)
"""The methods of Tensor that this file has."""
PROPERTIES = {"layout": _layout, **{name: _never(name, kind) for name, kind in _KINDS.items()}}
"""The properties of Tensor that this file has, by name."""
