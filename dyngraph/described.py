"""Described: what a tensor's value is like: its shape, its dtype, and where it lives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dyngraph import devices, dtypes
from dyngraph.placement import place_of

if TYPE_CHECKING:
    from dyngraph.storage import Storage


class Size(tuple[int, ...]):
    """A shape: a tuple of ints that prints as PyTorch's and counts its elements.

    >>> dg.ones(2, 3).shape
    dyngraph.Size([2, 3])
    """

    __slots__ = ()

    def numel(self) -> int:
        """The number of elements of a tensor of this shape."""
        count = 1
        for n in self:
            count *= n
        return count

    def __repr__(self) -> str:
        return f"dyngraph.Size({list(self)})"


def canonical_dim(dim: int, ndim: int) -> int:
    """`dim` counted from the front; IndexError where a tensor of `ndim` dims has none such."""
    limit = max(ndim, 1)
    if not -limit <= dim < limit:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-limit}, {limit - 1}], but got "
            f"{dim})"
        )
    return dim % limit


class Described:
    """The part of Tensor that tells of its value without handing it out."""

    __slots__ = ()

    if TYPE_CHECKING:
        _cell: Storage

    @property
    def shape(self) -> Size:
        """The length of each dim."""
        return Size(self._cell.held.shape)

    @property
    def dtype(self) -> dtypes.dtype:
        """The type of the elements."""
        return dtypes.of(self._cell.held.dtype)

    @property
    def device(self) -> devices.device:
        """Where the value lives."""
        return devices.of(self._cell.held)

    @property
    def sharding(self) -> Any:
        """How the value is spread over devices, a `jax.sharding.Sharding`; None while JAX traces.

        >>> mesh = dg.sharding.mesh(data=1)
        >>> dg.sharding.shard(dg.ones(2), mesh, "data").sharding.spec
        P('data',)
        """
        return place_of(self._cell.held)

    @property
    def ndim(self) -> int:
        """The number of dims."""
        return self._cell.held.ndim

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the length of one dim."""
        if dim is None:
            return self.shape
        shape = self._cell.held.shape
        if not shape:
            raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
        return shape[canonical_dim(dim, len(shape))]

    def dim(self) -> int:
        """The number of dims."""
        return self._cell.held.ndim

    def numel(self) -> int:
        """The number of elements."""
        return self._cell.held.size

    nelement = numel
    ndimension = dim

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self._cell.held.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self._cell.held.nbytes

    def element_size(self) -> int:
        """Bytes of one element."""
        return self.itemsize

    def get_device(self) -> int:
        """The index of an accelerator, -1 on the CPU."""
        device = self.device
        return -1 if device.type == "cpu" else device.index or 0

    @property
    def is_cuda(self) -> bool:
        """Whether the value lives on a GPU."""
        return self.device.type == "cuda"

    @property
    def is_cpu(self) -> bool:
        """Whether the value lives in the host's memory."""
        return self.device.type == "cpu"

    def is_floating_point(self) -> bool:
        """Whether the dtype is float16, bfloat16, float32 or float64."""
        return self.dtype.is_floating_point

    def is_complex(self) -> bool:
        """Whether the dtype is complex."""
        return self.dtype.is_complex

    def is_signed(self) -> bool:
        """Whether the dtype has values below zero."""
        return self.dtype.is_signed
