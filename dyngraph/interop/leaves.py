"""Leaves: what stands at the ends of a tree that goes to a function of arrays, or comes from it.

Tensors, arrays and numbers are arrays to such a function; PRNG keys are passed as their words;
anything else is static, and part of the key that what was compiled is found by.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dyngraph.storage import cell_of
from dyngraph.tensor import Tensor, new_tensor, wrap


class Array(NamedTuple):
    """A leaf that is an array."""


class Key(NamedTuple):
    """A leaf that is an array of PRNG keys, of the kind `impl`."""

    impl: Any


class Static(NamedTuple):
    """A leaf that is neither; its type tells 1 from True, and what it looks like 0.0 from -0.0."""

    kind: type
    value: Any


Leaf = Array | Key | Static
ARRAY = Array()
NUMBERS = (bool, int, float, complex)
_ARRAYS = (jax.Array, np.ndarray, np.generic)


def describe(leaf: Any) -> Leaf:
    """What a leaf is."""
    if isinstance(leaf, Tensor):
        return ARRAY
    if isinstance(leaf, jax.Array) and is_key(leaf):
        return Key(jax.random.key_impl(leaf))
    if isinstance(leaf, (*_ARRAYS, *NUMBERS)):
        return ARRAY
    return Static(type(leaf), leaf)


def is_key(leaf: Any) -> bool:
    """Whether an array is one of typed PRNG keys."""
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def without_keys(leaf: Any, what: Leaf) -> Any:
    """A leaf as kernels take it: keys as their words."""
    return jax.random.key_data(leaf) if type(what) is Key else leaf


def with_keys(value: Any, what: Leaf) -> Any:
    """The leaf again, from what `without_keys` gave."""
    return jax.random.wrap_key_data(value, impl=what.impl) if type(what) is Key else value


def fill(whats: Sequence[Leaf], arrays: Sequence[Any]) -> list[Any]:
    """The leaves, from the arrays of those that are no statics."""
    values = iter(arrays)
    return [w.value if type(w) is Static else with_keys(next(values), w) for w in whats]


def arrays_of(tree: Any) -> Any:
    """The tree with arrays in the place of its tensors, which share their memory.

    >>> dg.interop.arrays_of({"a": dg.ones(2)})
    {'a': Array([1., 1.], dtype=float32)}
    """
    return jax.tree.map(lambda x: x._cell.array if isinstance(x, Tensor) else x, tree)


def tensors_of(tree: Any, *, requires_grad: bool = False) -> Any:
    """The tree with tensors in the place of its arrays, which share their memory.

    With `requires_grad`, those of floating point and complex dtype are leaves that require grad.
    PRNG keys and what is no array stay as they are.

    >>> dg.interop.tensors_of([jnp.ones(2), "name"], requires_grad=True)
    [tensor([1., 1.], requires_grad=True), 'name']
    """

    def tensor(x: Any) -> Any:
        if not isinstance(x, _ARRAYS) or (isinstance(x, jax.Array) and is_key(x)):
            return x
        array = jnp.asarray(x)
        return wrap(array, requires_grad=requires_grad and jnp.issubdtype(array.dtype, jnp.inexact))

    return jax.tree.map(tensor, tree)


def as_input(array: Any) -> Tensor:
    """A tensor of an array that came from outside, which may be a tracer."""
    return new_tensor(cell_of(array))


def name_of(fn: Callable[..., Any]) -> str:
    """A function's name, as one word."""
    while hasattr(fn, "func"):  # of functools.partial
        fn = fn.func  # type: ignore[attr-defined]
    name = getattr(fn, "__qualname__", type(fn).__name__).replace("<lambda>", "lambda")
    name = name.rpartition("<locals>.")[2].replace(".", "_")
    return name if name.isidentifier() else "function"
