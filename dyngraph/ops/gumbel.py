"""Draws of categories through which a gradient goes."""

from __future__ import annotations

import warnings
from typing import Any

import jax

from dyngraph.ops.arguments import require_float
from dyngraph.ops.factory_arguments import place_like
from dyngraph.ops.filled import zeros_like
from dyngraph.ops.random import next_draw
from dyngraph.ops.softmaxes import softmax
from dyngraph.storage import cell_of
from dyngraph.tensor import Tensor, new_tensor


def _gumbel(key: Any, shape: Any, dtype: Any) -> Any:
    return jax.random.gumbel(key, shape, dtype)


def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """Shares along `dim` that tend to a draw of one category as `tau` tends to 0.

    `softmax((logits + noise) / tau)` with noise of the Gumbel distribution, from the default
    generator. With `hard` the greatest share is made 1 and the others 0, while the gradient stays
    that of the shares. Jang et al. 2017, https://arxiv.org/abs/1611.01144. `eps` has no effect.

    >>> dg.nn.functional.gumbel_softmax(dg.zeros(4), hard=True).sum()
    tensor(1.)
    """
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    array = logits._cell.array
    require_float("gumbel_softmax", array)
    draw = next_draw(_gumbel, None, place_like(logits, None), array.shape, array.dtype)
    soft = softmax((logits + new_tensor(cell_of(draw()))) / tau, dim)
    if not hard:
        return soft
    chosen = soft.detach().argmax(dim, keepdim=True)
    return zeros_like(soft).scatter(dim, chosen, 1.0) - soft.detach() + soft


__all__: list[str] = []  # a function of nn.functional
METHODS: tuple[str, ...] = ()
