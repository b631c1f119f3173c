"""Elements dropped at random.

The mask is drawn from a key that is kept as an input, and not kept itself.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dyngraph.ops.operator import define
from dyngraph.random import Generator, default_generator, fold
from dyngraph.storage import cell_of
from dyngraph.tensor import Tensor, new_tensor
from dyngraph.writing import run_in_place


def kept(key: Any, p: Any, shape: Any) -> Any:
    """The mask of what is kept: True with probability 1 - p."""
    keep = 1 - jnp.asarray(p, np.float32)
    return jax.random.bernoulli(jax.random.wrap_key_data(key), keep, shape)


def dropped(values: Any, key: Any, p: Any) -> Any:
    """Values times 1 / (1 - p), or 0 with probability p: linear in them, so its own derivative."""
    keep = 1 - jnp.asarray(p, np.float32)
    scale = jnp.where(keep > 0, 1 / jnp.where(keep > 0, keep, 1), 0)
    return jnp.where(kept(key, p, values.shape), values * scale.astype(values.dtype), 0)


# The mask is not saved, but drawn again from its key.
drop = define(
    "dropout",
    lambda self, key, p: dropped(self, key, p),
    node="NativeDropoutBackward0",
    self=lambda grad, key, p: dropped(grad, key, p),
    key=None,
    p=None,
)


def draw_mask_key(generator: Generator | None = None) -> Tensor:
    """A fresh key as the integers it is made of, which are saved as any other tensor is."""
    drawn = (default_generator if generator is None else generator).take()
    return new_tensor(cell_of(_key_data(*drawn)))


_key_data = jax.jit(lambda key, count: jax.random.key_data(fold(key, count)))


def check_probability(p: float) -> None:
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes each element with probability `p` and scales the others by 1 / (1 - p).

    Without `training` it is the input itself; `inplace` writes to it. Draws from the default
    generator. Raises ValueError for a `p` that is no probability.

    >>> dg.nn.functional.dropout(dg.ones(3), 0.5, training=False)
    tensor([1., 1., 1.])
    """
    check_probability(p)
    if not training or p == 0:
        return input
    if inplace:
        return run_in_place(dropout, input, p)
    return drop(input, draw_mask_key(), float(p))


__all__: list[str] = []  # these are functions of nn.functional
METHODS = ()
