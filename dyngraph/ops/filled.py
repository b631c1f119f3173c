"""Tensors filled with a constant: `zeros`, `full`, `eye`, and their `*_like` and `new_*` forms.

Nothing is copied to the device: constants are filled there by a kernel kept for each shape and
dtype. Every function takes `dtype`, `device` and `requires_grad`; `layout`, `pin_memory` and
`memory_format` are accepted as PyTorch's programs pass them, and change nothing.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from dyngraph import dtypes
from dyngraph.ops.arguments import titled
from dyngraph.ops.factory_arguments import (
    check_tensor,
    number,
    only_size,
    place_like,
    place_of,
    read_size,
)
from dyngraph.ops.literals import dtype_of_number, fit_numbers
from dyngraph.ops.operator import UNSET
from dyngraph.ops.out import takes_out
from dyngraph.tensor import Tensor, wrap

MAX_FILLERS = 2048
"""How many kernels that fill a tensor are kept."""


# --- constants --------------------------------------------------------------------------------


@functools.lru_cache(MAX_FILLERS)
def _filler(shape: tuple[int, ...], dtype: Any, place: Any, value: Any) -> Callable[..., Any]:
    """The kernel that fills a tensor with `value`, or with its argument where that is None."""
    if value is None:
        return jax.jit(lambda v: jnp.full(shape, v, dtype), out_shardings=place)
    return jax.jit(lambda: jnp.full(shape, value, dtype), out_shardings=place)


def _filled(shape: Any, value: int, dtype: Any, place: Any, requires_grad: bool) -> Tensor:
    wanted = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    array = _filler(shape, wanted.dtype, place, value)()
    return wrap(array, requires_grad=requires_grad)


def _full(
    where: str, shape: Any, fill_value: Any, dtype: Any, place: Any, requires_grad: bool
) -> Tensor:
    value = number(where, "fill_value", fill_value)
    wanted = dtype_of_number(type(value)) if dtype is None else dtypes.as_dtype(dtype)
    array = _filler(shape, wanted.dtype, place, None)(fit_numbers(value, wanted))
    return wrap(array, requires_grad=requires_grad)


def _constant(name: str, value: int, doc: str) -> Callable[..., Tensor]:
    def function(
        *sizes: Any,
        size: Any = UNSET,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        pin_memory: bool = False,
    ) -> Tensor:
        shape = read_size(name, sizes, size)
        return _filled(shape, value, dtype, place_of(device), requires_grad)

    return takes_out(titled(function, name, doc))


zeros = _constant(
    "zeros",
    0,
    """A tensor of zeros, in the default dtype unless told; sizes are numbers or one tuple.

    Raises RuntimeError for a negative size.

    >>> dg.zeros(2, 3)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """,
)

ones = _constant(
    "ones",
    1,
    """A tensor of ones, in the default dtype unless told; sizes are numbers or one tuple.

    >>> dg.ones(2, dtype=dg.int32)
    tensor([1, 1])
    """,
)


@takes_out
def empty(
    *sizes: Any,
    size: Any = UNSET,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A tensor whose values are not to be relied on: zeros, since JAX has no uninitialized arrays.

    >>> dg.empty(2, 3).shape
    dyngraph.Size([2, 3])
    """
    shape = read_size("empty", sizes, size)
    return _filled(shape, 0, dtype, place_of(device), requires_grad)


@takes_out
def full(
    size: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A tensor filled with one number, in the dtype that `dg.tensor` gives it unless told.

    >>> dg.full((2,), 7)
    tensor([7, 7])
    """
    shape = only_size("full", size)
    return _full("full", shape, fill_value, dtype, place_of(device), requires_grad)


@takes_out
def eye(
    n: int,
    m: int | None = None,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Ones on the diagonal, zeros elsewhere: (n, m), square without m.

    >>> dg.eye(2, 3)
    tensor([[1., 0., 0.],
            [0., 1., 0.]])
    """
    rows = operator.index(n)
    columns = rows if m is None else operator.index(m)
    for name, count in (("n", rows), ("m", columns)):
        if count < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {count}")
    wanted = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    array = _eye(rows, columns, wanted.dtype, place_of(device))()
    return wrap(array, requires_grad=requires_grad)


@functools.lru_cache(MAX_FILLERS)
def _eye(rows: int, columns: int, dtype: Any, place: Any) -> Callable[..., Any]:
    return jax.jit(lambda: jnp.eye(rows, columns, dtype=dtype), out_shardings=place)


# --- like another tensor ----------------------------------------------------------------------


def _constant_like(name: str, value: int, doc: str) -> Callable[..., Tensor]:
    def function(
        input: Tensor,
        *,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        pin_memory: bool = False,
        memory_format: Any = None,
    ) -> Tensor:
        check_tensor(name, input)
        wanted = input.dtype if dtype is None else dtype
        place = place_like(input, device)
        return _filled(input._cell.held.shape, value, wanted, place, requires_grad)

    return titled(function, name, doc)


zeros_like = _constant_like(
    "zeros_like",
    0,
    """Zeros with the shape, dtype and device of `input`, but not its history.

    >>> dg.zeros_like(dg.tensor([1, 2]))
    tensor([0, 0])
    """,
)

ones_like = _constant_like(
    "ones_like",
    1,
    """Ones with the shape, dtype and device of `input`, but not its history.

    >>> dg.ones_like(dg.zeros(2))
    tensor([1., 1.])
    """,
)

empty_like = _constant_like(
    "empty_like",
    0,
    """A tensor of the shape, dtype and device of `input`, whose values are not to be relied on.

    >>> dg.empty_like(dg.ones(2, 3)).shape
    dyngraph.Size([2, 3])
    """,
)


def full_like(
    input: Tensor,
    fill_value: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """One number in the shape, dtype and device of `input`; a fraction is cut off for integers.

    >>> dg.full_like(dg.tensor([1, 2]), 7.5)
    tensor([7, 7])
    """
    check_tensor("full_like", input)
    wanted = input.dtype if dtype is None else dtype
    place = place_like(input, device)
    return _full("full_like", tuple(input.shape), fill_value, wanted, place, requires_grad)


def _new_constant(name: str, value: int, doc: str) -> Callable[..., Tensor]:
    def function(
        input: Tensor,
        *sizes: Any,
        size: Any = UNSET,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        pin_memory: bool = False,
    ) -> Tensor:
        wanted = input.dtype if dtype is None else dtype
        place = place_like(input, device, same_shape=False)
        return _filled(read_size(name, sizes, size), value, wanted, place, requires_grad)

    return titled(function, name, doc)


new_zeros = _new_constant(
    "new_zeros",
    0,
    """Zeros of a shape, with the dtype and device of this tensor.

    >>> dg.tensor([1]).new_zeros(2)
    tensor([0, 0])
    """,
)

new_ones = _new_constant(
    "new_ones",
    1,
    """Ones of a shape, with the dtype and device of this tensor.

    >>> dg.tensor([1]).new_ones(2)
    tensor([1, 1])
    """,
)

new_empty = _new_constant(
    "new_empty",
    0,
    """A tensor of a shape, with the dtype and device of this one, whose values mean nothing.

    >>> dg.tensor([1]).new_empty(2, 3).shape
    dyngraph.Size([2, 3])
    """,
)


def new_full(
    input: Tensor,
    size: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """One number in a shape, with the dtype and device of this tensor.

    >>> dg.ones(1).new_full((2,), 7)
    tensor([7., 7.])
    """
    shape = only_size("new_full", size)
    wanted = input.dtype if dtype is None else dtype
    place = place_like(input, device, same_shape=False)
    return _full("new_full", shape, fill_value, wanted, place, requires_grad)


__all__ = [
    "empty",
    "empty_like",
    "eye",
    "full",
    "full_like",
    "ones",
    "ones_like",
    "zeros",
    "zeros_like",
]

METHODS = (
    "new_empty",
    "new_full",
    "new_ones",
    "new_zeros",
)
"""The methods of Tensor that this file has."""
