"""What a row of the operator table says: an operator, sample calls, and its twin in JAX.

The rows themselves are in `tests/rows/`, one file for each of `dyngraph/ops/`;
`tests/ops/test_operators.py` checks every property of every row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax.numpy as jnp
import numpy as np

_random = np.random.default_rng(20)


def restart(name: str) -> None:
    """Makes the draws that follow those of this name, whatever was drawn before."""
    global _random
    _random = np.random.default_rng(list(name.encode()))


def normal(*shape: int, scale: float = 1.0) -> np.ndarray:
    """Draws from a normal distribution, as float32."""
    return (scale * _random.standard_normal(shape)).astype(np.float32)


def positive(*shape: int) -> np.ndarray:
    """Draws between 0.2 and 2.2: inside the domain of logarithms, roots and powers."""
    return (0.2 + 2 * _random.random(shape)).astype(np.float32)


def between(low: float, high: float, *shape: int) -> np.ndarray:
    """Draws between two bounds, as float32."""
    return _random.uniform(low, high, shape).astype(np.float32)


def spread(*shape: int) -> np.ndarray:
    """Values in random order that are at least 0.1 apart and never 0: no ties, no kinks."""
    count = int(np.prod(shape))
    values = (np.arange(count) - count / 2 + 0.5) * 0.13
    return _random.permutation(values).reshape(shape).astype(np.float32)


def integers(high: int, *shape: int) -> np.ndarray:
    """Draws from 0 to high - 1, as int32."""
    return _random.integers(0, high, shape, dtype=np.int32)


def booleans(*shape: int) -> np.ndarray:
    """Draws of False and True."""
    return _random.random(shape) < 0.5


def complex_normal(*shape: int) -> np.ndarray:
    """Draws of complex64."""
    return (normal(*shape) + 1j * normal(*shape)).astype(np.complex64)


def square(*shape: int) -> np.ndarray:
    """Square matrices far from singular ones; the last number is their size."""
    return normal(*shape, shape[-1], scale=0.5) + 2 * np.eye(shape[-1], dtype=np.float32)


def complex_square(n: int) -> np.ndarray:
    """A complex matrix far from a singular one."""
    return complex_normal(n, n) + np.complex64(3) * np.eye(n, dtype=np.complex64)


def definite(*shape: int) -> np.ndarray:
    """Positive-definite matrices; the last number is their size."""
    a = normal(*shape, shape[-1])
    return a @ np.swapaxes(a, -1, -2) + np.eye(shape[-1], dtype=np.float32)


def hermitian(n: int) -> np.ndarray:
    """A positive-definite Hermitian matrix."""
    a = complex_normal(n, n)
    return a @ a.conj().T + np.eye(n, dtype=np.complex64)


@dataclass(frozen=True)
class Sample:
    """One call: numpy arrays among the positional arguments become tensors; the rest is passed
    on."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def call(*args: Any, **kwargs: Any) -> Sample:
    """A sample call."""
    return Sample(args, kwargs)


@dataclass(frozen=True)
class OpInfo:
    """One operator.

    `reference` is the same function on jax arrays, called with the sample's own arguments: its
    value and its `jax.vjp` are what the operator is held to. `gradient=False` says that no output
    has one; `second=False` that the second derivative is not checked (say why beside it). `name`
    may be dotted (`nn.functional.relu`); without a function of that name, the Tensor method is
    meant.

    The other fields say where a property that every operator has is another one here.
    `no_differences` and `no_empty` are the reasons why finite differences do not show the gradient,
    and why the twin has no answer for tensors without elements. `direction` makes directions of
    square matrices ones that stay in the domain, as for symmetric ones. `no_half` is the message
    with which 16-bit floats are refused, all or by the dtype's name, and `refuses_empty` the one
    for tensors without elements where the twin takes them: both where PyTorch refuses them too.
    `broadcasts=True` asks whether each array broadcasts against the others, where no sample does.
    """

    name: str
    samples: Sequence[Sample]
    reference: Callable[..., Any]
    gradient: bool = True
    second: bool = True
    no_differences: str = ""
    direction: Callable[[np.ndarray], np.ndarray] | None = None
    no_half: str | Mapping[str, str] = ""
    no_empty: str = ""
    refuses_empty: str = ""
    broadcasts: bool = False
    rtol: float = 1e-4
    atol: float = 1e-5
    tags: frozenset[str] = field(default_factory=frozenset)


def wide(function: Callable[..., Any]) -> Callable[..., Any]:
    """A twin that JAX has not for 16-bit floats, by way of float32."""

    def run(x: Any) -> Any:
        if jnp.finfo(x.dtype).bits > 16:
            return function(x)
        return function(x.astype(jnp.float32)).astype(x.dtype)

    return run


def unary(
    name: str, reference: Callable[..., Any], values: np.ndarray, *more: Sample, **options: Any
) -> OpInfo:
    """A row of a function of one tensor."""
    return OpInfo(name, [call(values), *more], reference, **options)


def binary(
    name: str,
    reference: Callable[..., Any],
    a: np.ndarray,
    b: np.ndarray,
    *more: Sample,
    **options: Any,
) -> OpInfo:
    """A row whose samples are equal shapes, and a broadcast in either direction."""
    return OpInfo(name, [call(a, b), call(a, b[:1]), call(a[0], b), *more], reference, **options)


def functional(name: str, *args: Any, **kwargs: Any) -> OpInfo:
    """A row of a function of `nn.functional`."""
    return OpInfo(f"nn.functional.{name}", *args, **kwargs)


def symmetric(direction: np.ndarray) -> np.ndarray:
    """The part of a direction in which a Hermitian matrix stays one."""
    return (direction + np.conj(np.swapaxes(direction, -1, -2))) / 2
