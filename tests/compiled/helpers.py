"""What the tests of the compiled backward share: the same program in both modes, and its counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import dyngraph as dg

SIGHTS = 3
"""How often a program runs compiled: when it is first seen, when it is compiled, from the cache."""


def leaf(*values: float) -> dg.Tensor:
    """A leaf that requires grad."""
    return dg.tensor(list(values), requires_grad=True)


def grad_of(x: dg.Tensor) -> dg.Tensor:
    assert x.grad is not None
    return x.grad


def same_in_both_modes(program: Callable[[], Any]) -> Any:
    """What `program` returns eagerly, after three compiled runs that must return the same."""
    with dg.compiled_autograd(False):
        expected = program()
    with dg.compiled_autograd():
        for _ in range(SIGHTS):
            assert_same(program(), expected)
    return expected


def assert_same(got: Any, expected: Any) -> None:
    """Both are equal; tensors, among what they hold, in shape and dtype, and closely in value."""
    assert type(got) is type(expected)
    if isinstance(expected, dg.Tensor):
        assert (got.shape, got.dtype, got.device) == (
            expected.shape,
            expected.dtype,
            expected.device,
        )
        assert (got.requires_grad, got.is_leaf) == (expected.requires_grad, expected.is_leaf)
        np.testing.assert_allclose(
            got.detach().numpy(), expected.detach().numpy(), rtol=1e-5, atol=1e-6
        )
    elif isinstance(expected, (list, tuple)):
        assert len(got) == len(expected)
        for one, other in zip(got, expected, strict=True):
            assert_same(one, other)
    elif isinstance(expected, dict):
        assert list(got) == list(expected)
        assert_same(list(got.values()), list(expected.values()))
    else:
        assert got == expected


class Raised(NamedTuple):
    """An error as the user sees it."""

    kind: str
    text: str
    notes: list[str]


def raised_by(action: Callable[[], object]) -> Raised | None:
    """The error that `action` raises."""
    try:
        action()
    except Exception as error:
        return Raised(type(error).__name__, str(error), getattr(error, "__notes__", []))
    return None


def compilations() -> int:
    return dg.compiled.stats().compilations


def compilations_of(steps: Iterator[Any] | Callable[[], Any], count: int) -> list[int]:
    """How many programs each of `count` steps compiles, with the mode on."""
    made = []
    with dg.compiled_autograd():
        for _ in range(count):
            before = compilations()
            next(steps) if isinstance(steps, Iterator) else steps()
            made.append(compilations() - before)
    return made
