"""Whole steps inside of other things."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

import dyngraph as dg
from tests.steps.helpers import CALLS

pytestmark = pytest.mark.filterwarnings("error")


def test_inside_jax_and_mapped_functions_it_is_the_function() -> None:
    step = dg.compile(lambda x: x * 2)
    assert jax.jit(dg.to_jax(step))(jnp.ones(2)).tolist() == [2.0, 2.0]
    assert dg.func.vmap(step)(dg.ones(2, 2)).tolist() == [[2.0, 2.0]] * 2
    assert dg.func.grad(lambda x: step(x).sum())(dg.ones(2)).tolist() == [2.0, 2.0]


def test_compiled_step_in_a_compiled_step() -> None:
    inner = dg.compile(lambda x: x * 2)
    outer = dg.compile(lambda x: inner(x) + 1)
    for _ in range(CALLS):
        assert outer(dg.ones(2)).tolist() == [3.0, 3.0]


def test_modes_are_part_of_the_key() -> None:
    w = dg.ones(2, requires_grad=True)
    step = dg.compile(lambda: w * 2)
    for _ in range(2):
        assert step().requires_grad
        with dg.no_grad():
            assert not step().requires_grad
        with dg.inference_mode():
            assert step().is_inference()
