"""Arguments: what a compiled step is called with, apart by what becomes of it.

Tensors and arrays go into the program; everything else is part of its key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from dyngraph.kernels import weak_type
from dyngraph.placement import spread_of
from dyngraph.tensor import LEAF, Tensor
from dyngraph.tracing import Tracer


class OfTensor(NamedTuple):
    """A tensor of this kind. `like` is the place of the first argument with the same Storage,
    `spread` how it is spread over several devices."""

    shape: tuple[int, ...] | None
    dtype: Any
    is_weak: bool
    is_leaf: bool
    requires_grad: bool
    is_inference: bool
    like: int
    spread: Any

    def without_shape(self) -> OfTensor:
        return self._replace(shape=None, spread=None)

    def __str__(self) -> str:
        grad = ", requires_grad" if self.requires_grad else ""
        return f"{self.dtype.name}{list(self.shape or ())}{grad}"


class OfArray(NamedTuple):
    """A jax or numpy array of this kind."""

    shape: tuple[int, ...] | None
    dtype: Any
    is_weak: bool

    def without_shape(self) -> OfArray:
        return self._replace(shape=None)

    def __str__(self) -> str:
        return f"an array {self.dtype.name}{list(self.shape or ())}"


class Fixed(NamedTuple):
    """A value that is part of the key; its type tells 1 from True, `text` 0.0 from -0.0."""

    kind: type
    value: Any
    text: str | None

    def without_shape(self) -> Fixed:
        return self

    def __str__(self) -> str:
        return repr(self.value)


Kind = OfTensor | OfArray | Fixed


class Arguments(NamedTuple):
    """The tensors and arrays among the arguments of a call, and what all of them are."""

    tensors: list[Tensor]
    arrays: list[Any]
    kinds: tuple[Kind, ...]
    tree: Any

    def rebuild(self, arrays: Sequence[Any]) -> tuple[Any, Any]:
        """The arguments, with others in the place of the arrays."""
        tensors, values = iter(self.tensors), iter(arrays)
        leaves = [
            kind.value
            if isinstance(kind, Fixed)
            else next(tensors if isinstance(kind, OfTensor) else values)
            for kind in self.kinds
        ]
        return jax.tree.unflatten(self.tree, leaves)


def read_arguments(name: str, args: Any, kwargs: Any) -> Arguments | None:
    """The arguments of a call of `name`; None where JAX traces it already."""
    leaves, tree = jax.tree.flatten((args, kwargs))
    tensors: list[Tensor] = []
    arrays: list[Any] = []
    kinds: list[Kind] = []
    places: dict[int, int] = {}
    for leaf in leaves:
        if isinstance(leaf, Tensor):
            array, edge = leaf._cell.array, leaf._edge
            if isinstance(array, Tracer):
                return None
            like = places.setdefault(id(leaf._cell), len(tensors))
            tensors.append(leaf)
            kinds.append(
                OfTensor(
                    array.shape,
                    array.dtype,
                    array.weak_type,
                    edge is None or edge is LEAF,
                    edge is not None,
                    leaf._cell.version is None,
                    like,
                    spread_of(array),
                )
            )
        elif isinstance(leaf, Tracer):
            return None
        elif isinstance(leaf, (jax.Array, np.ndarray, np.generic)):
            arrays.append(leaf)
            is_weak = isinstance(leaf, jax.Array) and weak_type(leaf)
            kinds.append(OfArray(leaf.shape, leaf.dtype, is_weak))
        else:
            kinds.append(_fixed(name, leaf))
    return Arguments(tensors, arrays, tuple(kinds), tree)


def _fixed(name: str, value: Any) -> Fixed:
    try:
        hash(value)
    except TypeError:
        raise TypeError(
            f"dg.compile({name}): an argument of type {type(value).__name__} must be hashable, "
            "because it is part of the key of what is compiled. Pass tensors, arrays, numbers, "
            "strings, or lists, tuples and dicts of them."
        ) from None
    text = repr(value) if value == 0 and isinstance(value, (float, complex)) else None
    return Fixed(type(value), value, text)
