"""Optimizers and schedulers give the numbers recorded from PyTorch 2.13.0, see `record.py`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import optax
import pytest

import dyngraph as dg
from tests.optim import cases

FIGURES: Mapping[str, Any] = np.load(Path(__file__).with_name("torch.npz"))
NUMBERS_IN_SINGLE = {"NAdam", "ASGD"}
"""Whose state has numbers that PyTorch keeps in single precision."""


def tolerance(name: str) -> float:
    if name == "Muon":  # which computes in bfloat16
        return 2e-2
    return 1e-9 if name.split()[0] in NUMBERS_IN_SINGLE else 1e-12


@pytest.mark.parametrize("name", cases.CASES)
def test_twenty_steps_and_the_state_after_them_are_pytorchs(name: str, x64: None) -> None:
    found, optimizer = cases.trajectory(dg, name)
    np.testing.assert_allclose(found, FIGURES[name], rtol=0, atol=tolerance(name))
    prefix = f"{name}: "
    expected = {key.removeprefix(prefix) for key in FIGURES if key.startswith(prefix)}
    state = cases.state_of(optimizer)
    assert state.keys() == expected
    for key, value in state.items():
        # What PyTorch keeps in single precision it has computed in double.
        np.testing.assert_allclose(value, FIGURES[prefix + key], rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("name", ["AdamW amsgrad", "RMSprop centered"])
def test_single_precision_stays_near_double(name: str) -> None:
    kind, options = cases.CASES[name]
    params = cases.parameters(dg, name, "float32")
    optimizer = getattr(dg.optim, kind)(params, **options)
    for step in range(cases.STEPS):
        cases.advance(dg, name, params, optimizer, step)
    np.testing.assert_allclose(cases.flat(params), FIGURES[name][-1], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", cases.LINE_SEARCHES)
def test_lbfgs_evaluates_where_pytorch_does(name: str, x64: None) -> None:
    found, _ = cases.line_search(dg, name)
    np.testing.assert_allclose(found, FIGURES[name], rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("name", [*cases.SCHEDULES, *cases.SWA])
def test_rates_of_all_epochs_are_pytorchs(name: str) -> None:
    found, _ = cases.rates(dg, name)
    np.testing.assert_array_equal(found, FIGURES[name])


@pytest.mark.parametrize("kind", ["swa", "ema"])
def test_averaged_models_are_pytorchs(kind: str) -> None:
    np.testing.assert_allclose(cases.averages(dg, kind), FIGURES[f"averages {kind}"], rtol=1e-5)


def test_running_statistics_are_computed_anew_as_means_of_batches() -> None:
    norm = dg.nn.BatchNorm1d(2)
    model = dg.nn.Sequential(norm).eval()
    batches = [dg.tensor([[1.0, 2.0], [3.0, 2.0]]), (dg.tensor([[4.0, 0.0], [8.0, 0.0]]), "rest")]
    dg.optim.swa_utils.update_bn(batches, model)
    assert norm.running_mean is not None and norm.running_mean.tolist() == [4.0, 1.0]
    assert norm.momentum == 0.1 and not model.training


@pytest.mark.parametrize("name", ["OneCycleLR", "CyclicLR"])
def test_first_beta_cycles_as_in_pytorch(name: str) -> None:
    found, _ = cases.rates(dg, name, "Adam")
    np.testing.assert_array_equal(found, FIGURES[f"{name} of Adam"])


def test_lion_has_the_numbers_of_optax() -> None:
    params = cases.parameters(dg, "Lion", "float32")
    optimizer = dg.optim.Lion(params, lr=0.1, weight_decay=0.2)
    arrays: Any = [p.detach().jax() + 0 for p in params]
    rule = optax.lion(0.1, weight_decay=0.2)
    state = rule.init(arrays)
    for step in range(5):
        cases.advance(dg, "Lion", params, optimizer, step)
        grads = [np.asarray(g) for g in cases.gradients("Lion", step, "float32")]
        updates, state = rule.update(grads, state, arrays)
        arrays = optax.apply_updates(arrays, updates)
    expected = np.concatenate([np.ravel(a) for a in arrays])
    np.testing.assert_allclose(cases.flat(params), expected, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_is_computed_in_single(dtype: str) -> None:
    p = dg.ones(3, dtype=getattr(dg, dtype), requires_grad=True)
    p.grad = dg.full((3,), 1e-3, dtype=p.dtype)
    optimizer = dg.optim.Adam([p], lr=0.5)
    optimizer.step()
    assert p.dtype == optimizer.state[p]["exp_avg"].dtype == getattr(dg, dtype)
    assert p.tolist() == [0.5, 0.5, 0.5]  # in half precision, 0.999 ** 2 would be 1


def test_complex_parameters_move_as_pairs_of_numbers() -> None:
    values = np.array([1 + 2j, -3 + 0.5j], np.complex64)
    p = dg.tensor(values, requires_grad=True)
    pair = dg.tensor(np.stack([values.real, values.imag], -1), requires_grad=True)
    for tensor in (p, pair):
        optimizer = dg.optim.Adam([tensor], lr=0.1)
        for _ in range(2):
            tensor.grad = tensor.detach() * 2
            optimizer.step()
    np.testing.assert_allclose(dg.view_as_real(p.detach()).numpy(), pair.detach().numpy())
