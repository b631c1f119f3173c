"""Sizes of one, two or three dims, from a number or a sequence; and names in a state_dict."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any

__all__ = ["consume_prefix_in_state_dict_if_present"]


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple[Any, ...]]:
    def parse(x: Any) -> tuple[Any, ...]:
        return tuple(x) if isinstance(x, Iterable) else tuple(repeat(x, n))

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(t: tuple[int, ...], n: int) -> tuple[int, ...]:
    """The elements from the last to the first, each n times: what `pad` takes for one padding a
    dim."""
    return tuple(x for x in reversed(t) for _ in range(n))


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Takes `prefix` off the names of a state_dict, in place, where they have it.

    >>> from dyngraph.nn.modules.utils import consume_prefix_in_state_dict_if_present
    >>> state = {"module.weight": dg.ones(2)}
    >>> consume_prefix_in_state_dict_if_present(state, "module.")
    >>> state
    {'weight': tensor([1., 1.])}
    """
    metadata = getattr(state_dict, "_metadata", {})
    for key in [k for k in state_dict if k.startswith(prefix)]:
        state_dict[key.removeprefix(prefix)] = state_dict.pop(key)
    for key in [k for k in metadata if k and (k + ".").startswith(prefix)]:
        metadata[key[len(prefix) :]] = metadata.pop(key)
