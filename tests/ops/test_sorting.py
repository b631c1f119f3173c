"""What the rows can't say of sorting and searching: errors, edge values from PyTorch 2.13."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dyngraph as dg

ERRORS: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "topk": (lambda x: x.topk(3), RuntimeError, "selected index k out of range"),
    "kthvalue": (lambda x: x.kthvalue(0), RuntimeError, "selected number k out of range"),
    "bincount": (
        lambda x: dg.bincount(dg.tensor([-1])),
        RuntimeError,
        "only supports 1-d non-negative integral inputs",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_wrong_argument_raises(case: str) -> None:
    call, error, message = ERRORS[case]
    with pytest.raises(error, match=message):
        call(dg.ones(3, 2))


def test_nan_sorts_as_the_largest() -> None:
    x = dg.tensor([1.0, float("nan"), -1.0, 3.0])
    assert x.sort().indices.tolist() == [2, 0, 3, 1]
    assert x.sort(descending=True).indices.tolist() == [1, 3, 0, 2]
    assert x.topk(2).indices.tolist() == [1, 3]
    assert x.topk(2, largest=False).indices.tolist() == [2, 0]


def test_equal_values_keep_their_order() -> None:
    x = dg.tensor([2, 1, 2, 1])
    assert x.argsort(stable=True).tolist() == [1, 3, 0, 2]
    assert x.argsort(descending=True, stable=True).tolist() == [0, 2, 1, 3]


def test_nonzero_as_tuple_indexes() -> None:
    x = dg.tensor([[0, 1], [2, 0]])
    assert x[x.nonzero(as_tuple=True)].tolist() == [1, 2]


def test_unique_gives_values_inverse_and_counts() -> None:
    values, inverse, counts = dg.tensor([[3, 1], [3, 2]]).unique(
        return_inverse=True, return_counts=True
    )
    assert values.tolist() == [1, 2, 3]
    assert inverse.tolist() == [[2, 0], [2, 1]]
    assert counts.tolist() == [1, 1, 2]


def test_unique_consecutive_keeps_what_comes_again_later() -> None:
    values, inverse, counts = dg.tensor([[1, 1], [2, 1]]).unique_consecutive(
        return_inverse=True, return_counts=True
    )
    assert values.tolist() == [1, 2, 1]
    assert inverse.tolist() == [[0, 0], [1, 2]]
    assert counts.tolist() == [2, 1, 1]


def test_unique_consecutive_compares_slices_along_a_dim() -> None:
    x = dg.tensor([[1, 1, 2], [1, 1, 2], [3, 3, 3]])
    assert x.unique_consecutive(dim=1).tolist() == [[1, 2], [1, 2], [3, 3]]
    assert x.unique_consecutive(dim=0).tolist() == [[1, 1, 2], [3, 3, 3]]


def test_unique_consecutive_keeps_every_nan() -> None:
    nan = float("nan")
    counts = dg.unique_consecutive(dg.tensor([nan, nan, 2.0, 2.0]), return_counts=True)[1]
    assert counts.tolist() == [1, 1, 2]


def test_unique_consecutive_of_nothing_is_empty() -> None:
    results = dg.unique_consecutive(dg.zeros(0), return_inverse=True, return_counts=True)
    assert [r.tolist() for r in results] == [[], [], []]


def test_unique_consecutive_of_slices_without_elements_raises() -> None:
    with pytest.raises(RuntimeError, match="0 sized dimensions, and they aren't selected"):
        dg.unique_consecutive(dg.zeros(2, 0), dim=0)


def test_nonzero_static_of_a_number_has_no_columns() -> None:
    assert dg.nonzero_static(dg.tensor(3.0), size=2).shape == (2, 0)


def test_nonzero_static_of_a_negative_size_raises() -> None:
    with pytest.raises(RuntimeError, match="'size' must be a non-negative integer, got -1"):
        dg.nonzero_static(dg.ones(2), size=-1)


def test_bincount_adds_weights() -> None:
    assert dg.bincount(dg.tensor([1, 3, 1]), dg.tensor([0.5, 1.0, 2.0])).tolist() == [0, 2.5, 0, 1]


def test_searchsorted_in_rows() -> None:
    rows = dg.tensor([[1.0, 3.0], [2.0, 4.0]])
    assert dg.searchsorted(rows, dg.tensor([[2.0], [2.0]])).tolist() == [[1], [0]]


def test_contradictory_sides_raise() -> None:
    with pytest.raises(RuntimeError, match="side and right can't be set to opposites"):
        dg.searchsorted(dg.ones(1), dg.ones(1), side="left", right=True)
