"""PyTorch's `*_copy` operators: what a view shows, as a tensor of its own."""

from __future__ import annotations

__all__: list[str] = []
METHODS: tuple[str, ...] = ()
