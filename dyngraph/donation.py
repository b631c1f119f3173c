"""Donation: memory that a jitted function may overwrite with its results.

# Note [What may be overwritten]
An array that is donated is gone: XLA writes new values where the old ones were. That is right only
where nobody else can reach the old ones: a saved tensor, a view, a deep copy, or a variable that
holds the array. Each of these holds a reference to the array, so an array with more references than
its Storage's own is copied first, and so is one that no such function has made, whose memory may be
another array's too. What numpy and dlpack look at, JAX itself does not overwrite. So one program
serves always, and what is shared costs its copy.
"""

from __future__ import annotations

from sys import getrefcount
from typing import Any

import jax
import jax.numpy as jnp

from dyngraph.storage import Storage, cell_of
from dyngraph.tracing import Tracer

_copy = jax.jit(jnp.copy)


def _count_references(arrays: list[Any]) -> list[int]:
    return list(map(getrefcount, arrays))


_alone = cell_of(object())  # type: ignore[arg-type]
ALONE = _count_references([_alone.array])[0]
"""As many references has an array that a Storage and the list in `take` hold."""


def take(cells: list[Storage], *, made: list[bool] | None = None) -> list[Any]:
    """The arrays of the cells, to be donated: copies where somebody else may look at one.

    `made` says which ones such a function has made, None that one has made them all. See Note [What
    may be overwritten].
    """
    arrays = [cell.array for cell in cells]
    counts = _count_references(arrays)
    if made is None and max(counts, default=0) <= ALONE:
        return arrays
    for i, count in enumerate(counts):
        if isinstance(arrays[i], Tracer):  # nothing is overwritten while JAX traces
            continue
        if count > ALONE or (made is not None and not made[i]):
            arrays[i] = _copy(arrays[i])
    return arrays
