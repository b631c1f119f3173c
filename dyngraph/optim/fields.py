"""The fields of an optax state, by name: out of the tuples that they stand in, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Names = Mapping[str, str]
"""PyTorch's names for the fields that optax names in another way."""


def fields(state: Any, names: Names) -> dict[str, Any]:
    """Every field of the NamedTuples in `state`: a list, or a number.

    >>> from typing import NamedTuple
    >>> from dyngraph.optim.fields import fields
    >>> class Counted(NamedTuple):
    ...     count: int
    ...     mu: list
    >>> fields(((), Counted(3, [1.5])), {"count": "step"})
    {'step': 3, 'mu': [1.5]}
    """
    found: dict[str, Any] = {}
    for name, value in _parts(state):
        if isinstance(value, tuple):
            found |= fields(value, names)
        else:
            found[names.get(name, name)] = value
    return found


def refill(state: Any, names: Names, values: Mapping[str, Any]) -> Any:
    """A state like this one with other values in its fields."""
    parts = [
        refill(value, names, values) if isinstance(value, tuple) else values[names.get(name, name)]
        for name, value in _parts(state)
    ]
    return type(state)(*parts) if hasattr(state, "_fields") else tuple(parts)


def _parts(state: Any) -> list[tuple[str, Any]]:
    return list(zip(getattr(state, "_fields", [""] * len(state)), state, strict=True))
