"""GradScaler does what PyTorch 2.13's does; see `record_autocast`."""

import json
import math
import pickle
from pathlib import Path

import jax
import numpy as np
import pytest

import dyngraph as dg
from tests.amp.autocast_cases import scaled_steps

FIGURES = json.loads((Path(__file__).parent / "autocast.json").read_text())


def made(factor: float = 1.0) -> tuple[dg.Tensor, dg.optim.SGD, dg.amp.GradScaler]:
    """A parameter with a scaled gradient of `factor`, its optimizer, and the scaler."""
    w = dg.tensor([1.0], requires_grad=True)
    scaler = dg.amp.GradScaler("cpu", init_scale=4.0)
    scaler.scale((w * factor).sum()).backward()
    return w, dg.optim.SGD([w], lr=0.5), scaler


def test_scales_and_steps_are_pytorchs() -> None:
    np.testing.assert_allclose(scaled_steps(dg), FIGURES["scaler"], rtol=1e-6)


@pytest.mark.parametrize(
    "factors", [[1.0, 0.5, math.inf, 2.0, 1.0], [math.inf, math.inf, 1.0, 1.0]]
)
def test_compiled_steps_leave_out_what_steps_as_written_do(factors: list[float]) -> None:
    def run(is_compiled: bool) -> list[list[float]]:
        w = dg.tensor([1.0], requires_grad=True)
        optimizer = dg.optim.SGD([w], lr=0.1, momentum=0.9)
        scaler = dg.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)

        def step(factor: dg.Tensor) -> None:
            optimizer.zero_grad()
            scaler.scale((w * w * factor).sum()).backward()
            scaler.step(optimizer)
            scaler.update()

        run = dg.compile(step, disable=not is_compiled)
        rows = []
        for factor in factors:
            run(dg.tensor(factor))
            rows.append([scaler.get_scale(), *w.tolist()])
        assert not is_compiled or run.programs
        return rows

    np.testing.assert_allclose(run(True), run(False), rtol=1e-6)


def test_unscaled_gradients_can_be_clipped_before_the_step() -> None:
    w, optimizer, scaler = made(10.0)
    scaler.unscale_(optimizer)
    assert w.grad is not None and w.grad.tolist() == [10.0]
    dg.nn.utils.clip_grad_norm_([w], 1.0)
    scaler.step(optimizer)
    assert w.item() == pytest.approx(0.5, abs=1e-5)


def test_step_with_a_gradient_that_is_not_finite_is_left_out() -> None:
    w, optimizer, scaler = made(float("nan"))
    assert scaler.step(optimizer) is None
    scaler.update()
    assert (w.tolist(), scaler.get_scale()) == ([1.0], 2.0)


def test_second_unscale_raises() -> None:
    _, optimizer, scaler = made()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match=r"already been called on this optimizer.*Call it once"):
        scaler.unscale_(optimizer)


def test_unscale_after_step_raises() -> None:
    _, optimizer, scaler = made()
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match=r"called after step\(\). Call it before"):
        scaler.unscale_(optimizer)


def test_second_step_raises() -> None:
    _, optimizer, scaler = made()
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match=r"Call update\(\) at the end"):
        scaler.step(optimizer)


def test_update_without_step_raises() -> None:
    _, _, scaler = made()
    with pytest.raises(AssertionError, match=r"prior to update. Call step\(\)"):
        scaler.update()


def test_step_without_scale_raises() -> None:
    _, optimizer, _ = made()
    with pytest.raises(AssertionError, match=r"did not use scaler.scale"):
        dg.amp.GradScaler("cpu").step(optimizer)


def test_step_without_gradients_raises() -> None:
    w, optimizer, scaler = made()
    w.grad = None
    with pytest.raises(AssertionError, match=r"none of its parameters.*Call backward\(\)"):
        scaler.step(optimizer)


def test_closure_raises() -> None:
    _, optimizer, scaler = made()
    with pytest.raises(RuntimeError, match="Compute the loss and its gradients before"):
        scaler.step(optimizer, closure=lambda: 1.0)


def test_half_gradients_raise() -> None:
    w = dg.ones(1, dtype=dg.float16, requires_grad=True)
    scaler = dg.amp.GradScaler("cpu")
    scaler.scale(w.float().sum()).backward()
    with pytest.raises(ValueError, match=r"FP16 gradients. Keep the parameters in float32"):
        scaler.unscale_(dg.optim.SGD([w], lr=0.1))


def test_nested_outputs_are_scaled_in_their_structure() -> None:
    scaler = dg.amp.GradScaler("cpu", init_scale=4.0)
    first, (second,) = scaler.scale([dg.tensor(1.0), (dg.tensor(2.0),)])
    assert (first.item(), second.item()) == (4.0, 8.0)


def test_what_is_no_tensor_cannot_be_scaled() -> None:
    with pytest.raises(ValueError, match="must be a Tensor or an iterable of Tensors, got float"):
        dg.amp.GradScaler("cpu").scale(1.0)


def test_half_outputs_stay_half() -> None:
    assert dg.amp.GradScaler("cpu").scale(dg.ones(1, dtype=dg.float16)).dtype is dg.float16


@pytest.mark.parametrize("given", [2.5, dg.tensor(2.5)])
def test_scale_can_be_set(given: float | dg.Tensor) -> None:
    _, _, scaler = made()
    scaler.update(given)
    assert scaler.get_scale() == 2.5


def test_new_scale_of_several_elements_raises() -> None:
    _, _, scaler = made()
    with pytest.raises(AssertionError, match="a float or a tensor of one element"):
        scaler.update(dg.ones(2))


def test_absent_device_warns_and_disables() -> None:
    with pytest.warns(UserWarning, match=r"no device of type 'cuda'. Disabling"):
        scaler = dg.amp.GradScaler()
    assert not scaler.is_enabled()
    assert (scaler.get_scale(), scaler.state_dict()) == (1.0, {})


def test_disabled_scaler_only_steps() -> None:
    w, optimizer, _ = made()
    scaler = dg.amp.GradScaler("cpu", enabled=False)
    assert scaler.scale(w) is w
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert w.tolist() == [-1.0]


@pytest.mark.parametrize(
    ("options", "match"),
    [({"growth_factor": 1.0}, "must be > 1.0"), ({"backoff_factor": 1.0}, "must be < 1.0")],
)
def test_factors_that_do_not_change_the_scale_raise(options: dict[str, float], match: str) -> None:
    with pytest.raises(AssertionError, match=match):
        dg.amp.GradScaler("cpu", **options)  # type: ignore[arg-type]


def test_state_is_loaded_before_and_after_the_first_scale() -> None:
    _, optimizer, scaler = made()
    scaler.step(optimizer)
    scaler.update()
    state = scaler.state_dict()
    assert state["_growth_tracker"] == 1
    fresh, (_, _, used) = dg.amp.GradScaler("cpu"), made()
    for other in (fresh, used):
        other.load_state_dict(state)
        assert other.state_dict() == state


def test_loading_an_empty_state_raises() -> None:
    with pytest.raises(RuntimeError, match=r"state dict is empty.*Save it from one that scales"):
        dg.amp.GradScaler("cpu").load_state_dict({})


def test_pickled_scaler_goes_on() -> None:
    _, optimizer, scaler = made()
    scaler.step(optimizer)
    scaler.update()
    assert pickle.loads(pickle.dumps(scaler)).state_dict() == scaler.state_dict()


def test_pickling_within_an_iteration_raises() -> None:
    _, optimizer, scaler = made()
    scaler.unscale_(optimizer)
    with pytest.raises(AssertionError, match=r"may only be pickled.*after scaler.update"):
        pickle.dumps(scaler)


def test_parameters_on_several_devices_share_one_scale() -> None:
    places = "cpu:1", "cpu:2"
    weights = [dg.ones(2, device=place, requires_grad=True) for place in places]
    optimizer = dg.optim.SGD(weights, lr=0.5)
    scaler = dg.amp.GradScaler("cpu", init_scale=4.0)
    for _ in range(2):
        optimizer.zero_grad()
        for loss in scaler.scale([w.sum() for w in weights]):
            loss.backward()
        scaler.step(optimizer)
        scaler.update()
    assert [w.tolist() for w in weights] == [[0.0, 0.0]] * 2
    assert [w.device for w in weights] == [dg.device(place) for place in places]


def test_gradients_spread_over_devices_are_unscaled_where_they_are() -> None:
    mesh = jax.make_mesh((4,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    spread = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))
    w = dg.from_jax_array(jax.device_put(np.ones(8, np.float32), spread), requires_grad=True)
    optimizer = dg.optim.SGD([w], lr=0.5)
    scaler = dg.amp.GradScaler("cpu", init_scale=4.0)
    for _ in range(2):
        optimizer.zero_grad()
        scaler.scale((w * w).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
    assert w.tolist() == [0.0] * 8
    assert len(w._cell.array.devices()) == 4
