"""where_safe: a `where` whose gradient no element spoils that is not chosen."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dyngraph as dg
from tests.autograd.functions import make
from tests.graph.helpers import assert_values, leaf

X = [0.0, 4.0, -1.0]
"""An infinite derivative of sqrt, an ordinary one, and none."""


def test_values_are_those_of_where() -> None:
    x = dg.tensor(X)
    assert_values(dg.where_safe(x > 0, dg.sqrt, 7.0, x), [7, 2, 7])


@pytest.mark.parametrize("create_graph", [False, True])
def test_gradient_is_finite_where_that_of_where_is_not(create_graph: bool) -> None:
    x = leaf(*X)
    plain = dg.where(x > 0, x.sqrt(), dg.zeros(3))
    (spoilt,) = dg.autograd.grad(plain.sum(), x)
    assert np.isnan(spoilt.numpy()).tolist() == [True, False, True]
    safe = dg.where_safe(x > 0, dg.sqrt, 0.0, x)
    (by_x,) = dg.autograd.grad(safe.sum(), x, create_graph=create_graph)
    assert_values(by_x, [0, 0.25, 0])


def test_second_derivative_is_that_of_the_chosen_branch() -> None:
    x = leaf(*X)
    y = dg.where_safe(x > 0, dg.sqrt, lambda x: x * x, x)
    (by_x,) = dg.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = dg.autograd.grad(by_x.sum(), x)
    assert_values(by_x, [0, 0.25, -2])
    assert_values(second, [2, -1 / 32, 2])


def test_tangent_is_finite_too() -> None:
    fwd = dg.autograd.forward_ad
    with fwd.dual_level():
        x = fwd.make_dual(dg.tensor(X), dg.ones(3))
        y = dg.where_safe(x > 0, dg.sqrt, 0.0, x)
        assert_values(fwd.unpack_dual(y).tangent, [0, 0.25, 0])


def test_gradient_is_that_of_the_double_where_in_jax() -> None:
    def double_where(x: Any) -> Any:
        safe = jnp.where(x > 0, x, 1.0)
        return jnp.where(x > 0, jnp.log(safe) * x, x * x).sum()

    x = leaf(*X)
    dg.where_safe(x > 0, lambda x: x.log() * x, lambda x: x * x, x).sum().backward()
    assert_values(x.grad, jax.grad(double_where)(jnp.asarray(X)))


def test_branches_see_only_elements_that_take_them() -> None:
    seen: list[Any] = []

    def branch(x: dg.Tensor) -> dg.Tensor:
        seen.append(x.tolist())
        return x * 1

    x = dg.tensor([3.0, -2.0, 5.0, -7.0])
    assert_values(dg.where_safe(x > 0, branch, branch, x), [3, -2, 5, -7])
    assert seen == [[3.0, 3.0, 5.0, 3.0], [-2.0, -2.0, -2.0, -7.0]]


def test_each_branch_may_fail_outside_its_own_elements() -> None:
    def strict(x: dg.Tensor) -> dg.Tensor:
        assert bool((x > 0).all())
        return x.log()

    x = leaf(1.0, -1.0)
    dg.where_safe(x > 0, strict, lambda x: -strict(-x), x).sum().backward()
    assert_values(x.grad, [1, 1])


@pytest.mark.parametrize(
    ("values", "expected", "slope"),
    [([1.0, 4.0], [1, 2], [0.5, 0.25]), ([0.0, -4.0], [0, 0], [0, 0])],
    ids=["all", "none"],
)
def test_all_or_none_may_be_chosen(values: list[float], expected: Any, slope: Any) -> None:
    x = leaf(*values)
    y = dg.where_safe(x > 0, dg.sqrt, 0.0, x)
    assert_values(y, expected)
    y.sum().backward()
    assert_values(x.grad, slope)


def test_two_branches_have_the_gradients_of_their_elements() -> None:
    x = leaf(1.0, -2.0, 3.0)
    dg.where_safe(x > 0, lambda x: x * 10, lambda x: x * x, x).sum().backward()
    assert_values(x.grad, [10, -4, 10])


def test_several_arguments() -> None:
    x, y = leaf(1.0, 2.0), leaf(0.0, 4.0)
    dg.where_safe(y != 0, lambda x, y: x / y, 0.0, x, y).sum().backward()
    assert_values(x.grad, [0, 0.25])
    assert_values(y.grad, [0, -0.125])


@pytest.mark.parametrize("other", [3, 3.0, dg.tensor(3.0)])
def test_branch_may_be_a_number_or_a_tensor(other: Any) -> None:
    x = dg.tensor([4.0, -1.0])
    assert_values(dg.where_safe(x > 0, dg.sqrt, other, x), [2, 3])
    assert_values(dg.where_safe(x <= 0, other, dg.sqrt, x), [2, 3])


def test_branch_that_is_a_tensor_gets_its_gradient() -> None:
    x, other = leaf(4.0, -1.0), leaf(5.0, 6.0)
    dg.where_safe(x > 0, dg.sqrt, other, x).sum().backward()
    assert_values(other.grad, [0, 1])


def test_argument_is_broadcast_to_the_condition() -> None:
    condition = dg.tensor([[True, False], [True, True]])
    x = leaf(4.0, 9.0)
    y = dg.where_safe(condition, dg.sqrt, 0.0, x)
    assert_values(y, [[2, 0], [2, 3]])
    y.sum().backward()
    assert_values(x.grad, [0.5, 1 / 6])


def test_tensor_of_one_number() -> None:
    x = leaf(0.0)
    y = dg.where_safe(x > 0, dg.sqrt, 0.0, x)
    y.backward()
    assert_values(y, 0)
    assert_values(x.grad, 0)


def test_empty_tensors() -> None:
    x = dg.zeros(0).requires_grad_()
    y = dg.where_safe(x > 0, dg.sqrt, 0.0, x)
    y.sum().backward()
    assert y.shape == (0,)
    assert x.grad is not None and x.grad.shape == (0,)


def test_branch_may_be_a_function() -> None:
    def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
        y = x.sqrt()
        ctx.save_for_backward(y)
        return y

    root = make(forward, lambda ctx, grad: grad / (2 * ctx.saved_tensors[0]))
    x = leaf(*X)
    dg.where_safe(x > 0, root.apply, 0.0, x).sum().backward()
    assert_values(x.grad, [0, 0.25, 0])


def test_anomaly_mode_finds_nothing() -> None:
    x = leaf(*X)
    with dg.autograd.set_detect_anomaly(True, check_inf=True):
        dg.where_safe(x > 0, dg.sqrt, 0.0, x).sum().backward()
    assert_values(x.grad, [0, 0.25, 0])


def test_argument_larger_than_the_condition_raises() -> None:
    with pytest.raises(RuntimeError, match=r"expand|expanded"):
        dg.where_safe(dg.tensor([True]), dg.sqrt, 0.0, dg.ones(2, 3))


def test_without_arguments_the_branches_take_none() -> None:
    condition = dg.tensor([True, False])
    assert_values(dg.where_safe(condition, lambda: dg.ones(2), 0.0), [1, 0])
