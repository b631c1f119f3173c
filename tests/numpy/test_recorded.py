"""Every recorded function of `jax.numpy`: value and gradient are its twin's."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import jax.numpy as jnp
import pytest

import dyngraph as dg
from dyngraph.numpy import of_functions
from dyngraph.numpy.namespace import LEFT_OUT, PLAIN, is_function, names
from tests.numpy.calls import CALLS, drawn
from tests.numpy.twins import Twins

MODULES: dict[str, tuple[ModuleType, Any]] = {
    "": (jnp, dg.numpy),
    "linalg.": (jnp.linalg, dg.numpy.linalg),
    "fft.": (jnp.fft, dg.numpy.fft),
}
# A foreign array is what it takes.
WITHOUT_SAMPLE = {"from_dlpack"}
# Fourth and fifth digits of a least squares fit, and of roots.
LOOSE = {"polyfit", "roots", "linalg.cond", "linalg.pinv"}
SECOND = ["tanh", "power", "multiply", "arctan2", "linalg.inv", "compress", "linalg.slogdet"]

FUNCTIONS = [
    prefix + name
    for prefix, (module, _) in MODULES.items()
    for name in names(module, LEFT_OUT)
    if name not in PLAIN
    and name not in WITHOUT_SAMPLE
    and not hasattr(of_functions, name)
    and is_function(getattr(module, name))
]


def twins(dotted: str) -> Twins:
    prefix, name = dotted[: dotted.find(".") + 1], dotted[dotted.find(".") + 1 :]
    module, ours = MODULES[prefix]
    twin = getattr(module, name)
    sample = CALLS.get(dotted) or drawn(twin)
    assert sample is not None, f"{dotted} needs a call in tests/numpy/calls.py"
    return Twins(getattr(ours, name), twin, sample.args, sample.kwargs)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_value_and_gradient_are_those_of_the_twin(name: str) -> None:
    tolerance = {"rtol": 1e-2, "atol": 1e-3} if name in LOOSE else {}
    twins(name).check(**tolerance)


@pytest.mark.parametrize("name", SECOND)
def test_second_derivative_is_that_of_the_twin(name: str) -> None:
    twins(name).check_second()
