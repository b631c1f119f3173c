"""Orders in which a tensor's dims may lie in memory, by PyTorch's names.

Functions accept a `memory_format` where PyTorch's do, and make row-major tensors whatever it is:
XLA chooses the layout that its kernels work best with. `is_contiguous` and `dim_order` read it.
"""

from __future__ import annotations

from collections.abc import Sequence

from dyngraph.viewing import contiguous_stride


class memory_format:  # noqa: N801 - PyTorch's name
    """An order of dims in memory, from the outermost; `order` is None where any number of dims has
    one.

    >>> dg.channels_last.order
    (0, 2, 3, 1)
    """

    __slots__ = ("name", "order")

    def __init__(self, name: str, order: tuple[int, ...] | None = None) -> None:
        self.name = name
        self.order = order

    @property
    def ndim(self) -> int | None:
        """How many dims tensors of the format have; None where that is open."""
        return None if self.order is None else len(self.order)

    def stride(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The strides of a tensor of this shape in the format."""
        order = tuple(range(len(shape))) if self.order is None else self.order
        return permuted_stride(shape, order)

    def __repr__(self) -> str:
        return f"dyngraph.{self.name}"

    def __reduce__(self) -> str:
        return self.name


def permuted_stride(shape: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    """The strides of elements that follow each other with the dims in that order."""
    strides = contiguous_stride(tuple(shape[d] for d in order))
    return tuple(strides[order.index(d)] for d in range(len(shape)))


contiguous_format = memory_format("contiguous_format")
"""Row order."""
preserve_format = memory_format("preserve_format")
"""The order of the tensor that a function is given."""
channels_last = memory_format("channels_last", (0, 2, 3, 1))
"""Images with their channels innermost."""
channels_last_3d = memory_format("channels_last_3d", (0, 2, 3, 4, 1))
"""Volumes with their channels innermost."""

__all__ = [
    "channels_last",
    "channels_last_3d",
    "contiguous_format",
    "memory_format",
    "preserve_format",
]
METHODS = ()
"""The functions of this file that are methods of Tensor too."""
