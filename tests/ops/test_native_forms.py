"""`torch`'s own forms of layers and losses: those of `nn.functional`, with other arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dyngraph as dg

F = dg.nn.functional


def draws(*shape: int) -> Any:
    return dg.tensor(np.random.default_rng(3).standard_normal(shape).astype(np.float32))


a, b, c = draws(4, 3), draws(4, 3) * 0.5, draws(4, 3) - 0.3
signs = dg.tensor([1, -1, 1, -1])
table, index, offsets = draws(5, 2), dg.tensor([4, 0, 4, 1]), dg.tensor([0, 3])
log_p, labels = dg.log_softmax(draws(5, 2, 4), 2), dg.tensor([[1, 2], [3, 1]])
ones, halves = dg.ones(3), dg.full((3,), 0.5)

# A call of ours, and the same of nn.functional: without a reduction, for losses, is a mean.
PAIRS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "binary_cross_entropy_with_logits": (
        lambda: dg.binary_cross_entropy_with_logits(a, b, None, halves, 2),
        lambda: F.binary_cross_entropy_with_logits(a, b, None, "sum", halves),
    ),
    "cosine_embedding_loss": (
        lambda: dg.cosine_embedding_loss(a, b, signs, 0.1, 0),
        lambda: F.cosine_embedding_loss(a, b, signs, 0.1, "none"),
    ),
    "ctc_loss": (
        lambda: dg.ctc_loss(log_p, labels, [5, 4], [2, 1]),
        lambda: F.ctc_loss(log_p, labels, [5, 4], [2, 1]),
    ),
    "hinge_embedding_loss": (
        lambda: dg.hinge_embedding_loss(a, signs[:, None], 0.5),
        lambda: F.hinge_embedding_loss(a, signs[:, None], 0.5),
    ),
    "kl_div": (
        lambda: dg.kl_div(a, b, 2, log_target=True),
        lambda: F.kl_div(a, b, "sum", log_target=True),
    ),
    "margin_ranking_loss": (
        lambda: dg.margin_ranking_loss(a[:, 0], b[:, 0], signs, 0.5),
        lambda: F.margin_ranking_loss(a[:, 0], b[:, 0], signs, 0.5),
    ),
    "poisson_nll_loss": (
        lambda: dg.poisson_nll_loss(a, b, True, False, 1e-8, 0),
        lambda: F.poisson_nll_loss(a, b, reduction="none"),
    ),
    "triplet_margin_loss": (
        lambda: dg.triplet_margin_loss(a, b, c, 2.0, swap=True),
        lambda: F.triplet_margin_loss(a, b, c, 2.0, swap=True),
    ),
    "embedding": (
        lambda: dg.embedding(table, index, scale_grad_by_freq=True),
        lambda: F.embedding(index, table, scale_grad_by_freq=True),
    ),
    "embedding with padding": (
        lambda: dg.embedding(table, index, 4),
        lambda: F.embedding(index, table, 4),
    ),
    "embedding_bag": (
        lambda: dg.embedding_bag(table, index, offsets)[0],
        lambda: F.embedding_bag(index, table, offsets, mode="sum"),
    ),
    "batch_norm": (
        lambda: dg.batch_norm(a, halves, ones, None, None, True, 0.1, 1e-5, True),
        lambda: F.batch_norm(a, None, None, halves, ones, True),
    ),
    "instance_norm": (
        lambda: dg.instance_norm(
            a[None], dg.ones(4), None, dg.zeros(4), dg.ones(4), False, 0.1, 1e-5, True
        ),
        lambda: F.instance_norm(a[None], dg.zeros(4), dg.ones(4), dg.ones(4), None, False),
    ),
    "convolution": (
        lambda: dg.convolution(a[None], b[None, :, :2], None, [2], [1], [1], False, [0], 1),
        lambda: F.conv1d(a[None], b[None, :, :2], None, 2, 1),
    ),
    "transposed convolution": (
        lambda: dg.convolution(a[None], b[:, None, :2], None, [2], [0], [1], True, [1], 1),
        lambda: F.conv_transpose1d(a[None], b[:, None, :2], None, 2, output_padding=1),
    ),
    "adaptive_max_pool1d": (
        lambda: dg.adaptive_max_pool1d(a, 2)[1],
        lambda: F.adaptive_max_pool1d_with_indices(a, 2)[1],
    ),
    "affine_grid_generator": (
        lambda: dg.affine_grid_generator(a[None, :2], (1, 1, 2, 2), False),
        lambda: F.affine_grid(a[None, :2], (1, 1, 2, 2), False),
    ),
    "rrelu": (lambda: dg.rrelu(a, 0.25, 0.75), lambda: F.leaky_relu(a, 0.5)),
}


@pytest.mark.parametrize(("ours", "functional"), PAIRS.values(), ids=PAIRS.keys())
def test_form_computes_what_that_of_functional_does(
    ours: Callable[[], Any], functional: Callable[[], Any]
) -> None:
    assert ours().tolist() == functional().tolist()


LOSSES: dict[str, Callable[[Any], Any]] = {
    "binary_cross_entropy_with_logits": lambda r: dg.binary_cross_entropy_with_logits(
        a, b, reduction=r
    ),
    "cosine_embedding_loss": lambda r: dg.cosine_embedding_loss(a, b, signs, 0.0, r),
    "ctc_loss": lambda r: dg.ctc_loss(log_p, labels, [5, 4], [2, 1], 0, r),
    "hinge_embedding_loss": lambda r: dg.hinge_embedding_loss(a, signs[:, None], 1.0, r),
    "kl_div": lambda r: dg.kl_div(a, b, r),
    "margin_ranking_loss": lambda r: dg.margin_ranking_loss(a, b, signs[:, None], 0.0, r),
    "poisson_nll_loss": lambda r: dg.poisson_nll_loss(a, b, True, False, 1e-8, r),
    "triplet_margin_loss": lambda r: dg.triplet_margin_loss(a, b, c, reduction=r),
}


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())
def test_reduction_by_name_is_refused(loss: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match=r"must be int, not str\. Pass 0, 1 or 2 for none, mean or"):
        loss("mean")


def test_reduction_of_another_number_is_refused() -> None:
    with pytest.raises(ValueError, match=r"expected 0 \(none\), 1 \(mean\) or 2 \(sum\)"):
        dg.kl_div(a, b, 3)


def test_embedding_bag_says_the_bag_of_each_index_and_how_many_it_counts() -> None:
    parts = dg.embedding_bag(table, index, offsets, False, 1, False, None, False, 4)[1:]
    assert [p.tolist() for p in parts] == [[0, 0, 0, 1], [1, 1], [1, 1]]


def test_embedding_bag_says_where_maxima_come_from() -> None:
    rows = dg.tensor([[1.0, 5.0], [3.0, 2.0], [3.0, 9.0]])
    bags = dg.embedding_bag(rows, dg.tensor([0, 1, 2]), dg.tensor([0, 2, 3]), False, 2)
    assert bags[0].tolist() == [[3.0, 5.0], [3.0, 9.0], [0.0, 0.0]]
    assert bags[3].tolist() == [[1, 0], [2, 2], [0, 0]]


def test_embedding_bag_of_another_mode_is_refused() -> None:
    with pytest.raises(RuntimeError, match=r"0 \(sum\), 1 \(mean\) or 2 \(max\), got 3"):
        dg.embedding_bag(table, index, offsets, False, 3)


def test_native_batch_norm_gives_the_batchs_mean_and_reciprocal_deviation() -> None:
    x = dg.tensor([[1.0, 0.0], [3.0, 4.0]], requires_grad=True)
    _, mean, invstd = dg.native_batch_norm(x, None, None, None, None, True, 0.1, 0.0)
    assert mean.tolist() == [2.0, 2.0]
    assert invstd.tolist() == [1.0, 0.5]
    assert not mean.requires_grad


def test_native_batch_norm_by_running_statistics_gives_none_of_the_batch() -> None:
    parts = dg.native_batch_norm(a, None, None, dg.zeros(3), ones, False, 0.1, 0.0)
    assert parts[0].tolist() == a.tolist()
    assert [p.shape for p in parts[1:]] == [(0,), (0,)]


def test_batch_norm_moves_the_running_statistics() -> None:
    mean, var = dg.zeros(1), dg.ones(1)
    dg.batch_norm(dg.tensor([[1.0], [3.0]]), None, None, mean, var, True, 0.5, 1e-5, True)
    assert (mean.item(), var.item()) == (1.0, 1.5)


def test_convolution_of_a_weight_of_two_dims_is_refused() -> None:
    with pytest.raises(RuntimeError, match="expects weight to have 3 to 5 dims"):
        dg.convolution(a, b, None, [1], [0], [1], False, [0], 1)


def test_native_dropouts_mask_is_true_where_elements_are_kept() -> None:
    kept, mask = dg.native_dropout(dg.ones(50), 0.5, True)
    assert mask.dtype == dg.bool
    assert kept.tolist() == (mask * 2.0).tolist()
    assert 5 < int(mask.sum()) < 45


def test_native_dropouts_gradient_passes_where_elements_are_kept() -> None:
    x = dg.ones(8, requires_grad=True)
    kept, _ = dg.native_dropout(x, 0.5, None)
    kept.sum().backward()
    assert x.grad is not None and x.grad.tolist() == kept.tolist()


def test_native_dropout_outside_training_is_a_copy_with_a_mask_of_true() -> None:
    kept, mask = dg.native_dropout(a, 0.5, False)
    assert kept is not a
    assert kept.tolist() == a.tolist()
    assert bool(mask.all())


def test_native_dropout_of_no_probability_is_refused() -> None:
    with pytest.raises(RuntimeError, match=r"expects p to be in \[0, 1\], but got p=1.5"):
        dg.native_dropout(a, 1.5, True)


def test_rrelu_draws_slopes_of_its_generator() -> None:
    drawn = [
        dg.rrelu(-dg.ones(4), 0.1, 0.9, True, dg.Generator().manual_seed(s)) for s in (1, 1, 2)
    ]
    assert drawn[0].tolist() == drawn[1].tolist() != drawn[2].tolist()
    assert all(-0.9 <= v <= -0.1 for v in drawn[0].tolist())
