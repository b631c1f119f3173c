"""What the rows can't say of losses: errors, warnings, targets that are ignored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dyngraph as dg
from dyngraph.nn import functional as F

ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "reduction": (
        lambda: F.mse_loss(dg.ones(2), dg.ones(2), reduction="max"),
        ValueError,
        "max is not a valid value for reduction",
    ),
    "binary_cross_entropy": (
        lambda: F.binary_cross_entropy(dg.ones(2), dg.ones(1)),
        ValueError,
        "Please ensure they have the same size",
    ),
    "target": (
        lambda: F.cross_entropy(dg.ones(2, 3), dg.tensor([0, 3])),
        IndexError,
        "Target 3 is out of bounds",
    ),
    "negative target": (
        lambda: F.cross_entropy(dg.ones(2, 3), dg.tensor([-100, -1])),
        IndexError,
        "Target -1 is out of bounds",
    ),
    "target size": (
        lambda: F.nll_loss(dg.ones(2, 3), dg.tensor([0, 1, 2])),
        ValueError,
        r"Expected target size \[2\], got \[3\]",
    ),
    "linear input": (
        lambda: F.linear_cross_entropy(dg.ones(1, 1, 2), dg.ones(3, 2), dg.tensor([0])),
        RuntimeError,
        "input with dimensionality 1 or 2, got 3",
    ),
    "linear weight": (
        lambda: F.linear_cross_entropy(dg.ones(2), dg.ones(2), dg.tensor(0)),
        RuntimeError,
        "linear_weight with dimensionality at least 2, got 1",
    ),
    "linear sizes": (
        lambda: F.linear_cross_entropy(dg.ones(1, 2), dg.ones(3, 4), dg.tensor([0])),
        RuntimeError,
        r"last dimensions \(in_features\), got 2 and 4",
    ),
    "linear bias": (
        lambda: F.linear_cross_entropy(
            dg.ones(1, 2), dg.ones(3, 2), dg.tensor([0]), linear_bias=dg.ones(2)
        ),
        RuntimeError,
        r"expected linear_bias shape \(3,\), got \(2,\)",
    ),
    "linear without a batch": (
        lambda: F.linear_cross_entropy(dg.ones(2), dg.ones(3, 4, 2), dg.tensor([0])),
        RuntimeError,
        r"Add a batch by unsqueeze\(0\)",
    ),
    "linear ignored": (
        lambda: F.linear_cross_entropy(dg.ones(1, 2), dg.ones(3, 2), dg.ones(1, 3), ignore_index=1),
        RuntimeError,
        "cannot be specified when target contains probabilities",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_wrong_arguments_raise(case: str) -> None:
    call, error, message = ERRORS[case]
    with pytest.raises(error, match=message):
        call()


def test_loss_of_unequal_sizes_warns() -> None:
    with pytest.warns(UserWarning, match="Please ensure they have the same size"):
        F.mse_loss(dg.ones(2, 7), dg.ones(7))


def test_cross_entropy_is_nll_loss_of_log_softmax() -> None:
    x = dg.ones(2, 3, requires_grad=True)
    node = F.cross_entropy(x, dg.tensor([0, 1])).grad_fn
    assert node is not None
    before = node.next_functions[0][0]
    assert before is not None
    assert (node.name(), before.name()) == ("NllLossBackward0", "LogSoftmaxBackward0")


def test_ignored_targets_alone_make_a_mean_of_nan() -> None:
    assert np.isnan(F.cross_entropy(dg.ones(1, 3), dg.tensor([-100])).item())


def test_ignored_target_at_an_infinite_score_counts_for_nothing() -> None:
    log_p = dg.tensor([[float("-inf"), 0.0], [-1.0, -2.0]])
    assert F.nll_loss(log_p, dg.tensor([0, 1]), ignore_index=0).item() == 2.0


def test_weighted_mean_divides_by_the_weights_of_the_targets() -> None:
    log_p = dg.tensor([[-1.0, -2.0], [-3.0, -4.0]])
    loss = F.nll_loss(log_p, dg.tensor([0, 1]), dg.tensor([1.0, 3.0]))
    assert loss.item() == (1.0 + 3 * 4.0) / 4


def test_linear_cross_entropy_is_cross_entropy_of_linear() -> None:
    x, w, bias = dg.randn(4, 3), dg.randn(2, 3), dg.randn(2)
    target = dg.tensor([0, 1, 1, 0])
    got = F.linear_cross_entropy(x, w, target, linear_bias=bias, ignore_index=0, reduction="none")
    scores = F.linear(x, w, bias)
    assert got.tolist() == F.cross_entropy(scores, target, None, 0, "none").tolist()


def test_linear_cross_entropy_may_have_several_targets_a_sample() -> None:
    x, w = dg.randn(2, 3), dg.randn(4, 5, 3)
    target = dg.tensor([[0, 1, 2, 3, 0], [3, 2, 1, 0, 0]])
    scores = (w @ x.mT).permute(2, 0, 1)
    expected = F.cross_entropy(scores, target).item()
    assert F.linear_cross_entropy(x, w, target).item() == pytest.approx(expected, abs=1e-5)
