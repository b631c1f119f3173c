"""autograd.Function: what apply gives, and what its methods are called with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dyngraph as dg
from dyngraph.autograd.graph import graph_desc
from tests.autograd.functions import Double, Exp, Product, Square, make, pass_on
from tests.graph.helpers import assert_values, leaf

# --- apply -------------------------------------------------------------------------------------


def test_output_follows_the_function_in_the_graph() -> None:
    y = Double.apply(leaf(1.0, 2.0))
    assert_values(y, [2, 4])
    assert y.requires_grad and not y.is_leaf
    assert graph_desc(y.grad_fn) == "DoubleBackward(AccumulateGrad())"


def test_node_is_named_after_the_class_and_knows_it() -> None:
    node = Double.apply(leaf(1.0)).grad_fn
    assert node.name() == "DoubleBackward"
    assert type(node).__name__ == "DoubleBackward"
    assert node._forward_cls is Double
    assert isinstance(node, dg.autograd.graph.Node)


def test_edges_are_those_of_the_tensors_among_the_arguments() -> None:
    first = make(lambda ctx, x, k, y: x * k + y, lambda ctx, g: (g, None, g))
    x, c = leaf(1.0), dg.tensor(2.0)
    node = first.apply(x * 1, 3, c).grad_fn
    assert graph_desc(node) == "CustomBackward(MulBackward0(AccumulateGrad(), None), None)"


def test_gradient_is_what_backward_returns(gradient: Any) -> None:
    x = leaf(1.0, 2.0)
    assert_values(gradient(Double.apply(x), x), [2, 2])


def test_gradient_uses_what_was_saved(gradient: Any) -> None:
    x = leaf(1.0, 2.0)
    assert_values(gradient(Square.apply(x), x), [2, 4])
    assert_values(gradient(Exp.apply(x), x), np.exp([1, 2]))


def test_backward_accumulates_into_leaves() -> None:
    x = leaf(1.0, 2.0)
    for _ in range(2):
        Double.apply(x).sum().backward()
    assert_values(x.grad, [4, 4])


def test_nothing_is_recorded_without_an_input_that_requires_grad() -> None:
    y = Double.apply(dg.tensor([1.0, 2.0]))
    assert not y.requires_grad and y.grad_fn is None


def test_nothing_is_recorded_under_no_grad() -> None:
    with dg.no_grad():
        y = Double.apply(leaf(1.0, 2.0))
    assert not y.requires_grad and y.grad_fn is None


def test_output_is_an_inference_tensor_in_inference_mode() -> None:
    with dg.inference_mode():
        y = Double.apply(dg.ones(2))
    assert y.is_inference() and not y.requires_grad


def test_function_without_tensors_returns_what_forward_does() -> None:
    plain = make(lambda ctx, *args: args, lambda ctx, *grads: grads)
    assert plain.apply(1, "two", None) == (1, "two", None)


def test_arguments_that_are_no_tensors_are_passed_as_they_are() -> None:
    seen: list[Any] = []

    def forward(ctx: Any, x: dg.Tensor, *rest: Any) -> dg.Tensor:
        seen.extend(rest)
        return x * 2

    thing = object()
    make(forward, pass_on).apply(leaf(1.0), 3, "name", thing, [leaf(1.0)])
    assert seen[:3] == [3, "name", thing]
    assert isinstance(seen[3], list)


def test_outputs_that_are_no_tensors_are_returned_as_they_are(gradient: Any) -> None:
    mixed = make(lambda ctx, x, k: (k, x * k, "s", None), lambda ctx, a, g, b, c: (g * 3, None))
    x = leaf(1.0, 2.0)
    number, y, text, nothing = mixed.apply(x, 3)
    assert (number, text, nothing) == (3, "s", None)
    assert_values(gradient(y, x), [3, 3])


def test_tuple_of_one_output_stays_a_tuple() -> None:
    outputs = make(lambda ctx, x: (x * 2,), pass_on).apply(leaf(1.0))
    assert isinstance(outputs, tuple) and len(outputs) == 1


def test_list_of_tensors_is_no_output_that_autograd_looks_into() -> None:
    (y,) = make(lambda ctx, x: [x * 2], pass_on).apply(leaf(1.0))
    assert not y.requires_grad


def test_forward_runs_unrecorded_and_with_the_tensors_themselves() -> None:
    x, seen = leaf(1.0), []

    def forward(ctx: Any, given: dg.Tensor) -> dg.Tensor:
        inner = given * 3
        seen.extend([given is x, dg.is_grad_enabled(), inner.requires_grad])
        return inner

    make(forward, pass_on).apply(x)
    assert seen == [True, False, False]


def test_what_forward_records_by_itself_is_not_followed(gradient: Any) -> None:
    def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
        with dg.enable_grad():
            return x * 7

    x = leaf(1.0, 2.0)
    y = make(forward, pass_on).apply(x)
    assert graph_desc(y.grad_fn) == "CustomBackward(AccumulateGrad())"
    assert_values(gradient(y, x), [1, 1])


def test_what_forward_records_of_constants_is_not_followed() -> None:
    inner = leaf(2.0)

    def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
        with dg.enable_grad():
            return x * inner

    y = make(forward, pass_on).apply(dg.tensor(3.0))
    assert not y.requires_grad and y.grad_fn is None


def test_needs_input_grad_has_an_entry_for_each_argument() -> None:
    seen = []

    def forward(ctx: Any, x: dg.Tensor, k: int, y: dg.Tensor) -> dg.Tensor:
        seen.append(ctx.needs_input_grad)
        return x * k * y

    def backward(ctx: Any, grad: dg.Tensor) -> Any:
        seen.append(ctx.needs_input_grad)
        return grad, None, None

    make(forward, backward).apply(leaf(1.0), 2, dg.tensor(1.0)).backward()
    assert seen == [(True, False, False)] * 2


def test_needs_input_grad_in_setup_context() -> None:
    seen = []
    noted = make(
        lambda x, k: x * k,
        lambda ctx, g: (g, None),
        setup_context=lambda ctx, inputs, output: seen.append(ctx.needs_input_grad),
    )
    noted.apply(leaf(1.0), 2)
    assert seen == [(True, False)]


def test_context_keeps_attributes_from_forward_to_backward(gradient: Any) -> None:
    def forward(ctx: Any, x: dg.Tensor, factor: float) -> dg.Tensor:
        ctx.factor = factor
        return x * factor

    scale = make(forward, lambda ctx, grad: (grad * ctx.factor, None))
    x = leaf(1.0, 2.0)
    y = scale.apply(x, 5.0)
    assert y.grad_fn.factor == 5.0
    assert_values(gradient(y, x), [5, 5])


def test_output_of_integers_has_no_gradient(gradient: Any) -> None:
    both = make(lambda ctx, x: (x * 2, x.int()), lambda ctx, g, none: g * 2)
    x = leaf(1.0, 2.0)
    y, whole = both.apply(x)
    assert not whole.requires_grad
    assert_values(gradient(y, x), [2, 2])


def test_constant_output_made_in_forward_requires_grad_too() -> None:
    y = make(lambda ctx, x: dg.ones(2), pass_on).apply(leaf(1.0, 2.0))
    assert y.requires_grad
    assert y.grad_fn.name() == "CustomBackward"


def test_functions_can_be_nested(gradient: Any) -> None:
    x = leaf(1.0, 2.0)
    outer = make(lambda ctx, x: Double.apply(x), lambda ctx, g: Double.apply(g))
    y = outer.apply(Square.apply(x))
    assert graph_desc(y.grad_fn) == "CustomBackward(SquareBackward(AccumulateGrad()))"
    assert_values(gradient(y, x), [4, 8])


def test_outputs_share_one_node() -> None:
    first, second = make(lambda ctx, x: (x * 2, x * 3), lambda ctx, a, b: a + b).apply(leaf(1.0))
    assert first.grad_fn is second.grad_fn
    assert (first.output_nr, second.output_nr) == (0, 1)


def test_hook_on_an_output_sees_its_gradient() -> None:
    x, seen = leaf(1.0, 2.0), []
    y = Double.apply(x)
    y.register_hook(lambda grad: seen.append(grad.tolist()))
    (y * 3).sum().backward()
    assert seen == [[3.0, 3.0]]


def test_hooks_of_the_node_see_gradients_of_both_sides() -> None:
    x, seen = leaf(1.0, 2.0), []
    y = Double.apply(x)
    y.grad_fn.register_prehook(lambda outputs: seen.append([g.tolist() for g in outputs]))
    y.grad_fn.register_hook(lambda i, o: seen.append([i[0].tolist(), o[0].tolist()]))
    y.sum().backward()
    assert seen == [[[1.0, 1.0]], [[2.0, 2.0], [1.0, 1.0]]]


def test_node_can_be_called_by_hand() -> None:
    node = Square.apply(leaf(3.0)).grad_fn
    assert_values(node(dg.tensor(2.0)), 12)


def test_metadata_of_the_node_describes_the_outputs() -> None:
    y, _ = make(lambda ctx, x: (x * 2, x.sum()), lambda ctx, a, b: a).apply(leaf(1.0, 2.0))
    first, second = y.grad_fn._input_metadata
    assert tuple(first.shape) == (2,) and tuple(second.shape) == ()
    assert first.dtype == dg.float32


# --- setup_context -----------------------------------------------------------------------------


def test_setup_context_gets_inputs_and_output(gradient: Any) -> None:
    seen: list[Any] = []

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        seen.extend([inputs, output])
        ctx.save_for_backward(output)

    power = make(lambda x, k: x.exp() * k, lambda ctx, g: (g * ctx.saved_tensors[0], None))
    power.setup_context = staticmethod(setup_context)
    x = leaf(1.0, 2.0)
    y = power.apply(x, 2)
    assert seen[0][0] is x and seen[0][1] == 2 and seen[1] is y
    assert_values(gradient(y, x), 2 * np.exp([1, 2]))


def test_setup_context_gets_a_tuple_of_several_outputs() -> None:
    seen: list[Any] = []
    several = make(
        lambda x: (x * 2, 7),
        lambda ctx, g, none: g,
        setup_context=lambda ctx, inputs, output: seen.extend([inputs, output]),
    )
    x = leaf(1.0)
    y, seven = several.apply(x)
    assert isinstance(seen[0], tuple) and isinstance(seen[1], tuple)
    assert seen[1][0] is y and seven == 7


def test_setup_context_runs_unrecorded() -> None:
    seen: list[bool] = []
    watching = make(
        lambda x: x * 2,
        pass_on,
        setup_context=lambda ctx, inputs, output: seen.append(dg.is_grad_enabled()),
    )
    watching.apply(leaf(1.0))
    assert seen == [False]


def test_setup_context_gets_default_and_named_arguments() -> None:
    seen: list[Any] = []

    def forward(x: dg.Tensor, factor: int = 3) -> dg.Tensor:
        return x * factor

    with_default = make(
        forward,
        lambda ctx, g: (g * 3, None),
        setup_context=lambda ctx, inputs, output: seen.extend(inputs[1:]),
    )
    assert_values(with_default.apply(leaf(1.0)), 3)
    assert_values(with_default.apply(leaf(1.0), factor=5), 5)
    assert seen == [3, 5]


def test_two_inputs_have_their_own_gradients(gradient: Any) -> None:
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    by_x, by_y = gradient(Product.apply(x, y), x, y)
    assert_values(by_x, [3, 4])
    assert_values(by_y, [1, 2])


def test_one_tensor_given_twice_gets_both_gradients(gradient: Any) -> None:
    x = leaf(1.0, 2.0)
    assert_values(gradient(Product.apply(x, x), x), [2, 4])


# --- misuse and old forms ----------------------------------------------------------------------


def test_instance_warns_that_it_is_of_no_use() -> None:
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        Double()


@pytest.mark.filterwarnings("ignore:.*should not be instantiated")
def test_calling_an_instance_raises() -> None:
    with pytest.raises(RuntimeError, match="Legacy autograd function with non-static forward"):
        Double()(leaf(1.0))


def test_function_with_nested_arguments_and_outputs(gradient: Any) -> None:
    class Swap(dg.autograd.function.NestedIOFunction):
        @staticmethod
        def forward_extended(ctx: Any, *args: Any) -> Any:
            (pair,) = args
            return pair[1] * 2, [pair[0] * 3]

        @staticmethod
        def backward_extended(ctx: Any, *grads: Any) -> Any:
            first, rest = grads
            return ((rest[0] * 3, first * 2),)

    x, y = leaf(1.0), leaf(1.0)
    first, (second,) = Swap.apply((x, y))
    by_x, by_y = gradient(first + second, x, y)
    assert_values(by_x, 3)
    assert_values(by_y, 2)


def test_vmap_has_no_rule_by_default() -> None:
    assert not Double.generate_vmap_rule
    with pytest.raises(NotImplementedError, match=r"must either override|to use autograd.Function"):
        Double.vmap(None, (0,), dg.ones(2))


def test_mark_shared_storage_warns_that_it_does_nothing() -> None:
    def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
        ctx.mark_shared_storage()
        return x * 2

    with pytest.warns(FutureWarning, match="mark_shared_storage"):
        make(forward, pass_on).apply(leaf(1.0))


def test_marking_what_is_no_tensor_as_non_differentiable_raises() -> None:
    def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
        ctx.mark_non_differentiable(None)
        return x * 2

    message = "mark_non_differentiable only accepts variable arguments, but got"
    with pytest.raises(RuntimeError, match=message):
        make(forward, pass_on).apply(leaf(1.0))


def test_marking_what_is_no_tensor_as_dirty_raises() -> None:
    def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
        ctx.mark_dirty(3)
        return x * 2

    with pytest.raises(RuntimeError, match="mark_dirty can only accept variables, but argument"):
        make(forward, pass_on).apply(leaf(1.0))
