"""Viewing: what makes an operator a view: how to write back, and where in memory it looks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np


class Viewing(NamedTuple):
    """How an operator that shows a part of its input, or all of it in another shape, is a view.

    `scatter(parent, value, *others, **statics)` is `parent` with `value` where the operator looks;
    None where it may show an element twice, or where that can only be said by positions.
    `strided(parent, *others, **statics)` is the operator on a numpy array, whose strides then are
    those of the view; `layout` is for operators that need more, from a Layout to the next. An
    operator that `reshapes` raises ValueError in `strided` where the elements are not laid out for
    it: it copies then. `pieces(shape, **statics)` gives, for an operator that shows several parts,
    the step to each: an operator, its other inputs, and its static arguments.
    """

    scatter: Callable[..., Any] | None = None
    strided: Callable[..., Any] | None = None
    layout: Callable[..., Layout] | None = None
    reshapes: bool = False
    pieces: Callable[..., Sequence[Any]] | None = None


class Layout(NamedTuple):
    """Where the elements of a view are in its root's memory, in elements."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements follow each other in row order."""
        return 0 in self.shape or all(
            n == 1 or step == own
            for n, step, own in zip(
                self.shape, self.stride, contiguous_stride(self.shape), strict=True
            )
        )

    @property
    def overlaps(self) -> bool:
        """Whether two of the elements may be one place in memory."""
        if 0 in self.shape:
            return False
        reach = 0
        for step, n in sorted(zip(self.stride, self.shape, strict=True)):
            if n > 1:
                if step <= reach:
                    return True
                reach += step * (n - 1)
        return False

    def after(self, kernel: Any, others: Sequence[Any]) -> Layout | None:
        """The layout after one more step; None where only a copy has it."""
        viewing, places = kernel.spec.viewing, [np.asarray(o) for o in others]
        if viewing.layout is not None:
            return viewing.layout(self, *places, **kernel.statics)
        # Nothing reads this array: its shape and strides are all that counts, with items of 1 byte.
        array = np.lib.stride_tricks.as_strided(np.empty(1, np.int8), self.shape, self.stride)
        try:
            result = viewing.strided(array, *places, **kernel.statics)
        except ValueError:
            return None
        moved = _address(result) - _address(array) if result.size else 0
        return Layout(result.shape, result.strides, self.offset + moved)


def _address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def contiguous_stride(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a tensor whose elements follow each other in row order, as PyTorch has them.

    >>> from dyngraph.viewing import contiguous_stride
    >>> contiguous_stride((2, 3, 4))
    (12, 4, 1)
    """
    stride, step = [], 1
    for n in reversed(shape):
        stride.append(step)
        step *= max(n, 1)
    return tuple(reversed(stride))


def look(array: Any, path: Sequence[Any], places: Sequence[Any]) -> Any:
    """What the steps of `path`, one after the other, show of `array`."""
    places = list(places)
    for kernel in path:
        count = len(kernel.spec.inputs) - 1
        array = kernel.function(array, *places[:count])
        del places[:count]
    return array


def write_through(root: Any, value: Any, path: Sequence[Any], places: Sequence[Any]) -> Any:
    """`root` with `value`, broadcast and cast, where `path` looks."""
    shown = jax.eval_shape(lambda r: look(r, path, places), root)
    value = fit_value(value, shown)
    parents, others = [root], []
    places = list(places)
    for kernel in path:
        count = len(kernel.spec.inputs) - 1
        others.append(places[:count])
        parents.append(kernel.function(parents[-1], *places[:count]))
        del places[:count]
    viewings = [kernel.spec.viewing for kernel in path]
    end = next((i for i, v in enumerate(viewings) if v.scatter is None), len(path))
    if end < len(path):
        rest = [place for every in others[end:] for place in every]
        value = _write_at(parents[end], value, path[end:], rest)
    for i in reversed(range(end)):
        value = viewings[i].scatter(parents[i], value, *others[i], **path[i].statics)
    return value


def _write_at(parent: Any, value: Any, path: Sequence[Any], places: Sequence[Any]) -> Any:
    """`parent` with `value` at the positions that `path` shows."""
    if any(k.spec.viewing.layout and k.spec.viewing.scatter for k in path):
        raise RuntimeError(
            f"can't write through {' and '.join(k.spec.name for k in path)} together: a part, a "
            "conjugate or another dtype of what may show an element twice. Write to a clone()."
        )
    numbers = jnp.arange(parent.size).reshape(parent.shape)
    flat = parent.reshape(-1).at[look(numbers, path, places)].set(value)
    return flat.reshape(parent.shape)


def fit_value(value: Any, shown: Any) -> Any:
    """`value` in the shape and dtype of what it is written over; RuntimeError where it can't be."""
    extra = max(value.ndim - len(shown.shape), 0)
    if set(value.shape[:extra]) <= {1}:
        value = value.reshape(value.shape[extra:])
    own = (1,) * (len(shown.shape) - value.ndim) + value.shape
    for dim, (n, wanted) in enumerate(zip(own, shown.shape, strict=False)):
        if n not in (1, wanted):
            raise RuntimeError(
                f"The expanded size of the tensor ({wanted}) must match the existing size ({n}) "
                f"at non-singleton dimension {dim}.  Target sizes: {list(shown.shape)}.  Tensor "
                f"sizes: {list(value.shape)}"
            )
    if value.ndim > len(shown.shape):
        raise RuntimeError(
            f"expand: the value of shape {list(value.shape)} has more dims than what it is "
            f"written to, of shape {list(shown.shape)}. Reshape it."
        )
    if jnp.iscomplexobj(value) and not jnp.issubdtype(shown.dtype, jnp.complexfloating):
        value = jnp.real(value)
    return jnp.broadcast_to(value.astype(shown.dtype), shown.shape)
