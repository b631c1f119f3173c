"""Variance and standard deviation, of all elements or along some dims.

16-bit floats are widened first, so that squares of them add up.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import lax

from dyngraph.ops.arguments import (
    is_inexact,
    reduced_count,
    reduced_dims,
    restore_dims,
    spread,
    widened,
)
from dyngraph.ops.operator import define
from dyngraph.ops.out import takes_out
from dyngraph.tensor import Tensor


def _variance(self: Any, dim: Any, correction: float, *, keepdim: bool) -> tuple[Any, Any]:
    """Variance and mean."""
    if not is_inexact(self):
        raise RuntimeError(
            f"std and var only support floating point and complex dtypes, got {self.dtype}. "
            "Convert it first, for example by .float()."
        )
    dims = reduced_dims(dim, self.ndim)
    array = widened(self)
    centre = jnp.mean(array, dims, keepdims=True)
    squares = jnp.real((array - centre) * jnp.conj(array - centre))
    freedom = builtins.max(reduced_count(dim, self.shape) - correction, 0)
    var = jnp.sum(squares, dims, keepdims=keepdim) / freedom
    centre = centre if keepdim else jnp.squeeze(centre, dims)
    return var, centre


def _variance_rule(grad: Any, self: Any, dim: Any, correction: float) -> Any:
    freedom = reduced_count(dim, self.shape) - correction
    centred = self - jnp.mean(self, reduced_dims(dim, self.ndim), keepdims=True)
    return restore_dims(grad, self.shape, dim) * (jnp.full((), 2, grad.dtype) / freedom) * centred


def _std_rule(grad: Any, self: Any, std: Any, dim: Any, correction: float) -> Any:
    # sqrt has no derivative at 0; where all elements are equal PyTorch's gradient is 0.
    of_var = jnp.where(std == 0, 0, grad / (2 * jnp.where(std == 0, 1, std)))
    return _variance_rule(of_var, self, dim, correction)


def _moments(*, root: bool, with_mean: bool) -> Callable[..., Any]:
    """The kernel of `var`, `std`, `var_mean` or `std_mean`."""

    def kernel(self: Any, *, dim: Any = None, correction: float = 1, keepdim: bool = False) -> Any:
        spread_, centre = _variance(self, dim, correction, keepdim=keepdim)
        spread_ = (jnp.sqrt(spread_) if root else spread_).astype(jnp.real(self).dtype)
        return (spread_, centre.astype(self.dtype)) if with_mean else spread_

    return kernel


def _mean_rule(grad: Any, self: Any, dim: Any) -> Any:
    return spread(grad, self.shape, dim) / builtins.max(reduced_count(dim, self.shape), 1)


_var = define("var", _moments(root=False, with_mean=False), self=_variance_rule)
_std = define(
    "std",
    _moments(root=True, with_mean=False),
    self=lambda grad, self, result, dim, correction: _std_rule(grad, self, result, dim, correction),
)
_var_mean = define(
    "var_mean",
    _moments(root=False, with_mean=True),
    outputs=("var", "mean"),
    self=lambda grads, self, dim, correction: (
        _variance_rule(grads[0], self, dim, correction) + _mean_rule(grads[1], self, dim)
    ),
)
_std_mean = define(
    "std_mean",
    _moments(root=True, with_mean=True),
    outputs=("std", "mean"),
    self=lambda grads, self, std, dim, correction: (
        _std_rule(grads[0], self, std, dim, correction) + _mean_rule(grads[1], self, dim)
    ),
)


def _moment_arguments(
    dim: Any, unbiased: Any, keepdim: bool, correction: Any, axis: Any, keepdims: bool
) -> tuple[Any, float, bool]:
    """Dims, correction and keepdim from PyTorch's two ways to say them.

    `unbiased` is the older way to say a correction of 1 or 0; alone it stands where `dim` does.
    """
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if correction is None:
        correction = 1 if unbiased is None else int(unbiased)
    elif unbiased is not None:
        raise TypeError("got both unbiased and correction. Pass only correction.")
    return axis if dim is None else dim, correction, keepdim or keepdims


@takes_out
def var(
    input: Any,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    axis: Any = None,
    keepdims: bool = False,
) -> Tensor:
    """The variance: squared distances from the mean, summed, over the count minus `correction`.

    Of all elements, or along `dim`, an int or several. `correction` is 1 by default (Bessel's);
    `unbiased=False` says 0. Raises RuntimeError for integers.

    >>> dg.var(dg.tensor([1.0, 2.0, 3.0]))
    tensor(1.)
    """
    return _var(input, *_moment_arguments(dim, unbiased, keepdim, correction, axis, keepdims))


@takes_out
def std(
    input: Any,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    axis: Any = None,
    keepdims: bool = False,
) -> Tensor:
    """The root of the variance; arguments as `var`. Where all elements are equal its gradient is 0.

    >>> dg.std(dg.tensor([1.0, 2.0, 3.0]))
    tensor(1.)
    """
    return _std(input, *_moment_arguments(dim, unbiased, keepdim, correction, axis, keepdims))


def var_mean(
    input: Any,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    axis: Any = None,
    keepdims: bool = False,
) -> tuple[Tensor, Tensor]:
    """The variance and the mean, computed together; arguments as `var`.

    >>> dg.var_mean(dg.tensor([1.0, 2.0, 3.0]))
    (tensor(1.), tensor(2.))
    """
    return _var_mean(input, *_moment_arguments(dim, unbiased, keepdim, correction, axis, keepdims))


def std_mean(
    input: Any,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    axis: Any = None,
    keepdims: bool = False,
) -> tuple[Tensor, Tensor]:
    """The standard deviation and the mean, computed together; arguments as `var`.

    >>> dg.std_mean(dg.tensor([1.0, 2.0, 3.0]))
    (tensor(1.), tensor(2.))
    """
    return _std_mean(input, *_moment_arguments(dim, unbiased, keepdim, correction, axis, keepdims))


def _cov(self: Any, fweights: Any = None, aweights: Any = None, *, correction: int) -> Any:
    if self.ndim > 2:
        raise RuntimeError(
            f"cov(): expected input to have two or fewer dimensions but got an input with "
            f"{self.ndim} dimensions"
        )
    rows = jnp.atleast_2d(self) if is_inexact(self) else jnp.atleast_2d(self).astype(float)
    count = rows.shape[1]
    weights = None
    for name, given in (("fweights", fweights), ("aweights", aweights)):
        if given is None:
            continue
        if given.shape != (count,):
            raise RuntimeError(
                f"cov(): expected {name} to be a vector with one weight for each of the {count} "
                f"observations, got shape {list(given.shape)}"
            )
        weights = given if weights is None else weights * given
    total = count if weights is None else jnp.sum(weights)
    centre = jnp.average(rows, 1, weights, keepdims=True)
    centred = rows - centre
    if weights is None or aweights is None or correction == 0:
        freedom = total - correction
    else:
        freedom = total - correction * jnp.sum(weights * aweights) / total
    weighted = centred if weights is None else centred * weights
    cov = weighted @ jnp.conj(centred).T / jnp.maximum(freedom, 0)
    return cov[0, 0] if rows.shape[0] == 1 else cov


_covariance = define("cov", _cov, signature="self, correction, fweights, aweights", fweights=None)


def cov(input: Any, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Tensor:
    """The covariances of variables, a row each, from observations, a column each.

    The sum of products is divided by the number of observations less `correction`. `fweights` says
    how often each was seen, `aweights` how much it counts. A vector is one variable.

    >>> dg.cov(dg.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    return _covariance(input, correction, fweights, aweights)


def _corrcoef(self: Any) -> Any:
    if self.ndim > 2:
        raise RuntimeError(
            "corrcoef(): expected input to have two or fewer dimensions but got an input with "
            f"{self.ndim} dimensions"
        )
    cov = _cov(self, correction=1)
    if not cov.ndim:
        return cov / cov
    root = jnp.sqrt(jnp.real(jnp.diagonal(cov)))
    ratio = cov / root[:, None] / root
    if jnp.iscomplexobj(ratio):
        return lax.complex(jnp.clip(ratio.real, -1, 1), jnp.clip(ratio.imag, -1, 1))
    return jnp.clip(ratio, -1, 1)


corrcoef = define(
    "corrcoef",
    _corrcoef,
    doc="""The correlations of variables, a row each: covariances over standard deviations.

    >>> dg.corrcoef(dg.tensor([[0.0, 1.0, 2.0], [4.0, 2.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """,
)


__all__ = [
    "corrcoef",
    "cov",
    "std",
    "std_mean",
    "var",
    "var_mean",
]

METHODS = (
    "corrcoef",
    "cov",
    "std",
    "var",
)
"""The functions of this file that are methods of Tensor too."""
