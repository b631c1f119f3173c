"""A warning, once, where nearly every backward has a structure of its own."""

from collections.abc import Iterator

import numpy as np
import pytest

import dyngraph as dg
from dyngraph.compiled import report


@pytest.fixture(autouse=True)
def counts_from_zero() -> Iterator[None]:
    dg.compiled.reset()
    yield
    dg.compiled.reset()


def backwards_of(sizes: range) -> None:
    """A backward for each size, on tensors of that many elements. Each size compiles kernels, so
    the tests have theirs in common."""
    for size in sizes:
        x = dg.tensor(np.ones(size, np.float32), requires_grad=True)
        with dg.compiled_autograd():
            dg.autograd.grad(x.sum(), x)


def test_new_structures_every_time_warn_with_what_differs() -> None:
    with pytest.warns(
        UserWarning, match=r"48 of the last 48 .*for float32\[48\] instead of float32\[47\]"
    ):
        backwards_of(range(1, report.CHURN_MISSES + 1))


def test_warning_comes_once(recwarn: pytest.WarningsRecorder) -> None:
    with pytest.warns(UserWarning, match="not seen before"):
        backwards_of(range(1, 51))
    backwards_of(range(51, 61))
    assert not recwarn


def test_one_structure_does_not_warn(recwarn: pytest.WarningsRecorder) -> None:
    for _ in range(report.CHURN_WINDOW):
        backwards_of(range(3, 4))
    assert not recwarn


def test_warning_points_at_the_line_that_calls_backward() -> None:
    with pytest.warns(UserWarning, match="not seen before") as caught:
        backwards_of(range(1, 51))
    assert caught[0].filename == __file__
