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
