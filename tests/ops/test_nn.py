"""What the rows can't say of network functions: errors, graphs, randomness, running statistics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dyngraph as dg
from dyngraph.nn import functional as F

ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "softmax of ints": (lambda: dg.softmax(dg.tensor([1]), 0), RuntimeError, r"Convert .* \.float"),
    "softmax dim": (lambda: dg.softmax(dg.ones(2), 1), IndexError, "Dimension out of range"),
    "glu": (lambda: F.glu(dg.ones(3)), RuntimeError, "Halving dimension must be even"),
    "linear": (
        lambda: F.linear(dg.ones(2, 3), dg.ones(4, 5)),
        RuntimeError,
        r"cannot be multiplied \(2x3 and 5x4\)",
    ),
    "linear bias": (
        lambda: F.linear(dg.ones(2, 3), dg.ones(4, 3), dg.ones(5)),
        RuntimeError,
        r"expanded size of the tensor \(4\) must match the existing size \(5\)",
    ),
    "embedding": (
        lambda: F.embedding(dg.tensor([2]), dg.ones(2, 3)),
        IndexError,
        "index out of range in self",
    ),
    "embedding dtype": (
        lambda: F.embedding(dg.tensor([1.0]), dg.ones(2, 3)),
        RuntimeError,
        "scalar types: Long, Int; but got float32",
    ),
    "one_hot": (
        lambda: F.one_hot(dg.tensor([-1])),
        RuntimeError,
        "Class values must be non-negative",
    ),
    "one_hot classes": (
        lambda: F.one_hot(dg.tensor([3]), 2),
        RuntimeError,
        "Class values must be smaller than num_classes",
    ),
    "dropout": (
        lambda: F.dropout(dg.ones(2), 1.5),
        ValueError,
        "dropout probability has to be between 0 and 1, but got 1.5",
    ),
    "layer_norm": (
        lambda: F.layer_norm(dg.ones(2, 3), (2,)),
        RuntimeError,
        r"Given normalized_shape=\[2\], expected input with shape \[\*, 2\]",
    ),
    "batch_norm": (
        lambda: F.batch_norm(dg.ones(1, 3), None, None, training=True),
        ValueError,
        "Expected more than 1 value per channel when training",
    ),
    "batch_norm without statistics": (
        lambda: F.batch_norm(dg.ones(2, 3), None, None),
        RuntimeError,
        "Expected running_mean and running_var to be defined",
    ),
    "group_norm": (
        lambda: F.group_norm(dg.ones(2, 3), 2),
        RuntimeError,
        "channels in input to be divisible by num_groups",
    ),
    "pad": (
        lambda: F.pad(dg.ones(3), (3, 0), "reflect"),
        RuntimeError,
        "Padding size should be less than the corresponding input dimension",
    ),
    "pad mode": (lambda: F.pad(dg.ones(3), (1, 0), "x"), NotImplementedError, "padding mode x"),
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
    "attention": (
        lambda: F.scaled_dot_product_attention(
            dg.ones(2, 3), dg.ones(2, 3), dg.ones(2, 3), dg.ones(2, 2), is_causal=True
        ),
        RuntimeError,
        "attn_mask should not be set when is_causal=True",
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


def test_linear_has_the_edges_of_addmm() -> None:
    bias, x, weight = (dg.ones(s, requires_grad=True) for s in ((2,), (4, 3), (2, 3)))
    node = F.linear(x, weight, bias).grad_fn
    assert node is not None
    assert node.name() == "AddmmBackward0"
    leaves = [n.variable for n, _ in node.next_functions]  # type: ignore[union-attr]
    assert [leaf is t for leaf, t in zip(leaves, (bias, x, weight))] == [True] * 3


def test_softmax_saves_only_its_result() -> None:
    node = dg.softmax(dg.ones(2, requires_grad=True), 0).grad_fn
    assert node is not None
    assert node._saved_result.tolist() == [0.5, 0.5]  # type: ignore[attr-defined]
    assert not hasattr(node, "_saved_self")


def test_ignored_targets_alone_make_a_mean_of_nan() -> None:
    assert np.isnan(F.cross_entropy(dg.ones(1, 3), dg.tensor([-100])).item())


def test_ignored_target_at_an_infinite_score_counts_for_nothing() -> None:
    log_p = dg.tensor([[float("-inf"), 0.0], [-1.0, -2.0]])
    assert F.nll_loss(log_p, dg.tensor([0, 1]), ignore_index=0).item() == 2.0


def test_weighted_mean_divides_by_the_weights_of_the_targets() -> None:
    log_p = dg.tensor([[-1.0, -2.0], [-3.0, -4.0]])
    loss = F.nll_loss(log_p, dg.tensor([0, 1]), dg.tensor([1.0, 3.0]))
    assert loss.item() == (1.0 + 3 * 4.0) / 4


def test_padding_row_has_no_gradient() -> None:
    weight = dg.ones(3, 2, requires_grad=True)
    F.embedding(dg.tensor([0, 2, 2]), weight, padding_idx=-3).sum().backward()
    assert weight.grad is not None
    assert weight.grad.tolist() == [[0.0, 0.0], [0.0, 0.0], [2.0, 2.0]]


def test_gradient_of_embedding_is_divided_by_frequency_if_asked() -> None:
    weight = dg.ones(2, 1, requires_grad=True)
    F.embedding(dg.tensor([0, 1, 1]), weight, scale_grad_by_freq=True).sum().backward()
    assert weight.grad is not None
    assert weight.grad.tolist() == [[1.0], [1.0]]


def test_training_moves_the_running_statistics() -> None:
    mean, var = dg.zeros(1), dg.ones(1)
    F.batch_norm(dg.tensor([[1.0], [3.0]]), mean, var, training=True, momentum=0.5)
    assert (mean.tolist(), var.tolist()) == ([1.0], [1.5])  # var of the batch, unbiased: 2
    assert (mean._version, var._version) == (1, 1)


def test_batch_norm_by_running_statistics() -> None:
    x = dg.tensor([[2.0, 1.0], [4.0, 1.0]], requires_grad=True)
    mean, var = dg.tensor([1.0, 0.0]), dg.tensor([4.0, 1.0])
    y = F.batch_norm(x, mean, var, dg.tensor([2.0, 1.0]), eps=0.0)
    assert y.tolist() == [[1.0, 1.0], [3.0, 1.0]]
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_dropout_zeroes_in_backward_what_it_zeroed_in_forward() -> None:
    x = dg.ones(200, requires_grad=True)
    y = F.dropout(x, 0.25)
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == y.tolist()
    assert set(np.round(y.tolist(), 4)) == {0.0, 1.3333}


def test_dropout_draws_anew_each_time_and_again_after_a_seed() -> None:
    with dg.random.fork_rng():
        dg.manual_seed(0)
        first, second = F.dropout(dg.ones(64)), F.dropout(dg.ones(64))
        dg.manual_seed(0)
        again = F.dropout(dg.ones(64))
    assert first.tolist() == again.tolist() != second.tolist()


def test_dropout_outside_training_is_the_input() -> None:
    x = dg.ones(2)
    assert F.dropout(x, training=False) is x


def test_dropout_of_everything_is_zero() -> None:
    x = dg.ones(3, requires_grad=True)
    F.dropout(x, 1.0).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0.0, 0.0, 0.0]


def test_row_that_attends_to_nothing_is_zero_and_has_no_gradient() -> None:
    q = dg.ones(1, 2, requires_grad=True)
    mask = dg.tensor([[False, False]])
    out = F.scaled_dot_product_attention(q, dg.ones(2, 2), dg.ones(2, 2), mask)
    assert out.tolist() == [[0.0, 0.0]]
    out.sum().backward()
    assert q.grad is not None
    assert q.grad.tolist() == [[0.0, 0.0]]


def test_heads_of_key_and_value_repeat_if_asked() -> None:
    q, k = dg.ones(4, 1, 2), dg.ones(2, 1, 2)
    value = dg.tensor([[[1.0]], [[2.0]]])
    out = F.scaled_dot_product_attention(q, k, value, enable_gqa=True)
    assert out.flatten().tolist() == [1.0, 1.0, 2.0, 2.0]


def test_attention_drops_shares() -> None:
    out = F.scaled_dot_product_attention(
        dg.ones(50, 2), dg.ones(1, 2), dg.ones(1, 1), dropout_p=0.5
    )
    assert set(out.flatten().tolist()) == {0.0, 2.0}


def test_norm_of_zeros_has_gradient_zero() -> None:
    x = dg.zeros(1, 2, requires_grad=True)
    F.cosine_similarity(x, dg.ones(1, 2)).sum().backward(retain_graph=True)
    assert x.grad is not None
    assert np.isfinite(x.grad.tolist()).all()


def test_sixteen_bits_are_normalised_in_thirty_two() -> None:
    x = dg.full((1, 4096), 30.0, dtype=dg.float16)
    assert F.rms_norm(x, (4096,)).dtype == dg.float16
    assert F.rms_norm(x, (4096,))[0, 0].item() == 1.0


def test_public_names_are_sorted_and_there() -> None:
    assert list(F.__all__) == sorted(F.__all__)
    assert [n for n in F.__all__ if not hasattr(F, n)] == []
