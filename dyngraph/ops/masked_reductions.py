"""Reductions over the elements that a mask keeps."""

from __future__ import annotations

__all__: list[str] = []
METHODS: tuple[str, ...] = ()
