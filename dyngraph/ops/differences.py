"""Differences and integrals along a dim, and statistics of several variables."""

from __future__ import annotations

__all__: list[str] = []
METHODS: tuple[str, ...] = ()
