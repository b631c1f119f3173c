"""Rows of indexing, gathering, scattering, sorting and searching."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from tests.opinfo import OpInfo, booleans, call, integers, normal, spread


def along(index: Any, dim: int) -> tuple[Any, ...]:
    """The index that `index` means along `dim`."""
    grid = list(jnp.meshgrid(*(jnp.arange(n) for n in index.shape), indexing="ij"))
    grid[dim] = index
    return tuple(grid)


def getitem(x: Any, index: Any) -> Any:
    """numpy's indexing, with lists as arrays."""
    items = index if isinstance(index, tuple) else (index,)
    return x[tuple(jnp.asarray(i) if isinstance(i, list) else i for i in items)]


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


def rows(index: Any, dim: int) -> tuple[Any, ...]:
    return (*[slice(None)] * dim, index)


def sorted_values(x: Any, dim: int = -1, descending: bool = False) -> tuple[Any, Any]:
    order = jnp.argsort(x, axis=dim, descending=descending)
    return jnp.take_along_axis(x, order, dim), order


def topk(x: Any, k: int, dim: int = -1, largest: bool = True) -> tuple[Any, Any]:
    values, order = sorted_values(x, dim, largest)
    return jnp.take(values, jnp.arange(k), dim), jnp.take(order, jnp.arange(k), dim)


def kthvalue(x: Any, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Any, Any]:
    values, order = sorted_values(x, dim)
    at = jnp.array([k - 1]) if keepdim else k - 1
    return jnp.take(values, at, dim), jnp.take(order, at, dim)


ROWS: list[OpInfo] = [
    OpInfo(
        "__getitem__",
        [
            call(normal(4, 3), 1),
            call(normal(4, 3), (slice(None), -1)),
            call(normal(4, 3), (slice(1, 4, 2), None)),
            call(normal(4, 3), Ellipsis),
            call(normal(4, 3), (slice(3, 1), slice(0, 2))),
            call(normal(4, 3), [0, 0, -1]),
            call(normal(4, 3, 2), ([0, 3], slice(None), [[1], [0]])),
            call(normal(4, 3), (None, slice(None, None, 2), [2, 0])),
        ],
        getitem,
    ),
    OpInfo(
        "gather",
        [
            call(normal(3, 4), 1, integers(4, 2, 5)),
            call(normal(3, 4, 2), -3, integers(3, 4, 2, 2)),
        ],
        lambda x, dim, index: x[along(index, dim)],
    ),
    OpInfo(
        "scatter",
        [
            call(normal(2, 4), 1, np.array([[0, 2], [3, 1]], np.int32), normal(2, 3)),
            call(normal(2, 4), 0, integers(2, 1, 4), 1.5),
        ],
        lambda x, dim, index, src: x.at[along(index, dim)].set(
            src if isinstance(src, float) else src[: index.shape[0], : index.shape[1]]
        ),
    ),
    OpInfo(
        "scatter_add",
        [
            call(normal(2, 4), 1, integers(4, 2, 3), normal(2, 3)),
            call(normal(3, 4), 0, integers(3, 5, 2), normal(6, 4)),
        ],
        lambda x, dim, index, src: x.at[along(index, dim)].add(
            src[: index.shape[0], : index.shape[1]]
        ),
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
    ),
    OpInfo(
        "index_select",
        [call(normal(3, 4), 1, integers(4, 6)), call(normal(3, 4), -2, integers(3, 2))],
        lambda x, dim, index: jnp.take(x, index, axis=dim),
    ),
    OpInfo(
        "index_add",
        [call(normal(2, 3), 1, integers(3, 5), normal(2, 5), alpha=2.0)],
        lambda x, dim, index, source, alpha: x.at[rows(index, dim)].add(alpha * source),
    ),
    OpInfo(
        "index_fill",
        [
            call(normal(2, 3), 1, np.array([0, 2, 0], np.int32), 3.0),
            call(normal(2, 3), 0, np.array([-1], np.int32), normal()),
        ],
        lambda x, dim, index, value: x.at[rows(index, dim)].set(value),
    ),
    OpInfo(
        "index_copy",
        [call(normal(2, 3), 1, np.array([2, 0], np.int32), normal(2, 2))],
        lambda x, dim, index, source: x.at[rows(index, dim)].set(source),
    ),
    OpInfo(
        "index_put",
        [
            call(normal(4, 2), (np.array([3, 0], np.int32),), normal(2, 2)),
            call(normal(4, 2), (np.array([3, 3], np.int32),), normal(2), accumulate=True),
            call(normal(4, 2), (None, np.array([1], np.int32)), normal(4, 1)),
        ],
        lambda x, indices, values, accumulate=False: (
            x.at[tuple(slice(None) if i is None else i for i in indices)].add(values)
            if accumulate
            else x.at[tuple(slice(None) if i is None else i for i in indices)].set(values)
        ),
    ),
    OpInfo(
        "take",
        [call(normal(2, 3), np.array([[0, -1], [0, 4]], np.int32))],
        lambda x, index: x.reshape(-1)[index],
    ),
    OpInfo(
        "take_along_dim",
        [
            call(normal(3, 4), integers(4, 1, 2), dim=1),
            call(normal(1, 4), integers(1, 3, 4), dim=-2),
            call(normal(2, 3), integers(6, 2, 2)),
        ],
        lambda x, index, dim=None: (
            x.reshape(-1)[index.reshape(-1)]
            if dim is None
            else jnp.take_along_axis(
                jnp.broadcast_to(x, (x.shape[0], 4) if dim == 1 else (1, 4)),
                jnp.broadcast_to(index, (3, index.shape[1])),
                dim,
            )
        ),
    ),
    OpInfo(
        "masked_fill",
        [
            call(normal(2, 3), booleans(2, 3), 1.5),
            call(normal(2, 3), booleans(3), normal()),
            call(normal(2, 1), booleans(2, 3), -1),
        ],
        lambda x, mask, value: jnp.where(mask, value, x),
    ),
    OpInfo(
        "masked_select",
        [call(normal(2, 3), np.array([[True, False, True], [False, False, True]]))],
        lambda x, mask: x[(np.array([0, 0, 1]), np.array([0, 2, 2]))],
    ),
    OpInfo(
        "masked_scatter",
        [call(normal(2, 2), np.array([[True, False], [True, True]]), normal(4))],
        lambda x, mask, source: jnp.array([[source[0], x[0, 1]], [source[1], source[2]]]),
    ),
    OpInfo(
        "sort",
        [
            call(spread(3, 4)),
            call(spread(3, 4), dim=0, descending=True),
            call(integers(3, 8), descending=True),
        ],
        sorted_values,
        gradient=False,
    ),
    OpInfo("sort", [call(spread(3, 4)), call(spread(3, 4), 0, True)], sorted_values),
    OpInfo("argsort", [call(spread(3, 4), dim=0)], lambda x, dim: jnp.argsort(x, dim), False),
    OpInfo(
        "topk",
        [call(spread(3, 4), 2), call(spread(3, 4), 1, 0), call(spread(5), 3, largest=False)],
        topk,
    ),
    OpInfo("topk", [call(np.array([1, 3, 3, 2], np.int32), 3)], topk, gradient=False),
    OpInfo(
        "kthvalue", [call(spread(3, 4), 2), call(spread(3, 4), 1, dim=0, keepdim=True)], kthvalue
    ),
    OpInfo(
        "searchsorted",
        [
            call(np.array([1.0, 2.0, 4.0], np.float32), np.array([2.0, 9.0], np.float32)),
            call(
                np.array([1.0, 2.0, 4.0], np.float32),
                np.array([[2.0], [0.0]], np.float32),
                right=True,
            ),
        ],
        lambda s, v, right=False: jnp.searchsorted(s, v, side="right" if right else "left"),
        gradient=False,
    ),
    OpInfo(
        "bucketize",
        [call(np.array([1.0, 1.5], np.float32), np.array([1.0, 2.0], np.float32))],
        lambda v, s: jnp.searchsorted(s, v),
        gradient=False,
    ),
    OpInfo(
        "bincount",
        [call(np.array([1, 3, 1], np.int32), minlength=5)],
        lambda x, minlength: jnp.bincount(x, length=minlength),
        gradient=False,
    ),
    OpInfo(
        "isin",
        [call(integers(4, 5), np.array([1, 2], np.int32), invert=True)],
        lambda x, y, invert: jnp.isin(x, y, invert=invert),
        gradient=False,
    ),
]
