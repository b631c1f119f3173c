"""Whole slices along a dim, read and written at the positions of a vector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from dyngraph.kernels import same
from dyngraph.ops.host_values import array_of, described, outside, refuse_outside
from dyngraph.ops.operator import define
from dyngraph.ops.out import takes_out
from dyngraph.ops.scattering import scatter_reduce
from dyngraph.tensor import Tensor, canonical_dim


def _check_vector(where: str, index: Any) -> None:
    if index.ndim > 1:
        raise IndexError(
            f"{where}(): Index is supposed to be a vector, got shape {list(index.shape)}"
        )
    if index.dtype not in (np.int32, np.int64):
        raise RuntimeError(
            f"{where}(): Expected dtype int32 or int64 for index, got {index.dtype}. Convert it by "
            ".long()."
        )


def _rows(index: Any, dim: int) -> tuple[Any, ...]:
    """The index of whole slices along `dim`."""
    return (*[slice(None)] * dim, jnp.atleast_1d(index))


def _update_rows(self: Any, index: Any, dim: int, values: Any, how: str = "set") -> Any:
    place = jnp.atleast_1d(self).at[_rows(index, dim)]
    if values.ndim == 0 and self.ndim and how == "add":
        values = values.reshape([1] * self.ndim)
    return getattr(place, how)(values.astype(self.dtype)).reshape(self.shape)


def _read_rows(self: Any, index: Any, dim: int) -> Any:
    return jnp.atleast_1d(self)[_rows(index, dim)]


def _index_select_kernel(self: Any, index: Any, *, dim: int) -> Any:
    _check_vector("index_select", index)
    if not self.ndim and index.size != 1:
        raise IndexError(
            f"index_select(): Index to scalar can have only 1 value, got {index.size} value(s)"
        )
    out = _read_rows(self, index, dim)
    return out if self.ndim else out.reshape(())


_index_select = define(
    "index_select",
    _index_select_kernel,
    signature="self, index, dim",
    self=lambda grad, index, self_shape, dim: _update_rows(
        jnp.zeros(self_shape, grad.dtype), index, dim, grad, "add"
    ),
    index=None,
)


def _refuse_rows(index: Any, dim: int, shape: Sequence[int]) -> None:
    size = shape[dim] if shape else 1
    bad = outside(index, 0, size)
    if bad is not None:
        raise IndexError(
            f"index out of range in self: index {bad} is out of bounds for dimension {dim} with "
            f"size {size}"
        )


@takes_out
def index_select(input: Tensor, dim: int, index: Any) -> Tensor:
    """The slices at `index`, a vector, along `dim`; slices named twice add up in the gradient.

    Raises IndexError where the index is negative or too large.

    >>> dg.index_select(dg.tensor([[1, 2, 3], [4, 5, 6]]), 1, dg.tensor([2, 0]))
    tensor([[3, 1],
            [6, 4]])
    """
    shape = described(input).shape
    dim = canonical_dim(dim, len(shape))
    _refuse_rows(index, dim, shape)
    return _index_select(input, index, dim)


def _check_source(where: str, self: Any, index: Any, dim: int, source: Any) -> None:
    _check_vector(where, index)
    if self.dtype != source.dtype:
        raise RuntimeError(
            f"{where}(): self and source expected to have the same dtype, but got (self) "
            f"{self.dtype} and (source) {source.dtype}. Convert one of them by .to()."
        )
    count = source.shape[dim] if source.ndim else 1
    if index.size != count:
        raise RuntimeError(
            f"{where}(): Number of indices ({index.size}) should be equal to source.size(dim): "
            f"({count}), for dim: {dim}"
        )
    if source.ndim == self.ndim and any(
        a != b for d, (a, b) in enumerate(zip(source.shape, self.shape)) if d != dim
    ):
        raise RuntimeError(
            f"{where}(): source {list(source.shape)} must have the shape of self "
            f"{list(self.shape)} apart from dimension {dim}"
        )


def _index_add_kernel(self: Any, index: Any, source: Any, alpha: Any, *, dim: int) -> Any:
    _check_source("index_add", self, index, dim, source)
    return _update_rows(self, index, dim, source * alpha, "add")


_index_add = define(
    "index_add",
    _index_add_kernel,
    signature="self, index, source, alpha, dim",
    self=same,
    index=None,
    source=lambda grad, index, alpha, source_shape, dim: (
        _read_rows(grad, index, dim) * alpha
    ).reshape(source_shape),
    alpha=None,
)


@takes_out
def index_add(input: Tensor, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Tensor:
    """A copy of `input` with `alpha * source` added to the slices at `index` along `dim`.

    Slices named twice add up. Raises IndexError where the index is out of bounds, RuntimeError
    where `source` does not fit.

    >>> dg.zeros(3).index_add(0, dg.tensor([0, 2, 0]), dg.ones(3), alpha=2)
    tensor([4., 0., 2.])
    """
    shape = described(input).shape
    dim = canonical_dim(dim, len(shape))
    _refuse_rows(index, dim, shape)
    return _index_add(input, index, source, alpha, dim)


def _index_fill_kernel(self: Any, index: Any, value: Any, *, dim: int) -> Any:
    _check_vector("index_fill", index)
    if value.ndim:
        raise RuntimeError(
            "index_fill_ only supports a 0-dimensional value tensor, but got tensor with "
            f"{value.ndim} dimension(s)."
        )
    return _update_rows(self, index, dim, value)


def _without_rows(grad: Any, index: Any, dim: int) -> Any:
    return _update_rows(grad, index, dim, jnp.zeros((), grad.dtype))


_fill_rows: dict[str, Any] = {"self": _without_rows, "index": None}
_index_fill_number = define(
    "index_fill",
    _index_fill_kernel,
    signature="self, index, value, dim",
    **_fill_rows,
    value=None,
)
_index_fill_tensor = define(
    "index_fill",
    _index_fill_kernel,
    signature="self, index, value, dim",
    node="IndexFillBackward1",
    **_fill_rows,
    value=lambda grad, index, dim: grad - _without_rows(grad, index, dim),
)


def index_fill(input: Tensor, dim: int, index: Any, value: Any) -> Tensor:
    """A copy of `input` with the slices at `index` along `dim` filled with `value`.

    `value` is a number or a tensor without dims. IndexError where the index is out of bounds.

    >>> dg.zeros(2, 2).index_fill(1, dg.tensor([-1]), 3.0)
    tensor([[0., 3.],
            [0., 3.]])
    """
    shape = described(input).shape
    dim = canonical_dim(dim, len(shape))
    refuse_outside(index, shape[dim] if shape else 1, dim)
    run = _index_fill_tensor if isinstance(value, Tensor) else _index_fill_number
    return run(input, index, value, dim)


def _index_copy_kernel(self: Any, index: Any, source: Any, *, dim: int) -> Any:
    _check_source("index_copy", self, index, dim, source)
    return _update_rows(self, index, dim, source)


# The rule for `source` is JAX's: of slices written to one place, the one that stays has a gradient.
_index_copy = define(
    "index_copy",
    _index_copy_kernel,
    signature="self, index, source, dim",
    self=_without_rows,
    index=None,
)


@takes_out
def index_copy(input: Tensor, dim: int, index: Any, source: Any) -> Tensor:
    """A copy of `input` with the slices at `index` along `dim` replaced by those of `source`.

    Raises IndexError where the index is out of bounds, RuntimeError where `source` does not fit.

    >>> dg.zeros(3).index_copy(0, dg.tensor([2, 0]), dg.tensor([1.0, 2.0]))
    tensor([2., 0., 1.])
    """
    shape = described(input).shape
    dim = canonical_dim(dim, len(shape))
    size = shape[dim] if shape else 1
    bad = outside(index, 0, size)
    if bad is not None:
        raise IndexError(
            f"index_copy_(): index {bad} is out of bounds for dimension {dim} with size {size}"
        )
    return _index_copy(input, index, source, dim)


@takes_out
def index_reduce(
    input: Tensor, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True
) -> Tensor:
    """`scatter_reduce` of whole slices: `source` is combined into the slices at `index`.

    `reduce` is prod, mean, amax or amin; without `include_self`, `input` only counts where nothing
    arrives. Raises IndexError where the index is out of bounds, RuntimeError where `source` does
    not fit.

    >>> source = dg.tensor([1.0, 5.0, 3.0])
    >>> dg.zeros(2).index_reduce(0, dg.tensor([0, 1, 1]), source, "amax")
    tensor([1., 5.])
    """
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(
            f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got "
            f"{reduce}."
        )
    own, places, given = described(input), array_of(index), described(source)
    dim = canonical_dim(dim, own.ndim)
    _check_source("index_reduce", own, places, dim, given)
    _refuse_rows(index, dim, own.shape)
    along = [-1 if d == dim else 1 for d in range(given.ndim)]
    whole = jnp.broadcast_to(jnp.reshape(places, along), given.shape)
    return scatter_reduce(input, dim, whole, source, reduce, include_self=include_self)


__all__ = [
    "index_add",
    "index_copy",
    "index_fill",
    "index_reduce",
    "index_select",
]

METHODS = tuple(__all__)
"""The functions of this file that are methods of Tensor too."""
