"""Batch normalization in evaluation is linear: it is multiplied into the layer before it."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from dyngraph import modes
from dyngraph.nn.parameter import Parameter
from dyngraph.ops.filled import ones_like, zeros_like
from dyngraph.tensor import Tensor

__all__ = [
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
]


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A copy of a convolution that does what it and the normalization after it do.

    `transpose` for transposed convolutions. Raises AssertionError in training, and without running
    statistics.

    >>> conv, bn = dg.nn.Conv1d(1, 2, 1).eval(), dg.nn.BatchNorm1d(2).eval()
    >>> x = dg.ones(1, 1, 3)
    >>> bool(dg.nn.utils.fuse_conv_bn_eval(conv, bn)(x).allclose(bn(conv(x))))
    True
    """
    _check(conv, bn)
    fused = deepcopy(conv)
    fused.weight, fused.bias = fuse_conv_bn_weights(*_parts(fused, bn), transpose=transpose)
    return fused


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """The weight and the bias of `fuse_conv_bn_eval`, from those of both and the running mean and
    variance."""
    shape = [1] * conv_w.ndim
    shape[1 if transpose else 0] = -1
    return _fused(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, shape)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """A copy of a linear layer that does what it and the normalization after it do.

    Raises AssertionError in training, without running statistics, and where the normalization is
    neither of the layer's features nor of one.

    >>> linear, bn = dg.nn.Linear(3, 2).eval(), dg.nn.BatchNorm1d(2).eval()
    >>> x = dg.ones(1, 3)
    >>> bool(dg.nn.utils.fuse_linear_bn_eval(linear, bn)(x).allclose(bn(linear(x))))
    True
    """
    _check(linear, bn)
    if bn.num_features not in (1, linear.out_features):
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1, got "
            f"linear.out_features={linear.out_features} and bn.num_features={bn.num_features}"
        )
    fused = deepcopy(linear)
    fused.weight, fused.bias = fuse_linear_bn_weights(*_parts(fused, bn))
    return fused


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> tuple[Parameter, Parameter]:
    """The weight and the bias of `fuse_linear_bn_eval`, from those of both and the running mean and
    variance."""
    return _fused(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, [-1, 1])


def _check(layer: Any, bn: Any) -> None:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval! Call .eval() on both modules before.")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError(
            "bn.running_mean and bn.running_var must not be None: the normalization was made "
            "without track_running_stats."
        )


def _parts(layer: Any, bn: Any) -> tuple[Any, ...]:
    statistics = bn.running_mean, bn.running_var, bn.eps
    return layer.weight, layer.bias, *statistics, bn.weight, bn.bias


def _fused(
    weight: Tensor,
    bias: Tensor | None,
    mean: Tensor,
    var: Tensor,
    eps: float,
    bn_weight: Tensor | None,
    bn_bias: Tensor | None,
    shape: list[int],
) -> tuple[Parameter, Parameter]:
    before = zeros_like(mean) if bias is None else bias
    scale = (var + eps).rsqrt() * (ones_like(mean) if bn_weight is None else bn_weight)
    with modes.no_grad():
        fused_weight = (weight * scale.reshape(shape)).to(weight.dtype)
        fused_bias = (before - mean) * scale + (zeros_like(mean) if bn_bias is None else bn_bias)
        fused_bias = fused_bias.to(weight.dtype if bias is None else bias.dtype)
    return (
        Parameter(fused_weight, weight.requires_grad),
        Parameter(fused_bias, before.requires_grad),
    )
