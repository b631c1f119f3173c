"""Compiled backwards that are recorded: a Program is one operator, with JAX's derivative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dyngraph as dg
from tests.compiled.helpers import assert_same, compilations, leaf, same_in_both_modes
from tests.naive import gradients as naive_gradients

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "one operator": lambda x: x.exp(),
    "product": lambda x: x * x * x,
    "branches": lambda x: x.sin() * x.exp() + x,
    "matrices": lambda x: x.outer(x).tanh() @ x,
    "view": lambda x: x[1:].sin() * x[:1],
    "reduction": lambda x: x.softmax(0) * x,
}
every_function = pytest.mark.parametrize("name", FUNCTIONS)


@every_function
def test_second_derivative_is_eagers(name: str) -> None:
    def program() -> Any:
        x = leaf(0.5, 1.0, 2.0)
        (first,) = dg.autograd.grad(FUNCTIONS[name](x).sum(), x, create_graph=True)
        return dg.autograd.grad(first.square().sum(), x, materialize_grads=True)

    same_in_both_modes(program)


@every_function
def test_third_derivative_is_eagers(name: str) -> None:
    def program() -> Any:
        x = leaf(0.5, 1.0, 2.0)
        value = FUNCTIONS[name](x).sum()
        for _ in range(2):
            (value,) = dg.autograd.grad(value.sum(), x, create_graph=True, materialize_grads=True)
        return dg.autograd.grad((value * x).sum(), x, materialize_grads=True)

    same_in_both_modes(program)


def recorded_twice(loss: Callable[[], dg.Tensor], x: dg.Tensor) -> dg.Tensor:
    """The recorded gradient of `loss()`, the second of two: it is compiled."""
    with dg.compiled_autograd():
        dg.autograd.grad(loss(), x, create_graph=True)
        return dg.autograd.grad(loss(), x, create_graph=True)[0]


def test_recorded_program_is_one_node() -> None:
    x = leaf(1.0, 2.0)
    first = recorded_twice(lambda: (x.exp() * x.sin()).sum(), x)
    assert first.grad_fn is not None
    assert first.grad_fn.name() == "CompiledBackward0"


def test_recorded_program_that_is_not_due_is_recorded_operator_by_operator() -> None:
    x = leaf(1.0, 2.0)
    with dg.compiled_autograd():
        (first,) = dg.autograd.grad((x.exp() * x.sin()).sum(), x, create_graph=True)
    assert first.grad_fn is not None
    assert first.grad_fn.name() != "CompiledBackward0"


def test_derivative_of_a_recorded_program_is_right_outside_the_mode() -> None:
    x = leaf(1.0, 2.0)
    first = recorded_twice(lambda: (x**3).sum(), x)
    assert_same(dg.autograd.grad(first.sum(), x)[0], 6 * x.detach())


def test_recorded_backward_into_grad_has_its_history() -> None:
    def program() -> Any:
        x = leaf(1.0, 2.0)
        with pytest.warns(UserWarning, match="reference cycle"):
            (x**3).sum().backward(create_graph=True)
        assert x.grad is not None
        grad, x.grad = x.grad, None
        return grad.requires_grad, dg.autograd.grad(grad.sum(), x)

    same_in_both_modes(program)


def test_gradient_that_started_it_has_its_derivative_too() -> None:
    def program() -> Any:
        x, start = leaf(1.0, 2.0), leaf(3.0, 4.0)
        (first,) = dg.autograd.grad(x.sin(), x, start, create_graph=True)
        return dg.autograd.grad(first.sum(), [x, start])

    same_in_both_modes(program)


def test_several_leaves_and_mixed_derivatives_are_eagers() -> None:
    def program() -> Any:
        x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
        firsts = dg.autograd.grad((x.exp() * y.sin() / (x + y)).sum(), [x, y], create_graph=True)
        return [dg.autograd.grad(first.sum(), [x, y], retain_graph=True) for first in firsts]

    same_in_both_modes(program)


def test_gradient_penalty_trains_as_eagerly() -> None:
    def program() -> Any:
        x, w = leaf(1.0, 2.0), leaf(0.5, -0.5)
        for _ in range(3):
            w.grad = None
            (by_x,) = dg.autograd.grad((x * w).tanh().sum(), x, create_graph=True)
            (by_x.square().sum() + (x * w).sum()).backward(inputs=[w])
            with dg.no_grad():
                assert w.grad is not None
                w -= 0.1 * w.grad
        return w

    same_in_both_modes(program)


def test_recorded_backward_compiles_nothing_after_its_second_time() -> None:
    x = leaf(1.0, 2.0)

    def counts() -> int:
        with dg.compiled_autograd():
            (first,) = dg.autograd.grad((x.exp() * x).sum(), x, create_graph=True)
            first.sum().backward()
        x.grad = None
        return compilations()

    after = [counts() for _ in range(4)]
    assert after[2] == after[3]


def test_naive_engine_walks_a_recorded_program() -> None:
    x = leaf(1.0, 2.0)
    first = recorded_twice(lambda: (x.sin() * x).sum(), x)
    expected = naive_gradients(first.sum())[x]
    assert_same(dg.autograd.grad(first.sum(), x)[0], expected.detach())
