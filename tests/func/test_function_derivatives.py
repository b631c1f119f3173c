"""Functions in transforms, and rules for all examples of a mapped function."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dyngraph as dg
import dyngraph.func as func
from dyngraph.batches import current_batch, open_batch
from dyngraph.lifting import enter_batch, leave_batch


class Scaled(dg.autograd.Function):
    """x cubed, times w."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Any, w: Any) -> Any:
        return x**3 * w

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        x, w = ctx.saved_tensors
        return 3 * x**2 * w * grad, (x**3 * grad).sum_to_size(w.shape)

    @staticmethod
    def jvp(ctx: Any, x_t: Any, w_t: Any) -> Any:
        x, w = ctx.saved_tensors
        return 3 * x**2 * w * x_t + x**3 * w_t


V = np.array([1.0, 2.0, 3.0], np.float32)


def v() -> dg.Tensor:
    return dg.tensor(V)


W = dg.tensor(2.0)


def total(x: dg.Tensor) -> dg.Tensor:
    return Scaled.apply(x, W).sum()


def each(x: dg.Tensor, w: dg.Tensor) -> dg.Tensor:
    return func.vmap(Scaled.apply, in_dims=(0, None))(x, w).sum()


@pytest.mark.parametrize(
    "second",
    [
        lambda f: func.jacrev(func.jacrev(f)),
        lambda f: func.jacfwd(func.jacfwd(f)),
        lambda f: func.jacfwd(func.jacrev(f)),
    ],
    ids=["reverse", "forward", "forward over reverse"],
)
def test_second_derivative_of_a_function(second: Any) -> None:
    np.testing.assert_allclose(second(total)(v()).numpy(), np.diag(12 * V))


def test_map_of_the_gradient_of_a_function() -> None:
    found = func.vmap(func.grad(lambda x: Scaled.apply(x, W)))(v())
    np.testing.assert_allclose(found.numpy(), 6 * V**2)


def test_gradient_through_a_mapped_function() -> None:
    first, second = func.grad(each, argnums=(0, 1))(v(), W)
    np.testing.assert_allclose(first.numpy(), 6 * V**2)
    np.testing.assert_allclose(second.numpy(), (V**3).sum())


def test_second_derivative_through_a_mapped_function() -> None:
    found = func.hessian(lambda x: each(x, W))(v())
    np.testing.assert_allclose(found.numpy(), np.diag(12 * V))


def test_backward_of_a_mapped_function_runs_once_for_all_examples() -> None:
    shapes: list[tuple[int, ...]] = []

    class Doubled(dg.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x: Any) -> Any:
            return x * 2

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            shapes.append(tuple(grad.shape))
            return grad * 2

    func.grad(lambda x: func.vmap(Doubled.apply)(x).sum())(dg.ones(4, 2))
    assert shapes == [(2,)]


# --- rules for all examples at once -------------------------------------------------------------


def by_rule(x: dg.Tensor) -> dg.Tensor:
    """The sums up to each element, by a rule of its own."""
    batch = current_batch()
    assert batch is not None
    whole, batched = leave_batch(x)
    open_batch(batch.outer)
    try:
        result = whole.cumsum(-1)
    finally:
        open_batch(batch)
    return enter_batch(result) if batched else result


def without_rule(x: dg.Tensor) -> dg.Tensor:
    return x.cumsum(-1)


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: f,
        lambda f: func.grad(lambda x: (f(x) * x).sum()),
        lambda f: func.hessian(lambda x: (f(x) ** 3).sum()),
        lambda f: lambda x: func.jvp(f, (x,), (x * 2,))[1],
    ],
    ids=["value", "gradient", "hessian", "jvp"],
)
def test_rule_for_all_examples_gives_what_one_example_gives(transform: Any) -> None:
    x = dg.tensor([[1.0, 2.0], [0.5, -1.0]])
    found = transform(lambda x: func.vmap(lambda row: by_rule(row * row).sin())(x))(x)
    expected = transform(lambda x: without_rule(x * x).sin())(x)
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-4, atol=1e-5)


def test_rule_sees_what_is_the_same_for_all() -> None:
    seen: list[bool] = []

    def function(row: dg.Tensor) -> dg.Tensor:
        seen.extend([leave_batch(row)[1], leave_batch(W)[1]])
        return row

    func.vmap(function)(v())
    assert seen == [True, False]


def test_no_batch_outside_of_mapped_functions() -> None:
    assert func.current_batch() is None
