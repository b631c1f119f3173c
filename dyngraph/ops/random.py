"""Draws that a shape alone asks for: `rand`, `randn`, `randint`, `randperm` and their `*_like`.

A draw takes a number from a Generator and runs one kernel, kept for its distribution, shape and
dtype, in which the draw's key is made. Nothing is recorded: the results have no gradient.
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
from dyngraph.ops.factory_arguments import check_tensor, place_like, place_of, read_size
from dyngraph.ops.operator import UNSET
from dyngraph.ops.out import takes_out
from dyngraph.random import Generator, default_generator, fold
from dyngraph.tensor import Tensor, wrap

MAX_SAMPLERS = 2048
"""How many kernels that draw are kept."""


# --- kernels ----------------------------------------------------------------------------------


@functools.lru_cache(MAX_SAMPLERS)
def _kernel(
    sampler: Callable[..., Any], place: Any, statics: tuple[Any, ...]
) -> Callable[..., Any]:
    def draw(key: Any, count: Any, *inputs: Any) -> Any:
        return sampler(fold(key, count), *inputs, *statics)

    draw.__name__ = draw.__qualname__ = sampler.__name__.lstrip("_")
    return jax.jit(draw, out_shardings=place)


def next_draw(
    sampler: Callable[..., Any], generator: Generator | None, place: Any, *statics: Any
) -> Callable[..., Any]:
    """The sampler's kernel with the next draw of the generator; call it with the arrays."""
    if generator is None:
        generator = default_generator
    elif not isinstance(generator, Generator):
        raise TypeError(
            f"argument 'generator' must be Generator, not {type(generator).__name__}. Make one by "
            "dg.Generator()."
        )
    return functools.partial(_kernel(sampler, place, statics), *generator.take())


def _uniform(key: Any, shape: Any, dtype: Any) -> Any:
    if not jnp.issubdtype(dtype, jnp.complexfloating):
        return jax.random.uniform(key, shape, dtype)
    real = jnp.zeros((), dtype).real.dtype
    parts = jax.random.uniform(key, (2, *shape), real)
    return jax.lax.complex(parts[0], parts[1])


def _normal(key: Any, shape: Any, dtype: Any) -> Any:
    return jax.random.normal(key, shape, dtype)


def _integers(key: Any, low: Any, high: Any, shape: Any, dtype: Any) -> Any:
    return jax.random.randint(key, shape, low, high, low.dtype).astype(dtype)


def _permutation(key: Any, count: int, dtype: Any) -> Any:
    return jax.random.permutation(key, jnp.arange(count)).astype(dtype)


# --- functions of a shape ---------------------------------------------------------------------


def drawn_dtype(where: str, dtype: Any) -> dtypes.dtype:
    wanted = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    if not wanted.is_differentiable:
        raise NotImplementedError(
            f"{where}() draws floating point or complex numbers, not {wanted.name}. Use randint() "
            "for integers."
        )
    return wanted


def _drawn(name: str, sampler: Callable[..., Any], doc: str) -> Callable[..., Tensor]:
    def function(
        *sizes: Any,
        size: Any = UNSET,
        generator: Generator | None = None,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        pin_memory: bool = False,
    ) -> Tensor:
        wanted = drawn_dtype(name, dtype)
        shape = read_size(name, sizes, size)
        draw = next_draw(sampler, generator, place_of(device), shape, wanted.dtype)
        return wrap(draw(), requires_grad=requires_grad)

    return takes_out(titled(function, name, doc))


rand = _drawn(
    "rand",
    _uniform,
    """Uniform draws from 0 to before 1.

    >>> x = dg.rand(2, 3)
    >>> x.shape, bool(((x >= 0) & (x < 1)).all())
    (dyngraph.Size([2, 3]), True)
    """,
)

randn = _drawn(
    "randn",
    _normal,
    """Draws from the normal distribution of mean 0 and variance 1.

    Complex ones have variance 1 in all, half of it in each part.

    >>> dg.randn(2, 3, requires_grad=True).requires_grad
    True
    """,
)


@takes_out
def randint(
    low: Any = None,
    high: Any = None,
    size: Any = None,
    *,
    generator: Generator | None = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Integers from `low` to before `high`: `randint(high, size)` or `randint(low, high, size)`.

    In the default integer dtype unless told, which may be floating point. Raises RuntimeError for
    an empty range, and for bounds that the dtype does not hold.

    >>> dg.randint(3, 4, (2,))
    tensor([3, 3])
    """
    if size is None and isinstance(high, (tuple, list)):
        high, size = None, high
    if high is None:
        low, high = 0, low
    if size is None or high is None:
        raise TypeError(
            "randint() takes (high, size) or (low, high, size). Pass size as a tuple of ints."
        )
    wanted = dtypes.default_int() if dtype is None else dtypes.as_dtype(dtype)
    shape = read_size("randint", (size,))
    array = _draw_integers(low or 0, high, shape, wanted, generator, place_of(device))
    return wrap(array, requires_grad=requires_grad)


def _draw_integers(
    low: Any, high: Any, shape: Any, dtype: dtypes.dtype, generator: Any, place: Any
) -> jax.Array:
    low, high = operator.index(low), operator.index(high)
    if low >= high:
        raise RuntimeError(
            f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}"
        )
    if dtype.is_complex:
        raise RuntimeError(
            f"randint() draws integers, floating point numbers or bools, not {dtype}."
        )
    drawn = dtypes.default_int()
    limits = dtypes.iinfo(drawn)
    bounds = [(limits.min, limits.max + 1)]
    if dtype == dtypes.bool:
        bounds.append((0, 2))
    elif not dtype.is_floating_point:
        limits = dtypes.iinfo(dtype)
        bounds.append((int(limits.min), int(limits.max) + 1))
    least, most = max(b[0] for b in bounds), min(b[1] for b in bounds)
    if low < least or high > most:
        what = "from" if low < least else "to - 1"
        raise RuntimeError(
            f"{what} is out of bounds for {dtype.name}: expected {least} <= from and to <= {most}, "
            f"got from={low}, to={high}."
        )
    kind = drawn.dtype.type
    return next_draw(_integers, generator, place, shape, dtype.dtype)(kind(low), kind(high))


@takes_out
def randperm(
    n: int,
    *,
    generator: Generator | None = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """The numbers from 0 to n - 1 in random order.

    >>> sorted(dg.randperm(4).tolist())
    [0, 1, 2, 3]
    """
    (count,) = read_size("randperm", (n,))
    wanted = dtypes.default_int() if dtype is None else dtypes.as_dtype(dtype)
    if count and not wanted.is_differentiable and count - 1 > dtypes.iinfo(wanted).max:
        raise RuntimeError(
            f"{wanted.name} does not hold the numbers up to {count - 1}. Pass a wider dtype."
        )
    draw = next_draw(_permutation, generator, place_of(device), count, wanted.dtype)
    return wrap(draw(), requires_grad=requires_grad)


# --- functions of a tensor --------------------------------------------------------------------


def _drawn_like(name: str, sampler: Callable[..., Any], doc: str) -> Callable[..., Tensor]:
    def function(
        input: Tensor,
        *,
        generator: Generator | None = None,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        pin_memory: bool = False,
        memory_format: Any = None,
    ) -> Tensor:
        check_tensor(name, input)
        wanted = drawn_dtype(name, input.dtype if dtype is None else dtype)
        shape = input._cell.held.shape
        draw = next_draw(sampler, generator, place_like(input, device), shape, wanted.dtype)
        return wrap(draw(), requires_grad=requires_grad)

    return titled(function, name, doc)


rand_like = _drawn_like(
    "rand_like",
    _uniform,
    """Draws as `rand` makes them, in the shape, dtype and device of `input`.

    >>> dg.rand_like(dg.ones(2, 3)).shape
    dyngraph.Size([2, 3])
    """,
)

randn_like = _drawn_like(
    "randn_like",
    _normal,
    """Draws as `randn` makes them, in the shape, dtype and device of `input`.

    >>> dg.randn_like(dg.ones(2, dtype=dg.float16)).dtype
    dyngraph.float16
    """,
)


def randint_like(
    input: Tensor,
    low: Any = None,
    high: Any = None,
    *,
    generator: Generator | None = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Draws as `randint` makes them, in the shape, dtype and device of `input`.

    `randint_like(input, high)` starts at 0.

    >>> dg.randint_like(dg.ones(2), 3, 4)
    tensor([3., 3.])
    """
    check_tensor("randint_like", input)
    if high is None:
        low, high = 0, low
    wanted = input.dtype if dtype is None else dtypes.as_dtype(dtype)
    place = place_like(input, device)
    array = _draw_integers(low or 0, high, tuple(input.shape), wanted, generator, place)
    return wrap(array, requires_grad=requires_grad)


__all__ = [
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "randperm",
]

METHODS = ()
"""The functions of this file that are methods of Tensor too."""
