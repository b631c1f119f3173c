"""Losses with a margin: which score is higher, which vectors are nearer."""

from __future__ import annotations

from collections.abc import Callable

from dyngraph.nn import functional as F
from dyngraph.nn.modules.distance import PairwiseDistance
from dyngraph.nn.modules.loss import _Loss, _WeightedLoss
from dyngraph.tensor import Tensor

__all__ = [
    "CosineEmbeddingLoss",
    "HingeEmbeddingLoss",
    "MarginRankingLoss",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "SoftMarginLoss",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]


class _MarginLoss(_Loss):
    margin: float

    def __init__(
        self,
        margin: float = 0.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin


class HingeEmbeddingLoss(_MarginLoss):
    """A distance where the target is 1, and how far it is below `margin` where it is -1.

    >>> dg.nn.HingeEmbeddingLoss()(dg.tensor([2.0, 0.0]), dg.tensor([1.0, -1.0]))
    tensor(1.5000)
    """

    def __init__(
        self,
        margin: float = 1.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(margin, size_average, reduce, reduction)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.hinge_embedding_loss(input, target, self.margin, self.reduction)


class CosineEmbeddingLoss(_MarginLoss):
    """1 - cosine where the target is 1, and how far the cosine is above `margin` where it is -1;
    (N, D), (N, D), (N,), or one of each.

    >>> x = dg.tensor([[1.0, 0.0]])
    >>> dg.nn.CosineEmbeddingLoss()(x, x, dg.tensor([-1.0]))
    tensor(1.)
    """

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.cosine_embedding_loss(input1, input2, target, self.margin, self.reduction)


class MarginRankingLoss(_MarginLoss):
    """How far input1 is short of being above input2 by `margin`; the other way round where the
    target is -1.

    >>> dg.nn.MarginRankingLoss()(dg.zeros(2), dg.ones(2), dg.ones(2))
    tensor(1.)
    """

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.margin_ranking_loss(input1, input2, target, self.margin, self.reduction)


class SoftMarginLoss(_Loss):
    """log(1 + exp(-target * input)); targets are 1 and -1.

    >>> dg.nn.SoftMarginLoss()(dg.zeros(2), dg.ones(2))
    tensor(0.6931)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.soft_margin_loss(input, target, self.reduction)


class MultiMarginLoss(_WeightedLoss):
    """How far each other class is short of being `margin` below the target's, to the power `p`,
    over the number of classes; input: (N, C), target: (N,).

    `weight`: (C,) weights the targets. Raises ValueError for a `p` that is not 1 or 2, and a weight
    that is not 1-D.

    >>> dg.nn.MultiMarginLoss()(dg.zeros(1, 2), dg.tensor([1]))
    tensor(0.5000)
    """

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueError(f"only p == 1 and p == 2 supported, got {p}")
        if weight is not None and weight.dim() != 1:
            raise ValueError(
                f"MultiMarginLoss: expected weight to be None or 1D tensor, got {weight.dim()}D "
                "instead"
            )
        self.p = p
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multi_margin_loss(input, target, self.p, self.margin, self.weight, self.reduction)


class MultiLabelMarginLoss(_Loss):
    """How far each class that is no target is short of being 1 below each that is, over the number
    of classes; input: (N, C), target: (N, C), the targets first and then -1.

    >>> dg.nn.MultiLabelMarginLoss()(dg.zeros(1, 2), dg.tensor([[1, -1]]))
    tensor(0.5000)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_margin_loss(input, target, self.reduction)


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """The mean of BCEWithLogitsLoss over the classes; input: (N, C), target: (N, C) of 0 and 1,
    `weight`: (C,).

    >>> dg.nn.MultiLabelSoftMarginLoss()(dg.zeros(1, 2), dg.ones(1, 2))
    tensor(0.6931)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_soft_margin_loss(input, target, self.weight, self.reduction)


class TripletMarginLoss(_Loss):
    """How far the anchor is short of being nearer, by `margin`, to the positive than to the
    negative, by the norm `p` of the difference plus `eps`; each (N, D) or (D,).

    With `swap`, the distance of positive and negative counts where it is smaller. Raises ValueError
    where the margin is not above zero.

    >>> x = dg.zeros(1, 2)
    >>> dg.nn.TripletMarginLoss()(x, x, x)
    tensor(1.)
    """

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = _positive(self, margin)
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_loss(
            anchor,
            positive,
            negative,
            self.margin,
            self.p,
            self.eps,
            self.swap,
            self.reduction,
        )


class TripletMarginWithDistanceLoss(_Loss):
    """TripletMarginLoss by any distance, a function of two tensors; PairwiseDistance where it is
    None.

    >>> x = dg.zeros(1, 2)
    >>> dg.nn.TripletMarginWithDistanceLoss(margin=2.0)(x, x, x)
    tensor(2.)
    """

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        self.distance_function = distance_function or PairwiseDistance()
        self.margin = _positive(self, margin)
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )


def _positive(loss: _Loss, margin: float) -> float:
    if margin <= 0:
        raise ValueError(
            f"{type(loss).__name__}: expected margin to be greater than 0, got {margin} instead"
        )
    return margin
