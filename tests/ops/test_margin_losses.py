"""What the rows can't say of margin and sequence losses, bags and cells: errors and edges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dyngraph as dg
from dyngraph.nn import functional as F

LOG_P = dg.log_softmax(dg.zeros(4, 2, 3), 2)

ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "reduction": (
        lambda: F.soft_margin_loss(dg.ones(2), dg.ones(2), reduction="x"),
        ValueError,
        "x is not a valid value for reduction",
    ),
    "class": (
        lambda: F.multi_margin_loss(dg.ones(1, 3), dg.tensor([5])),
        RuntimeError,
        "target 5 is out of range: there are 3 classes",
    ),
    "p": (
        lambda: F.multi_margin_loss(dg.ones(1, 3), dg.tensor([1]), p=3),
        ValueError,
        "only p == 1 and p == 2 supported",
    ),
    "cosine": (
        lambda: F.cosine_embedding_loss(dg.ones(1, 2), dg.ones(1, 2), dg.ones(1, 1)),
        RuntimeError,
        r"expected inputs \(batch, size\) and target \(batch\)",
    ),
    "triplet": (
        lambda: F.triplet_margin_loss(dg.ones(2), dg.ones(2), dg.ones(2), margin=-1),
        ValueError,
        "margin must be greater than 0",
    ),
    "negative variance": (
        lambda: F.gaussian_nll_loss(dg.ones(2), dg.ones(2), -dg.ones(2)),
        ValueError,
        "var has negative entry",
    ),
    "variances": (
        lambda: F.gaussian_nll_loss(dg.ones(2), dg.ones(2), dg.ones(3)),
        ValueError,
        "var is of incorrect size",
    ),
    "ctc lengths": (
        lambda: F.ctc_loss(LOG_P, dg.tensor([[1], [2]]), (9, 4), (1, 1)),
        RuntimeError,
        "Expected input_lengths to have values between 0 and 4",
    ),
    "ctc labels": (
        lambda: F.ctc_loss(LOG_P, dg.tensor([[1], [7]]), (4, 4), (1, 1)),
        RuntimeError,
        "target 7 is no class",
    ),
    "ctc reduction": (
        lambda: F.ctc_loss(LOG_P, dg.tensor([[1], [2]]), (4, 4), (1, 1), reduction="x"),
        ValueError,
        "expected 'none', 'mean' or 'sum'",
    ),
    "bag index": (
        lambda: F.embedding_bag(dg.tensor([0, 9]), dg.ones(3, 2), dg.tensor([0])),
        RuntimeError,
        r"value 9 which is not in the valid range \[0, 3\)",
    ),
    "bag offsets": (
        lambda: F.embedding_bag(dg.tensor([0, 1]), dg.ones(3, 2), dg.tensor([1])),
        RuntimeError,
        "offsets must begin with 0",
    ),
    "bag mode": (
        lambda: F.embedding_bag(dg.tensor([[0, 1]]), dg.ones(3, 2), mode="x"),
        ValueError,
        "mode has to be one of sum, mean or max",
    ),
    "cell": (
        lambda: dg.gru_cell(dg.ones(1, 4), dg.ones(1, 2), dg.ones(6, 3), dg.ones(6, 2)),
        RuntimeError,
        "input has inconsistent input_size: got 4 expected 3",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_wrong_arguments_raise(case: str) -> None:
    call, error, message = ERRORS[case]
    with pytest.raises(error, match=message):
        call()


def gradient(function: Callable[[Any], Any], values: Any) -> list[Any]:
    x = dg.tensor(values, requires_grad=True)
    function(x).backward()
    assert x.grad is not None
    return x.grad.tolist()


def test_hinge_of_a_margin_met_exactly_has_a_gradient() -> None:
    assert gradient(lambda x: F.hinge_embedding_loss(x, -dg.ones(1)), [1.0]) == [-1.0]


def test_class_margin_met_exactly_has_no_gradient() -> None:
    target = dg.tensor([0])
    assert gradient(lambda x: F.multi_margin_loss(x, target), [[1.0, 0.0]]) == [[0.0, 0.0]]


def test_variance_below_eps_keeps_its_gradient() -> None:
    grad = gradient(lambda v: F.gaussian_nll_loss(dg.ones(1), dg.ones(1), v, eps=0.5), [0.0])
    assert grad == [1.0]


def test_target_too_long_to_align_has_an_infinite_loss() -> None:
    loss = F.ctc_loss(LOG_P, dg.tensor([[1, 1, 1], [2, 0, 0]]), (4, 4), (3, 1), reduction="none")
    assert loss.tolist()[0] == float("inf")
    assert np.isfinite(loss.tolist()[1])


def test_zero_infinity_makes_it_count_for_nothing() -> None:
    targets = dg.tensor([[1, 1, 1], [2, 0, 0]])
    loss = F.ctc_loss(LOG_P, targets, (4, 4), (3, 1), reduction="none", zero_infinity=True)
    assert loss.tolist()[0] == 0.0


def test_targets_one_after_the_other_are_those_of_a_matrix() -> None:
    apart = F.ctc_loss(LOG_P, dg.tensor([[1, 2], [2, 0]]), (4, 3), (2, 1))
    joined = F.ctc_loss(LOG_P, dg.tensor([1, 2, 2]), (4, 3), (2, 1))
    assert apart.item() == joined.item()


def test_padding_row_counts_neither_in_a_mean_nor_in_gradients() -> None:
    table = dg.tensor([[1.0], [5.0]], requires_grad=True)
    out = F.embedding_bag(dg.tensor([[0, 1]]), table, padding_idx=1)
    out.sum().backward()
    assert table.grad is not None
    assert (out.item(), table.grad.tolist()) == (1.0, [[1.0], [0.0]])


def test_last_offset_may_be_the_end() -> None:
    index, table = dg.tensor([0, 1, 1]), dg.tensor([[1.0], [5.0]])
    out = F.embedding_bag(index, table, dg.tensor([0, 1, 3]), include_last_offset=True)
    assert out.tolist() == [[1.0], [5.0]]


def test_instance_norm_moves_running_statistics() -> None:
    mean, var = dg.zeros(1), dg.ones(1)
    F.instance_norm(dg.tensor([[[1.0, 3.0]]]), mean, var, momentum=0.5)
    assert (mean.tolist(), var.tolist()) == ([1.0], [1.5])


def test_attention_without_weights_is_that_with_weights() -> None:
    x, eye = dg.arange(8.0).reshape(2, 4) / 8, dg.eye(4)
    weight, mask = dg.cat([eye, eye, eye]), dg.tensor([[False, True], [False, False]])
    arguments = (x, x, x, 4, 2, weight, None, None, None, False, 0.0, eye, None)
    with_weights, shares = F.multi_head_attention_forward(*arguments, attn_mask=mask)
    without, none = F.multi_head_attention_forward(*arguments, attn_mask=mask, need_weights=False)
    assert shares is not None
    assert none is None
    assert shares.tolist()[0] == [1.0, 0.0]
    np.testing.assert_allclose(np.asarray(without), np.asarray(with_weights), rtol=1e-5)


def test_random_slopes_lie_between_their_bounds() -> None:
    x = dg.full((50,), -1.0, requires_grad=True)
    out = F.rrelu(x, 0.25, 0.5, training=True)
    out.sum().backward()
    assert x.grad is not None
    slopes = np.asarray(x.grad)
    assert (slopes >= 0.25).all()
    assert (slopes <= 0.5).all()
    np.testing.assert_allclose(-np.asarray(out.detach()), slopes)
