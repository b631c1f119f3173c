"""What the rows of operators can't say of gradients: of mixed types, of parts, and of none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dyngraph as dg


def gradients(function: Callable[..., Any], *inputs: Any) -> list[Any]:
    """The gradient of the sum of `function(*inputs)` for each input."""
    leaves = [dg.tensor(value, requires_grad=True) for value in inputs]
    return [g.tolist() for g in dg.autograd.grad(function(*leaves).sum(), leaves)]


@pytest.mark.parametrize("joined", [dg.cat, dg.stack], ids=["cat", "stack"])
def test_real_input_joined_with_a_complex_one_has_a_real_gradient(joined: Any) -> None:
    def function(real: Any, z: Any) -> Any:
        return (joined([real, z]) * (2 + 3j)).real

    real, z = gradients(function, [1.0], [1j])
    assert real == [2.0]
    assert z == [2 - 3j]


def test_gradient_of_a_vector_with_stride_0_is_summed() -> None:
    matrix = dg.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert gradients(lambda v: dg.mv(matrix, v.expand(2)), [1.0]) == [[10.0]]


def test_one_of_variance_and_mean_may_be_used_alone() -> None:
    def by_parts(x: Any) -> Any:
        return dg.var_mean(x)[0] + 2 * dg.var_mean(x)[1]

    def at_once(x: Any) -> Any:
        var, mean = dg.var_mean(x)
        return var + 2 * mean

    x = [1.0, 2.0, 6.0]
    assert gradients(by_parts, x)[0] == pytest.approx(gradients(at_once, x)[0])
    assert gradients(lambda x: dg.var_mean(x)[1], x) == [pytest.approx([1 / 3] * 3)]


@pytest.mark.parametrize("base", [dg.zeros(3), 0], ids=["tensor", "number"])
def test_gradient_of_the_exponent_of_0(base: Any) -> None:
    assert gradients(lambda y: base**y, [-1.0, 0.0, 1.0]) == [[-np.inf, 0.0, 0.0]]


def test_where_passes_each_gradient_to_the_value_it_chose() -> None:
    condition = dg.tensor([True, False])
    x, y = gradients(lambda x, y: dg.where(condition, x, y) * 3, [1.0, 2.0], [[5.0], [6.0]])
    assert x == [6.0, 0.0]
    assert y == [[3.0], [3.0]]


def test_where_passes_the_gradient_of_one_number() -> None:
    condition = dg.tensor([True, False, False])
    assert gradients(lambda s: dg.where(condition, 4.0, s), 5.0) == [2.0]
    assert gradients(lambda x: dg.where(condition, x, 5.0), [1.0, 2.0, 3.0]) == [[1.0, 0.0, 0.0]]


@pytest.mark.parametrize(
    "program",
    [
        lambda x: x == x,
        lambda x: x > 0,
        lambda x: x.argmax(),
        lambda x: x.argsort(),
        lambda x: x.isnan(),
        lambda x: x.nonzero(),
        lambda x: x.sort()[1],
        lambda x: dg.zeros_like(x),
    ],
    ids=["eq", "gt", "argmax", "argsort", "isnan", "nonzero", "indices of sort", "zeros_like"],
)
def test_result_without_a_derivative_does_not_require_grad(program: Any) -> None:
    y = program(dg.tensor([1.0, 2.0], requires_grad=True))
    assert not y.requires_grad and y.grad_fn is None
