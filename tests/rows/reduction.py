"""Rows of the reductions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import dyngraph as dg
from tests.opinfo import (
    OpInfo,
    booleans,
    call,
    complex_normal,
    integers,
    normal,
    positive,
    spread,
)


def numpy_names(function: Callable[..., Any]) -> Callable[..., Any]:
    """A jnp reduction, called with `dim`, `keepdim` and a dtype of ours."""

    def reference(x: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
        dims = tuple(dim) if isinstance(dim, list) else dim
        extra = {} if dtype is None else {"dtype": dtype.dtype}
        return function(x, axis=dims or (0 if dims == 0 else None), keepdims=keepdim, **extra)

    return reference


def along(function: Callable[..., Any]) -> Callable[..., Any]:
    """A jnp function of an array and an axis."""
    return lambda x, dim, dtype=None: function(
        x if dtype is None else x.astype(dtype.dtype), axis=dim % x.ndim
    )


def values_and_indices(reduce: Any, find: Any) -> Callable[..., Any]:
    """What max(dim) returns; without a dim the reduction alone."""

    def reference(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
        if dim is None:
            return reduce(x)
        return reduce(x, dim, keepdims=keepdim), find(x, dim, keepdims=keepdim)

    return reference


def lower_median(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    flat = x.reshape(-1) if dim is None else x
    axis = 0 if dim is None else dim
    index = jnp.take(jnp.argsort(flat, axis), jnp.array([(flat.shape[axis] - 1) // 2]), axis)
    value = jnp.take_along_axis(flat, index, axis)
    if dim is None:
        return value[0]
    return (value, index) if keepdim else (value.squeeze(dim), index.squeeze(dim))


def running(compare: Any) -> Callable[..., Any]:
    """What cummax and cummin return, for values without ties."""

    def reference(x: Any, dim: int) -> Any:
        moved = jnp.moveaxis(x, dim, -1)
        length = moved.shape[-1]
        before = jnp.tril(jnp.ones((length, length), bool))
        index = compare(moved, before)
        value = jnp.take_along_axis(moved, index, -1)
        return jnp.moveaxis(value, -1, dim), jnp.moveaxis(index, -1, dim)

    return reference


def latest_max(x: Any, before: Any) -> Any:
    return jnp.argmax(jnp.where(before, x[..., None, :], -jnp.inf), -1)


def latest_min(x: Any, before: Any) -> Any:
    return jnp.argmin(jnp.where(before, x[..., None, :], jnp.inf), -1)


def moment(*, root: bool, with_mean: bool) -> Callable[..., Any]:
    function = jnp.std if root else jnp.var

    def reference(
        x: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, correction: Any = None
    ) -> Any:
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        if correction is None:
            correction = 0 if unbiased is False else 1
        value = function(x, axis=dim, ddof=correction, keepdims=keepdim)
        return (value, jnp.mean(x, axis=dim, keepdims=keepdim)) if with_mean else value

    return reference


def norm(x: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False) -> Any:
    if p == "nuc":
        return jnp.linalg.norm(x, "nuc", dim, keepdim)
    p = 2 if p == "fro" else p
    if p == 0:
        return jnp.sum(x != 0, dim, keepdims=keepdim).astype(x.dtype)
    if np.isinf(p):
        return (jnp.max if p > 0 else jnp.min)(jnp.abs(x), dim, keepdims=keepdim)
    return jnp.sum(jnp.abs(x) ** p, dim, keepdims=keepdim) ** (1 / p)


with_nan = normal(3, 4)
with_nan[1, 2] = with_nan[0, 0] = np.nan
with_zeros = positive(3, 4)
with_zeros[0, 1] = with_zeros[2, 0] = with_zeros[2, 3] = 0
a_few_zeros = normal(3, 4)
a_few_zeros[0, 1] = 0

REDUCED = [call(normal(2, 3)), call(normal(2, 3, 2), dim=(0, -1)), call(normal(2, 3), 1, True)]
EXTREMES = [call(spread(2, 3)), call(spread(2, 3, 2), dim=(0, -1)), call(spread(2, 3), 1, True)]
MOMENTS = [
    call(normal(3, 4)),
    call(normal(3, 4), 0, keepdim=True),
    call(normal(2, 3, 2), (0, 2), correction=0),
]
PICKED = [call(spread(3, 4)), call(spread(3, 4), 1), call(spread(3, 4), dim=-2, keepdim=True)]

ROWS = [
    OpInfo(
        "sum",
        [
            *REDUCED,
            call(integers(5, 2, 3), 0),
            call(normal(2, 3), dim=[0, 1], dtype=dg.float16),
            call(complex_normal(2, 3), dim=()),
        ],
        numpy_names(jnp.sum),
        rtol=1e-3,
    ),
    OpInfo("nansum", [call(with_nan), call(with_nan, 1, True)], numpy_names(jnp.nansum)),
    OpInfo(
        "mean",
        [*REDUCED, call(integers(5, 2, 3), dtype=dg.float32), call(complex_normal(2, 3), 0)],
        numpy_names(jnp.mean),
    ),
    OpInfo("nanmean", [call(with_nan), call(with_nan, 1, True)], numpy_names(jnp.nanmean)),
    OpInfo(
        "prod",
        [
            call(positive(2, 3)),
            call(with_zeros, 1),
            call(normal(2, 3), 0, True),
            call(integers(5, 2, 3)),
        ],
        numpy_names(jnp.prod),
    ),
    OpInfo(
        "count_nonzero",
        [call(with_zeros), call(integers(2, 3, 4), 1)],
        numpy_names(jnp.count_nonzero),
        gradient=False,
    ),
    OpInfo(
        "sum_to_size",
        [call(normal(2, 3), 1, 3), call(normal(2, 2, 3), (2, 1)), call(normal(2, 3), ())],
        lambda x, *size: jax.vjp(
            lambda y: jnp.broadcast_to(y, x.shape),
            jnp.zeros(size[0] if isinstance(size[0], tuple) else size),
        )[1](x)[0],
    ),
    OpInfo("amax", [*EXTREMES, call(integers(50, 2, 3), 1)], numpy_names(jnp.max)),
    OpInfo("amin", [*EXTREMES, call(integers(50, 2, 3), 1)], numpy_names(jnp.min)),
    OpInfo(
        "max",
        [*PICKED, call(booleans(2, 3), 1)],
        values_and_indices(jnp.max, jnp.argmax),
    ),
    OpInfo(
        "min",
        [*PICKED, call(integers(9, 2, 3))],
        values_and_indices(jnp.min, jnp.argmin),
    ),
    OpInfo(
        "aminmax",
        [call(spread(2, 3)), call(spread(2, 3), dim=1, keepdim=True)],
        lambda x, dim=None, keepdim=False: (
            jnp.min(x, dim, keepdims=keepdim),
            jnp.max(x, dim, keepdims=keepdim),
        ),
    ),
    OpInfo(
        "argmax",
        [call(spread(3, 4)), call(spread(3, 4), 1), call(integers(9, 3, 4), dim=0, keepdim=True)],
        numpy_names(jnp.argmax),
        gradient=False,
    ),
    OpInfo(
        "argmin",
        [call(spread(3, 4)), call(spread(3, 4), 1), call(integers(9, 3, 4), dim=0, keepdim=True)],
        numpy_names(jnp.argmin),
        gradient=False,
    ),
    OpInfo("median", [*PICKED, call(spread(3, 5), 1)], lower_median),
    OpInfo("nanmedian", PICKED, lower_median),
    OpInfo(
        "quantile",
        [
            call(spread(7), 0.3),
            call(spread(3, 5), 0.25, dim=1, keepdim=True),
            call(spread(3, 5), 0.3, dim=0, interpolation="lower"),
        ],
        lambda x, q, dim=None, keepdim=False, interpolation="linear": jnp.quantile(
            x, q, axis=dim, keepdims=keepdim, method=interpolation
        ),
    ),
    OpInfo(
        "nanquantile",
        [call(with_nan, 0.3, dim=1)],
        lambda x, q, dim: jnp.nanquantile(x, q, axis=dim),
    ),
    OpInfo(
        "all",
        [call(booleans(2, 3)), call(booleans(2, 3), 1, True), call(with_zeros, dim=(0, 1))],
        numpy_names(jnp.all),
        gradient=False,
    ),
    OpInfo(
        "any",
        [call(booleans(2, 3)), call(booleans(2, 3), 1, True), call(with_zeros, dim=(0, 1))],
        numpy_names(jnp.any),
        gradient=False,
    ),
    OpInfo(
        "var",
        [*MOMENTS, call(normal(4), False), call(complex_normal(3, 2), 0)],
        moment(root=False, with_mean=False),
    ),
    OpInfo("std", [*MOMENTS, call(normal(3, 4), 1, False)], moment(root=True, with_mean=False)),
    OpInfo("var_mean", MOMENTS, moment(root=False, with_mean=True)),
    OpInfo("std_mean", MOMENTS[:2], moment(root=True, with_mean=True)),
    OpInfo(
        "norm",
        [
            call(normal(2, 3)),
            call(normal(2, 3), 1, 1),
            call(normal(2, 3), 3, (0, 1), True),
            call(positive(2, 3), 0.5, dim=0),
            call(spread(2, 3), float("inf"), 1),
            call(spread(2, 3), -float("inf")),
            call(a_few_zeros, 0, 1),
            call(complex_normal(2, 3)),
            call(complex_normal(2, 3), 1.5, 1),
        ],
        norm,
    ),
    OpInfo("norm", [call(normal(2, 3), "nuc", (0, 1))], norm, second=False),  # jax: NaN for nuc
    OpInfo(
        "logsumexp",
        [call(normal(2, 3), 1), call(normal(2, 3), (0, 1), True), call(integers(5, 3), 0)],
        numpy_names(jax.scipy.special.logsumexp),
    ),
    OpInfo(
        "cumsum",
        [
            call(normal(2, 3), 1),
            call(normal(2, 3), dim=-2),
            call(integers(5, 4), 0),
            call(booleans(4), 0, dtype=dg.float32),
        ],
        along(lax.cumsum),
    ),
    OpInfo(
        "cumprod",
        [call(normal(2, 3), 1), call(with_zeros, dim=-1), call(integers(5, 4), 0)],
        along(lax.cumprod),
    ),
    OpInfo("logcumsumexp", [call(normal(2, 3), 1)], along(lax.cumlogsumexp)),
    OpInfo("cummax", [call(spread(2, 5), 1), call(spread(3, 2), dim=0)], running(latest_max)),
    OpInfo("cummin", [call(spread(2, 5), 1), call(spread(3, 2), dim=0)], running(latest_min)),
]
