"""The arguments of a call: which of them are inputs, and a hashable description of the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from dyngraph import devices, dtypes
from dyngraph.tensor import Tensor
from dyngraph.tracing import Tracer


class Input(NamedTuple):
    """The place of an input among the arguments."""


class Static(NamedTuple):
    """A static argument. Its type is part of the key, as 1, 1.0 and True are equal; and so is
    what a float looks like, as 0.0 and -0.0 are."""

    kind: Any
    value: Any
    shown: str = ""


class Branch(NamedTuple):
    """A container among the arguments."""

    tree: Any
    parts: tuple[Any, ...]


class Slice(NamedTuple):
    """A slice as what can be a key."""

    start: Any
    stop: Any
    step: Any


INPUT = Input()
_ARRAYS = (jax.Array, np.ndarray, np.generic)
_NUMBERS = (int, float, complex)


class Reader:
    """Reads the arguments of one call into inputs and a hashable description of the rest.

    `values` says which parameters take arrays, so that a Python int there is an input too.
    With `static_numbers` no number is an input, numpy's and integer tensors' among them.
    """

    __slots__ = ("found_arrays", "inputs", "static_numbers", "values")

    def __init__(self, values: frozenset[Any], *, static_numbers: bool = False) -> None:
        self.inputs: list[Any] = []
        self.found_arrays = False
        self.values = values
        self.static_numbers = static_numbers

    def read(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The arguments without their inputs."""
        positional = tuple([self.argument(i, arg) for i, arg in enumerate(args)])
        if not kwargs:
            return positional, ()
        return positional, tuple([(n, self.argument(n, arg)) for n, arg in sorted(kwargs.items())])

    def argument(self, place: int | str, value: Any) -> Any:
        if isinstance(value, Tensor):
            return self.array(value)
        kind = value.__class__
        if kind is float or kind is complex:
            if not self.static_numbers:
                self.inputs.append(value)
                return INPUT
        elif kind is int:
            is_value = place in self.values or (isinstance(place, int) and "*" in self.values)
            if is_value and not self.static_numbers:
                self.inputs.append(value)
                return INPUT
        elif isinstance(value, (list, tuple, dict)):
            leaves, tree = jax.tree.flatten(value)
            return Branch(tree, tuple([self.leaf(leaf) for leaf in leaves]))
        return self.leaf(value)

    def leaf(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            return self.array(value)
        if isinstance(value, _ARRAYS):
            return self.array(value)
        return static(value)

    def array(self, value: Any) -> Any:
        self.found_arrays = True
        if self.static_numbers and value.ndim == 0 and _is_index(value):
            return static(value.item())
        self.inputs.append(value)
        return INPUT


def _is_index(value: Any) -> bool:
    if isinstance(value, np.generic):
        return True
    if isinstance(value, Tracer):
        return False
    dtype = value._cell.held.dtype if isinstance(value, Tensor) else value.dtype
    return dtype.kind in "iu"


def static(value: Any) -> Static:
    """A static argument: dyngraph's dtypes and devices become numpy's and JAX's."""
    if isinstance(value, dtypes.dtype):
        value = dtypes.as_dtype(value).dtype
    elif isinstance(value, devices.device):
        value = value.jax
    elif isinstance(value, slice):
        value = Slice(value.start, value.stop, value.step)
    kind = value.__class__
    return Static(kind, value, repr(value) if kind is float or kind is Slice else "")


def fill(part: Any, inputs: Any) -> Any:
    """The argument that `part` describes, with the next of the inputs in their places."""
    if part.__class__ is Input:
        return next(inputs)
    if part.__class__ is Branch:
        return jax.tree.unflatten(part.tree, [fill(p, inputs) for p in part.parts])
    return slice(*part.value) if part.kind is Slice else part.value


class Arguments:
    """The static argument of a kernel: all arguments of a call but the inputs."""

    __slots__ = ("_key", "named", "positional")

    def __init__(self, positional: tuple[Any, ...], named: tuple[tuple[str, Any], ...]) -> None:
        self.positional = positional
        self.named = named
        self._key = (positional, named)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Arguments) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def call(self, function: Callable[..., Any], inputs: Sequence[Any]) -> Any:
        """`function` on these arguments."""
        rest = iter(inputs)
        args = [fill(part, rest) for part in self.positional]
        return function(*args, **{name: fill(part, rest) for name, part in self.named})

    def __repr__(self) -> str:
        shown = [_shown(part) for part in self.positional]
        return ", ".join([*shown, *(f"{name}={_shown(part)}" for name, part in self.named)])


def _shown(part: Any) -> str:
    if part.__class__ is Input:
        return "_"
    if part.__class__ is Branch:
        return f"({', '.join(_shown(p) for p in part.parts)})"
    return repr(part.value)
