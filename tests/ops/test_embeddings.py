"""What the rows can't say of embeddings: errors, options, writes in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dyngraph as dg
from dyngraph.nn import functional as F

ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
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
}


@pytest.mark.parametrize("case", ERRORS)
def test_wrong_arguments_raise(case: str) -> None:
    call, error, message = ERRORS[case]
    with pytest.raises(error, match=message):
        call()


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


def test_rows_longer_than_max_norm_are_scaled_in_place_before_they_are_read() -> None:
    weight = dg.tensor([[3.0, 4.0], [0.3, 0.4], [6.0, 8.0]], requires_grad=True)
    rows = F.embedding(dg.tensor([[0, 1], [0, 0]]), weight, max_norm=1.0)
    assert weight.is_leaf and weight._version == 1
    expected = np.array([[0.6, 0.8], [0.3, 0.4], [6.0, 8.0]], np.float32)  # row 2 was not read
    np.testing.assert_allclose(weight.detach().numpy(), expected, rtol=1e-6)
    np.testing.assert_allclose(rows.detach().numpy(), expected[[[0, 1], [0, 0]]], rtol=1e-6)
    rows.sum().backward()
    assert weight.grad is not None
    assert weight.grad.tolist() == [[3.0, 3.0], [1.0, 1.0], [0.0, 0.0]]


@pytest.mark.parametrize(
    ("norm_type", "expected"), [(1.0, [0.75, -0.25]), (float("inf"), [1.0, -1 / 3]), (2, None)]
)
def test_max_norm_is_of_the_norm_that_is_named(norm_type: float, expected: Any) -> None:
    weight = dg.tensor([[3.0, -1.0], [0.0, 0.0]])
    F.embedding(dg.tensor([0, 1]), weight, max_norm=1.0, norm_type=norm_type)
    expected = expected or [3 / np.sqrt(10), -1 / np.sqrt(10)]
    np.testing.assert_allclose(weight.numpy(), [expected, [0.0, 0.0]], rtol=1e-6)


def test_position_out_of_range_leaves_the_weight_as_it_is() -> None:
    weight = dg.tensor([[3.0, 4.0]])
    with pytest.raises(IndexError, match="index out of range in self"):
        F.embedding(dg.tensor([0, 1]), weight, max_norm=1.0)
    assert weight.tolist() == [[3.0, 4.0]]
