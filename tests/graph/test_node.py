"""What a node of the backward graph shows: its name, edges, metadata, saved tensors, its call."""

from collections.abc import Callable

import numpy as np
import pytest

import dyngraph as dg
from dyngraph.autograd.graph import GradientEdge, Node, get_gradient_edge
from tests.graph.helpers import assert_values, leaf, node_of

FREED = "directly access saved tensors after they have already been freed"

NAMES: dict[str, Callable[[dg.Tensor], dg.Tensor]] = {
    "AddBackward0": lambda x: x + 1,
    "SubBackward0": lambda x: x - x,
    "MulBackward0": lambda x: x * 2,
    "DivBackward0": lambda x: x / 2,
    "NegBackward0": lambda x: -x,
    "PowBackward0": lambda x: x**2,
    "PowBackward1": lambda x: x**x,
    "ExpBackward0": lambda x: x.exp(),
    "LogBackward0": lambda x: x.log(),
    "SinBackward0": lambda x: x.sin(),
    "TanhBackward0": lambda x: x.tanh(),
    "SumBackward0": lambda x: x.sum(),
    "MeanBackward0": lambda x: x.mean(),
    "SelectBackward0": lambda x: x[0],
    "SliceBackward0": lambda x: x[:1],
    "UnsqueezeBackward0": lambda x: x[None],
    "IndexBackward0": lambda x: x[dg.tensor([1, 0])],
    "ViewBackward0": lambda x: x.reshape(2, 1),
    "ExpandBackward0": lambda x: x.expand(3, 2),
    "UnbindBackward0": lambda x: x.unbind()[0],
    "CloneBackward0": lambda x: x.clone(),
    "DotBackward0": lambda x: x @ x,
    "MmBackward0": lambda x: x.reshape(2, 1) @ x.reshape(1, 2),
}


# Which tensors have a node


def test_leaf_has_no_grad_fn() -> None:
    assert leaf(1.0).grad_fn is None


def test_result_has_a_grad_fn() -> None:
    assert (leaf(1.0) * 2).grad_fn is not None


def test_result_of_constants_has_no_grad_fn() -> None:
    assert (dg.ones(2) * dg.ones(2)).grad_fn is None


def test_result_under_no_grad_has_no_grad_fn() -> None:
    with dg.no_grad():
        y = leaf(1.0) * 2
    assert y.grad_fn is None and not y.requires_grad


def test_detached_tensor_has_no_grad_fn() -> None:
    assert (leaf(1.0) * 2).detach().grad_fn is None


def test_grad_fn_is_the_same_object_each_time() -> None:
    y = leaf(1.0) * 2
    assert y.grad_fn is y.grad_fn


def test_grad_fn_first_read_under_no_grad_is_the_recorded_one() -> None:
    y = leaf(1.0, 2.0).reshape(2, 1)
    with dg.no_grad():
        node = y.grad_fn
    assert node is not None and y.grad_fn is node


def test_grad_fn_cannot_be_assigned() -> None:
    y = leaf(1.0) * 2
    with pytest.raises(AttributeError, match="grad_fn"):
        y.grad_fn = None  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    "make, is_leaf",
    [
        (lambda: leaf(1.0), True),
        (lambda: dg.tensor(1.0), True),
        (lambda: dg.tensor(1.0) * 2, True),
        (lambda: leaf(1.0) * 2, False),
        (lambda: (leaf(1.0) * 2).detach(), True),
    ],
    ids=["leaf", "constant", "result of constants", "result", "detached"],
)
def test_is_leaf_means_made_by_no_recorded_operation(
    make: Callable[[], dg.Tensor], is_leaf: bool
) -> None:
    assert make().is_leaf is is_leaf


def test_requires_grad_of_an_interior_tensor_cannot_be_changed() -> None:
    y = leaf(1.0) * 2
    with pytest.raises(RuntimeError, match="only change requires_grad flags of leaf variables"):
        y.requires_grad = False


def test_integers_cannot_require_grad() -> None:
    with pytest.raises(RuntimeError, match="floating point and complex dtype can require"):
        dg.tensor([1], requires_grad=True)


def test_one_input_that_requires_grad_is_enough() -> None:
    assert (dg.tensor(1.0) * leaf(1.0) + dg.tensor(2.0)).requires_grad


# Names


@pytest.mark.parametrize("name", NAMES)
def test_node_is_named_after_its_operator(name: str) -> None:
    assert node_of(NAMES[name](leaf(1.0, 2.0))).name() == name


def test_name_of_a_node_is_the_name_of_its_class() -> None:
    node = node_of(leaf(1.0).exp())
    assert type(node).__name__ == "ExpBackward0"


def test_node_of_a_leaf_is_an_accumulate_grad() -> None:
    node = node_of(leaf(1.0))
    assert type(node).__name__ == "AccumulateGrad"
    assert node.name().endswith("AccumulateGrad")


@pytest.mark.parametrize(
    "make, text",
    [
        (lambda x: x * 2, "tensor([2., 4.], grad_fn=<MulBackward0>)"),
        (lambda x: x.sum(), "tensor(3., grad_fn=<SumBackward0>)"),
        (lambda x: x, "tensor([1., 2.], requires_grad=True)"),
        (lambda x: x.detach(), "tensor([1., 2.])"),
    ],
    ids=["interior", "scalar", "leaf", "detached"],
)
def test_printed_tensor_shows_where_it_comes_from(
    make: Callable[[dg.Tensor], dg.Tensor], text: str
) -> None:
    assert repr(make(leaf(1.0, 2.0))) == text


@pytest.mark.parametrize("make", [lambda x: x, lambda x: x * 2], ids=["leaf", "interior"])
def test_every_node_is_an_instance_of_node(make: Callable[[dg.Tensor], dg.Tensor]) -> None:
    node = node_of(make(leaf(1.0)))
    assert isinstance(node, Node)
    assert issubclass(type(node), Node)


def test_nodes_can_be_members_of_a_set() -> None:
    x = leaf(1.0)
    y = x * x
    assert len({node_of(x), node_of(y), node_of(x)}) == 2


# Edges


def test_edge_to_a_leaf_leads_to_its_accumulate_grad() -> None:
    x = leaf(1.0)
    assert node_of(-x).next_functions == ((node_of(x), 0),)


def test_edge_to_an_interior_tensor_leads_to_its_grad_fn() -> None:
    y = leaf(1.0) * 2
    assert node_of(-y).next_functions == ((y.grad_fn, 0),)


def test_edge_to_a_constant_is_none() -> None:
    x = leaf(1.0)
    assert node_of(x * dg.tensor(2.0)).next_functions == ((node_of(x), 0), (None, 0))


def test_edge_to_a_python_number_is_none() -> None:
    x = leaf(1.0)
    assert node_of(x * 2).next_functions == ((node_of(x), 0), (None, 0))


def test_edges_are_in_the_order_of_the_inputs() -> None:
    x = leaf(1.0)
    assert node_of(dg.tensor(2.0) * x).next_functions == ((None, 0), (node_of(x), 0))


def test_tensor_added_to_itself_has_two_equal_edges() -> None:
    a = leaf(1.0) * 2
    assert node_of(a + a).next_functions == ((a.grad_fn, 0), (a.grad_fn, 0))


def test_edge_says_which_output_was_used() -> None:
    _, second = leaf(1.0, 2.0).unbind()
    assert node_of(-second).next_functions == ((second.grad_fn, 1),)


def test_node_of_a_list_of_tensors_has_an_edge_for_each() -> None:
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    edges = node_of(dg.stack([x, dg.ones(2), y])).next_functions
    assert edges == ((node_of(x), 0), (None, 0), (node_of(y), 0))


def test_accumulate_grad_has_no_edges() -> None:
    assert node_of(leaf(1.0)).next_functions == ()


def test_graphs_over_one_leaf_share_its_accumulate_grad() -> None:
    x = leaf(1.0)
    first, second = x * 2, x + 1
    assert node_of(first).next_functions[0][0] is node_of(second).next_functions[0][0]


def test_accumulate_grad_knows_its_leaf() -> None:
    x = leaf(1.0)
    assert node_of(x).variable is x


def test_following_the_edges_reaches_the_leaf() -> None:
    x = leaf(1.0)
    node = node_of(((x * 2).exp() + 1).sum())
    names = []
    while node is not None:
        names.append(node.name())
        node = node.next_functions[0][0] if node.next_functions else None
    assert names[:-1] == ["SumBackward0", "AddBackward0", "ExpBackward0", "MulBackward0"]


@pytest.mark.parametrize("make", [lambda x: x, lambda x: x * 2], ids=["leaf", "interior"])
def test_node_requires_grad(make: Callable[[dg.Tensor], dg.Tensor]) -> None:
    assert node_of(make(leaf(1.0))).requires_grad is True


# output_nr, gradient edges


def test_output_nr_of_a_leaf_is_zero() -> None:
    assert leaf(1.0).output_nr == 0


def test_output_nr_counts_the_outputs_of_a_node() -> None:
    assert [part.output_nr for part in leaf(1.0, 2.0, 3.0).unbind()] == [0, 1, 2]


def test_outputs_of_one_operation_share_their_node() -> None:
    first, second = leaf(1.0, 2.0).unbind()
    assert first.grad_fn is second.grad_fn


def test_gradient_edge_of_an_interior_tensor_names_its_grad_fn() -> None:
    _, second = leaf(1.0, 2.0).unbind()
    edge = get_gradient_edge(second)
    assert edge.node is second.grad_fn
    assert edge.output_nr == 1


def test_gradient_edge_is_a_named_tuple() -> None:
    y = leaf(1.0) * 2
    edge = get_gradient_edge(y)
    assert isinstance(edge, GradientEdge) and isinstance(edge, tuple)
    assert edge[:2] == (y.grad_fn, 0)


def test_gradient_edges_of_one_tensor_are_equal() -> None:
    x = leaf(1.0)
    assert get_gradient_edge(x) == get_gradient_edge(x)


def test_gradient_edge_can_be_made_from_a_node() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    (by_y,) = dg.autograd.grad((y * y).sum(), GradientEdge(node_of(y), 0))
    assert_values(by_y, [4, 8])


def test_gradient_edge_of_a_constant_raises() -> None:
    with pytest.raises(RuntimeError, match="gradient edge for a Tensor that does not require"):
        get_gradient_edge(dg.tensor(1.0))


def test_gradients_to_several_nodes_at_once() -> None:
    x = leaf(1.0, 2.0)
    y = x * x
    z = y.exp()
    edges = [get_gradient_edge(tensor) for tensor in (z, y, x)]
    by_z, by_y, by_x = dg.autograd.grad(z.sum(), edges)
    assert_values(by_z, [1, 1])
    assert_values(by_y, np.exp([1, 4]))
    assert_values(by_x, np.exp([1, 4]) * [2, 4])


def test_gradient_to_the_edge_of_each_output_of_a_node() -> None:
    node = node_of(leaf(2.0, 3.0).unbind()[0])
    first, second = (GradientEdge(node, number) for number in (0, 1))
    weights = [dg.tensor(5.0), dg.tensor(7.0)]
    by_second, by_first = dg.autograd.grad([first, second], [second, first], weights)
    assert_values(by_second, 7)
    assert_values(by_first, 5)


def test_branch_through_integers_is_isolated_from_the_graph() -> None:
    x = leaf(1.0, 3.0)
    y = x * 2
    weight = y.argmax().to(dg.float32)
    assert not weight.requires_grad
    (y * weight).sum().backward()
    assert_values(x.grad, [2, 2])


# metadata


def test_metadata_is_an_empty_dict_at_first() -> None:
    assert node_of(leaf(1.0) * 2).metadata == {}


def test_metadata_keeps_what_is_written() -> None:
    y = leaf(1.0) * 2
    node_of(y).metadata["key"] = "value"
    assert node_of(y).metadata == {"key": "value"}


def test_nodes_do_not_share_metadata() -> None:
    x = leaf(1.0)
    first, second = x * 2, x * 2
    node_of(first).metadata["key"] = "value"
    assert node_of(second).metadata == {}


def test_metadata_survives_backward() -> None:
    y = leaf(1.0) * 2
    node_of(y).metadata["key"] = "value"
    y.backward()
    assert node_of(y).metadata == {"key": "value"}


def test_input_metadata_describes_each_output_of_the_operation() -> None:
    node = node_of(dg.ones(2, 3, requires_grad=True).unbind()[0])
    assert [tuple(data.shape) for data in node._input_metadata] == [(3,), (3,)]
    assert [data.dtype for data in node._input_metadata] == [dg.float32, dg.float32]


def test_input_metadata_names_the_device() -> None:
    y = leaf(1.0) * 2
    assert node_of(y)._input_metadata[0].device == y.device


def test_input_metadata_of_a_leaf_is_its_shape() -> None:
    assert tuple(node_of(leaf(1.0, 2.0))._input_metadata[0].shape) == (2,)


# Sequence numbers


def test_later_node_has_a_greater_sequence_number() -> None:
    x = leaf(1.0)
    first, second = x * 2, x * 2
    assert node_of(first)._sequence_nr() < node_of(second)._sequence_nr()


def test_sequence_numbers_follow_creation_and_not_the_graph() -> None:
    x = leaf(1.0)
    y = x * 2
    unrelated = leaf(1.0) * 2
    z = y * 2
    numbers = [node_of(tensor)._sequence_nr() for tensor in (y, unrelated, z)]
    assert numbers == sorted(numbers)


def test_accumulate_grad_comes_before_every_other_node() -> None:
    x = leaf(1.0)
    y = x * 2
    assert node_of(x)._sequence_nr() > node_of(y)._sequence_nr()


@pytest.mark.parametrize("make", [lambda x: x, lambda x: x * 2], ids=["leaf", "interior"])
def test_sequence_number_can_be_set(make: Callable[[dg.Tensor], dg.Tensor]) -> None:
    node = node_of(make(leaf(1.0)))
    node._set_sequence_nr(7)
    assert node._sequence_nr() == 7


# Saved tensors


def test_saved_input_is_the_leaf_itself() -> None:
    x = leaf(1.0, 2.0)
    assert node_of(x * x)._saved_self is x


def test_saved_input_keeps_its_history() -> None:
    y = leaf(1.0, 2.0) * 2
    saved = node_of(y * y)._saved_self
    assert_values(saved, [2, 4])
    assert saved.grad_fn is y.grad_fn


def test_saved_input_keeps_its_output_nr() -> None:
    _, second = leaf(1.0, 2.0).unbind()
    assert node_of(second * second)._saved_self.output_nr == 1


def test_saved_constant_shares_the_version_of_the_constant() -> None:
    constant = dg.tensor([5.0, 6.0])
    saved = node_of(leaf(1.0, 2.0) * constant)._saved_other
    dg.autograd.graph.increment_version(constant)
    assert saved._version == constant._version == 1


def test_input_that_no_gradient_needs_is_not_saved() -> None:
    assert node_of(leaf(1.0, 2.0) * dg.tensor([5.0, 6.0]))._saved_self is None


@pytest.mark.parametrize("name", ["exp", "tanh", "sigmoid", "sqrt"])
def test_saved_result_has_the_values_and_the_history_of_the_output(name: str) -> None:
    y = getattr(leaf(1.0, 2.0), name)()
    saved = node_of(y)._saved_result
    assert_values(saved, y.detach().numpy())
    assert saved.grad_fn is y.grad_fn and saved.requires_grad


def test_saved_result_is_another_tensor_than_the_output() -> None:
    y = leaf(1.0, 2.0).exp()
    assert node_of(y)._saved_result is not y


def test_saved_result_can_be_differentiated() -> None:
    x = leaf(1.0, 2.0)
    y = x.exp()
    (by_x,) = dg.autograd.grad(node_of(y)._saved_result.sum(), x)
    assert_values(by_x, np.exp([1, 2]))


def test_saved_python_values() -> None:
    x = dg.ones(2, 3, requires_grad=True)
    assert node_of(x**3)._saved_exponent == 3
    assert node_of(x.sum(1))._saved_dim == 1
    assert node_of(x.sum(1, keepdim=True))._saved_keepdim is True
    assert node_of(x.sum())._saved_self_sym_sizes == (2, 3)


def test_unknown_saved_field_raises() -> None:
    node = node_of(leaf(1.0) * 2)
    with pytest.raises(AttributeError, match=r"MulBackward0.* has no attribute '_saved_nothing'"):
        _ = node._saved_nothing


@pytest.mark.parametrize("make", [lambda x: x * x, lambda x: x.exp()], ids=["input", "result"])
def test_reading_a_saved_tensor_after_backward_raises(
    make: Callable[[dg.Tensor], dg.Tensor],
) -> None:
    y = make(leaf(1.0, 2.0))
    field = "_saved_self" if node_of(y).name() == "MulBackward0" else "_saved_result"
    y.sum().backward()
    with pytest.raises(RuntimeError, match=FREED):
        getattr(y.grad_fn, field)


def test_saved_tensor_stays_with_retain_graph() -> None:
    x = leaf(1.0, 2.0)
    y = x * x
    y.sum().backward(retain_graph=True)
    assert node_of(y)._saved_self is x


def test_saved_python_value_stays_after_backward() -> None:
    y = leaf(1.0, 2.0).sum(0)
    y.backward()
    assert node_of(y)._saved_dim == 0


def test_saved_tensor_can_be_read_in_a_hook() -> None:
    x = leaf(2.0)
    y = x * x
    seen: list[float] = []
    y.register_hook(lambda grad: seen.append(node_of(y)._saved_self.item()))
    y.backward()
    assert seen == [2]


def test_raw_saved_tensor_unpacks_to_the_saved_tensor() -> None:
    x = leaf(1.0, 2.0)
    raw = node_of(x * x)._raw_saved_self
    assert isinstance(raw, dg.autograd.SavedTensor)
    assert raw.unpack() is x


def test_raw_saved_tensor_without_hooks_has_no_unpack_hook() -> None:
    x = leaf(1.0, 2.0)
    assert node_of(x * x)._raw_saved_self.unpack_hook is None


def test_data_of_a_raw_saved_tensor_is_what_was_saved() -> None:
    x = leaf(1.0, 2.0)
    assert_values(node_of(x * x)._raw_saved_self.data, [1, 2])


def test_data_of_a_raw_saved_tensor_is_none_once_freed() -> None:
    x = leaf(1.0, 2.0)
    y = x * x
    y.sum().backward()
    assert node_of(y)._raw_saved_self.data is None


def test_saved_tensor_cannot_be_constructed() -> None:
    with pytest.raises(RuntimeError, match="SavedTensor object from Python is forbidden"):
        dg.autograd.SavedTensor()


# Calling a node


def test_called_node_returns_a_gradient_for_each_input() -> None:
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    by_x, by_y = node_of(x * y)(dg.tensor([1.0, 10.0]))
    assert_values(by_x, [3, 40])
    assert_values(by_y, [1, 20])


def test_called_node_returns_a_bare_tensor_for_one_input() -> None:
    x = leaf(1.0, 2.0)
    assert_values(node_of(x.exp())(dg.ones(2)), np.exp([1, 2]))


def test_called_node_returns_none_for_a_constant() -> None:
    by_x, by_constant = node_of(leaf(1.0) * dg.tensor(5.0))(dg.tensor(1.0))
    assert_values(by_x, 5)
    assert by_constant is None


def test_node_called_with_none_returns_none() -> None:
    x = leaf(1.0, 2.0)
    assert node_of(x * x)(None) == (None, None)


def test_node_with_several_outputs_takes_a_gradient_for_each() -> None:
    node = node_of(leaf(1.0, 2.0).unbind()[0])
    assert_values(node(dg.tensor(5.0), dg.tensor(6.0)), [5, 6])


def test_missing_gradient_of_one_output_counts_as_zero() -> None:
    node = node_of(leaf(1.0, 2.0).unbind()[0])
    assert_values(node(None, dg.tensor(6.0)), [0, 6])


def test_called_node_frees_nothing() -> None:
    x = leaf(1.0, 2.0)
    node = node_of(x * x)
    node(dg.ones(2))
    assert_values(node(dg.ones(2))[0], [1, 2])


def test_called_node_does_not_touch_grad() -> None:
    x = leaf(1.0, 2.0)
    node_of(x * x)(dg.ones(2))
    assert x.grad is None


def test_call_of_a_node_is_recorded() -> None:
    x = leaf(1.0, 2.0)
    by_self, by_other = node_of(x * x)(dg.ones(2))
    (second,) = dg.autograd.grad((by_self + by_other).sum(), x)
    assert_values(second, [2, 2])


def test_call_of_a_node_under_no_grad_is_not_recorded() -> None:
    x = leaf(1.0, 2.0)
    node = node_of(x * x)
    with dg.no_grad():
        by_x, _ = node(dg.ones(2))
    assert not by_x.requires_grad


def test_called_accumulate_grad_adds_to_grad() -> None:
    x = leaf(1.0, 2.0)
    node = node_of(x)
    node(dg.tensor([1.0, 2.0]))
    node(dg.tensor([1.0, 2.0]))
    assert_values(x.grad, [2, 4])


def test_called_accumulate_grad_returns_an_empty_tuple() -> None:
    assert node_of(leaf(1.0))(dg.tensor(1.0)) == ()


def test_node_called_after_backward_raises() -> None:
    x = leaf(1.0, 2.0)
    y = x * x
    y.sum().backward()
    with pytest.raises(RuntimeError, match=FREED):
        node_of(y)(dg.ones(2))


@pytest.mark.parametrize("count", [0, 2])
def test_node_called_with_another_number_of_gradients_raises(count: int) -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(TypeError, match=f"expected 1 arguments, got {count}"):
        node_of(x * x)(*[dg.ones(2)] * count)


def test_node_called_with_something_that_is_no_tensor_raises() -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(TypeError, match="argument 0 is not a"):
        node_of(x * x)("no tensor")


def test_node_called_with_a_keyword_raises() -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(TypeError, match="keyword arguments"):
        node_of(x * x)(grad=dg.ones(2))


# Backward from and to nodes


def test_backward_does_not_need_the_tensors_in_between() -> None:
    x = leaf(1.0, 2.0)
    y = (x * x).exp().sum()
    node = node_of(y)
    del y
    dg.autograd.backward(GradientEdge(node, 0))
    assert_values(x.grad, np.exp([1, 4]) * [2, 4])
