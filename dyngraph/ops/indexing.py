"""Indexing: `x[...]` in all its forms, gathering and scattering, sorting and searching.

JAX clamps an index that is out of bounds; here it raises, as in PyTorch. Bounds are checked on the
host before the kernel runs, which waits for the index (and for nothing else).

# Note [Basic indices have their starts as an input]
`x[3]` and `x[4]` run one kernel: what differs, where the slice starts, is a small array that is
kept by value. Sizes and steps of the slices are static.

# Note [Advanced indices]
An index with arrays in it is split as PyTorch does: ints, slices and None are applied first, as a
basic index, then the arrays are. So an int beside arrays selects and does not broadcast with them,
which is where the order of the result's dims differs from numpy's. Boolean masks become arrays of
positions on the host, since the result's shape depends on them.
"""

from __future__ import annotations

import functools
import inspect
import math
import operator
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from dyngraph import dtypes
from dyngraph.ops.operator import define
from dyngraph.storage import Storage
from dyngraph.tensor import Tensor, canonical_dim, new_tensor, wrap
from dyngraph.tracing import Tracer

# --- values on the host -----------------------------------------------------------------------

_SMALL = 1 << 14


@jax.jit
def _min_and_max(index: jax.Array) -> jax.Array:
    return jnp.stack([index.min(), index.max()])


def array_of(value: Any) -> Any:
    """The jax or numpy array behind a tensor, array, list or number."""
    if isinstance(value, Tensor):
        return value._cell.array
    return value if isinstance(value, (jax.Array, np.ndarray)) else np.asarray(value)


def outside(index: Any, low: int, high: int) -> int | None:
    """A value of `index` that is not in `range(low, high)`; None where there is none.

    Under a JAX trace the values are not known, and nothing is found.
    """
    array = array_of(index)
    if isinstance(array, Tracer) or not array.size:
        return None
    if array.size > _SMALL and isinstance(array, jax.Array):
        array = _min_and_max(array)
    array = np.asarray(array)
    smallest, largest = int(array.min()), int(array.max())
    if smallest < low:
        return smallest
    return largest if largest >= high else None


def _refuse_outside(index: Any, size: int, dim: int) -> None:
    """IndexError where a position, counted from either end, is out of bounds."""
    bad = outside(index, -size, size)
    if bad is not None:
        raise IndexError(f"index {bad} is out of bounds for dimension {dim} with size {size}")


def on_host(where: str, value: Any) -> np.ndarray:
    """The values of `value` as a numpy array; under a JAX trace there are none, and it raises."""
    array = array_of(value)
    if isinstance(array, Tracer):
        raise RuntimeError(
            f"{where}: the shape of the result depends on values, which are not known while a "
            "program is traced. Call it outside the compiled function, or use where()."
        )
    return np.asarray(array)


def _from_host(values: Any, like: Any) -> Tensor:
    """A tensor of host values on the device of `like`."""
    array, beside = jnp.asarray(values), array_of(like)
    if isinstance(beside, jax.Array) and array.devices() != beside.devices():
        array = jax.device_put(array, min(beside.devices(), key=lambda device: device.id))
    return wrap(array)


def with_parameters(
    function: Callable[..., Any], inputs: Sequence[str], statics: Sequence[str] = ()
) -> Callable[..., Any]:
    """`function`, which takes `*inputs, **statics`, with these parameters for `define` to read."""

    def named(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    kind = inspect.Parameter
    named.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [kind(n, kind.POSITIONAL_OR_KEYWORD) for n in inputs]
        + [kind(n, kind.KEYWORD_ONLY) for n in statics]
    )
    named.__module__ = function.__module__
    return named


# --- basic indices ----------------------------------------------------------------------------


def _read_slices(self: Any, starts: Any, *, dims: Any, sizes: Any, steps: Any, shape: Any) -> Any:
    """The box of `sizes` that begins at `starts` in `dims`, every `steps`-th of it, as `shape`."""
    corner = [jnp.int32(0)] * self.ndim
    for i, dim in enumerate(dims):
        corner[dim] = starts[i]
    box = lax.dynamic_slice(self, corner, sizes, allow_negative_indices=False)
    if any(step != 1 for step in steps):
        box = box[tuple(slice(None, None, step) for step in steps)]
    return box.reshape(shape)


def _write_slices(
    grad: Any, starts: Any, self_shape: Any, dims: Any, sizes: Any, steps: Any
) -> Any:
    """`grad` at those places in zeros of the input's shape."""
    if any(step != 1 for step in steps):
        counts = [-(-size // step) for size, step in zip(sizes, steps, strict=True)]
        gaps = [(0, 0, step - 1) for step in steps]
        grad = lax.pad(grad.reshape(counts), jnp.zeros((), grad.dtype), gaps)
    corner = [jnp.int32(0)] * len(self_shape)
    for i, dim in enumerate(dims):
        corner[dim] = starts[i]
    return lax.dynamic_update_slice(
        jnp.zeros(self_shape, grad.dtype),
        grad.reshape(sizes),
        corner,
        allow_negative_indices=False,
    )


def _define_basic(name: str, node: str) -> Callable[..., Any]:
    return define(
        name,
        _read_slices,
        node=node,
        signature="self, starts, dims, sizes, steps, shape",
        self=_write_slices,
        starts=None,
    )


_select = _define_basic("getitem_select", "SelectBackward0")
_slice = _define_basic("getitem_slice", "SliceBackward0")
_unsqueezed_slice = _define_basic("getitem_unsqueeze", "UnsqueezeBackward0")


def _define_whole(name: str, node: str) -> Callable[..., Any]:
    """The basic indices that keep every element."""
    return define(
        name,
        lambda self, *, shape: self.reshape(shape),
        node=node,
        signature="self, shape",
        self=lambda grad, self_shape: grad.reshape(self_shape),
    )


_alias = _define_whole("getitem_alias", "AliasBackward0")
_whole_select = _define_whole("getitem_only", "SelectBackward0")
_whole_slice = _define_whole("getitem_all", "SliceBackward0")
_unsqueeze = _define_whole("getitem_none", "UnsqueezeBackward0")
_WHOLE = {_select: _whole_select, _slice: _whole_slice, _unsqueezed_slice: _unsqueeze}


@functools.lru_cache(maxsize=8192)
def _starts(values: tuple[int, ...]) -> Tensor:
    # A tensor, because dispatch takes one faster than an array; made as outside any mode or trace,
    # because it is kept.
    with jax.ensure_compile_time_eval():
        return new_tensor(Storage(jnp.asarray(np.array(values, np.int32))))


@functools.lru_cache(maxsize=8192)
def _basic_plan(
    shape: tuple[int, ...], items: tuple[Any, ...]
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The operator that applies a basic index to this shape, and its arguments after the tensor.

    `items` are ints, None, Ellipsis, and slices as tuples (start, stop, step).
    """
    used = sum(item is not None and item is not Ellipsis for item in items)
    if used > len(shape):
        raise _too_many(len(shape), items)
    filled: list[Any] = []
    for item in items:
        if item is Ellipsis:
            filled += [(None, None, None)] * (len(shape) - used)
            used = len(shape)
        else:
            filled.append(item)
    filled += [(None, None, None)] * (len(shape) - used)

    starts: list[int] = []
    sizes: list[int] = []
    steps: list[int] = []
    dims: list[int] = []
    result: list[int] = []
    run: Callable[..., Any] = _slice if len(items) == 1 and type(items[0]) is tuple else _alias
    for item in filled:
        if item is None:
            result.append(1)
            run = _unsqueezed_slice
            continue
        dim = len(sizes)
        n = shape[dim]
        if type(item) is int:
            if not -n <= item < n:
                raise IndexError(f"index {item} is out of bounds for dimension {dim} with size {n}")
            start, step, size = item % n, 1, 1
            run = _select
        else:
            start, stop, step = _slice_bounds(item, n)
            count = len(range(start, stop, step))
            size = (count - 1) * step + 1 if count else 0
            result.append(count)
            if count != n:
                run = _slice
        sizes.append(size)
        steps.append(step)
        if size != n:
            dims.append(dim)
            starts.append(start)
    if not dims and all(step == 1 for step in steps):
        return _WHOLE.get(run, run), (tuple(result),)
    return run, (_starts(tuple(starts)), tuple(dims), tuple(sizes), tuple(steps), tuple(result))


def _slice_bounds(item: tuple[Any, ...], size: int) -> tuple[int, int, int]:
    step = item[2]
    if step is not None and step <= 0:
        raise ValueError("step must be greater than zero. Use flip() to reverse a dim.")
    return slice(*item).indices(size)


def _too_many(ndim: int, items: Sequence[Any]) -> IndexError:
    if ndim == 0 and len(items) == 1:
        if type(items[0]) is int:
            return IndexError(
                "invalid index of a 0-dim tensor. Use `tensor.item()` to convert a 0-dim tensor to "
                "a number."
            )
        if type(items[0]) is tuple:
            return IndexError("slice() cannot be applied to a 0-dim tensor. Use x[...] or item().")
    return IndexError(f"too many indices for tensor of dimension {ndim}")


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
    shape = input._cell.array.shape
    kind = type(index)
    if kind is int:
        run, arguments = _basic_plan(shape, (index,))
        return run(input, *arguments)
    if kind is not tuple:
        if isinstance(index, Tensor) and shape:
            array = index._cell.array
            if array.dtype.kind == "i" and array.ndim:
                _refuse_outside(index, shape[0], 0)
                return _index_operator(1)(input, index, (0,))
        index = (index,)
    items = []
    for item in index:
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
            return _getitem_advanced(input, index)
    run, arguments = _basic_plan(shape, tuple(items))
    return run(input, *arguments)


def _slice_int(value: Any) -> int | None:
    try:
        return None if value is None else operator.index(value)
    except TypeError:
        raise TypeError(
            "slice indices must be integers or None or have an __index__ method, got "
            f"{value!r} ({type(value).__name__})"
        ) from None


# --- advanced indices -------------------------------------------------------------------------


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
    kind = array_of(item).dtype.kind
    if kind not in "iub":
        raise IndexError(
            f"tensors used as indices must be long, int, byte or bool tensors, got "
            f"{array_of(item).dtype}. Convert the index by .long()."
        )
    if array_of(item).ndim == 0 and kind != "b":
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
        raise _too_many(len(shape), items)
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
        elif _is_mask(array_of(item)):
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
            arrays += [_as_int(positions) for positions in np.nonzero(mask)]
            dims += range(place, place + mask.ndim)
            basic += [whole] * mask.ndim
            source += mask.ndim
            place += mask.ndim
        else:
            _refuse_outside(item, shape[source], source)
            arrays.append(_as_int(item) if isinstance(item, np.ndarray) else item)
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


def _as_int(positions: np.ndarray) -> np.ndarray:
    """Positions as the integer type of index results, which JAX takes without a conversion."""
    return positions.astype(dtypes.default_int().dtype, copy=False)


def _getitem_advanced(input: Tensor, index: Sequence[Any]) -> Tensor:
    basic, arrays, dims = split_index(input._cell.array.shape, index)
    if basic is not None:
        run, arguments = _basic_plan(input._cell.array.shape, basic)
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
def _index_put_operator(count: int, *, accumulate: bool) -> Callable[..., Any]:
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
            "self": lambda grad: grad,
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
    basic, arrays, dims = split_index(input._cell.array.shape, items)
    if basic is not None or not arrays:
        raise IndexError(
            "index_put() takes arrays of positions, masks, and None for a whole dim, with at least "
            "one array. Write slices as x[...] = values."
        )
    return _index_put_operator(len(arrays), accumulate=bool(accumulate))(
        input, values, *arrays, dims
    )


# --- along a dim ------------------------------------------------------------------------------


def _check_along(where: str, index: Any, dim: int, self_shape: Any, src_shape: Any = None) -> None:
    """Raises where the index of gather() and scatter() does not fit."""
    if index.dtype not in (np.int32, np.int64):
        raise RuntimeError(
            f"{where}(): Expected dtype int32/int64 for index, got {index.dtype}. Convert it by "
            ".long()."
        )
    if max(index.ndim, 1) != max(len(self_shape), 1) or (
        src_shape is not None and max(index.ndim, 1) != max(len(src_shape), 1)
    ):
        src = "" if src_shape is None else f", src {list(src_shape)}"
        raise RuntimeError(
            "Index tensor must have the same number of dimensions as input tensor: got index "
            f"{list(index.shape)}, input {list(self_shape)}{src}"
        )
    fits = all(i <= n for d, (i, n) in enumerate(zip(index.shape, self_shape)) if d != dim)
    if src_shape is None:
        if not fits:
            raise RuntimeError(
                f"Size does not match, expected index {list(index.shape)} to be no larger than "
                f"self {list(self_shape)} apart from dimension {dim}"
            )
    elif not fits or any(i > n for i, n in zip(index.shape, src_shape)):
        raise RuntimeError(
            f"Expected index {list(index.shape)} to be no larger than self {list(self_shape)} "
            f"apart from dimension {dim} and to be no larger size than src {list(src_shape)}"
        )


def _grid(index: Any, dim: int) -> tuple[Any, ...]:
    """Positions that run along every dim but `dim`, where they are those of `index`."""
    return tuple(
        index
        if d == dim
        else jnp.arange(n).reshape([-1 if d == e else 1 for e in range(index.ndim)])
        for d, n in enumerate(index.shape)
    )


def _box(shape: Sequence[int]) -> tuple[slice, ...]:
    return tuple(slice(0, n) for n in shape)


def _get_along(self: Any, index: Any, dim: int) -> Any:
    """The elements of `self` at `index` along `dim`, in the shape of `index`."""
    flat = jnp.atleast_1d(index)
    return jnp.atleast_1d(self)[_grid(flat, dim)].reshape(index.shape)


def _update_along(self: Any, index: Any, dim: int, values: Any, how: str = "set") -> Any:
    """`self` with `values` (which may be larger than `index`) put at `index` along `dim`."""
    flat = jnp.atleast_1d(index)
    if values.ndim:
        values = values[_box(flat.shape)]
    place = jnp.atleast_1d(self).at[_grid(flat, dim)]
    return getattr(place, how)(values.astype(self.dtype)).reshape(self.shape)


def _zeros_along(grad: Any, index: Any, dim: int, shape: Any) -> Any:
    """What `_get_along` does to gradients, transposed."""
    return _update_along(jnp.zeros(shape, grad.dtype), index, dim, grad, "add")


def _src_grad(grad: Any, index: Any, src_shape: Any) -> Any:
    """Gradients of the elements of `src` that `index` reaches, and zeros for the others."""
    if grad.shape == src_shape or not src_shape:
        return grad
    return jnp.zeros(src_shape, grad.dtype).at[_box(index.shape)].set(grad)


def _check_values(index: Any, dim: int, shape: Sequence[int]) -> None:
    """Raises where an index of gather() or scatter() is out of bounds."""
    size = shape[dim] if shape else 1
    bad = outside(index, 0, size)
    if bad is not None:
        raise RuntimeError(f"index {bad} is out of bounds for dimension {dim} with size {size}")


def _gather_kernel(self: Any, index: Any, *, dim: int) -> Any:
    _check_along("gather", index, dim, self.shape)
    return _get_along(self, index, dim)


_gather = define(
    "gather",
    _gather_kernel,
    signature="self, index, dim",
    self=lambda grad, index, self_shape, dim: _zeros_along(grad, index, dim, self_shape),
    index=None,
)


def gather(input: Tensor, dim: int, index: Any, *, sparse_grad: bool = False) -> Tensor:
    """The elements at `index` along `dim`: `out[i, j] = input[index[i, j], j]` for `dim=0`.

    `index` has as many dims as `input`, and is no larger apart from `dim`. Raises RuntimeError
    where it does not fit or is out of bounds. `sparse_grad` is taken for PyTorch's sake: gradients
    are dense.

    >>> x = dg.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> dg.gather(x, 1, dg.tensor([[0, 0], [1, 0]]))
    tensor([[1., 1.],
            [4., 3.]])
    """
    shape = array_of(input).shape
    dim = canonical_dim(dim, len(shape))
    _check_values(index, dim, shape)
    return _gather(input, index, dim)


def _scatter_kernel(self: Any, index: Any, src: Any, *, dim: int) -> Any:
    whole = src.ndim == 0 and index.ndim > 0
    _check_along("scatter", index, dim, self.shape, None if whole else src.shape)
    if self.dtype != src.dtype and not src.weak_type:
        raise RuntimeError(
            f"scatter(): Expected self.dtype to be equal to src.dtype, got {self.dtype} and "
            f"{src.dtype}. Convert one of them by .to()."
        )
    return _update_along(self, index, dim, src)


def _without_places(grad: Any, index: Any, dim: int) -> Any:
    return _update_along(grad, index, dim, jnp.zeros((), grad.dtype))


# The rule for `src` is JAX's: of values written to one place, the one that stays has the gradient.
_scatter = define(
    "scatter",
    _scatter_kernel,
    signature="self, index, src, dim",
    self=_without_places,
    index=None,
)
_scatter_number = define(
    "scatter",
    _scatter_kernel,
    signature="self, index, src, dim",
    node="ScatterBackward1",
    self=_without_places,
    index=None,
    src=None,
)


def scatter(input: Tensor, dim: int, index: Any, src: Any = None, *, value: Any = None) -> Tensor:
    """A copy of `input` with `src` at `index` along `dim`: what `gather` reads, written.

    `out[index[i, j], j] = src[i, j]` for `dim=0`; `src` is a tensor, at least of the size of
    `index`, or a number (also as `value`). Which of several values for one place stays is not
    specified. Raises RuntimeError where the index does not fit or is out of bounds.

    >>> dg.zeros(2, 3).scatter(1, dg.tensor([[2], [0]]), 1.0)
    tensor([[0., 0., 1.],
            [1., 0., 0.]])
    """
    if (src is None) == (value is None):
        raise TypeError("scatter() takes either src, a tensor, or value, a number")
    shape = array_of(input).shape
    dim = canonical_dim(dim, len(shape))
    _check_values(index, dim, shape)
    values = value if src is None else src
    run = _scatter_number if isinstance(values, (int, float, complex)) else _scatter
    return run(input, index, values, dim)


def _scatter_add_kernel(self: Any, index: Any, src: Any, *, dim: int) -> Any:
    _check_along("scatter_add", index, dim, self.shape, src.shape)
    if self.dtype != src.dtype:
        raise RuntimeError(
            f"scatter(): Expected self.dtype to be equal to src.dtype, got {self.dtype} and "
            f"{src.dtype}. Convert one of them by .to()."
        )
    return _update_along(self, index, dim, src, "add")


_scatter_add = define(
    "scatter_add",
    _scatter_add_kernel,
    signature="self, index, src, dim",
    self=lambda grad: grad,
    index=None,
    src=lambda grad, index, src_shape, dim: _src_grad(
        _get_along(grad, index, dim), index, src_shape
    ),
)


def scatter_add(input: Tensor, dim: int, index: Any, src: Any) -> Tensor:
    """A copy of `input` with `src` added at `index` along `dim`; repeated places add up.

    Raises RuntimeError where the index does not fit or is out of bounds.

    >>> dg.zeros(3).scatter_add(0, dg.tensor([0, 0, 2]), dg.ones(3))
    tensor([2., 0., 1.])
    """
    shape = array_of(input).shape
    dim = canonical_dim(dim, len(shape))
    _check_values(index, dim, shape)
    return _scatter_add(input, index, src, dim)


_HOW = {"sum": "add", "mean": "add", "prod": "multiply", "amax": "max", "amin": "min"}


def _reduce_into(self: Any, index: Any, src: Any, dim: int, reduce: str, include_self: bool) -> Any:
    if not include_self:
        if reduce in ("amax", "amin"):
            if jnp.issubdtype(self.dtype, jnp.inexact):
                limit = -math.inf if reduce == "amax" else math.inf
            else:
                info = jnp.iinfo(self.dtype)
                limit = info.min if reduce == "amax" else info.max
            first = jnp.asarray(limit, self.dtype)
        else:
            first = jnp.asarray(1 if reduce == "prod" else 0, self.dtype)
        self = _update_along(self, index, dim, first)
    out = _update_along(self, index, dim, src, _HOW[reduce])
    if reduce == "mean":
        count = _reduced_count(index, dim, self.shape, include_self)
        if jnp.issubdtype(self.dtype, jnp.inexact):
            return out / count.astype(self.dtype)
        return out // count.astype(self.dtype)
    return out


def _reduced_count(index: Any, dim: int, shape: Any, include_self: bool) -> Any:
    """How many terms a mean has at each place; at least 1."""
    first = jnp.full(shape, int(include_self), jnp.int32)
    one = jnp.ones((), jnp.int32)
    return jnp.maximum(_update_along(first, index, dim, one, "add"), 1)


def _scatter_reduce_kernel(
    self: Any, index: Any, src: Any, *, dim: int, reduce: str, include_self: bool
) -> Any:
    _check_along("scatter_reduce", index, dim, self.shape, src.shape)
    if self.dtype != src.dtype:
        raise RuntimeError(
            f"scatter(): Expected self.dtype to be equal to src.dtype, got {self.dtype} and "
            f"{src.dtype}. Convert one of them by .to()."
        )
    return _reduce_into(self, index, src, dim, reduce, include_self)


def _unless_replaced(grad: Any, index: Any, dim: int, include_self: bool) -> Any:
    """The gradient of `self`, which counts for nothing where it was replaced."""
    if include_self:
        return grad
    return _update_along(grad, index, dim, jnp.zeros((), grad.dtype))


def _shared(grad: Any, index: Any, dim: int, reduce: str, include_self: bool) -> Any:
    """The gradient of each term of a sum or a mean, at the place that they went to."""
    if reduce == "sum":
        return grad
    return grad / _reduced_count(index, dim, grad.shape, include_self).astype(grad.dtype)


def _define_reduce(name: str, **rules: Any) -> Callable[..., Any]:
    return define(
        name,
        _scatter_reduce_kernel,
        signature="self, index, src, dim, reduce, include_self",
        node="ScatterReduceBackward0",
        index=None,
        **rules,
    )


_scatter_linear = _define_reduce(
    "scatter_reduce_sum",
    self=lambda grad, index, dim, reduce, include_self: _unless_replaced(
        _shared(grad, index, dim, reduce, include_self), index, dim, include_self
    ),
    src=lambda grad, index, src_shape, dim, reduce, include_self: _src_grad(
        _get_along(_shared(grad, index, dim, reduce, include_self), index, dim), index, src_shape
    ),
)


def _among_extremes(
    grad: Any, self: Any, index: Any, src: Any, result: Any, dim: int, include_self: bool
) -> tuple[Any, Any]:
    """Gradients of an extreme: shared equally by all terms that reach it."""
    src = jnp.atleast_1d(src)[_box(jnp.atleast_1d(index).shape)].reshape(index.shape)
    of_self = (self == result).astype(grad.dtype)
    of_self = _unless_replaced(of_self, index, dim, include_self)
    of_src = (src == _get_along(result, index, dim)).astype(grad.dtype)
    share = grad / jnp.maximum(_update_along(of_self, index, dim, of_src, "add"), 1)
    return of_self * share, of_src * _get_along(share, index, dim)


_scatter_extreme = _define_reduce(
    "scatter_reduce_extreme",
    self=lambda grad, self, index, src, result, dim, include_self: _among_extremes(
        grad, self, index, src, result, dim, include_self
    )[0],
    src=lambda grad, self, index, src, result, src_shape, dim, include_self: _src_grad(
        _among_extremes(grad, self, index, src, result, dim, include_self)[1], index, src_shape
    ),
)


def _among_factors(
    grad: Any, self: Any, index: Any, src: Any, result: Any, dim: int, include_self: bool
) -> tuple[Any, Any]:
    """Gradients of a product, by division; a factor 0 is left out of the product first."""
    src = jnp.atleast_1d(src)[_box(jnp.atleast_1d(index).shape)].reshape(index.shape)
    self_1 = jnp.where(self == 0, 1, self)
    without = _reduce_into(self_1, index, src, dim, "prod", include_self)
    of_self = _unless_replaced(grad * without / self_1, index, dim, include_self)
    zero = src == 0
    zeros = _update_along(jnp.zeros(self.shape, jnp.int32), index, dim, zero, "add")
    zeros = _get_along(zeros, index, dim)
    filled = _reduce_into(self, index, jnp.where(zero, 1, src), dim, "prod", include_self)
    of_zero = jnp.where(zeros == 1, _get_along(grad * filled, index, dim), 0)
    of_others = _get_along(grad * result, index, dim) / jnp.where(zero, 1, src)
    return of_self, jnp.where(zero, of_zero, of_others)


_scatter_prod = _define_reduce(
    "scatter_reduce_prod",
    self=lambda grad, self, index, src, result, dim, include_self: _among_factors(
        grad, self, index, src, result, dim, include_self
    )[0],
    src=lambda grad, self, index, src, result, src_shape, dim, include_self: _src_grad(
        _among_factors(grad, self, index, src, result, dim, include_self)[1], index, src_shape
    ),
)
_REDUCERS = {
    "sum": _scatter_linear,
    "mean": _scatter_linear,
    "prod": _scatter_prod,
    "amax": _scatter_extreme,
    "amin": _scatter_extreme,
}


def scatter_reduce(
    input: Tensor, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Reduces the elements of `src` that `index` sends to one place, with what stands there.

    `reduce` is sum, prod, mean, amax or amin; without `include_self`, `input` only counts where
    nothing arrives. Ties of amax and amin share the gradient equally. Raises RuntimeError where the
    index does not fit or is out of bounds.

    >>> src = dg.tensor([1.0, 2.0, 3.0])
    >>> dg.zeros(2).scatter_reduce(0, dg.tensor([0, 0, 1]), src, "mean", include_self=False)
    tensor([1.5000, 3.0000])
    """
    run = _REDUCERS.get(reduce)
    if run is None:
        raise RuntimeError(
            f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}"
        )
    shape = array_of(input).shape
    dim = canonical_dim(dim, len(shape))
    _check_values(index, dim, shape)
    return run(input, index, src, dim, reduce, bool(include_self))


# --- slices along a dim -----------------------------------------------------------------------


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
    out = _read_rows(self, index, dim)
    return out if self.ndim else out.reshape(index.shape)


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


def index_select(input: Tensor, dim: int, index: Any) -> Tensor:
    """The slices at `index`, a vector, along `dim`; slices named twice add up in the gradient.

    Raises IndexError where the index is negative or too large.

    >>> dg.index_select(dg.tensor([[1, 2, 3], [4, 5, 6]]), 1, dg.tensor([2, 0]))
    tensor([[3, 1],
            [6, 4]])
    """
    shape = array_of(input).shape
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
    self=lambda grad: grad,
    index=None,
    source=lambda grad, index, alpha, source_shape, dim: (
        _read_rows(grad, index, dim) * alpha
    ).reshape(source_shape),
    alpha=None,
)


def index_add(input: Tensor, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Tensor:
    """A copy of `input` with `alpha * source` added to the slices at `index` along `dim`.

    Slices named twice add up. Raises IndexError where the index is out of bounds, RuntimeError
    where `source` does not fit.

    >>> dg.zeros(3).index_add(0, dg.tensor([0, 2, 0]), dg.ones(3), alpha=2)
    tensor([4., 0., 2.])
    """
    shape = array_of(input).shape
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
    shape = array_of(input).shape
    dim = canonical_dim(dim, len(shape))
    _refuse_outside(index, shape[dim] if shape else 1, dim)
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


def index_copy(input: Tensor, dim: int, index: Any, source: Any) -> Tensor:
    """A copy of `input` with the slices at `index` along `dim` replaced by those of `source`.

    Raises IndexError where the index is out of bounds, RuntimeError where `source` does not fit.

    >>> dg.zeros(3).index_copy(0, dg.tensor([2, 0]), dg.tensor([1.0, 2.0]))
    tensor([2., 0., 1.])
    """
    shape = array_of(input).shape
    dim = canonical_dim(dim, len(shape))
    size = shape[dim] if shape else 1
    bad = outside(index, 0, size)
    if bad is not None:
        raise IndexError(
            f"index_copy_(): index {bad} is out of bounds for dimension {dim} with size {size}"
        )
    return _index_copy(input, index, source, dim)


_take = define(
    "take",
    lambda self, index: self.reshape(-1)[index],
    self=lambda grad, index, self_shape: (
        jnp.zeros(math.prod(self_shape), grad.dtype).at[index].add(grad).reshape(self_shape)
    ),
    index=None,
)


def take(input: Tensor, index: Any) -> Tensor:
    """The elements at `index` of the input seen as one row, in the shape of `index`.

    Raises IndexError where the index is out of bounds; negative ones count from the end.

    >>> dg.take(dg.tensor([[1, 2], [3, 4]]), dg.tensor([0, -1]))
    tensor([1, 4])
    """
    size = array_of(input).size
    bad = outside(index, -size, size)
    if bad is not None:
        raise IndexError(
            f"out of range: tried to access index {bad} on a tensor of {size} elements."
        )
    return _take(input, index)


def _spread(shape: Sequence[int], other: Sequence[int], dim: int) -> tuple[int, ...]:
    """`shape` broadcast with `other` in every dim but `dim`."""
    free = [1 if d == dim else n for d, n in enumerate(other)]
    own = [1 if d == dim else n for d, n in enumerate(shape)]
    whole = np.broadcast_shapes(own, free)
    return (*whole[:dim], shape[dim], *whole[dim + 1 :])


def _take_along_dim_kernel(self: Any, indices: Any, *, dim: int) -> Any:
    if self.ndim != indices.ndim:
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, "
            f"but got {self.ndim} dimensions for input, and {indices.ndim} dimensions for indices"
        )
    whole = jnp.broadcast_to(self, _spread(self.shape, indices.shape, dim))
    return _get_along(
        whole, jnp.broadcast_to(indices, _spread(indices.shape, self.shape, dim)), dim
    )


def _take_along_dim_grad(grad: Any, indices: Any, self_shape: Any, dim: int) -> Any:
    whole = jnp.broadcast_to(indices, _spread(indices.shape, self_shape, dim))
    return _zeros_along(grad, whole, dim, _spread(self_shape, indices.shape, dim))


_take_along_dim = define(
    "take_along_dim",
    _take_along_dim_kernel,
    node="GatherBackward0",
    signature="self, indices, dim",
    self=_take_along_dim_grad,
    indices=None,
)


def take_along_dim(input: Tensor, indices: Any, dim: int | None = None) -> Tensor:
    """`gather` whose input and indices broadcast apart from `dim`: reads what `argsort` returns.

    Without `dim` the input is seen as one row, and `take` reads it. Raises IndexError where an
    index is out of bounds.

    >>> x = dg.tensor([[3.0, 1.0], [2.0, 4.0]])
    >>> dg.take_along_dim(x, dg.argsort(x, dim=1), dim=1)
    tensor([[1., 3.],
            [2., 4.]])
    """
    if dim is None:
        flat = array_of(indices).size
        taken = take(input, indices)
        return taken if taken.ndim == 1 else _whole_slice(taken, (flat,))
    shape = array_of(input).shape
    dim = canonical_dim(dim, len(shape))
    _refuse_outside(indices, shape[dim] if shape else 1, dim)
    return _take_along_dim(input, indices, dim)


# --- masks ------------------------------------------------------------------------------------


def _masked_fill(self: Any, mask: Any, value: Any) -> Any:
    if mask.dtype != bool:
        raise RuntimeError(
            f"masked_fill_ only supports boolean masks, but got mask with dtype {mask.dtype}. "
            "Convert it by .bool()."
        )
    if value.ndim:
        raise RuntimeError(
            "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with "
            f"{value.ndim} dimension(s). Use where()."
        )
    if not jnp.can_cast(value.dtype, self.dtype, "same_kind"):
        raise RuntimeError(
            f"value cannot be converted to type {self.dtype} without overflow, got a value of "
            f"{value.dtype}"
        )
    return jnp.where(mask, value.astype(self.dtype), self)


_fill_rules: dict[str, Any] = {
    "self": lambda grad, mask: jnp.where(mask, jnp.zeros((), grad.dtype), grad),
    "mask": None,
}
_masked_fill_number = define("masked_fill", _masked_fill, **_fill_rules, value=None)
_masked_fill_tensor = define(
    "masked_fill",
    _masked_fill,
    node="MaskedFillBackward1",
    **_fill_rules,
    value=lambda grad, mask: jnp.where(mask, grad, jnp.zeros((), grad.dtype)),
)


def masked_fill(input: Tensor, mask: Any, value: Any) -> Tensor:
    """The input with `value`, a number or a tensor without dims, wherever `mask` is True.

    `mask`, of booleans, broadcasts with the input. Raises RuntimeError for any other dtype.

    >>> dg.ones(3).masked_fill(dg.tensor([True, False, True]), 0.0)
    tensor([0., 1., 0.])
    """
    run = _masked_fill_tensor if isinstance(value, Tensor) else _masked_fill_number
    return run(input, mask, value)


_masked_select = define(
    "masked_select",
    lambda self, positions, *, shape: jnp.broadcast_to(self, shape).reshape(-1)[positions],
    signature="self, positions, shape",
    self=lambda grad, positions, shape: (
        jnp.zeros(math.prod(shape), grad.dtype).at[positions].add(grad).reshape(shape)
    ),
    positions=None,
)


def masked_select(input: Tensor, mask: Any) -> Tensor:
    """The elements where `mask` is True, in a row; input and mask broadcast.

    The length depends on the mask's values, so that each new length compiles a kernel, and under a
    compiled step it raises RuntimeError.

    >>> dg.masked_select(dg.tensor([1.0, 2.0, 3.0]), dg.tensor([True, False, True]))
    tensor([1., 3.])
    """
    values = on_host("masked_select", mask)
    if values.dtype != bool:
        raise RuntimeError(
            f"masked_select: expected BoolTensor for mask, got {values.dtype}. Use mask.bool()."
        )
    shape = np.broadcast_shapes(array_of(input).shape, values.shape)
    positions = np.flatnonzero(np.broadcast_to(values, shape))
    return _masked_select(input, _as_int(positions), shape)


def _masked_scatter_kernel(self: Any, mask: Any, source: Any) -> Any:
    if mask.dtype != bool:
        raise RuntimeError(
            f"masked_scatter_ only supports boolean masks, but got mask with dtype {mask.dtype}. "
            "Convert it by .bool()."
        )
    if self.dtype != source.dtype:
        raise RuntimeError(
            "masked_scatter: expected self and source to have same dtypes but got "
            f"{self.dtype} and {source.dtype}. Convert one of them by .to()."
        )
    shape = np.broadcast_shapes(self.shape, mask.shape)
    mask = jnp.broadcast_to(mask, shape)
    order = (jnp.cumsum(mask.reshape(-1)) - 1).reshape(shape)
    return jnp.where(mask, source.reshape(-1)[jnp.maximum(order, 0)], self)


_masked_scatter = define("masked_scatter", _masked_scatter_kernel, mask=None)


def masked_scatter(input: Tensor, mask: Any, source: Any) -> Tensor:
    """The input with the elements of `source`, in order, where `mask` is True.

    Raises RuntimeError where `source` has fewer elements than the mask has places.

    >>> dg.zeros(3).masked_scatter(dg.tensor([True, False, True]), dg.tensor([1.0, 2.0]))
    tensor([1., 0., 2.])
    """
    array, values = array_of(mask), array_of(source)
    if not isinstance(array, Tracer):
        shape = np.broadcast_shapes(array_of(input).shape, array.shape)
        count = int(np.broadcast_to(np.asarray(array), shape).sum())
        if count > values.size:
            raise RuntimeError(
                "masked_scatter: source has too few elements for the places of the mask, "
                f"got {count} places and {values.size} elements"
            )
    return _masked_scatter(input, mask, source)


# --- positions of values ----------------------------------------------------------------------


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
        return tuple(_from_host(_as_int(p), input) for p in np.nonzero(np.atleast_1d(values)))
    return _from_host(_as_int(np.argwhere(values)), input)


def argwhere(input: Tensor) -> Tensor:
    """Where the input is not zero, (count, ndim), as numpy names it: `nonzero(input)`.

    >>> dg.argwhere(dg.tensor([[0, 1], [2, 0]]))
    tensor([[0, 1],
            [1, 0]])
    """
    return nonzero(input)


def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The different values of the input (or slices along `dim`), always in ascending order.

    With `return_inverse` also the position in them of each element, with `return_counts` how often
    each occurs; several results come as a tuple. It can't be traced, and has no gradient.

    >>> dg.unique(dg.tensor([3, 1, 3]), return_counts=True)
    (tensor([1, 3]), tensor([1, 2]))
    """
    values = on_host("unique", input)
    axis = None if dim is None else canonical_dim(dim, values.ndim)
    results = np.unique(
        values, return_inverse=return_inverse, return_counts=return_counts, axis=axis
    )
    if not isinstance(results, tuple):
        return _from_host(results, input)
    first, *rest = results
    if return_inverse and axis is None:
        rest[0] = rest[0].reshape(values.shape)
    return (_from_host(first, input), *(_from_host(_as_int(r), input) for r in rest))


# --- order ------------------------------------------------------------------------------------


def _order(self: Any, dim: int, *, descending: bool = False) -> Any:
    """Positions, along `dim`, that sort; equal values keep their order, NaN is the largest."""
    if self.ndim == 0:
        return jnp.zeros((), dtypes.default_int().dtype)
    order = jnp.argsort(self, axis=dim, stable=True, descending=descending)
    return order.astype(dtypes.default_int().dtype)


def _sort(self: Any, *, dim: int = -1, descending: bool = False) -> Any:
    dim = canonical_dim(dim, self.ndim)
    indices = _order(self, dim, descending=descending)
    return _get_along(self, indices, dim), indices


def _unsort(grads: Any, indices: Any, self_shape: Any, dim: int) -> Any:
    """The gradient of values that were read at `indices` along `dim`."""
    return _zeros_along(grads[0], indices, canonical_dim(dim, len(self_shape)), self_shape)


_sorted = define(
    "sort",
    _sort,
    signature="self, dim=-1, descending=False",
    outputs=("values", "indices"),
    returns="sort",
    self=_unsort,
)


def sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    """The values in order along `dim`, and where they stood: a named tuple (values, indices).

    Equal values always keep their order, whatever `stable` says; NaN counts as the largest.

    >>> values, indices = dg.sort(dg.tensor([3.0, 1.0, 2.0]), descending=True)
    >>> values, indices
    (tensor([3., 2., 1.]), tensor([0, 2, 1]))
    """
    return _sorted(input, dim, bool(descending))


_argsort = define(
    "argsort",
    lambda self, *, dim, descending: _order(
        self, canonical_dim(dim, self.ndim), descending=descending
    ),
    signature="self, dim, descending",
    differentiable=False,
)


def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """The positions that sort the input along `dim`; equal values keep their order.

    >>> dg.argsort(dg.tensor([3.0, 1.0, 2.0]))
    tensor([1, 2, 0])
    """
    return _argsort(input, dim, bool(descending))


def _topk(self: Any, *, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    dim = canonical_dim(dim, self.ndim)
    if not 0 <= k <= (self.shape[dim] if self.ndim else 1):
        raise RuntimeError(
            f"selected index k out of range: got {k} for dim {dim} of shape {list(self.shape)}"
        )
    if self.ndim == 0:
        return self, jnp.zeros((), dtypes.default_int().dtype)
    if largest and jnp.issubdtype(self.dtype, jnp.number):
        values, indices = lax.top_k(jnp.moveaxis(self, dim, -1), k)
        return (
            jnp.moveaxis(values, -1, dim),
            jnp.moveaxis(indices.astype(dtypes.default_int().dtype), -1, dim),
        )
    order = lax.slice_in_dim(_order(self, dim, descending=largest), 0, k, axis=dim)
    return _get_along(self, order, dim), order


topk = define(
    "topk",
    _topk,
    signature="self, k, dim=-1, largest=True, sorted=True",
    outputs=("values", "indices"),
    returns="topk",
    self=_unsort,
    doc="""The `k` largest values along `dim` (or smallest), and where they stood.

    A named tuple (values, indices), in order whatever `sorted` says; of equal values the first ones
    are taken, and NaN counts as the largest. Raises RuntimeError where `k` is too large.

    >>> dg.topk(dg.tensor([1.0, 4.0, 2.0, 3.0]), 2).values
    tensor([4., 3.])
    """,
)


def _kthvalue(self: Any, *, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    dim = canonical_dim(dim, self.ndim)
    if not 1 <= k <= (self.shape[dim] if self.ndim else 1):
        raise RuntimeError(
            f"kthvalue(): selected number k out of range for dimension {dim}: got {k} for shape "
            f"{list(self.shape)}"
        )
    order = _order(self, dim)
    if self.ndim == 0:
        return self, order
    indices = lax.slice_in_dim(order, k - 1, k, axis=dim)
    values = _get_along(self, indices, dim)
    return (values, indices) if keepdim else (values.squeeze(dim), indices.squeeze(dim))


def _kthvalue_grad(grads: Any, indices: Any, self_shape: Any, dim: int, keepdim: bool) -> Any:
    (grad,) = grads
    dim = canonical_dim(dim, len(self_shape))
    if self_shape and not keepdim:
        grad, indices = jnp.expand_dims(grad, dim), jnp.expand_dims(indices, dim)
    return _zeros_along(grad, indices, dim, self_shape)


kthvalue = define(
    "kthvalue",
    _kthvalue,
    signature="self, k, dim=-1, keepdim=False",
    outputs=("values", "indices"),
    returns="kthvalue",
    self=_kthvalue_grad,
    doc="""The `k`-th smallest value along `dim`, counted from 1, and where it stood.

    A named tuple (values, indices). Raises RuntimeError where `k` is out of range.

    >>> dg.kthvalue(dg.tensor([3.0, 1.0, 2.0]), 2).values
    tensor(2.)
    """,
)

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
    if weights is not None and array_of(weights).shape != values.shape:
        raise RuntimeError(
            f"weights should be 1-d and have the same length as input, got "
            f"{list(array_of(weights).shape)} and {list(values.shape)}"
        )
    return _bincount(input, weights, max(int(values.max(initial=-1)) + 1, minlength))


_isin = define(
    "isin",
    lambda elements, test_elements, *, invert: jnp.isin(elements, test_elements, invert=invert),
    signature="elements, test_elements, invert",
    differentiable=False,
)


def isin(
    elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False
) -> Tensor:
    """Which elements occur in `test_elements` (with `invert`, which do not), as booleans.

    `assume_unique` is taken for PyTorch's sake and changes nothing.

    >>> dg.isin(dg.tensor([1, 2, 3]), dg.tensor([2, 5]))
    tensor([False,  True, False])
    """
    return _isin(elements, test_elements, bool(invert))


def _triangle(
    indices: Callable[..., Any], row: int, col: int, offset: int, dtype: Any, device: Any
) -> Tensor:
    if row < 0 or col < 0:
        raise RuntimeError(f"row and col must be non-negative, got {row} and {col}")
    found = np.stack(indices(row, offset, col))
    kind = dtypes.default_int() if dtype is None else dtypes.as_dtype(dtype)
    made = wrap(jnp.asarray(found.astype(kind.dtype)))
    return made if device is None else made.to(device)  # type: ignore[attr-defined]


def tril_indices(
    row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None
) -> Tensor:
    """The positions on and below a diagonal of a (row, col) matrix: (2, count), row by row.

    `offset` moves the diagonal, upwards for positive values.

    >>> dg.tril_indices(2, 2)
    tensor([[0, 1, 1],
            [0, 0, 1]])
    """
    return _triangle(np.tril_indices, row, col, offset, dtype, device)


def triu_indices(
    row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None
) -> Tensor:
    """The positions on and above a diagonal of a (row, col) matrix: (2, count), row by row.

    `offset` moves the diagonal, upwards for positive values.

    >>> dg.triu_indices(2, 2)
    tensor([[0, 0, 1],
            [0, 1, 1]])
    """
    return _triangle(np.triu_indices, row, col, offset, dtype, device)


__all__ = [
    "argsort",
    "argwhere",
    "bincount",
    "bucketize",
    "gather",
    "index_add",
    "index_copy",
    "index_fill",
    "index_put",
    "index_select",
    "isin",
    "kthvalue",
    "masked_fill",
    "masked_scatter",
    "masked_select",
    "nonzero",
    "scatter",
    "scatter_add",
    "scatter_reduce",
    "searchsorted",
    "sort",
    "take",
    "take_along_dim",
    "topk",
    "tril_indices",
    "triu_indices",
    "unique",
]

METHODS = (
    "argsort",
    "argwhere",
    "bincount",
    "gather",
    "index_add",
    "index_copy",
    "index_fill",
    "index_put",
    "index_select",
    "isin",
    "kthvalue",
    "masked_fill",
    "masked_scatter",
    "masked_select",
    "nonzero",
    "scatter",
    "scatter_add",
    "scatter_reduce",
    "sort",
    "take",
    "take_along_dim",
    "topk",
    "unique",
)
