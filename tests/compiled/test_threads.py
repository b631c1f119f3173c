"""Compiled backwards in several threads: one structure, shared leaves."""

import threading
from collections.abc import Callable

import pytest

import dyngraph as dg
from tests.compiled.helpers import assert_same, compilations, grad_of, leaf

THREADS = 8


def run_threads(work: Callable[[], None]) -> None:
    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.usefixtures("at_once")
def test_one_structure_is_compiled_once_by_all_threads() -> None:
    x = leaf(1.0, 2.0)
    results = []

    def work() -> None:
        with dg.compiled_autograd():
            results.append(dg.autograd.grad((x.exp() * x).sum(), x)[0])

    run_threads(work)
    assert compilations() == 1
    for result in results:
        assert_same(result, x.exp().detach() * (1 + x.detach()))


def test_compiled_and_ordinary_backwards_into_one_leaf_add_up() -> None:
    x = leaf(1.0, 2.0)
    turn = iter(range(THREADS))

    def work() -> None:
        with dg.compiled_autograd(next(turn) % 2 == 0):
            for _ in range(20):
                (x * 2).sum().backward()

    run_threads(work)
    assert_same(grad_of(x), dg.full((2,), 2.0 * 20 * THREADS))


def test_backwards_into_several_shared_leaves_do_not_wait_for_each_other_forever() -> None:
    x, y = leaf(1.0), leaf(2.0)
    turn = iter(range(THREADS))

    def work() -> None:
        first, second = (x, y) if next(turn) % 2 else (y, x)
        with dg.compiled_autograd():
            for _ in range(20):
                (first * 1 + second * 1).sum().backward()

    run_threads(work)
    assert_same(grad_of(x), dg.full((1,), 20.0 * THREADS))
    assert_same(grad_of(y), dg.full((1,), 20.0 * THREADS))
