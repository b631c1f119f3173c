"""Rows of the functions of neural networks."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tests.opinfo import OpInfo, between, call, integers, normal, spread


def reduced(loss: Any, reduction: str = "mean") -> Any:
    return loss if reduction == "none" else getattr(jnp, reduction)(loss)


def standard(x: Any, axes: Any, eps: float = 1e-5) -> Any:
    return (x - x.mean(axes, keepdims=True)) / jnp.sqrt(x.var(axes, keepdims=True) + eps)


def scaled(x: Any, weight: Any = None, bias: Any = None) -> Any:
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


def by_channel(x: Any, weight: Any = None, bias: Any = None) -> Any:
    def shape(p: Any) -> Any:
        return None if p is None else p.reshape(-1, *[1] * (x.ndim - 2))

    return scaled(x, shape(weight), shape(bias))


def layer_norm(x: Any, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    return scaled(standard(x, tuple(range(-len(shape), 0)), eps), weight, bias)


def rms_norm(x: Any, shape: Any, weight: Any = None, eps: float = 1.1920929e-07) -> Any:
    axes = tuple(range(-len(shape), 0))
    return scaled(x / jnp.sqrt((x * x).mean(axes, keepdims=True) + eps), weight)


def batch_norm(
    x: Any, mean: Any, var: Any, weight: Any = None, bias: Any = None, training: bool = False
) -> Any:
    if training:
        return by_channel(standard(x, (0, *range(2, x.ndim))), weight, bias)
    fixed = by_channel(x, None, -jax.lax.stop_gradient(mean))
    fixed = by_channel(fixed, 1 / jnp.sqrt(jax.lax.stop_gradient(var) + 1e-5))
    return by_channel(fixed, weight, bias)


def group_norm(x: Any, groups: int, weight: Any = None, bias: Any = None) -> Any:
    out = standard(x.reshape(x.shape[0], groups, -1), 2).reshape(x.shape)
    return by_channel(out, weight, bias)


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


def nll(
    log_p: Any, t: Any, weight: Any = None, ignore_index: int = -100, reduction: str = "mean"
) -> Any:
    axis = 0 if log_p.ndim == 1 else 1
    classes = log_p.shape[axis]
    counts = jax.nn.one_hot(t, classes, axis=axis) * jnp.expand_dims(t != ignore_index, axis)
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


def attention(
    q: Any, k: Any, v: Any, mask: Any = None, is_causal: bool = False, scale: Any = None
) -> Any:
    scores = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        mask = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    if mask is not None:
        scores = jnp.where(mask, scores, -1e9) if mask.dtype == bool else scores + mask
    return jax.nn.softmax(scores, -1) @ v


def pad(x: Any, pad: Any, mode: str = "constant", value: float = 0.0) -> Any:
    pairs = [(0, 0)] * (x.ndim - len(pad) // 2) + [pad[i : i + 2] for i in range(0, len(pad), 2)][
        ::-1
    ]
    if mode == "constant":
        return jax.lax.pad(x, jnp.asarray(value, x.dtype), [(a, b, 0) for a, b in pairs])
    return jnp.pad(x, pairs, {"replicate": "edge", "circular": "wrap"}.get(mode, mode))


def functional(name: str, *args: Any, **kwargs: Any) -> OpInfo:
    return OpInfo(f"nn.functional.{name}", *args, **kwargs)


CLASSES = np.array([2, 0, 1, 2], np.int32)
LOSS_INPUTS = (spread(2, 3), np.zeros((2, 3), np.float32) + 0.02)
REDUCTIONS = ("none", "mean", "sum")

ROWS: list[OpInfo] = [
    OpInfo(
        "softmax",
        [call(normal(2, 3), 1), call(normal(2, 3), dim=0), call(normal(), 0)],
        lambda x, dim: jax.nn.softmax(x, dim if x.ndim else ()),
    ),
    OpInfo(
        "log_softmax",
        [call(normal(2, 3), -1), call(normal(2, 3, 2), dim=1)],
        lambda x, dim: jax.nn.log_softmax(x, dim),
    ),
    functional("softmin", [call(normal(2, 3), 1)], lambda x, dim: jax.nn.softmax(-x, dim)),
    OpInfo("threshold", [call(spread(2, 3), 0.1, 2.0)], lambda x, t, v: jnp.where(x > t, x, v)),
    functional(
        "glu",
        [call(normal(2, 4)), call(normal(2, 3), 0)],
        lambda x, dim=-1: jnp.split(x, 2, dim)[0] * jax.nn.sigmoid(jnp.split(x, 2, dim)[1]),
    ),
    functional(
        "linear",
        [
            call(normal(5, 3), normal(2, 3)),
            call(normal(3), normal(2, 3), normal(2)),
            call(normal(4, 5, 3), normal(2, 3), normal(2)),
            call(normal(4, 3), normal(3)),
        ],
        lambda x, w, b=0: x @ w.T + b,
    ),
    functional(
        "embedding",
        [call(integers(4, 2, 3), normal(4, 2))],
        lambda index, weight: weight[index],
    ),
    functional(
        "one_hot",
        [call(integers(4, 2, 3), 5)],
        lambda x, n: jax.nn.one_hot(x, n, dtype=np.int32),
        gradient=False,
    ),
    OpInfo(
        "layer_norm",
        [
            call(normal(2, 3, 4), (4,)),
            call(normal(2, 3, 4), (3, 4), normal(3, 4)),
            call(normal(2, 4), (4,), normal(4), normal(4), 0.1),
        ],
        layer_norm,
        rtol=1e-3,
        atol=1e-4,
    ),
    OpInfo(
        "rms_norm",
        [call(normal(2, 3, 4), (4,)), call(normal(2, 3, 4), (3, 4), normal(3, 4), 0.1)],
        rms_norm,
    ),
    functional(
        "batch_norm",
        [
            call(normal(4, 3), None, None, training=True),
            call(normal(4, 3, 2), None, None, normal(3), normal(3), training=True),
        ],
        batch_norm,
        rtol=1e-3,
        atol=1e-4,
    ),
    OpInfo(
        "group_norm",
        [call(normal(2, 4), 2), call(normal(2, 4, 3), 2, normal(4), normal(4))],
        group_norm,
        rtol=1e-3,
        atol=1e-4,
    ),
    functional(
        "normalize",
        [call(normal(2, 3)), call(normal(2, 3), 1.0, 0), call(normal(2, 3), p=3.0)],
        lambda x, p=2.0, dim=1: x / (jnp.abs(x) ** p).sum(dim, keepdims=True) ** (1 / p),
    ),
    OpInfo(
        "cosine_similarity",
        [call(normal(2, 3), normal(2, 3)), call(normal(2, 3), normal(2, 1), dim=0)],
        lambda a, b, dim=1: (a * b).sum(dim) / jnp.sqrt((a * a).sum(dim) * (b * b).sum(dim)),
    ),
    functional(
        "pad",
        [
            call(normal(2, 3), (1, 2)),
            call(normal(2, 3), (1, -2, 0, 3), value=2.0),
            call(normal(2, 3), (1, 2), "reflect"),
            call(normal(2, 3), (1, 2), "replicate"),
            call(normal(2, 3), (1, 2, 1, 0), "circular"),
        ],
        pad,
    ),
    functional(
        "mse_loss",
        [call(normal(2, 3), normal(2, 3), reduction=r) for r in REDUCTIONS],
        lambda x, t, reduction: reduced((x - t) ** 2, reduction),
    ),
    functional(
        "l1_loss",
        [call(*LOSS_INPUTS, reduction=r) for r in REDUCTIONS],
        lambda x, t, reduction: reduced(jnp.abs(x - t), reduction),
    ),
    functional(
        "smooth_l1_loss",
        [call(*LOSS_INPUTS), call(*LOSS_INPUTS, reduction="none", beta=0.2)],
        smooth_l1,
    ),
    functional(
        "huber_loss",
        [call(*LOSS_INPUTS), call(*LOSS_INPUTS, reduction="none", delta=0.2)],
        huber,
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
        "nll_loss",
        [
            call(normal(4, 3), CLASSES, ignore_index=1),
            call(normal(4, 3), CLASSES, reduction="none"),
            call(normal(2, 3, 2), integers(3, 2, 2), reduction="sum"),
            call(normal(3), np.array(1, np.int32)),
        ],
        nll,
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
    ),
    functional(
        "scaled_dot_product_attention",
        [
            call(normal(2, 3, 4), normal(2, 5, 4), normal(2, 5, 2)),
            call(normal(2, 3, 4), normal(2, 3, 4), normal(2, 3, 2), is_causal=True, scale=0.3),
            call(
                normal(2, 4),
                normal(3, 4),
                normal(3, 4),
                np.array([[True, False, True], [True, True, False]]),
            ),
            call(normal(2, 4), normal(3, 4), normal(3, 4), normal(2, 3)),
        ],
        attention,
    ),
]
