"""state_dict and load_state_dict: names, versions, hooks, and what is said where they differ."""

from typing import Any

import numpy as np
import pytest

import dyngraph as dg
from dyngraph import nn


def model() -> nn.Sequential:
    return nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))


def values(state: Any) -> dict[str, np.ndarray]:
    return {name: value.numpy().copy() for name, value in state.items()}


def test_state_holds_the_version_of_each_modules_format() -> None:
    metadata = model().state_dict()._metadata
    assert metadata == {"": {"version": 1}, "0": {"version": 1}, "1": {"version": 2}}


def test_state_shares_memory_and_has_no_history() -> None:
    layer = nn.Linear(2, 1)
    state = layer.state_dict()
    with dg.no_grad():
        layer.weight.fill_(5)
    assert state["weight"].tolist() == [[5.0, 5.0]] and not state["weight"].requires_grad
    assert layer.state_dict(keep_vars=True)["weight"] is layer.weight


def test_arrays_of_numpy_are_loaded_in_place() -> None:
    first, second = model(), model()
    weight = second[0].weight
    second.load_state_dict(values(first.state_dict()))
    assert second[0].weight is weight and weight.tolist() == first[0].weight.tolist()


def test_assigned_values_become_the_parameters() -> None:
    first, second = model(), model()
    second[0].weight.requires_grad_(False)
    state = first.state_dict()
    second.load_state_dict(state, assign=True)
    assert isinstance(second[0].weight, nn.Parameter) and not second[0].weight.requires_grad
    assert second[0].bias.requires_grad and second[1].running_mean is state["1.running_mean"]


def test_state_from_before_batches_were_counted_is_loaded() -> None:
    state = values(model().state_dict())
    del state["1.num_batches_tracked"]
    assert repr(model().load_state_dict(state)) == "<All keys matched successfully>"


def test_number_saved_with_one_dim_is_loaded() -> None:
    module = nn.Module()
    module.scale = nn.Parameter(dg.tensor(3.0))
    module.load_state_dict({"scale": np.ones(1, np.float32)})
    assert module.scale.item() == 1.0


def test_missing_and_unexpected_names_are_returned_where_not_strict() -> None:
    found = nn.Linear(2, 1).load_state_dict({"weight": dg.ones(1, 2), "new": 1}, strict=False)
    assert found.missing_keys == ["bias"] and found.unexpected_keys == ["new"]


def test_extra_state_is_saved_and_loaded() -> None:
    class Counting(nn.Module):
        count = 0

        def get_extra_state(self) -> int:
            return self.count

        def set_extra_state(self, state: int) -> None:
            self.count = state

    first, second = Counting(), Counting()
    first.count = 3
    second.load_state_dict(first.state_dict())
    assert second.count == 3


def test_state_hooks_run_round_saving_and_loading() -> None:
    layer, seen = nn.Linear(2, 1, bias=False), []
    layer.register_state_dict_pre_hook(lambda module, prefix, keep: seen.append("before"))

    def add(module: Any, state: Any, prefix: str, metadata: Any) -> None:
        state[prefix + "added"] = dg.ones(1)

    def take_out(module: Any, state: Any, prefix: str, *_: Any) -> None:
        del state[prefix + "added"]

    layer.register_state_dict_post_hook(add)
    layer.register_load_state_dict_pre_hook(take_out)
    layer.register_load_state_dict_post_hook(lambda module, keys: seen.append(keys))
    state = layer.state_dict()
    assert list(state) == ["weight", "added"]
    layer.load_state_dict(state)
    assert seen == ["before", ([], [])] and "added" in state


@pytest.mark.parametrize(
    ("state", "match"),
    [
        ({"weight": np.ones((1, 2))}, r'Missing key\(s\) in state_dict: "bias"'),
        (
            {"weight": np.ones((1, 2)), "bias": np.ones(1), "b": 1},
            r'Unexpected key\(s\) in state_dict: "b"',
        ),
        (
            {"weight": np.ones((2, 2)), "bias": np.ones(1)},
            r"size mismatch for weight: copying a param with shape \[2, 2\] from checkpoint, the "
            r"shape in current model is \[1, 2\]",
        ),
        ({"weight": 3, "bias": np.ones(1)}, "received <class 'int'>"),
    ],
)
def test_what_does_not_fit_raises(state: dict[str, Any], match: str) -> None:
    with pytest.raises(RuntimeError, match=match):
        nn.Linear(2, 1).load_state_dict(state)


def test_what_fits_is_loaded_before_the_error() -> None:
    layer = nn.Linear(2, 1)
    with pytest.raises(RuntimeError, match="Missing key"):
        layer.load_state_dict({"weight": np.full((1, 2), 7.0, np.float32)})
    assert layer.weight.tolist() == [[7.0, 7.0]]


def test_what_is_no_mapping_raises() -> None:
    with pytest.raises(TypeError, match="Expected state_dict to be dict-like"):
        nn.Linear(2, 1).load_state_dict([1])  # type: ignore[arg-type]


def test_running_statistics_where_none_are_tracked_raise() -> None:
    state = values(nn.InstanceNorm1d(2, track_running_stats=True).state_dict())
    with pytest.raises(RuntimeError, match="with track_running_stats=False"):
        nn.InstanceNorm1d(2).load_state_dict(state)
