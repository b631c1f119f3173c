"""A Function that is marked `traceable`: what its backward depends on, when it is traced and not
called."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from dyngraph import dtypes
from dyngraph.pending import resolved

_NODE_FIELDS = {"places", "outputs", "returned", "saved", "lifted"}
_NODE_FIELDS |= {"to_save", "dirty_tensors", "non_differentiable", "saved_for_forward"}
_PLAIN = (bool, int, float, complex, str, bytes, dtypes.dtype, type(None))


def what_it_depends_on(node: Any) -> tuple[Any, list[Any]]:
    """What the backward of a Function's node reads beside its gradients: what can be compared, or
    None where an attribute of ctx can't, and the saved arrays.

    Raises where one of these was written to since.
    """
    for position in range(len(node.saved or ())):
        node.show(position)
    own = [(k, type(v), v) for k, v in vars(node).items() if k not in _NODE_FIELDS]
    targets = [n and n.outputs[number] for n, number in node.edges]
    key: Any = (tuple(own), node.returned, node.places, tuple(targets))
    if not all(_is_plain(value) for _, _, value in own):
        key = None
    return key, [resolved(entry.value) for entry in node.saved or () if entry is not None]


def _is_plain(value: Any) -> bool:
    """Whether an attribute of ctx is known by its value."""
    if isinstance(value, tuple):
        return all(map(_is_plain, value))
    return isinstance(value, _PLAIN)


def with_saved(node: Any, arrays: Sequence[Any]) -> Any:
    """A node like this one that saved other arrays, without their history."""
    changed = copy.copy(node)
    rest = iter(arrays)
    changed.saved = tuple(
        [
            entry
            and entry._replace(
                value=next(rest),
                owner=None,
                version=None,
                edge=None,
                output_nr=None,
                origin=None,
                tangent=None,
            )
            for entry in node.saved or ()
        ]
    )
    return changed
