"""Tensor.backward, autograd.backward and autograd.grad: every argument, every refusal."""

import re
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dyngraph as dg
from dyngraph.autograd.graph import get_gradient_edge
from tests.graph.helpers import assert_values, leaf, log_gradients, on_gradient

AGAIN = "Specify retain_graph=True if you need to backward through the graph a second time"
UNUSED = "appears to not have been used in the graph. Set allow_unused=True"


def square_sum(x: dg.Tensor) -> dg.Tensor:
    """sum(x²), whose gradient is 2x and which saves x."""
    return (x * x).sum()


# Tensor.backward


def test_backward_fills_the_grad_of_each_leaf() -> None:
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    (x * y).sum().backward()
    assert_values(x.grad, [3, 4])
    assert_values(y.grad, [1, 2])


def test_grad_is_none_before_backward() -> None:
    assert leaf(1.0).grad is None


def test_leaf_that_needs_no_gradient_gets_none() -> None:
    constant = dg.tensor([3.0, 4.0])
    (leaf(1.0, 2.0) * constant).sum().backward()
    assert constant.grad is None


def test_interior_tensor_gets_no_grad() -> None:
    x = leaf(1.0, 2.0)
    y = x * x
    y.sum().backward()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert y.grad is None


def test_reading_grad_of_an_interior_tensor_warns() -> None:
    y = leaf(1.0, 2.0) * 2
    with pytest.warns(UserWarning, match="grad attribute of a Tensor that is not a leaf Tensor"):
        _ = y.grad


def test_retained_grad_of_an_interior_tensor_is_kept() -> None:
    y = leaf(1.0, 2.0) * 2
    y.retain_grad()
    square_sum(y).backward()
    assert_values(y.grad, [4, 8])


def test_second_backward_adds_to_grad() -> None:
    x = leaf(1.0, 2.0)
    square_sum(x).backward()
    square_sum(x).backward()
    assert_values(x.grad, [4, 8])


def test_grad_stays_the_same_tensor_when_it_accumulates() -> None:
    x = leaf(1.0, 2.0)
    square_sum(x).backward()
    first = x.grad
    square_sum(x).backward()
    assert x.grad is first


def test_backward_starts_anew_after_grad_is_set_to_none() -> None:
    x = leaf(1.0, 2.0)
    square_sum(x).backward()
    x.grad = None
    square_sum(x).backward()
    assert_values(x.grad, [2, 4])


def test_deleted_grad_is_none() -> None:
    x = leaf(1.0, 2.0)
    square_sum(x).backward()
    del x.grad
    assert x.grad is None


def test_backward_adds_to_a_grad_that_was_assigned() -> None:
    x = leaf(1.0, 2.0)
    x.grad = dg.tensor([10.0, 20.0])
    square_sum(x).backward()
    assert_values(x.grad, [12, 24])


@pytest.mark.parametrize(
    "value, error, message",
    [
        (dg.ones(3), RuntimeError, "attempting to assign a gradient of size"),
        (dg.ones(2, dtype=dg.int32), RuntimeError, "attempting to assign a gradient with dtype"),
        ("no tensor", TypeError, "assigned grad expected to be a Tensor or None"),
    ],
    ids=["shape", "dtype", "type"],
)
def test_assigning_an_unfit_grad_raises(
    value: object, error: type[Exception], message: str
) -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(error, match=message):
        x.grad = value  # pyright: ignore[reportAttributeAccessIssue]


def test_assigning_a_tensor_as_its_own_grad_raises() -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="as its own grad"):
        x.grad = x


def test_grad_does_not_require_grad() -> None:
    x = leaf(1.0, 2.0)
    square_sum(x).backward()
    assert x.grad is not None
    assert not x.grad.requires_grad


def test_leaves_do_not_share_one_grad() -> None:
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    (x + y).sum().backward()
    assert x.grad is not y.grad


def test_accumulating_into_one_leaf_leaves_the_other_leafs_grad_alone() -> None:
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    (x + y).sum().backward()
    square_sum(x).backward()
    assert_values(y.grad, [1, 1])


@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 1), (2, 3), (1, 1, 1)])
def test_gradient_has_the_shape_of_its_leaf_when_it_was_broadcast(shape: tuple[int, ...]) -> None:
    x = dg.ones(shape, requires_grad=True)
    (x * dg.ones(2, 3)).sum().backward()
    assert_values(x.grad, np.full(shape, 6 / x.numel()))


def test_leaf_without_elements_gets_a_grad_without_elements() -> None:
    x = dg.ones(3, 0, requires_grad=True)
    x.sum().backward()
    x.sum().backward()
    assert_values(x.grad, np.zeros((3, 0)))


def test_backward_from_a_leaf_gives_it_gradient_one() -> None:
    x = leaf(3.0)
    x.backward()
    assert_values(x.grad, 1)


def test_backward_under_no_grad_follows_the_recorded_graph() -> None:
    x = leaf(1.0, 2.0)
    loss = square_sum(x)
    with dg.no_grad():
        loss.backward()
    assert_values(x.grad, [2, 4])


def test_result_recorded_under_no_grad_cannot_go_backward() -> None:
    with dg.no_grad():
        loss = square_sum(leaf(1.0, 2.0))
    with pytest.raises(RuntimeError, match="does not require grad and does not have a grad_fn"):
        loss.backward()


# Tensor.backward(gradient)


def test_gradient_weighs_the_elements_of_the_output() -> None:
    x = leaf(1.0, 2.0)
    (x * x).backward(dg.tensor([10.0, 100.0]))
    assert_values(x.grad, [20, 400])


def test_backward_from_several_elements_without_gradient_raises() -> None:
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar"):
        (leaf(1.0, 2.0) * 2).backward()


def test_output_of_one_element_needs_no_gradient() -> None:
    x = dg.ones(1, 1, requires_grad=True)
    (x * 2).backward()
    assert_values(x.grad, [[2]])


def test_backward_from_a_complex_scalar_without_gradient_raises() -> None:
    z = dg.tensor(1 + 2j, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"only for real scalar outputs but got .*complex64"):
        (z * 2).backward()


@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 1), (1, 2)])
def test_gradient_of_another_shape_raises(shape: tuple[int, ...]) -> None:
    y = leaf(1.0, 2.0) * 2
    with pytest.raises(RuntimeError, match=r"Mismatch in shape: grad_output\[0\] has a shape of"):
        y.backward(dg.ones(shape))


def test_complex_gradient_for_a_real_output_raises() -> None:
    y = leaf(1.0, 2.0) * 2
    with pytest.raises(RuntimeError, match=r"Mismatch in dtype: grad_output\[0\] has a dtype of"):
        y.backward(dg.ones(2, dtype=dg.complex64))


def test_gradient_that_is_no_tensor_raises() -> None:
    y = leaf(1.0, 2.0) * 2
    with pytest.raises(TypeError, match="gradients can be either Tensors or None, but got str"):
        y.backward("no tensor")  # pyright: ignore[reportArgumentType]


def test_grad_is_not_the_gradient_tensor_that_was_passed_in() -> None:
    x, gradient = leaf(1.0, 2.0), dg.tensor([1.0, 1.0])
    x.backward(gradient)
    assert x.grad is not gradient


def test_accumulation_leaves_the_gradient_that_was_passed_in_alone() -> None:
    x, gradient = leaf(1.0, 2.0), dg.tensor([1.0, 1.0])
    x.backward(gradient)
    x.backward(gradient)
    assert_values(gradient, [1, 1])


def test_backward_from_a_tensor_without_history_raises() -> None:
    message = "element 0 of tensors does not require grad and does not have a grad_fn"
    with pytest.raises(RuntimeError, match=message):
        dg.ones(()).backward()


# retain_graph


def test_second_backward_without_retain_graph_raises() -> None:
    loss = square_sum(leaf(1.0, 2.0))
    loss.backward()
    with pytest.raises(RuntimeError, match=AGAIN):
        loss.backward()


def test_backward_after_grad_without_retain_graph_raises() -> None:
    x = leaf(1.0, 2.0)
    loss = square_sum(x)
    dg.autograd.grad(loss, x)
    with pytest.raises(RuntimeError, match=AGAIN):
        loss.backward()


def test_second_backward_with_retain_graph_adds_the_same_gradient() -> None:
    x = leaf(1.0, 2.0)
    loss = square_sum(x)
    loss.backward(retain_graph=True)
    loss.backward()
    assert_values(x.grad, [4, 8])


def test_retain_graph_holds_for_one_backward_only() -> None:
    loss = square_sum(leaf(1.0, 2.0))
    loss.backward(retain_graph=True)
    loss.backward()
    with pytest.raises(RuntimeError, match=AGAIN):
        loss.backward()


def test_second_backward_works_where_nothing_was_saved() -> None:
    x = leaf(1.0, 2.0)
    loss = (x + x).sum()
    loss.backward()
    loss.backward()
    assert_values(x.grad, [4, 4])


def test_grad_with_retain_graph_can_be_repeated() -> None:
    x = leaf(1.0, 2.0)
    loss = square_sum(x)
    dg.autograd.grad(loss, x, retain_graph=True)
    assert_values(dg.autograd.grad(loss, x)[0], [2, 4])


def test_grad_frees_only_the_nodes_it_visited() -> None:
    x = leaf(1.0, 2.0)
    y = x.exp()
    dg.autograd.grad(square_sum(y), y)
    assert_values(dg.autograd.grad(y.sum(), x)[0], np.exp([1, 2]))


# autograd.backward: several roots


def test_roots_add_up() -> None:
    x = leaf(1.0, 2.0)
    dg.autograd.backward([square_sum(x), x.sum()])
    assert_values(x.grad, [3, 5])


def test_root_and_its_gradient_may_stand_alone() -> None:
    x = leaf(1.0, 2.0)
    dg.autograd.backward(x * x, dg.tensor([1.0, 10.0]))
    assert_values(x.grad, [2, 40])


def test_grad_tensors_weigh_the_roots() -> None:
    x = leaf(1.0, 2.0)
    dg.autograd.backward([x * x, x.sum()], [dg.tensor([1.0, 10.0]), dg.tensor(100.0)])
    assert_values(x.grad, [102, 140])


def test_grad_tensors_may_be_none_for_scalar_roots() -> None:
    x = leaf(1.0, 2.0)
    dg.autograd.backward([x * x, x.sum()], [dg.ones(2), None])
    assert_values(x.grad, [3, 5])


def test_none_in_grad_tensors_for_several_elements_raises() -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar"):
        dg.autograd.backward([x.sum(), x * x], [None, None])


def test_same_root_twice_counts_twice() -> None:
    x = leaf(1.0, 2.0)
    loss = square_sum(x)
    dg.autograd.backward([loss, loss])
    assert_values(x.grad, [4, 8])


def test_root_that_another_root_depends_on_gets_both_gradients() -> None:
    x = leaf(1.0, 2.0)
    inner = square_sum(x)
    dg.autograd.backward([inner, inner * 10])
    assert_values(x.grad, [22, 44])


def test_number_of_grad_tensors_must_be_the_number_of_roots() -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="got 2 tensors and 1 gradients"):
        dg.autograd.backward([square_sum(x), x.sum()], [dg.tensor(1.0)])


def test_error_names_the_root_without_history() -> None:
    message = "element 1 of tensors does not require grad and does not have a grad_fn"
    with pytest.raises(RuntimeError, match=message):
        dg.autograd.backward([leaf(1.0), dg.tensor(1.0)])


def test_root_that_is_no_tensor_raises() -> None:
    with pytest.raises(TypeError, match="is not iterable"):
        dg.autograd.backward(None)  # pyright: ignore[reportArgumentType]


def test_grad_variables_warns() -> None:
    x = leaf(1.0, 2.0)
    with pytest.warns(FutureWarning, match="`grad_variables` is deprecated"):
        dg.autograd.backward(x * 2, grad_variables=dg.ones(2))


def test_grad_variables_with_grad_tensors_raises() -> None:
    x = leaf(1.0, 2.0)
    with (
        pytest.warns(FutureWarning, match="`grad_variables` is deprecated"),
        pytest.raises(RuntimeError, match="only use `grad_tensors`"),
    ):
        dg.autograd.backward(x * 2, dg.ones(2), grad_variables=dg.ones(2))


# backward(inputs=)


def test_backward_with_inputs_fills_only_those() -> None:
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    (x * y).sum().backward(inputs=[x])
    assert_values(x.grad, [3, 4])
    assert y.grad is None


@pytest.mark.parametrize("form", ["bare", "tuple", "dict", "edge"])
def test_backward_takes_inputs_in_several_forms(form: str) -> None:
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    inputs = {"bare": x, "tuple": (x,), "dict": {"x": x}, "edge": [get_gradient_edge(x)]}[form]
    dg.autograd.backward((x * y).sum(), inputs=inputs)
    assert_values(x.grad, [3, 4])
    assert y.grad is None


def test_backward_with_a_nonleaf_input_fills_its_grad() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    square_sum(y).backward(inputs=[y])
    assert_values(y.grad, [4, 8])
    assert x.grad is None


def test_backward_with_leaf_and_nonleaf_inputs_fills_both() -> None:
    x = leaf(1.0, 2.0)
    y = x * x
    square_sum(y).backward(inputs=[x, y])
    assert_values(x.grad, [4, 32])
    assert_values(y.grad, [2, 8])


def test_backward_with_the_same_input_twice_fills_it_once() -> None:
    x = leaf(1.0, 2.0)
    square_sum(x).backward(inputs=[x, x])
    assert_values(x.grad, [2, 4])


def test_backward_with_inputs_adds_to_grad() -> None:
    x = leaf(1.0, 2.0)
    square_sum(x).backward(inputs=[x])
    square_sum(x).backward(inputs=[x])
    assert_values(x.grad, [4, 8])


def test_backward_with_an_unused_input_leaves_its_grad_none() -> None:
    unused = leaf(1.0)
    square_sum(leaf(1.0, 2.0)).backward(inputs=[unused])
    assert unused.grad is None


@pytest.mark.parametrize("inputs", [[], ()], ids=["list", "tuple"])
def test_backward_with_empty_inputs_raises(inputs: list[dg.Tensor]) -> None:
    with pytest.raises(RuntimeError, match=re.escape("argument to `backward()` cannot be empty")):
        square_sum(leaf(1.0, 2.0)).backward(inputs=inputs)


def test_backward_with_an_input_that_needs_no_gradient_raises() -> None:
    with pytest.raises(RuntimeError, match="Tensor that has requires_grad=False"):
        square_sum(leaf(1.0, 2.0)).backward(inputs=[dg.ones(2)])


def test_backward_with_inputs_runs_only_what_leads_to_them() -> None:
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    a, b = x * 2, y * 2
    log: list[str] = []
    log_gradients(log, x=x, y=y, a=a, b=b)
    (a * b).sum().backward(inputs=[x])
    assert log == ["a", "x"]


def test_backward_with_a_nonleaf_input_stops_there() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    log: list[str] = []
    log_gradients(log, x=x, y=y)
    square_sum(y).backward(inputs=[y])
    assert log == ["y"]


# autograd.grad


def test_grad_returns_a_tuple_in_the_order_of_inputs() -> None:
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    by_y, by_x = dg.autograd.grad((x * y).sum(), [y, x])
    assert_values(by_y, [1, 2])
    assert_values(by_x, [3, 4])


def test_grad_of_one_input_is_a_tuple_of_one() -> None:
    x = leaf(1.0, 2.0)
    grads = dg.autograd.grad(square_sum(x), x)
    assert isinstance(grads, tuple)
    assert len(grads) == 1


def test_grad_leaves_grad_alone() -> None:
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    dg.autograd.grad((x * y).sum(), x)
    assert x.grad is None and y.grad is None


def test_grad_of_dict_inputs_is_a_dict() -> None:
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    grads = dg.autograd.grad((x * y).sum(), {"first": x, "second": y})
    assert list(grads) == ["first", "second"]
    assert_values(grads["second"], [1, 2])


def test_grad_of_the_same_input_twice_is_given_twice() -> None:
    x = leaf(1.0, 2.0)
    first, second = dg.autograd.grad(square_sum(x), [x, x])
    assert_values(first, [2, 4])
    assert_values(second, [2, 4])


def test_grad_of_an_interior_tensor_and_of_its_leaf() -> None:
    x = leaf(1.0, 2.0)
    y = x * x
    by_y, by_x = dg.autograd.grad(square_sum(y), [y, x])
    assert_values(by_y, [2, 8])
    assert_values(by_x, [4, 32])


def test_grad_of_an_interior_tensor_used_by_several_outputs() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    (by_y,) = dg.autograd.grad([y.sum(), square_sum(y)], [y])
    assert_values(by_y, [5, 9])


def test_grad_of_each_output_of_one_node() -> None:
    first, second = (leaf(1.0, 2.0) * 1).unbind()
    by_first, by_second = dg.autograd.grad(first * second * second, [first, second])
    assert_values(by_first, 4)
    assert_values(by_second, 4)


def test_grad_of_an_output_by_itself_is_one() -> None:
    loss = square_sum(leaf(1.0, 2.0))
    assert_values(dg.autograd.grad(loss, loss)[0], 1)


def test_grad_of_an_output_by_itself_is_its_grad_output() -> None:
    y = leaf(1.0, 2.0) * 2
    assert_values(dg.autograd.grad(y, y, dg.tensor([5.0, 6.0]))[0], [5, 6])


def test_grad_of_several_outputs_is_their_sum() -> None:
    x = leaf(1.0, 2.0)
    (by_x,) = dg.autograd.grad([x * x, x.sum()], x, [dg.tensor([1.0, 10.0]), None])
    assert_values(by_x, [3, 41])


def test_none_in_grad_outputs_for_several_elements_raises() -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar"):
        dg.autograd.grad([x.sum(), x * x], x, [None, None])


def test_grad_output_of_another_shape_raises() -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match=r"Mismatch in shape: .* and output\[0\] has a shape of"):
        dg.autograd.grad(x * x, x, dg.ones(3))


def test_grad_of_an_unused_input_raises_and_says_which() -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match=f"Tensor at index 1 {UNUSED}"):
        dg.autograd.grad(square_sum(x), [x, leaf(1.0)])


def test_grad_of_an_unused_input_is_none_where_allowed() -> None:
    x = leaf(1.0, 2.0)
    by_x, by_unused = dg.autograd.grad(square_sum(x), [x, leaf(1.0)], allow_unused=True)
    assert_values(by_x, [2, 4])
    assert by_unused is None


def test_grad_of_an_input_that_depends_on_the_output_raises() -> None:
    loss = square_sum(leaf(1.0, 2.0))
    with pytest.raises(RuntimeError, match=f"Tensor at index 0 {UNUSED}"):
        dg.autograd.grad(loss, loss * 2)


def test_grad_through_a_detached_tensor_raises() -> None:
    x = leaf(1.0, 2.0)
    y = x.detach().requires_grad_()
    with pytest.raises(RuntimeError, match=f"Tensor at index 0 {UNUSED}"):
        dg.autograd.grad(square_sum(y), x)


def test_materialized_grad_of_an_unused_input_is_zero() -> None:
    x, unused = leaf(1.0, 2.0), leaf(5.0, 6.0, 7.0)
    _, by_unused = dg.autograd.grad(square_sum(x), [x, unused], materialize_grads=True)
    assert_values(by_unused, [0, 0, 0])


def test_materialized_grads_of_the_other_inputs_are_their_gradients() -> None:
    x = leaf(1.0, 2.0)
    by_x, _ = dg.autograd.grad(square_sum(x), [x, leaf(5.0)], materialize_grads=True)
    assert_values(by_x, [2, 4])


def test_materialize_grads_against_allow_unused_raises() -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(ValueError, match="Expected allow_unused to be True or not passed"):
        dg.autograd.grad(square_sum(x), x, materialize_grads=True, allow_unused=False)


@pytest.mark.parametrize("allow_unused", [None, True])
def test_grad_of_an_input_that_needs_no_gradient_raises(allow_unused: bool | None) -> None:
    loss = square_sum(leaf(1.0, 2.0))
    with pytest.raises(RuntimeError, match="One of the differentiated Tensors does not require"):
        dg.autograd.grad(loss, dg.ones(2), allow_unused=allow_unused)


def test_grad_of_no_inputs_raises() -> None:
    with pytest.raises(RuntimeError, match=re.escape("argument to `grad()` cannot be empty")):
        dg.autograd.grad(square_sum(leaf(1.0, 2.0)), [])


def test_grad_of_a_tensor_without_history_raises() -> None:
    message = "element 0 of tensors does not require grad and does not have a grad_fn"
    with pytest.raises(RuntimeError, match=message):
        dg.autograd.grad(dg.tensor(1.0), leaf(1.0))


def test_grad_of_something_that_is_no_tensor_raises() -> None:
    message = "all inputs have to be Tensors or GradientEdges, but got str"
    with pytest.raises(RuntimeError, match=message):
        dg.autograd.grad(square_sum(leaf(1.0)), "x")  # pyright: ignore[reportArgumentType]


def test_only_inputs_false_warns() -> None:
    x = leaf(1.0, 2.0)
    with pytest.warns(FutureWarning, match="only_inputs argument is deprecated"):
        dg.autograd.grad(square_sum(x), x, only_inputs=False)


def test_grad_runs_only_what_leads_to_its_inputs() -> None:
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    a, b = x * 2, y * 2
    log: list[str] = []
    log_gradients(log, a=a, b=b)
    dg.autograd.grad((a * b).sum(), x)
    assert log == ["a"]


def test_grad_runs_nothing_when_its_input_is_unreachable() -> None:
    y = leaf(1.0, 2.0) * 2
    log: list[str] = []
    log_gradients(log, y=y)
    dg.autograd.grad(square_sum(y), leaf(1.0), allow_unused=True)
    assert log == []


def test_grad_sees_what_a_hook_on_its_input_made() -> None:
    x = leaf(1.0, 2.0)
    x.register_hook(lambda grad: grad * 10)
    assert_values(dg.autograd.grad(square_sum(x), x)[0], [20, 40])


def test_grad_calls_no_post_accumulate_hook() -> None:
    x = leaf(1.0, 2.0)
    log: list[dg.Tensor] = []
    x.register_post_accumulate_grad_hook(log.append)
    dg.autograd.grad(square_sum(x), x)
    assert log == []


def test_backward_in_two_halves_equals_backward_in_one() -> None:
    x = leaf(1.0, 2.0)
    middle = [x.exp(), x * x]
    loss = square_sum(middle[0] * middle[1])
    halves = dg.autograd.grad(loss, middle, retain_graph=True)
    dg.autograd.backward(middle, halves, retain_graph=True)
    assert_values(x.grad, dg.autograd.grad(loss, x)[0].numpy())


def test_warning_in_a_hook_reaches_the_caller_of_backward() -> None:
    x = leaf(1.0, 2.0)
    on_gradient(x, lambda: warnings.warn("from the hook", UserWarning, stacklevel=1))
    with pytest.warns(UserWarning, match="from the hook"):
        square_sum(x).backward()


# autograd.grad(is_grads_batched=True)


def test_batched_grads_of_unit_vectors_are_the_rows_of_the_jacobian() -> None:
    x = leaf(1.0, 2.0)
    (jacobian,) = dg.autograd.grad(x.exp() * x.sum(), x, dg.eye(2), is_grads_batched=True)
    e1, e2 = np.exp([1, 2])
    assert_values(jacobian, [[4 * e1, e1], [e2, 4 * e2]])


def test_batched_grads_of_several_outputs_and_inputs() -> None:
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    weights = [dg.eye(2), dg.tensor([1.0, 10.0])]
    by_x, by_y = dg.autograd.grad([x * y, square_sum(x)], [x, y], weights, is_grads_batched=True)
    assert_values(by_x, [[5, 4], [20, 44]])
    assert_values(by_y, [[1, 0], [0, 2]])


def test_batched_grads_of_a_batch_of_another_size() -> None:
    x = leaf(1.0, 2.0)
    weights = dg.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 3.0]])
    (by_x,) = dg.autograd.grad(x * x, x, weights, is_grads_batched=True)
    assert_values(by_x, [[2, 0], [0, 4], [4, 12]])


def test_batched_grad_of_an_unused_input_is_none_where_allowed() -> None:
    x = leaf(1.0, 2.0)
    _, by_unused = dg.autograd.grad(
        x * x, [x, leaf(1.0)], dg.eye(2), is_grads_batched=True, allow_unused=True
    )
    assert by_unused is None


def test_batched_grads_can_be_differentiated() -> None:
    x = leaf(1.0, 2.0)
    (rows,) = dg.autograd.grad(x * x * x, x, dg.eye(2), is_grads_batched=True, create_graph=True)
    assert_values(dg.autograd.grad(rows.sum(), x)[0], [6, 12])


def test_batched_grad_output_of_another_shape_raises() -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="interpret the first dimension of each grad_output"):
        dg.autograd.grad(x * x, x, dg.ones(2, 3), is_grads_batched=True)


# GradientEdges


def test_gradient_edge_as_a_root() -> None:
    x = leaf(1.0, 2.0)
    dg.autograd.backward(get_gradient_edge(square_sum(x)))
    assert_values(x.grad, [2, 4])


def test_gradient_edge_of_a_leaf_as_a_root() -> None:
    x = leaf(1.0, 2.0)
    dg.autograd.backward(get_gradient_edge(x), dg.tensor([5.0, 6.0]))
    assert_values(x.grad, [5, 6])


def test_gradient_edge_as_a_root_of_grad() -> None:
    x = leaf(1.0, 2.0)
    (by_x,) = dg.autograd.grad(get_gradient_edge(x * x), x, dg.tensor([1.0, 10.0]))
    assert_values(by_x, [2, 40])


def test_gradient_edges_and_tensors_as_roots_add_up() -> None:
    x = leaf(1.0, 2.0)
    (by_x,) = dg.autograd.grad([get_gradient_edge(square_sum(x)), x.sum()], x)
    assert_values(by_x, [3, 5])


def test_gradient_edge_as_a_root_stands_for_one_output_of_its_node() -> None:
    x = leaf(1.0, 2.0)
    edge = get_gradient_edge(x.unbind()[1])
    assert_values(dg.autograd.grad(edge, x)[0], [0, 1])


def test_gradient_edge_of_several_elements_without_gradient_raises() -> None:
    edge = get_gradient_edge(leaf(1.0, 2.0) * 2)
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar"):
        dg.autograd.backward(edge)


def test_gradient_of_another_shape_than_its_gradient_edge_raises() -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match=r"Mismatch in shape: grad_output\[0\] has a shape of"):
        dg.autograd.grad(get_gradient_edge(x * 2), x, dg.ones(3))


def test_gradient_edge_of_a_leaf_as_an_input() -> None:
    x = leaf(1.0, 2.0)
    assert_values(dg.autograd.grad(square_sum(x), get_gradient_edge(x))[0], [2, 4])


def test_gradient_edge_of_an_interior_tensor_as_an_input() -> None:
    y = leaf(1.0, 2.0) * 2
    assert_values(dg.autograd.grad(square_sum(y), get_gradient_edge(y))[0], [4, 8])


def test_gradient_edge_as_an_input_outlives_its_tensor() -> None:
    y = leaf(1.0, 2.0) * 2
    edge = get_gradient_edge(y)
    loss = square_sum(y)
    del y
    assert_values(dg.autograd.grad(loss, edge)[0], [4, 8])


def test_gradient_edges_and_tensors_as_inputs() -> None:
    x = leaf(1.0, 2.0)
    y = x * x
    by_y, by_x = dg.autograd.grad(square_sum(y), [get_gradient_edge(y), x])
    assert_values(by_y, [2, 8])
    assert_values(by_x, [4, 32])


def test_backward_with_the_edge_of_an_interior_tensor_fills_no_leaf() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    dg.autograd.backward(square_sum(y), inputs=[get_gradient_edge(y)])
    assert x.grad is None


def test_materialize_grads_with_an_unused_gradient_edge_raises() -> None:
    x = leaf(1.0, 2.0)
    message = "materialize_grads cannot be used when the given input is a GradientEdge"
    with pytest.raises(RuntimeError, match=message):
        dg.autograd.grad(square_sum(x), [x, get_gradient_edge(leaf(1.0))], materialize_grads=True)


def test_backward_runs_inside_jax_jit() -> None:
    def gradient(values: jax.Array) -> jax.Array:
        x = dg.as_tensor(values).requires_grad_()
        (x * x.exp()).sum().backward()
        assert x.grad is not None
        return x.grad.jax()

    values = jnp.array([1.0, 2.0])
    expected = jax.grad(lambda v: (v * jnp.exp(v)).sum())(values)
    np.testing.assert_allclose(jax.jit(gradient)(values), expected, rtol=1e-6)
