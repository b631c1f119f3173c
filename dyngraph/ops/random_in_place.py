"""Draws written to a tensor: `normal_`, `uniform_` and the others. What was there has no gradient.

Each writes draws of its distribution, of a Generator's next ones, to every element.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dyngraph import dtypes
from dyngraph.ops.factory_arguments import place_like, place_of
from dyngraph.ops.random import next_draw
from dyngraph.random import Generator
from dyngraph.storage import cell_of
from dyngraph.tensor import Tensor, new_tensor
from dyngraph.tracing import Tracer
from dyngraph.writing import assign


def _place(input: Tensor) -> Any:
    """Where to draw for a tensor; None if it is bound to no device."""
    return None if place_like(input, None) is None else place_of(input.device)


def draw_into(
    name: str, input: Tensor, generator: Generator | None, sampler: Callable[..., Any], *inputs: Any
) -> Tensor:
    """Writes what `sampler(key, *inputs, shape, dtype)` draws."""
    array = input._cell.array
    draw = next_draw(sampler, generator, _place(input), array.shape, array.dtype)
    return assign(input, new_tensor(cell_of(draw(*inputs))), name)


def _fill_each(
    name: str, input: Tensor, generator: Generator | None, sampler: Callable[..., Any], *inputs: Any
) -> Tensor:
    """`draw_into` of a sampler whose draws are each made by themselves.

    A kernel that draws takes a second to compile. So one serves all shapes of some size: it draws a
    row of at least so many, whose first are those that the shape by itself would get.
    """
    array = input._cell.array
    place, size = _place(input), array.size
    draw = next_draw(sampler, generator, place, (_size_class(size),), array.dtype)
    row = draw(*inputs)
    if isinstance(row, Tracer):
        drawn = row[:size].reshape(array.shape)
    elif input.is_cpu:
        cut = np.asarray(row)[:size].reshape(array.shape)
        drawn = jax.device_put(cut, place, may_alias=False)
    else:
        drawn = _cut(row, array.shape)
    return assign(input, new_tensor(cell_of(drawn)), name)


def _size_class(size: int) -> int:
    """The next of 1024, 4096, 16384 and 65536; for larger sizes the next eighth of a power of
    two."""
    bits = max(size - 1, 1).bit_length()
    if bits <= 16:
        return 1 << max(bits + bits % 2, 10)
    step = 1 << (bits - 4)
    return -(-size // step) * step


@functools.partial(jax.jit, static_argnums=1)
def _cut(row: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    return row[: math.prod(shape)].reshape(shape)


def _need_floats(name: str, input: Tensor) -> None:
    if not input.dtype.is_differentiable:
        raise NotImplementedError(
            f"\"{name}\" not implemented for '{input.dtype.name}': it draws floating point "
            "numbers. Use random_() for integers."
        )


def _uniform(key: Any, low: Any, high: Any, shape: Any, dtype: Any) -> Any:
    return (low + (high - low) * jax.random.uniform(key, shape, dtype)).astype(dtype)


def uniform_(
    input: Tensor, from_: float = 0, to: float = 1, *, generator: Generator | None = None
) -> Tensor:
    """Uniform draws from `from_` to before `to`; RuntimeError where `from_` is greater.

    >>> x = dg.zeros(3).uniform_(1, 2)
    >>> bool(((x >= 1) & (x < 2)).all())
    True
    """
    _need_floats("uniform_", input)
    if from_ > to:
        raise RuntimeError(
            f"uniform_ expects to return a [from, to) range, but found from={from_} > to={to}"
        )
    return _fill_each("uniform_", input, generator, _uniform, from_, to)


def _normal(key: Any, mean: Any, std: Any, shape: Any, dtype: Any) -> Any:
    return (mean + std * jax.random.normal(key, shape, dtype)).astype(dtype)


def normal_(
    input: Tensor, mean: float = 0, std: float = 1, *, generator: Generator | None = None
) -> Tensor:
    """Draws of the normal distribution; RuntimeError for a negative `std`.

    >>> dg.zeros(3).normal_(5, 0)
    tensor([5., 5., 5.])
    """
    _need_floats("normal_", input)
    if std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std}")
    return _fill_each("normal_", input, generator, _normal, mean, std)


def _log_normal(key: Any, mean: Any, std: Any, shape: Any, dtype: Any) -> Any:
    return jnp.exp(_normal(key, mean, std, shape, dtype))


def log_normal_(
    input: Tensor, mean: float = 1, std: float = 2, *, generator: Generator | None = None
) -> Tensor:
    """Exponentials of normal draws; RuntimeError unless `std` is positive.

    >>> bool((dg.zeros(3).log_normal_() > 0).all())
    True
    """
    _need_floats("log_normal_", input)
    if std <= 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std}")
    return draw_into("log_normal_", input, generator, _log_normal, mean, std)


def _exponential(key: Any, rate: Any, shape: Any, dtype: Any) -> Any:
    return (jax.random.exponential(key, shape, dtype) / rate).astype(dtype)


def exponential_(input: Tensor, lambd: float = 1, *, generator: Generator | None = None) -> Tensor:
    """Draws of the exponential distribution of mean `1 / lambd`.

    >>> bool((dg.zeros(3).exponential_() >= 0).all())
    True
    """
    _need_floats("exponential_", input)
    if lambd <= 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd}")
    return draw_into("exponential_", input, generator, _exponential, lambd)


def _cauchy(key: Any, median: Any, sigma: Any, shape: Any, dtype: Any) -> Any:
    return (median + sigma * jax.random.cauchy(key, shape, dtype)).astype(dtype)


def cauchy_(
    input: Tensor, median: float = 0, sigma: float = 1, *, generator: Generator | None = None
) -> Tensor:
    """Draws of the Cauchy distribution; RuntimeError unless `sigma` is positive.

    >>> dg.zeros(3).cauchy_().shape
    dyngraph.Size([3])
    """
    _need_floats("cauchy_", input)
    if sigma <= 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma}")
    return draw_into("cauchy_", input, generator, _cauchy, median, sigma)


def _geometric(key: Any, p: Any, shape: Any, dtype: Any) -> Any:
    return jax.random.geometric(key, p, shape).astype(dtype)


def geometric_(input: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """How many trials of chance `p` it takes to succeed once: 1, 2, ...

    Raises RuntimeError unless 0 < p < 1.

    >>> bool((dg.zeros(3).geometric_(0.5) >= 1).all())
    True
    """
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p}")
    return draw_into("geometric_", input, generator, _geometric, p)


def _bernoulli(key: Any, p: Any, shape: Any, dtype: Any) -> Any:
    return jax.random.bernoulli(key, p, shape).astype(dtype)


def bernoulli_(input: Tensor, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
    """1 with chance `p`, a number or a tensor that broadcasts, else 0.

    Raises RuntimeError for a number outside of 0 to 1.

    >>> dg.zeros(3).bernoulli_(1.0)
    tensor([1., 1., 1.])
    """
    if isinstance(p, Tensor):
        return draw_into("bernoulli_", input, generator, _bernoulli, p._cell.array)
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p}")
    return draw_into("bernoulli_", input, generator, _bernoulli, p)


def _integers(key: Any, low: Any, high: Any, shape: Any, dtype: Any) -> Any:
    return jax.random.randint(key, shape, low, high).astype(dtype)


def random_(
    input: Tensor,
    from_: int | None = None,
    to: int | None = None,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Whole numbers from `from_`, else 0, to before `to`, else all that the dtype has exactly.

    One number alone is `to`. Raises RuntimeError where the range is empty.

    >>> x = dg.zeros(3).random_(5)
    >>> bool(((x >= 0) & (x < 5)).all())
    True
    """
    if to is None:
        from_, to = 0, from_
    if to is None:
        to = _largest(input.dtype)
    low = from_ or 0
    if low >= to:
        raise RuntimeError(
            f"random_ expects 'from' to be less than 'to', but got from={low} >= to={to}"
        )
    return draw_into("random_", input, generator, _integers, low, to)


def _largest(dtype: dtypes.dtype) -> int:
    """The end of the range that `random_` draws from on its own."""
    if dtype == dtypes.bool:
        return 2
    if dtype.is_floating_point:
        return min(2 ** (-round(math.log2(float(jnp.finfo(dtype.dtype).eps))) + 1), 2**31 - 1)
    return min(int(jnp.iinfo(dtype.dtype).max), 2**31 - 1)


__all__: list[str] = []
METHODS = (
    "bernoulli_",
    "cauchy_",
    "exponential_",
    "geometric_",
    "log_normal_",
    "normal_",
    "random_",
    "uniform_",
)
"""The methods of Tensor that this file has."""
