"""Recurrent networks, attention and transformers give what PyTorch gives.

`sequences.npz` was recorded from PyTorch 2.13 by `record_sequences.py`.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dyngraph as dg
from tests.nn.sequence_cases import CASES, flat, run

RECORDED = np.load(Path(__file__).with_name("sequences.npz"))
every_case = pytest.mark.parametrize("name", CASES)


def made(name: str) -> dg.nn.Module:
    """The module of a case with the recorded parameters."""
    module = CASES[name].make(dg.nn)
    values, state = RECORDED[f"{name}/state"], {}
    for key, value in module.state_dict().items():
        state[key] = dg.tensor(values[: value.numel()].reshape(value.shape))
        values = values[value.numel() :]
    module.load_state_dict(state)
    return module


@functools.cache
def ran(name: str) -> tuple[list[Any], list[Any]]:
    return run(dg, made(name), name)


@every_case
def test_state_dict_has_pytorchs_keys_and_shapes(name: str) -> None:
    found = [f"{k} {[*v.shape]}" for k, v in CASES[name].make(dg.nn).state_dict().items()]
    assert found == RECORDED[f"{name}/keys"].tolist()


@every_case
def test_results_are_pytorchs(name: str) -> None:
    expected = RECORDED[f"{name}/results"]
    np.testing.assert_allclose(flat(ran(name)[0]), expected, rtol=2e-5, atol=2e-6)


@every_case
def test_gradients_are_pytorchs(name: str) -> None:
    expected = RECORDED[f"{name}/grads"]
    np.testing.assert_allclose(flat(ran(name)[1]), expected, rtol=1e-4, atol=1e-5)
