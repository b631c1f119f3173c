"""Three introductions to autograd, snippet by snippet: what their text states about each is true.

The texts are a chapter on how the backward graph is built (1), notes on the notions of autograd (2)
and a column on what the forward pass writes down (3). Only the import differs here. Where a text
slips, PyTorch is right: a factor that is a number has an edge too, `(None, 0)`; detach() shares the
version counter; `requires_grad_(True)` on an interior tensor is allowed.
"""

import itertools
import weakref
from typing import Any

import numpy as np
import pytest

import dyngraph as dg
from tests.graph.helpers import assert_values, leaf, node_of


def saved(tensor: dg.Tensor, field: str) -> Any:
    """What the grad_fn of `tensor` shows as `_saved_<field>`."""
    return getattr(tensor.grad_fn, f"_saved_{field}")


def names(tensor: dg.Tensor) -> list[str]:
    """The classes of the nodes along first edges, from the grad_fn of `tensor` to the end."""
    found, node = [], tensor.grad_fn
    while node is not None:
        found.append(type(node).__name__)
        node = node.next_functions[0][0] if node.next_functions else None
    return found


# 1, section 7.1: a @ b


def product_of_matrices() -> tuple[dg.Tensor, dg.Tensor, dg.Tensor, dg.Tensor]:
    """a, b, c and loss of the first snippet."""
    a = dg.randn(2, 3, requires_grad=True)
    b = dg.randn(3, 2, requires_grad=True)
    c = a @ b
    return a, b, c, c.sum()


def test_backward_fills_the_gradients_of_both_factors() -> None:
    a, b, _, loss = product_of_matrices()
    loss.backward()
    assert a.grad is not None and b.grad is not None


def test_gradients_of_a_matrix_product_are_grad_bt_and_at_grad() -> None:
    a, b, _, loss = product_of_matrices()
    loss.backward()
    ones = np.ones((2, 2), np.float32)
    assert_values(a.grad, ones @ b.detach().numpy().T)
    assert_values(b.grad, a.detach().numpy().T @ ones)


def test_matrix_product_is_made_by_mm_backward() -> None:
    _, _, c, loss = product_of_matrices()
    assert type(c.grad_fn).__name__ == "MmBackward0"
    assert names(loss) == ["SumBackward0", "MmBackward0", "AccumulateGrad"]


def test_edges_of_mm_backward_lead_to_the_accumulators_of_both_factors() -> None:
    a, b, c, _ = product_of_matrices()
    assert c.grad_fn is not None
    assert c.grad_fn.next_functions == ((node_of(a), 0), (node_of(b), 0))


def test_matrix_product_saves_both_factors() -> None:
    a, b, c, _ = product_of_matrices()
    assert saved(c, "self") is a
    assert saved(c, "mat2") is b


def test_matrix_product_of_constants_makes_no_node() -> None:
    c = dg.randn(2, 3) @ dg.randn(3, 2)
    assert c.grad_fn is None
    assert not c.requires_grad


# 1, section 7.2.1: leaf and interior


def leaf_and_interior() -> tuple[dg.Tensor, dg.Tensor, dg.Tensor, dg.Tensor]:
    """a, b, c = a + b and d = c * 2."""
    a = dg.randn(3, requires_grad=True)
    b = dg.randn(3, requires_grad=True)
    c = a + b
    return a, b, c, c * 2


def test_tensors_made_by_the_user_are_leaves() -> None:
    a, b, _, _ = leaf_and_interior()
    assert a.is_leaf and b.is_leaf


def test_results_of_operators_are_no_leaves() -> None:
    _, _, c, d = leaf_and_interior()
    assert not c.is_leaf and not d.is_leaf


def test_leaf_has_no_grad_fn() -> None:
    assert leaf_and_interior()[0].grad_fn is None


def test_grad_fn_of_a_sum_prints_as_add_backward() -> None:
    _, _, c, _ = leaf_and_interior()
    assert repr(c.grad_fn).startswith("<AddBackward0")


def test_tensor_prints_the_name_of_its_grad_fn() -> None:
    c = leaf(1.0, 2.0) + leaf(3.0, 4.0)
    assert repr(c) == "tensor([4., 6.], grad_fn=<AddBackward0>)"


# 1, section 7.3.1: the graph is no tree


def test_tensor_added_to_itself_gives_two_edges_to_one_accumulator() -> None:
    a = leaf(1.0, 2.0)
    c = a + a
    assert c.grad_fn is not None
    (first, _), (second, _) = c.grad_fn.next_functions
    assert first is second is node_of(a)


def test_gradients_along_both_edges_are_summed() -> None:
    a = leaf(1.0, 2.0)
    (a + a).sum().backward()
    assert_values(a.grad, [2, 2])


# 1, section 7.4.5: a graph followed from the first line to the last


def followed() -> tuple[dg.Tensor, ...]:
    """a, b, c = a + b, d = c * 2 and e = d.sum()."""
    a = dg.tensor([1.0, 2.0], requires_grad=True)
    b = dg.tensor([3.0, 4.0], requires_grad=True)
    c = a + b
    d = c * 2
    return a, b, c, d, d.sum()


def test_each_line_makes_its_node() -> None:
    *_, e = followed()
    assert names(e) == ["SumBackward0", "MulBackward0", "AddBackward0", "AccumulateGrad"]


def test_edges_of_the_addition_lead_to_both_leaves() -> None:
    a, b, c, _, _ = followed()
    assert c.grad_fn is not None
    assert c.grad_fn.next_functions == ((node_of(a), 0), (node_of(b), 0))


def test_edge_for_a_factor_that_is_a_number_is_empty() -> None:
    _, _, c, d, _ = followed()
    assert d.grad_fn is not None
    assert d.grad_fn.next_functions == ((c.grad_fn, 0), (None, 0))


def test_edge_of_the_sum_leads_to_the_product() -> None:
    _, _, _, d, e = followed()
    assert e.grad_fn is not None
    assert e.grad_fn.next_functions == ((d.grad_fn, 0),)


def test_accumulators_are_the_ends_of_the_graph() -> None:
    a, _, _, _, e = followed()
    assert e.requires_grad
    assert node_of(a).next_functions == ()


def test_backward_fills_both_leaves_with_the_factor() -> None:
    a, b, _, _, e = followed()
    e.backward()
    assert_values(a.grad, [2, 2])
    assert_values(b.grad, [2, 2])


def test_nodes_are_numbered_in_the_order_of_the_lines() -> None:
    _, _, c, d, e = followed()
    numbers = [node_of(tensor)._sequence_nr() for tensor in (c, d, e)]
    assert numbers == sorted(set(numbers))


# 1, section 7.5: saved tensors


def test_write_to_a_saved_factor_is_the_classic_error() -> None:
    a, b = leaf(1.0, 2.0), leaf(3.0, 4.0)
    mat2 = b * 1
    product = (a * mat2).sum()
    mat2.add_(1)
    with pytest.raises(RuntimeError, match="has been modified by an inplace operation"):
        product.backward()


def test_write_to_a_view_of_a_leaf_raises() -> None:
    x = dg.randn(3, requires_grad=True)
    y = x[0]
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        y *= 2


def test_write_to_a_view_makes_no_cycle(no_gc: None) -> None:
    x = dg.randn(3, requires_grad=True) * 1
    y = x[0]
    y *= 2
    saved_by = weakref.ref(node_of(y))
    y.sum().backward()
    del x, y
    assert saved_by() is None


def test_hooks_keep_saved_tensors_elsewhere() -> None:
    packed: list[Any] = []

    def pack_to_cpu(t: dg.Tensor) -> dg.Tensor:
        packed.append(t)
        return t.cpu()

    def unpack_from_cpu(t: dg.Tensor) -> dg.Tensor:
        return t.to("cpu")

    x = leaf(1.0, 2.0)
    with dg.autograd.graph.saved_tensors_hooks(pack_to_cpu, unpack_from_cpu):
        loss = (x * x).sum()
    assert len(packed) == 2
    loss.backward()
    assert_values(x.grad, [2.0, 4.0])


def test_hooks_may_quantize_what_is_saved() -> None:
    def pack(t: dg.Tensor) -> Any:
        scale = t.abs().max() / 127
        return (t / scale).round().to(dg.int8), scale

    x = leaf(0.5, 1.0)
    with dg.autograd.graph.saved_tensors_hooks(pack, lambda kept: kept[0].float() * kept[1]):
        loss = (x * x).sum()
    loss.backward()
    assert x.grad is not None
    assert x.grad.tolist() == pytest.approx([1.0, 2.0], abs=0.01)


class CheckpointFunction(dg.autograd.Function):
    """The checkpoint of section 7.5.3.5, which forgets that `fn` is an argument as well."""

    @staticmethod
    def forward(ctx: Any, fn: Any, *args: Any) -> Any:
        ctx.fn = fn
        ctx.save_for_backward(*args)
        with dg.no_grad():
            return fn(*args)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        args = ctx.saved_tensors
        with dg.enable_grad():
            outputs = ctx.fn(*args)
        return dg.autograd.grad(outputs, args, grad_outputs)


def test_checkpoint_of_the_text_returns_a_gradient_too_few() -> None:
    x = leaf(1.0, 2.0)
    y = CheckpointFunction.apply(lambda x: x.exp().sin(), x).sum()
    with pytest.raises(RuntimeError, match=r"incorrect number of gradients \(expected 2, got 1\)"):
        y.backward()


def test_checkpoint_that_returns_none_for_its_function_works() -> None:
    class Mended(CheckpointFunction):
        @staticmethod
        def backward(ctx: Any, *grad_outputs: Any) -> Any:
            return None, *CheckpointFunction.backward(ctx, *grad_outputs)

    x = leaf(1.0, 2.0)
    Mended.apply(lambda x: x.exp().sin(), x).sum().backward()
    assert_values(x.grad, (x.exp().cos() * x.exp()).tolist())


def test_checkpoint_gives_the_gradient_without_what_lies_between() -> None:
    x = leaf(1.0, 2.0)
    y = dg.utils.checkpoint.checkpoint(lambda x: x.exp().sin(), x, use_reentrant=False)
    y.sum().backward()
    assert_values(x.grad, (x.exp().cos() * x.exp()).tolist())


# 1, section 7.6: AccumulateGrad


def test_first_gradient_is_set_and_the_next_is_added() -> None:
    x = leaf(1.0, 2.0)
    for expected in ([3, 3], [6, 6]):
        (x * 3).sum().backward()
        assert_values(x.grad, expected)


def test_gradient_set_to_none_before_each_batch_does_not_accumulate() -> None:
    weight = leaf(1.0, 2.0)
    for batch in (dg.tensor([1.0, 2.0]), dg.tensor([3.0, 4.0])):
        weight.grad = None
        (weight * batch).sum().backward()
    assert_values(weight.grad, [3, 4])


def test_operators_on_one_leaf_share_its_accumulator() -> None:
    a = leaf(1.0, 2.0)
    first, second = a + 1, a * 2
    assert first.grad_fn is not None and second.grad_fn is not None
    assert first.grad_fn.next_functions[0][0] is second.grad_fn.next_functions[0][0]


def test_interior_tensor_has_no_grad_after_backward() -> None:
    a, b = leaf(1.0, 2.0), leaf(3.0, 4.0)
    c = a + b
    (c * 2).sum().backward()
    with pytest.warns(UserWarning, match=r"retain_grad\(\)"):
        assert c.grad is None


def test_interior_tensor_with_retain_grad_has_its_grad() -> None:
    a, b = leaf(1.0, 2.0), leaf(3.0, 4.0)
    c = a + b
    c.retain_grad()
    loss = (c * 2).sum()
    loss.backward()
    assert_values(c.grad, [2, 2])


def test_retain_graph_allows_grad_after_backward() -> None:
    parameters = [leaf(1.0, 2.0), leaf(3.0, 4.0)]
    loss = (parameters[0] * parameters[1]).sum()
    loss.backward(retain_graph=True)
    by_first, by_second = dg.autograd.grad(loss, parameters)
    assert_values(by_first, [3, 4])
    assert_values(by_second, [1, 2])


def test_grad_after_backward_with_retain_graph_leaves_grad_alone() -> None:
    x = leaf(1.0, 2.0)
    loss = (x * x).sum()
    loss.backward(retain_graph=True)
    dg.autograd.grad(loss, x)
    assert_values(x.grad, [2, 4])


# 1, sections 7.7 and 7.9: modes, and details that are easily missed


def test_no_grad_leaves_requires_grad_of_its_inputs_as_it_is() -> None:
    x = leaf(1.0, 2.0)
    with dg.no_grad():
        assert x.requires_grad


def test_graph_cut_by_no_grad_stays_cut_when_requires_grad_is_set_afterwards() -> None:
    x = leaf(1.0, 2.0)
    with dg.no_grad():
        y = x * 2
    assert y.grad_fn is None
    y.requires_grad = True
    (y * 3).sum().backward()
    assert_values(y.grad, [3, 3])
    assert x.grad is None


def test_inference_tensor_refuses_requires_grad_outside() -> None:
    with dg.inference_mode():
        y = leaf(1.0, 2.0) * 2
    with pytest.raises(RuntimeError, match="Setting requires_grad=True on inference tensor"):
        y.requires_grad = True


def test_set_grad_enabled_false_is_no_grad_as_a_function() -> None:
    x = leaf(1.0, 2.0)
    dg.set_grad_enabled(False)
    y = x * 2
    dg.set_grad_enabled(True)
    assert not y.requires_grad
    assert (x * 2).requires_grad


@pytest.mark.parametrize("train", [False, True])
def test_set_grad_enabled_records_as_its_condition_says(train: bool) -> None:
    x = leaf(1.0, 2.0)
    with dg.set_grad_enabled(train):
        y = x * 2
    assert y.requires_grad is train


def test_enable_grad_inside_no_grad_records() -> None:
    x = leaf(1.0, 2.0)
    with dg.no_grad():
        with dg.enable_grad():
            y = x * 2
        z = x * 2
    assert y.requires_grad and not z.requires_grad
    y.sum().backward()
    assert_values(x.grad, [2, 2])


def test_requires_grad_can_be_set_on_a_leaf() -> None:
    x = dg.tensor([1.0, 2.0])
    x.requires_grad_(True)
    (x * 2).sum().backward()
    assert_values(x.grad, [2, 2])


def test_requires_grad_cannot_be_taken_from_an_interior_tensor() -> None:
    c = leaf(1.0, 2.0) * 2
    with pytest.raises(RuntimeError, match="you can only change requires_grad flags of leaf"):
        c.requires_grad_(False)


def test_detached_tensor_has_the_values_and_no_history() -> None:
    c = (leaf(1.0, 2.0) * 2).detach()
    assert_values(c, [2, 4])
    assert c.grad_fn is None and not c.requires_grad


def test_data_has_the_values_and_no_history() -> None:
    c = (leaf(1.0, 2.0) * 2).data
    assert_values(c, [2, 4])
    assert c.grad_fn is None and not c.requires_grad


def test_hooks_on_parameters_clip_their_gradients() -> None:
    parameters = [leaf(1.0, 2.0), leaf(3.0, 4.0), dg.tensor([5.0, 6.0])]
    for p in parameters:
        if p.requires_grad:
            p.register_hook(lambda grad: dg.clamp(grad, -1.0, 1.0))
    weights = dg.tensor([0.5, -20.0])
    dg.stack([p * weights for p in parameters]).sum().backward()
    assert_values(parameters[0].grad, [0.5, -1])
    assert_values(parameters[1].grad, [0.5, -1])


# 1, section 7.8: autograd.Function


class MyExp(dg.autograd.Function):
    """The operation of section 7.8."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x.exp()

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        (x,) = ctx.saved_tensors
        return grad_output * x.exp()


def test_function_has_the_gradient_that_it_returns() -> None:
    x = dg.randn(3, requires_grad=True)
    y = MyExp.apply(x)
    y.sum().backward()
    assert_values(x.grad, x.exp().tolist())


def test_function_is_a_node_like_those_of_operators() -> None:
    y = MyExp.apply(dg.randn(3, requires_grad=True))
    assert repr(y.grad_fn) == "<MyExpBackward>"
    assert names(y) == ["MyExpBackward", "AccumulateGrad"]


def test_what_a_function_saves_has_its_version_checked() -> None:
    x = dg.randn(3, requires_grad=True) * 1
    y = MyExp.apply(x)
    x.add_(1)
    with pytest.raises(RuntimeError, match="one of the variables needed for gradient computation"):
        y.sum().backward()


def test_custom_operator_is_the_newer_way() -> None:
    op = dg.library.custom_op("seeds::my_exp", lambda x: x.exp(), mutates_args=())
    op.register_autograd(
        lambda ctx, grad: grad * ctx.saved_tensors[0].exp(),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
    )
    x = dg.randn(3, requires_grad=True)
    op(x).sum().backward()
    assert_values(x.grad, x.exp().tolist())


# 1, section 7.13: finding what went wrong


def test_anomaly_mode_tells_where_the_saved_value_came_from() -> None:
    with dg.autograd.set_detect_anomaly(True):
        x = leaf(1.0, 2.0) * 1
        y = (x * x).sum()
        x.mul_(2)
        with (
            pytest.warns(UserWarning, match="test_seeds"),
            pytest.raises(RuntimeError, match=r"It was saved at .*test_seeds"),
        ):
            y.backward()


def test_gradcheck_verifies_the_backward_of_an_operator() -> None:
    assert dg.autograd.gradcheck(MyExp.apply, (dg.rand(3, requires_grad=True),))


# 1, section 7.11: the exercise


def exercise() -> tuple[dg.Tensor, ...]:
    """a, b, c = a * b, d = c.sum(), e = a.exp(), f = e.sum() and loss = d + f."""
    a = dg.randn(3, requires_grad=True)
    b = dg.randn(3, requires_grad=True)
    c = a * b
    d = c.sum()
    e = a.exp()
    f = e.sum()
    return a, b, c, d, e, f, d + f


def test_exercise_has_two_leaves_and_five_interior_tensors() -> None:
    assert [tensor.is_leaf for tensor in exercise()] == [True, True, *[False] * 5]


def test_exercise_has_these_nodes() -> None:
    _, _, *interior = exercise()
    assert [type(tensor.grad_fn).__name__ for tensor in interior] == [
        "MulBackward0",
        "SumBackward0",
        "ExpBackward0",
        "SumBackward0",
        "AddBackward0",
    ]


def test_exercise_has_these_edges() -> None:
    a, b, *interior = exercise()
    c, d, e, f, _ = interior
    edges = [tensor.grad_fn.next_functions for tensor in interior if tensor.grad_fn is not None]
    assert edges == [
        ((node_of(a), 0), (node_of(b), 0)),
        ((c.grad_fn, 0),),
        ((node_of(a), 0),),
        ((e.grad_fn, 0),),
        ((d.grad_fn, 0), (f.grad_fn, 0)),
    ]


def test_gradients_of_the_exercise_are_b_plus_exp_a_and_a() -> None:
    a, b, *_, loss = exercise()
    loss.backward()
    assert_values(a.grad, (b + a.exp()).detach().numpy())
    assert_values(b.grad, a.detach().numpy())


def test_grad_verifies_the_exercise_as_well() -> None:
    a, b, *_, loss = exercise()
    by_a, by_b = dg.autograd.grad(loss, (a, b))
    assert_values(by_a, (b + a.exp()).detach().numpy())
    assert_values(by_b, a.detach().numpy())


# 2: the vector of a vector-Jacobian product


def test_gradient_passed_to_backward_weighs_the_outputs() -> None:
    x = dg.tensor([2.0, 3.0], requires_grad=True)
    y = x**2
    y.backward(dg.tensor([0.1, 2.0]))
    assert_values(x.grad, [0.4, 12])


def test_gradient_of_the_weighted_outputs_prints_aligned() -> None:
    x = dg.tensor([2.0, 3.0], requires_grad=True)
    y = x**2
    y.backward(dg.tensor([0.1, 2.0]))
    assert repr(x.grad) == "tensor([ 0.4000, 12.0000])"


def test_backward_of_the_weighted_sum_gives_the_same_gradient() -> None:
    x = dg.tensor([2.0, 3.0], requires_grad=True)
    y = x**2
    loss = 0.1 * y[0] + 2.0 * y[1]
    loss.backward()
    assert_values(x.grad, [0.4, 12])


def test_backward_of_a_scalar_starts_from_one() -> None:
    loss = leaf(2.0) * 3
    loss.retain_grad()
    loss.backward()
    assert_values(loss.grad, 1)


# 2: requires_grad, leaf, grad_fn, grad


def test_result_requires_grad_if_one_input_does() -> None:
    x = dg.randn(3, requires_grad=True)
    w = dg.randn(3, requires_grad=False)
    y = x * w
    assert y.requires_grad
    assert type(y.grad_fn).__name__ == "MulBackward0"


def test_edge_for_an_input_without_grad_is_empty() -> None:
    x = dg.randn(3, requires_grad=True)
    y = x * dg.randn(3, requires_grad=False)
    assert y.grad_fn is not None
    assert y.grad_fn.next_functions == ((node_of(x), 0), (None, 0))


def test_input_without_grad_gets_none() -> None:
    x = dg.randn(3, requires_grad=True)
    w = dg.randn(3, requires_grad=False)
    (x * w).sum().backward()
    assert w.grad is None
    assert_values(x.grad, w.numpy())


def test_tensor_made_by_the_user_is_a_leaf_without_grad_fn() -> None:
    x = dg.randn(3, requires_grad=True)
    assert x.is_leaf
    assert x.grad_fn is None


def relu_chain() -> tuple[dg.Tensor, ...]:
    """x = 2, a = x * 3, b = a.relu() and loss = b.sum()."""
    x = dg.tensor(2.0, requires_grad=True)
    a = x * 3
    b = a.relu()
    return x, a, b, b.sum()


def test_relu_chain_has_these_nodes() -> None:
    *_, loss = relu_chain()
    assert names(loss) == ["SumBackward0", "ReluBackward0", "MulBackward0", "AccumulateGrad"]


def test_relu_chain_keeps_the_gradient_of_its_leaf() -> None:
    x, _, _, loss = relu_chain()
    loss.backward()
    assert_values(x.grad, 3)


def test_relu_chain_lets_nothing_through_where_it_cuts() -> None:
    x = dg.tensor(-2.0, requires_grad=True)
    (x * 3).relu().sum().backward()
    assert_values(x.grad, 0)


# 2: saved tensors


def test_power_saves_its_base() -> None:
    x = dg.randn(5, requires_grad=True)
    y = x.pow(2)
    assert type(y.grad_fn).__name__ == "PowBackward0"
    assert saved(y, "self") is x


def test_power_saves_its_exponent() -> None:
    y = dg.randn(5, requires_grad=True).pow(2)
    assert saved(y, "exponent") == 2


def test_saved_fields_are_none_of_the_tensors_own() -> None:
    y = dg.randn(5, requires_grad=True).pow(2)
    assert not hasattr(y, "_saved_self")


def test_detached_tensor_shares_the_version_counter_of_its_source() -> None:
    x = leaf(1.0, 2.0)
    dg.autograd.graph.increment_version(x.detach())
    assert x._version == 1


# 2: no_grad and inference_mode


def test_no_grad_ends_with_its_block() -> None:
    x = leaf(1.0, 2.0)
    with dg.no_grad():
        assert not (x * 2).requires_grad
    assert (x * 2).requires_grad


def test_result_of_no_grad_enters_a_graph_as_a_constant() -> None:
    x = leaf(1.0, 2.0)
    with dg.no_grad():
        constant = x * 2
    (x * constant).sum().backward()
    assert_values(x.grad, [2, 4])


def test_result_of_inference_mode_is_an_inference_tensor() -> None:
    with dg.inference_mode():
        logits = leaf(1.0, 2.0) * 2
    assert logits.is_inference() and not logits.requires_grad


def test_inference_tensor_cannot_be_saved_for_backward() -> None:
    with dg.inference_mode():
        constant = leaf(1.0, 2.0) * 2
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        _ = leaf(1.0, 2.0) * constant


# 2: a Function of one's own


class Square(dg.autograd.Function):
    """The Function of the notes."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, grad_out: Any) -> Any:
        (x,) = ctx.saved_tensors
        return grad_out * 2 * x


def test_square_is_one_node() -> None:
    assert names(Square.apply(leaf(3.0))) == ["SquareBackward", "AccumulateGrad"]


def test_square_has_twice_its_argument_as_gradient() -> None:
    x = leaf(3.0)
    Square.apply(x).backward()
    assert_values(x.grad, 6.0)


def test_what_is_no_tensor_can_be_put_on_ctx() -> None:
    class Power(dg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, n: int) -> Any:
            ctx.n = n
            ctx.save_for_backward(x)
            return x**n

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            return grad * ctx.n * x ** (ctx.n - 1), None

    x = leaf(2.0)
    Power.apply(x, 3).backward()
    assert_values(x.grad, 12.0)


def test_write_to_a_saved_leaf_under_no_grad_is_found() -> None:
    x = dg.tensor(2.0, requires_grad=True)
    y = x**2
    with dg.no_grad():
        x.add_(10)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


# 3: what the forward pass writes down


def written_down() -> tuple[dg.Tensor, ...]:
    """x = 3, a = x * 2, b = a + 1 and loss = b ** 2."""
    x = dg.tensor(3.0, requires_grad=True)
    a = x * 2
    b = a + 1
    return x, a, b, b**2


def test_results_of_a_tracked_tensor_are_tracked() -> None:
    assert all(tensor.requires_grad for tensor in written_down())


def test_values_are_those_of_plain_arithmetic() -> None:
    assert [tensor.item() for tensor in written_down()] == [3, 6, 7, 49]


def test_each_line_writes_down_its_node() -> None:
    *_, loss = written_down()
    assert names(loss) == ["PowBackward0", "AddBackward0", "MulBackward0", "AccumulateGrad"]


@pytest.mark.parametrize("position, name", [(1, "MulBackward0"), (3, "PowBackward0")])
def test_grad_fn_prints_its_name(position: int, name: str) -> None:
    assert repr(written_down()[position].grad_fn).startswith(f"<{name}")


def test_next_functions_lead_upstream() -> None:
    x, a, b, loss = written_down()
    chain = [loss, b, a, x]
    for tensor, upstream in itertools.pairwise(chain):
        assert node_of(tensor).next_functions[0] == (node_of(upstream), 0)


def test_accumulator_at_the_end_belongs_to_the_leaf() -> None:
    x, a, _, _ = written_down()
    assert getattr(node_of(a).next_functions[0][0], "variable", None) is x


def test_chain_rule_multiplies_the_steps() -> None:
    x, *_, loss = written_down()
    loss.backward()
    assert_values(x.grad, 2 * 7 * 2)


def test_product_saves_both_factors() -> None:
    x, y = leaf(2.0), leaf(5.0)
    a = x * y
    assert saved(a, "self") is x
    assert saved(a, "other") is y


def test_gradient_of_each_factor_is_the_other() -> None:
    x, y = leaf(2.0), leaf(5.0)
    (x * y).backward()
    assert_values(x.grad, 5)
    assert_values(y.grad, 2)


@pytest.mark.parametrize(
    "value, nodes, gradient",
    [
        (2.0, ["MulBackward0", "MulBackward0", "MulBackward0", "AccumulateGrad"], 8),
        (-2.0, ["ExpBackward0", "AccumulateGrad"], np.exp(-2)),
    ],
    ids=["loop", "else"],
)
def test_graph_is_that_of_the_branch_that_ran(
    value: float, nodes: list[str], gradient: float
) -> None:
    x = leaf(value)
    y = x
    if x > 0:
        for _ in range(3):
            y = y * 2
    else:
        y = y.exp()
    assert names(y) == nodes
    y.backward()
    assert_values(x.grad, gradient)


def test_function_decorated_by_no_grad_builds_no_graph() -> None:
    @dg.no_grad()
    def estimate_loss(weight: dg.Tensor) -> dg.Tensor:
        return (weight * weight).sum()

    assert estimate_loss(leaf(1.0, 2.0)).grad_fn is None


def test_backward_of_something_untracked_raises() -> None:
    loss = dg.tensor([1.0, 2.0]).sum()
    with pytest.raises(RuntimeError, match="element 0 of tensors does not require grad"):
        loss.backward()


def test_backward_a_second_time_raises() -> None:
    *_, loss = written_down()
    loss.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        loss.backward()


def test_reading_what_was_saved_after_backward_raises() -> None:
    *_, loss = written_down()
    loss.backward()
    with pytest.raises(RuntimeError, match="directly access saved tensors after they have already"):
        _ = saved(loss, "self")
