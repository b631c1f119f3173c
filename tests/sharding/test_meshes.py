"""Meshes and placements: which devices, along which axes, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import pytest
from jax.sharding import AxisType, PartitionSpec as P

import dyngraph as dg
from tests.sharding.helpers import data_mesh, sharding


def test_mesh_has_the_sizes_by_name() -> None:
    assert dict(sharding.mesh(data=2, model=2).shape) == {"data": 2, "model": 2}


def test_mesh_leaves_the_choice_of_shardings_to_xla() -> None:
    assert sharding.mesh(data=4).axis_types == (AxisType.Auto,)


def test_open_size_is_as_many_as_there_are() -> None:
    assert sharding.mesh(data=-1, model=2).shape["data"] == 2


def test_smaller_mesh_has_the_first_devices() -> None:
    assert list(sharding.mesh(data=2).devices) == jax.devices()[:2]


def test_mesh_of_given_devices() -> None:
    assert list(sharding.mesh(jax.devices()[2:], data=2).devices) == jax.devices()[2:]


def test_placement_is_written_as_jax_writes_its_own() -> None:
    assert sharding.placement(data_mesh(), "data", None, None).spec == P("data")


def test_dim_is_split_by_two_axes() -> None:
    mesh = sharding.mesh(data=2, model=2)
    x = sharding.shard(dg.arange(4.0), mesh, ("data", "model"))
    assert [shard.data.shape for shard in x.jax().addressable_shards] == [(1,)] * 4


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: sharding.mesh(data=3), RuntimeError, "JAX_NUM_CPU_DEVICES=3"),
        (lambda: sharding.mesh(data=-1, model=-1), ValueError, "Give the other one"),
        (lambda: sharding.mesh(), ValueError, "expected an axis or more"),
        (lambda: sharding.mesh(data=0), ValueError, "a number of devices or -1"),
        (lambda: sharding.placement(data_mesh(), "rows"), ValueError, r"one of \['data'\]"),
        (lambda: sharding.placement(data_mesh(), "data", "data"), ValueError, "or None"),
        (lambda: sharding.placement("data"), TypeError, r"by dg\.sharding\.mesh"),  # type: ignore[arg-type]
        (
            lambda: sharding.placement(jax.make_mesh((4,), ("i",), (AxisType.Explicit,)), "i"),
            ValueError,
            "expected Auto",
        ),
    ],
)
def test_what_is_no_mesh_or_placement(
    call: Callable[[], Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call()
