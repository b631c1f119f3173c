"""Who keeps what alive: with the garbage collector off, the last reference frees everything."""

import contextlib
import gc
import weakref

import numpy as np
import pytest

import dyngraph as dg
from dyngraph.autograd.graph import get_gradient_edge
from tests.graph.helpers import (
    Canary,
    assert_values,
    leaf,
    node_of,
    on_gradient,
    queue_callback,
    watch,
)

pytestmark = pytest.mark.usefixtures("no_gc")


# Dropping the loss


def test_dropping_a_tensor_frees_its_node() -> None:
    y = leaf(1.0, 2.0) * 2
    node = watch(y)
    del y
    assert node() is None


def test_node_keeps_the_nodes_it_leads_to() -> None:
    y = leaf(1.0, 2.0) * 2
    node = watch(y)
    loss = y.sum()
    del y
    assert node() is not None
    del loss
    assert node() is None


def test_loss_does_not_keep_interior_tensors_that_nobody_saved() -> None:
    y = leaf(1.0, 2.0) * 2
    tensor = weakref.ref(y)
    loss = y.sum()
    del y
    assert tensor() is None
    assert loss.requires_grad


def test_dropping_the_loss_frees_the_tensors_it_saved() -> None:
    y = leaf(1.0, 2.0) * 2
    tensor = weakref.ref(y)
    loss = (y * y).sum()
    del y
    del loss
    assert tensor() is None


def test_backward_frees_saved_tensors_while_the_loss_lives() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    tensor = weakref.ref(y)
    loss = (y * y).sum()
    del y
    loss.backward()
    assert tensor() is None
    assert loss.grad_fn is not None


def test_backward_with_retain_graph_keeps_saved_values() -> None:
    x = leaf(1.0, 2.0)
    loss = (x * 2).exp().sum()
    loss.backward(retain_graph=True)
    loss.backward()
    assert_values(x.grad, 4 * np.exp([2, 4]))


def test_backward_keeps_the_nodes_of_a_loss_that_lives() -> None:
    y = leaf(1.0, 2.0) * 2
    node = watch(y)
    loss = y.sum()
    del y
    loss.backward()
    assert node() is not None


def test_output_saved_by_its_own_node_makes_no_cycle() -> None:
    y = leaf(1.0, 2.0).exp()
    tensor, node = weakref.ref(y), watch(y)
    del y
    assert tensor() is None
    assert node() is None


@pytest.mark.parametrize("name", ["exp", "tanh", "sigmoid", "sqrt"])
def test_chain_of_saved_outputs_makes_no_cycle(name: str) -> None:
    y = leaf(1.0, 2.0)
    nodes = []
    for _ in range(3):
        y = getattr(y, name)()
        nodes.append(watch(y))
    del y
    assert [node() for node in nodes] == [None] * 3


def test_reading_a_saved_output_makes_no_cycle() -> None:
    y = leaf(1.0, 2.0).exp()
    node = watch(y)
    assert y.grad_fn is not None
    assert y.grad_fn._saved_result.requires_grad
    del y
    assert node() is None


def test_reading_edges_makes_no_cycle() -> None:
    y = leaf(1.0, 2.0).exp()
    node = watch(y)
    z = y * 2
    assert z.grad_fn is not None and z.grad_fn.next_functions[0][0] is y.grad_fn
    del y, z
    assert node() is None


def test_outputs_of_one_node_free_it_together() -> None:
    first, second = leaf(1.0, 2.0).unbind()
    node = watch(first)
    del first
    assert node() is not None
    del second
    assert node() is None


def test_gradient_edge_keeps_its_node() -> None:
    y = leaf(1.0, 2.0) * 2
    node = watch(y)
    edge = get_gradient_edge(y)
    del y
    assert node() is not None
    del edge
    assert node() is None


# Leaves


def test_graph_keeps_its_leaf() -> None:
    x = leaf(1.0, 2.0)
    tensor = weakref.ref(x)
    y = x * 2
    del x
    assert tensor() is not None
    del y
    assert tensor() is None


def test_leaf_does_not_keep_its_graph() -> None:
    x = leaf(1.0, 2.0)
    y = x * x
    node = watch(y)
    del y
    assert node() is None
    assert x.grad is None


def test_leaf_does_not_keep_its_accumulate_grad() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    node = watch(x)
    assert node() is not None
    del y
    assert node() is None


def test_leaf_and_its_grad_are_freed_together() -> None:
    x = leaf(1.0, 2.0)
    (x * x).sum().backward()
    assert x.grad is not None
    tensors = [weakref.ref(x), weakref.ref(x.grad)]
    del x
    assert [tensor() for tensor in tensors] == [None, None]


def test_setting_grad_to_none_frees_it() -> None:
    x = leaf(1.0, 2.0)
    (x * x).sum().backward()
    assert x.grad is not None
    tensor = weakref.ref(x.grad)
    x.grad = None
    assert tensor() is None


# Hooks


def test_hook_is_freed_with_the_graph() -> None:
    y = leaf(1.0, 2.0) * 2
    held = Canary()
    hook_content = weakref.ref(held)
    y.register_hook(lambda grad, held=held: None)
    del held
    loss = y.sum()
    del y
    assert hook_content() is not None
    del loss
    assert hook_content() is None


def test_removed_hook_is_freed_at_once() -> None:
    y = leaf(1.0, 2.0) * 2
    held = Canary()
    hook_content = weakref.ref(held)
    handle = y.register_hook(lambda grad, held=held: None)
    del held
    handle.remove()
    assert hook_content() is None


def test_handle_of_a_hook_does_not_keep_the_graph() -> None:
    y = leaf(1.0, 2.0) * 2
    node = watch(y)
    handle = y.register_hook(lambda grad: None)
    del y
    assert node() is None
    handle.remove()


def test_retain_grad_does_not_keep_the_tensor() -> None:
    y = leaf(1.0, 2.0) * 2
    y.retain_grad()
    tensor = weakref.ref(y)
    loss = y.sum()
    del y
    assert tensor() is None
    loss.backward()


def test_retained_grad_makes_no_cycle() -> None:
    y = leaf(1.0, 2.0) * 2
    y.retain_grad()
    y.sum().backward()
    tensor, node = weakref.ref(y), watch(y)
    del y
    assert tensor() is None
    assert node() is None


def test_hook_of_a_node_is_freed_with_it() -> None:
    y = leaf(1.0, 2.0) * 2
    held = Canary()
    hook_content = weakref.ref(held)
    node_of(y).register_hook(lambda grad_inputs, grad_outputs, held=held: None)
    del held, y
    assert hook_content() is None


def test_callback_is_freed_after_backward() -> None:
    y = leaf(1.0, 2.0) * 2
    held = Canary()
    callback_content = weakref.ref(held)

    def queue() -> None:
        content = callback_content()
        queue_callback(lambda: content)

    on_gradient(y, queue)
    loss = y.sum()
    del y
    loss.backward()
    del held
    assert callback_content() is None


# Gradients


def test_backward_keeps_none_of_the_gradients_on_the_way() -> None:
    y = leaf(1.0, 2.0) * 2
    seen: list[weakref.ref[dg.Tensor]] = []
    y.register_hook(lambda grad: seen.append(weakref.ref(grad)))
    loss = (y * y).sum()
    loss.backward()
    assert seen[0]() is None


def test_gradient_passed_in_is_not_kept() -> None:
    y = leaf(1.0, 2.0) * 2
    gradient = dg.ones(2)
    tensor = weakref.ref(gradient)
    y.backward(gradient)
    del gradient
    assert tensor() is None


def test_gradient_with_history_keeps_the_graph_of_its_loss() -> None:
    x = leaf(1.0, 2.0)
    y = x.exp()
    node = watch(y)
    (by_x,) = dg.autograd.grad(y.sum(), x, create_graph=True)
    del y
    assert node() is not None
    del by_x
    assert node() is None


def test_second_derivative_frees_everything() -> None:
    x = leaf(1.0, 2.0)
    y = x * x * x
    nodes = [watch(y)]
    (by_x,) = dg.autograd.grad(y.sum(), x, create_graph=True)
    nodes.append(watch(by_x))
    by_x.sum().backward()
    del y, by_x
    assert [node() for node in nodes] == [None, None]


@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True")
def test_setting_grad_to_none_breaks_the_cycle_of_create_graph() -> None:
    x = leaf(1.0, 2.0)
    y = x.exp()
    node = watch(y)
    y.sum().backward(create_graph=True)
    del y
    assert node() is not None
    x.grad = None
    assert node() is None


# Failures


def test_failed_backward_keeps_nothing() -> None:
    y = leaf(1.0, 2.0) * 2
    node = watch(y)

    def hook(grad: dg.Tensor) -> None:
        raise ValueError("from the hook")

    y.register_hook(hook)
    loss = y.sum()
    with contextlib.suppress(ValueError):
        loss.backward()
    del y, loss
    assert node() is None


def test_refused_backward_keeps_nothing() -> None:
    y = leaf(1.0, 2.0) * 2
    node = watch(y)
    with contextlib.suppress(RuntimeError):
        y.backward()
    del y
    assert node() is None


# Deep graphs


def test_chain_of_100_000_nodes_is_freed() -> None:
    y = leaf(1.0) * 1
    node = watch(y)
    for _ in range(100_000):
        y = y + 1
    del y
    assert node() is None


def test_chain_of_100_000_nodes_is_freed_after_backward() -> None:
    y = leaf(1.0) * 1
    node = watch(y)
    for _ in range(100_000):
        y = y + 1
    y.backward()
    del y
    assert node() is None


def test_deep_chain_of_saved_outputs_is_freed() -> None:
    y = leaf(1.0) * 1
    node = watch(y)
    for _ in range(20_000):
        y = y.sin().tanh()
    del y
    assert node() is None


def test_deep_graph_with_many_branches_is_freed() -> None:
    y = z = leaf(1.0) * 1
    node = watch(y)
    for _ in range(10_000):
        y, z = y * z, z + y
    del y, z
    assert node() is None


def test_deep_graph_of_a_gradient_is_freed() -> None:
    x = leaf(1.0)
    y = x * 1
    node = watch(y)
    for _ in range(5_000):
        y = y.sin()
    (by_x,) = dg.autograd.grad(y, x, create_graph=True)
    del y, by_x
    assert node() is None


# The garbage collector


def test_collection_while_a_node_is_destroyed() -> None:
    class Collects:
        def __del__(self) -> None:
            gc.collect()

    y = leaf(1.0, 2.0) * 2
    node_of(y).metadata["key"] = Collects()
    node = watch(y)
    del y
    assert node() is None


def test_collection_spares_a_graph_whose_tensors_are_in_a_dead_cycle() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    cycle: list[object] = [y]
    cycle.append(cycle)
    loss = (y * y).sum()
    del y, cycle
    gc.collect()
    loss.backward()
    assert_values(x.grad, [8, 16])
