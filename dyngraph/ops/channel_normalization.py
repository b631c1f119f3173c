"""Normalisation of channels: over a batch, or in groups of channels of each sample.

Inputs are (batch, channels, ...), and are computed as in `normalization`.
"""

from __future__ import annotations

import math
from typing import Any

import jax

from dyngraph.dispatch import lift
from dyngraph.ops.arguments import require_float, widened
from dyngraph.ops.arithmetic import add, mul
from dyngraph.ops.normalization import normalized, normalized_grad, statistics_of
from dyngraph.ops.operator import define
from dyngraph.ops.parts import select
from dyngraph.ops.shape import clone
from dyngraph.sequence import call
from dyngraph.tensor import Tensor


def _channels(self: Any, *parameters: Any) -> tuple[tuple[int, ...], list[Any]]:
    """All axes but the second, and parameters of one value a channel, made to broadcast."""
    if self.ndim < 2:
        raise ValueError(
            f"expected an input of shape (batch, channels, ...), got {list(self.shape)}"
        )
    for parameter in parameters:
        if parameter is not None and parameter.shape != (self.shape[1],):
            raise RuntimeError(
                "expected weight, bias and running statistics to contain "
                f"{self.shape[1]} elements, one a channel, got shape {list(parameter.shape)}"
            )
    axes = (0, *range(2, self.ndim))
    return axes, [_a_channel(p, self.ndim) for p in parameters]


def _a_channel(parameter: Any, ndim: int) -> Any:
    return None if parameter is None else parameter.reshape(1, -1, *[1] * (ndim - 2))


def _batch_norm(self: Any, weight: Any = None, bias: Any = None, eps: Any = 1e-5) -> Any:
    require_float("batch_norm", self)
    axes, (weight, bias) = _channels(self, weight, bias)
    if self.size == self.shape[1]:
        raise ValueError(
            "Expected more than 1 value per channel when training, got input size "
            f"{list(self.shape)}"
        )
    out, _ = normalized(widened(self), axes, eps)
    out = out if weight is None else out * weight
    return (out if bias is None else out + bias).astype(self.dtype)


def _batch_norm_rule(grad: Any, self: Any, weight: Any, eps: Any) -> Any:
    axes, (weight,) = _channels(self, weight)
    normal, scale = normalized(widened(self), axes, eps)
    return normalized_grad(grad if weight is None else grad * weight, normal, scale, axes)


def _sum_to_channels(grad: Any) -> Any:
    return grad.sum((0, *range(2, grad.ndim)))


_batch_norm_training = define(
    "batch_norm",
    _batch_norm,
    node="NativeBatchNormBackward0",
    self=_batch_norm_rule,
    weight=lambda grad, self, eps: _sum_to_channels(
        grad * normalized(widened(self), _channels(self)[0], eps)[0]
    ),
    bias=_sum_to_channels,
    eps=None,
)


def _with_statistics(self: Any, mean: Any, var: Any, eps: Any) -> tuple[Any, Any]:
    _, (mean, var) = _channels(self, mean, var)
    scale = jax.lax.rsqrt(widened(var) + eps)
    return (widened(self) - mean) * scale, scale


def _batch_norm_eval(
    self: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    eps: Any = 1e-5,
) -> Any:
    require_float("batch_norm", self)
    out, _ = _with_statistics(self, running_mean, running_var, eps)
    _, (weight, bias) = _channels(self, weight, bias)
    out = out if weight is None else out * weight
    return (out if bias is None else out + bias).astype(self.dtype)


def _batch_norm_eval_rule(grad: Any, running_var: Any, weight: Any, eps: Any) -> Any:
    scale = jax.lax.rsqrt(widened(running_var) + eps)
    return grad * _a_channel(scale if weight is None else scale * weight, grad.ndim)


_batch_norm_fixed = define(
    "batch_norm",
    _batch_norm_eval,
    node="NativeBatchNormBackward0",
    self=_batch_norm_eval_rule,
    running_mean=None,
    running_var=None,
    weight=lambda grad, self, running_mean, running_var, eps: _sum_to_channels(
        grad * _with_statistics(self, running_mean, running_var, eps)[0]
    ),
    bias=_sum_to_channels,
    eps=None,
)


@jax.jit
def _moved_statistics(array: Any, mean: Any, var: Any, momentum: Any) -> tuple[Any, Any]:
    """Running mean and variance after a batch; the variance is the unbiased one."""
    axes = (0, *range(2, array.ndim))
    wide = widened(array)
    count = array.size // array.shape[1]
    new_var = wide.var(axes) * (count / (count - 1))
    return (
        ((1 - momentum) * mean + momentum * wide.mean(axes)).astype(mean.dtype),
        ((1 - momentum) * var + momentum * new_var).astype(var.dtype),
    )


def _scaled_by_first(input: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    """What `batch_norm` makes of no elements, of whatever shape; statistics stay as they are."""
    out = clone(input)
    out = out if weight is None else mul(out, select(weight, 0, 0))
    return out if bias is None else add(out, select(bias, 0, 0))


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Each channel of (batch, channels, ...) with mean 0 and variance 1, by `weight` plus `bias`.

    When `training`, by the batch's own mean and variance, of which `momentum` goes into the running
    ones, in place; otherwise by the running ones. Ioffe and Szegedy 2015,
    https://arxiv.org/abs/1502.03167. Raises ValueError for a single value a channel in training,
    RuntimeError where shapes do not fit.

    >>> x = dg.tensor([[1.0], [3.0]])
    >>> dg.nn.functional.batch_norm(x, None, None, training=True).flatten()
    tensor([-1.0000,  1.0000])
    """
    if not input._cell.held.size:
        return _scaled_by_first(input, weight, bias)
    if not training:
        if running_mean is None or running_var is None:
            raise RuntimeError(
                "Expected running_mean and running_var to be defined when training=False. Pass "
                "them, or training=True."
            )
        return _batch_norm_fixed(input, running_mean, running_var, weight, bias, eps)
    result = _batch_norm_training(input, weight, bias, eps)
    if running_mean is not None and running_var is not None:
        mean, var = running_mean._cell, running_var._cell
        new_mean, new_var = call(
            _moved_statistics,
            input._cell.held,
            mean.held,
            var.held,
            lift(momentum, "norm", "momentum"),
        )
        mean.write(new_mean)
        var.write(new_var)
    return result


def _groups(self: Any, num_groups: int) -> Any:
    if self.ndim < 2 or self.shape[1] % num_groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of "
            f"shape {list(self.shape)} and num_groups={num_groups}"
        )
    length = math.prod(self.shape[1:]) // num_groups  # -1 has no answer where a dim is empty
    return widened(self).reshape(self.shape[0], num_groups, length)


def _group_norm(
    self: Any, weight: Any = None, bias: Any = None, eps: Any = 1e-5, *, num_groups: int
) -> Any:
    require_float("group_norm", self)
    out = normalized(_groups(self, num_groups), 2, eps)[0].reshape(self.shape)
    _, (weight, bias) = _channels(self, weight, bias)
    out = out if weight is None else out * weight
    return (out if bias is None else out + bias).astype(self.dtype)


def _group_norm_rule(grad: Any, self: Any, weight: Any, eps: Any, num_groups: int) -> Any:
    normal, scale = normalized(_groups(self, num_groups), 2, eps)
    if weight is not None:
        grad = grad * _a_channel(weight, grad.ndim)
    return normalized_grad(grad.reshape(normal.shape), normal, scale, 2).reshape(self.shape)


_native_group_norm = define(
    "group_norm",
    _group_norm,
    signature="self, num_groups, weight, bias, eps",
    node="NativeGroupNormBackward0",
    self=_group_norm_rule,
    weight=lambda grad, self, eps, num_groups: _sum_to_channels(
        grad * normalized(_groups(self, num_groups), 2, eps)[0].reshape(grad.shape)
    ),
    bias=_sum_to_channels,
    eps=None,
)


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Groups of channels of (batch, channels, ...) with mean 0 and variance 1 in each sample.

    `weight` and `bias` have one value a channel. Wu and He 2018, https://arxiv.org/abs/1803.08494.
    Raises RuntimeError where the groups do not divide the channels.

    >>> dg.group_norm(dg.tensor([[1.0, 3.0, 5.0, 5.0]]), 2)
    tensor([[-1.0000,  1.0000,  0.0000,  0.0000]])
    """
    return _native_group_norm(input, num_groups, weight, bias, eps)


def _statistics_of_groups(self: Any, eps: Any, *, num_groups: int) -> tuple[Any, Any]:
    mean, rstd = statistics_of(self, _groups(self, num_groups), 2, eps)
    return mean[..., 0], rstd[..., 0]


_group_statistics = define(
    "group_norm_statistics",
    _statistics_of_groups,
    outputs=("mean", "rstd"),
    eps=None,
)


def native_group_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    N: int,
    C: int,
    HxW: int,
    group: int,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """`group_norm`, and the mean and the reciprocal deviation of each group: (N, group).

    `N`, `C` and `HxW` are the input's sizes.

    >>> x = dg.tensor([[1.0, 3.0]])
    >>> out, mean, rstd = dg.native_group_norm(x, None, None, 1, 2, 1, 1, 0.0)
    >>> mean, rstd
    (tensor([[2.]]), tensor([[1.]]))
    """
    shape = input._cell.held.shape
    if shape[:2] != (N, C) or N * C * HxW != input._cell.held.size:
        raise RuntimeError(
            f"native_group_norm: expected N, C and HxW of input {list(shape)}, got {N}, {C}, {HxW}"
        )
    result = group_norm(input, group, weight, bias, eps)
    mean, rstd = _group_statistics(input, eps, group)
    return result, mean, rstd


__all__ = ["group_norm", "native_group_norm"]

METHODS = ()
"""The functions of this file that are methods of Tensor too."""
