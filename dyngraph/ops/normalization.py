"""Normalisation: values brought to mean 0 and deviation 1, over last dims.

16-bit inputs are computed in float32 and cast back.

# Note [What normalisation saves]
Only its input: mean and deviation are computed again in backward, inside one kernel, where they
cost a pass over data that is read anyway. So second derivatives see them as functions of the input.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from dyngraph.kernels import same
from dyngraph.ops.arguments import require_float, widened
from dyngraph.ops.operator import define
from dyngraph.tensor import Tensor


def normalized(wide: Any, axes: Any, eps: Any) -> tuple[Any, Any]:
    """`wide` with mean 0 and deviation 1 over `axes`, and what it was scaled by."""
    centered = wide - wide.mean(axes, keepdims=True)
    scale = jax.lax.rsqrt((centered * centered).mean(axes, keepdims=True) + eps)
    return centered * scale, scale


def normalized_grad(grad: Any, normal: Any, scale: Any, axes: Any) -> Any:
    """The gradient of what was normalised, from that of the result."""
    # Ioffe and Szegedy 2015, https://arxiv.org/abs/1502.03167, section 3, with all terms collected.
    along = (grad * normal).mean(axes, keepdims=True)
    return scale * (grad - grad.mean(axes, keepdims=True) - normal * along)


def _last_dims(where: str, self: Any, shape: Sequence[int], *parameters: Any) -> tuple[int, ...]:
    require_float(where, self)
    if not shape or self.ndim < len(shape) or self.shape[self.ndim - len(shape) :] != tuple(shape):
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape "
            f"[*{''.join(f', {n}' for n in shape)}], but got input of size{list(self.shape)}"
        )
    for parameter in parameters:
        if parameter is not None and parameter.shape != tuple(shape):
            raise RuntimeError(
                "Expected weight and bias to be of same shape as normalized_shape, but got "
                f"{list(parameter.shape)} and normalized_shape = {list(shape)}"
            )
    return tuple(range(self.ndim - len(shape), self.ndim))


def _layer_norm(
    self: Any, weight: Any = None, bias: Any = None, eps: Any = 1e-5, *, normalized_shape: Any
) -> Any:
    axes = _last_dims("layer_norm", self, normalized_shape, weight, bias)
    out, _ = normalized(widened(self), axes, eps)
    out = out if weight is None else out * weight
    return (out if bias is None else out + bias).astype(self.dtype)


def _layer_norm_rule(grad: Any, self: Any, weight: Any, eps: Any, normalized_shape: Any) -> Any:
    axes = _last_dims("layer_norm", self, normalized_shape)
    normal, scale = normalized(widened(self), axes, eps)
    return normalized_grad(grad if weight is None else grad * weight, normal, scale, axes)


def _as_shape(shape: Any) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


_native_layer_norm = define(
    "layer_norm",
    _layer_norm,
    signature="self, normalized_shape, weight, bias, eps",
    node="NativeLayerNormBackward0",
    self=_layer_norm_rule,
    weight=lambda grad, self, eps, normalized_shape: (
        grad * normalized(widened(self), _last_dims("layer_norm", self, normalized_shape), eps)[0]
    ),
    bias=same,
    eps=None,
)


def layer_norm(
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """The input with mean 0 and variance 1 over its last dims, times `weight` plus `bias`.

    `normalized_shape` names these dims by their sizes, and is the shape of `weight` and `bias`. Ba
    et al. 2016, https://arxiv.org/abs/1607.06450. Raises RuntimeError where shapes do not fit.

    >>> dg.layer_norm(dg.tensor([1.0, 3.0]), (2,))
    tensor([-1.0000,  1.0000])
    """
    return _native_layer_norm(input, _as_shape(normalized_shape), weight, bias, eps)


def _rms(self: Any, normalized_shape: Any, eps: Any, weight: Any = None) -> tuple[Any, Any, Any]:
    """The input over its root mean square, what it was multiplied by, and the axes."""
    axes = _last_dims("rms_norm", self, normalized_shape, weight)
    wide = widened(self)
    if eps is None:
        eps = jnp.finfo(self.dtype).eps
    scale = jax.lax.rsqrt((wide * wide).mean(axes, keepdims=True) + eps)
    return wide * scale, scale, axes


def _rms_norm(self: Any, weight: Any = None, eps: Any = None, *, normalized_shape: Any) -> Any:
    out, _, _ = _rms(self, normalized_shape, eps, weight)
    return (out if weight is None else out * weight).astype(self.dtype)


def _rms_norm_rule(grad: Any, self: Any, weight: Any, eps: Any, normalized_shape: Any) -> Any:
    normal, scale, axes = _rms(self, normalized_shape, eps)
    grad = grad if weight is None else grad * weight
    return scale * (grad - normal * (grad * normal).mean(axes, keepdims=True))


_native_rms_norm = define(
    "rms_norm",
    _rms_norm,
    signature="self, normalized_shape, weight, eps",
    self=_rms_norm_rule,
    weight=lambda grad, self, eps, normalized_shape: grad * _rms(self, normalized_shape, eps)[0],
    eps=None,
)


def rms_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """The input over the root of its mean square over its last dims, times `weight`.

    `eps` is added to the mean square; by default it is that of the dtype. Zhang and Sennrich 2019,
    https://arxiv.org/abs/1910.07467. Raises RuntimeError where shapes do not fit.

    >>> dg.rms_norm(dg.tensor([3.0, 3.0]), (2,))
    tensor([1., 1.])
    """
    return _native_rms_norm(input, _as_shape(normalized_shape), weight, eps)


def native_layer_norm(
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """`layer_norm`, and the mean and the reciprocal deviation that it used, with 1 at each dim.

    >>> out, mean, rstd = dg.native_layer_norm(dg.tensor([1.0, 3.0]), (2,), None, None, 0.0)
    >>> mean, rstd
    (tensor([2.]), tensor([1.]))
    """
    result = layer_norm(input, normalized_shape, weight, bias, eps)
    mean, rstd = _last_statistics(input, eps, _as_shape(normalized_shape))
    return result, mean, rstd


def statistics_of(self: Any, wide: Any, axes: Any, eps: Any) -> tuple[Any, Any]:
    """The mean and reciprocal deviation of `wide`, computed so and kept in the dtype of `self`."""
    _, scale = normalized(wide, axes, eps)
    return wide.mean(axes, keepdims=True).astype(self.dtype), scale.astype(self.dtype)


_last_statistics = define(
    "layer_norm_statistics",
    lambda self, eps, *, normalized_shape: statistics_of(
        self, widened(self), _last_dims("layer_norm", self, normalized_shape), eps
    ),
    outputs=("mean", "rstd"),
    differentiable=False,
)


__all__ = [
    "layer_norm",
    "native_layer_norm",
    "rms_norm",
]

METHODS = ()
"""The functions of this file that are methods of Tensor too."""
