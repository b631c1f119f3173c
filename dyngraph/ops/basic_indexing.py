"""Basic indices, of ints, slices, None and Ellipsis: which operator applies them, worked out once.

# Note [Basic indices have their starts as an input]
`x[3]` and `x[4]` run one kernel: what differs, where the slice starts, is a small array. Sizes and
steps of the slices are static.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from dyngraph.kernels import same
from dyngraph.ops.arguments import place
from dyngraph.ops.operator import define
from dyngraph.viewing import Viewing


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
    zeros = jnp.zeros(self_shape, grad.dtype)
    return _write_over(zeros, grad, starts, dims, sizes, steps, onto_zeros=True)


def _write_over(
    parent: Any,
    value: Any,
    starts: Any,
    dims: Any,
    sizes: Any,
    steps: Any,
    shape: Any = None,
    *,
    onto_zeros: bool = False,
) -> Any:
    """`parent` with `value` at those places."""
    corner = [jnp.int32(0)] * parent.ndim
    for i, dim in enumerate(dims):
        corner[dim] = starts[i]
    if any(step != 1 for step in steps):
        counts = [-(-size // step) for size, step in zip(sizes, steps, strict=True)]
        gaps = [(0, 0, step - 1) for step in steps]
        value = lax.pad(value.reshape(counts), jnp.zeros((), value.dtype), gaps)
        if not onto_zeros:
            written = lax.pad(jnp.ones(counts, bool), False, gaps)
            box = lax.dynamic_slice(parent, corner, sizes, allow_negative_indices=False)
            value = jnp.where(written, value, box)
    return lax.dynamic_update_slice(
        parent, value.reshape(sizes), corner, allow_negative_indices=False
    )


def _strided(
    array: np.ndarray, starts: np.ndarray, dims: Any, sizes: Any, steps: Any, shape: Any
) -> np.ndarray:
    first = dict(zip(dims, starts.tolist(), strict=True))
    index = [
        slice(first.get(dim, 0), first.get(dim, 0) + size, step)
        for dim, (size, step) in enumerate(zip(sizes, steps, strict=True))
    ]
    return np.reshape(array[tuple(index)], shape, copy=False)


_VIEWING = Viewing(_write_over, _strided)


def _define_basic(name: str, node: str) -> Callable[..., Any]:
    return define(
        name,
        _read_slices,
        node=node,
        signature="self, starts, dims, sizes, steps, shape",
        self=_write_slices,
        starts=None,
        viewing=_VIEWING,
    )


_select = _define_basic("getitem_select", "SelectBackward0")
_slice = _define_basic("getitem_slice", "SliceBackward0")
_unsqueezed_slice = _define_basic("getitem_unsqueeze", "UnsqueezeBackward0")


def _define_whole(name: str, node: str) -> Callable[..., Any]:
    """The basic indices that keep every element, in another shape."""
    return define(
        name,
        lambda self, *, shape: self.reshape(shape),
        node=node,
        signature="self, shape",
        self=lambda grad, self_shape: grad.reshape(self_shape),
        viewing=Viewing(
            lambda parent, value, shape: value.reshape(parent.shape),
            lambda array, shape: np.reshape(array, shape, copy=False),
        ),
    )


def _define_same(name: str, node: str) -> Callable[..., Any]:
    """The basic indices that change nothing."""
    return define(
        name,
        lambda self, *, shape: self,
        node=node,
        signature="self, shape",
        self=same,
        passes_on=True,
        viewing=Viewing(lambda parent, value, shape: value, lambda array, shape: array),
    )


_alias = _define_same("getitem_alias", "AliasBackward0")
_whole_slice = _define_same("getitem_all", "SliceBackward0")
_whole_select = _define_whole("getitem_only", "SelectBackward0")
_unsqueeze = _define_whole("getitem_none", "UnsqueezeBackward0")
_WHOLE = {_select: _whole_select, _slice: _whole_slice, _unsqueezed_slice: _unsqueeze}


@functools.lru_cache(maxsize=8192)
def basic_plan(
    shape: tuple[int, ...], items: tuple[Any, ...]
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The operator that applies a basic index to this shape, and its arguments after the tensor.

    `items` are ints, None, Ellipsis, and slices as tuples (start, stop, step).
    """
    used = sum(item is not None and item is not Ellipsis for item in items)
    if used > len(shape):
        raise too_many(len(shape), items)
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
    return run, (place(*starts), tuple(dims), tuple(sizes), tuple(steps), tuple(result))


def _slice_bounds(item: tuple[Any, ...], size: int) -> tuple[int, int, int]:
    step = item[2]
    if step is not None and step <= 0:
        raise ValueError("step must be greater than zero. Use flip() to reverse a dim.")
    return slice(*item).indices(size)


def too_many(ndim: int, items: Sequence[Any]) -> IndexError:
    if ndim == 0 and len(items) == 1:
        if type(items[0]) is int:
            return IndexError(
                "invalid index of a 0-dim tensor. Use `tensor.item()` to convert a 0-dim tensor to "
                "a number."
            )
        if type(items[0]) is tuple:
            return IndexError("slice() cannot be applied to a 0-dim tensor. Use x[...] or item().")
    return IndexError(f"too many indices for tensor of dimension {ndim}")
