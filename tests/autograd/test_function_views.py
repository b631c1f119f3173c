"""Functions that write to their inputs, and that return their inputs or views of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dyngraph as dg
from tests.autograd.functions import DoubleInPlace, make, pass_on
from tests.graph.helpers import assert_values, leaf

OVERRIDES = "created inside a custom Function"
As = make(lambda ctx, x: x, lambda ctx, grad: grad * 10, "As")
"""Returns its input; its gradient is another one, so that it shows."""
Head = make(
    lambda ctx, x: x[:2], lambda ctx, grad: dg.cat([grad * 10, dg.zeros_like(grad[:1])]), "Head"
)
"""Returns a view of its input."""


def interior() -> tuple[dg.Tensor, dg.Tensor]:
    """A leaf of three elements, and a tensor made from it."""
    x = leaf(1.0, 2.0, 3.0)
    return x, x * 1


def name_of(tensor: dg.Tensor) -> str:
    assert tensor.grad_fn is not None
    return tensor.grad_fn.name().rpartition("::")[2]


# --- written inputs ----------------------------------------------------------------------------


def test_written_input_is_returned_itself_and_follows_the_function(gradient: Any) -> None:
    x, y = interior()
    z = DoubleInPlace.apply(y)
    assert z is y
    assert name_of(y) == "DoubleInPlaceBackward"
    assert_values(y, [2, 4, 6])
    assert_values(gradient(y, x), [2, 2, 2])


def test_marking_as_dirty_counts_as_a_write() -> None:
    y = dg.ones(3)
    make(lambda ctx, y: (ctx.mark_dirty(y), y)[1], pass_on).apply(y)
    assert y._version == 1
    DoubleInPlace.apply(y)
    assert y._version == 3


def test_written_leaf_that_requires_grad_raises() -> None:
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad has been used in"):
        DoubleInPlace.apply(leaf(1.0, 2.0, 3.0))


def test_leaf_may_be_written_under_no_grad_and_stays_a_leaf() -> None:
    x = leaf(1.0, 2.0, 3.0)
    with dg.no_grad():
        y = DoubleInPlace.apply(x)
    assert not y.requires_grad
    assert x.requires_grad and x.is_leaf
    assert_values(x, [2, 4, 6])


def test_written_view_of_a_leaf_raises() -> None:
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being"):
        DoubleInPlace.apply(leaf(1.0, 2.0, 3.0)[:2])


def test_written_view_changes_its_base(gradient: Any) -> None:
    x, y = interior()
    view = y[:2]
    assert DoubleInPlace.apply(view) is view
    assert name_of(y) == "CopySlices"
    assert_values(y, [2, 4, 3])
    assert_values(gradient(y, x), [2, 2, 1])


def test_written_view_is_a_view_of_its_base_again(gradient: Any) -> None:
    x, y = interior()
    view = y[:2]
    DoubleInPlace.apply(view)
    assert view._base is y
    assert name_of(view) == "AsStridedBackward0"
    assert_values(gradient(view, x), [2, 2, 0])


def test_other_views_see_what_was_written_and_its_gradient(gradient: Any) -> None:
    x, y = interior()
    view, other = y[:2], y[1:]
    DoubleInPlace.apply(view)
    assert_values(other, [4, 3])
    assert_values(gradient(other, x), [0, 2, 1])


def test_overlapping_views_may_be_written_in_turn(gradient: Any) -> None:
    x, y = interior()
    DoubleInPlace.apply(y[:2])
    DoubleInPlace.apply(y[1:])
    assert_values(y, [2, 8, 6])
    assert_values(gradient(y, x), [2, 4, 2])


def test_view_of_a_constant_written_with_what_requires_grad_gives_it_a_history() -> None:
    base, x = dg.ones(3), leaf(1.0, 2.0)
    scale = make(
        lambda ctx, v, x: (ctx.mark_dirty(v), v.mul_(x))[1], lambda ctx, grad: (grad * 0, grad)
    )
    scale.apply(base[:2], x)
    assert base.requires_grad
    assert_values(base, [1, 2, 1])
    base.sum().backward()
    assert_values(x.grad, [1, 1])


def test_written_view_has_a_gradient_for_what_was_added(gradient: Any) -> None:
    add = make(lambda ctx, a, b: (ctx.mark_dirty(a), a.add_(b))[1], lambda ctx, g: (g, g * 2))
    x, y = interior()
    b = leaf(1.0, 1.0)
    add.apply(y[:2], b)
    by_x, by_b = gradient(y * y, x, b)
    assert_values(by_x, [4, 6, 6])
    assert_values(by_b, [8, 12])


def test_written_view_with_a_second_output_raises() -> None:
    two = make(lambda ctx, x: (ctx.mark_dirty(x), x.mul_(2), x * 1)[1:], pass_on)
    with pytest.raises(RuntimeError, match="Function cannot return more than one Tensor"):
        two.apply(interior()[1][:2])


def test_written_input_and_another_output(gradient: Any) -> None:
    two = make(
        lambda ctx, x: (ctx.mark_dirty(x), x.mul_(2), x * 1)[1:], lambda ctx, a, b: a * 2 + b
    )
    x, y = interior()
    written, other = two.apply(y)
    assert written is y and other.grad_fn is y.grad_fn
    assert_values(gradient(y + other, x), [3, 3, 3])


def test_written_input_returned_twice_is_the_second_output() -> None:
    twice = make(lambda ctx, x: (ctx.mark_dirty(x), x.mul_(2), x)[1:], lambda ctx, a, b: a + b)
    _, y = interior()
    first, second = twice.apply(y)
    assert first is y and second is y
    assert y.output_nr == 1


def test_written_input_that_is_not_returned_raises() -> None:
    lost = make(lambda ctx, x: (ctx.mark_dirty(x), x * 1)[1], pass_on)
    with pytest.raises(RuntimeError, match="must all be outputs of the Function"):
        lost.apply(interior()[1])


def test_marking_what_is_no_input_as_dirty_warns() -> None:
    def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
        y = x * 1
        ctx.mark_dirty(y)
        return y

    with pytest.warns(UserWarning, match="received a tensor that was not an input"):
        y = make(forward, pass_on).apply(leaf(1.0))
    assert name_of(y) == "CustomBackward"


def test_written_and_non_differentiable_input_is_returned_detached() -> None:
    def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
        ctx.mark_dirty(x)
        ctx.mark_non_differentiable(x)
        return x.mul_(2)

    _, y = interior()
    z = make(forward, pass_on).apply(y)
    assert z is not y and not z.requires_grad
    assert name_of(y) == "MulBackward0"
    assert_values(y, [2, 4, 6])


def test_write_that_was_not_said_is_seen_by_the_version_alone(gradient: Any) -> None:
    x, y = interior()
    z = make(lambda ctx, x: x.mul_(2), lambda ctx, grad: grad * 2).apply(y)
    assert z is not y
    assert (name_of(y), name_of(z), y._version) == ("MulBackward0", "CustomBackward", 1)
    assert_values(gradient(z, x), [2, 2, 2])


def test_operator_that_saved_the_input_before_refuses() -> None:
    _, y = interior()
    loss = (y * y).sum()
    DoubleInPlace.apply(y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@pytest.mark.parametrize("part", [False, True], ids=["whole", "view"])
def test_written_input_may_be_saved(gradient: Any, part: bool) -> None:
    def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
        ctx.mark_dirty(x)
        x.exp_()
        ctx.save_for_backward(x)
        return x

    x, y = interior()
    z = make(forward, lambda ctx, grad: grad * ctx.saved_tensors[0]).apply(y[:2] if part else y)
    assert_values(gradient(z, x), [*np.exp([1, 2]), 0 if part else np.exp(3)])


def test_second_derivative_through_a_written_input_that_was_saved() -> None:
    def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
        ctx.mark_dirty(x)
        x.exp_()
        ctx.save_for_backward(x)
        return x

    x, y = interior()
    z = make(forward, lambda ctx, grad: grad * ctx.saved_tensors[0]).apply(y)
    (by_x,) = dg.autograd.grad(z.sum(), x, create_graph=True)
    (second,) = dg.autograd.grad(by_x.sum(), x)
    assert_values(second, np.exp([1, 2, 3]))


def test_hooks_and_retained_gradients_over_a_write() -> None:
    seen: list[Any] = []
    x, y = interior()
    y.register_hook(lambda grad: seen.append(("before", grad.tolist())))
    y.retain_grad()
    DoubleInPlace.apply(y)
    y.register_hook(lambda grad: seen.append(("after", grad.tolist())))
    y.sum().backward()
    assert seen == [("after", [1.0] * 3), ("before", [2.0] * 3)]
    assert_values(y.grad, [1, 1, 1])
    assert_values(x.grad, [2, 2, 2])


def test_writes_inside_forward_concern_nobody(gradient: Any) -> None:
    def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
        y = x * 1
        y.add_(1)
        y[:2].mul_(3)
        return y

    x, t = interior()
    y = make(forward, pass_on).apply(t)
    assert_values(y, [6, 9, 4])
    assert_values(gradient(y, x), [1, 1, 1])


def test_output_may_be_written_to(gradient: Any) -> None:
    x = leaf(1.0, 2.0, 3.0)
    y = make(lambda ctx, x: x * 1, pass_on).apply(x)
    y.mul_(2)
    y[:2].add_(1)
    assert name_of(y) == "CopySlices"
    assert_values(gradient(y, x), [2, 2, 2])


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(lambda y: y.split(2)[0], id="one of several views"),
        pytest.param(lambda y: y[:1].expand(3), id="overlapping"),
    ],
)
def test_what_no_operator_may_write_no_function_may(made: Any) -> None:
    with pytest.raises(RuntimeError, match=r"multiple views|single memory location"):
        DoubleInPlace.apply(made(interior()[1]))


def test_view_made_under_no_grad_may_not_be_written() -> None:
    _, y = interior()
    with dg.no_grad():
        view = y[:2]
    with pytest.raises(RuntimeError, match=r"created in no_grad mode|a leaf Variable that requ"):
        DoubleInPlace.apply(view)


def test_inference_tensor_may_not_be_written() -> None:
    with dg.inference_mode():
        constant = dg.ones(3)
    add = make(lambda ctx, a, b: (ctx.mark_dirty(a), a.add_(b))[1], lambda ctx, g: (g, g))
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
        add.apply(constant, leaf(1.0, 1.0, 1.0))


# --- inputs that are returned as they are ------------------------------------------------------


def test_returned_leaf_is_a_view_of_it_that_follows_the_function(gradient: Any) -> None:
    x = leaf(1.0, 2.0, 3.0)
    y = As.apply(x)
    assert y is not x and y._base is x
    assert x.is_leaf
    assert name_of(y) == "AsBackward"
    assert_values(gradient(y, x), [10, 10, 10])


def test_input_returned_twice_is_two_outputs(gradient: Any) -> None:
    x = leaf(1.0, 2.0, 3.0)
    first, second = make(lambda ctx, x: (x, x), lambda ctx, a, b: a + b).apply(x)
    assert first is not second
    assert (first.output_nr, second.output_nr) == (0, 1)
    assert_values(gradient(first + 2 * second, x), [3, 3, 3])


def test_result_returned_twice_is_one_tensor_at_the_second_output(gradient: Any) -> None:
    x = leaf(1.0, 2.0, 3.0)
    twice = make(lambda ctx, x: (x * 2,) * 2, lambda ctx, a, b: a + 3 * b)
    first, second = twice.apply(x)
    assert first is second and first.output_nr == 1
    assert_values(gradient(first, x), [3, 3, 3])


def test_returned_constant_is_a_view_of_it() -> None:
    constant = dg.ones(3)
    y = As.apply(constant)
    assert y is not constant and y._is_view()
    y.mul_(2)
    assert_values(constant, [2, 2, 2])


def test_input_returned_under_no_grad_is_detached() -> None:
    _, x = interior()
    with dg.no_grad():
        y = As.apply(x)
    assert y is not x and not y.requires_grad
    y.mul_(2)
    assert_values(x, [2, 4, 6])


def test_non_differentiable_input_is_returned_detached() -> None:
    def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
        ctx.mark_non_differentiable(x)
        return x

    x = leaf(1.0, 2.0)
    y = make(forward, pass_on).apply(x)
    assert y is not x and not y.requires_grad and x.requires_grad


@pytest.mark.parametrize("part", [As, Head])
@pytest.mark.parametrize("of_leaf", [True, False])
def test_returned_view_may_not_be_written(part: Any, of_leaf: bool) -> None:
    x, y = interior()
    with pytest.raises(RuntimeError, match=OVERRIDES):
        part.apply(x if of_leaf else y).mul_(2)


def test_clone_of_a_returned_view_may_be_written(gradient: Any) -> None:
    x, y = interior()
    z = As.apply(y).clone()
    z.mul_(2)
    assert_values(gradient(z, x), [20, 20, 20])


@pytest.mark.parametrize("part", [As, Head])
def test_returned_view_may_not_be_used_after_a_write_to_its_base(part: Any) -> None:
    _, y = interior()
    view = part.apply(y)
    y.mul_(2)
    with pytest.raises(RuntimeError, match=f"has been modified inplace.*{OVERRIDES}"):
        view.sum()


def test_returned_view_written_under_no_grad_may_not_be_used() -> None:
    view = Head.apply(interior()[1])
    with dg.no_grad():
        view.mul_(2)
    with pytest.raises(RuntimeError, match=f"has been modified inplace.*{OVERRIDES}"):
        view.sum()


def test_returned_view_follows_the_function(gradient: Any) -> None:
    x, y = interior()
    view = Head.apply(y)
    assert view._base is y and name_of(view) == "HeadBackward"
    assert_values(gradient(view, x), [10, 10, 0])


def test_view_of_a_returned_view_may_not_be_written() -> None:
    with pytest.raises(RuntimeError, match=OVERRIDES):
        Head.apply(interior()[1])[:1].mul_(2)


def test_returned_view_of_a_constant_may_be_written() -> None:
    constant = dg.ones(3)
    view = Head.apply(constant)
    view.mul_(2)
    assert not view.requires_grad
    assert_values(constant, [2, 2, 1])


def test_returned_view_of_a_constant_may_not_be_written_with_what_requires_grad() -> None:
    view = Head.apply(dg.ones(3))
    with pytest.raises(RuntimeError, match="created in no_grad mode and is being modified inplace"):
        view.mul_(leaf(2.0))


def test_view_returned_under_no_grad_may_not_be_written_while_recording() -> None:
    _, y = interior()
    with dg.no_grad():
        view = Head.apply(y)
    with pytest.raises(RuntimeError, match="created in no_grad mode and is being modified inplace"):
        view.mul_(2)


def test_non_differentiable_view_may_not_be_written_while_recording() -> None:
    def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
        view = x[:2]
        ctx.mark_non_differentiable(view)
        return view

    view = make(forward, pass_on).apply(interior()[1])
    assert view._is_view() and view.grad_fn is None
    with pytest.raises(RuntimeError, match="created in no_grad mode and is being modified inplace"):
        view.mul_(2)


def test_view_among_several_outputs_may_not_be_written() -> None:
    view, other = make(lambda ctx, x: (x[:2], x * 2), pass_on).apply(interior()[1])
    with pytest.raises(RuntimeError, match="function that returns multiple views"):
        view.mul_(2)
    other.mul_(2)
    assert name_of(other) == "MulBackward0"


def test_view_of_a_result_of_forward_may_not_be_written() -> None:
    y = make(lambda ctx, x: (x * 1)[:2], pass_on).apply(leaf(1.0, 2.0, 3.0))
    with pytest.raises(RuntimeError, match=OVERRIDES):
        y.mul_(2)


def test_detached_input_that_is_returned_may_be_written() -> None:
    y = make(lambda ctx, x: x.detach(), pass_on).apply(interior()[1])
    y.mul_(2)
    assert name_of(y) == "MulBackward0"


@pytest.mark.parametrize("returned", ["input", "output"])
def test_saving_a_returned_input_in_setup_context_raises(returned: str) -> None:
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.save_for_backward(inputs[0] if returned == "input" else output)

    same = make(lambda x: x, pass_on, setup_context=setup_context)
    message = "An input that has been returned as-is as output is being saved for backward"
    with pytest.raises(RuntimeError, match=message):
        same.apply(interior()[1])


def test_returned_input_may_be_saved_in_forward(gradient: Any) -> None:
    def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
        ctx.save_for_backward(x)
        return x

    x, y = interior()
    z = make(forward, lambda ctx, grad: grad * ctx.saved_tensors[0]).apply(y)
    assert_values(gradient(z, x), [1, 2, 3])


# --- outputs from elsewhere --------------------------------------------------------------------


def test_constant_from_elsewhere_follows_the_function_once_returned() -> None:
    constant = dg.ones(3)
    y = make(lambda ctx, x: constant, pass_on).apply(leaf(1.0, 2.0, 3.0))
    assert y is constant and name_of(constant) == "CustomBackward"


def test_leaf_from_elsewhere_is_a_leaf_no_more_once_returned() -> None:
    other = leaf(1.0, 1.0, 1.0)
    y = make(lambda ctx, x: other, pass_on).apply(leaf(1.0, 2.0, 3.0))
    assert y is other and not other.is_leaf and name_of(other) == "CustomBackward"


@pytest.mark.parametrize("made", [lambda x: x, lambda x: x * 2], ids=["leaf", "interior"])
def test_tensor_from_elsewhere_is_detached_where_nothing_is_recorded(made: Any) -> None:
    other = made(leaf(1.0, 1.0, 1.0))
    y = make(lambda ctx, x: other, pass_on).apply(dg.ones(3))
    assert y is other and not other.requires_grad and other.grad_fn is None


def test_written_view_beside_a_constant_gives_the_other_input_no_gradient() -> None:
    double = make(
        lambda ctx, x, other: (ctx.mark_dirty(x), x.mul_(2))[1], lambda ctx, grad: (grad * 2, None)
    )
    x, other = leaf(1.0), leaf(1.0)
    y = x.clone()
    double.apply(y[...], other).backward()
    assert other.grad is None
    assert_values(x.grad, 2.0)
