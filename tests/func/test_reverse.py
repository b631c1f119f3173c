"""func.grad, func.grad_and_value and func.vjp."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import dyngraph as dg
import dyngraph.func as func

V = [1.0, 2.0, 3.0]


def v(*, requires_grad: bool = False) -> dg.Tensor:
    return dg.tensor(V, requires_grad=requires_grad)


def squares(x: dg.Tensor) -> dg.Tensor:
    return (x * x).sum()


def assert_values(tensor: dg.Tensor | None, expected: Any) -> None:
    assert tensor is not None
    np.testing.assert_allclose(tensor.detach().numpy(), np.asarray(expected), rtol=1e-5)


# --- grad ---------------------------------------------------------------------------------------


def test_grad_is_for_the_first_argument() -> None:
    assert_values(func.grad(lambda x, y: (x * y).sum())(v(), dg.ones(3) * 5), [5.0] * 3)


def test_grad_for_several_arguments_is_a_tuple() -> None:
    first, second = func.grad(lambda x, y: (x * x * y).sum(), argnums=(1, 0))(v(), dg.ones(3))
    assert_values(first, [1.0, 4.0, 9.0])
    assert_values(second, [2.0, 4.0, 6.0])


def test_negative_argnums_count_from_the_end() -> None:
    assert_values(func.grad(lambda x, y: (x * y).sum(), argnums=-1)(v(), dg.ones(3)), V)


def test_grad_has_the_structure_of_the_argument() -> None:
    class Pair(NamedTuple):
        a: Any
        b: Any

    given = {"z": [v(), dg.ones(3)], "a": Pair(v(), (dg.ones(3),))}
    found = func.grad(lambda p: (p["z"][0] * p["z"][1] * p["a"].a * p["a"].b[0]).sum())(given)
    assert list(found) == ["z", "a"] and isinstance(found["a"], Pair)
    assert_values(found["a"].b[0], [1.0, 4.0, 9.0])


def test_grad_keeps_the_kind_and_the_order_of_a_dict() -> None:
    found = func.grad(lambda p: (p["b"] * p["a"]).sum())(OrderedDict(b=v(), a=dg.ones(3)))
    assert isinstance(found, OrderedDict) and list(found) == ["b", "a"]


def test_grad_takes_keywords() -> None:
    assert_values(func.grad(lambda x, *, by: (x * by).sum())(v(), by=v()), V)


def test_grad_with_aux_returns_both() -> None:
    found, aux = func.grad(lambda x: (squares(x), {"twice": x * 2}), has_aux=True)(v())
    assert_values(found, [2.0, 4.0, 6.0])
    assert_values(aux["twice"], [2.0, 4.0, 6.0])


def test_grad_and_value_returns_both() -> None:
    found, value = func.grad_and_value(squares)(v())
    assert_values(found, [2.0, 4.0, 6.0])
    assert_values(value, 14.0)


def test_grad_and_value_with_aux_returns_three() -> None:
    found, (value, aux) = func.grad_and_value(lambda x: (squares(x), x), has_aux=True)(v())
    assert_values(found, [2.0, 4.0, 6.0])
    assert_values(value, 14.0)
    assert_values(aux, V)


def test_grad_of_what_does_not_depend_on_it_is_zero() -> None:
    assert_values(func.grad(lambda x: dg.ones(()))(v()), [0.0] * 3)


def test_complex_gradient_is_the_direction_of_steepest_ascent() -> None:
    z = dg.tensor([1 + 2j])
    found = func.grad(lambda z: (z * z.conj()).real.sum())(z)
    np.testing.assert_allclose(found.resolve_conj().numpy(), [2 + 4j])


def test_grad_of_a_function_that_writes_in_place() -> None:
    def function(x: dg.Tensor) -> dg.Tensor:
        y = dg.zeros(3)
        y[0] = x[1]
        y[1:].add_(x[1:] * 2)
        return (y * y).sum()

    assert_values(func.grad(function)(v()), [0.0, 2 * 2 + 2 * 4 * 2, 2 * 6 * 2])


def test_grad_of_a_function_with_a_hook() -> None:
    def function(x: dg.Tensor) -> dg.Tensor:
        y = x * x
        y.register_hook(lambda grad: grad * 10)
        return y.sum()

    assert_values(func.grad(function)(v()), [20.0, 40.0, 60.0])


def test_grad_of_a_function_that_calls_autograd_grad() -> None:
    def function(x: dg.Tensor) -> dg.Tensor:
        (slope,) = dg.autograd.grad((x**3).sum(), x, create_graph=True)
        return slope.sum()

    assert_values(func.grad(function)(v()), [6.0, 12.0, 18.0])


# --- what the function sees ---------------------------------------------------------------------


def test_input_is_a_leaf_that_requires_grad_inside() -> None:
    seen: list[Any] = []

    def function(x: dg.Tensor) -> dg.Tensor:
        seen.extend([x.requires_grad, x.is_leaf, x.grad_fn])
        return x.sum()

    func.grad(function)(v(requires_grad=True) * 1)
    assert seen == [True, True, None]


def test_other_inputs_are_what_was_given() -> None:
    seen: list[bool] = []

    def function(x: dg.Tensor, y: dg.Tensor) -> dg.Tensor:
        seen.append(y.requires_grad)
        return (x * y).sum()

    func.grad(function)(v(), v())
    assert seen == [False]


def test_given_tensor_stays_as_it_was() -> None:
    x = v()
    func.grad(squares)(x)
    assert not x.requires_grad and x.grad is None


def test_writing_to_the_input_raises() -> None:
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used"):
        func.grad(lambda x: x.mul_(2).sum())(v())


def test_no_grad_outside_is_not_seen() -> None:
    with dg.no_grad():
        found = func.grad(squares)(v(requires_grad=True))
    assert_values(found, [2.0, 4.0, 6.0])
    assert not found.requires_grad


def test_no_grad_inside_is() -> None:
    def function(x: dg.Tensor) -> dg.Tensor:
        with dg.no_grad():
            constant = x * x
        return (x - constant).sum()

    assert_values(func.grad(function)(v()), [1.0] * 3)


def test_inference_mode_outside_is_not_seen() -> None:
    with dg.inference_mode():
        assert_values(func.grad(squares)(v()), [2.0, 4.0, 6.0])


def test_modes_are_afterwards_what_they_were_though_the_function_raises() -> None:
    with dg.no_grad():
        with pytest.raises(ZeroDivisionError, match="division"):
            func.grad(lambda x: 1 // 0)(v())
        assert not dg.is_grad_enabled()


# --- what is outside ----------------------------------------------------------------------------


def test_result_of_plain_tensors_has_no_history() -> None:
    found, value = func.grad_and_value(squares)(v())
    assert not found.requires_grad and not value.requires_grad


def test_result_has_the_inputs_history() -> None:
    x = v(requires_grad=True)
    func.grad(lambda x: (x**3).sum())(x * 2).sum().backward()
    assert_values(x.grad, [24.0, 48.0, 72.0])


def test_result_has_the_history_of_what_is_captured() -> None:
    w = v(requires_grad=True)
    func.grad(lambda x: (x * x * w).sum())(v()).sum().backward()
    assert_values(w.grad, [2.0, 4.0, 6.0])


def test_value_has_the_history_of_what_is_captured() -> None:
    w = v(requires_grad=True)
    _, value = func.grad_and_value(lambda x: (x * w).sum())(v())
    value.backward()
    assert_values(w.grad, V)


def test_captured_tensor_gets_no_gradient_by_itself() -> None:
    w = v(requires_grad=True)
    func.grad(lambda x: (x * w).sum())(v())
    assert w.grad is None


def test_outer_input_captured_by_an_inner_function_is_constant_to_it() -> None:
    # Siskind and Pearlmutter, Perturbation confusion and referential transparency (2005)
    one = dg.tensor(1.0)
    found = func.grad(lambda x: x * func.grad(lambda y: x + y)(one))(one)
    assert_values(found, 1.0)


def test_outer_input_captured_by_an_inner_function_is_differentiated_outside() -> None:
    found = func.grad(lambda x: func.grad(lambda y: (x * x * y).sum())(v()).sum())(v())
    assert_values(found, [2.0, 4.0, 6.0])


def test_identity_keeps_the_inputs_history() -> None:
    x = dg.tensor(2.0, requires_grad=True)
    _, value = func.grad_and_value(lambda y: y)(x * 3)
    value.backward()
    assert_values(x.grad, 3.0)


# --- vjp ----------------------------------------------------------------------------------------


def test_vjp_returns_output_and_function() -> None:
    output, pull = func.vjp(lambda x, y: x * y, v(), dg.ones(3) * 2)
    assert_values(output, [2.0, 4.0, 6.0])
    first, second = pull(dg.tensor([1.0, 0.0, 2.0]))
    assert_values(first, [2.0, 0.0, 4.0])
    assert_values(second, [1.0, 0.0, 6.0])


def test_vjp_of_one_primal_returns_a_tuple() -> None:
    _, pull = func.vjp(dg.sin, v())
    assert isinstance(pull(dg.ones(3)), tuple)


def test_vjp_takes_cotangents_like_the_output() -> None:
    _, pull = func.vjp(lambda x: {"a": x * 2, "b": [x.sum()]}, v())
    (found,) = pull({"a": v(), "b": [dg.tensor(10.0)]})
    assert_values(found, [12.0, 14.0, 16.0])


def test_vjp_may_be_called_again() -> None:
    _, pull = func.vjp(lambda x: x * x, v())
    pull(dg.ones(3))
    assert_values(pull(dg.ones(3))[0], [2.0, 4.0, 6.0])


def test_vjp_with_aux_returns_three() -> None:
    _, pull, aux = func.vjp(lambda x: (x * x, x.sum()), v(), has_aux=True)
    assert_values(aux, 6.0)
    assert_values(pull(dg.ones(3))[0], [2.0, 4.0, 6.0])


def test_vjp_is_differentiable_for_cotangents_and_primals() -> None:
    x, t = v(requires_grad=True), dg.ones(3, requires_grad=True)
    _, pull = func.vjp(lambda x: x**3, x)
    pull(t)[0].sum().backward()
    assert_values(x.grad, [6.0, 12.0, 18.0])
    assert_values(t.grad, [3.0, 12.0, 27.0])


def test_vjp_under_no_grad_has_no_history() -> None:
    x = v(requires_grad=True)
    _, pull = func.vjp(lambda x: x**3, x)
    with dg.no_grad():
        assert not pull(dg.ones(3))[0].requires_grad


# --- refused ------------------------------------------------------------------------------------

untyped: Any = func  # for what no type checker lets pass


@pytest.mark.parametrize(
    ("call", "kind", "match"),
    [
        (
            lambda: untyped.grad(lambda x: x)(v()),
            RuntimeError,
            "scalar Tensor, got tensor with 1 dim",
        ),
        (lambda: untyped.grad(lambda x: 1.0)(v()), RuntimeError, "to return a Tensor, got .*float"),
        (lambda: untyped.grad(squares)(1.0), ValueError, "must be Tensor, got .*float"),
        (
            lambda: untyped.grad(squares)(dg.tensor([1, 2])),
            RuntimeError,
            "only Tensors of floating point",
        ),
        (lambda: untyped.grad(squares, argnums=2)(v()), RuntimeError, "argnum=2, but only 1 posit"),
        (
            lambda: untyped.grad(squares, argnums=-2)(v()),
            RuntimeError,
            "argnum=-2, but only 1 posit",
        ),
        (
            lambda: untyped.grad(squares, argnums=(0, 0))(v()),
            RuntimeError,
            "elements must be unique",
        ),
        (lambda: untyped.grad(squares, argnums=())(v()), RuntimeError, "argnums must be non-empty"),
        (
            lambda: untyped.grad(squares, argnums="a")(v()),
            RuntimeError,
            "argnums must be int or Tu",
        ),
        (
            lambda: untyped.grad(squares, argnums=(0.5,))(v()),
            RuntimeError,
            "argnum must be int, got",
        ),
        (
            lambda: untyped.grad(squares, has_aux=True)(v()),
            RuntimeError,
            "should be a tuple: .output",
        ),
        (
            lambda: untyped.grad(lambda z: (z * z).sum())(dg.tensor([1j])),
            RuntimeError,
            "only for real scalar outputs",
        ),
        (lambda: untyped.vjp(lambda x: 1, v()), RuntimeError, "to return only tensors, got unsupp"),
        (lambda: untyped.vjp(lambda x: (), v()), RuntimeError, "has non-empty output"),
        (
            lambda: untyped.vjp(lambda x: x.int(), v()),
            RuntimeError,
            "must be floating-point or comp",
        ),
        (lambda: untyped.vjp(squares, 1.0), ValueError, "must be Tensor, got .*float"),
        (
            lambda: untyped.vjp(squares, v(), has_aux=True),
            RuntimeError,
            "should be a tuple: .output",
        ),
        (
            lambda: untyped.vjp(dg.sin, v())[1]((v(), v())),
            RuntimeError,
            "structure of cotangents to be the same",
        ),
        (
            lambda: untyped.vjp(dg.sin, v())[1](dg.ones(2)),
            RuntimeError,
            r"Mismatch in shape: grad_output\[0\]",
        ),
    ],
)
def test_misuse_raises(call: Callable[[], Any], kind: type[Exception], match: str) -> None:
    with pytest.raises(kind, match=match):
        call()
