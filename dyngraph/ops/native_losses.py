"""Losses as `torch` itself has them, beside those of `nn.functional`: with a number as reduction.

`reduction` is 0 for each element's loss, 1 for their mean, 2 for their sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dyngraph.ops import losses, margin_losses, sequence_losses
from dyngraph.tensor import Tensor

_REDUCTIONS = ("none", "mean", "sum")


def _name_of(where: str, reduction: Any) -> str:
    if not isinstance(reduction, int):
        raise TypeError(
            f"{where}(): argument 'reduction' must be int, not {type(reduction).__name__}. Pass "
            f"0, 1 or 2 for none, mean or sum, or call nn.functional.{where}."
        )
    if reduction not in (0, 1, 2):
        raise ValueError(
            f"{where}(): {reduction} is not a valid value for reduction: expected 0 (none), 1 "
            "(mean) or 2 (sum)"
        )
    return _REDUCTIONS[reduction]


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    pos_weight: Tensor | None = None,
    reduction: int = 1,
) -> Tensor:
    """`nn.functional.binary_cross_entropy_with_logits`; `reduction` is a number, and the last.

    >>> dg.binary_cross_entropy_with_logits(dg.tensor([0.0]), dg.tensor([1.0]))
    tensor(0.6931)
    """
    how = _name_of("binary_cross_entropy_with_logits", reduction)
    return losses.binary_cross_entropy_with_logits(input, target, weight, how, pos_weight)


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 1
) -> Tensor:
    """`nn.functional.cosine_embedding_loss`, with a number as `reduction`.

    >>> x = dg.tensor([[1.0, 0.0]])
    >>> dg.cosine_embedding_loss(x, x, dg.tensor([-1]))
    tensor(1.)
    """
    how = _name_of("cosine_embedding_loss", reduction)
    return margin_losses.cosine_embedding_loss(input1, input2, target, margin, how)


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int],
    blank: int = 0,
    reduction: int = 1,
    zero_infinity: bool = False,
) -> Tensor:
    """`nn.functional.ctc_loss`, with a number as `reduction`.

    >>> log_p = dg.log_softmax(dg.zeros(2, 1, 2), 2)
    >>> dg.ctc_loss(log_p, dg.tensor([[1]]), [2], [1])
    tensor(0.2877)
    """
    how = _name_of("ctc_loss", reduction)
    return sequence_losses.ctc_loss(
        log_probs, targets, input_lengths, target_lengths, blank, how, zero_infinity
    )


def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 1
) -> Tensor:
    """`nn.functional.hinge_embedding_loss`, with a number as `reduction`.

    >>> dg.hinge_embedding_loss(dg.tensor([0.25, 0.5]), dg.tensor([1, -1]), reduction=2)
    tensor(0.7500)
    """
    how = _name_of("hinge_embedding_loss", reduction)
    return margin_losses.hinge_embedding_loss(input, target, margin, how)


def kl_div(
    input: Tensor, target: Tensor, reduction: int = 1, *, log_target: bool = False
) -> Tensor:
    """`nn.functional.kl_div`, with a number as `reduction`.

    >>> dg.kl_div(dg.zeros(2), dg.ones(2))
    tensor(0.)
    """
    return losses.kl_div(input, target, _name_of("kl_div", reduction), log_target)


def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 1
) -> Tensor:
    """`nn.functional.margin_ranking_loss`, with a number as `reduction`.

    >>> dg.margin_ranking_loss(dg.tensor([1.0]), dg.tensor([3.0]), dg.tensor([1]))
    tensor(2.)
    """
    how = _name_of("margin_ranking_loss", reduction)
    return margin_losses.margin_ranking_loss(input1, input2, target, margin, how)


def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int
) -> Tensor:
    """`nn.functional.poisson_nll_loss` without defaults, and with a number as `reduction`.

    >>> dg.poisson_nll_loss(dg.tensor([0.0]), dg.tensor([2.0]), True, False, 1e-8, 1)
    tensor(1.)
    """
    how = _name_of("poisson_nll_loss", reduction)
    return losses.poisson_nll_loss(input, target, log_input, full, eps, how)


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: int = 1,
) -> Tensor:
    """`nn.functional.triplet_margin_loss`, with a number as `reduction`.

    >>> a, b = dg.tensor([[0.0]]), dg.tensor([[3.0]])
    >>> dg.triplet_margin_loss(a, b, b)
    tensor(1.)
    """
    how = _name_of("triplet_margin_loss", reduction)
    return margin_losses.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, how)


__all__ = [
    "binary_cross_entropy_with_logits",
    "cosine_embedding_loss",
    "ctc_loss",
    "hinge_embedding_loss",
    "kl_div",
    "margin_ranking_loss",
    "poisson_nll_loss",
    "triplet_margin_loss",
]
METHODS = ()
"""The functions of this file that are methods of Tensor too."""
