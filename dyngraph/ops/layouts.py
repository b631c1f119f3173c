"""What kind of memory a tensor has, for programs that ask: dense, strided, on one of JAX's devices.

No tensor is sparse, quantized, nested or without data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dyngraph.ops.arguments import as_ints
from dyngraph.ops.factory_arguments import only_size
from dyngraph.ops.filled import empty, new_empty
from dyngraph.ops.placing import as_strided
from dyngraph.tensor import Tensor
from dyngraph.viewing import contiguous_stride


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


__all__ = ["empty_strided", "is_distributed", "is_same_size", "layout", "strided"]
METHODS = (
    "dense_dim",
    "is_distributed",
    "is_pinned",
    "is_same_size",
    "new_empty_strided",
    "pin_memory",
    "sparse_dim",
)
"""The methods of Tensor that this file has."""
PROPERTIES = {"layout": _layout, **{name: _never(name, kind) for name, kind in _KINDS.items()}}
"""The properties of Tensor that this file has, by name."""
