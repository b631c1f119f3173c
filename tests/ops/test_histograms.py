"""Histograms of points: bins of the points' own range, given edges, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dyngraph as dg

points = dg.tensor([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]])


def test_bins_are_of_the_points_own_range() -> None:
    hist, edges = dg.histogramdd(points, bins=2)
    assert hist.tolist() == [[0, 1], [1, 1]]
    assert [e.tolist() for e in edges] == [[0, 1, 2], [0, 1, 2]]


def test_bins_may_be_given_by_their_edges() -> None:
    edges = [dg.tensor([0.0, 2.0]), dg.tensor([0.0, 0.5, 2.0])]
    assert dg.histogramdd(points, edges).hist.tolist() == [[1.0, 2.0]]


def test_points_of_no_range_are_in_the_middle_of_one() -> None:
    hist, edges = dg.histogramdd(dg.ones(3, 1), bins=1)
    assert (hist.tolist(), edges[0].tolist()) == ([3.0], [0.5, 1.5])


def test_no_points_are_in_no_bin() -> None:
    hist, edges = dg.histogramdd(dg.ones(0, 2), bins=[1, 2])
    assert (hist.tolist(), edges[1].tolist()) == ([[0.0, 0.0]], [0.0, 0.5, 1.0])


def test_points_may_have_several_leading_dims() -> None:
    drawn = np.random.default_rng(0).random((2, 3, 2), np.float32)
    apart, together = (
        dg.histogramdd(dg.tensor(p), 3).hist.tolist() for p in (drawn, drawn.reshape(6, 2))
    )
    assert apart == together


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "integers": (lambda: dg.histogramdd(points.int(), 2), NotImplementedError, "Convert the input"),
    "one dim": (lambda: dg.histogramdd(points[0], 2), RuntimeError, "at least 2 dimensions, got 1"),
    "weight": (
        lambda: dg.histogramdd(points, 2, weight=dg.ones(2)),
        RuntimeError,
        r"got input with shape \[3, 2\] and weight with shape \[2\]",
    ),
    "bins": (
        lambda: dg.histogramdd(points, [2]),
        RuntimeError,
        "equal to the innermost dimension of the input, 2, got 1",
    ),
    "no bins": (
        lambda: dg.histogramdd(points, [1, 0]),
        RuntimeError,
        "bins must be > 0, but got 0 for dimension 1",
    ),
    "range": (
        lambda: dg.histogramdd(points, 2, [0.0, 1.0]),
        RuntimeError,
        "range should have 4 elements, a lower and an upper bound for each, but got 2",
    ),
}


@pytest.mark.parametrize(("call", "error", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_histogram_that_pytorch_refuses_raises(
    call: Callable[[], Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call()
