"""What a Function's backward gets, what it may return, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

import dyngraph as dg
from tests.autograd.functions import make, pass_on
from tests.graph.helpers import assert_values, leaf, run_threads

# --- what backward gets ------------------------------------------------------------------------


def test_backward_runs_unrecorded_unless_a_graph_is_made() -> None:
    seen: list[bool] = []

    def backward(ctx: Any, grad: dg.Tensor) -> dg.Tensor:
        seen.append(dg.is_grad_enabled())
        return grad * 2

    x = leaf(1.0)
    y = make(lambda ctx, x: x * 2, backward).apply(x)
    dg.autograd.grad(y, x, create_graph=True)
    y.backward()
    assert seen == [True, False]


def test_missing_gradient_arrives_as_zeros(gradient: Any) -> None:
    seen: list[Any] = []

    def backward(ctx: Any, a: dg.Tensor, b: dg.Tensor) -> dg.Tensor:
        seen.append((b.tolist(), b.dtype))
        return a + b.sum()

    x = leaf(1.0, 2.0)
    y, _ = make(lambda ctx, x: (x * 1, x[:1] * 2), backward).apply(x)
    assert_values(gradient(y, x), [1, 1])
    assert seen == [([0.0], dg.float32)]


def test_missing_gradient_is_none_where_it_is_not_materialized(gradient: Any) -> None:
    seen: list[Any] = []

    def forward(ctx: Any, x: dg.Tensor) -> Any:
        ctx.set_materialize_grads(False)
        return x * 1, x * 2

    def backward(ctx: Any, a: Any, b: Any) -> Any:
        seen.append(b)
        return a

    x = leaf(1.0, 2.0)
    y, _ = make(forward, backward).apply(x)
    assert_values(gradient(y, x), [1, 1])
    assert seen == [None]


def test_missing_gradient_of_a_non_differentiable_output_is_materialized_too() -> None:
    seen: list[Any] = []

    def forward(ctx: Any, x: dg.Tensor) -> Any:
        y, constant = x * 1, x * 2
        ctx.mark_non_differentiable(constant)
        return y, constant

    x = leaf(1.0, 2.0)
    marked = make(forward, lambda ctx, a, b: (seen.append(b), a)[1])
    marked.apply(x)[0].sum().backward()
    assert seen[0].tolist() == [0.0, 0.0]


def test_backward_that_returns_none_gives_no_gradient(gradient: Any) -> None:
    nothing = make(lambda ctx, x: x * 1, lambda ctx, grad: None)
    x = leaf(1.0, 2.0)
    assert gradient(nothing.apply(x), x) is None
    assert gradient(nothing.apply(x * x), x) is None
    nothing.apply(x * x).sum().backward()
    assert x.grad is None


def test_function_behind_one_that_returns_none_gets_zeros() -> None:
    seen: list[Any] = []
    nothing = make(lambda ctx, x: x * 1, lambda ctx, grad: None)
    below = make(lambda ctx, x: x * 1, lambda ctx, g: (seen.append(g), g)[1])
    nothing.apply(below.apply(leaf(1.0, 2.0))).sum().backward()
    assert seen[0].tolist() == [0.0, 0.0]


def test_backward_gets_one_list_where_gradients_are_boxed() -> None:
    seen: list[Any] = []

    def backward(ctx: Any, grads: list[dg.Tensor]) -> Any:
        seen.append(type(grads))
        first = grads.pop(0)
        return first * 2 + grads.pop()

    x = leaf(1.0, 2.0)
    boxed = make(lambda ctx, x: (x * 2, x * 1), backward, boxed_grads_call=True)
    a, b = boxed.apply(x)
    (a + b).sum().backward()
    assert seen == [list]
    assert_values(x.grad, [3, 3])


def test_non_differentiable_output_does_not_require_grad(gradient: Any) -> None:
    def forward(ctx: Any, x: dg.Tensor) -> Any:
        y, mask = x * 2, (x > 1).float()
        ctx.mark_non_differentiable(mask)
        return y, mask

    x = leaf(1.0, 2.0)
    y, mask = make(forward, lambda ctx, g, none: g * 2).apply(x)
    assert not mask.requires_grad and mask.grad_fn is None and mask.is_leaf
    assert_values(gradient(y, x), [2, 2])


def test_non_differentiable_output_cannot_be_differentiated() -> None:
    def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
        y = x * 2
        ctx.mark_non_differentiable(y)
        return y

    y = make(forward, pass_on).apply(leaf(1.0))
    with pytest.raises(RuntimeError, match="does not require grad and does not have a grad_fn"):
        y.backward()


def test_missing_gradient_of_a_non_differentiable_output_may_be_none() -> None:
    seen: list[Any] = []

    def forward(ctx: Any, x: dg.Tensor) -> Any:
        y, constant = x * 1, x * 2
        ctx.mark_non_differentiable(constant)
        ctx._materialize_non_diff_grads = False
        return y, constant

    x = leaf(1.0, 2.0)
    make(forward, lambda ctx, a, b: (seen.append(b), a)[1]).apply(x)[0].sum().backward()
    assert seen == [None]


def test_non_differentiable_output_may_go_into_another_function(gradient: Any) -> None:
    def forward(ctx: Any, x: dg.Tensor) -> Any:
        constant = x * 2
        ctx.mark_non_differentiable(constant)
        return x, constant

    x = leaf(1.0, 2.0)
    y, constant = make(forward, lambda ctx, grad, _: grad).apply(x)
    second = make(lambda ctx, y, constant: y * 1, lambda ctx, grad: (grad, None))
    assert_values(gradient(second.apply(y, constant + 1), x), [1, 1])


def test_operator_after_a_non_differentiable_output_has_its_own_gradient(gradient: Any) -> None:
    def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
        y = x * 1
        ctx.mark_non_differentiable(y)
        return y

    x = leaf(1.0, 2.0)
    y = make(forward, lambda ctx, grad: None).apply(x * x)
    assert_values(gradient(y * x, x), [1, 4])


def test_non_differentiable_input_that_is_returned_does_not_require_grad() -> None:
    def forward(ctx: Any, x: dg.Tensor, y: dg.Tensor) -> Any:
        ctx.mark_non_differentiable(x)
        return x, y * 2

    x, y = leaf(1.0), leaf(2.0)
    first, second = make(forward, lambda ctx, a, b: (a, b)).apply(x, y)
    assert not first.requires_grad and second.requires_grad
    assert x.requires_grad


# --- what backward returns ---------------------------------------------------------------------


def test_nones_beyond_the_arguments_are_ignored(gradient: Any) -> None:
    x = leaf(1.0, 2.0)
    surplus = make(lambda ctx, x: x * 2, lambda ctx, g: (g * 2, None, None))
    assert_values(gradient(surplus.apply(x), x), [2, 2])


@pytest.mark.parametrize(("returned", "got"), [(1, 1), (3, 3)])
def test_wrong_number_of_gradients_raises(gradient: Any, returned: int, got: int) -> None:
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    wrong = make(lambda ctx, x, y: x * y, lambda ctx, g: (g,) * returned)
    message = rf"CustomBackward returned an incorrect number of gradients \(expected 2, got {got}\)"
    with pytest.raises(RuntimeError, match=message):
        gradient(wrong.apply(x, y), x)


def test_gradient_that_is_no_tensor_raises(gradient: Any) -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match=r"expected Variable or None \(got int\)"):
        gradient(make(lambda ctx, x: x * 2, lambda ctx, g: 2).apply(x), x)


def test_list_of_gradients_raises() -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match=r"expected Variable or None \(got list\)"):
        make(lambda ctx, x: x * 2, lambda ctx, g: [g]).apply(x).sum().backward()


def test_gradient_for_an_argument_that_is_no_tensor_raises(gradient: Any) -> None:
    x = leaf(1.0, 2.0)
    wrong = make(lambda ctx, x, k: x * k, lambda ctx, g: (g, g))
    message = "returned a gradient different than None at position 2, but the corresponding"
    with pytest.raises(RuntimeError, match=message):
        gradient(wrong.apply(x, 2), x)


def test_gradient_of_another_shape_raises(gradient: Any) -> None:
    x = leaf(1.0, 2.0)
    wrong = make(lambda ctx, x: x * 2, lambda ctx, g: dg.ones(3))
    message = r"returned an invalid gradient at index 0 - got \[3\] but expected shape compatible"
    with pytest.raises(RuntimeError, match=message):
        gradient(wrong.apply(x), x)


def test_gradient_that_would_have_to_grow_raises(gradient: Any) -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="returned an invalid gradient at index 0"):
        gradient(make(lambda ctx, x: x * 2, lambda ctx, g: g.sum()).apply(x), x)


def test_gradient_of_a_larger_shape_is_summed(gradient: Any) -> None:
    x = leaf(1.0, 2.0)
    wide = make(lambda ctx, x: x * 2, lambda ctx, g: g.expand(3, 2))
    assert_values(gradient(wide.apply(x), x), [3, 3])


def test_gradient_of_another_dtype_is_converted(gradient: Any) -> None:
    x = leaf(1.0, 2.0)
    half = make(lambda ctx, x: x * 2, lambda ctx, g: g.half() * 2)
    assert_values(gradient(half.apply(x), x), [2, 2])


def test_gradient_of_integers_is_converted() -> None:
    x = leaf(1.0, 2.0)
    make(lambda ctx, x: x * 2, lambda ctx, g: g.int() * 2).apply(x).sum().backward()
    assert_values(x.grad, [2, 2])


def test_complex_gradient_of_a_real_input_raises(gradient: Any) -> None:
    x = leaf(1.0, 2.0)
    turned = make(lambda ctx, x: x * 2, lambda ctx, g: dg.complex(g * 2, g))
    with pytest.raises(RuntimeError, match=r"got \S*complex64, but the input is \S*float32"):
        gradient(turned.apply(x), x)


def test_gradient_for_a_tensor_that_needs_none_is_ignored() -> None:
    x, c = leaf(1.0, 2.0), dg.ones(2)
    make(lambda ctx, x, c: x * c, lambda ctx, g: (g, dg.ones(5))).apply(x, c).sum().backward()
    assert_values(x.grad, [1, 1])


def test_vjp_serves_as_backward(gradient: Any) -> None:
    x = leaf(1.0, 2.0)
    assert_values(
        gradient(make(lambda ctx, x: x * 2, vjp=lambda ctx, g: g * 2).apply(x), x), [2, 2]
    )


def test_backward_and_vjp_together_are_refused() -> None:
    both = make(lambda ctx, x: x * 2, pass_on, vjp=pass_on)
    with pytest.raises(RuntimeError, match="both 'backward' and 'vjp'"):
        both.apply(leaf(1.0)).backward()


def test_function_without_backward_raises_in_backward() -> None:
    y = make(lambda ctx, x: x * 2).apply(leaf(1.0))
    with pytest.raises(NotImplementedError, match="either the backward or vjp method"):
        y.backward()


def test_function_without_forward_raises() -> None:
    class Nothing(dg.autograd.Function):
        pass

    with pytest.raises(NotImplementedError, match="must implement the forward"):
        Nothing.apply(leaf(1.0))


def test_error_in_forward_reaches_the_caller_and_restores_grad_mode() -> None:
    def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
        raise ValueError("from forward")

    with pytest.raises(ValueError, match="from forward"):
        make(forward, pass_on).apply(leaf(1.0))
    assert dg.is_grad_enabled()


def test_error_in_backward_reaches_the_caller_with_its_frames() -> None:
    def failing(ctx: Any, grad: dg.Tensor) -> dg.Tensor:
        raise ValueError("from backward")

    y = make(lambda ctx, x: x * 2, failing).apply(leaf(1.0))
    with pytest.raises(ValueError, match="from backward") as info:
        y.backward()
    assert info.traceback[-1].name == "failing"
    assert dg.is_grad_enabled()


def test_backward_may_be_tried_again_after_it_failed() -> None:
    tries: list[int] = []

    def backward(ctx: Any, grad: dg.Tensor) -> dg.Tensor:
        tries.append(1)
        if len(tries) == 1:
            raise ValueError("the first time")
        return grad * ctx.saved_tensors[0]

    def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
        ctx.save_for_backward(x)
        return x * 2

    x = leaf(1.0, 2.0)
    y = make(forward, backward).apply(x)
    with pytest.raises(ValueError, match="the first time"):
        y.backward(dg.ones(2))
    y.backward(dg.ones(2))
    assert_values(x.grad, [1, 2])


def test_errors_of_backward_in_threads_reach_each_caller() -> None:
    def failing(ctx: Any, grad: dg.Tensor) -> dg.Tensor:
        raise ValueError("in a thread")

    y = make(lambda ctx, x: x * 2, failing)
    errors = run_threads(lambda i: y.apply(leaf(1.0)).backward(), 4)
    assert [str(e) for e in errors] == ["in a thread"] * 4
