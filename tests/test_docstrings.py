"""Every example in a docstring of dyngraph runs and prints what it says.

Examples have `dg`, `jnp` and `np` at hand, and import what else they use.
"""

import doctest
import importlib
import pkgutil
import sys
from collections.abc import Iterator
from types import ModuleType

import jax.numpy as jnp
import numpy as np
import pytest

import dyngraph as dg

OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

# These run the package when they are imported.
PROGRAMS = {"demo", "__main__"}

MODULES = [
    "dyngraph",
    *sorted(
        module.name
        for module in pkgutil.walk_packages(dg.__path__, "dyngraph.")
        if PROGRAMS.isdisjoint(module.name.split("."))
    ),
]


def documented(module: ModuleType) -> Iterator[tuple[str, object]]:
    """The classes, functions and operators that call the module their own, by name.

    DocTestFinder's own walk goes by the file a function's code stands in, and so would miss the
    operators, whose code stands where they are generated.
    """
    for name, value in vars(module).items():
        has_docstring = value.__doc__ is not type(value).__doc__
        if has_docstring and getattr(value, "__module__", None) == module.__name__:
            yield name, value


def public_strays() -> Iterator[tuple[str, object]]:
    """The public names of dyngraph that no module of it holds under the same name."""
    for name in dg.__all__:
        value = getattr(dg, name)
        home = sys.modules.get(getattr(value, "__module__", ""))
        if home and home.__name__.startswith("dyngraph") and vars(home).get(name) is not value:
            yield name, value


def examples(module: ModuleType) -> Iterator[doctest.DocTest]:
    globs = {"dg": dg, "jnp": jnp, "np": np}
    name = module.__name__
    yield from doctest.DocTestFinder(recurse=False).find(module, name, globs=globs)
    members = [*documented(module), *(public_strays() if module is dg else ())]
    for member, value in members:
        yield from doctest.DocTestFinder().find(value, f"{name}.{member}", module, globs=globs)


@pytest.mark.parametrize("name", MODULES)
def test_examples_print_what_they_say(name: str) -> None:
    report: list[str] = []
    runner = doctest.DocTestRunner(verbose=False, optionflags=OPTIONS)
    for example in examples(importlib.import_module(name)):
        runner.run(example, out=report.append)
    assert not report, "".join(report)
