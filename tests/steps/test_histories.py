"""Whole steps whose backward comes later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dyngraph as dg
from tests.steps.helpers import CALLS, X, grad_of

pytestmark = pytest.mark.filterwarnings("error")


def test_model_is_compiled_and_its_backward_comes_later() -> None:
    def run(wrap: Callable[..., Any]) -> Any:
        dg.manual_seed(0)
        model = dg.nn.Sequential(dg.nn.Linear(3, 4), dg.nn.BatchNorm1d(4), dg.nn.Tanh())
        call, x = wrap(model), dg.tensor(X)
        for _ in range(CALLS):
            x = dg.tensor(X, requires_grad=True)
            (call(x * 2).square() * x.sum()).sum().backward()
        return [x.grad, *[p.grad for p in model.parameters()], *model.buffers()]

    found, expected = run(dg.compile), run(lambda f: f)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6)


def test_compiled_module_shows_the_module() -> None:
    model = dg.nn.Linear(2, 1)
    compiled = dg.compile(model)
    assert len([*compiled.parameters()]) == 2
    assert compiled.weight is model.weight


def test_rule_written_by_hand_is_used_in_a_later_backward() -> None:
    step = dg.compile(lambda x: x.sqrt().sum() + dg.norm(x - 1))
    for _ in range(3):
        x = dg.tensor([0.0, 1.0], requires_grad=True)
        y = dg.tensor([0.0, 1.0], requires_grad=True)
        step(x).backward()
        (y.sqrt().sum() + dg.norm(y - 1)).backward()
        assert grad_of(x) == grad_of(y)


def test_second_derivative_of_a_compiled_call() -> None:
    step = dg.compile(lambda x: (x**3).sum())
    for _ in range(3):
        x = dg.tensor([1.0, 2.0], requires_grad=True)
        (first,) = dg.autograd.grad(step(x), x, create_graph=True)
        (second,) = dg.autograd.grad(first.sum(), x)
        assert second.tolist() == [6.0, 12.0]


def test_some_results_of_a_compiled_call_may_be_left_out() -> None:
    step = dg.compile(lambda x: (x * 2, (x**2).sum(), x.detach() + 1, x.int()))
    for _ in range(3):
        x = dg.tensor([1.0, 2.0], requires_grad=True)
        _, total, constant, number = step(x)
        total.backward()
        assert grad_of(x) == [2.0, 4.0]
        assert not (constant.requires_grad or number.requires_grad)


def test_gradient_of_a_compiled_complex_function_is_pytorch_s() -> None:
    step = dg.compile(lambda z: (z * z * (1 + 2j)).abs().sum())
    for _ in range(3):
        z, w = (dg.tensor([1 + 1j, 2 - 1j], requires_grad=True) for _ in range(2))
        step(z).backward()
        (w * w * (1 + 2j)).abs().sum().backward()
        np.testing.assert_allclose(grad_of(z), grad_of(w), rtol=1e-6)


def test_graph_of_a_compiled_call_is_freed_by_backward() -> None:
    step = dg.compile(lambda x: x.exp().sum())
    step(dg.ones(2, requires_grad=True))
    x = dg.ones(2, requires_grad=True)
    loss = step(x)
    assert loss.grad_fn is not None
    assert loss.grad_fn.name() == "CompiledCallBackward"
    loss.backward(retain_graph=True)
    loss.backward()
    with pytest.raises(RuntimeError, match="a second time"):
        loss.backward()


def test_backward_that_arrives_at_the_history_of_an_argument_is_refused() -> None:
    step = dg.compile(lambda x: x.sum().backward())
    w = dg.ones(2, requires_grad=True)
    step(w * 2)
    with pytest.raises(RuntimeError, match="an argument that has a history, of shape"):
        step(w * 2)
    assert grad_of(w) == [2.0, 2.0]
