"""Which arguments a transform differentiates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dyngraph.tensor import Tensor

Argnums = int | tuple[int, ...]


def places_of(argnums: Any, count: int) -> tuple[int, ...]:
    """The positions that `argnums` names among `count` arguments.

    Raises RuntimeError for what is no number or tuple of different numbers in that range.
    """
    if not isinstance(argnums, (int, tuple)):
        raise RuntimeError(
            f"argnums must be int or Tuple[int, ...], got: {type(argnums).__name__}. Pass the "
            "position of an argument, or a tuple of positions."
        )
    if argnums == ():
        raise RuntimeError("argnums must be non-empty. Pass the positions to differentiate.")
    numbers = (argnums,) if isinstance(argnums, int) else argnums
    places = tuple(_place_of(n, count) for n in numbers)
    if len(set(places)) < len(places):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}. Name each once.")
    return places


def _place_of(number: Any, count: int) -> int:
    if not isinstance(number, int):
        raise RuntimeError(
            f"argnum must be int, got: {type(number).__name__}. Pass the position of an argument."
        )
    if not -count <= number < count:
        raise RuntimeError(
            f"Got argnum={number}, but only {count} positional inputs. Pass a number from 0 to "
            f"{count - 1}; what is given by keyword can't be differentiated."
        )
    return number % count


def replaced(args: Sequence[Any], places: Sequence[int], values: Sequence[Any]) -> list[Any]:
    """The arguments, with `values` at `places`."""
    result = list(args)
    for place, value in zip(places, values, strict=True):
        result[place] = value
    return result


def split_aux(output: Any, where: str) -> tuple[Any, Any]:
    """Output and auxiliary output of a function with `has_aux`."""
    if not (isinstance(output, tuple) and len(output) == 2):
        raise RuntimeError(
            f"{where}: output of function f should be a tuple: (output, aux) if has_aux is True"
        )
    return output


def check_outputs(leaves: Sequence[Any], where: str) -> None:
    """Raises where a function returned nothing, or something else than tensors."""
    if not leaves or (len(leaves) == 1 and leaves[0] is None):
        raise RuntimeError(
            f"{where}: Expected f to be a function that has non-empty output (got output = "
            f"{leaves}). Return a tensor, or a structure of tensors."
        )
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(
                f"{where}: expected f(*primals) to return only tensors, got unsupported type "
                f"{type(leaf).__name__}. Return other values as aux, with has_aux=True."
            )


def check_real(where: str, leaves: Sequence[Any], *, inputs: bool) -> None:
    """Raises where one of the tensors is complex, whose Jacobian is no matrix."""
    for position, leaf in enumerate(leaves):
        if isinstance(leaf, Tensor) and leaf.dtype.is_complex:
            raise RuntimeError(
                f"{where}: Expected all {'inputs' if inputs else 'outputs'} to be real but "
                f"received complex tensor at flattened input idx: {position}. Take view_as_real() "
                "of it."
            )
