"""Views after a write to their base or to a sibling: new values, and a new history."""

from __future__ import annotations

import dyngraph as dg
from tests.graph.helpers import assert_values, leaf

NUMBERS = dg.tensor([1.0, 2.0, 3.0, 4.0])


def vector() -> dg.Tensor:
    """A leaf of four ones."""
    return dg.ones(4, requires_grad=True)


def test_view_gets_a_new_node_after_a_write_to_its_base() -> None:
    base = vector() * 2
    view = base[:2]
    before = view.grad_fn
    base.mul_(3)
    assert view.grad_fn is not None and view.grad_fn is not before


def test_view_has_its_values_and_gradient_after_a_write_to_its_base() -> None:
    x = vector()
    base = x * 2
    view = base[1:3]
    base.mul_(NUMBERS)
    assert_values(view, [4, 6])
    view.sum().backward()
    assert_values(x.grad, [0, 4, 6, 0])


def test_view_has_its_values_and_gradient_after_a_write_to_a_sibling() -> None:
    x, factor = vector(), leaf(5.0)
    base = x * 2
    view, sibling = base[:3], base[2:]
    sibling.mul_(factor)
    assert_values(view, [2, 2, 10])
    view.sum().backward()
    assert_values(x.grad, [2, 2, 10, 0])
    assert_values(factor.grad, 2)


def test_view_of_a_view_has_its_gradient_after_a_write_to_the_base() -> None:
    x = vector()
    base = x * 2
    inner = base.view(2, 2).t()[1]
    base.mul_(NUMBERS)
    inner.sum().backward()
    assert_values(x.grad, [0, 4, 0, 8])


def test_view_requires_grad_after_a_write_to_its_constant_base() -> None:
    x, base = leaf(3.0), dg.ones(4)
    view = base[:2]
    base.mul_(x)
    assert view.requires_grad and not view.is_leaf
    view.sum().backward()
    assert_values(x.grad, 2)


def test_view_requires_grad_after_a_write_to_a_sibling() -> None:
    x, base = leaf(3.0), dg.ones(4)
    view, sibling = base[:3], base[1:]
    sibling.mul_(x)
    assert view.requires_grad
    view.sum().backward()
    assert_values(x.grad, 2)


def test_view_may_be_written_after_its_constant_base_began_to_require_grad() -> None:
    x, base = leaf(3.0), dg.ones(4)
    view = base[:2]
    base.mul_(x)
    assert view.grad_fn is not None
    view.pow_(2)
    base.sum().backward()
    assert_values(x.grad, 14)


def test_view_beside_the_written_part_requires_grad_too() -> None:
    x, base = leaf(3.0), dg.ones(4)
    view = base[:2]
    base[2:].mul_(x)
    assert view.requires_grad
    view.sum().backward()
    assert_values(x.grad, 0)


def test_view_of_a_base_that_becomes_a_leaf_requires_grad() -> None:
    base = dg.ones(4)
    view = base[:2]
    base.requires_grad_()
    assert view.requires_grad


def test_what_was_computed_from_a_view_before_a_write_keeps_its_gradient() -> None:
    x = vector()
    base = x * 2
    view = base[:2]
    before = view * 10
    base.mul_(3)
    (before.sum() + view.sum()).backward()
    assert_values(x.grad, [26, 26, 0, 0])


def test_node_of_a_view_is_the_same_until_the_next_write() -> None:
    base = vector() * 2
    view = base[:2]
    base.mul_(3)
    node = view.grad_fn
    assert view.grad_fn is node
    base.mul_(3)
    assert view.grad_fn is not node


def test_node_of_a_view_may_be_asked_for_first_under_no_grad() -> None:
    x = vector()
    base = x * 2
    view = base[:2]
    base.mul_(3)
    with dg.no_grad():
        assert view.grad_fn is not None
    view.sum().backward()
    assert_values(x.grad, [6, 6, 0, 0])


def test_output_nr_of_a_regenerated_view_is_0() -> None:
    base = vector() * 2
    view = base[:2]
    base.mul_(3)
    assert view.output_nr == 0


def test_write_into_a_view_after_a_write_to_its_base() -> None:
    x = vector()
    base = x * 2
    view = base[:2]
    base.mul_(3)
    view.mul_(5)
    base.sum().backward()
    assert_values(x.grad, [30, 30, 6, 6])


def test_alternate_writes_to_base_and_views() -> None:
    x = vector()
    base = x * 1
    left, right = base[:3], base[1:]
    for _ in range(2):
        left.mul_(2)
        base.add_(1)
        right.mul_(3)
    base.sum().backward()
    assert_values(base, [7, 57, 57, 21])
    assert_values(x.grad, [4, 36, 36, 9])


def test_detaching_a_base_leaves_its_view_in_the_graph() -> None:
    base = vector() * 2
    view = base[:2]
    base.detach_()
    assert not base.requires_grad
    assert view.requires_grad and view.grad_fn is not None and view._base is base
