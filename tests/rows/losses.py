"""Rows of the operators in `dyngraph/ops/losses.py`."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tests.opinfo import OpInfo, between, call, functional, normal, positive, spread
from tests.references import reduced


def bce(x: Any, t: Any, weight: Any = None, reduction: str = "mean", pos_weight: Any = 1) -> Any:
    loss = -(pos_weight * t * jnp.log(x) + (1 - t) * jnp.log(1 - x))
    return reduced(loss if weight is None else loss * weight, reduction)


def smooth_l1(x: Any, t: Any, reduction: str = "mean", beta: float = 1.0) -> Any:
    d = jnp.abs(x - t)
    return reduced(jnp.where(d < beta, d * d / (2 * beta), d - beta / 2), reduction)


def huber(x: Any, t: Any, reduction: str = "mean", delta: float = 1.0) -> Any:
    d = jnp.abs(x - t)
    return reduced(jnp.where(d < delta, d * d / 2, delta * (d - delta / 2)), reduction)


def kl_div(x: Any, t: Any, reduction: str = "mean", log_target: bool = False) -> Any:
    loss = jnp.exp(t) * (t - x) if log_target else t * (jnp.log(t) - x)
    return loss.sum() / x.shape[0] if reduction == "batchmean" else reduced(loss, reduction)


LOSS_INPUTS = (spread(2, 3), np.zeros((2, 3), np.float32) + 0.02)
REDUCTIONS = ("none", "mean", "sum")


def poisson(x: Any, t: Any, log_input: bool = True, full: bool = False, eps: float = 1e-8) -> Any:
    loss = jnp.exp(x) - t * x if log_input else x - t * jnp.log(x + eps)
    if full:
        loss = loss + t * jnp.log(t) - t + 0.5 * jnp.log(2 * np.pi * t)
    return loss.mean()


def gaussian(x: Any, t: Any, var: Any, full: bool = False, reduction: str = "mean") -> Any:
    var = var[:, None] if var.ndim < x.ndim else var
    loss = (jnp.log(var) + (x - t) ** 2 / var) / 2
    return reduced(loss + 0.5 * np.log(2 * np.pi) if full else loss, reduction)


ROWS: list[OpInfo] = [
    functional(
        "mse_loss",
        [call(normal(2, 3), normal(2, 3), reduction=r) for r in REDUCTIONS],
        lambda x, t, reduction: reduced((x - t) ** 2, reduction),
        broadcasts=True,
    ),
    functional(
        "l1_loss",
        [call(*LOSS_INPUTS, reduction=r) for r in REDUCTIONS],
        lambda x, t, reduction: reduced(jnp.abs(x - t), reduction),
        broadcasts=True,
    ),
    functional(
        "smooth_l1_loss",
        [call(*LOSS_INPUTS), call(*LOSS_INPUTS, reduction="none", beta=0.2)],
        smooth_l1,
        broadcasts=True,
    ),
    functional(
        "huber_loss",
        [call(*LOSS_INPUTS), call(*LOSS_INPUTS, reduction="none", delta=0.2)],
        huber,
        broadcasts=True,
    ),
    functional(
        "kl_div",
        [
            call(normal(2, 3), between(0.2, 1, 2, 3)),
            call(normal(2, 3), normal(2, 3), reduction="batchmean", log_target=True),
        ],
        kl_div,
    ),
    functional(
        "binary_cross_entropy",
        [call(between(0.1, 0.9, 2, 3), between(0.1, 0.9, 2, 3), reduction=r) for r in REDUCTIONS],
        bce,
    ),
    functional(
        "binary_cross_entropy_with_logits",
        [call(normal(2, 3), between(0, 1, 2, 3), reduction=r) for r in REDUCTIONS],
        lambda x, t, **kwargs: bce(jax.nn.sigmoid(x), t, **kwargs),
    ),
    functional(
        "poisson_nll_loss",
        [
            call(normal(2, 3), between(0, 3, 2, 3)),
            call(positive(2, 3), between(1.5, 3, 2, 3), log_input=False, full=True),
        ],
        poisson,
    ),
    functional(
        "gaussian_nll_loss",
        [
            call(normal(2, 3), normal(2, 3), positive(2, 3)),
            call(normal(2, 3), normal(2, 3), positive(2), full=True, reduction="sum"),
        ],
        gaussian,
    ),
]
