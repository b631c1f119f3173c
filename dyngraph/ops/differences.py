"""Differences of neighbours along a dim, and what is built on them: slopes, and areas below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax import lax

from dyngraph.ops.host_values import described
from dyngraph.ops.joining import cat
from dyngraph.ops.operator import define
from dyngraph.ops.out import takes_out
from dyngraph.tensor import Tensor, canonical_dim


def _diff_kernel(self: Any, *, n: int, dim: int) -> Any:
    if not self.ndim:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    axis = canonical_dim(dim, self.ndim)
    return jnp.diff(self, min(n, self.shape[axis]), axis)


_diff = define("diff", _diff_kernel)


@takes_out
def diff(input: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Tensor:
    """Each element minus the one before it along `dim`, `n` times over; bools by exclusive or.

    `prepend` and `append` are put at the ends first.

    >>> dg.diff(dg.tensor([1, 4, 9]), append=dg.tensor([16]))
    tensor([3, 5, 7])
    """
    parts = [part for part in (prepend, input, append) if part is not None]
    return _diff(cat(parts, dim) if len(parts) > 1 else input, n, dim)


# --- slopes -----------------------------------------------------------------------------------


def _slopes(self: Any, spacing: Any, *, dim: int, edge_order: int) -> Any:
    """Weighted sums of three neighbours; exact for parabolas, also at unequal distances.

    The weights are the derivatives of Lagrange's polynomial through them, see B. Fornberg,
    Mathematics of Computation 51 (1988), 699-706.
    """
    values = jnp.moveaxis(self, dim, -1)
    length = values.shape[-1]
    steps = jnp.broadcast_to(spacing, (length - 1,)) if spacing.ndim == 0 else jnp.diff(spacing)
    h, k = steps[:-1], steps[1:]
    inner = (
        -k / (h * (h + k)) * values[..., :-2]
        + (k - h) / (h * k) * values[..., 1:-1]
        + h / (k * (h + k)) * values[..., 2:]
    )
    if edge_order == 1:
        first = (values[..., 1] - values[..., 0]) / steps[0]
        last = (values[..., -1] - values[..., -2]) / steps[-1]
    else:
        h, k = steps[0], steps[1]
        first = (
            -(2 * h + k) / (h * (h + k)) * values[..., 0]
            + (h + k) / (h * k) * values[..., 1]
            - h / (k * (h + k)) * values[..., 2]
        )
        h, k = steps[-2], steps[-1]
        last = (
            k / (h * (h + k)) * values[..., -3]
            - (h + k) / (h * k) * values[..., -2]
            + (2 * k + h) / (k * (h + k)) * values[..., -1]
        )
    slopes = jnp.concatenate([first[..., None], inner, last[..., None]], -1)
    return jnp.moveaxis(slopes, -1, dim)


_gradient_along = define("gradient", _slopes, signature="self, spacing, dim, edge_order")


def gradient(
    input: Any, *, spacing: Any = None, dim: Any = None, edge_order: int = 1
) -> tuple[Tensor, ...]:
    """The slopes along each dim (of `dim`, where it is given), by differences of neighbours.

    `spacing` is the distance of two neighbours: a number, or for each dim a number or the vector of
    coordinates. Inside the error is of second order, at the edges of `edge_order`. Raises
    RuntimeError for dims that are too short.

    >>> dg.gradient(dg.tensor([1.0, 4.0, 9.0]))
    (tensor([3., 4., 5.]),)
    """
    if edge_order not in (1, 2):
        raise RuntimeError(
            f"torch.gradient only supports edge_order=1 and edge_order=2, got {edge_order}"
        )
    shape = described(input).shape
    named = range(len(shape)) if dim is None else dim if isinstance(dim, Sequence) else (dim,)
    dims = [canonical_dim(d, len(shape)) for d in named]
    spacing = 1 if spacing is None else spacing
    several = isinstance(spacing, Sequence)
    spacings = list(spacing) if several else [spacing] * len(dims)
    if len(spacings) != len(dims):
        raise RuntimeError(
            f"torch.gradient expected spacing to be unspecified, a scalar, or a list with a value "
            f"for each of the {len(dims)} dims, but got {len(spacings)} values"
        )
    for d, step in zip(dims, spacings, strict=True):
        if shape[d] < edge_order + 1:
            raise RuntimeError(
                "torch.gradient expected each dimension size to be at least edge_order+1, but "
                f"dimension {d} has size {shape[d]}"
            )
        if described(step).ndim and described(step).shape != (shape[d],):
            raise RuntimeError(
                "torch.gradient expected the coordinates of a dimension to be a vector of its "
                f"size {shape[d]}, but got shape {list(described(step).shape)}"
            )
    return tuple(
        _gradient_along(input, step, d, edge_order) for d, step in zip(dims, spacings, strict=True)
    )


# --- areas ------------------------------------------------------------------------------------


def _widths(x: Any, dx: Any, ndim: int, axis: int) -> Any:
    """The distances of neighbours, in the shape that goes with the values."""
    if x is None:
        return dx
    if x.ndim == 1:
        x = x.reshape([-1 if d == axis else 1 for d in range(ndim)])
    elif x.ndim < ndim:
        x = x.reshape((*[1] * (ndim - x.ndim), *x.shape))
    return jnp.diff(x, axis=axis)


def _strips(self: Any, x: Any, dx: Any, dim: int) -> tuple[Any, int]:
    """Twice the areas of the strips between neighbours, and the axis that they lie along."""
    if not self.ndim:
        raise IndexError("trapezoid() needs values along a dim, but got a tensor of no dims")
    axis = canonical_dim(dim, self.ndim)
    if x is not None and x.ndim == 1 and x.shape[0] != self.shape[axis]:
        raise RuntimeError(
            f"trapezoid: There must be one `x` value for each sample point, but got {x.shape[0]} "
            f"for {self.shape[axis]} points"
        )
    length = self.shape[axis]
    if not length:
        return self, axis
    left = lax.slice_in_dim(self, 0, length - 1, axis=axis)
    right = lax.slice_in_dim(self, 1, length, axis=axis)
    return (left + right) * _widths(x, dx, self.ndim, axis), axis


def _trapezoid_kernel(self: Any, x: Any = None, dx: Any = None, *, dim: int) -> Any:
    strips, axis = _strips(self, x, dx, dim)
    return strips.sum(axis) / 2


def _cumulative_kernel(self: Any, x: Any = None, dx: Any = None, *, dim: int) -> Any:
    strips, axis = _strips(self, x, dx, dim)
    return lax.cumsum(strips, axis) / 2


_trapezoid = define("trapezoid", _trapezoid_kernel, signature="self, x, dx, dim", dx=None)
_cumulative_trapezoid = define(
    "cumulative_trapezoid", _cumulative_kernel, signature="self, x, dx, dim", dx=None
)


def _one_of(x: Any, dx: Any) -> tuple[Any, Any]:
    if x is not None and dx is not None:
        raise TypeError("trapezoid() takes either x, the positions, or dx, their distance")
    return x, (1 if dx is None and x is None else dx)


def trapezoid(y: Any, x: Any = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """The area below values along `dim`, by straight lines between neighbours.

    They lie `dx` apart (1), or at the positions `x`, a vector or a tensor that broadcasts.

    >>> dg.trapezoid(dg.tensor([1.0, 5.0, 10.0]))
    tensor(10.5000)
    """
    return _trapezoid(y, *_one_of(x, dx), dim)


def trapz(y: Any, x: Any = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """`trapezoid` by its older name.

    >>> dg.trapz(dg.tensor([1.0, 5.0]), dx=2)
    tensor(6.)
    """
    return trapezoid(y, x, dx=dx, dim=dim)


def cumulative_trapezoid(y: Any, x: Any = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """The area below values along `dim` up to each but the first of them; see `trapezoid`.

    >>> dg.cumulative_trapezoid(dg.tensor([1.0, 5.0, 10.0]))
    tensor([ 3.0000, 10.5000])
    """
    return _cumulative_trapezoid(y, *_one_of(x, dx), dim)


__all__ = [
    "cumulative_trapezoid",
    "diff",
    "gradient",
    "trapezoid",
    "trapz",
]

METHODS = ("diff",)
"""The functions of this file that are methods of Tensor too."""
