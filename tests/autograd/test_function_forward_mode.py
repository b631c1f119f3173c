"""Functions in forward mode: jvp, what it gets and may return, and both directions together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import dyngraph as dg
from dyngraph.autograd import forward_ad as fwd
from tests.autograd.functions import Double, Square, make, pass_on
from tests.graph.helpers import assert_values

V, T = [1.0, 2.0, 3.0], [1.0, 0.5, -1.0]


@pytest.fixture(autouse=True)
def level() -> Iterator[None]:
    """Runs the test inside a level."""
    with fwd.dual_level():
        yield


def dual(*, requires_grad: bool = False) -> dg.Tensor:
    return fwd.make_dual(dg.tensor(V, requires_grad=requires_grad), dg.tensor(T))


def tangent(tensor: dg.Tensor) -> dg.Tensor | None:
    return fwd.unpack_dual(tensor).tangent


def plus(forward: Any, jvp: Any, **methods: Any) -> Any:
    """A Function with a jvp."""
    return make(forward, pass_on, jvp=jvp, **methods)


# --- what jvp makes ----------------------------------------------------------------------------


def test_tangent_is_what_jvp_returns() -> None:
    y = plus(lambda ctx, x: x * 2, lambda ctx, t: t * 3).apply(dual())
    assert_values(y, [2, 4, 6])
    assert_values(tangent(y), [3, 1.5, -3])


def test_function_without_jvp_raises_for_a_dual() -> None:
    with pytest.raises(NotImplementedError, match="must implement the jvp function"):
        Double.apply(dual())


def test_function_without_jvp_runs_where_nothing_is_dual() -> None:
    assert_values(Double.apply(dg.tensor(V)), [2, 4, 6])


def test_forward_sees_no_tangents() -> None:
    seen: list[Any] = []

    def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
        seen.extend([tangent(x), tangent(x * 2)])
        return x * 2

    plus(forward, lambda ctx, t: t).apply(dual())
    assert seen == [None, None]


def test_what_forward_computes_does_not_change_the_tangent() -> None:
    y = plus(lambda ctx, x: x * 5 + 1, lambda ctx, t: t * 1).apply(dual())
    assert_values(tangent(y), T)


def test_jvp_gets_a_tangent_for_each_tensor_and_none_for_the_rest() -> None:
    seen: list[Any] = []

    def jvp(ctx: Any, *tangents: Any) -> dg.Tensor:
        seen.extend(None if t is None else t.tolist() for t in tangents)
        return tangents[1]

    first = plus(lambda ctx, k, x, y, n: x * k, jvp)
    first.apply(2, dual(), dg.ones(2), dg.ones(2, dtype=dg.int32))
    assert seen == [None, T, [0.0, 0.0], None]


def test_jvp_gets_none_for_missing_tangents_that_are_not_materialized() -> None:
    seen: list[Any] = []

    def forward(ctx: Any, x: dg.Tensor, y: dg.Tensor) -> dg.Tensor:
        ctx.set_materialize_grads(False)
        return x * y

    plus(forward, lambda ctx, t, s: (seen.append(s), t)[1]).apply(dual(), dg.ones(3))
    assert seen == [None]


def test_jvp_runs_recorded_and_without_tangents() -> None:
    seen: list[Any] = []
    other = dual()

    def jvp(ctx: Any, t: dg.Tensor) -> dg.Tensor:
        seen.extend([dg.is_grad_enabled(), tangent(t), tangent(t * other)])
        return t

    plus(lambda ctx, x: x * 2, jvp).apply(dual())
    assert seen == [True, None, None]


def test_context_carries_attributes_to_jvp() -> None:
    def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
        ctx.factor = 5
        return x * 5

    assert_values(tangent(plus(forward, lambda ctx, t: t * ctx.factor).apply(dual())), [5, 2.5, -5])


def test_setup_context_serves_jvp_too() -> None:
    square = plus(
        lambda x: x * x,
        lambda ctx, t: 2 * t * ctx.saved_tensors[0],
        setup_context=lambda ctx, inputs, output: ctx.save_for_forward(*inputs),
    )
    assert_values(tangent(square.apply(dual())), [2, 2, -6])


def test_output_that_jvp_gives_none_has_no_tangent() -> None:
    first, second = plus(lambda ctx, x: (x * 2, 3), lambda ctx, t: (t, None)).apply(dual())
    assert second == 3
    assert_values(tangent(first), T)


def test_non_differentiable_output_has_no_tangent() -> None:
    def forward(ctx: Any, x: dg.Tensor) -> Any:
        y = x * 2
        ctx.mark_non_differentiable(y)
        return y, x * 3

    first, second = plus(forward, lambda ctx, t: (None, t)).apply(dual())
    assert tangent(first) is None
    assert_values(tangent(second), T)


@pytest.mark.parametrize(
    ("mode", "carried"),
    [(dg.no_grad, True), (dg.inference_mode, False)],
    ids=["no_grad", "inference_mode"],
)
def test_tangents_under_the_modes(mode: Any, carried: bool) -> None:
    x = dual()
    with mode():
        y = Square.apply(x)
        assert (tangent(y) is not None) == carried


def test_no_tangents_where_forward_mode_is_off() -> None:
    x = dual()
    with fwd._set_fwd_grad_enabled(False):
        assert tangent(Double.apply(x)) is None


def test_level_is_usable_after_jvp_failed() -> None:
    def jvp(ctx: Any, t: dg.Tensor) -> dg.Tensor:
        raise ValueError("from jvp")

    with pytest.raises(ValueError, match="from jvp"):
        plus(lambda ctx, x: x * 2, jvp).apply(dual())
    assert dg.is_grad_enabled()
    assert_values(tangent(dual() * 2), [2, 1, -2])


# --- save_for_forward --------------------------------------------------------------------------


def test_jvp_reads_what_was_saved_for_forward() -> None:
    assert_values(tangent(Square.apply(dual())), [2, 2, -6])


def test_jvp_and_backward_read_what_was_saved_for_each() -> None:
    def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
        y = x * x
        ctx.save_for_forward(None, x)
        ctx.save_for_backward(y)
        return y

    def jvp(ctx: Any, t: dg.Tensor) -> dg.Tensor:
        assert len(ctx.saved_tensors) == 2
        return t * ctx.saved_tensors[1]

    y = plus(forward, jvp).apply(dual(requires_grad=True))
    assert_values(tangent(y), [1, 1, -3])
    assert_values(y.grad_fn.saved_tensors[0], [1, 4, 9])


def test_saved_for_backward_alone_is_nothing_in_jvp() -> None:
    def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
        ctx.save_for_backward(x)
        return x * x

    with pytest.raises(IndexError, match="tuple index out of range"):
        plus(forward, lambda ctx, t: t * ctx.saved_tensors[0]).apply(dual(requires_grad=True))


def test_saving_what_is_no_tensor_for_forward_raises() -> None:
    def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
        ctx.save_for_forward(3)
        return x * 2

    with pytest.raises(AssertionError, match="save_for_forward expects all arguments to be tensor"):
        plus(forward, lambda ctx, t: t).apply(dual())


# --- what jvp may return -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outputs", "made"), [(lambda x: x * 2, lambda t: (t, t)), (lambda x: (x, x), lambda t: t)]
)
def test_wrong_number_of_tangents_raises(outputs: Any, made: Any) -> None:
    with pytest.raises(RuntimeError, match="jvp returned an invalid number of forward gradients"):
        plus(lambda ctx, x: outputs(x * 1), lambda ctx, t: made(t)).apply(dual())


@pytest.mark.parametrize("made", [lambda t: t[:2], lambda t: t.sum()], ids=["part", "scalar"])
def test_tangent_of_another_shape_raises(made: Any) -> None:
    with pytest.raises(RuntimeError, match="different size than that of the original Tensor"):
        plus(lambda ctx, x: x * 2, lambda ctx, t: made(t)).apply(dual())


def test_tangent_of_integers_raises() -> None:
    with pytest.raises(RuntimeError, match=r"tangent of \S*int32|is_floating_point"):
        plus(lambda ctx, x: x * 2, lambda ctx, t: t.int()).apply(dual())


@pytest.mark.parametrize("made", [3.0, [1.0]])
def test_tangent_that_is_no_tensor_raises(made: Any) -> None:
    message = rf"expected Variable or None \(got {type(made).__name__}\)"
    with pytest.raises(RuntimeError, match=message):
        plus(lambda ctx, x: x * 2, lambda ctx, t: made).apply(dual())


@pytest.mark.parametrize("kind", ["marked", "integers"])
def test_tangent_for_a_non_differentiable_output_raises(kind: str) -> None:
    def forward(ctx: Any, x: dg.Tensor) -> Any:
        y = x * 2 if kind == "marked" else x.int()
        if kind == "marked":
            ctx.mark_non_differentiable(y)
        return x * 3, y

    with pytest.raises(RuntimeError, match="jvp returned a gradient at position 1, but"):
        plus(forward, lambda ctx, t: (t, t)).apply(dual())


# --- in place ----------------------------------------------------------------------------------


def double_in_place(ctx: Any, x: dg.Tensor) -> dg.Tensor:
    ctx.mark_dirty(x)
    return x.mul_(2)


@pytest.mark.parametrize("requires_grad", [False, True])
def test_written_input_has_its_tangent_written_too(requires_grad: bool) -> None:
    x = dual(requires_grad=requires_grad) * 1
    y = plus(double_in_place, lambda ctx, t: t.mul_(2)).apply(x)
    assert y is x
    assert_values(x, [2, 4, 6])
    assert_values(tangent(x), [2, 1, -2])


@pytest.mark.parametrize("made", [lambda t: t * 2, lambda t: None], ids=["copy", "none"])
def test_written_input_whose_tangent_is_not_written_raises(made: Any) -> None:
    with pytest.raises(RuntimeError, match="is not modifying the forward mode gradients inplace"):
        plus(double_in_place, lambda ctx, t: made(t)).apply(dual())


def test_written_view_changes_the_tangent_of_its_base() -> None:
    base = dual()
    view = base[:2]
    plus(double_in_place, lambda ctx, t: t.mul_(2)).apply(view)
    assert_values(tangent(view), [2, 1])
    assert_values(tangent(base), [2, 1, -1])
    assert_values(base, [2, 4, 3])


def test_written_view_changes_the_tangents_of_other_views() -> None:
    base = dual() * 1
    view, other = base[:2], base[1:]
    plus(double_in_place, lambda ctx, t: t.mul_(2)).apply(view)
    assert_values(tangent(other), [1, -1])


def test_tangent_written_to_a_view_reaches_a_base_that_had_none() -> None:
    base = dg.tensor(V)
    view = base[:2]
    scale = plus(lambda ctx, v, x: (ctx.mark_dirty(v), v.mul_(x))[1], lambda ctx, s, t: t * 3)
    scale.apply(view, fwd.make_dual(dg.ones(2), dg.tensor([1.0, 2.0])))
    assert_values(tangent(view), [3, 6])
    assert_values(tangent(base), [3, 6, 0])


def test_written_constant_may_get_a_new_tangent() -> None:
    constant = dg.ones(3)
    scale = plus(lambda ctx, v, x: (ctx.mark_dirty(v), v.mul_(x))[1], lambda ctx, s, t: t * 3)
    assert scale.apply(constant, dual()) is constant
    assert_values(tangent(constant), [3, 1.5, -3])


# --- views -------------------------------------------------------------------------------------


def test_view_has_a_view_of_the_tangent() -> None:
    y = plus(lambda ctx, x: x[:2], lambda ctx, t: t[:2]).apply(dual())
    assert_values(tangent(y), [1, 0.5])


def test_returned_input_has_a_view_of_the_tangent() -> None:
    y = plus(lambda ctx, x: x, lambda ctx, t: t.view_as(t)).apply(dual())
    assert_values(tangent(y), T)


@pytest.mark.parametrize(
    ("output", "made"),
    [
        pytest.param(lambda x: x[:2], lambda t: t[:2].clone(), id="view, copy"),
        pytest.param(lambda x: x.view(3), lambda t: t, id="view, same"),
        pytest.param(lambda x: x, lambda t: t, id="input, same"),
        pytest.param(lambda x: x, lambda t: t.clone(), id="input, copy"),
    ],
)
def test_view_without_a_view_of_the_tangent_raises(output: Any, made: Any) -> None:
    with pytest.raises(RuntimeError, match="but the jvp is not returning a view"):
        plus(lambda ctx, x: output(x), lambda ctx, t: made(t)).apply(dual())


def test_result_may_share_the_tangent_that_came_in() -> None:
    y = plus(lambda ctx, x: x * 1, lambda ctx, t: t).apply(dual())
    assert_values(tangent(y), T)


@pytest.mark.parametrize("made", [lambda t: t[:2], lambda t: t[:2] * 1], ids=["view", "copy"])
def test_view_of_an_input_without_tangent_may_have_any(made: Any) -> None:
    y = plus(lambda ctx, x, c: c[:2], lambda ctx, t, s: made(t)).apply(dual(), dg.ones(3))
    assert_values(tangent(y), [1, 0.5])


# --- both directions ---------------------------------------------------------------------------


def test_backward_over_a_tangent() -> None:
    x = dg.tensor(V, requires_grad=True)
    y = Square.apply(fwd.make_dual(x, dg.tensor(T)))
    along = tangent(y)
    assert along is not None
    (by_x,) = dg.autograd.grad(along.sum(), x)
    assert_values(by_x, [2, 1, -2])


def test_gradient_carries_a_tangent() -> None:
    x = dg.tensor(V, requires_grad=True)
    y = Square.apply(fwd.make_dual(x, dg.tensor(T)))
    (by_x,) = dg.autograd.grad(y.sum(), x)
    assert_values(by_x, [2, 4, 6])
    assert_values(tangent(by_x), [2, 1, -2])


def test_gradient_through_a_saved_output_carries_a_tangent() -> None:
    def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
        y = x.exp()
        ctx.save_for_backward(y)
        ctx.save_for_forward(y)
        return y

    exp = make(
        forward,
        lambda ctx, grad: grad * ctx.saved_tensors[0],
        jvp=lambda ctx, t: t * ctx.saved_tensors[0],
    )
    x = dg.tensor(V, requires_grad=True)
    (by_x,) = dg.autograd.grad(exp.apply(fwd.make_dual(x, dg.tensor(T))).sum(), x)
    assert_values(by_x, np.exp(V))
    assert_values(tangent(by_x), np.exp(V) * T)


def test_gradient_through_a_saved_intermediate_carries_none() -> None:
    def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
        ctx.save_for_backward(x * 2)
        return x * x

    square = make(forward, lambda ctx, grad: grad * ctx.saved_tensors[0], jvp=lambda ctx, t: t * 1)
    x = dg.tensor(V, requires_grad=True)
    (by_x,) = dg.autograd.grad(square.apply(fwd.make_dual(x, dg.tensor(T))).sum(), x)
    assert_values(by_x, [2, 4, 6])
    assert tangent(by_x) is None


def test_accumulated_gradient_carries_a_tangent() -> None:
    x = dg.tensor(V, requires_grad=True)
    Square.apply(fwd.make_dual(x, dg.tensor(T))).sum().backward()
    assert x.grad is not None
    assert_values(tangent(x.grad), [2, 1, -2])
