"""Losses as modules: of numbers, probabilities and classes. Those with margins are in
`margin_loss`.

`reduction` is `"mean"`, `"sum"` or `"none"`. The older arguments `size_average` and `reduce` say
the same in two parts, with a warning.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

from dyngraph.nn import functional as F
from dyngraph.nn.modules.linear import Linear
from dyngraph.nn.modules.module import Module
from dyngraph.tensor import Tensor

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CTCLoss",
    "CrossEntropyLoss",
    "GaussianNLLLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "LinearCrossEntropyLoss",
    "MSELoss",
    "NLLLoss",
    "PoissonNLLLoss",
    "SmoothL1Loss",
]


class _Loss(Module):
    reduction: str

    def __init__(
        self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
    ) -> None:
        super().__init__()
        if size_average is not None or reduce is not None:
            reduction = "none" if reduce is False else "sum" if size_average is False else "mean"
            warnings.warn(
                "size_average and reduce args will be deprecated, please use "
                f"reduction='{reduction}' instead.",
                UserWarning,
                stacklevel=3,
            )
        self.reduction = reduction


class _WeightedLoss(_Loss):
    weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


# --- numbers ----------------------------------------------------------------------------------


class L1Loss(_Loss):
    """|input - target|; both of one shape.

    >>> dg.nn.L1Loss()(dg.tensor([1.0, 4.0]), dg.zeros(2))
    tensor(2.5000)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.l1_loss(input, target, self.reduction)


class MSELoss(_Loss):
    """(input - target) ** 2; both of one shape.

    >>> dg.nn.MSELoss()(dg.tensor([1.0, 3.0]), dg.zeros(2))
    tensor(5.)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(input, target, self.reduction)


class SmoothL1Loss(_Loss):
    """Half the square of a difference d over `beta` where |d| is below it, |d| - beta / 2 beyond.

    >>> dg.nn.SmoothL1Loss()(dg.tensor([1.0, 4.0]), dg.zeros(2))
    tensor(2.)
    """

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        beta: float = 1.0,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.smooth_l1_loss(input, target, self.reduction, self.beta)


class HuberLoss(_Loss):
    """Half the square of a difference d where |d| is at most `delta`, delta * (|d| - delta / 2)
    beyond; TypeError where that is no number.

    >>> dg.nn.HuberLoss()(dg.tensor([1.0, 4.0]), dg.zeros(2))
    tensor(2.)
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        if not isinstance(delta, float | int):
            raise TypeError(f"delta must be a float or int, got: {type(delta)}")
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.huber_loss(input, target, self.reduction, self.delta)


# --- distributions ----------------------------------------------------------------------------


class PoissonNLLLoss(_Loss):
    """exp(input) - target * input, or input - target * log(input + eps) with `log_input=False`;
    with `full`, Stirling's terms for the target are added.

    >>> dg.nn.PoissonNLLLoss()(dg.zeros(2), dg.ones(2))
    tensor(1.)
    """

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: bool | None = None,
        eps: float = 1e-8,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        return F.poisson_nll_loss(
            log_input, target, self.log_input, self.full, self.eps, self.reduction
        )


class GaussianNLLLoss(_Loss):
    """(log(var) + (input - target) ** 2 / var) / 2, var at least `eps`; with `full`, log(2 pi) / 2
    is added.

    >>> dg.nn.GaussianNLLLoss()(dg.tensor([1.0, 3.0]), dg.zeros(2), dg.ones(2))
    tensor(2.5000)
    """

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(None, None, reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor | float) -> Tensor:
        return F.gaussian_nll_loss(input, target, var, self.full, self.eps, self.reduction)


class KLDivLoss(_Loss):
    """target * (log(target) - input), input being a logarithm, and target too with `log_target`;
    `reduction` may also be `"batchmean"`.

    >>> dg.nn.KLDivLoss(reduction="sum")(dg.zeros(2), dg.ones(2))
    tensor(0.)
    """

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        log_target: bool = False,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.kl_div(input, target, self.reduction, self.log_target)


class BCELoss(_WeightedLoss):
    """-(target * log(input) + (1 - target) * log(1 - input)), times `weight`; logarithms are at
    least -100.

    >>> dg.nn.BCELoss()(dg.tensor([0.5, 0.5]), dg.ones(2))
    tensor(0.6931)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy(input, target, self.weight, self.reduction)


class BCEWithLogitsLoss(_Loss):
    """BCELoss of sigmoid(input), without its loss of precision; `pos_weight` multiplies the first
    term.

    >>> dg.nn.BCEWithLogitsLoss()(dg.zeros(2), dg.ones(2))
    tensor(0.6931)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, self.reduction, self.pos_weight
        )


# --- classes ----------------------------------------------------------------------------------


class NLLLoss(_WeightedLoss):
    """-input[target]; input: (N, C, ...) of log-probabilities, or (C,), target: (N, ...) of
    classes, or ().

    `weight`: (C,) weights the classes; the mean is over the weights. Targets that are
    `ignore_index` do not count.

    >>> dg.nn.NLLLoss()(dg.tensor([[-1.0, -2.0]]), dg.tensor([1]))
    tensor(2.)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.nll_loss(input, target, self.weight, self.ignore_index, self.reduction)


class CrossEntropyLoss(_WeightedLoss):
    """NLLLoss of the log-softmax of the input; the target may also be probabilities: (N, C, ...).

    `label_smoothing` is the share of the target that goes to all classes alike.

    >>> dg.nn.CrossEntropyLoss()(dg.zeros(1, 2), dg.tensor([1]))
    tensor(0.6931)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(
            input,
            target,
            self.weight,
            self.ignore_index,
            self.reduction,
            self.label_smoothing,
        )


class LinearCrossEntropyLoss(_WeightedLoss):
    """CrossEntropyLoss of a Linear of the input, which is a part of it, `linear`; input: (N,
    in_features), target: (N, *out_features).

    Raises RuntimeError where `weight` is not (num_classes,), or `label_smoothing` not in [0, 1].

    >>> loss = dg.nn.LinearCrossEntropyLoss(2, 3)
    >>> loss(dg.ones(4, 2), dg.tensor([0, 1, 2, 0])).shape
    dyngraph.Size([])
    """

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: Any = None,
    ) -> None:
        if weight is not None and weight.shape != (num_classes,):
            raise RuntimeError(
                f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}"
            )
        if not 0 <= label_smoothing <= 1:
            raise RuntimeError(
                f"expected label_smoothing to be in range [0, 1], got {label_smoothing}"
            )
        super().__init__(weight, reduction=reduction)
        self.num_classes = num_classes
        self.out_features = out_features
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        self.linear = Linear(
            in_features,
            math.prod(out_features, start=num_classes),
            bias=bias,
            device=device,
            dtype=dtype,
        )
        self.options = options

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        shape = (self.num_classes, *self.out_features)
        weight, bias = self.linear.weight, self.linear.bias
        return F.linear_cross_entropy(
            input,
            weight.reshape(*shape, self.linear.in_features),
            target,
            linear_bias=None if bias is None else bias.reshape(shape),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )

    def extra_repr(self) -> str:
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, "
            f"out_features={self.out_features}, bias={self.linear.bias is not None}, "
            f"reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )


class CTCLoss(_Loss):
    """-log of the probability of a sequence, over all its alignments (Graves et al., 2006).

    log_probs: (T, N, C) or (T, C), targets: (N, S) or all in one row, input_lengths and
    target_lengths: (N,). `blank` is the class between; with `zero_infinity`, infinite losses are
    zero.

    >>> loss = dg.nn.CTCLoss()(dg.zeros(2, 1, 2), dg.tensor([[1]]), dg.tensor([2]), dg.tensor([1]))
    >>> round(loss.item(), 4)
    -1.0986
    """

    def __init__(
        self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False
    ) -> None:
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(
        self, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any
    ) -> Tensor:
        return F.ctc_loss(
            log_probs,
            targets,
            input_lengths,
            target_lengths,
            self.blank,
            self.reduction,
            self.zero_infinity,
        )
