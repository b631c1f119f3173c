"""Rows of the operators in `dyngraph/ops/class_losses.py`."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tests.opinfo import OpInfo, between, call, functional, integers, normal
from tests.references import by_channel, reduced


def nll(
    log_p: Any, t: Any, weight: Any = None, ignore_index: int = -100, reduction: str = "mean"
) -> Any:
    axis = 0 if log_p.ndim == 1 else 1
    classes = log_p.shape[axis]
    counts = jax.nn.one_hot(t, classes, axis=axis, dtype=log_p.dtype)
    counts = counts * jnp.expand_dims(t != ignore_index, axis)
    if weight is not None:
        counts = by_channel(counts, jax.lax.stop_gradient(weight))
    loss = -(log_p * counts).sum(axis)
    return loss.sum() / counts.sum() if reduction == "mean" else reduced(loss, reduction)


def cross_entropy(
    x: Any, t: Any, weight: Any = None, reduction: str = "mean", label_smoothing: float = 0.0
) -> Any:
    axis = 0 if x.ndim == 1 else 1
    log_p = jax.nn.log_softmax(x, axis)
    if t.dtype != np.int32:
        t = t * (1 - label_smoothing) + label_smoothing / x.shape[axis]
        loss = -(log_p * t).sum(axis)
        return reduced(loss, reduction)
    hard = nll(log_p, t, weight, reduction=reduction)
    if not label_smoothing:
        return hard
    assert weight is None
    smooth = reduced(-log_p.mean(axis), reduction)
    return (1 - label_smoothing) * hard + label_smoothing * smooth


CLASSES = np.array([2, 0, 1, 2], np.int32)

ROWS: list[OpInfo] = [
    functional(
        "nll_loss",
        [
            call(normal(4, 3), CLASSES, ignore_index=1),
            call(normal(4, 3), CLASSES, reduction="none"),
            call(normal(2, 3, 2), integers(3, 2, 2), reduction="sum"),
            call(normal(3), np.array(1, np.int32)),
        ],
        nll,
        refuses_empty="Target 2 is out of bounds",
    ),
    functional(
        "cross_entropy",
        [
            call(normal(4, 3), CLASSES),
            call(normal(4, 3), CLASSES, label_smoothing=0.1),
            call(normal(4, 3), between(0, 1, 4, 3), label_smoothing=0.1),
            call(normal(2, 3, 2), integers(3, 2, 2), reduction="none"),
        ],
        cross_entropy,
        refuses_empty="Target 2 is out of bounds",
    ),
]
