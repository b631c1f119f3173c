"""Compiling in a thread of its own, while steps go on kernel by kernel."""

from collections.abc import Iterator

import pytest

import dyngraph as dg
from tests.compiled.helpers import assert_same, compilations, leaf
from tests.conftest import set_config


@pytest.fixture(autouse=True)
def in_background() -> Iterator[None]:
    with set_config(compile_in_background=True, compile_after=1):
        yield


def step(x: dg.Tensor) -> dg.Tensor:
    with dg.compiled_autograd():
        return dg.autograd.grad((x.exp() * x).sum(), x)[0]


def test_steps_do_not_wait_for_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(
        "dyngraph.compiled.compilation._compile_apart", lambda *args: asked.append(args[0])
    )
    x = leaf(1.0, 2.0)
    first, second = step(x), step(x)
    dg.compiled.wait_for_compilations()
    assert_same(first, second)
    assert (len(asked), compilations()) == (1, 0)


def test_what_was_compiled_in_the_background_is_used() -> None:
    x = leaf(1.0, 2.0)
    first = step(x)
    dg.compiled.wait_for_compilations()
    before = dg.compiled.stats().segments
    assert_same(step(x), first)
    assert dg.compiled.stats().segments == before + 1


def test_failure_in_the_background_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ValueError("no compiler")

    monkeypatch.setattr("dyngraph.compiled.program.compiler_options", fail)
    x = leaf(1.0, 2.0)
    first = step(x)
    dg.compiled.wait_for_compilations()
    assert "ValueError: no compiler" in str(dg.compiled.explain())
    assert_same(step(x), first)
