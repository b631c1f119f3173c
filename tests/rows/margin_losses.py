"""Rows of the operators in `dyngraph/ops/margin_losses.py`."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tests.opinfo import OpInfo, call, functional, integers, normal, positive, spread
from tests.references import reduced

SIGNS = np.array([1, -1, 1, -1], np.int32)


def hinge(x: Any, t: Any, margin: float = 1.0, reduction: str = "mean") -> Any:
    return reduced(jnp.where(t == 1, x, jax.nn.relu(margin - x)), reduction)


def ranking(x: Any, y: Any, t: Any, margin: float = 0.0, reduction: str = "mean") -> Any:
    return reduced(jax.nn.relu(margin - t * (x - y)), reduction)


def cosine(x: Any, y: Any, t: Any, margin: float = 0.0, reduction: str = "mean") -> Any:
    c = (x * y).sum(1) / jnp.linalg.norm(x, axis=1) / jnp.linalg.norm(y, axis=1)
    return reduced(jnp.where(t == 1, 1 - c, jax.nn.relu(c - margin)), reduction)


def multi_margin(x: Any, t: Any, p: int = 1, margin: float = 1.0, weight: Any = None) -> Any:
    rows = []
    for row, own in zip(x, np.asarray(t).tolist(), strict=True):
        others = [jax.nn.relu(margin - row[own] + row[c]) ** p for c in range(len(row)) if c != own]
        rows.append(sum(others) / len(row) * (1 if weight is None else weight[own]))
    return jnp.stack(rows).mean()


def multilabel_margin(x: Any, t: Any, reduction: str = "mean") -> Any:
    rows = []
    for row, labels in zip(x, np.asarray(t).tolist(), strict=True):
        named = labels[: labels.index(-1)]
        others = [c for c in range(len(row)) if c not in named]
        pairs = [jax.nn.relu(1 - row[own] + row[c]) for own in named for c in others]
        rows.append(sum(pairs) / len(row))
    return reduced(jnp.stack(rows), reduction)


def soft_margin(x: Any, t: Any, weight: Any = None, reduction: str = "mean") -> Any:
    p = jax.nn.sigmoid(x)
    loss = -(t * jnp.log(p) + (1 - t) * jnp.log(1 - p))
    return reduced((loss if weight is None else loss * weight).mean(-1), reduction)


def triplet(
    a: Any, b: Any, c: Any, margin: float = 1.0, p: float = 2, eps: float = 1e-6, swap: bool = False
) -> Any:
    def distance(x: Any, y: Any) -> Any:
        return (jnp.abs(x - y + eps) ** p).sum(-1) ** (1 / p)

    far = jnp.minimum(distance(a, c), distance(b, c)) if swap else distance(a, c)
    return jax.nn.relu(margin + distance(a, b) - far).mean()


ROWS: list[OpInfo] = [
    functional(
        "hinge_embedding_loss",
        [call(spread(4), SIGNS), call(spread(4), SIGNS, 0.5, reduction="sum")],
        hinge,
    ),
    functional("margin_ranking_loss", [call(spread(4), spread(4), SIGNS, 0.31)], ranking),
    functional(
        "soft_margin_loss",
        [call(normal(4), SIGNS, reduction="none")],
        lambda x, t, reduction: reduced(jnp.log(1 + jnp.exp(-t * x)), reduction),
        broadcasts=True,
    ),
    functional(
        "cosine_embedding_loss",
        [call(normal(4, 3), normal(4, 3), SIGNS, margin=-0.3)],
        cosine,
        no_empty="the twin divides by a norm, or reads a largest value, that is not there",
    ),
    functional(
        "multi_margin_loss",
        [
            call(spread(3, 4), integers(4, 3)),
            call(spread(3, 4), integers(4, 3), 2, 0.53, weight=positive(4)),
        ],
        multi_margin,
        no_empty="the twin is written for some elements",
    ),
    functional(
        "multilabel_margin_loss",
        [call(spread(2, 4), np.array([[1, 3, -1, 0], [2, -1, -1, -1]], np.int32))],
        multilabel_margin,
        no_empty="the twin is written for some elements",
    ),
    functional(
        "multilabel_soft_margin_loss",
        [call(normal(2, 3), positive(2, 3) / 3, positive(3), reduction="none")],
        soft_margin,
    ),
    functional(
        "triplet_margin_loss",
        [
            call(normal(3, 4), normal(3, 4), normal(3, 4), 2.0),
            call(normal(3, 4), normal(3, 4), normal(3, 4), 2.0, 3.0, swap=True),
        ],
        triplet,
    ),
    functional(
        "triplet_margin_with_distance_loss",
        [call(normal(3, 4), normal(3, 4), normal(3, 4))],
        triplet,
    ),
]
