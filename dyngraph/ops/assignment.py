"""Assignment to a part of a tensor: `x[index] = value`.

A basic index is written over without being read: the write goes along the view's path. An index
with arrays or masks writes at positions.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from dyngraph import dtypes
from dyngraph.dispatch import lift
from dyngraph.kernels import Kernel
from dyngraph.ops.basic_indexing import basic_plan
from dyngraph.ops.complexes import imag, real
from dyngraph.ops.conversion import beside
from dyngraph.ops.indexing import basic_items, index_put_operator, split_index
from dyngraph.ops.masks import masked_fill
from dyngraph.storage import Storage, cell_of
from dyngraph.tensor import Tensor, new_tensor
from dyngraph.viewing import contiguous_stride
from dyngraph.views import Step
from dyngraph.writing import assign, assign_part, overwritten, snapshot


def setitem(input: Tensor, index: Any, value: Any) -> None:
    """`input[index] = value`: a number, or what broadcasts to `input[index]`, cast to its dtype.

    Index arrays and masks may stand beside ints, slices, None and Ellipsis. Raises IndexError for
    an index out of bounds, RuntimeError for a value that does not fit.

    >>> x = dg.zeros(2, 3)
    >>> x[0, 1:] = dg.tensor([1.0, 2.0])
    >>> x[x == 0] = -1
    >>> x
    tensor([[-1.,  1.,  2.],
            [-1., -1., -1.]])
    """
    own = input._cell.held
    if not isinstance(value, Tensor):
        if isinstance(value, (list, tuple, str)) or value is None:
            raise TypeError(
                f"can't assign a {type(value).__name__} to a tensor of {input.dtype}. Make it a "
                "tensor by dg.tensor(...)."
            )
        value = new_tensor(cell_of(lift(value, "__setitem__", "value")))
    elif value._cell.held.shape:
        value = beside(value, input)
    items = basic_items(index)
    if items is None:
        _put_at(input, index if type(index) is tuple else (index,), value)
        return
    assign_part(input, _step(own.shape, items), value)


def _step(shape: tuple[int, ...], items: tuple[Any, ...]) -> Step:
    """The step to what a basic index shows of a tensor of this shape."""
    kernel, places = _step_before_reading(shape, items)
    return kernel, tuple([cell.array for cell in places])


@functools.lru_cache(maxsize=8192)
def _step_before_reading(
    shape: tuple[int, ...], items: tuple[Any, ...]
) -> tuple[Kernel, list[Storage]]:
    run, arguments = basic_plan(shape, items)
    count = len(run.spec.inputs) - 1  # type: ignore[attr-defined]
    return run.table[arguments[count:]], [a._cell for a in arguments[:count]]  # type: ignore[attr-defined]


def _is_mask_of(input: Tensor, item: Any) -> bool:
    return (
        isinstance(item, Tensor)
        and item.dtype == dtypes.bool
        and item.ndim > 0
        and item.shape == input.shape
    )


def _put_at(input: Tensor, index: tuple[Any, ...], value: Tensor) -> None:
    """Writes at an index with arrays or masks in it."""
    (first, *more) = index
    if not more and not value.ndim and _is_mask_of(input, first):
        assign(input, masked_fill(snapshot(input), first, value), "index_put_")
        return
    if first is False:
        return
    shape = input._cell.held.shape
    basic, arrays, dims = split_index(shape, index)
    part = input
    if basic is not None:
        if not arrays:
            assign_part(input, _step(shape, basic), value)
            return
        run, arguments = basic_plan(shape, basic)
        part = run(input, *arguments)
    if not arrays:
        assign(input, overwritten(snapshot(input), value), "copy_")
        return
    put = index_put_operator(len(arrays), accumulate=False)
    assign(part, put(snapshot(part), value, *arrays, dims), "index_put_")


def fill_diagonal_(input: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Writes a number to the main diagonal; with `wrap` the diagonal of a tall matrix starts again.

    Raises RuntimeError for tensors of fewer than two dims, and of more where the dims differ.

    >>> dg.zeros(2, 2).fill_diagonal_(1.0)
    tensor([[1., 0.],
            [0., 1.]])
    """
    shape = tuple(input.shape)
    if len(shape) < 2:
        raise RuntimeError("dimensions must larger than 1")
    if len(shape) > 2 and len(set(shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    step = sum(contiguous_stride(shape))
    places = np.arange(0, int(np.prod(shape)), step)
    if len(shape) == 2 and not wrap:
        places = places[: min(shape)]
    rows = np.unravel_index(places, shape)
    setitem(input, tuple(rows), fill_value)
    return input


def _set_real(input: Tensor, value: Any) -> None:
    setitem(real(input), ..., value)


def _set_imag(input: Tensor, value: Any) -> None:
    setitem(imag(input), ..., value)


__all__: list[str] = []
METHODS = ("fill_diagonal_",)
"""The methods of Tensor that this file has."""
PROPERTIES = {"real": (real, _set_real), "imag": (imag, _set_imag)}
"""The properties of Tensor that can be assigned to."""
