"""Distances of vectors: p-norms of their differences, whose gradient is 0 where these are 0."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from dyngraph.ops.arguments import require_float
from dyngraph.ops.arithmetic import add, sub
from dyngraph.ops.norms import safe_norm, vector_norm
from dyngraph.ops.operator import define
from dyngraph.tensor import Tensor

_MODES = (
    "use_mm_for_euclid_dist_if_necessary",
    "use_mm_for_euclid_dist",
    "donot_use_mm_for_euclid_dist",
)


def _p_norm(differences: Any, p: float) -> Any:
    """The p-norm along the last dim."""
    if p == 0:
        return jnp.sum(differences != 0, -1, dtype=differences.dtype)
    return safe_norm(differences, -1, p)[..., 0]


def _check_rows(first: Any, second: Any) -> None:
    for name, x in (("X1", first), ("X2", second)):
        require_float("cdist", x)
        if x.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {x.ndim}D")
    if first.shape[-1] != second.shape[-1]:
        raise RuntimeError(
            f"X1 and X2 must have the same number of columns. X1: {first.shape[-1]} "
            f"X2: {second.shape[-1]}"
        )


def _euclidean(first: Any, second: Any, *, by_products: bool) -> Any:
    _check_rows(first, second)
    if not by_products:
        return _p_norm(first[..., :, None, :] - second[..., None, :, :], 2.0)
    # |a - b|^2 = |a|^2 + |b|^2 - 2 a.b needs no tensor of all differences, but loses digits
    squares = jnp.sum(first * first, -1)[..., :, None] + jnp.sum(second * second, -1)[..., None, :]
    return jnp.sqrt(jnp.maximum(squares - 2 * (first @ jnp.swapaxes(second, -1, -2)), 0))


def _euclidean_rule(grad: Any, own: Any, other: Any, result: Any) -> Any:
    """d|a - b| / da = (a - b) / |a - b|, summed over all b; 0 where they are equal."""
    share = jnp.where(result == 0, 0, grad / jnp.where(result == 0, 1, result))
    return own * share.sum(-1, keepdims=True) - share @ other


_cdist_euclidean = define(
    "cdist",
    _euclidean,
    signature="first, second, by_products",
    first=lambda grad, first, second, result: _euclidean_rule(grad, first, second, result),
    second=lambda grad, first, second, result: _euclidean_rule(
        jnp.swapaxes(grad, -1, -2), second, first, jnp.swapaxes(result, -1, -2)
    ),
)


def _cdist_kernel(first: Any, second: Any, *, p: float) -> Any:
    _check_rows(first, second)
    return _p_norm(first[..., :, None, :] - second[..., None, :, :], p)


_cdist = define("cdist", _cdist_kernel, signature="first, second, p")


def cdist(x1: Any, x2: Any, p: float = 2.0, compute_mode: str | None = _MODES[0]) -> Tensor:
    """The p-norm distance of each row of `x1` to each of `x2`: (..., n, k), (..., m, k) to
    (..., n, m).

    More than 25 rows at p = 2 are computed by a matrix product, which loses digits where rows are
    close; `compute_mode="donot_use_mm_for_euclid_dist"` avoids it. The gradient of equal rows is 0.

    >>> dg.cdist(dg.tensor([[0.0, 0.0]]), dg.tensor([[3.0, 4.0], [0.0, 1.0]]))
    tensor([[5., 1.]])
    """
    mode = _MODES[0] if compute_mode is None else compute_mode
    if mode not in _MODES:
        raise ValueError(
            f"{compute_mode} is not a valid value for compute_mode: it is one of "
            f"{', '.join(_MODES)}"
        )
    if p < 0:
        raise RuntimeError(f"cdist only supports non-negative p values, got {p}")
    if p != 2:
        return _cdist(x1, x2, float(p))
    many = max(x1.shape[-2:-1] + x2.shape[-2:-1], default=0) > 25
    return _cdist_euclidean(x1, x2, mode == _MODES[1] or (mode == _MODES[0] and many))


def _pdist_kernel(self: Any, *, p: float) -> Any:
    if self.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {self.ndim}D")
    require_float("pdist", self)
    rows, columns = np.triu_indices(self.shape[0], 1)
    return _p_norm(self[rows] - self[columns], p)


_pdist = define("pdist", _pdist_kernel, signature="self, p")


def pdist(input: Any, p: float = 2) -> Tensor:
    """The p-norm distances of all pairs of rows, the upper triangle of `cdist(input, input)`.

    >>> dg.pdist(dg.tensor([[0.0], [1.0], [3.0]]))
    tensor([1., 3., 2.])
    """
    if p < 0:
        raise RuntimeError(f"pdist only supports non-negative p values, got {p}")
    return _pdist(input, float(p))


def pairwise_distance(
    x1: Any, x2: Any, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """The p-norm along the last dim of `x1 - x2 + eps`; other dims broadcast.

    >>> dg.pairwise_distance(dg.tensor([[3.0, 4.0]]), dg.tensor([[0.0, 0.0]]))
    tensor([5.0000])
    """
    return vector_norm(add(sub(x1, x2), eps), p, -1, keepdim)


def dist(input: Any, other: Any, p: float = 2) -> Tensor:
    """The p-norm of all elements of `input - other`.

    >>> dg.dist(dg.tensor([3.0, 4.0]), dg.tensor([0.0, 0.0]))
    tensor(5.)
    """
    return vector_norm(sub(input, other), p)


__all__ = [
    "cdist",
    "dist",
    "pairwise_distance",
    "pdist",
]

METHODS = ("dist",)
"""The functions of this file that are methods of Tensor too."""
