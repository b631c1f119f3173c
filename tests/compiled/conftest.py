"""What the tests of the compiled backward start from: nothing compiled, and counts of 0."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import dyngraph as dg
from tests.conftest import set_config


@pytest.fixture(autouse=True)
def nothing_compiled() -> Iterator[None]:
    """Forgets what other tests compiled; the settings are the defaults, and so they are again."""
    dg.compiled.clear()
    with set_config(
        compiled_autograd=False,
        compile_after=2,
        compile_whole_after=16,
        compile_in_background=False,
        compiled_cache_size=1024,
        fusion="auto",
    ):
        yield
        dg.compiled.wait_for_compilations()


@pytest.fixture
def at_once() -> Iterator[None]:
    """Compiles what is seen for the first time."""
    with set_config(compile_after=1):
        yield
