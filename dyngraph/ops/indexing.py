"""Indexing, `x[...]` in all its forms: `getitem` and `index_put`.

JAX clamps an index that is out of bounds; here it raises, as in PyTorch. Bounds are checked on the
host before the kernel runs, which waits for the index (and for nothing else).

# Note [Advanced indices]
An index with arrays in it is split as PyTorch does: ints, slices and None are applied first, as a
basic index, then the arrays are. So an int beside arrays selects and does not broadcast with them,
which is where the order of the result's dims differs from numpy's. Boolean masks become arrays of
positions on the host, since the result's shape depends on them.
"""

from __future__ import annotations

import functools
import operator
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dyngraph.kernels import same
from dyngraph.ops.arguments import with_parameters
from dyngraph.ops.basic_indexing import basic_plan, too_many
from dyngraph.ops.host_values import array_of, as_int, described, on_host, refuse_outside
from dyngraph.ops.operator import define
from dyngraph.tensor import Tensor
from dyngraph.tracing import Tracer


def getitem(input: Tensor, index: Any) -> Tensor:
    """`input[index]`: ints, slices, None, Ellipsis, masks, arrays of positions, in any mixture.

    Negative ints count from the end; arrays (tensors, numpy and jax arrays, lists) broadcast with
    each other, and positions named twice add up in the gradient. Raises IndexError for an index out
    of bounds or too many of them, ValueError for a slice whose step is not positive.

    >>> x = dg.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)
    >>> x[1, ::2]
    tensor([4., 6.], grad_fn=<SliceBackward0>)
    >>> x[:, [0, 0]].sum().backward()
    >>> x.grad
    tensor([[2., 0., 0.],
            [2., 0., 0.]])
    """
    shape = input._cell.held.shape
    kind = type(index)
    if kind is int:
        run, arguments = basic_plan(shape, (index,))
        return run(input, *arguments)
    if kind is not tuple and isinstance(index, Tensor) and shape:
        array = index._cell.held
        if array.dtype.kind == "i" and array.ndim:
            refuse_outside(index, shape[0], 0)
            return _index_operator(1)(input, index, (0,))
    items = basic_items(index)
    if items is None:
        return _getitem_advanced(input, index if isinstance(index, tuple) else (index,))
    run, arguments = basic_plan(shape, items)
    return run(input, *arguments)


def basic_items(index: Any) -> tuple[Any, ...] | None:
    """An index of ints, slices, None and Ellipsis as `basic_plan` takes it; None for another."""
    items = []
    for item in index if type(index) is tuple else (index,):
        kind = type(item)
        if kind is slice:
            start, stop, step = item.start, item.stop, item.step
            if (
                (start is None or type(start) is int)
                and (stop is None or type(stop) is int)
                and (step is None or type(step) is int)
            ):
                items.append((start, stop, step))
            else:
                items.append((_slice_int(start), _slice_int(stop), _slice_int(step)))
        elif kind is int or item is None or item is Ellipsis:
            items.append(item)
        else:
            return None
    return tuple(items)


def _slice_int(value: Any) -> int | None:
    try:
        return None if value is None else operator.index(value)
    except TypeError:
        raise TypeError(
            "slice indices must be integers or None or have an __index__ method, got "
            f"{value!r} ({type(value).__name__})"
        ) from None


def _advanced_item(item: Any) -> Any:
    """An item of an index as int, slice tuple, None, Ellipsis, or tensor, jax or numpy array."""
    if item is None or item is Ellipsis:
        return item
    if isinstance(item, slice):
        return (_slice_int(item.start), _slice_int(item.stop), _slice_int(item.step))
    if isinstance(item, (bool, np.bool_)):
        return np.asarray(item)
    if not isinstance(item, (Tensor, jax.Array, np.ndarray)):
        if hasattr(item, "__index__"):
            return operator.index(item)
        if not isinstance(item, (list, tuple, range)):
            raise IndexError(
                "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables "
                f"are valid indices (got {type(item).__name__})"
            )
        item = np.asarray(item)
        if not item.size:
            item = item.astype(np.int32)
    kind = described(item).dtype.kind
    if kind not in "iub":
        raise IndexError(
            f"tensors used as indices must be long, int, byte or bool tensors, got "
            f"{described(item).dtype}. Convert the index by .long()."
        )
    if described(item).ndim == 0 and kind != "b" and not isinstance(array_of(item), Tracer):
        return int(on_host("indexing", item))
    return item


def split_index(
    shape: tuple[int, ...], index: Sequence[Any]
) -> tuple[tuple[Any, ...] | None, list[Any], tuple[int, ...]]:
    """An index as a basic one, to be applied first, and arrays of positions in dims of its result.

    See Note [Advanced indices]. The basic index is None where it would change nothing.
    """
    items = [_advanced_item(item) for item in index]

    def consumed(item: Any) -> int:
        if item is None or item is Ellipsis:
            return 0
        if type(item) in (int, tuple):
            return 1
        array = array_of(item)
        return array.ndim if _is_mask(array) else 1

    used = sum(consumed(item) for item in items)
    if used > len(shape):
        raise too_many(len(shape), items)
    whole = (None, None, None)
    basic: list[Any] = []
    arrays: list[Any] = []
    dims: list[int] = []
    source = place = 0  # the next dim of the input, and of the basic index's result
    for item in items:
        if item is Ellipsis:
            basic += [whole] * (len(shape) - used)
            source += len(shape) - used
            place += len(shape) - used
            used = len(shape)
        elif item is None or type(item) in (int, tuple):
            basic.append(item)
            source += item is not None
            place += type(item) is not int
        elif _is_mask(described(item)):
            mask = _mask(item)
            if mask.ndim == 0:
                basic.append(None)
                arrays.append(np.zeros(int(mask), np.int32))
                dims.append(place)
                place += 1
                continue
            if mask.shape != shape[source : source + mask.ndim]:
                wrong = next(d for d, n in enumerate(mask.shape) if n != shape[source + d])
                raise IndexError(
                    f"The shape of the mask {list(mask.shape)} at index {wrong} does not match the "
                    f"shape of the indexed tensor {list(shape)} at index {source + wrong}"
                )
            arrays += [as_int(positions) for positions in np.nonzero(mask)]
            dims += range(place, place + mask.ndim)
            basic += [whole] * mask.ndim
            source += mask.ndim
            place += mask.ndim
        else:
            refuse_outside(item, shape[source], source)
            arrays.append(as_int(item) if isinstance(item, np.ndarray) else item)
            dims.append(place)
            basic.append(whole)
            source += 1
            place += 1
    changes = any(item != whole for item in basic)
    return tuple(basic) if changes else None, arrays, tuple(dims)


def _is_mask(array: Any) -> bool:
    return array.dtype == bool or array.dtype == np.uint8


def _mask(item: Any) -> np.ndarray:
    mask = on_host("indexing by a mask", item)
    if mask.dtype == np.uint8:
        warnings.warn(
            "indexing with dtype uint8 is now deprecated, please use a dtype bool instead. "
            "Convert a mask by .bool(), positions by .int().",
            UserWarning,
            stacklevel=4,
        )
    return mask.astype(bool)


def _getitem_advanced(input: Tensor, index: Sequence[Any]) -> Tensor:
    basic, arrays, dims = split_index(input._cell.held.shape, index)
    if basic is not None:
        run, arguments = basic_plan(input._cell.held.shape, basic)
        input = run(input, *arguments)
    if not arrays:
        return input
    return _index_operator(len(arrays))(input, *arrays, dims)


def _at(ndim: int, indices: Sequence[Any], dims: Sequence[int]) -> tuple[Any, ...]:
    """The index of `indices` in `dims`, all else whole; IndexError where they don't broadcast."""
    try:
        np.broadcast_shapes(*(i.shape for i in indices))
    except ValueError:
        raise IndexError(
            "shape mismatch: indexing tensors could not be broadcast together with shapes "
            + ", ".join(str(list(i.shape)) for i in indices)
        ) from None
    where: list[Any] = [slice(None)] * ndim
    for dim, positions in zip(dims, indices, strict=True):
        where[dim] = positions
    return tuple(where)


@functools.cache
def _index_operator(count: int) -> Callable[..., Any]:
    """`self[..., index0, ..., index1, ...]` for `count` arrays of positions."""
    names = [f"index{i}" for i in range(count)]

    def read(self: Any, *indices: Any, dims: Any) -> Any:
        return self[_at(self.ndim, indices, dims)]

    def write(grad: Any, self_shape: Any, dims: Any, *indices: Any) -> Any:
        where = _at(len(self_shape), indices, dims)
        return jnp.zeros(self_shape, grad.dtype).at[where].add(grad)

    rules: dict[str, Any] = dict.fromkeys(names)
    return define(
        "getitem_index",
        with_parameters(read, ["self", *names], ["dims"]),
        node="IndexBackward0",
        signature=", ".join(["self", *names, "dims"]),
        doc="Reads positions, see `getitem`.",
        self=with_parameters(write, ["grad", "self_shape", "dims", *names]),
        **rules,
    )


@functools.cache
def index_put_operator(count: int, *, accumulate: bool) -> Callable[..., Any]:
    """Writes at `count` arrays of positions."""
    names = [f"index{i}" for i in range(count)]

    def put(self: Any, values: Any, *indices: Any, dims: Any) -> Any:
        if values.dtype != self.dtype and not values.weak_type:
            raise RuntimeError(
                "Index put requires the source and destination dtypes match, got "
                f"{self.dtype} for the destination and {values.dtype} for the source. Convert one "
                "of them by .to()."
            )
        where = self.at[_at(self.ndim, indices, dims)]
        return where.add(values) if accumulate else where.set(values)

    def of_self(grad: Any, dims: Any, *indices: Any) -> Any:
        return grad.at[_at(grad.ndim, indices, dims)].set(0)

    def of_values(grad: Any, dims: Any, *indices: Any) -> Any:
        return grad[_at(grad.ndim, indices, dims)]

    # Of values that are written to one place one stays: that is in JAX's own rule, and not here.
    rules: dict[str, Any] = dict.fromkeys(names)
    if accumulate:
        rules |= {
            "self": same,
            "values": with_parameters(of_values, ["grad", "dims", *names]),
        }
    else:
        rules["self"] = with_parameters(of_self, ["grad", "dims", *names])
    return define(
        "index_put_accumulate" if accumulate else "index_put",
        with_parameters(put, ["self", "values", *names], ["dims"]),
        node="IndexPutBackward0",
        signature=", ".join(["self", "values", *names, "dims"]),
        doc="Writes at positions, see `index_put`.",
        **rules,
    )


def index_put(
    input: Tensor, indices: Sequence[Any], values: Any, accumulate: bool = False
) -> Tensor:
    """A copy of `input` with `values` at `input[indices]`; with `accumulate`, added there.

    `indices` is a tuple of integer arrays, masks, or None for a whole dim. Where a position is
    named twice without `accumulate`, the gradient goes to the value that stayed.

    >>> dg.zeros(3).index_put((dg.tensor([0, 2]),), dg.tensor([1.0, 2.0]))
    tensor([1., 0., 2.])
    """
    items = [slice(None) if item is None else item for item in indices]
    items = [np.atleast_1d(i) if isinstance(i, (int, np.integer)) else i for i in items]
    basic, arrays, dims = split_index(input._cell.held.shape, items)
    if basic is not None or not arrays:
        raise IndexError(
            "index_put() takes arrays of positions, masks, and None for a whole dim, with at least "
            "one array. Write slices as x[...] = values."
        )
    return index_put_operator(len(arrays), accumulate=bool(accumulate))(
        input, values, *arrays, dims
    )


newaxis = None
"""As an index, a dim of length 1."""

__all__ = ["index_put", "newaxis"]
METHODS = ("index_put",)
"""The functions of this file that are methods of Tensor too."""
