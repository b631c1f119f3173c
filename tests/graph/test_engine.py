"""The backward pass: its order, reentrant calls, callbacks, failures, depth and sharing."""

import traceback
import warnings
from collections.abc import Callable

import numpy as np
import pytest

import dyngraph as dg
from tests.graph.helpers import (
    assert_values,
    leaf,
    log_gradients,
    node_of,
    on_gradient,
    queue_callback,
)

AGAIN = "Specify retain_graph=True if you need to backward through the graph a second time"


def raising(error: Exception) -> Callable[[], None]:
    """A function that raises `error`."""

    def function() -> None:
        raise error

    return function


# Sums


def test_tensor_added_to_itself_gets_both_gradients() -> None:
    a = leaf(1.0, 2.0)
    (a + a).sum().backward()
    assert_values(a.grad, [2, 2])


@pytest.mark.parametrize("count", [1, 2, 3, 10])
def test_gradients_of_a_shared_leaf_add_up(count: int) -> None:
    x = leaf(1.0, 2.0)
    y = x * 0
    for i in range(count):
        y = y + x * float(i)
    y.sum().backward()
    assert_values(x.grad, [sum(range(count))] * 2)


def test_gradients_that_meet_at_an_interior_tensor_add_up() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    (y * y + y.exp() + y).sum().backward()
    assert_values(x.grad, 2 * (2 * np.array([2, 4]) + np.exp([2, 4]) + 1))


def test_summing_gradients_leaves_what_a_hook_kept_alone() -> None:
    x = leaf(1.0, 2.0)
    y, z = x * 1, x * 1
    kept: list[dg.Tensor] = []
    y.register_hook(lambda grad: kept.append(grad))
    z.register_hook(lambda grad: kept.append(grad))
    (y + z).sum().backward()
    assert [grad.tolist() for grad in kept] == [[1, 1], [1, 1]]


def test_summing_into_grad_leaves_what_a_hook_kept_alone() -> None:
    x = leaf(1.0, 2.0)
    kept: list[dg.Tensor] = []
    x.register_hook(lambda grad: kept.append(grad))
    for _ in range(2):
        (x * 3).sum().backward()
    assert [grad.tolist() for grad in kept] == [[3, 3], [3, 3]]


def test_unused_output_of_a_node_counts_as_zero() -> None:
    x = leaf(1.0, 2.0, 3.0)
    x.unbind()[1].backward()
    assert_values(x.grad, [0, 1, 0])


def test_node_sees_none_for_an_unused_output() -> None:
    part, _ = leaf(1.0, 2.0).unbind()
    seen: list[bool] = []
    node_of(part).register_prehook(lambda grads: seen.extend(grad is None for grad in grads))
    part.backward()
    assert seen == [False, True]


def test_gradient_flows_only_into_what_requires_it() -> None:
    x = leaf(1.0, 2.0)
    constant = dg.tensor([3.0, 4.0])
    (constant.exp() * x).sum().backward()
    assert_values(x.grad, np.exp([3, 4]))


# Order


def test_node_created_last_runs_first() -> None:
    x = leaf(1.0)
    a, b, c = x * 2, x * 3, x * 4
    loss = (a + c) + b
    log: list[str] = []
    log_gradients(log, a=a, b=b, c=c, loss=loss, x=x)
    loss.backward()
    assert log == ["loss", "c", "b", "a", "x"]


def test_sequence_number_decides_the_order() -> None:
    x = leaf(1.0)
    a, b, c = x * 2, x * 3, x * 4
    loss = a + b + c
    node_of(a)._set_sequence_nr(node_of(c)._sequence_nr() + 1)
    log: list[str] = []
    log_gradients(log, a=a, b=b, c=c)
    loss.backward()
    assert log == ["a", "c", "b"]


def test_leaf_is_filled_as_soon_as_its_gradient_is_known() -> None:
    x, y = leaf(1.0), leaf(1.0)
    a = x * 2
    loss = a * y
    log: list[str] = []
    log_gradients(log, x=x, y=y, a=a)
    loss.backward()
    assert log == ["y", "a", "x"]


def test_node_waits_for_all_its_gradients() -> None:
    x = leaf(1.0)
    a = x * 2
    b = a * 3
    log: list[float] = []
    a.register_hook(lambda grad: log.append(grad.item()))
    (a + b).backward()
    assert log == [4]


def test_node_runs_once_however_often_it_is_used() -> None:
    x = leaf(1.0)
    a = x * 2
    log: list[str] = []
    log_gradients(log, a=a)
    (a * a * a + a).backward()
    assert log == ["a"]


@pytest.mark.parametrize("reverse", [False, True])
def test_order_does_not_depend_on_the_order_of_the_roots(reverse: bool) -> None:
    x = leaf(1.0)
    a, b = x * 2, x * 3
    log: list[str] = []
    log_gradients(log, a=a, b=b)
    dg.autograd.backward([b, a] if reverse else [a, b])
    assert log == ["b", "a"]


def test_events_at_a_node_and_at_a_leaf_have_a_fixed_order() -> None:
    x = leaf(1.0)
    y = x * 2
    log: list[str] = []
    y.retain_grad()
    x.register_post_accumulate_grad_hook(lambda leaf: log.append("leaf was filled"))
    node_of(y).register_hook(lambda grad_inputs, grad_outputs: log.append("node has run"))
    node_of(y).register_prehook(lambda grad_outputs: log.append("node will run"))
    log_gradients(log, **{"gradient of y": y, "gradient of x": x})
    (y * 3).backward()
    assert log == [
        "gradient of y",
        "node will run",
        "node has run",
        "gradient of x",
        "leaf was filled",
    ]


def test_every_backward_runs_in_the_same_order() -> None:
    x = leaf(1.0)
    parts = {f"part {i}": x * float(i) for i in range(10)}
    total = parts["part 3"]
    for part in parts.values():
        total = total + part
    log: list[str] = []
    log_gradients(log, **parts)
    total.backward(retain_graph=True)
    first = list(log)
    log.clear()
    total.backward()
    assert log == first


# Depth and width


def test_chain_of_100_000_nodes_runs() -> None:
    x = leaf(1.0)
    y = x
    for _ in range(100_000):
        y = y + 1
    y.backward()
    assert_values(x.grad, 1)


def test_repeated_sharing_costs_one_visit_a_node() -> None:
    x = leaf(1.0)
    y = x
    for _ in range(60):
        y = (y + y) * 0.5
    y.backward()
    assert_values(x.grad, 1)


def test_a_thousand_roots() -> None:
    x = leaf(1.0)
    dg.autograd.backward([x * 2 for _ in range(1000)])
    assert_values(x.grad, 2000)


def test_node_with_a_hundred_inputs() -> None:
    leaves = [leaf(1.0) for _ in range(100)]
    (dg.stack(leaves) * dg.arange(100.0)).sum().backward()
    grads = [x.grad.item() for x in leaves if x.grad is not None]
    assert grads == list(range(100))


# Sharing between backward passes


def test_second_loss_over_a_freed_subgraph_raises() -> None:
    x = leaf(1.0, 2.0)
    shared = x.exp()
    first, second = shared.sum(), (shared * 2).sum()
    first.backward()
    with pytest.raises(RuntimeError, match=AGAIN):
        second.backward()


def test_second_loss_over_a_retained_subgraph_adds_up() -> None:
    x = leaf(1.0, 2.0)
    shared = x.exp()
    first, second = shared.sum(), (shared * 2).sum()
    first.backward(retain_graph=True)
    second.backward()
    assert_values(x.grad, 3 * np.exp([1, 2]))


def test_losses_that_share_only_leaves_are_independent() -> None:
    x = leaf(1.0, 2.0)
    first, second = x.exp().sum(), (x * x).sum()
    second.backward()
    first.backward()
    assert_values(x.grad, np.exp([1, 2]) + np.array([2, 4]))


def test_graph_can_grow_between_two_backward_passes() -> None:
    x = leaf(1.0, 2.0)
    y = x * x
    y.sum().backward(retain_graph=True)
    (y * 10).sum().backward()
    assert_values(x.grad, [22, 44])


def test_failed_backward_over_a_freed_graph_leaves_grad_alone() -> None:
    x = leaf(1.0, 2.0)
    loss = (x * x).sum()
    loss.backward()
    with pytest.raises(RuntimeError, match=AGAIN):
        loss.backward()
    assert_values(x.grad, [2, 4])


# Grad mode


def test_hooks_run_without_recording() -> None:
    y = leaf(1.0) * 2
    seen: list[bool] = []
    on_gradient(y, lambda: seen.append(dg.is_grad_enabled()))
    y.backward()
    assert seen == [False]


def test_hooks_run_with_recording_under_create_graph() -> None:
    x = leaf(1.0)
    y = x * 2
    seen: list[bool] = []
    on_gradient(y, lambda: seen.append(dg.is_grad_enabled()))
    dg.autograd.grad(y, x, create_graph=True)
    assert seen == [True]


@pytest.mark.parametrize("mode", [False, True])
def test_grad_mode_is_restored_after_backward(mode: bool) -> None:
    y = leaf(1.0) * 2
    with dg.set_grad_enabled(mode):
        y.backward()
        assert dg.is_grad_enabled() is mode


def test_grad_mode_is_restored_after_a_failed_backward() -> None:
    y = leaf(1.0) * 2
    on_gradient(y, raising(ValueError("from the hook")))
    with pytest.raises(ValueError, match="from the hook"):
        y.backward()
    assert dg.is_grad_enabled()


# Reentrant backward


def test_backward_inside_a_hook() -> None:
    x, y = leaf(1.0), leaf(1.0)
    inner = x * 3
    outer = y * 2
    on_gradient(outer, inner.backward)
    outer.backward()
    assert_values(x.grad, 3)
    assert_values(y.grad, 2)


def test_backward_inside_a_hook_is_done_when_it_returns() -> None:
    x = leaf(1.0)
    inner, outer = x * 3, x * 2
    log: list[float] = []

    def run() -> None:
        inner.backward()
        assert x.grad is not None
        log.append(x.grad.item())

    on_gradient(outer, run)
    outer.backward()
    assert log == [3]
    assert_values(x.grad, 5)


def test_graph_built_inside_a_hook_runs_backward() -> None:
    x = leaf(1.0, 2.0)

    def add_penalty(grad: dg.Tensor) -> dg.Tensor:
        with dg.enable_grad():
            copy = x.detach().requires_grad_()
            (penalty,) = dg.autograd.grad((copy * copy * copy).sum(), copy)
        return grad + penalty

    y = x * 2
    y.register_hook(add_penalty)
    y.sum().backward()
    assert_values(x.grad, [8, 26])


def test_backward_inside_a_hook_of_a_leaf() -> None:
    x = leaf(1.0, 2.0)

    def add_penalty(grad: dg.Tensor) -> dg.Tensor | None:
        with dg.enable_grad():
            copy = x.detach().requires_grad_()
            (copy * copy).sum().backward()
        assert copy.grad is not None
        return grad + copy.grad

    x.register_hook(add_penalty)
    (x * 3).sum().backward()
    assert_values(x.grad, [5, 7])


def test_backward_inside_a_post_accumulate_hook() -> None:
    x, y = leaf(1.0), leaf(1.0)
    inner = y * 3
    x.register_post_accumulate_grad_hook(lambda leaf: inner.backward())
    (x * 2).backward()
    assert_values(y.grad, 3)


def test_backward_inside_a_hook_of_a_node() -> None:
    x, y = leaf(1.0), leaf(1.0)
    inner, outer = y * 3, x * 2
    node_of(outer).register_hook(lambda grad_inputs, grad_outputs: inner.backward())
    outer.backward()
    assert_values(y.grad, 3)


def test_inner_backward_through_nodes_of_the_outer_one() -> None:
    x = leaf(1.0)
    shared = x * 2
    inner, outer = shared * 3, shared * 5
    on_gradient(outer, lambda: inner.backward(retain_graph=True))
    outer.backward()
    assert_values(x.grad, 2 * 3 + 2 * 5)


def test_inner_backward_finishes_before_the_outer_one_goes_on() -> None:
    x = leaf(1.0)
    a, b = x * 2, x * 3
    outer = a + b
    inner_end = x * 4
    inner = inner_end * 5
    log: list[str] = []
    log_gradients(log, outer=outer, inner=inner, inner_end=inner_end, a=a, b=b)
    on_gradient(outer, inner.backward)
    outer.backward()
    assert log == ["outer", "inner", "inner_end", "b", "a"]


@pytest.mark.parametrize("depth", [1, 2, 10, 100])
def test_backward_nested_in_hooks(depth: int) -> None:
    x = leaf(1.0)
    finished: list[int] = []

    def run(level: int) -> None:
        with dg.enable_grad():
            y = x * 2

        def nested() -> None:
            if level:
                run(level - 1)
            finished.append(level)

        on_gradient(y, nested)
        y.backward()

    run(depth)
    assert finished == list(range(depth + 1))
    assert_values(x.grad, 2 * (depth + 1))


def test_grad_mode_is_restored_after_a_nested_create_graph() -> None:
    x = leaf(1.0)
    y = x * 2
    seen: list[bool] = []

    def nested() -> None:
        with dg.enable_grad():
            z = x * x
        dg.autograd.grad(z, x, create_graph=True)
        seen.append(dg.is_grad_enabled())

    on_gradient(y, nested)
    y.backward()
    assert seen == [False]


def test_error_in_a_nested_backward_reaches_the_outer_caller() -> None:
    inner, outer = leaf(1.0) * 3, leaf(1.0) * 2
    on_gradient(inner, raising(ValueError("from the inner hook")))
    on_gradient(outer, inner.backward)
    with pytest.raises(ValueError, match="from the inner hook"):
        outer.backward()


def test_hook_may_catch_the_error_of_a_nested_backward() -> None:
    x = leaf(1.0)
    inner, outer = leaf(1.0) * 3, x * 2
    on_gradient(inner, raising(ValueError("from the inner hook")))

    def caught() -> None:
        with pytest.raises(ValueError, match="from the inner hook"):
            inner.backward()

    on_gradient(outer, caught)
    outer.backward()
    assert_values(x.grad, 2)


def test_engine_is_usable_after_an_error_in_a_nested_backward() -> None:
    x = leaf(1.0)
    inner, outer = leaf(1.0) * 3, x * 2
    on_gradient(inner, raising(ValueError("from the inner hook")))
    on_gradient(outer, inner.backward)
    with pytest.raises(ValueError, match="from the inner hook"):
        outer.backward()
    (x * 5).backward()
    assert_values(x.grad, 5)


# Callbacks


def test_callback_runs_after_all_leaves_are_filled() -> None:
    x, y = leaf(1.0), leaf(1.0)
    product = x * y
    seen: list[tuple[float, float]] = []

    def callback() -> None:
        assert x.grad is not None and y.grad is not None
        seen.append((x.grad.item(), y.grad.item()))

    on_gradient(product, lambda: queue_callback(callback))
    (product * 2).backward()
    assert seen == [(2, 2)]


def test_callback_runs_once() -> None:
    x = leaf(1.0)
    product = x * 2
    log: list[str] = []
    on_gradient(product, lambda: queue_callback(lambda: log.append("callback")))
    product.backward()
    (x * 2).backward()
    assert log == ["callback"]


def test_callbacks_run_in_the_order_they_were_queued() -> None:
    y = leaf(1.0) * 2
    log: list[int] = []

    def queue() -> None:
        for i in range(3):
            queue_callback(lambda i=i: log.append(i))

    on_gradient(y, queue)
    y.backward()
    assert log == [0, 1, 2]


def test_callback_may_queue_a_callback() -> None:
    y = leaf(1.0) * 2
    log: list[str] = []

    def first() -> None:
        log.append("first")
        queue_callback(lambda: log.append("second"))

    on_gradient(y, lambda: queue_callback(first))
    y.backward()
    assert log == ["first", "second"]


def test_callback_outside_of_a_backward_raises() -> None:
    with pytest.raises(RuntimeError, match="callbacks can only be installed during backward pass"):
        queue_callback(lambda: None)


def test_error_in_a_callback_reaches_the_caller() -> None:
    y = leaf(1.0) * 2
    on_gradient(y, lambda: queue_callback(raising(ValueError("from the callback"))))
    with pytest.raises(ValueError, match="from the callback"):
        y.backward()


def test_leaves_are_filled_although_a_callback_raises() -> None:
    x = leaf(1.0)
    y = x * 2
    on_gradient(y, lambda: queue_callback(raising(ValueError("from the callback"))))
    with pytest.raises(ValueError, match="from the callback"):
        y.backward()
    assert_values(x.grad, 2)


def test_callback_of_a_failed_backward_is_forgotten() -> None:
    x = leaf(1.0)
    y = x * 2
    log: list[str] = []
    on_gradient(y, lambda: queue_callback(lambda: log.append("callback")))
    on_gradient(y, raising(ValueError("from the hook")))
    with pytest.raises(ValueError, match="from the hook"):
        y.backward()
    (x * 2).backward()
    assert log == []


def test_callback_may_run_backward() -> None:
    x = leaf(1.0)
    inner, outer = x * 5, x * 2
    on_gradient(outer, lambda: queue_callback(inner.backward))
    outer.backward()
    assert_values(x.grad, 7)


@pytest.mark.parametrize("queue_in", [{"outer"}, {"inner"}, {"outer", "inner"}], ids=sorted)
def test_callback_runs_at_the_end_of_the_backward_that_queued_it(queue_in: set[str]) -> None:
    inner, outer = leaf(1.0) * 3, leaf(1.0) * 2
    log: list[str] = []

    def queue(name: str) -> None:
        if name in queue_in:
            queue_callback(lambda: log.append(f"{name} callback"))

    def run_inner() -> None:
        queue("outer")
        inner.backward()
        log.append("inner done")

    on_gradient(inner, lambda: queue("inner"))
    on_gradient(outer, run_inner)
    outer.backward()
    log.append("outer done")
    events = ["inner callback", "inner done", "outer callback", "outer done"]
    assert log == [event for event in events if "done" in event or event.split()[0] in queue_in]


# Failures


def test_error_in_a_hook_reaches_the_caller_unchanged() -> None:
    y = leaf(1.0) * 2
    error = ValueError("from the hook")
    on_gradient(y, raising(error))
    with pytest.raises(ValueError, match="from the hook") as caught:
        y.backward()
    assert caught.value is error


def test_traceback_of_an_error_names_the_hook() -> None:
    y = leaf(1.0) * 2

    def guilty_hook(grad: dg.Tensor) -> None:
        raise ValueError("from the hook")

    y.register_hook(guilty_hook)
    with pytest.raises(ValueError, match="from the hook") as caught:
        y.backward()
    assert "guilty_hook" in [frame.name for frame in traceback.extract_tb(caught.tb)]


def test_error_in_a_hook_leaves_later_leaves_unfilled() -> None:
    x = leaf(1.0)
    y = x * 2
    on_gradient(y, raising(ValueError("from the hook")))
    with pytest.raises(ValueError, match="from the hook"):
        y.backward()
    assert x.grad is None


def test_leaf_filled_before_an_error_stays_filled() -> None:
    x, y = leaf(1.0), leaf(1.0)
    a = x * 2
    on_gradient(a, raising(ValueError("from the hook")))
    with pytest.raises(ValueError, match="from the hook"):
        (a * y).backward()
    assert_values(y.grad, 2)


@pytest.mark.parametrize("retain_graph", [False, True])
def test_nodes_after_the_failing_one_are_not_freed(retain_graph: bool) -> None:
    x = leaf(1.0, 2.0)
    y = x * x
    handle = y.register_hook(lambda grad: raising(ValueError("from the hook"))())
    loss = y.sum()
    with pytest.raises(ValueError, match="from the hook"):
        loss.backward(retain_graph=retain_graph)
    handle.remove()
    loss.backward()
    assert_values(x.grad, [2, 4])


def test_nodes_before_the_failing_one_are_freed() -> None:
    x = leaf(1.0, 2.0)
    handle = x.register_hook(lambda grad: raising(ValueError("from the hook"))())
    loss = (x * x).sum()
    with pytest.raises(ValueError, match="from the hook"):
        loss.backward()
    handle.remove()
    with pytest.raises(RuntimeError, match=AGAIN):
        loss.backward()


def test_nodes_before_the_failing_one_are_kept_with_retain_graph() -> None:
    x = leaf(1.0, 2.0)
    handle = x.register_hook(lambda grad: raising(ValueError("from the hook"))())
    loss = (x * x).sum()
    with pytest.raises(ValueError, match="from the hook"):
        loss.backward(retain_graph=True)
    handle.remove()
    loss.backward()
    assert_values(x.grad, [2, 4])


def test_other_graphs_run_after_a_failed_backward() -> None:
    x = leaf(1.0)
    y = x * 2
    on_gradient(y, raising(ValueError("from the hook")))
    for _ in range(3):
        with pytest.raises(ValueError, match="from the hook"):
            y.backward(retain_graph=True)
    (x * 5).backward()
    assert_values(x.grad, 5)


def test_warning_turned_into_an_error_in_a_hook_stops_backward() -> None:
    x = leaf(1.0)
    y = x * 2
    on_gradient(y, lambda: warnings.warn("from the hook", UserWarning, stacklevel=1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="from the hook"):
            y.backward()
    assert x.grad is None


@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 2)])
def test_hook_that_changes_the_shape_raises(shape: tuple[int, ...]) -> None:
    y = leaf(1.0, 2.0) * 2
    y.register_hook(lambda grad: dg.ones(shape))
    with pytest.raises(RuntimeError, match="has changed the size of value"):
        y.sum().backward()


def test_hook_that_returns_no_tensor_raises() -> None:
    y = leaf(1.0, 2.0) * 2
    y.register_hook(lambda grad: "no tensor")
    with pytest.raises(TypeError, match="but hook returned 'str'"):
        y.sum().backward()


def test_hook_of_a_node_that_changes_a_shape_raises() -> None:
    y = (leaf(1.0, 2.0) * 2).exp()
    node_of(y).register_hook(lambda grad_inputs, grad_outputs: (dg.ones(3),))
    with pytest.raises(RuntimeError, match="has changed the size of value"):
        y.sum().backward()


def test_hook_of_a_node_that_returns_too_few_gradients_raises() -> None:
    x = leaf(1.0, 2.0)
    y = x * x
    node_of(y).register_hook(lambda grad_inputs, grad_outputs: grad_inputs[:1])
    with pytest.raises(RuntimeError, match=r"incorrect number of values \(got 1, but expected 2\)"):
        y.sum().backward()


@pytest.mark.parametrize("depths", [{0}, {1}, {0, 1}], ids=str)
def test_callbacks_of_both_depths_run_once(depths: set[int]) -> None:
    runs: list[int] = []

    def queue(depth: int) -> None:
        if depth in depths:
            queue_callback(lambda: runs.append(depth))

    def inner_backward() -> None:
        queue(0)
        with dg.enable_grad():
            y = leaf(1.0) * 2
        on_gradient(y, lambda: queue(1))
        y.backward()

    y = leaf(1.0) * 2
    on_gradient(y, inner_backward)
    y.backward()
    assert sorted(runs) == sorted(depths)
