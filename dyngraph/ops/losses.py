"""Losses that compare numbers or probabilities with targets of the same shape.

`reduction` says whether each element's loss is returned, their mean, or their sum.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dyngraph.ops.host_values import array_of
from dyngraph.ops.operator import define
from dyngraph.tensor import Tensor
from dyngraph.tracing import Tracer

_REDUCTIONS = ("none", "mean", "sum")


def reduced(loss: Any, reduction: str) -> Any:
    if reduction not in _REDUCTIONS:
        raise ValueError(
            f"{reduction} is not a valid value for reduction: expected 'none', 'mean' or 'sum'"
        )
    return loss if reduction == "none" else loss.mean() if reduction == "mean" else loss.sum()


def _of_each(grad: Any, reduction: str, count: int) -> Any:
    """The gradient of each element's loss, from that of the reduced loss."""
    return grad / count if reduction == "mean" else grad


def _pair_size(self: Any, target: Any) -> int:
    return math.prod(np.broadcast_shapes(self.shape, target.shape))


def _warn_unequal(where: str, self: Any, target: Any) -> None:
    if self.shape != target.shape:
        warnings.warn(
            f"{where}: Using a target size ({list(target.shape)}) that is different to the input "
            f"size ({list(self.shape)}). This will likely lead to incorrect results due to "
            "broadcasting. Please ensure they have the same size.",
            UserWarning,
            stacklevel=2,
        )


# --- numbers ----------------------------------------------------------------------------------


def _mse(self: Any, target: Any, *, reduction: str = "mean") -> Any:
    _warn_unequal("mse_loss", self, target)
    difference = self - target
    return reduced(difference * difference, reduction)


def _mse_rule(grad: Any, self: Any, target: Any, reduction: str) -> Any:
    return _of_each(grad, reduction, _pair_size(self, target)) * 2 * (self - target)


mse_loss = define(
    "mse_loss",
    _mse,
    signature="self, target, reduction='mean'",
    self=_mse_rule,
    target=lambda grad, self, target, reduction: -_mse_rule(grad, self, target, reduction),
    doc="""Squared differences, as their mean, their sum, or each ("none").

    Raises ValueError for another `reduction`; warns where the shapes differ.

    >>> dg.nn.functional.mse_loss(dg.tensor([1.0, 2.0]), dg.tensor([1.0, 4.0]))
    tensor(2.)
    """,
)


def _l1(self: Any, target: Any, *, reduction: str = "mean") -> Any:
    _warn_unequal("l1_loss", self, target)
    return reduced(jnp.abs(self - target), reduction)


def _l1_rule(grad: Any, self: Any, target: Any, reduction: str) -> Any:
    return _of_each(grad, reduction, _pair_size(self, target)) * jnp.sign(self - target)


l1_loss = define(
    "l1_loss",
    _l1,
    signature="self, target, reduction='mean'",
    self=_l1_rule,
    target=lambda grad, self, target, reduction: -_l1_rule(grad, self, target, reduction),
    doc="""Absolute differences, as their mean, their sum, or each ("none"); gradient 0 at 0.

    >>> dg.nn.functional.l1_loss(dg.tensor([1.0, 2.0]), dg.tensor([1.0, 4.0]))
    tensor(1.)
    """,
)


def _smooth_l1(self: Any, target: Any, beta: Any = 1.0, *, reduction: str = "mean") -> Any:
    _warn_unequal("smooth_l1_loss", self, target)
    size = jnp.abs(self - target)
    near = 0.5 * size * size / jnp.where(beta == 0, 1, beta)
    return reduced(jnp.where(size < beta, near, size - 0.5 * beta), reduction)


def _smooth_l1_rule(grad: Any, self: Any, target: Any, beta: Any, reduction: str) -> Any:
    difference = self - target
    slope = jnp.where(
        jnp.abs(difference) < beta,
        difference / jnp.where(beta == 0, 1, beta),
        jnp.sign(difference),
    )
    return _of_each(grad, reduction, difference.size) * slope


smooth_l1_loss = define(
    "smooth_l1_loss",
    _smooth_l1,
    signature="self, target, reduction='mean', beta=1.0",
    self=_smooth_l1_rule,
    target=lambda grad, self, target, beta, reduction: (
        -_smooth_l1_rule(grad, self, target, beta, reduction)
    ),
    beta=None,
    doc="""Squared differences over `2 * beta` where they are below `beta`, else absolute ones.

    Girshick 2015, https://arxiv.org/abs/1504.08083.

    >>> dg.nn.functional.smooth_l1_loss(dg.tensor([1.0, 2.0]), dg.tensor([1.0, 4.0]), "none")
    tensor([0.0000, 1.5000])
    """,
)


def _huber(self: Any, target: Any, delta: Any = 1.0, *, reduction: str = "mean") -> Any:
    _warn_unequal("huber_loss", self, target)
    size = jnp.abs(self - target)
    return reduced(
        jnp.where(size <= delta, 0.5 * size * size, delta * (size - 0.5 * delta)), reduction
    )


def _huber_rule(grad: Any, self: Any, target: Any, delta: Any, reduction: str) -> Any:
    slope = jnp.clip(self - target, -delta, delta)
    return _of_each(grad, reduction, slope.size) * slope


huber_loss = define(
    "huber_loss",
    _huber,
    signature="self, target, reduction='mean', delta=1.0",
    self=_huber_rule,
    target=lambda grad, self, target, delta, reduction: (
        -_huber_rule(grad, self, target, delta, reduction)
    ),
    delta=None,
    doc="""Half the squared difference up to `delta`, and a line of slope `delta` beyond.

    Huber 1964, https://doi.org/10.1214/aoms/1177703732.

    >>> dg.nn.functional.huber_loss(dg.tensor([1.0, 2.0]), dg.tensor([1.0, 4.0]), "none")
    tensor([0.0000, 1.5000])
    """,
)


# --- probabilities ----------------------------------------------------------------------------


def _check_bce(where: str, self: Any, target: Any) -> None:
    if self.shape != target.shape:
        raise ValueError(
            f"{where}: Using a target size ({list(target.shape)}) that is different to the input "
            f"size ({list(self.shape)}) is deprecated. Please ensure they have the same size."
        )


def _bce(self: Any, target: Any, weight: Any = None, *, reduction: str = "mean") -> Any:
    _check_bce("binary_cross_entropy", self, target)
    log_p = jnp.maximum(jnp.log(self), -100)
    log_q = jnp.maximum(jnp.log1p(-self), -100)
    loss = -(target * log_p + (1 - target) * log_q)
    return reduced(loss if weight is None else loss * weight, reduction)


def _bce_rule(grad: Any, self: Any, target: Any, weight: Any, reduction: str) -> Any:
    slope = (self - target) / jnp.maximum((1 - self) * self, 1e-12)
    slope = slope if weight is None else slope * weight
    return _of_each(grad, reduction, slope.size) * slope


def _bce_target_rule(grad: Any, self: Any, weight: Any, reduction: str) -> Any:
    slope = jnp.maximum(jnp.log1p(-self), -100) - jnp.maximum(jnp.log(self), -100)
    slope = slope if weight is None else slope * weight
    return _of_each(grad, reduction, slope.size) * slope


binary_cross_entropy = define(
    "binary_cross_entropy",
    _bce,
    signature="self, target, weight=None, reduction='mean'",
    self=_bce_rule,
    target=_bce_target_rule,
    weight=None,
    doc="""`-(target * log(input) + (1 - target) * log(1 - input))`, for probabilities as input.

    Logarithms count as at least -100. Raises ValueError where the shapes differ; for scores rather
    than probabilities take `binary_cross_entropy_with_logits`.

    >>> dg.nn.functional.binary_cross_entropy(dg.tensor([0.5]), dg.tensor([1.0]))
    tensor(0.6931)
    """,
)


def _bce_logits(
    self: Any, target: Any, weight: Any = None, pos_weight: Any = None, *, reduction: str = "mean"
) -> Any:
    _check_bce("binary_cross_entropy_with_logits", self, target)
    balance = 1 if pos_weight is None else 1 + (pos_weight - 1) * target
    loss = (1 - target) * self + balance * jax.nn.softplus(-self)
    return reduced(loss if weight is None else loss * weight, reduction)


def _bce_logits_rule(
    grad: Any, self: Any, target: Any, weight: Any, pos_weight: Any, reduction: str
) -> Any:
    share = target if pos_weight is None else pos_weight * target
    slope = (share + 1 - target) * jax.nn.sigmoid(self) - share
    slope = slope if weight is None else slope * weight
    return _of_each(grad, reduction, self.size) * slope


def _bce_logits_target_rule(
    grad: Any, self: Any, weight: Any, pos_weight: Any, reduction: str
) -> Any:
    slope = -self if pos_weight is None else (pos_weight - 1) * jax.nn.softplus(-self) - self
    slope = slope if weight is None else slope * weight
    return _of_each(grad, reduction, self.size) * slope


binary_cross_entropy_with_logits = define(
    "binary_cross_entropy_with_logits",
    _bce_logits,
    signature="self, target, weight=None, reduction='mean', pos_weight=None",
    self=_bce_logits_rule,
    target=_bce_logits_target_rule,
    weight=None,
    pos_weight=None,
    doc="""`binary_cross_entropy` of the input's sigmoid, without its overflow.

    `pos_weight` weighs the targets that are 1. Raises ValueError where the shapes differ.

    >>> loss = dg.nn.functional.binary_cross_entropy_with_logits
    >>> loss(dg.tensor([0.0]), dg.tensor([1.0]))
    tensor(0.6931)
    """,
)


def _kl_div(self: Any, target: Any, *, reduction: str = "mean", log_target: bool = False) -> Any:
    if log_target:
        loss = jnp.exp(target) * (target - self)
    else:
        loss = jax.scipy.special.xlogy(target, target) - target * self
    if reduction == "batchmean":
        return loss.sum() / (loss.shape[0] if loss.ndim else 1)
    return reduced(loss, reduction)


def _kl_div_rule(grad: Any, target: Any, self_shape: Any, reduction: str, log_target: bool) -> Any:
    shape = np.broadcast_shapes(self_shape, target.shape)
    if reduction == "batchmean":
        grad = grad / (shape[0] if shape else 1)
    grad = jnp.broadcast_to(_of_each(grad, reduction, math.prod(shape)), shape)
    return -grad * (jnp.exp(target) if log_target else target)


kl_div = define(
    "kl_div",
    _kl_div,
    signature="self, target, reduction='mean', log_target=False",
    self=_kl_div_rule,
    doc="""`target * (log(target) - input)`: the divergence from log-probabilities `input`.

    With `log_target` the target is one of log-probabilities too. `reduction="batchmean"` is the
    divergence a sample; "mean" divides by all elements. Kullback and Leibler 1951.

    >>> dg.nn.functional.kl_div(dg.zeros(1, 2), dg.ones(1, 2), reduction="batchmean")
    tensor(0.)
    """,
)


# --- rates and densities ----------------------------------------------------------------------


def _poisson_nll(
    self: Any, target: Any, eps: Any = 1e-8, *, log_input: bool, full: bool, reduction: str
) -> Any:
    if log_input:
        loss = jnp.exp(self) - target * self
    else:
        loss = self - target * jnp.log(self + eps)
    if full:
        # Stirling's approximation of log(target!), which is 0 up to 1.
        large = jnp.where(target <= 1, 2, target)
        stirling = large * jnp.log(large) - large + 0.5 * jnp.log(2 * math.pi * large)
        loss = loss + jnp.where(target <= 1, 0, stirling)
    return reduced(loss, reduction)


poisson_nll_loss = define(
    "poisson_nll_loss",
    _poisson_nll,
    signature="self, target, log_input=True, full=False, eps=1e-8, reduction='mean'",
    eps=None,
    doc="""The negative log-likelihood of counts at a rate `input`, or at `exp(input)`.

    The term of the target alone, log(target!), is left out, or with `full` approximated as Stirling
    did. `eps` keeps the logarithm of a rate 0 finite.

    >>> dg.nn.functional.poisson_nll_loss(dg.tensor([0.0]), dg.tensor([2.0]))
    tensor(1.)
    """,
)


def _gaussian_nll(
    self: Any, target: Any, var: Any, eps: Any = 1e-6, *, full: bool, reduction: str
) -> Any:
    if var.shape != self.shape and var.ndim:
        if var.shape == self.shape[:-1]:
            var = var[..., None]
        elif var.ndim != self.ndim or [
            v for v, n in zip(var.shape, self.shape, strict=True) if v != n
        ] != [1]:
            raise ValueError(
                f"var is of incorrect size: expected {list(self.shape)}, or one dim of size 1 or "
                f"the last one missing, got {list(var.shape)}"
            )
    # Values below eps count as eps, but their gradient is not stopped, as in PyTorch.
    var = jnp.where(var < eps, eps + (var - jax.lax.stop_gradient(var)), var)
    loss = 0.5 * (jnp.log(var) + (self - target) ** 2 / var)
    return reduced(loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)


_gaussian_nll_loss = define(
    "gaussian_nll_loss",
    _gaussian_nll,
    signature="self, target, var, full, eps, reduction",
    eps=None,
)


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """The negative log-likelihood of targets that are normal about `input`, with variance `var`.

    `var` is at least `eps`, and may lack the last dim. `full` adds log(2 * pi) / 2. Nix and Weigend
    1994, https://doi.org/10.1109/ICNN.1994.374138. Raises ValueError for a negative variance.

    >>> dg.nn.functional.gaussian_nll_loss(dg.tensor([1.0]), dg.tensor([3.0]), dg.tensor([1.0]))
    tensor(2.)
    """
    values = array_of(var)
    if not isinstance(values, Tracer) and values.size and np.asarray(values).min() < 0:
        raise ValueError("var has negative entry/entries: expected variances of at least 0")
    return _gaussian_nll_loss(input, target, var, bool(full), eps, reduction)


__all__: list[str] = []  # these are functions of nn.functional
METHODS = ()
