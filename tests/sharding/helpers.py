"""What the tests of sharding share: a mesh of the four CPU devices, and the ways to go backward."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest

import dyngraph as dg
from tests.conftest import set_config

sharding = dg.sharding
in_each_way = pytest.mark.parametrize("way", ["eager", "compiled", "deferred", "whole"])


def data_mesh() -> Any:
    """All four devices along the axis "data"."""
    return sharding.mesh(data=4)


def repeat(way: str, step: Callable[[], Any], times: int) -> list[float]:
    """Runs a step, with its backward done this way, so often; what it returned, as numbers."""
    if way == "whole":
        step = dg.compile(step)
    contexts = {
        "compiled": lambda: set_config(compiled_autograd=True, compile_after=1),
        "deferred": dg.deferred,
    }
    found = []
    for _ in range(times):
        with contexts.get(way, contextlib.nullcontext)():
            result = step()
        found.append(result.item())
    return found


def spec_of(tensor: Any) -> Any:
    """How a tensor is spread, as its placement says it."""
    return tensor.sharding.spec
