"""Storage: one mutable cell round an immutable `jax.Array`, with the version that writes raise.

Invariant: whoever needs a tensor's value asks `storage.array`, and nothing else holds one. Aliases
share a Storage, so a write through one is seen by all.
"""

from __future__ import annotations

import jax


class Storage:
    """The current array, and how many in-place writes led to it (None: an inference tensor's)."""

    __slots__ = ("__weakref__", "array", "version")

    array: jax.Array
    version: int | None

    def __init__(self, array: jax.Array, version: int | None = 0) -> None:
        self.array = array
        self.version = version

    def write(self, array: jax.Array) -> None:
        """Replaces the array as an in-place operation does."""
        self.array = array
        if self.version is not None:
            self.version += 1
