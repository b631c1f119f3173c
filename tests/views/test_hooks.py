"""Hooks and retained grads of a tensor that is written in place: which of its values they mean."""

from __future__ import annotations

import dyngraph as dg
from tests.graph.helpers import assert_values, leaf

Log = list[tuple[str, list[float]]]


def log(events: Log, name: str, tensor: dg.Tensor) -> None:
    """Notes the gradient of `tensor`, as it is now, under `name`."""

    def hook(grad: dg.Tensor) -> None:
        events.append((name, grad.tolist()))

    tensor.register_hook(hook)


# A hook stays with the value that its tensor had when it was registered.


def test_hook_gets_the_gradient_of_the_value_before_the_write() -> None:
    y = leaf(1.0, 2.0) * 2
    events: Log = []
    log(events, "before", y)
    y.mul_(3)
    log(events, "after", y)
    y.sum().backward()
    assert events == [("after", [1, 1]), ("before", [3, 3])]


def test_hook_on_the_value_before_the_write_changes_the_gradient_from_there_on() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    y.register_hook(lambda grad: grad * 10)
    y.mul_(3)
    y.retain_grad()
    y.sum().backward()
    assert_values(x.grad, [60, 60])
    assert_values(y.grad, [1, 1])


def test_hook_may_be_removed_after_the_write() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    handle = y.register_hook(lambda grad: grad * 10)
    y.mul_(3)
    handle.remove()
    y.sum().backward()
    assert_values(x.grad, [6, 6])


def test_hook_after_two_writes_is_on_the_last_value() -> None:
    y = leaf(1.0, 2.0) * 2
    events: Log = []
    y.mul_(3)
    log(events, "between", y)
    y.mul_(5)
    log(events, "last", y)
    y.sum().backward()
    assert events == [("last", [1, 1]), ("between", [5, 5])]


def test_hook_of_a_base_stays_with_the_value_before_a_write_into_its_view() -> None:
    base = dg.ones(3, requires_grad=True) * 2
    view = base[:2]
    events: Log = []
    log(events, "before", base)
    view.mul_(3)
    log(events, "after", base)
    base.sum().backward()
    assert events == [("after", [1, 1, 1]), ("before", [3, 3, 1])]


def test_hook_of_a_view_that_was_written_runs_only_if_the_view_is_used() -> None:
    base = dg.ones(3, requires_grad=True) * 2
    view = base[:2]
    events: Log = []
    log(events, "before", view)
    view.mul_(3)
    log(events, "after", view)
    base.sum().backward(retain_graph=True)
    assert events == []
    view.sum().backward()
    assert events == [("after", [1, 1])]


def test_hooks_of_base_and_view_run_on_the_way_from_the_view() -> None:
    base = dg.ones(3, requires_grad=True) * 2
    view = base[:2]
    events: Log = []
    log(events, "base before", base)
    log(events, "view before", view)
    view.mul_(3)
    log(events, "base after", base)
    log(events, "view after", view)
    view.sum().backward()
    assert events == [
        ("view after", [1, 1]),
        ("base after", [1, 1, 0]),
        ("base before", [3, 3, 0]),
    ]


def test_hook_of_one_of_several_outputs_stays_with_its_value() -> None:
    x = leaf(2.0, 1.0)
    values, _ = (x * 1).sort()
    events: Log = []
    log(events, "before", values)
    values.mul_(3)
    log(events, "after", values)
    values.sum().backward()
    assert events == [("after", [1, 1]), ("before", [3, 3])]


def test_hook_of_a_leaf_stays_through_writes_under_no_grad() -> None:
    x = leaf(1.0, 2.0)
    events: Log = []
    log(events, "leaf", x)
    with dg.no_grad():
        x.mul_(3)
    (x * x).sum().backward()
    assert events == [("leaf", [6, 12])]


def test_hook_stays_through_writes_under_no_grad() -> None:
    y = leaf(1.0, 2.0) * 2
    events: Log = []
    log(events, "hook", y)
    with dg.no_grad():
        y.mul_(3)
    (y * y).sum().backward()
    assert events == [("hook", [12, 24])]


# A retained grad is that of the last value.


def test_grad_retained_before_a_write_is_that_of_the_value_after_it() -> None:
    y = leaf(1.0, 2.0) * 2
    y.retain_grad()
    y.mul_(3)
    (y * y).sum().backward()
    assert_values(y.grad, [12, 24])
    assert y.retains_grad


def test_grad_retained_before_and_after_writes_is_that_of_the_last_value() -> None:
    y = leaf(1.0, 2.0) * 2
    y.retain_grad()
    y.mul_(3)
    y.retain_grad()
    y.mul_(5)
    y.sum().backward()
    assert_values(y.grad, [1, 1])


def test_grad_retained_of_a_base_is_that_of_the_value_after_a_write_into_its_view() -> None:
    base = dg.ones(3, requires_grad=True) * 2
    view = base[:2]
    base.retain_grad()
    view.mul_(3)
    (base * dg.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert_values(base.grad, [1, 2, 3])


def test_grad_retained_of_a_view_that_was_written_needs_a_use_of_the_view() -> None:
    base = dg.ones(3, requires_grad=True) * 2
    view = base[:2]
    view.retain_grad()
    view.mul_(3)
    base.sum().backward(retain_graph=True)
    assert view.grad is None
    (view * 7).sum().backward()
    assert_values(view.grad, [7, 7])


def test_grads_retained_of_base_and_view_after_a_write_to_the_base() -> None:
    base = dg.ones(3, requires_grad=True) * 2
    view = base[:2]
    base.retain_grad()
    view.retain_grad()
    base.mul_(3)
    (view * dg.tensor([1.0, 2.0])).sum().backward()
    assert_values(base.grad, [1, 2, 0])
    assert_values(view.grad, [1, 2])


def test_grad_retained_of_one_of_several_outputs_is_that_of_its_last_value() -> None:
    x = leaf(2.0, 1.0)
    values, indices = (x * 1).sort()
    values.retain_grad()
    values.mul_(3)
    (values * values).sum().backward()
    assert_values(values.grad, [6, 12])
    assert indices.tolist() == [1, 0]


def test_grad_retained_sees_what_the_hooks_of_the_last_value_made() -> None:
    y = leaf(1.0, 2.0) * 2
    y.retain_grad()
    y.register_hook(lambda grad: grad * 100)
    y.mul_(3)
    y.register_hook(lambda grad: grad * 7)
    y.sum().backward()
    assert_values(y.grad, [7, 7])


def test_grad_retained_stays_through_writes_under_no_grad() -> None:
    y = leaf(1.0, 2.0) * 2
    y.retain_grad()
    with dg.no_grad():
        y.mul_(3)
    y.sum().backward()
    assert_values(y.grad, [1, 1])


def test_hook_of_a_node_stays_with_the_node() -> None:
    y = leaf(1.0, 2.0) * 2
    events: list[list[float]] = []
    assert y.grad_fn is not None
    y.grad_fn.register_prehook(lambda grads: events.append(grads[0].tolist()))
    y.mul_(3)
    y.sum().backward()
    assert events == [[3, 3]]


def test_hooks_of_views_end_with_a_write_into_one_of_them() -> None:
    base = leaf(1.0, 2.0) * 1
    views = base[:], base[:]
    events: Log = []
    for view in views:
        log(events, "before", view)
    views[0].mul_(2)
    assert views[1].grad_fn is not None
    log(events, "after", views[1])
    (views[0] + views[1]).sum().backward()
    assert events == [("after", [1, 1])]


def test_grads_retained_of_views_are_those_after_a_write_into_one_of_them() -> None:
    base = leaf(1.0, 2.0) * 1
    one, other = base[:], base[:]
    one.retain_grad()
    other.retain_grad()
    one.mul_(2)
    (one + other).sum().backward()
    assert_values(one.grad, [1, 1])
    assert_values(other.grad, [1, 1])
