"""Sizes, constants and devices: what `tests/test_tensor.py` leaves open.

Values and error types were recorded from PyTorch 2.13.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import dyngraph as dg


def test_size_may_be_a_keyword_or_hold_tensors() -> None:
    assert dg.zeros(size=(2, 3)).shape == dg.zeros(dg.tensor(2), 3).shape == (2, 3)


@pytest.mark.parametrize("sizes", [(2.0,), ("a",), ((2,), (3,)), ()])
def test_size_that_is_no_int_raises(sizes: Any) -> None:
    with pytest.raises(TypeError, match="size"):
        dg.ones(*sizes)


def test_full_takes_its_size_as_a_tuple() -> None:
    nothing: Any = 2
    with pytest.raises(TypeError, match=r"Write full\(\(2,\), ...\)"):
        dg.full(nothing, 1.0)


def test_full_takes_a_tensor_of_no_dims() -> None:
    x = dg.full((2,), dg.tensor(3, dtype=dg.int32))
    assert (x.dtype, x.tolist()) == (dg.int32, [3, 3])


def test_full_of_a_number_that_does_not_fit_raises() -> None:
    with pytest.raises(RuntimeError, match="uint8 without overflow"):
        dg.full((2,), 300, dtype=dg.uint8)
    with pytest.raises(TypeError, match="must be Number"):
        dg.full((2,), "a")


def test_full_of_the_largest_unsigned_number() -> None:
    assert dg.full((1,), 2**32 - 1, dtype=dg.uint32).tolist() == [2**32 - 1]


def test_eye_with_a_negative_size_raises() -> None:
    with pytest.raises(RuntimeError, match="m must be greater or equal to 0, got -1"):
        dg.eye(2, -1)


def test_like_functions_refuse_what_is_no_tensor() -> None:
    data: Any = [1.0]
    for make in (dg.zeros_like, dg.ones_like, dg.empty_like):
        with pytest.raises(TypeError, match="must be Tensor, not list"):
            make(data)


def test_factories_make_inference_tensors_under_inference_mode() -> None:
    with dg.inference_mode():
        made = [dg.tensor(1.0), dg.zeros(2), dg.arange(3), dg.ones(2).to(dg.float16)]
    assert all(x.is_inference() for x in made)


@pytest.mark.parametrize(
    "make",
    [
        lambda d: dg.tensor([1.0], device=d),
        lambda d: dg.zeros(2, device=d),
        lambda d: dg.full((2,), 1.5, device=d),
        lambda d: dg.arange(3, device=d),
        lambda d: dg.arange(3.0, device=d),
        lambda d: dg.eye(2, device=d),
        lambda d: dg.as_tensor(jnp.ones(2), device=d),
        lambda d: dg.zeros_like(dg.ones(2), device=d),
        lambda d: dg.zeros_like(dg.ones(2, device=d)),
        lambda d: dg.full_like(dg.ones(2, device=d), 2.0),
        lambda d: dg.ones(2, device=d).new_zeros(3),
        lambda d: dg.ones(2, device=d).new_tensor([1, 2]),
    ],
)
@pytest.mark.parametrize("device", ["cpu:1", dg.device("cpu", 1)])
def test_tensor_is_made_on_its_device(make: Callable[..., dg.Tensor], device: Any) -> None:
    assert make(device).device == dg.device("cpu:1")


@pytest.mark.parametrize("device", ["nowhere", "cpu:99"])
def test_unknown_device_raises(device: str) -> None:
    with pytest.raises(RuntimeError, match=device):
        dg.zeros(2, device=device)


def test_like_functions_keep_a_sharding() -> None:
    mesh = jax.make_mesh((2,), ("rows",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("rows"))
    x = dg.from_jax_array(jax.device_put(jnp.ones((4, 2)), sharding))
    assert dg.zeros_like(x).jax().sharding == sharding
    assert dg.rand_like(x).jax().sharding == sharding
