"""save_on_cpu: what is saved waits on the first CPU device, and comes back where it was."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dyngraph as dg
from dyngraph.autograd.function_node import SavedValue
from dyngraph.autograd.graph import save_on_cpu
from dyngraph.graph.packing import Packed
from dyngraph.tensor import wrap
from tests.autograd.functions import Square
from tests.graph.helpers import assert_values, leaf, node_of

ELSEWHERE = dg.device("cpu", 1)


def there(*values: float) -> dg.Tensor:
    """A leaf on another device than the first."""
    return dg.tensor(list(values), device=ELSEWHERE, requires_grad=True)


def kept(node: Any) -> list[jax.Array]:
    """The arrays that a node and those below it keep for backward."""
    found, todo = [], [node]
    while todo:
        node = todo.pop()
        for value in getattr(node, "saved", None) or ():
            if type(value) is SavedValue:
                value = value.value
            found.append(value.value[1] if type(value) is Packed else value)
        todo += [below for below, _ in node.next_functions if below is not None]
    return found


def test_nothing_that_was_saved_stays_on_the_device() -> None:
    with save_on_cpu():
        y = (there(1.0, 2.0) * there(3.0, 4.0)).exp().sum()
    arrays = kept(y.grad_fn)
    assert len(arrays) == 3
    assert {d for a in arrays for d in a.devices()} == {jax.devices("cpu")[0]}


@pytest.mark.parametrize("create_graph", [False, True])
def test_gradients_are_right_and_on_the_device(create_graph: bool) -> None:
    x = there(1.0, 2.0)
    with save_on_cpu():
        y = (x * x).exp()
    (by_x,) = dg.autograd.grad(y.sum(), x, create_graph=create_graph)
    assert by_x.device == ELSEWHERE
    assert_values(by_x, np.exp([1, 4]) * [2, 4])


def test_second_derivative_through_what_was_moved() -> None:
    x = there(1.0, 2.0)
    with save_on_cpu():
        y = x**3
        (by_x,) = dg.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = dg.autograd.grad(by_x.sum(), x)
    assert second.device == ELSEWHERE
    assert_values(second, [6, 12])


def test_saved_field_comes_back_to_the_device() -> None:
    with save_on_cpu():
        y = there(1.0, 2.0).exp()
    assert node_of(y)._saved_result.device == ELSEWHERE
    assert node_of(y)._saved_result.requires_grad


def test_what_a_function_saves_is_moved_too() -> None:
    x = there(1.0, 2.0)
    with save_on_cpu():
        y = Square.apply(x)
    assert {d for a in kept(y.grad_fn) for d in a.devices()} == {jax.devices("cpu")[0]}
    y.sum().backward()
    assert x.grad is not None and x.grad.device == ELSEWHERE
    assert_values(x.grad, [2, 4])


def test_views_come_back_with_the_values_of_the_time() -> None:
    x = there(1.0, 2.0, 3.0)
    t = x * 1
    with save_on_cpu():
        y = t[:2] * t[1:]
    t.zero_()
    y.sum().backward()
    assert_values(x.grad, [2, 4, 2])


def test_sharded_tensor_comes_back_sharded() -> None:
    mesh = jax.make_mesh((4,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))
    x = wrap(jax.device_put(jnp.arange(4.0), sharding), requires_grad=True)
    with save_on_cpu():
        y = x * x
    assert all(len(a.devices()) == 1 for a in kept(y.grad_fn))
    assert node_of(y)._saved_self._cell.array.sharding == sharding
    y.sum().backward()
    assert x.grad is not None and x.grad._cell.array.sharding == sharding
    assert_values(x.grad, [0, 2, 4, 6])


@pytest.mark.parametrize("pin_memory", [False, True])
def test_pinned_memory_gives_the_same_gradient(pin_memory: bool) -> None:
    x = there(1.0, 2.0)
    with save_on_cpu(pin_memory=pin_memory):
        y = x.exp()
    y.sum().backward()
    assert x.grad is not None and x.grad.device == ELSEWHERE
    assert_values(x.grad, np.exp([1, 2]))


def test_what_is_on_the_first_device_is_not_copied() -> None:
    x = leaf(1.0, 2.0)
    with save_on_cpu():
        y = x**3
    (array,) = kept(y.grad_fn)
    assert array is x._cell.array


def test_tensors_saved_outside_the_block_stay() -> None:
    x = there(1.0, 2.0)
    with save_on_cpu():
        pass
    (array,) = kept((x**3).grad_fn)
    assert array.devices() == {jax.devices("cpu")[1]}
