"""Losses that ask for a margin: between scores, distances, or a score and its target's sign.

`reduction` as in `losses`. At a kink gradients are PyTorch's: a margin that is met exactly counts,
but not in the losses of class scores.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from dyngraph.ops.arithmetic import add, sub
from dyngraph.ops.choosing import clamp_min, minimum
from dyngraph.ops.host_values import described, outside
from dyngraph.ops.losses import reduced
from dyngraph.ops.operator import define
from dyngraph.ops.reduction import mean, sum as _sum
from dyngraph.tensor import Tensor


def _positive_part(values: Any) -> Any:
    """The values above 0, with gradient 1 at 0."""
    return jnp.where(values >= 0, values, 0)


def _check_shapes(where: str, self: Any, target: Any) -> None:
    if self.shape != target.shape:
        raise ValueError(
            f"{where}: expected target of the input's shape {list(self.shape)}, got "
            f"{list(target.shape)}"
        )


# --- signs ------------------------------------------------------------------------------------


def _hinge_embedding(self: Any, target: Any, margin: Any = 1.0, *, reduction: str) -> Any:
    loss = jnp.where(target != 1, _positive_part(margin - self), 0)
    return reduced(loss + jnp.where(target != -1, self, 0), reduction)


hinge_embedding_loss = define(
    "hinge_embedding_loss",
    _hinge_embedding,
    signature="self, target, margin=1.0, reduction='mean'",
    target=None,
    margin=None,
    doc="""A distance where the target is 1, and what it lacks of `margin` where it is -1.

    >>> loss = dg.nn.functional.hinge_embedding_loss
    >>> loss(dg.tensor([0.25, 0.25]), dg.tensor([1.0, -1.0]), reduction="none")
    tensor([0.2500, 0.7500])
    """,
)


def _margin_ranking(
    input1: Any, input2: Any, target: Any, margin: Any = 0.0, *, reduction: str
) -> Any:
    if not input1.ndim == input2.ndim == target.ndim:
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {list(input1.shape)}, input2: {list(input2.shape)}, target: "
            f"{list(target.shape)}"
        )
    return reduced(_positive_part(-target * (input1 - input2) + margin), reduction)


margin_ranking_loss = define(
    "margin_ranking_loss",
    _margin_ranking,
    signature=("input1, input2, target, margin=0.0, reduction='mean'"),
    margin=None,
    doc="""What `target * (input1 - input2)` lacks of `margin`: the target says which ranks higher.

    >>> loss = dg.nn.functional.margin_ranking_loss
    >>> loss(dg.tensor([1.0]), dg.tensor([3.0]), dg.tensor([1.0]))
    tensor(2.)
    """,
)


def _soft_margin(self: Any, target: Any, *, reduction: str) -> Any:
    return reduced(jax.nn.softplus(-target * self), reduction)


soft_margin_loss = define(
    "soft_margin_loss",
    _soft_margin,
    signature="self, target, reduction='mean'",
    doc="""`log(1 + exp(-target * input))`, for targets 1 and -1.

    >>> dg.nn.functional.soft_margin_loss(dg.tensor([0.0]), dg.tensor([1.0]))
    tensor(0.6931)
    """,
)


def _cosine_embedding(
    input1: Any, input2: Any, target: Any, margin: Any = 0.0, *, reduction: str
) -> Any:
    if not (target.ndim == 1 and input1.ndim == input2.ndim == 2) and not (
        target.ndim == 0 and input1.ndim == input2.ndim == 1
    ):
        raise RuntimeError(
            "cosine_embedding_loss: expected inputs (batch, size) and target (batch), or inputs "
            f"(size) and target (), got shapes {list(input1.shape)}, {list(input2.shape)} and "
            f"{list(target.shape)}"
        )
    eps = 1e-12  # PyTorch's, on the squares
    product = (input1 * input2).sum(-1)
    squares = ((input1 * input1).sum(-1) + eps) * ((input2 * input2).sum(-1) + eps)
    cosine = product / jnp.sqrt(squares)
    near = jnp.where(target == 1, 1 - cosine, 0)
    return reduced(near + jnp.where(target == -1, _positive_part(cosine - margin), 0), reduction)


cosine_embedding_loss = define(
    "cosine_embedding_loss",
    _cosine_embedding,
    signature=("input1, input2, target, margin=0, reduction='mean'"),
    target=None,
    margin=None,
    doc="""`1 - cosine` where the target is 1, the cosine above `margin` where it is -1.

    >>> loss = dg.nn.functional.cosine_embedding_loss
    >>> loss(dg.tensor([[1.0, 0.0]]), dg.tensor([[0.0, 1.0]]), dg.tensor([1]))
    tensor(1.)
    """,
)


# --- scores of classes ------------------------------------------------------------------------


def _multi_margin(
    self: Any, target: Any, weight: Any = None, margin: Any = 1.0, *, p: int, reduction: str
) -> Any:
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if self.ndim > 2 or target.shape not in (self.shape[:-1], (1,) * (self.ndim < 2)):
        raise RuntimeError(
            "multi_margin_loss: expected input (batch, classes) and target (batch), got shapes "
            f"{list(self.shape)} and {list(target.shape)}"
        )
    classes = self.shape[-1] if self.ndim else 1
    scores, target = self.reshape(target.size, classes), target.reshape(-1)
    own = jnp.take_along_axis(scores, target[:, None], 1)
    excess = jax.nn.relu(margin - own + scores)
    excess = excess if p == 1 else excess * excess
    if weight is not None:
        excess = excess * weight[target][:, None]
    others = target[:, None] != jnp.arange(classes)
    loss = jnp.where(others, excess, 0).sum(1) / classes
    return reduced(loss.reshape(self.shape[:-1]), reduction)


_multi_margin_loss = define(
    "multi_margin_loss",
    _multi_margin,
    signature="self, target, weight, margin, p, reduction",
    target=None,
    weight=None,
    margin=None,
)


def _check_classes(input: Any, target: Any, low: int) -> None:
    classes = (1, *described(input).shape)[-1]
    bad = outside(target, low, classes)
    if bad is not None:
        raise RuntimeError(f"target {bad} is out of range: there are {classes} classes, from 0")


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """How far other classes come within `margin` of the target's, to the power `p` (1 or 2).

    The mean over classes of (batch, classes), for class numbers (batch). `weight` has one value a
    class. Raises RuntimeError for a target that is no class.

    >>> dg.nn.functional.multi_margin_loss(dg.tensor([[0.5, 0.0]]), dg.tensor([0]))
    tensor(0.2500)
    """
    _check_classes(input, target, 0)
    return _multi_margin_loss(input, target, weight, margin, p, reduction)


def _multilabel_margin(self: Any, target: Any, *, reduction: str) -> Any:
    if self.ndim > 2 or target.shape != self.shape:
        raise RuntimeError(
            "multilabel_margin_loss: expected input and target (batch, classes), got shapes "
            f"{list(self.shape)} and {list(target.shape)}"
        )
    classes = self.shape[-1] if self.ndim else 1
    count = self.shape[0] if self.ndim == 2 else 1
    scores, target = self.reshape(count, classes), target.reshape(count, classes)
    given = jnp.cumsum(target < 0, 1) == 0  # targets end at the first negative number
    named = (target[:, :, None] == jnp.arange(classes)) & given[:, :, None]
    is_target = named.any(1)
    own = jnp.take_along_axis(scores, jnp.where(given, target, 0), 1)
    excess = jax.nn.relu(1 - own[:, :, None] + scores[:, None, :])
    pairs = given[:, :, None] & ~is_target[:, None, :]
    loss = jnp.where(pairs, excess, 0).sum((1, 2)) / classes
    return reduced(loss.reshape(self.shape[:-1]), reduction)


_multilabel_margin_loss = define(
    "multilabel_margin_loss",
    _multilabel_margin,
    signature="self, target, reduction",
    target=None,
)


def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
) -> Tensor:
    """How far other classes come within 1 of the targets': both are (batch, classes).

    A row of targets lists class numbers up to the first -1. Raises RuntimeError for a target that
    is no class.

    >>> dg.nn.functional.multilabel_margin_loss(dg.tensor([0.5, 0.0]), dg.tensor([0, -1]))
    tensor(0.2500)
    """
    _check_classes(input, target, -1)
    return _multilabel_margin_loss(input, target, reduction)


def _multilabel_soft_margin(self: Any, target: Any, weight: Any = None, *, reduction: str) -> Any:
    log = jax.nn.log_sigmoid
    loss = -(target * log(self) + (1 - target) * log(-self))
    loss = loss if weight is None else loss * weight
    return reduced(loss.mean(-1), reduction)


multilabel_soft_margin_loss = define(
    "multilabel_soft_margin_loss",
    _multilabel_soft_margin,
    signature=("self, target, weight=None, reduction='mean'"),
    doc="""The mean over classes of each one's binary cross entropy, for scores (batch, classes).

    >>> loss = dg.nn.functional.multilabel_soft_margin_loss
    >>> loss(dg.tensor([[0.0, 0.0]]), dg.tensor([[1.0, 0.0]]))
    tensor(0.6931)
    """,
)


# --- distances --------------------------------------------------------------------------------


def _distance(a: Any, b: Any, p: Any, eps: Any, *, norm_type: float | None) -> Any:
    difference = a - b + eps
    if norm_type == 2:
        square = (difference * difference).sum(-1)
        return jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1)), 0)
    size = jnp.abs(difference)
    if norm_type == 1:
        return size.sum(-1)
    if norm_type == float("inf"):
        return size.max(-1)
    total = jnp.power(size, p).sum(-1)
    return jnp.where(total > 0, jnp.power(jnp.where(total > 0, total, 1), 1 / p), 0)


def _triplet(
    anchor: Any,
    positive: Any,
    negative: Any,
    margin: Any,
    p: Any,
    eps: Any,
    *,
    norm_type: float | None,
    swap: bool,
    reduction: str,
) -> Any:
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of "
            f"dimensions, but got: anchor {anchor.ndim}D, positive {positive.ndim}D, and negative "
            f"{negative.ndim}D inputs"
        )
    near = _distance(anchor, positive, p, eps, norm_type=norm_type)
    far = _distance(anchor, negative, p, eps, norm_type=norm_type)
    if swap:
        far = jnp.minimum(far, _distance(positive, negative, p, eps, norm_type=norm_type))
    return reduced(_positive_part(margin + near - far), reduction)


_triplet_margin_loss = define(
    "triplet_margin_loss",
    _triplet,
    signature="anchor, positive, negative, margin, p, eps, norm_type, swap, reduction",
    margin=None,
    p=None,
    eps=None,
)


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """What the negative's distance to the anchor, less the positive's, lacks of `margin`.

    Distances are `p`-norms over the last dim. `swap` takes the negative's distance to the positive
    where that is smaller. Balntas et al. 2016, https://doi.org/10.5244/C.30.119. Raises ValueError
    for a margin that is not positive.

    >>> a, b = dg.tensor([[0.0, 0.0]]), dg.tensor([[3.0, 4.0]])
    >>> dg.nn.functional.triplet_margin_loss(a, b, b)
    tensor(1.)
    """
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    norm_type = float(p) if p in (1, 2, float("inf")) else None
    return _triplet_margin_loss(
        anchor, positive, negative, margin, float(p), eps, norm_type, bool(swap), reduction
    )


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """`triplet_margin_loss` with any function for the distance of two tensors.

    >>> a, b = dg.tensor([[0.0, 0.0]]), dg.tensor([[3.0, 4.0]])
    >>> distance = lambda x, y: (x - y).abs().sum(-1)
    >>> loss = dg.nn.functional.triplet_margin_with_distance_loss
    >>> loss(a, a, b, distance_function=distance, margin=8.0)
    tensor(1.)
    """
    if distance_function is None:
        return triplet_margin_loss(
            anchor, positive, negative, margin=margin, swap=swap, reduction=reduction
        )
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    near, far = distance_function(anchor, positive), distance_function(anchor, negative)
    if swap:
        far = minimum(far, distance_function(positive, negative))
    loss = clamp_min(add(sub(near, far), margin), 0)
    return mean(loss) if reduction == "mean" else _sum(loss) if reduction == "sum" else loss


__all__: list[str] = []  # these are functions of nn.functional
METHODS: tuple[str, ...] = ()
"""The functions of this file that are methods of Tensor too."""
