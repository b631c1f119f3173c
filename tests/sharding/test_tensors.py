"""Tensors that are spread over a mesh: made, moved, written, printed, saved."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

import dyngraph as dg
from tests.sharding.helpers import data_mesh, sharding, spec_of


def spread(**options: Any) -> dg.Tensor:
    """0 to 7, two elements on a device."""
    return sharding.shard(dg.arange(8.0), data_mesh(), "data").requires_grad_(**options)


def plain() -> dg.Tensor:
    return spread(requires_grad=False)


def test_each_device_has_its_part() -> None:
    parts = [shard.data.tolist() for shard in plain().jax().addressable_shards]
    assert parts == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 7.0]]


def test_shard_of_what_is_so_is_itself() -> None:
    x = plain()
    assert sharding.shard(x, data_mesh(), "data") is x


def test_sharding_of_a_tensor_on_one_device() -> None:
    assert dg.ones(2).sharding.device_set == {jax.devices()[0]}


def test_to_takes_a_sharding() -> None:
    place = sharding.placement(data_mesh(), "data")
    assert dg.arange(8.0).to(place).sharding == place


def test_to_takes_a_sharding_and_a_dtype() -> None:
    x = plain().to(sharding.placement(data_mesh()), dg.int32)
    assert (spec_of(x), x.dtype) == (P(), dg.int32)


def test_to_a_device_gathers() -> None:
    x = plain().to("cpu:1")
    assert (x.tolist(), str(x.device)) == ([*map(float, range(8))], "cpu:1")


def test_to_another_tensor_goes_where_that_is() -> None:
    assert spec_of(dg.ones(8).to(plain())) == P("data")


def test_to_another_tensor_of_another_shape_is_a_copy_on_each_device() -> None:
    assert spec_of(dg.ones(3).to(plain())) == P()


def test_creation_functions_take_a_sharding() -> None:
    assert spec_of(dg.zeros(8, device=sharding.placement(data_mesh(), "data"))) == P("data")


def test_results_of_operators_stay_spread() -> None:
    assert spec_of(plain() * 2 + 1) == P("data")


def test_text_says_the_sharding() -> None:
    mesh = sharding.mesh(data=2, model=2)
    text = repr(sharding.shard(dg.ones(2, 2), mesh, None, "model"))
    assert "sharding=P(None, 'model') over (data=2, model=2)" in text


def test_gradient_comes_back_to_where_the_input_is() -> None:
    x = dg.ones(8, device="cpu:1", requires_grad=True)
    (sharding.shard(x, data_mesh(), "data") * 3).sum().backward()
    assert x.grad is not None
    assert (x.grad.tolist(), str(x.grad.device)) == ([3.0] * 8, "cpu:1")


def test_gradient_of_a_tensor_that_is_spread_otherwise() -> None:
    x = spread() + 1
    x.retain_grad()
    y = sharding.replicate(x, data_mesh())
    (y * 3).sum().backward()
    assert x.grad is not None
    assert (x.grad.tolist(), spec_of(x.grad), spec_of(y)) == ([3.0] * 8, P("data"), P())


def test_second_derivative_through_shard() -> None:
    x = dg.ones(8, requires_grad=True)
    y = sharding.replicate(sharding.shard(x, data_mesh(), "data"), data_mesh())
    (slope,) = dg.autograd.grad((y**3).sum(), x, create_graph=True)
    (curve,) = dg.autograd.grad(slope.sum(), x)
    assert curve.tolist() == [6.0] * 8


WRITES: dict[str, Callable[[dg.Tensor], Any]] = {
    "zero_": lambda x: x.zero_(),
    "fill_": lambda x: x.fill_(2.0),
    "add_": lambda x: x.add_(sharding.replicate(dg.ones(8), data_mesh())),
    "copy_": lambda x: x.copy_(dg.ones(8)),
    "copy_ from another device": lambda x: x.copy_(dg.ones(8, device="cpu:2")),
    "setitem": lambda x: x.__setitem__(slice(2, 5), dg.ones(3, device="cpu:2")),
    "normal_": lambda x: x.normal_(),
    "a view": lambda x: x.view(2, 4).mul_(2),
}


@pytest.mark.parametrize("write", WRITES)
def test_write_in_place_keeps_the_sharding(write: str) -> None:
    x = plain()
    WRITES[write](x)
    assert spec_of(x) == P("data")


def test_write_in_deferred_mode_keeps_the_sharding() -> None:
    x = plain()
    with dg.deferred():
        x.mul_(sharding.replicate(dg.ones(8), data_mesh()).cumsum(0))
    assert (spec_of(x), x[2].item()) == (P("data"), 6.0)


def test_copy_from_a_spread_tensor_to_one_device() -> None:
    x = dg.zeros(8, device="cpu:1").copy_(plain())
    assert (x.sum().item(), str(x.device)) == (28.0, "cpu:1")


def test_leaf_is_spread_in_place_with_its_gradient() -> None:
    x = dg.arange(8.0).requires_grad_()
    (x * x).sum().backward()
    assert sharding.shard_(x, data_mesh(), "data") is x
    assert x.is_leaf
    assert x.grad is not None
    assert (spec_of(x), spec_of(x.grad)) == (P("data"), P("data"))


def test_gradient_on_fewer_devices_is_refused() -> None:
    with pytest.raises(RuntimeError, match=r"Spread it by \.to\(tensor\.sharding\)"):
        spread().grad = dg.ones(8)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sharding.shard(dg.ones(6), data_mesh(), "data"), "Pad it to a multiple of 4"),
        (lambda: sharding.shard(dg.ones(4), data_mesh(), "data", None), "Leave out 1"),
    ],
)
def test_tensor_that_can_not_be_spread_so(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("make", [lambda x: x * 2, lambda x: x.detach()[:4]])
def test_only_leaves_with_their_own_memory_are_spread_in_place(make: Any) -> None:
    x = dg.ones(8, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"Use shard\(\)"):
        sharding.shard_(make(x), data_mesh(), "data")


def test_saved_tensor_is_loaded_as_asked(tmp_path: Path) -> None:
    dg.save({"x": plain()}, tmp_path / "x.safetensors")
    place = sharding.placement(data_mesh(), "data")
    x = dg.load(tmp_path / "x.safetensors", device=place)["x"]
    assert (x.sharding, x.sum().item()) == (place, 28.0)


def test_mesh_of_one_device_is_no_obstacle_in_a_compiled_step() -> None:
    mesh = sharding.mesh(data=1)
    double = dg.compile(lambda x: sharding.shard(x * 2, mesh, "data"))
    assert [double(dg.ones(2)).tolist() for _ in range(2)] == [[2.0, 2.0]] * 2


def test_pure_function_of_a_spread_tensor() -> None:
    place = sharding.placement(data_mesh(), "data")
    pure = jax.jit(dg.to_jax(lambda x: (x * 2).to(place)))
    found = pure(np.arange(8, dtype=np.float32))
    assert found.sharding.is_equivalent_to(place, 1)
