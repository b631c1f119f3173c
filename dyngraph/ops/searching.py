"""Positions and counts of values: where they are, between which they fall, how many there are.

Nothing here has a gradient.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dyngraph import dtypes
from dyngraph.ops.arguments import as_ints
from dyngraph.ops.host_values import array_of, as_int, described, from_host, on_host
from dyngraph.ops.operator import define
from dyngraph.ops.out import takes_out
from dyngraph.ops.parts import unbind
from dyngraph.tensor import Tensor

# --- positions of values ----------------------------------------------------------------------


@takes_out
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """Where the input is not zero: one row of positions an element, (count, ndim).

    With `as_tuple`, one vector of positions a dim, which index the input. The result's shape
    depends on values, so that it can't be traced.

    >>> dg.nonzero(dg.tensor([0, 3, 0, 4]))
    tensor([[1],
            [3]])
    """
    values = on_host("nonzero", input)
    if as_tuple:
        return tuple(from_host(as_int(p), input) for p in np.nonzero(np.atleast_1d(values)))
    return from_host(as_int(np.argwhere(values)), input)


def argwhere(input: Tensor) -> Tensor:
    """Where the input is not zero, (count, ndim), as numpy names it: `nonzero(input)`.

    >>> dg.argwhere(dg.tensor([[0, 1], [2, 0]]))
    tensor([[0, 1],
            [1, 0]])
    """
    return nonzero(input)


def _nonzero_static(self: Any, *, size: int, fill_value: int) -> Any:
    if size < 0:
        raise RuntimeError(
            f"nonzero_static: 'size' must be a non-negative integer, got {size}. Pass the number "
            "of rows of the result."
        )
    if self.ndim == 0:
        return jnp.zeros((size, 0), dtypes.default_int().dtype)
    found = jnp.argwhere(self, size=size, fill_value=fill_value)
    return found.astype(dtypes.default_int().dtype)


_first_nonzero = define(
    "nonzero_static",
    _nonzero_static,
    signature="self, size, fill_value",
    differentiable=False,
)


@takes_out
def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """The first `size` rows of `nonzero`, and rows of `fill_value` where there are fewer.

    The shape does not depend on values, so that it can be traced.

    >>> dg.nonzero_static(dg.tensor([0, 3, 0, 4]), size=3)
    tensor([[ 1],
            [ 3],
            [-1]])
    """
    return _first_nonzero(input, int(size), int(fill_value))


# --- search and counts ------------------------------------------------------------------------


def _searchsorted_kernel(
    sorted_sequence: Any, values: Any, sorter: Any = None, *, right: bool, out_int32: bool
) -> Any:
    if sorter is not None:
        sorted_sequence = jnp.take_along_axis(sorted_sequence, sorter, axis=-1)
    find = functools.partial(jnp.searchsorted, side="right" if right else "left")
    lead = sorted_sequence.shape[:-1]
    if sorted_sequence.ndim > 1:
        if values.shape[:-1] != lead:
            raise RuntimeError(
                "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 "
                "dimensions of boundaries tensor and input value tensor must match, but we got "
                f"boundaries tensor {list(sorted_sequence.shape)} and input value tensor "
                f"{list(values.shape)}"
            )
        rows = jax.vmap(find)(
            sorted_sequence.reshape(-1, sorted_sequence.shape[-1]),
            values.reshape(-1, values.shape[-1]),
        )
        found = rows.reshape(values.shape)
    else:
        found = find(sorted_sequence, values)
    return found.astype(np.int32 if out_int32 else dtypes.default_int().dtype)


_searchsorted = define(
    "searchsorted",
    _searchsorted_kernel,
    signature="sorted_sequence, values, sorter, right, out_int32",
    differentiable=False,
)


@takes_out
def searchsorted(
    sorted_sequence: Any,
    input: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Any = None,
) -> Tensor:
    """Where each value would be inserted to keep the last dim of `sorted_sequence` in order.

    With `right` (or `side="right"`) after equal values, otherwise before them. The sequence is a
    vector, or has the leading dims of `input`; `sorter` puts it in order.

    >>> dg.searchsorted(dg.tensor([1.0, 3.0, 5.0]), dg.tensor([3.0, 6.0]))
    tensor([1, 3])
    """
    if side not in (None, "left", "right"):
        raise RuntimeError(
            f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}"
        )
    if side == "left" and right:
        raise RuntimeError(
            "torch.searchsorted(): side and right can't be set to opposites, got side of left "
            "while right was True"
        )
    return _searchsorted(
        sorted_sequence, input, sorter, bool(right) or side == "right", bool(out_int32)
    )


@takes_out
def bucketize(
    input: Any, boundaries: Any, *, out_int32: bool = False, right: bool = False
) -> Tensor:
    """The number of the bucket that each value falls into, between `boundaries` in order.

    Number i is `boundaries[i - 1] < v <= boundaries[i]`, and with `right`,
    `boundaries[i - 1] <= v < boundaries[i]`.

    >>> dg.bucketize(dg.tensor([0.5, 1.0, 9.0]), dg.tensor([1.0, 2.0]))
    tensor([0, 0, 2])
    """
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


def _bincount_kernel(self: Any, weights: Any = None, *, length: int) -> Any:
    if weights is None:
        return jnp.zeros(length, dtypes.default_int().dtype).at[self].add(1)
    if not jnp.issubdtype(weights.dtype, jnp.floating):
        weights = weights.astype(dtypes.get_default_dtype().dtype)
    return jnp.zeros(length, weights.dtype).at[self].add(weights)


_bincount = define(
    "bincount", _bincount_kernel, signature="self, weights, length", differentiable=False
)


def bincount(input: Tensor, weights: Any = None, minlength: int = 0) -> Tensor:
    """How often each of 0, 1, 2, ... occurs in a vector; with `weights`, the sum of theirs.

    The result is as long as the largest value asks for, and at least `minlength`. Raises
    RuntimeError for negative values and other shapes. It can't be traced.

    >>> dg.bincount(dg.tensor([0, 2, 2]), minlength=4)
    tensor([1, 0, 2, 0])
    """
    values = on_host("bincount", input)
    if values.ndim != 1 or values.dtype.kind not in "iu" or (values.size and values.min() < 0):
        raise RuntimeError(
            "bincount only supports 1-d non-negative integral inputs, got "
            f"{values.dtype}{list(values.shape)}"
            + (f" with {values.min()}" if values.dtype.kind in "iu" and values.size else "")
        )
    if minlength < 0:
        raise RuntimeError(f"minlength should be >= 0, got {minlength}")
    if weights is not None and described(weights).shape != values.shape:
        raise RuntimeError(
            f"weights should be 1-d and have the same length as input, got "
            f"{list(described(weights).shape)} and {list(values.shape)}"
        )
    return _bincount(input, weights, max(int(values.max(initial=-1)) + 1, minlength))


_isin = define(
    "isin",
    lambda elements, test_elements, *, invert: jnp.isin(elements, test_elements, invert=invert),
    signature="elements, test_elements, invert",
    differentiable=False,
)


@takes_out
def isin(
    elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False
) -> Tensor:
    """Which elements occur in `test_elements` (with `invert`, which do not), as booleans.

    `assume_unique` is taken for PyTorch's sake and changes nothing.

    >>> dg.isin(dg.tensor([1, 2, 3]), dg.tensor([2, 5]))
    tensor([False,  True, False])
    """
    return _isin(elements, test_elements, bool(invert))


def _coordinates(self: Any, *, shape: tuple[int, ...]) -> Any:
    sizes = np.array(shape, self.dtype)
    steps = np.array([math.prod(shape[i + 1 :]) for i in range(len(shape))], self.dtype)
    return self[..., None] // steps % sizes


_unravelled = define("unravel_index", _coordinates, differentiable=False)


def unravel_index(indices: Tensor, shape: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Positions in a flattened tensor of `shape` as one tensor of coordinates for each dim.

    Positions out of bounds count round, as PyTorch's do. Raises TypeError for positions that are
    no integers, ValueError for a negative size, RuntimeError for one of 0.

    >>> dg.unravel_index(dg.tensor([4, 1]), (3, 2))
    (tensor([2, 0]), tensor([0, 1]))
    """
    array = array_of(indices)
    if array.dtype.kind not in "iu":
        raise TypeError(
            f"expected 'indices' to be integer dtype, but got {array.dtype}. Convert it by .long()."
        )
    if isinstance(shape, int):
        shape = (shape,)
    elif not isinstance(shape, Sequence) or isinstance(shape, str):
        raise TypeError(
            f"expected 'shape' to be int or sequence of ints, but got {type(shape).__name__}"
        )
    sizes = as_ints(tuple(shape))
    if any(n < 0 for n in sizes):
        raise ValueError(f"'shape' cannot have negative values, but got {sizes}")
    if 0 in sizes and array.size:
        raise RuntimeError(f"unravel_index(): a tensor of shape {sizes} has no positions")
    if not sizes:
        return ()
    return unbind(_unravelled(indices, sizes), -1)


__all__ = [
    "argwhere",
    "bincount",
    "bucketize",
    "isin",
    "nonzero",
    "nonzero_static",
    "searchsorted",
    "unravel_index",
]

METHODS = (
    "argwhere",
    "bincount",
    "isin",
    "nonzero",
    "nonzero_static",
)
"""The functions of this file that are methods of Tensor too."""
