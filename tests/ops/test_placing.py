"""What the rows of placing, differences, distances and masked reductions can't say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dyngraph as dg

X = dg.ones(3, 3)

REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: dg.select_scatter(X, dg.ones(2), 0, 0), RuntimeError, r"slice size = \[3\]"),
    (lambda: dg.select_scatter(X, dg.ones(3), 0, 5), IndexError, "index 5 out of range"),
    (lambda: dg.slice_scatter(X, dg.ones(2, 2)), RuntimeError, r"slice size = \[3, 3\]"),
    (lambda: dg.slice_scatter(X, X, step=0), RuntimeError, "step must be positive"),
    (lambda: dg.diagonal_scatter(X, dg.ones(2)), RuntimeError, r"slice size = \[3\]"),
    (lambda: dg.as_strided(X, (4, 4), (3, 1)), RuntimeError, "require 13 elements"),
    (lambda: dg.as_strided(X, (4,), (3, 1)), RuntimeError, "mismatch in length"),
    (lambda: dg.put(X, dg.tensor([9]), dg.ones(1)), IndexError, "tried to access index 9"),
    (lambda: dg.put(X, dg.tensor([0]), dg.ones(2)), RuntimeError, "same number of elements"),
    (lambda: dg.fill(X, X), RuntimeError, "0-dimension value tensor"),
    (lambda: dg.cdist(X, dg.ones(3, 4)), RuntimeError, "same number of columns"),
    (lambda: dg.cdist(dg.ones(3), X), RuntimeError, "at least 2D"),
    (lambda: dg.cdist(X, X, compute_mode="fast"), ValueError, "it is one of"),
    (lambda: dg.pdist(dg.ones(3)), RuntimeError, "only supports 2D"),
    (lambda: dg.diff(dg.tensor(1.0)), RuntimeError, "at least one-dimensional"),
    (lambda: dg.gradient(dg.ones(1)), RuntimeError, "at least edge_order"),
    (lambda: dg.gradient(X, spacing=[1.0]), RuntimeError, "for each of the 2 dims"),
    (lambda: dg.trapezoid(X, dg.ones(2)), RuntimeError, "one `x` value for each"),
    (lambda: dg.trapezoid(X, X, dx=1), TypeError, "either x"),
    (lambda: dg.view_as_real(X), RuntimeError, "only supported for complex"),
    (lambda: dg.view_as_complex(X), RuntimeError, "last dimension of size 2"),
    (
        lambda: dg.index_reduce(X, 0, dg.tensor([0]), dg.ones(1, 3), "sum"),
        RuntimeError,
        "one of prod, mean, amax or amin",
    ),
    (lambda: dg.renorm(dg.ones(2), 2, 0, 1), RuntimeError, "at least 2 dimensions"),
    (lambda: dg.mode(dg.ones(0), 0), IndexError, "non-zero size"),
    (lambda: dg.cov(dg.ones(2, 2, 2)), RuntimeError, "two or fewer"),
    (lambda: dg.broadcast_shapes((2,), (3,)), RuntimeError, "must be equal, or 1"),
    (lambda: dg.is_nonzero(X), RuntimeError, "ambiguous"),
    (lambda: dg.masked.mean(dg.tensor([1])), ValueError, "floating point"),
    (lambda: dg.masked.sum(dg.ones(2), mask=dg.ones(2, 2)), IndexError, "must broadcast"),
]


@pytest.mark.parametrize(("call", "kind", "message"), REFUSED, ids=[row[2] for row in REFUSED])
def test_bad_argument_is_named(
    call: Callable[[], Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        call()


def test_gradient_of_equal_rows_is_zero_for_every_norm() -> None:
    for p in (0.0, 0.5, 1.0, 2.0, 3.0, float("inf")):
        x = dg.ones(1, 2).requires_grad_()
        y = dg.ones(1, 2).requires_grad_()
        for grad in dg.autograd.grad(dg.cdist(x, y, p).sum(), [x, y]):
            assert grad.tolist() == [[0.0, 0.0]]


def test_distances_of_nothing_are_empty_or_zero() -> None:
    assert dg.cdist(dg.ones(0, 3), dg.ones(2, 3)).shape == (0, 2)
    assert dg.cdist(dg.ones(1, 0), dg.ones(2, 0)).tolist() == [[0.0, 0.0]]
    assert dg.pdist(dg.ones(1, 3)).shape == (0,)


def test_difference_of_bools_is_exclusive_or() -> None:
    assert dg.diff(dg.tensor([True, False, False])).tolist() == [True, False]


def test_mask_that_hides_everything_gives_what_changes_nothing() -> None:
    x, mask = dg.tensor([1.0, 2.0]), dg.tensor([False, False])
    assert dg.masked.sum(x, mask=mask).item() == 0
    assert dg.masked.prod(x, mask=mask).item() == 1
    assert dg.masked.amax(x, mask=mask).item() == -float("inf")
    assert dg.isnan(dg.masked.mean(x, mask=mask))


def test_masked_elements_have_gradient_zero() -> None:
    x = dg.tensor([1.0, float("nan")], requires_grad=True)
    dg.masked.sum(x, mask=dg.tensor([True, False])).backward()
    assert x.grad is not None and x.grad.tolist() == [1.0, 0.0]


def test_masked_median_of_integers_needs_an_element_in_each_row() -> None:
    with pytest.raises(ValueError, match="no fully masked out rows"):
        dg.masked.median(dg.tensor([1, 2]), mask=dg.tensor([False, False]))


def part_with_gradient() -> dg.Tensor:
    """A detached part of a longer memory, which requires grad itself."""
    return dg.arange(6.0)[1:5].detach().requires_grad_()


def test_as_strided_of_a_part_sends_its_gradient_to_the_part() -> None:
    part = part_with_gradient()
    shown = part.as_strided((2,), (1,), 2)
    shown.sum().backward()
    assert shown.tolist() == [2.0, 3.0]
    assert part.grad is not None
    assert part.grad.tolist() == [0.0, 1.0, 1.0, 0.0]


def test_as_strided_of_a_view_of_a_part_sends_its_gradient_to_the_part() -> None:
    part = part_with_gradient()
    part[1:3].as_strided((2, 2), (1, 0)).sum().backward()
    assert part.grad is not None
    assert part.grad.tolist() == [0.0, 2.0, 2.0, 0.0]


def test_as_strided_of_a_dual_part_has_its_tangent() -> None:
    with dg.autograd.forward_ad.dual_level():
        part = dg.autograd.forward_ad.make_dual(dg.arange(6.0)[1:5], dg.arange(4.0))
        tangent = dg.autograd.forward_ad.unpack_dual(part.as_strided((2,), (2,))).tangent
        assert tangent is not None
        assert tangent.tolist() == [0.0, 2.0]


def test_as_strided_beyond_a_part_with_gradient_is_refused() -> None:
    with pytest.raises(RuntimeError, match="must not be negative"):
        part_with_gradient().as_strided((2,), (1,), 0)


def test_as_strided_of_a_part_with_gaps_and_gradient_is_refused() -> None:
    part = dg.arange(6.0)[::2].detach().requires_grad_()
    with pytest.raises(RuntimeError, match="a part of its memory with gaps"):
        part.as_strided((2,), (1,))


def test_as_strided_of_a_part_is_written_through_to_the_memory() -> None:
    memory = dg.arange(6.0)
    part = memory[1:5].detach().requires_grad_()
    shown = part.as_strided((2,), (1,), 2)
    with dg.no_grad():
        shown.fill_(9.0)
    assert memory.tolist() == [0.0, 1.0, 9.0, 9.0, 4.0, 5.0]
