"""Options of a group as a jitted update takes them: numbers are inputs, the rest is compiled in.

So a scheduler that changes a number compiles nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import jax

from dyngraph.tensor import Tensor

NUMBER, TENSOR = "number", "tensor"


class Fixed(NamedTuple):
    """An option that is compiled in."""

    value: Any


Form = Any
"""How an option is passed: NUMBER, TENSOR, Fixed, or a tuple of these."""


def lower(value: Any, numbers: list[float], tensors: list[Any]) -> Form:
    """Puts the numbers and the arrays of an option into the lists; returns its form."""
    if isinstance(value, float):
        numbers.append(value)
        return NUMBER
    if isinstance(value, Tensor):
        tensors.append(value._cell.array)
        return TENSOR
    if isinstance(value, tuple | list):
        return tuple([lower(part, numbers, tensors) for part in value])
    if value is None or isinstance(value, bool | str):
        return Fixed(value)
    numbers.append(float(value))  # an int, or a number of numpy's
    return NUMBER


def lift(form: Form, numbers: Iterator[Any], tensors: Iterator[Any]) -> Any:
    """The option again, where the numbers and the arrays are traced.

    They are weakly typed, as Python numbers are: an array keeps its dtype beside them.
    """
    if form is NUMBER or form is TENSOR:
        number = next(numbers if form is NUMBER else tensors)
        return jax.lax.convert_element_type(number.reshape(()), float)
    if isinstance(form, Fixed):
        return form.value
    return tuple([lift(part, numbers, tensors) for part in form])


def lift_all(
    names: Sequence[str], forms: Sequence[Form], numbers: Any, tensors: Sequence[Any]
) -> SimpleNamespace:
    """All options of a group, by name. numbers: (n,)"""
    values, arrays = iter(numbers), iter(tensors)
    return SimpleNamespace(
        **{name: lift(form, values, arrays) for name, form in zip(names, forms, strict=True)}
    )
