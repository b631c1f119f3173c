"""Sliding windows as columns, and back."""

from __future__ import annotations

__all__: list[str] = []
METHODS: tuple[str, ...] = ()
