"""Draws from distributions: `rand`, `randn`, `randint`, `normal`, `bernoulli`, and others.

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
import numpy as np

from dyngraph import dtypes
from dyngraph.ops.creation import UNSET, check_tensor, number, place_like, place_of, read_size
from dyngraph.random import Generator, default_generator, fold
from dyngraph.tensor import Tensor, wrap
from dyngraph.tracing import Tracer

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


def _run(
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


def _scaled_normal(key: Any, mean: Any, std: Any, shape: Any, dtype: Any) -> Any:
    draw = jax.random.normal(key, shape, dtype)
    return (mean + std * draw).astype(dtype), jnp.all(jnp.asarray(std).real >= 0)


def _integers(key: Any, low: Any, high: Any, shape: Any, dtype: Any) -> Any:
    return jax.random.randint(key, shape, low, high, low.dtype).astype(dtype)


def _permutation(key: Any, count: int, dtype: Any) -> Any:
    return jax.random.permutation(key, jnp.arange(count)).astype(dtype)


def _bernoulli(key: Any, p: Any, shape: Any, dtype: Any) -> Any:
    valid = jnp.all((p >= 0) & (p <= 1))
    return jax.random.bernoulli(key, p, shape).astype(dtype), valid


def _poisson(key: Any, rate: Any) -> Any:
    return jax.random.poisson(key, rate).astype(rate.dtype), jnp.all(rate >= 0)


def _categories(key: Any, weights: Any, count: int, replacement: bool, dtype: Any) -> Any:
    """Indices, and whether every weight is finite and not negative, and every sum positive.

    Without replacement: the largest of log(weight) + Gumbel noise, which are draws without
    replacement (Kool et al., "Stochastic Beams and Where to Find Them", 2019, section 2.3).
    """
    valid = jnp.all(jnp.isfinite(weights) & (weights >= 0)), jnp.all(weights.sum(-1) > 0)
    logs = jnp.log(weights)
    if replacement:
        drawn = jax.random.categorical(key, logs, axis=-1, shape=(count, *weights.shape[:-1]))
        return jnp.moveaxis(drawn, 0, -1).astype(dtype), valid
    noise = jax.random.gumbel(key, weights.shape, weights.dtype)
    return jax.lax.top_k(logs + noise, count)[1].astype(dtype), valid


# --- functions of a shape ---------------------------------------------------------------------


def _drawn_dtype(where: str, dtype: Any) -> dtypes.dtype:
    wanted = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    if not wanted.is_differentiable:
        raise NotImplementedError(
            f"{where}() draws floating point or complex numbers, not {wanted.name}. Use randint() "
            "for integers."
        )
    return wanted


def rand(
    *sizes: Any,
    size: Any = UNSET,
    generator: Generator | None = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Uniform draws from 0 to before 1.

    >>> x = dg.rand(2, 3)
    >>> x.shape, bool(((x >= 0) & (x < 1)).all())
    (dyngraph.Size([2, 3]), True)
    """
    wanted = _drawn_dtype("rand", dtype)
    shape = read_size("rand", sizes, size)
    draw = _run(_uniform, generator, place_of(device), shape, wanted.dtype)
    return wrap(draw(), requires_grad=requires_grad)


def randn(
    *sizes: Any,
    size: Any = UNSET,
    generator: Generator | None = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Draws from the normal distribution of mean 0 and variance 1.

    Complex ones have variance 1 in all, half of it in each part.

    >>> dg.randn(2, 3, requires_grad=True).requires_grad
    True
    """
    wanted = _drawn_dtype("randn", dtype)
    shape = read_size("randn", sizes, size)
    draw = _run(_normal, generator, place_of(device), shape, wanted.dtype)
    return wrap(draw(), requires_grad=requires_grad)


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
    return _run(_integers, generator, place, shape, dtype.dtype)(kind(low), kind(high))


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
    draw = _run(_permutation, generator, place_of(device), count, wanted.dtype)
    return wrap(draw(), requires_grad=requires_grad)


def normal(
    mean: Any,
    std: Any = 1.0,
    size: Any = None,
    *,
    generator: Generator | None = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Normal draws of one mean and deviation, with `size`, or of one for each element, as tensors.

    The dtype is that of the first tensor. Raises RuntimeError for a negative deviation.

    >>> dg.normal(dg.tensor([0.0, 100.0]), 0.0)
    tensor([  0., 100.])
    """
    tensors = [v for v in (mean, std) if isinstance(v, Tensor)]
    if bool(tensors) == (size is not None):
        raise TypeError(
            "normal() takes numbers and a size, or a tensor of means or deviations and no size."
        )
    if tensors:
        shape = _broadcast(*(t.shape for t in tensors))
        wanted, place = _drawn_dtype("normal", tensors[0].dtype), None
    else:
        shape, wanted = read_size("normal", (size,)), _drawn_dtype("normal", dtype)
        place = place_of(device)
    if not isinstance(std, Tensor) and not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std}")
    inputs = [
        v._cell.array if isinstance(v, Tensor) else np.asarray(v, wanted.dtype) for v in (mean, std)
    ]
    drawn, valid = _run(_scaled_normal, generator, _both(place), shape, wanted.dtype)(*inputs)
    if isinstance(std, Tensor):
        _expect(valid, "normal expects all elements of std >= 0.0")
    return wrap(drawn, requires_grad=requires_grad)


def _broadcast(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise RuntimeError(
            f"normal() needs mean and std of shapes that broadcast, got {[*map(list, shapes)]}."
        ) from None


def _both(place: Any) -> Any:
    """The place of a kernel's draw and of what says whether its inputs were valid."""
    return None if place is None else (place, None)


def _expect(valid: jax.Array, message: str) -> None:
    if not isinstance(valid, Tracer) and not valid:
        raise RuntimeError(message)


# --- functions of a tensor --------------------------------------------------------------------


def _like(
    where: str,
    sampler: Any,
    input: Any,
    generator: Any,
    dtype: Any,
    device: Any,
    requires_grad: bool,
) -> Tensor:
    check_tensor(where, input)
    wanted = _drawn_dtype(where, input.dtype if dtype is None else dtype)
    shape = input._cell.array.shape
    draw = _run(sampler, generator, place_like(input, device), shape, wanted.dtype)
    return wrap(draw(), requires_grad=requires_grad)


def rand_like(
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
    """Draws as `rand` makes them, in the shape, dtype and device of `input`.

    >>> dg.rand_like(dg.ones(2, 3)).shape
    dyngraph.Size([2, 3])
    """
    return _like("rand_like", _uniform, input, generator, dtype, device, requires_grad)


def randn_like(
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
    """Draws as `randn` makes them, in the shape, dtype and device of `input`.

    >>> dg.randn_like(dg.ones(2, dtype=dg.float16)).dtype
    dyngraph.float16
    """
    return _like("randn_like", _normal, input, generator, dtype, device, requires_grad)


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


def bernoulli(
    input: Tensor, p: float | None = None, *, generator: Generator | None = None
) -> Tensor:
    """1 with the probability that `input` says for each element, or with probability `p`; else 0.

    Shape and dtype are those of `input`, whose values do not matter where `p` is given. Raises
    RuntimeError for a probability outside 0 to 1.

    >>> dg.bernoulli(dg.tensor([0.0, 1.0]))
    tensor([0., 1.])
    """
    check_tensor("bernoulli", input)
    array = input._cell.array
    probability = array
    if p is not None:
        p = float(number("bernoulli", "p", p))
        if not 0 <= p <= 1:
            raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p}")
        probability = np.float32(p)
    elif not input.is_floating_point():
        raise NotImplementedError(
            f"bernoulli() reads probabilities from a floating point tensor, got {input.dtype}. "
            "Pass p=, or convert it by .float()."
        )
    place = _both(place_like(input, None)) if p is not None else None
    draw = _run(_bernoulli, generator, place, array.shape, array.dtype)
    drawn, valid = draw(probability)
    if p is None:
        _expect(valid, "Expected p_in >= 0 && p_in <= 1: every element of input is a probability.")
    return wrap(drawn)


def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Poisson draws with the rates that `input` says, in its dtype.

    Raises RuntimeError for a negative rate.

    >>> dg.poisson(dg.zeros(2))
    tensor([0., 0.])
    """
    check_tensor("poisson", input)
    if not input.is_floating_point():
        raise NotImplementedError(
            f"poisson() reads rates from a floating point tensor, got {input.dtype}. Convert it by "
            ".float()."
        )
    drawn, valid = _run(_poisson, generator, None)(input._cell.array)
    _expect(valid, "invalid Poisson rate, expected rate to be non-negative")
    return wrap(drawn)


def multinomial(
    input: Tensor,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Indices drawn with the weights in each row: (n,) -> (samples,), (m, n) -> (m, samples).

    Weights need not sum to one. Raises RuntimeError for weights that are negative, not finite or
    all zero, and for more draws than there are weights, without replacement.

    >>> dg.multinomial(dg.tensor([0.0, 1.0]), 3, replacement=True)
    tensor([1, 1, 1])
    """
    check_tensor("multinomial", input)
    count, shape = operator.index(num_samples), input.shape
    if len(shape) not in (1, 2):
        raise RuntimeError(f"prob_dist must be 1 or 2 dim, got shape {list(shape)}")
    if not input.is_floating_point():
        raise RuntimeError(
            f"multinomial only supports floating-point dtypes for input, got: {input.dtype}"
        )
    if count <= 0:
        raise RuntimeError(f"cannot sample n_sample <= 0 samples, got {count}")
    if not replacement and count > shape[-1]:
        raise RuntimeError(
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement: asked for "
            f"{count} of {shape[-1]}. Pass replacement=True."
        )
    index = dtypes.default_int().dtype
    draw = _run(_categories, generator, None, count, bool(replacement), index)
    drawn, (valid, positive) = draw(input._cell.array)
    _expect(valid, "probability tensor contains either `inf`, `nan` or element < 0")
    _expect(positive, "invalid multinomial distribution (sum of probabilities <= 0)")
    return wrap(drawn)


__all__ = [
    "bernoulli",
    "multinomial",
    "normal",
    "poisson",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "randperm",
]

METHODS = ("bernoulli", "multinomial")
