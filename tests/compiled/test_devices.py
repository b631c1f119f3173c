"""Compiled backwards of graphs on several devices: four CPU devices, as all tests have them."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import dyngraph as dg
from tests.compiled.helpers import compilations_of, grad_of, leaf, same_in_both_modes


def leaf_on(device: str, *values: float) -> dg.Tensor:
    return dg.tensor(list(values), device=device, requires_grad=True)


def test_graph_on_a_device_that_is_not_the_default() -> None:
    def program() -> Any:
        x = leaf_on("cpu:2", 1.0, 2.0)
        (x.exp() * x).sum().backward()
        return x.grad

    assert same_in_both_modes(program).device == dg.device("cpu:2")


def test_graph_that_moves_to_another_device() -> None:
    def program() -> Any:
        x = leaf_on("cpu:1", 1.0, 2.0)
        (x.exp().to("cpu:2") * 3).sin().sum().backward()
        return x.grad

    assert same_in_both_modes(program).device == dg.device("cpu:1")


def test_graph_that_moves_there_and_back() -> None:
    def program() -> Any:
        x = leaf_on("cpu:1", 1.0, 2.0)
        y = x.exp().to("cpu:3").sin().to("cpu:1")
        (y * x).sum().backward()
        return x.grad

    same_in_both_modes(program)


def test_leaves_on_two_devices() -> None:
    def program() -> Any:
        x, z = leaf_on("cpu:1", 1.0, 2.0), leaf_on("cpu:2", 3.0, 4.0)
        (x.exp().to("cpu:2") * z).sum().backward()
        return x.grad, z.grad

    grads = same_in_both_modes(program)
    assert [str(grad.device) for grad in grads] == ["cpu:1", "cpu:2"]


def test_grads_that_are_there_on_two_devices() -> None:
    def program() -> Any:
        x, z = leaf_on("cpu:1", 1.0, 2.0), leaf_on("cpu:2", 3.0, 4.0)
        for _ in range(2):
            (x.exp().to("cpu:2") * z).sum().backward()
        return x.grad, z.grad

    same_in_both_modes(program)


def test_roots_on_two_devices() -> None:
    def program() -> Any:
        x, z = leaf_on("cpu:1", 1.0, 2.0), leaf_on("cpu:2", 3.0, 4.0)
        dg.autograd.backward([x.exp().sum(), (z * z).sum()])
        return x.grad, z.grad

    same_in_both_modes(program)


def test_roots_on_two_devices_of_one_leaf() -> None:
    def program() -> Any:
        x = leaf_on("cpu:1", 1.0, 2.0)
        y = x.exp()
        dg.autograd.backward([y.sum(), (y.to("cpu:2") * 2).sum()])
        return x.grad

    same_in_both_modes(program)


def test_gradient_asked_on_another_device() -> None:
    def program() -> Any:
        x = leaf_on("cpu:1", 1.0, 2.0)
        y = x.exp().to("cpu:2")
        return dg.autograd.grad(y.sin().sum(), [x, y])

    grads = same_in_both_modes(program)
    assert [str(grad.device) for grad in grads] == ["cpu:1", "cpu:2"]


def test_retained_gradient_on_another_device() -> None:
    def program() -> Any:
        x = leaf_on("cpu:1", 1.0, 2.0)
        y = x.exp().to("cpu:2")
        y.retain_grad()
        y.sin().sum().backward()
        return x.grad, y.grad

    same_in_both_modes(program)


def test_same_structure_on_another_device_stays_there() -> None:
    def program() -> Any:
        found = []
        for device in ("cpu:1", "cpu:2", "cpu:1", "cpu:3"):
            x = leaf_on(device, 1.0, 2.0)
            (x.exp() * x).sum().backward()
            found.append(x.grad)
        return found

    same_in_both_modes(program)


def test_graph_on_two_devices_stops_compiling() -> None:
    def step() -> None:
        x, z = leaf_on("cpu:1", 1.0, 2.0), leaf_on("cpu:2", 3.0, 4.0)
        (x.exp().to("cpu:2") * z).sum().backward()

    assert compilations_of(step, 5)[2:] == [0, 0, 0]


def test_sharded_tensors_keep_their_sharding() -> None:
    mesh = Mesh(np.array(jax.devices()), ("i",))
    sharding = NamedSharding(mesh, PartitionSpec("i"))

    def program() -> Any:
        values = jax.device_put(np.arange(8, dtype=np.float32), sharding)
        x = dg.from_jax_array(values).requires_grad_()
        (x.sin() * x).sum().backward()
        return np.asarray(grad_of(x)).tolist(), grad_of(x)._cell.array.sharding == sharding

    assert same_in_both_modes(program)[1]


def test_sharded_and_whole_tensors_are_told_apart() -> None:
    mesh = Mesh(np.array(jax.devices()), ("i",))
    sharding = NamedSharding(mesh, PartitionSpec("i"))

    def program() -> Any:
        found = []
        for place in (sharding, None, sharding):
            values = np.arange(8, dtype=np.float32)
            x = dg.from_jax_array(jax.device_put(values, place)).requires_grad_()
            (x.sin() * x).sum().backward()
            found.append([np.asarray(grad_of(x)).tolist(), len(grad_of(x)._cell.array.devices())])
        return found

    assert [devices for _, devices in same_in_both_modes(program)] == [4, 1, 4]


def test_default_device_compiles_as_ever_beside_the_others() -> None:
    def step() -> None:
        x = leaf(1.0, 2.0)
        x.exp().sum().backward()

    assert compilations_of(step, 4) == [0, 1, 0, 0]
