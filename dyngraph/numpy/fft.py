"""`jax.numpy.fft` on tensors, every function recorded, with JAX's conventions."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from dyngraph.numpy.namespace import member, names

__all__ = names(jnp.fft)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    value = globals()[name] = member(jnp.fft, name, __name__, {})
    return value


def __dir__() -> list[str]:
    return __all__
