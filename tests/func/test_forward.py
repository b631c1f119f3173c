"""func.jvp and func.linearize."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dyngraph as dg
import dyngraph.func as func
from dyngraph.autograd import forward_ad as fwd

V, T = [1.0, 2.0, 3.0], [1.0, 0.0, -1.0]


def v() -> dg.Tensor:
    return dg.tensor(V)


def t() -> dg.Tensor:
    return dg.tensor(T)


def assert_values(tensor: dg.Tensor | None, expected: Any) -> None:
    assert tensor is not None
    np.testing.assert_allclose(tensor.detach().numpy(), np.asarray(expected), rtol=1e-5)


# --- jvp ----------------------------------------------------------------------------------------


def test_jvp_returns_output_and_its_tangent() -> None:
    output, tangent = func.jvp(lambda x: x * x, (v(),), (t(),))
    assert_values(output, [1.0, 4.0, 9.0])
    assert_values(tangent, [2.0, 0.0, -6.0])


def test_jvp_of_several_primals_moves_all() -> None:
    _, tangent = func.jvp(lambda x, y: x * y, (v(), dg.ones(3)), (t(), dg.ones(3)))
    assert_values(tangent, [2.0, 2.0, 2.0])


def test_jvp_has_the_structure_of_the_output() -> None:
    output, tangent = func.jvp(lambda x: {"a": [x, x * 2]}, (v(),), (t(),))
    assert_values(output["a"][1], [2.0, 4.0, 6.0])
    assert_values(tangent["a"][1], [2.0, 0.0, -2.0])


def test_jvp_takes_structures() -> None:
    _, tangent = func.jvp(
        lambda p: p["a"] * p["b"], ({"a": v(), "b": v()},), ({"a": t(), "b": t()},)
    )
    assert_values(tangent, [2.0, 0.0, -6.0])


def test_jvp_with_aux_returns_three() -> None:
    _, tangent, aux = func.jvp(lambda x: (x * x, x + 1), (v(),), (t(),), has_aux=True)
    assert_values(tangent, [2.0, 0.0, -6.0])
    assert_values(aux, [2.0, 3.0, 4.0])


def test_tangent_of_what_does_not_depend_on_it_is_zero() -> None:
    assert_values(func.jvp(lambda x: dg.ones(2), (v(),), (t(),))[1], [0.0, 0.0])


def test_results_carry_nothing_afterwards() -> None:
    output, tangent = func.jvp(lambda x: x * x, (v(),), (t(),))
    with fwd.dual_level():
        assert fwd.unpack_dual(output).tangent is None
        assert fwd.unpack_dual(tangent).tangent is None


def test_jvp_of_a_jvp_is_the_second_derivative() -> None:
    def slope(x: dg.Tensor) -> dg.Tensor:
        return func.jvp(lambda x: x**3, (x,), (dg.ones(3),))[1]

    assert_values(func.jvp(slope, (v(),), (dg.ones(3),))[1], [6.0, 12.0, 18.0])


def test_outer_primal_captured_by_an_inner_function_is_constant_to_it() -> None:
    # Siskind and Pearlmutter, Perturbation confusion and referential transparency (2005)
    one = dg.tensor(1.0)

    def outer(x: dg.Tensor) -> dg.Tensor:
        return x * func.jvp(lambda y: x + y, (one,), (one,))[1]

    assert_values(func.jvp(outer, (one,), (one,))[1], 1.0)


def test_outer_primal_captured_by_an_inner_function_moves_outside() -> None:
    def outer(x: dg.Tensor) -> dg.Tensor:
        return func.jvp(lambda y: x * x * y, (v(),), (dg.ones(3),))[1]

    assert_values(func.jvp(outer, (v(),), (t(),))[1], [2.0, 0.0, -6.0])


def test_jvp_of_a_function_that_writes_in_place() -> None:
    def function(x: dg.Tensor) -> dg.Tensor:
        y = x * 1
        y[0] = x[2] * x[2]
        y[1:].mul_(x[1:])
        return y

    assert_values(func.jvp(function, (v(),), (t(),))[1], [-6.0, 0.0, -6.0])


def test_second_jvp_of_a_function_that_writes_in_place() -> None:
    def slope(x: dg.Tensor) -> dg.Tensor:
        def function(x: dg.Tensor) -> dg.Tensor:
            y = dg.zeros(3)
            y[:2] = x[1:] ** 3
            y.view(3, 1)[2].add_(x[:1] ** 2)
            return y

        return func.jvp(function, (x,), (dg.ones(3),))[1]

    assert_values(func.jvp(slope, (v(),), (t(),))[1], [0.0, -18.0, 2.0])


def test_jvp_is_differentiable_backward() -> None:
    x = v().requires_grad_()
    func.jvp(lambda x: x**3, (x,), (dg.ones(3),))[1].sum().backward()
    assert_values(x.grad, [6.0, 12.0, 18.0])


def test_jvp_of_a_gradient() -> None:
    _, tangent = func.jvp(func.grad(lambda x: (x**3).sum()), (v(),), (t(),))
    assert_values(tangent, [6.0, 0.0, -18.0])


def test_jvp_inside_a_switch_that_turns_tangents_off() -> None:
    with fwd._set_fwd_grad_enabled(False):
        assert_values(func.jvp(lambda x: x * x, (v(),), (t(),))[1], [2.0, 0.0, -6.0])


def test_level_is_left_though_the_function_raises() -> None:
    with pytest.raises(ZeroDivisionError, match="division"):
        func.jvp(lambda x: 1 // 0, (v(),), (t(),))
    with fwd.dual_level():
        pass


# --- linearize ----------------------------------------------------------------------------------


def test_linearize_returns_output_and_function() -> None:
    output, push = func.linearize(lambda x, y: x * x * y, v(), dg.ones(3))
    assert_values(output, [1.0, 4.0, 9.0])
    assert_values(push(t(), dg.ones(3)), [3.0, 4.0, 3.0])


def test_linearize_has_the_structure_of_the_output() -> None:
    _, push = func.linearize(lambda x: (x.sin(), {"a": x.cos()}), v())
    sines, cosines = push(t())
    assert_values(sines, np.cos(V) * T)
    assert_values(cosines["a"], -np.sin(V) * T)


# --- refused ------------------------------------------------------------------------------------

untyped: Any = func  # for what no type checker lets pass


def same(x: dg.Tensor) -> dg.Tensor:
    return x


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: untyped.jvp(same, v(), t()), "Expected primals to be a tuple"),
        (lambda: untyped.jvp(same, (v(),), (t(), t())), "to have the same python structure"),
        (
            lambda: untyped.jvp(same, (v(),), (dg.ones(2),)),
            "that has a different size than that of",
        ),
        (
            lambda: untyped.jvp(lambda: v(), (), ()),
            "Expected primals to contain at least one Tensor",
        ),
        (lambda: untyped.jvp(same, (1.0,), (1.0,)), "to only contain Tensors, got .*float"),
        (lambda: untyped.jvp(lambda x: 1.0, (v(),), (t(),)), "to return only tensors, got unsupp"),
        (lambda: untyped.jvp(same, (v(),), (t(),), has_aux=True), "should be a tuple: .output"),
        (
            lambda: untyped.jvp(lambda x: dg.ones(2), (v(),), (t(),), strict=True),
            "independent of the inputs. This is not allowed with strict=True",
        ),
        (lambda: untyped.linearize(same, v())[1](t(), t()), "to have the same argspec as"),
        (
            lambda: untyped.linearize(dg.sin, v())[1](dg.ones(2)),
            "tangent:0 with shape .*doesn't match",
        ),
        (
            lambda: untyped.linearize(dg.sin, v())[1](t().half()),
            "tangent:0 with dtype .*doesn't match",
        ),
    ],
)
def test_misuse_raises(call: Callable[[], Any], match: str) -> None:
    with pytest.raises(RuntimeError, match=match):
        call()
