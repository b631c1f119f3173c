"""Rows of the operators in `dyngraph/ops/scattering.py`."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from tests.opinfo import OpInfo, call, integers, normal, spread
from tests.references import grid_along


def scatter_reduce(x: Any, dim: int, index: Any, src: Any, reduce: str, **kwargs: Any) -> Any:
    """By a matrix of who goes where, (places, terms), along the only dim."""
    assert dim == 0 and x.ndim == 1
    goes = index[None, :] == jnp.arange(x.shape[0])[:, None]
    terms = jnp.broadcast_to(src, goes.shape)
    if kwargs.get("include_self", True):
        goes = jnp.concatenate([jnp.ones((x.shape[0], 1), bool), goes], 1)
        terms = jnp.concatenate([x[:, None], terms], 1)
    some = goes.any(1)
    if reduce in ("amax", "amin"):
        worst = -jnp.inf if reduce == "amax" else jnp.inf
        reduced = getattr(jnp, reduce)(jnp.where(goes, terms, worst), axis=1)
        return jnp.where(some, jnp.where(some, reduced, 0), x)
    neutral = 1 if reduce == "prod" else 0
    how = jnp.prod if reduce == "prod" else jnp.sum
    reduced = how(jnp.where(goes, terms, neutral), axis=1)
    if reduce == "mean":
        reduced = reduced / jnp.maximum(goes.sum(1), 1)
    return jnp.where(some, reduced, x)


ROWS: list[OpInfo] = [
    OpInfo(
        "scatter",
        [
            call(normal(2, 4), 1, np.array([[0, 2], [3, 1]], np.int32), normal(2, 3)),
            call(normal(2, 4), 0, integers(2, 1, 4), 1.5),
        ],
        lambda x, dim, index, src: x.at[grid_along(index, dim)].set(
            src if isinstance(src, float) else src[: index.shape[0], : index.shape[1]]
        ),
        refuses_empty="out of bounds for dimension . with size 0",
    ),
    OpInfo(
        "scatter_add",
        [
            call(normal(2, 4), 1, integers(4, 2, 3), normal(2, 3)),
            call(normal(3, 4), 0, integers(3, 5, 2), normal(6, 4)),
        ],
        lambda x, dim, index, src: x.at[grid_along(index, dim)].add(
            src[: index.shape[0], : index.shape[1]]
        ),
        refuses_empty="out of bounds for dimension . with size 0",
    ),
    OpInfo(
        "scatter_reduce",
        [
            call(
                spread(4),
                0,
                np.array([0, 0, 2, 2, 2, 3], np.int32),
                spread(7)[:6] * 1.1,
                reduce=reduce,
                include_self=include_self,
            )
            for reduce in ("sum", "mean", "amax", "amin")
            for include_self in (True, False)
        ],
        scatter_reduce,
        refuses_empty="out of bounds for dimension . with size 0",
    ),
    OpInfo(
        "scatter_reduce",
        [
            call(
                normal(3),
                0,
                np.array([0, 0, 2], np.int32),
                normal(3),
                reduce="prod",
                include_self=include_self,
            )
            for include_self in (True, False)
        ],
        scatter_reduce,
        second=False,  # JAX has no derivative of a product that is scattered to shared places
        refuses_empty="out of bounds for dimension . with size 0",
    ),
]
