"""`jax.numpy` on tensors: every function of the installed JAX, recorded, with JAX's conventions.

A function written with `dg.numpy` has the gradient that `jax.grad` gives the same function written
with `jax.numpy`: at ties, kinks and edges too. Only complex gradients are PyTorch's, which are the
conjugate of JAX's, as they meet those of other operators.

>>> import dyngraph.numpy as dnp
>>> x = dg.tensor([3.0, 4.0], requires_grad=True)
>>> dnp.linalg.norm(x).backward()
>>> x.grad
tensor([0.6000, 0.8000])

The members are made when they are first asked for. `dg.numpy.namespace.LEFT_OUT` lists what is
left out, and why.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from dyngraph.numpy import fft as fft, linalg as linalg
from dyngraph.numpy.namespace import LEFT_OUT, member, names
from dyngraph.numpy.of_functions import (
    apply_along_axis as apply_along_axis,
    apply_over_axes as apply_over_axes,
    fromfunction as fromfunction,
    mask_indices as mask_indices,
    piecewise as piecewise,
)

__all__ = names(jnp, LEFT_OUT)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    value = globals()[name] = member(jnp, name, __name__, LEFT_OUT)
    return value


def __dir__() -> list[str]:
    return __all__
