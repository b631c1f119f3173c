"""Exponentials that are summed along a dim: `logsumexp`, `softmax` and their relatives.

The largest exponent is taken out first, so that nothing overflows; 16-bit inputs are computed in
float32 and cast back.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy import special

from dyngraph import dtypes
from dyngraph.ops.arguments import is_inexact, reduced_dims, require_float, restore_dims, widened
from dyngraph.ops.arithmetic import neg
from dyngraph.ops.operator import define
from dyngraph.tensor import Tensor, canonical_dim


def _logsumexp(self: Any, *, dim: Any, keepdim: bool = False) -> Any:
    array = self if is_inexact(self) else self.astype(dtypes.get_default_dtype().dtype)
    return special.logsumexp(array, reduced_dims(dim, self.ndim), keepdims=keepdim)


def _logsumexp_rule(grad: Any, self: Any, result: Any, dim: Any) -> Any:
    # A row of -inf alone has result -inf, and -inf - -inf would be NaN; its gradient is 0.
    total = jnp.where(result == -jnp.inf, 0, result)
    total, grad = (restore_dims(a, self.shape, dim) for a in (total, grad))
    return grad * jnp.conj(jnp.exp(self - total))


logsumexp = define(
    "logsumexp",
    _logsumexp,
    signature="self, dim, keepdim=False",
    self=_logsumexp_rule,
    doc="""log(sum(exp(input))) along `dim`, an int or several, without overflow.

    The gradient is softmax; 0 for a row in which all are -inf.

    >>> dg.logsumexp(dg.tensor([1000.0, 1000.0]), dim=0)
    tensor(1000.6932)
    """,
)


def _axis(dim: int, ndim: int) -> Any:
    """`dim` counted from the front; a tensor without dims is reduced over none."""
    axis = canonical_dim(dim, ndim)
    return axis if ndim else ()


def _softmax_input(where: str, self: Any, dtype: Any) -> Any:
    if dtype is not None:
        return self.astype(dtypes.as_dtype(dtype).dtype)
    require_float(where, self)
    return self


def _softmax(self: Any, *, dim: int, dtype: Any = None) -> Any:
    self = _softmax_input("softmax", self, dtype)
    return jax.nn.softmax(widened(self), axis=_axis(dim, self.ndim)).astype(self.dtype)


def _softmax_rule(grad: Any, result: Any, dim: int) -> Any:
    grad, wide = widened(grad), widened(result)
    axis = _axis(dim, grad.ndim)
    return wide * (grad - jnp.sum(grad * wide, axis, keepdims=True))


softmax = define(
    "softmax",
    _softmax,
    signature="self, dim, dtype=None",
    self=_softmax_rule,
    doc="""Exponentials along `dim`, scaled to sum to 1; `dtype` converts the input first.

    Raises RuntimeError for integers without `dtype`.

    >>> dg.softmax(dg.tensor([0.0, 0.0]), 0)
    tensor([0.5000, 0.5000])
    """,
)


def _log_softmax(self: Any, *, dim: int, dtype: Any = None) -> Any:
    self = _softmax_input("log_softmax", self, dtype)
    return jax.nn.log_softmax(widened(self), axis=_axis(dim, self.ndim)).astype(self.dtype)


def _log_softmax_rule(grad: Any, result: Any, dim: int) -> Any:
    grad, wide = widened(grad), widened(result)
    axis = _axis(dim, grad.ndim)
    return grad - jnp.exp(wide) * jnp.sum(grad, axis, keepdims=True)


log_softmax = define(
    "log_softmax",
    _log_softmax,
    signature="self, dim, dtype=None",
    self=_log_softmax_rule,
    doc="""The logarithm of `softmax`, without the underflow; `dtype` converts the input first.

    Raises RuntimeError for integers without `dtype`.

    >>> dg.log_softmax(dg.tensor([0.0, 0.0]), 0)
    tensor([-0.6931, -0.6931])
    """,
)


def softmin(input: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """The softmax of `-input`: the smallest value gets the largest share.

    >>> dg.nn.functional.softmin(dg.tensor([0.0, 0.0]), 0)
    tensor([0.5000, 0.5000])
    """
    return softmax(neg(input), dim, dtype)


__all__ = [
    "log_softmax",
    "logsumexp",
    "softmax",
]

METHODS = tuple(__all__)
"""The functions of this file that are methods of Tensor too."""
