"""Changing the resolution of images: interpolate, grid_sample, pixel shuffles."""

from __future__ import annotations

__all__: list[str] = []
METHODS: tuple[str, ...] = ()
