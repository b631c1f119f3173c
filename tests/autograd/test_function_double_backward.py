"""Derivatives of a Function's backward, and a backward inside of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dyngraph as dg
from tests.autograd.functions import Exp, Product, Square, make
from tests.graph.helpers import assert_values, leaf

# --- second derivatives ------------------------------------------------------------------------


def test_backward_is_recorded_where_a_graph_is_made() -> None:
    x = leaf(1.0, 2.0)
    (by_x,) = dg.autograd.grad(Square.apply(x).sum(), x, create_graph=True)
    assert by_x.requires_grad
    (second,) = dg.autograd.grad(by_x.sum(), x)
    assert_values(second, [2, 2])


def test_saved_output_leads_back_to_the_function() -> None:
    x = leaf(1.0, 2.0)
    grad = Exp.apply(x).sum()
    for _ in range(3):
        (grad,) = dg.autograd.grad(grad.sum(), x, create_graph=True)
    assert_values(grad, np.exp([1, 2]))


def test_gradient_of_a_gradient_can_be_taken_repeatedly() -> None:
    x = leaf(2.0)
    y = Product.apply(x, Product.apply(x, x))
    found = [y]
    for _ in range(3):
        found += dg.autograd.grad(found[-1], x, create_graph=True)
    assert [f.item() for f in found] == [8, 12, 12, 6]


def test_recorded_gradient_does_not_free_what_a_second_call_reads() -> None:
    def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
        y = x * x
        ctx.save_for_backward(x, y)
        return y

    def backward(ctx: Any, grad: dg.Tensor) -> dg.Tensor:
        x, y = ctx.saved_tensors
        return grad * 2 * y / x

    x = leaf(2.0)
    y = make(forward, backward).apply(x)
    dg.autograd.grad(y, x, create_graph=True)
    (by_x,) = dg.autograd.grad(y, x)
    assert_values(by_x, 4)


def test_second_derivative_by_the_gradient_that_came_in() -> None:
    x, v = leaf(1.0, 2.0), leaf(1.0, 1.0)
    (by_x,) = dg.autograd.grad(Square.apply(x), x, v, create_graph=True)
    (by_v,) = dg.autograd.grad(by_x.sum(), v)
    assert_values(by_v, [2, 4])


def test_saved_intermediate_has_no_history() -> None:
    def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
        slope = x * 2
        ctx.save_for_backward(slope)
        return x * x

    x = leaf(1.0, 2.0)
    y = make(forward, lambda ctx, grad: grad * ctx.saved_tensors[0]).apply(x)
    (by_x,) = dg.autograd.grad(y.sum(), x, create_graph=True)
    assert_values(by_x, [2, 4])
    assert not by_x.requires_grad


def test_once_differentiable_backward_runs_unrecorded() -> None:
    seen: list[bool] = []

    @dg.autograd.function.once_differentiable
    def backward(ctx: Any, grad: dg.Tensor) -> dg.Tensor:
        seen.append(dg.is_grad_enabled())
        return dg.tensor(grad.detach().numpy() * 2)

    x = leaf(1.0, 2.0)
    (by_x,) = dg.autograd.grad(make(lambda ctx, x: x * 2, backward).apply(x).sum(), x)
    assert_values(by_x, [2, 2])
    assert seen == [False]


def test_once_differentiable_cannot_be_differentiated_twice() -> None:
    def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
        ctx.save_for_backward(x)
        return x * x

    @dg.autograd.function.once_differentiable
    def backward(ctx: Any, grad: dg.Tensor) -> dg.Tensor:
        assert not dg.is_grad_enabled()
        return grad * 2 * ctx.saved_tensors[0]

    x = leaf(1.0, 2.0)
    v = leaf(1.0, 1.0)
    (by_x,) = dg.autograd.grad(make(forward, backward).apply(x), x, v, create_graph=True)
    assert_values(by_x, [2, 4])
    assert by_x.requires_grad
    with pytest.raises(RuntimeError, match="marked with @once_differentiable"):
        by_x.sum().backward()


def test_once_differentiable_keeps_what_is_no_tensor() -> None:
    backward = dg.autograd.function.once_differentiable(lambda ctx, grad: (grad * 2, None))
    x = leaf(1.0, 2.0)
    v = leaf(1.0, 1.0)
    y = make(lambda ctx, x, k: x * k, backward).apply(x, 2)
    (by_x,) = dg.autograd.grad(y, x, v, create_graph=True)
    assert_values(by_x, [2, 2])


# --- backward inside backward ------------------------------------------------------------------


def test_backward_may_run_another_backward() -> None:
    def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
        with dg.enable_grad():
            ctx.inner = x.detach().requires_grad_()
            ctx.result = ctx.inner * ctx.inner
        return ctx.result.detach()

    def backward(ctx: Any, grad: dg.Tensor) -> dg.Tensor:
        ctx.result.backward(grad)
        return ctx.inner.grad

    x = leaf(1.0, 2.0)
    make(forward, backward).apply(x).sum().backward()
    assert_values(x.grad, [2, 4])


def test_deep_reentrant_backward() -> None:
    def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
        with dg.enable_grad():
            ctx.inner = x.detach().requires_grad_()
            ctx.inner = ctx.inner - 1
        return ctx.inner.detach()

    def backward(ctx: Any, grad: dg.Tensor) -> dg.Tensor:
        if ctx.inner > 0:
            with dg.enable_grad():
                deep.apply(ctx.inner).sum().backward()
        return grad

    deep = make(forward, backward)
    x = leaf(60.0)
    deep.apply(x).backward()
    assert_values(x.grad, 1)


def test_error_in_a_reentrant_backward_reaches_the_outer_caller() -> None:
    def failing(ctx: Any, grad: dg.Tensor) -> dg.Tensor:
        raise ValueError("from the child")

    child = make(lambda ctx, x: x * 2, failing)

    def backward(ctx: Any, grad: dg.Tensor) -> dg.Tensor:
        with dg.enable_grad():
            child.apply(leaf(1.0)).backward()
        return grad

    with pytest.raises(ValueError, match="from the child"):
        make(lambda ctx, x: x * 2, backward).apply(leaf(1.0)).backward()
