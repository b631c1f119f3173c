"""Writes that change values and not the graph: under no_grad, and into detached tensors."""

from __future__ import annotations

import dyngraph as dg
from tests.graph.helpers import assert_values, leaf


def vector() -> dg.Tensor:
    """A leaf of four ones."""
    return dg.ones(4, requires_grad=True)


# no_grad


def test_write_under_no_grad_changes_values_and_not_the_graph() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    node = y.grad_fn
    with dg.no_grad():
        y.mul_(10)
    assert y.grad_fn is node and y.requires_grad
    assert_values(y, [20, 40])
    y.sum().backward()
    assert_values(x.grad, [2, 2])


def test_write_into_a_view_under_no_grad_changes_values_and_not_the_graph() -> None:
    x = vector()
    base = x * 2
    view = base[:2]
    with dg.no_grad():
        view.mul_(10)
    assert_values(base, [20, 20, 2, 2])
    (base.sum() + view.sum()).backward()
    assert_values(x.grad, [4, 4, 2, 2])


def test_write_to_the_base_under_no_grad_leaves_the_gradient_of_its_view() -> None:
    x = vector()
    base = x * 2
    view = base[:2]
    with dg.no_grad():
        base.zero_()
    view.sum().backward()
    assert_values(x.grad, [2, 2, 0, 0])


def test_write_into_a_view_and_then_under_no_grad() -> None:
    x = vector()
    base = x * 2
    view = base[:2]
    view.mul_(3)
    with dg.no_grad():
        view.mul_(10)
    base.sum().backward()
    assert_values(x.grad, [6, 6, 2, 2])


def test_leaf_may_be_written_under_no_grad() -> None:
    x = leaf(1.0, 2.0)
    with dg.no_grad():
        x -= 0.5
        x[0] = 7
    assert x.is_leaf and x.requires_grad
    assert_values(x, [7, 1.5])
    (x * x).sum().backward()
    assert_values(x.grad, [14, 3])


def test_constant_written_under_no_grad_does_not_require_grad() -> None:
    x = dg.zeros(2)
    with dg.no_grad():
        x.add_(leaf(1.0, 2.0))
    assert not x.requires_grad
    assert_values(x, [1, 2])


def test_grad_may_be_written_between_passes() -> None:
    x = leaf(1.0, 2.0)
    (x * x).sum().backward()
    assert x.grad is not None
    x.grad.zero_()
    (x * 3).sum().backward()
    assert_values(x.grad, [3, 3])


# detach


def test_detached_tensor_writes_through_and_is_not_recorded() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    y.detach().mul_(10)
    assert_values(y, [20, 40])
    y.sum().backward()
    assert_values(x.grad, [2, 2])


def test_write_of_a_gradient_into_a_detached_tensor_stays_there() -> None:
    x, factor = vector(), leaf(3.0)
    y = x * 2
    alias = y.detach()
    alias.mul_(factor)
    assert alias.requires_grad
    assert_values(y, [6, 6, 6, 6])
    y.sum().backward()
    assert_values(x.grad, [2, 2, 2, 2])
    assert factor.grad is None


def test_detached_leaf_writes_through() -> None:
    x = leaf(1.0, 2.0)
    x.detach().zero_()
    assert_values(x, [0, 0])
    assert x.is_leaf and x.requires_grad


def test_detached_tensor_is_no_view() -> None:
    x = dg.ones(4)
    assert not x.detach()._is_view()
    assert not x[:2].detach()._is_view()
    assert x.detach()._base is None
