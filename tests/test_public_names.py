"""The public face: what `dyngraph.__all__` promises is there, complete and documented."""

import inspect

import pytest

import dyngraph as dg

pytestmark = pytest.mark.smoke

# The classes, functions and operators of our own: not a dtype or a constant passed on from JAX.
CALLABLES = [
    name
    for name in dg.__all__
    if callable(value := getattr(dg, name, None)) and value.__module__.startswith("dyngraph")
]


def test_all_is_sorted_and_names_nothing_twice() -> None:
    assert list(dg.__all__) == sorted(set(dg.__all__))


def test_every_name_in_all_exists() -> None:
    assert [name for name in dg.__all__ if not hasattr(dg, name)] == []


def test_nothing_public_is_missing_from_all() -> None:
    public = {
        name
        for name, value in vars(dg).items()
        if not name.startswith("_") and not inspect.ismodule(value)
    }
    assert sorted(public - set(dg.__all__)) == []


@pytest.mark.parametrize("name", CALLABLES)
def test_public_callable_has_a_docstring_of_its_own(name: str) -> None:
    value = getattr(dg, name)
    assert value.__doc__
    assert value.__doc__ is not type(value).__doc__
