"""Modules that are trained on several devices: the numbers are those of one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

import dyngraph as dg
from tests.conftest import COMPILED, EAGER
from tests.sharding.helpers import data_mesh, in_each_way, repeat, sharding, spec_of

X = np.sin(np.arange(64, dtype=np.float32)).reshape(8, 8)


def net() -> Any:
    """Linear layers round a BatchNorm; the same numbers each time."""
    dg.manual_seed(0)
    return dg.nn.Sequential(
        dg.nn.Linear(8, 16, bias=False), dg.nn.BatchNorm1d(16), dg.nn.ReLU(), dg.nn.Linear(16, 4)
    )


def placed(how: str) -> Any:
    model = net()
    if how == "replicated":
        return sharding.replicate(model, data_mesh())
    return sharding.fully_shard(model, data_mesh(), min_size=17) if how == "spread" else model


def train(model: Any, way: str = "eager", *, times: int = 3) -> tuple[list[float], Any]:
    """Losses and the optimizer of some steps of Adam, the batch spread if the model is."""
    optimizer = dg.optim.Adam(model.parameters(), lr=0.01)
    x = dg.tensor(X, device=model[0].weight.device)
    if model[0].weight.sharding.num_devices > 1:
        x = sharding.shard(x, data_mesh(), "data")

    def step() -> Any:
        optimizer.zero_grad()
        loss = (model(x) ** 2).mean()
        loss.backward()
        dg.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        return loss

    return repeat(way, step, times), optimizer


@pytest.fixture(scope="module")
def alone() -> tuple[list[float], dict[str, Any]]:
    """Losses and the state after training on one device."""
    model = net()
    losses, _ = train(model)
    return losses, {name: tensor.numpy() for name, tensor in model.state_dict().items()}


@in_each_way
@pytest.mark.parametrize("how", ["replicated", "spread"])
def test_training_on_several_devices_is_that_on_one(how: str, way: str, alone: Any) -> None:
    model = placed(how)
    losses, _ = train(model, way)
    np.testing.assert_allclose(losses, alone[0], rtol=1e-5)
    for name, tensor in model.state_dict().items():
        np.testing.assert_allclose(tensor.numpy(), alone[1][name], rtol=1e-3, atol=1e-5)


@in_each_way
def test_parameters_gradients_and_state_stay_spread(way: str) -> None:
    model = placed("spread")
    _, optimizer = train(model, way)
    for p in model.parameters():
        assert spec_of(p.grad) == spec_of(p)
        assert spec_of(optimizer.state[p]["exp_avg"]) == spec_of(p)
    assert [spec_of(p) for p in model.parameters()] == [
        P("data"),
        P(),
        P(),
        P(None, "data"),
        P(),
    ]


@pytest.mark.parametrize("backward_mode", [EAGER, COMPILED], indirect=True)
def test_statistics_are_those_of_the_whole_batch(backward_mode: str, alone: Any) -> None:
    model: Any = dg.nn.SyncBatchNorm.convert_sync_batchnorm(placed("replicated"))
    train(model)
    np.testing.assert_allclose(model[1].running_var.numpy(), alone[1]["1.running_var"], rtol=1e-4)


def test_replicated_module_has_its_buffers_on_each_device() -> None:
    model = placed("replicated")
    assert all(len(t.sharding.device_set) == 4 for t in model.state_dict().values())


def test_replicate_takes_nested_tensors() -> None:
    found = sharding.replicate({"a": [dg.ones(2), 3]}, data_mesh())
    assert (len(found["a"][0].sharding.device_set), found["a"][1]) == (4, 3)


def test_parameter_without_a_dim_that_divides_is_replicated() -> None:
    layer = sharding.fully_shard(dg.nn.Linear(3, 5), data_mesh(), min_size=1)
    assert spec_of(layer.weight) == P()


def test_state_follows_a_parameter_that_is_spread_later(alone: Any) -> None:
    model = net().to("cpu:1")
    _, optimizer = train(model, times=1)
    sharding.fully_shard(model, data_mesh(), min_size=17)
    x = sharding.shard(dg.tensor(X), data_mesh(), "data")
    for _ in range(2):
        optimizer.zero_grad()
        (model(x) ** 2).mean().backward()
        dg.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
    weight = model[0].weight
    assert spec_of(optimizer.state[weight]["exp_avg"]) == P("data")
    np.testing.assert_allclose(weight.detach().numpy(), alone[1]["0.weight"], rtol=1e-3, atol=1e-5)


def test_loaded_state_is_spread_as_what_it_is_loaded_into(tmp_path: Path) -> None:
    model = placed("spread")
    _, optimizer = train(model)
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    dg.save(state, tmp_path / "state.safetensors")
    loaded = dg.load(tmp_path / "state.safetensors")
    other = placed("spread")
    _, continued = train(other, times=1)
    other.load_state_dict(loaded["model"])
    continued.load_state_dict(loaded["optimizer"])
    weight, own = other[0].weight, model[0].weight
    moment = continued.state[weight]["exp_avg"]
    assert (spec_of(weight), spec_of(moment)) == (P("data"), P("data"))
    assert moment.tolist() == optimizer.state[own]["exp_avg"].tolist()


def test_fully_shard_takes_modules() -> None:
    with pytest.raises(TypeError, match=r"Spread a tensor by shard_\(\)"):
        sharding.fully_shard(dg.ones(4), data_mesh())  # type: ignore[arg-type]


# --- SyncBatchNorm ----------------------------------------------------------------------------


def test_sync_batch_norm_takes_over_parameters_and_statistics() -> None:
    norm = dg.nn.BatchNorm2d(3, eps=0.1, momentum=None, affine=True).eval()
    sync: Any = dg.nn.SyncBatchNorm.convert_sync_batchnorm(norm)
    assert sync.weight is norm.weight
    assert sync.running_mean is norm.running_mean
    assert (sync.eps, sync.momentum, sync.training) == (0.1, None, False)


def test_sync_batch_norm_prints_as_pytorchs() -> None:
    assert repr(dg.nn.SyncBatchNorm(3)) == (
        "SyncBatchNorm(3, eps=1e-05, momentum=0.1, affine=True, bias=True, "
        "track_running_stats=True)"
    )


def test_conversion_leaves_other_modules() -> None:
    model = net()
    converted = dg.nn.SyncBatchNorm.convert_sync_batchnorm(model)
    assert converted is model
    assert [type(m).__name__ for m in model] == ["Linear", "SyncBatchNorm", "ReLU", "Linear"]


def test_sync_batch_norm_refuses_a_vector() -> None:
    with pytest.raises(ValueError, match=r"expected at least 2D input \(got 1D input\)"):
        dg.nn.SyncBatchNorm(2)(dg.ones(2))


def test_sync_batch_norm_knows_no_groups() -> None:
    with pytest.raises(ValueError, match="Normalize a part of it"):
        dg.nn.SyncBatchNorm(2, process_group="some")
