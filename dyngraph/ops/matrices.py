"""Functions of square matrices: determinant, inverse, solve, powers."""

from __future__ import annotations

__all__: list[str] = []
METHODS: tuple[str, ...] = ()
