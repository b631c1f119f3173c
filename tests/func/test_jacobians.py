"""func.jacrev, func.jacfwd and func.hessian."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dyngraph as dg
import dyngraph.func as func

V = [1.0, 2.0]


def v() -> dg.Tensor:
    return dg.tensor(V)


def assert_values(tensor: dg.Tensor | None, expected: Any) -> None:
    assert tensor is not None
    np.testing.assert_allclose(tensor.detach().numpy(), np.asarray(expected), rtol=1e-5)


both = pytest.mark.parametrize("jac", [func.jacrev, func.jacfwd])


@both
def test_jacobian_has_the_outputs_dims_then_the_inputs(jac: Any) -> None:
    found = jac(lambda x: dg.stack([x, x * x, x**3]))(v())
    assert found.shape == (3, 2, 2)
    assert_values(found, [np.diag([1.0, 1]), np.diag([2.0, 4]), np.diag([3.0, 12])])


@both
def test_jacobian_for_several_arguments_is_a_tuple(jac: Any) -> None:
    first, second = jac(lambda x, y: x * y.sum(), argnums=(0, 1))(v(), dg.ones(3))
    assert_values(first, np.diag([3.0, 3.0]))
    assert_values(second, np.outer(V, [1.0] * 3))


@both
def test_jacobian_has_the_structure_of_output_and_input(jac: Any) -> None:
    found = jac(lambda d: {"o": [d["a"] * 2, d["b"].sum()]})({"a": v(), "b": dg.ones(3)})
    assert_values(found["o"][0]["a"], np.diag([2.0, 2.0]))
    assert_values(found["o"][0]["b"], np.zeros((2, 3)))
    assert_values(found["o"][1]["b"], [1.0] * 3)


@both
def test_jacobian_of_a_scalar_has_the_inputs_dims(jac: Any) -> None:
    assert_values(jac(lambda x: (x * x).sum())(v()), [2.0, 4.0])


@both
def test_jacobian_for_a_scalar_has_the_outputs_dims(jac: Any) -> None:
    assert_values(jac(lambda x: x * v())(dg.tensor(3.0)), V)


@both
def test_jacobian_with_aux_returns_both(jac: Any) -> None:
    found, aux = jac(lambda x: (x * x, x + 1), has_aux=True)(v())
    assert_values(found, np.diag([2.0, 4.0]))
    assert_values(aux, [2.0, 3.0])


@both
def test_jacobian_runs_the_function_once(jac: Any) -> None:
    calls: list[int] = []
    jac(lambda x: (calls.append(1), x * x)[1])(v())
    assert calls == [1]


@both
def test_jacobian_has_the_history_of_what_is_captured(jac: Any) -> None:
    w = v().requires_grad_()
    jac(lambda x: x * x * w)(v()).sum().backward()
    assert_values(w.grad, [2.0, 4.0])


@both
def test_jacobian_has_the_inputs_history(jac: Any) -> None:
    x = v().requires_grad_()
    jac(lambda x: x**3)(x).sum().backward()
    assert_values(x.grad, [6.0, 12.0])


@pytest.mark.parametrize("chunk_size", [1, 2, 7])
def test_chunks_give_the_same(chunk_size: int) -> None:
    def function(x: dg.Tensor) -> tuple[dg.Tensor, dg.Tensor]:
        return x * x, x.sum()

    first, second = func.jacrev(function, chunk_size=chunk_size)(v())
    assert_values(first, np.diag([2.0, 4.0]))
    assert_values(second, [1.0, 1.0])


def test_random_numbers_of_jacfwd_may_be_the_same_for_all_columns() -> None:
    found = func.jacfwd(lambda x: x * dg.rand(2), randomness="same")(v())
    assert found[0, 1] == 0 and found[0, 0] > 0


def test_hessian_for_several_arguments_is_a_tuple_of_tuples() -> None:
    found = func.hessian(lambda x, y: (x * x * y).sum(), argnums=(0, 1))(v(), dg.ones(2) * 3)
    assert_values(found[0][0], np.diag([6.0, 6.0]))
    assert_values(found[0][1], np.diag([2.0, 4.0]))
    assert_values(found[1][1], np.zeros((2, 2)))


def test_hessian_has_the_history_of_what_is_captured() -> None:
    w = v().requires_grad_()
    func.hessian(lambda x: (x**3 * w).sum())(v()).sum().backward()
    assert_values(w.grad, [6.0, 12.0])


@pytest.mark.parametrize(
    ("call", "kind", "match"),
    [
        (
            lambda: func.jacrev(dg.sin)(dg.tensor([1j])),
            RuntimeError,
            "Expected all inputs to be re",
        ),
        (
            lambda: func.jacfwd(dg.sin)(dg.tensor([1j])),
            RuntimeError,
            "Expected all inputs to be re",
        ),
        (lambda: func.jacrev(lambda x: x + 1j)(v()), RuntimeError, "Expected all outputs to be re"),
        (lambda: func.jacfwd(lambda x: x + 1j)(v()), RuntimeError, "Expected all outputs to be re"),
        (lambda: func.jacrev(dg.sin, chunk_size=0), ValueError, "should be greater than 0"),
        (lambda: func.jacrev(dg.sin, argnums=1)(v()), RuntimeError, "argnum=1, but only 1 positio"),
        (lambda: func.jacfwd(dg.sin, argnums=1)(v()), RuntimeError, "argnum=1, but only 1 positio"),
    ],
)
def test_misuse_raises(call: Callable[[], Any], kind: type[Exception], match: str) -> None:
    with pytest.raises(kind, match=match):
        call()
