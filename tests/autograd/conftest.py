"""Fixtures of the tests of autograd's public names."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

import dyngraph as dg


@pytest.fixture(params=["plain", "create_graph", "dual"])
def gradient(request: pytest.FixtureRequest) -> Iterator[Any]:
    """`gradient(output, input)`, unrecorded, recorded, and with a level of forward mode open."""
    level = contextlib.nullcontext()
    if request.param == "dual":
        level = dg.autograd.forward_ad.dual_level()

    def run(output: dg.Tensor, *inputs: dg.Tensor) -> Any:
        create = request.param == "create_graph"
        grads = dg.autograd.grad(output.sum(), inputs, create_graph=create, allow_unused=True)
        return grads if len(grads) > 1 else grads[0]

    with level:
        yield run
