"""Running sums, products and extremes along a dim: as many elements out as in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import lax

from dyngraph import dtypes
from dyngraph.ops.arguments import summed_dtype
from dyngraph.ops.operator import define
from dyngraph.tensor import canonical_dim


def _along(array: Any, dim: int, scan: Callable[[Any, int], Any]) -> Any:
    """`scan(array, axis)`, also for a tensor of no dims."""
    axis = canonical_dim(dim, array.ndim)
    return scan(array, axis) if array.ndim else scan(array[None], axis)[0]


cumsum = define(
    "cumsum",
    lambda self, *, dim, dtype=None: _along(
        self.astype(summed_dtype(self, dtype)), dim, lax.cumsum
    ),
    self=lambda grad, dim: _along(grad, dim, lambda a, axis: lax.cumsum(a, axis, reverse=True)),
    doc="""The running sum along `dim`; integers as in `sum`.

    >>> dg.cumsum(dg.tensor([1.0, 2.0, 3.0]), dim=0)
    tensor([1., 3., 6.])
    """,
)
cumprod = define(
    "cumprod",
    lambda self, *, dim, dtype=None: _along(
        self.astype(summed_dtype(self, dtype)), dim, lax.cumprod
    ),
    doc="""The running product along `dim`; integers as in `prod`.

    >>> dg.cumprod(dg.tensor([1.0, 2.0, 3.0]), dim=0)
    tensor([1., 2., 6.])
    """,
)
logcumsumexp = define(
    "logcumsumexp",
    lambda self, *, dim: _along(self, dim, lax.cumlogsumexp),
    doc="""The logarithm of the running sum of exponentials along `dim`, without overflow.

    >>> dg.logcumsumexp(dg.tensor([0.0, 0.0]), dim=0)
    tensor([0.0000, 0.6931])
    """,
)


def _running_extreme(
    beats: Callable[[Any, Any], Any],
) -> Callable[..., Any]:
    """The kernel of `cummax` or `cummin`: the latest among equals counts, and NaN wins."""

    def later(first: Any, second: Any) -> Any:
        (a, i), (b, j) = first, second
        take = jnp.isnan(b) | (~jnp.isnan(a) & beats(b, a))
        return jnp.where(take, b, a), jnp.where(take, j, i)

    def kernel(self: Any, *, dim: int) -> tuple[Any, Any]:
        axis = canonical_dim(dim, self.ndim)
        array = self if self.ndim else self[None]
        indices = lax.broadcasted_iota(dtypes.default_int().dtype, array.shape, axis)
        values, indices = lax.associative_scan(later, (array, indices), axis=axis)
        return values.reshape(self.shape), indices.reshape(self.shape)

    return kernel


def _running_extreme_rule(grads: Any, indices: Any, dim: int) -> Any:
    (grad,) = grads
    if not grad.ndim:
        return grad
    places = list(jnp.indices(grad.shape, sparse=True))
    places[canonical_dim(dim, grad.ndim)] = indices
    return jnp.zeros_like(grad).at[tuple(places)].add(grad)


cummax = define(
    "cummax",
    _running_extreme(jnp.greater_equal),
    outputs=("values", "indices"),
    returns="cummax",
    self=_running_extreme_rule,
    doc="""The largest element so far along `dim`, and its index: the latest of equal ones.

    >>> dg.cummax(dg.tensor([1.0, 3.0, 2.0]), dim=0).values
    tensor([1., 3., 3.])
    """,
)
cummin = define(
    "cummin",
    _running_extreme(jnp.less_equal),
    outputs=("values", "indices"),
    returns="cummin",
    self=_running_extreme_rule,
    doc="""The smallest element so far along `dim`, and its index: the latest of equal ones.

    >>> dg.cummin(dg.tensor([3.0, 1.0, 2.0]), dim=0).values
    tensor([3., 1., 1.])
    """,
)


__all__ = [
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "logcumsumexp",
]

METHODS = tuple(__all__)
"""The functions of this file that are methods of Tensor too."""
