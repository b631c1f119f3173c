"""Distances between points."""

from __future__ import annotations

__all__: list[str] = []
METHODS: tuple[str, ...] = ()
