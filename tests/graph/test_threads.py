"""Backward in many threads at once: shared leaves, errors, and what belongs to one thread."""

import threading

import numpy as np
import pytest

import dyngraph as dg
from dyngraph.autograd.graph import register_multi_grad_hook
from tests.graph.helpers import assert_values, leaf, on_gradient, queue_callback, run_threads

THREADS = 8


def test_graphs_of_many_threads_that_share_a_leaf_add_up() -> None:
    x = leaf(1.0, 2.0)

    def work(index: int) -> None:
        for _ in range(20):
            (x * float(index)).sum().backward()

    assert run_threads(work, THREADS) == []
    assert_values(x.grad, [20 * sum(range(THREADS))] * 2)


def test_graphs_made_in_one_thread_run_in_others() -> None:
    x = leaf(1.0, 2.0)
    losses = [(x * x * float(i)).sum() for i in range(THREADS)]
    assert run_threads(lambda index: losses[index].backward(), THREADS) == []
    assert_values(x.grad, np.array([2, 4]) * sum(range(THREADS)))


def test_graphs_made_in_other_threads_run_in_this_one() -> None:
    x = leaf(1.0, 2.0)
    losses: list[dg.Tensor] = []
    assert run_threads(lambda index: losses.append((x * x).sum()), THREADS) == []
    dg.autograd.backward(losses)
    assert_values(x.grad, np.array([2, 4]) * THREADS)


def test_one_retained_graph_runs_in_many_threads() -> None:
    x = leaf(1.0, 2.0)
    loss = (x.exp() * x).sum()
    assert run_threads(lambda index: loss.backward(retain_graph=True), THREADS) == []
    assert_values(x.grad, np.exp([1, 2]) * [2, 3] * THREADS)


def test_grad_in_many_threads_leaves_each_its_own_result() -> None:
    x = leaf(1.0, 2.0)
    results: dict[int, list[float]] = {}

    def work(index: int) -> None:
        (by_x,) = dg.autograd.grad((x * float(index)).sum(), x)
        results[index] = by_x.tolist()

    assert run_threads(work, THREADS) == []
    assert results == {index: [index, index] for index in range(THREADS)}


def test_second_derivatives_in_many_threads() -> None:
    x = leaf(1.0, 2.0)

    def work(index: int) -> None:
        (by_x,) = dg.autograd.grad((x * x * x).sum(), x, create_graph=True)
        by_x.sum().backward()

    assert run_threads(work, THREADS) == []
    assert_values(x.grad, np.array([6, 12]) * THREADS)


def test_error_in_a_hook_stays_in_its_thread() -> None:
    x = leaf(1.0, 2.0)

    def hook(index: int) -> None:
        if index == 3:
            raise ValueError("from thread 3")

    def work(index: int) -> None:
        y = x * 1
        on_gradient(y, lambda: hook(index))
        y.sum().backward()

    errors = run_threads(work, THREADS)
    assert [str(error) for error in errors] == ["from thread 3"]
    assert_values(x.grad, [THREADS - 1] * 2)


def test_engine_is_usable_after_errors_in_many_threads() -> None:
    x = leaf(1.0, 2.0)

    def fail() -> None:
        raise ValueError("from the hook")

    def work(index: int) -> None:
        y = x * 1
        on_gradient(y, fail)
        y.sum().backward()

    assert len(run_threads(work, THREADS)) == THREADS
    (x * 5).sum().backward()
    assert_values(x.grad, [5, 5])


def test_hook_runs_in_the_thread_that_called_backward() -> None:
    seen: list[bool] = []

    def work(index: int) -> None:
        caller = threading.get_ident()
        y = leaf(1.0) * 2
        on_gradient(y, lambda: seen.append(threading.get_ident() == caller))
        y.backward()

    assert run_threads(work, THREADS) == []
    assert seen == [True] * THREADS


def test_reentrant_backward_in_many_threads() -> None:
    x = leaf(1.0, 2.0)

    def work(index: int) -> None:
        inner, outer = (x * 3).sum(), x * 2
        on_gradient(outer, inner.backward)
        outer.sum().backward()

    assert run_threads(work, THREADS) == []
    assert_values(x.grad, [5 * THREADS] * 2)


def test_callback_belongs_to_the_backward_of_its_thread() -> None:
    seen: dict[int, int] = {}

    def work(index: int) -> None:
        y = leaf(1.0) * 2
        on_gradient(y, lambda: queue_callback(lambda: seen.update({index: threading.get_ident()})))
        y.backward()
        assert seen[index] == threading.get_ident()

    assert run_threads(work, THREADS) == []


def test_thread_started_inside_a_hook_may_run_backward() -> None:
    x, y = leaf(1.0), leaf(1.0)
    inner, outer = y * 3, x * 2

    def start() -> None:
        assert run_threads(lambda index: inner.backward(), 1) == []

    on_gradient(outer, start)
    outer.backward()
    assert_values(y.grad, 3)
    assert_values(x.grad, 2)


def test_callback_cannot_be_queued_from_another_thread() -> None:
    y = leaf(1.0) * 2
    errors: list[BaseException] = []
    on_gradient(
        y, lambda: errors.extend(run_threads(lambda index: queue_callback(lambda: None), 1))
    )
    y.backward()
    assert "only be installed during backward pass" in str(errors[0])


def test_graph_made_in_pieces_by_several_threads() -> None:
    x = leaf(1.0, 2.0)
    first = x * 2
    pieces: list[dg.Tensor] = []
    assert run_threads(lambda index: pieces.append(first.exp()), 1) == []
    pieces[0].sum().backward()
    assert_values(x.grad, 2 * np.exp([2, 4]))


# Modes


def test_new_thread_records_although_its_parent_does_not() -> None:
    seen: list[bool] = []
    with dg.no_grad():
        assert run_threads(lambda index: seen.append(dg.is_grad_enabled()), 1) == []
    assert seen == [True]


def test_no_grad_in_one_thread_leaves_others_recording() -> None:
    seen: dict[int, bool] = {}
    meet = threading.Barrier(2)

    def work(index: int) -> None:
        with dg.set_grad_enabled(index == 0):
            meet.wait()
            seen[index] = (leaf(1.0) * 2).requires_grad
            meet.wait()

    assert run_threads(work, 2) == []
    assert seen == {0: True, 1: False}


def test_backward_called_under_no_grad_in_a_thread_leaves_this_thread_recording() -> None:
    loss = (leaf(1.0) * 2).sum()

    def work(index: int) -> None:
        with dg.no_grad():
            loss.backward()

    assert run_threads(work, 1) == []
    assert dg.is_grad_enabled()


def test_multithreading_switch_as_a_context_manager() -> None:
    with dg.autograd.set_multithreading_enabled(False):
        assert not dg.autograd.is_multithreading_enabled()
    assert dg.autograd.is_multithreading_enabled()


def test_multithreading_switch_as_a_function() -> None:
    try:
        dg.autograd.set_multithreading_enabled(False)
        assert not dg.autograd.is_multithreading_enabled()
    finally:
        dg.autograd.set_multithreading_enabled(True)


def test_backward_without_multithreading() -> None:
    x = leaf(1.0, 2.0)
    with dg.autograd.set_multithreading_enabled(False):
        (x * x).sum().backward()
    assert_values(x.grad, [2, 4])


# Hooks on several gradients


@pytest.mark.parametrize("mode", ["all", "any"])
def test_multi_grad_hook_runs_once_for_each_backward(mode: str) -> None:
    x, y = leaf(2.0), leaf(3.0)
    calls: list[object] = []
    register_multi_grad_hook((x, y), calls.append, mode=mode)
    assert run_threads(lambda index: (x * y).backward(), THREADS) == []
    assert len(calls) == THREADS


def test_multi_grad_hook_sees_the_gradients_of_its_own_backward() -> None:
    x, y = leaf(2.0), leaf(3.0)
    calls: list[list[float]] = []
    register_multi_grad_hook((x, y), lambda grads: calls.append([g.item() for g in grads]))
    assert run_threads(lambda index: (x * y * float(index)).backward(), THREADS) == []
    assert sorted(calls) == [[3.0 * index, 2.0 * index] for index in range(THREADS)]
