"""Devices: naming them, placing tensors, and gradients that come back to where they belong.

The tests run with four CPU devices: cpu:0, which is the default, to cpu:3.
"""

import copy
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import dyngraph as dg
from dyngraph.autograd.graph import get_gradient_edge
from tests.graph.helpers import assert_values, node_of

FIRST, SECOND = dg.device("cpu"), dg.device("cpu:1")


def leaf_on(device: str) -> dg.Tensor:
    """A leaf with values [1, 2]."""
    return dg.tensor([1.0, 2.0], device=device, requires_grad=True)


def grad_of(x: dg.Tensor) -> dg.Tensor:
    assert x.grad is not None
    return x.grad


# Device objects


@pytest.mark.parametrize(
    "device, kind, index",
    [
        (dg.device("cpu"), "cpu", None),
        (dg.device("cpu:1"), "cpu", 1),
        (dg.device("cuda", 2), "cuda", 2),
        (dg.device("gpu:0"), "cuda", 0),
        (dg.device(dg.device("cpu:1")), "cpu", 1),
    ],
    ids=["name", "name and number", "two arguments", "gpu", "device"],
)
def test_device_has_a_type_and_an_index(device: dg.device, kind: str, index: int | None) -> None:
    assert (device.type, device.index) == (kind, index)


def test_importing_the_package_leaves_jax_s_devices_to_be_configured() -> None:
    code = (
        "import jax, dyngraph; jax.config.update('jax_num_cpu_devices', 3); "
        "print(jax.device_count())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["3"]


def test_device_can_be_made_from_one_of_jax() -> None:
    assert dg.device(jax.devices()[1]) == SECOND


def test_device_knows_the_one_of_jax() -> None:
    assert SECOND.jax is jax.devices()[1]


def test_devices_of_equal_type_and_index_are_equal() -> None:
    assert dg.device("cpu:1") == dg.device("cpu", 1)
    assert len({dg.device("cpu:1"), dg.device("cpu", 1)}) == 1


def test_device_with_an_index_differs_from_one_without() -> None:
    assert dg.device("cpu") != dg.device("cpu:0")


def test_device_is_no_string() -> None:
    assert dg.device("cpu") != "cpu"


@pytest.mark.parametrize(
    "device, short, long",
    [
        (dg.device("cpu"), "cpu", "device(type='cpu')"),
        (dg.device("cuda:1"), "cuda:1", "device(type='cuda', index=1)"),
    ],
    ids=["without index", "with index"],
)
def test_device_prints_as_its_name_or_its_fields(device: dg.device, short: str, long: str) -> None:
    assert (str(device), repr(device)) == (short, long)


# Placement


def test_tensors_are_made_on_the_first_device() -> None:
    assert dg.ones(2).device == FIRST


@pytest.mark.parametrize(
    "device", ["cpu:1", dg.device("cpu:1"), jax.devices("cpu")[1]], ids=["string", "device", "jax"]
)
def test_device_of_a_new_tensor_may_be_named_in_three_ways(device: Any) -> None:
    assert dg.tensor([1.0, 2.0], device=device).device == SECOND


FACTORIES: dict[str, Callable[[], dg.Tensor]] = {
    "zeros": lambda: dg.zeros(2, device="cpu:1"),
    "full": lambda: dg.full((2,), 1.0, device="cpu:1"),
    "empty": lambda: dg.empty(2, device="cpu:1"),
    "arange": lambda: dg.arange(3, device="cpu:1"),
    "linspace": lambda: dg.linspace(0, 1, 3, device="cpu:1"),
    "eye": lambda: dg.eye(2, device="cpu:1"),
    "rand": lambda: dg.rand(2, device="cpu:1"),
    "randint": lambda: dg.randint(3, (2,), device="cpu:1"),
    "randperm": lambda: dg.randperm(3, device="cpu:1"),
    "as_tensor": lambda: dg.as_tensor(dg.ones(2), device="cpu:1"),
    "zeros_like": lambda: dg.zeros_like(dg.ones(2, device="cpu:1")),
    "rand_like": lambda: dg.rand_like(dg.ones(2, device="cpu:1")),
    "new_ones": lambda: dg.ones(2, device="cpu:1").new_ones(3),
}


@pytest.mark.parametrize("make", FACTORIES.values(), ids=FACTORIES.keys())
def test_factories_place_their_tensor(make: Callable[[], dg.Tensor]) -> None:
    assert make().device == SECOND


RESULTS: dict[str, Callable[[dg.Tensor], dg.Tensor]] = {
    "operator": lambda x: x.exp(),
    "number": lambda x: 2 - x,
    "matrix product": lambda x: x @ x,
    "clone": lambda x: x.clone(),
    "detach": lambda x: x.detach(),
    "data": lambda x: x.data,
    "index": lambda x: x[0],
    "numpy array": lambda x: x + np.ones(2, np.float32),
    "deepcopy": lambda x: copy.deepcopy(x),
}


@pytest.mark.parametrize("operate", RESULTS.values(), ids=RESULTS.keys())
def test_results_stay_on_the_device_of_their_input(
    operate: Callable[[dg.Tensor], dg.Tensor],
) -> None:
    assert operate(dg.ones(2, device="cpu:1")).device == SECOND


@pytest.mark.parametrize("scalar_first", [True, False])
@pytest.mark.parametrize("place", ["cpu:0", "cpu:1"])
def test_scalar_tensor_is_moved_to_the_other_operand(place: str, scalar_first: bool) -> None:
    scalar = dg.tensor(3.0, device="cpu:0" if place == "cpu:1" else "cpu:1")
    x = dg.ones(2, device=place)
    y = scalar * x if scalar_first else x * scalar
    assert y.device == x.device
    assert_values(y, [3, 3])


def test_moved_scalar_stays_where_it_is() -> None:
    scalar = dg.tensor(3.0, device="cpu:0")
    _ = scalar * dg.ones(2, device="cpu:1")
    assert scalar.device == FIRST


# to()


def test_to_copies_the_values_to_the_device() -> None:
    y = dg.tensor([1.0, 2.0]).to("cpu:1")
    assert y.device == SECOND
    assert_values(y, [1, 2])


def test_to_leaves_its_input_where_it_is() -> None:
    x = dg.ones(2)
    x.to("cpu:1")
    assert x.device == FIRST


def test_to_the_same_device_returns_the_tensor() -> None:
    x = dg.ones(2, device="cpu:1")
    assert x.to("cpu:1") is x


def test_to_the_same_device_with_copy_returns_another_tensor() -> None:
    x = dg.ones(2, device="cpu:1")
    y = x.to("cpu:1", copy=True)
    assert y is not x and y.device == SECOND


def test_to_follows_another_tensor() -> None:
    assert dg.ones(2).to(dg.ones(3, device="cpu:1")).device == SECOND


def test_to_takes_device_and_dtype() -> None:
    y = dg.ones(2).to("cpu:1", dg.float16)
    assert (y.device, y.dtype) == (SECOND, dg.float16)


def test_cpu_moves_to_the_first_device() -> None:
    assert dg.ones(2, device="cpu:1").cpu().device == FIRST


def test_move_is_recorded() -> None:
    x = leaf_on("cpu:0")
    y = x.to("cpu:1")
    assert node_of(y).name() == "ToCopyBackward0"
    assert node_of(y).next_functions == ((node_of(x), 0),)


def test_move_of_a_constant_is_not_recorded() -> None:
    assert dg.ones(2).to("cpu:1").grad_fn is None


def test_move_under_no_grad_is_not_recorded() -> None:
    with dg.no_grad():
        assert leaf_on("cpu:0").to("cpu:1").grad_fn is None


def test_metadata_of_a_move_names_its_destination() -> None:
    (metadata,) = node_of(leaf_on("cpu:0").to("cpu:1"))._input_metadata
    assert metadata.device == SECOND


# Gradients of moves


def test_gradient_moves_back_to_the_leaf() -> None:
    x = leaf_on("cpu:0")
    y = x.to("cpu:1")
    (y * y).sum().backward()
    assert grad_of(x).device == FIRST
    assert_values(x.grad, [2, 4])


def test_gradient_of_the_moved_tensor_is_where_that_is() -> None:
    y = leaf_on("cpu:0").to("cpu:1")
    y.retain_grad()
    (y * 3).sum().backward()
    assert grad_of(y).device == SECOND


def test_gradient_of_a_move_with_another_dtype_has_device_and_dtype_of_the_leaf() -> None:
    x = leaf_on("cpu:0")
    x.to("cpu:1", dg.float16).sum().backward()
    assert grad_of(x).device == FIRST
    assert_values(x.grad, [1, 1])


def test_gradients_from_two_devices_add_up_at_the_leaf() -> None:
    x = leaf_on("cpu:0")
    dg.autograd.backward([(x * 3).sum(), (x.to("cpu:1") * 4).sum()])
    assert grad_of(x).device == FIRST
    assert_values(x.grad, [7, 7])


def test_gradients_of_a_model_over_two_devices_are_where_its_parameters_are() -> None:
    first, second = leaf_on("cpu:0"), leaf_on("cpu:1")
    hidden = (first * 3).to("cpu:1")
    (hidden * second).sum().backward()
    assert (grad_of(first).device, grad_of(second).device) == (FIRST, SECOND)
    assert_values(first.grad, [3, 6])
    assert_values(second.grad, [3, 6])


def test_second_derivative_through_a_move() -> None:
    x = leaf_on("cpu:0")
    y = x.to("cpu:1")
    (by_x,) = dg.autograd.grad((y**3).sum(), x, create_graph=True)
    (second,) = dg.autograd.grad(by_x.sum(), x)
    assert (by_x.device, second.device) == (FIRST, FIRST)
    assert_values(second, [6, 12])


def test_gradient_of_a_scalar_that_was_moved_is_where_the_scalar_is() -> None:
    scalar = dg.tensor(3.0, device="cpu:0", requires_grad=True)
    (scalar * dg.tensor([1.0, 2.0], device="cpu:1")).sum().backward()
    assert grad_of(scalar).device == FIRST
    assert_values(scalar.grad, 3)


def test_accumulation_follows_a_leaf_whose_data_moved() -> None:
    x = leaf_on("cpu:0")
    x.data = x.data.to("cpu:1")
    x.sum().backward()
    assert grad_of(x).device == SECOND


def test_zeros_for_an_unused_input_are_where_the_input_is() -> None:
    unused = leaf_on("cpu:1")
    (zeros,) = dg.autograd.grad(
        leaf_on("cpu:0").sum(), unused, allow_unused=True, materialize_grads=True
    )
    assert zeros.device == SECOND


def test_assigned_grad_on_another_device_raises() -> None:
    x = leaf_on("cpu:0")
    with pytest.raises(RuntimeError, match=r"Move it by \.to\('cpu'\)"):
        x.grad = dg.ones(2, device="cpu:1")


# Gradients from outside, on another device


def test_gradient_of_a_root_is_moved_to_the_root() -> None:
    x = leaf_on("cpu:0")
    (x * 2).backward(dg.tensor([1.0, 10.0], device="cpu:1"))
    assert grad_of(x).device == FIRST
    assert_values(x.grad, [2, 20])


def test_gradient_given_to_grad_is_moved_to_the_output() -> None:
    x = leaf_on("cpu:1")
    (by_x,) = dg.autograd.grad(x * x, x, dg.tensor([1.0, 10.0], device="cpu:0"))
    assert by_x.device == SECOND
    assert_values(by_x, [2, 40])


def test_move_of_a_given_gradient_is_recorded_with_create_graph() -> None:
    x = leaf_on("cpu:0")
    given = leaf_on("cpu:1")
    (by_x,) = dg.autograd.grad(x * x, x, given, create_graph=True)
    (by_given,) = dg.autograd.grad(by_x.sum(), given)
    assert by_given.device == SECOND
    assert_values(by_given, [2, 4])


def test_batch_of_gradients_is_moved_to_the_output() -> None:
    x = leaf_on("cpu:0")
    (rows,) = dg.autograd.grad(x * 2, x, dg.eye(2, device="cpu:1"), is_grads_batched=True)
    assert rows.device == FIRST
    assert_values(rows, [[2, 0], [0, 2]])


def test_implicit_gradient_is_where_the_root_is() -> None:
    x = leaf_on("cpu:1")
    seen: list[dg.device] = []
    loss = x.sum()
    loss.register_hook(lambda grad: seen.append(grad.device))
    loss.backward()
    assert seen == [SECOND]


def test_implicit_gradient_of_an_edge_ends_where_the_leaf_is() -> None:
    x = leaf_on("cpu:1")
    dg.autograd.backward(get_gradient_edge((x * x).sum()))
    assert grad_of(x).device == SECOND
    assert_values(x.grad, [2, 4])


def tensor_hook(y: dg.Tensor, answer: dg.Tensor) -> None:
    y.register_hook(lambda grad: answer)


def node_hook(y: dg.Tensor, answer: dg.Tensor) -> None:
    node_of(y).register_hook(lambda grad_inputs, grad_outputs: (answer,))


def node_prehook(y: dg.Tensor, answer: dg.Tensor) -> None:
    node_of(y).register_prehook(lambda grad_outputs: (answer,))


@pytest.mark.parametrize("register", [tensor_hook, node_hook, node_prehook])
@pytest.mark.parametrize("place, elsewhere", [("cpu:0", "cpu:1"), ("cpu:1", "cpu:0")])
def test_what_a_hook_returns_is_moved_to_the_gradient_it_replaces(
    register: Callable[[dg.Tensor, dg.Tensor], None], place: str, elsewhere: str
) -> None:
    x = leaf_on(place)
    y = -x
    register(y, dg.tensor([5.0, 6.0], device=elsewhere))
    y.sum().backward()
    assert grad_of(x).device == x.device
    assert_values(x.grad, [5, 6] if register is node_hook else [-5, -6])


def test_what_the_hook_of_a_leaf_returns_is_moved_to_the_leaf() -> None:
    x = leaf_on("cpu:0")
    x.register_hook(lambda grad: grad.to("cpu:1") * 3)
    (x * 2).sum().backward()
    assert grad_of(x).device == FIRST
    assert_values(x.grad, [6, 6])


def test_backward_runs_inside_a_backward_on_another_device() -> None:
    class Inner(dg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
            ctx.save_for_backward(x)
            return x * 1

        @staticmethod
        def backward(ctx: Any, grad: dg.Tensor) -> dg.Tensor:
            with dg.enable_grad():
                x = ctx.saved_tensors[0].detach().to("cpu").requires_grad_()
                (x * x).sum().backward()
            return grad_of(x).to(grad.device) * grad

    x = leaf_on("cpu:1")
    Inner.apply(x).sum().backward()
    assert grad_of(x).tolist() == [2.0, 4.0]
    assert grad_of(x).device == SECOND


def test_inputs_and_outputs_on_two_devices_are_checked(x64: None) -> None:
    x = dg.tensor([1.0, 2.0], dtype=dg.float64, device=SECOND, requires_grad=True)
    assert dg.autograd.gradcheck(lambda x: x.to("cpu:0") * 2, (x,))
    assert dg.autograd.gradcheck(lambda x: (x.to("cpu:0"), x * x), (x,))


def test_gradients_are_checked_where_another_device_is_the_default(x64: None) -> None:
    with jax.default_device(jax.devices()[1]):
        x = dg.tensor([1.0, 2.0], dtype=dg.float64, requires_grad=True)
        assert x.device == SECOND
        assert dg.autograd.gradcheck(lambda x: x * x, (x,))
