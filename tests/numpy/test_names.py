"""`dyngraph.numpy` has every public name of `jax.numpy` that it does not leave out by name."""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

import jax.numpy as jnp
import pytest

import dyngraph as dg
from dyngraph.numpy import of_functions
from dyngraph.numpy.namespace import LEFT_OUT, PLAIN, Ufunc, is_function, names

MODULES: list[tuple[ModuleType, Any]] = [
    (jnp, dg.numpy),
    (jnp.linalg, dg.numpy.linalg),
    (jnp.fft, dg.numpy.fft),
]
every_module = pytest.mark.parametrize(("twin", "ours"), MODULES)


@every_module
def test_every_public_function_is_recorded_or_left_out_with_a_reason(
    twin: ModuleType, ours: Any
) -> None:
    missing = []
    for name in names(twin):
        if name in LEFT_OUT or not is_function(getattr(twin, name)):
            continue
        value = getattr(ours, name)
        by_hand = hasattr(of_functions, name)
        if not (hasattr(value, "recorded") or name in PLAIN or by_hand):
            missing.append(name)
    assert missing == []


def test_ten_functions_are_left_out() -> None:
    assert len(LEFT_OUT) == 10
    assert set(LEFT_OUT) <= set(names(jnp))
    assert set(PLAIN) <= set(names(jnp))


@every_module
def test_all_lists_what_is_there(twin: ModuleType, ours: Any) -> None:
    assert ours.__all__ == sorted(set(ours.__all__))
    assert set(ours.__all__) == set(names(twin)) - (set(LEFT_OUT) if twin is jnp else set())
    assert dir(ours) == ours.__all__


def test_left_out_function_says_why() -> None:
    with pytest.raises(AttributeError, match=r"leaves out 'vectorize': .* Write the function on"):
        dg.numpy.vectorize  # noqa: B018


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"module 'dyngraph\.numpy' has no attribute 'tnah'"):
        dg.numpy.tnah  # noqa: B018


def test_constants_and_dtypes_are_passed_on() -> None:
    assert dg.numpy.pi is jnp.pi
    assert dg.numpy.newaxis is None
    assert dg.numpy.float32 is jnp.float32
    assert dg.numpy.s_[1:2] == slice(1, 2)
    assert dg.numpy.ndarray is dg.Tensor


def test_function_keeps_the_signature_of_its_twin() -> None:
    assert inspect.signature(dg.numpy.var) == inspect.signature(jnp.var)
    assert dg.numpy.var.__doc__.startswith("`jax.numpy.var`, recorded on tensors.")


def test_ufunc_has_its_methods() -> None:
    assert isinstance(dg.numpy.add, dg.numpy.ufunc)
    assert dg.numpy.ufunc is Ufunc
    x = dg.tensor([1.0, 2.0, 4.0], requires_grad=True)
    total = dg.numpy.multiply.reduce(x)
    total.backward()
    assert total.item() == 8.0
    assert x.grad is not None
    assert x.grad.tolist() == [8.0, 4.0, 2.0]
    assert dg.numpy.add.outer(x, x).shape == (3, 3)
    assert dg.numpy.add.nin == 2
