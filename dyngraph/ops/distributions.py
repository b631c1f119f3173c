"""Draws from distributions whose parameters are tensors: `normal`, `bernoulli`, and others.

Nothing is recorded: the results have no gradient.
"""

from __future__ import annotations

import operator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dyngraph import dtypes
from dyngraph.ops.factory_arguments import check_tensor, number, place_like, place_of, read_size
from dyngraph.ops.out import takes_out
from dyngraph.ops.random import drawn_dtype, next_draw
from dyngraph.random import Generator
from dyngraph.tensor import Tensor, wrap
from dyngraph.tracing import Tracer


def _scaled_normal(key: Any, mean: Any, std: Any, shape: Any, dtype: Any) -> Any:
    draw = jax.random.normal(key, shape, dtype)
    return (mean + std * draw).astype(dtype), jnp.all(jnp.asarray(std).real >= 0)


def _bernoulli(key: Any, p: Any, shape: Any, dtype: Any) -> Any:
    valid = jnp.all((p >= 0) & (p <= 1))
    return jax.random.bernoulli(key, p, shape).astype(dtype), valid


def _poisson(key: Any, rate: Any) -> Any:
    return jax.random.poisson(key, rate).astype(rate.dtype), jnp.all(rate >= 0)


def _binomial(key: Any, count: Any, prob: Any, shape: Any) -> Any:
    count, prob = jnp.broadcast_to(count, shape), jnp.broadcast_to(prob, shape)
    p = jnp.clip(prob, 0, 1)
    return jax.random.binomial(key, jnp.maximum(count, 0), p).astype(count.dtype)


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


@takes_out
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
        shape = _broadcast("normal", "mean and std", *(t.shape for t in tensors))
        wanted, place = drawn_dtype("normal", tensors[0].dtype), None
    else:
        shape, wanted = read_size("normal", (size,)), drawn_dtype("normal", dtype)
        place = place_of(device)
    if not isinstance(std, Tensor) and not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std}")
    inputs = [
        v._cell.array if isinstance(v, Tensor) else np.asarray(v, wanted.dtype) for v in (mean, std)
    ]
    drawn, valid = next_draw(_scaled_normal, generator, _both(place), shape, wanted.dtype)(*inputs)
    if isinstance(std, Tensor):
        _expect(valid, "normal expects all elements of std >= 0.0")
    return wrap(drawn, requires_grad=requires_grad)


def _broadcast(where: str, what: str, *shapes: tuple[int, ...]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise RuntimeError(
            f"{where}() needs {what} of shapes that broadcast, got {[*map(list, shapes)]}."
        ) from None


def _both(place: Any) -> Any:
    """The place of a kernel's draw and of what says whether its inputs were valid."""
    return None if place is None else (place, None)


def _expect(valid: jax.Array, message: str) -> None:
    if not isinstance(valid, Tracer) and not valid:
        raise RuntimeError(message)


@takes_out
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
    draw = next_draw(_bernoulli, generator, place, array.shape, array.dtype)
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
    drawn, valid = next_draw(_poisson, generator, None)(input._cell.array)
    _expect(valid, "invalid Poisson rate, expected rate to be non-negative")
    return wrap(drawn)


def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """How many of `count` trials succeed, each with probability `prob`; both broadcast.

    Counts and probabilities out of bounds count as the nearest ones, as PyTorch's do. Raises
    ValueError for dtypes that are not floating point, RuntimeError for two of them.

    >>> dg.binomial(dg.tensor([3.0, 5.0]), dg.tensor([0.0, 1.0]))
    tensor([0., 5.])
    """
    for name, given in (("count", count), ("prob", prob)):
        check_tensor("binomial", given)
        if not given.is_floating_point():
            raise ValueError(
                f"binomial only supports floating-point dtypes for {name}, got: {given.dtype}. "
                "Convert it by .float()."
            )
    if count.dtype != prob.dtype:
        raise RuntimeError(
            f"binomial() needs count and prob of one dtype, got {count.dtype} and {prob.dtype}."
        )
    shape = _broadcast("binomial", "count and prob", count.shape, prob.shape)
    draw = next_draw(_binomial, generator, None, shape)
    return wrap(draw(count._cell.array, prob._cell.array))


@takes_out
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
    draw = next_draw(_categories, generator, None, count, bool(replacement), index)
    drawn, (valid, positive) = draw(input._cell.array)
    _expect(valid, "probability tensor contains either `inf`, `nan` or element < 0")
    _expect(positive, "invalid multinomial distribution (sum of probabilities <= 0)")
    return wrap(drawn)


__all__ = [
    "bernoulli",
    "binomial",
    "multinomial",
    "normal",
    "poisson",
]

METHODS = (
    "bernoulli",
    "multinomial",
)
"""The functions of this file that are methods of Tensor too."""
