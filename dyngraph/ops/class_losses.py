"""Losses of class scores, whose targets are class numbers or the classes' probabilities.

`reduction` as in `losses`; a mean weighs each element by its class.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from dyngraph import autocasting, modes
from dyngraph.ops.affine import linear
from dyngraph.ops.arguments import require_float
from dyngraph.ops.host_values import described, on_host, outside
from dyngraph.ops.losses import reduced
from dyngraph.ops.operator import define
from dyngraph.ops.shape import reshape
from dyngraph.ops.softmaxes import log_softmax
from dyngraph.tensor import Tensor


def _class_mask(target: Any, classes: int, axis: int) -> Any:
    """Where an input (batch, classes, ...) stands at its target's class."""
    shape = [1] * (target.ndim + 1)
    shape[axis] = classes
    return jnp.expand_dims(target, axis) == jnp.arange(classes, dtype=target.dtype).reshape(shape)


def _class_weights(self_shape: Any, target: Any, weight: Any, ignore_index: int, dtype: Any) -> Any:
    """The weight of each target: 0 where it is ignored."""
    counts = target != ignore_index
    if weight is None:
        return counts.astype(dtype)
    return jnp.where(counts, weight[jnp.where(counts, target, 0)], 0)


def _check_classes(self: Any, target: Any, weight: Any) -> int:
    """The axis of the classes."""
    require_float("nll_loss", self)
    axis = 0 if self.ndim == 1 else 1
    if not self.ndim:
        raise ValueError("Expected at least one dim of classes, got an input without dims")
    if target.dtype.kind not in "iu":
        raise RuntimeError(
            f"expected scalar type Long but found {target.dtype}: class numbers are integers. "
            "Convert the target by .long()."
        )
    expected = self.shape[:axis] + self.shape[axis + 1 :]
    if target.shape != expected:
        raise ValueError(
            f"Expected target size {list(expected)}, got {list(target.shape)}, for an input of "
            f"shape {list(self.shape)}"
        )
    if weight is not None and weight.shape != (self.shape[axis],):
        raise RuntimeError(
            f"weight tensor should be defined either for all {self.shape[axis]} classes or no "
            f"classes but got weight tensor of shape: {list(weight.shape)}"
        )
    return axis


def _nll(self: Any, target: Any, weight: Any = None, *, ignore_index: int, reduction: str) -> Any:
    axis = _check_classes(self, target, weight)
    weights = _class_weights(self.shape, target, weight, ignore_index, self.dtype)
    safe = jnp.where(target == ignore_index, 0, target)
    picked = jnp.take_along_axis(self, jnp.expand_dims(safe, axis), axis).squeeze(axis)
    # An ignored target must not let through an infinity: 0 * inf is NaN.
    loss = -jnp.where(weights == 0, 0, picked) * weights
    if reduction == "mean":
        return loss.sum() / weights.sum()
    return reduced(loss, reduction)


def _nll_rule(
    grad: Any, target: Any, weight: Any, self_shape: Any, ignore_index: int, reduction: str
) -> Any:
    axis = 0 if len(self_shape) == 1 else 1
    weights = _class_weights(self_shape, target, weight, ignore_index, grad.dtype)
    grad = grad / weights.sum() if reduction == "mean" else grad
    grad = jnp.expand_dims(-grad * weights, axis)
    return jnp.where(_class_mask(target, self_shape[axis], axis), grad, 0)


_nll_loss = define(
    "nll_loss",
    _nll,
    signature="self, target, weight, ignore_index, reduction",
    self=_nll_rule,
    target=None,
    weight=None,
)


def _check_targets(input: Any, target: Any, ignore_index: int) -> None:
    """Raises where a class number is out of bounds."""
    shape = described(input).shape
    if not shape:
        return
    classes = shape[0 if len(shape) == 1 else 1]
    bad = outside(target, 0, classes)
    if bad is not None and bad == ignore_index:
        values = on_host("nll_loss", target)
        bad = outside(values[values != ignore_index], 0, classes)
    if bad is not None:
        raise IndexError(f"Target {bad} is out of bounds. There are {classes} classes, from 0.")


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """The negative log-probability of each target's class: (batch, classes, ...), (batch, ...).

    A mean is weighted by the targets' `weight`s; targets equal to `ignore_index` count for nothing.
    Raises IndexError for a target that is no class, ValueError where shapes do not fit.

    >>> log_p = dg.log_softmax(dg.zeros(1, 2), 1)
    >>> dg.nn.functional.nll_loss(log_p, dg.tensor([0]))
    tensor(0.6931)
    """
    _check_targets(input, target, ignore_index)
    return _nll_loss(input, target, weight, ignore_index, reduction)


def _smooth_nll(
    self: Any,
    target: Any,
    weight: Any = None,
    smoothing: Any = 0.0,
    *,
    ignore_index: int,
    reduction: str,
) -> Any:
    """Cross entropy against targets that give `smoothing` of their mass to all classes alike."""
    axis = _check_classes(self, target, weight)
    hard = _nll(self, target, weight, ignore_index=ignore_index, reduction=reduction)
    weights = _class_weights(self.shape, target, weight, ignore_index, self.dtype)
    scaled = self if weight is None else self * _a_class(weight, self.ndim)
    smooth = -jnp.where(target == ignore_index, 0, scaled.sum(axis))
    smooth = smooth.sum() / weights.sum() if reduction == "mean" else reduced(smooth, reduction)
    return (1 - smoothing) * hard + smoothing / self.shape[axis] * smooth


def _a_class(weight: Any, ndim: int) -> Any:
    return weight if ndim == 1 else weight.reshape(1, -1, *[1] * (ndim - 2))


_smooth_nll_loss = define(
    "smooth_nll_loss",
    _smooth_nll,
    signature="self, target, weight, smoothing, ignore_index, reduction",
    target=None,
    weight=None,
    smoothing=None,
)


def _soft_nll(
    self: Any, target: Any, weight: Any = None, smoothing: Any = 0.0, *, reduction: str
) -> Any:
    """Cross entropy against probabilities."""
    axis = 0 if self.ndim == 1 else 1
    classes = self.shape[axis]
    target = target * (1 - smoothing) + smoothing / classes
    loss = -self * target
    loss = (loss if weight is None else loss * _a_class(weight, self.ndim)).sum(axis)
    return loss.sum() / max(loss.size, 1) if reduction == "mean" else reduced(loss, reduction)


_soft_nll_loss = define(
    "soft_nll_loss",
    _soft_nll,
    signature="self, target, weight, smoothing, reduction",
    weight=None,
    smoothing=None,
)


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """The loss of scores (batch, classes, ...) against classes (batch, ...) or probabilities.

    It is `nll_loss(log_softmax(input, 1), target)`. A floating point target of the input's shape is
    one of probabilities. `label_smoothing` spreads that share of each target over all classes
    (Szegedy et al. 2016, https://arxiv.org/abs/1512.00567). Raises IndexError for a target that is
    no class, ValueError where shapes do not fit.

    >>> dg.nn.functional.cross_entropy(dg.zeros(1, 2), dg.tensor([1]))
    tensor(0.6931)
    """
    if modes.get_flags() & modes.AUTOCAST:
        given = {"input": input, "target": target, "weight": weight, "ignore_index": ignore_index}
        given |= {"reduction": reduction, "label_smoothing": label_smoothing}
        result = autocasting.run_whole("cross_entropy_loss", cross_entropy, given)
        if result is not NotImplemented:
            return result
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    ndim = described(input).ndim
    log_p = log_softmax(input, 0 if ndim <= 1 else 1)
    if jnp.issubdtype(described(target).dtype, jnp.floating):
        if described(target).shape != described(input).shape:
            raise RuntimeError(
                f"Expected class probabilities of the input's shape "
                f"{list(described(input).shape)}, got {list(described(target).shape)}. "
                "Class numbers must be integers."
            )
        if ignore_index >= 0:
            raise RuntimeError("ignore_index is not supported for floating point target")
        return _soft_nll_loss(log_p, target, weight, label_smoothing, reduction)
    _check_targets(input, target, ignore_index)
    if label_smoothing:
        return _smooth_nll_loss(log_p, target, weight, label_smoothing, ignore_index, reduction)
    return _nll_loss(log_p, target, weight, ignore_index, reduction)


def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:
    """`cross_entropy` of `linear(input, linear_weight, linear_bias)`: (in) or (batch, in).

    `linear_weight` is (classes, in), or (classes, ..., in) for targets (batch, ...), which takes a
    batch. `options`, by which PyTorch computes in chunks, has no effect. Raises RuntimeError where
    shapes do not fit, and for an `ignore_index` beside probabilities.

    >>> x, w = dg.zeros(1, 3), dg.ones(2, 3)
    >>> dg.nn.functional.linear_cross_entropy(x, w, dg.tensor([1]))
    tensor(0.6931)
    """
    given, weights = described(input).shape, described(linear_weight).shape
    if len(given) not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {len(given)}")
    if len(weights) < 2:
        raise RuntimeError(
            f"expected linear_weight with dimensionality at least 2, got {len(weights)}"
        )
    if given[-1] != weights[-1]:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), got "
            f"{given[-1]} and {weights[-1]}, respectively"
        )
    if linear_bias is not None and described(linear_bias).shape != weights[:-1]:
        raise RuntimeError(
            f"expected linear_bias shape {weights[:-1]}, got {described(linear_bias).shape}"
        )
    if len(weights) > 2 and len(given) == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {weights} requires batched input, "
            f"got unbatched input with shape {given}. Add a batch by unsqueeze(0)."
        )
    shape = (*given[:-1], *weights[:-1])
    if ignore_index is not None and described(target).shape == shape:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    if len(weights) > 2:
        linear_weight = reshape(linear_weight, (-1, weights[-1]))
        linear_bias = None if linear_bias is None else reshape(linear_bias, (-1,))
    scores = reshape(linear(input, linear_weight, linear_bias), shape)
    ignored = -100 if ignore_index is None else ignore_index
    return cross_entropy(scores, target, weight, ignored, reduction, label_smoothing)


__all__: list[str] = []  # these are functions of nn.functional
METHODS = ()
