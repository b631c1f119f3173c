"""Writes into a copy: fill, put, and the scatters of slices and diagonals."""

from __future__ import annotations

__all__: list[str] = []
METHODS: tuple[str, ...] = ()
