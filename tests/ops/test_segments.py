"""Reductions of segments: empty ones, equal extremes, and lengths that do not fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dyngraph as dg

x = dg.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
lengths = dg.tensor([2, 0, 1])

# What PyTorch 2.13 has for a segment without elements.
EMPTY = {"sum": 0.0, "mean": np.nan, "max": -np.inf, "min": np.inf, "prod": 1.0}


@pytest.mark.parametrize(("reduce", "value"), EMPTY.items())
def test_empty_segment_has_what_changes_nothing(reduce: str, value: float) -> None:
    made = dg.segment_reduce(x, reduce, lengths=lengths)
    np.testing.assert_array_equal(made.numpy()[1], [value, value])


@pytest.mark.parametrize("reduce", EMPTY)
def test_empty_segment_has_the_initial_value(reduce: str) -> None:
    made = dg.segment_reduce(x, reduce, lengths=lengths, initial=7.0)
    assert made[1].tolist() == [7.0, 7.0]


def test_mean_counts_the_initial_value_as_no_element() -> None:
    made = dg.segment_reduce(x, "mean", lengths=lengths, initial=2.0)
    assert made.tolist() == [[3.0, 4.0], [2.0, 2.0], [7.0, 8.0]]


def test_extremes_go_by_numpys_names_too() -> None:
    made = [dg.segment_reduce(x, name, lengths=lengths) for name in ("max", "amax")]
    assert made[0].tolist() == made[1].tolist()


@pytest.mark.parametrize(("reduce", "sign"), [("max", 1.0), ("min", -1.0)])
def test_equal_extremes_share_the_gradient(reduce: str, sign: float) -> None:
    data = dg.tensor([4.0, 4.0, 1.0, 3.0], requires_grad=True)
    dg.segment_reduce(sign * data, reduce, lengths=dg.tensor([3, 1])).sum().backward()
    assert data.grad is not None and (sign * data.grad).tolist() == [0.5, 0.5, 0.0, 1.0]


def test_rows_in_no_segment_are_left_out_where_unsafe() -> None:
    made = dg.segment_reduce(x, "sum", lengths=dg.tensor([1, 1]), unsafe=True)
    assert made.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_rows_before_the_first_offset_are_left_out() -> None:
    for reduce, value in (("sum", 5.0), ("prod", 6.0), ("max", 3.0)):
        data = dg.tensor([9.0, 2.0, 3.0, 9.0])
        made = dg.segment_reduce(data, reduce, offsets=dg.tensor([1, 3]))
        assert made.tolist() == [value]


def test_nan_is_an_extreme() -> None:
    data = dg.tensor([1.0, np.nan, 2.0])
    made = dg.segment_reduce(data, "max", lengths=dg.tensor([2, 1]), initial=0.0)
    np.testing.assert_array_equal(made.numpy(), [np.nan, 2.0])


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "neither": (lambda: dg.segment_reduce(x, "sum"), RuntimeError, "Either lengths or offsets"),
    "indices": (
        lambda: dg.segment_reduce(x, "sum", indices=lengths),
        RuntimeError,
        "Pass lengths or offsets, or call scatter_reduce",
    ),
    "reduction": (
        lambda: dg.segment_reduce(x, "median", lengths=lengths),
        RuntimeError,
        "sum, prod, mean, max or min, got median",
    ),
    "sum": (
        lambda: dg.segment_reduce(x, "sum", lengths=dg.tensor([1, 1])),
        RuntimeError,
        r"to sum to 3, the data's size, when !unsafe, got \[2\]",
    ),
    "negative": (
        lambda: dg.segment_reduce(x, "sum", lengths=dg.tensor([-1, 4])),
        RuntimeError,
        "contains negative value",
    ),
    "floats": (
        lambda: dg.segment_reduce(x, "sum", lengths=dg.tensor([3.0])),
        NotImplementedError,
        r"Convert lengths by \.long\(\)",
    ),
    "axis": (
        lambda: dg.segment_reduce(x, "sum", lengths=lengths, axis=1),
        RuntimeError,
        "axis to be the last dimension of lengths",
    ),
    "dim": (
        lambda: dg.segment_reduce(x, "sum", lengths=lengths, axis=4),
        IndexError,
        "Dimension out of range",
    ),
    "integers": (
        lambda: dg.segment_reduce(x.int(), "sum", lengths=lengths),
        NotImplementedError,
        r"Convert the data by \.float\(\)",
    ),
}


@pytest.mark.parametrize(("call", "error", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_segments_that_do_not_fit_are_refused(
    call: Callable[[], Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call()
