"""Every line of docs/conventions.md: the programs in it give the figures beside them.

The figures were recorded from PyTorch 2.13.0 and jax 0.10.2 on a CPU.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dyngraph as dg

PAGE = Path(__file__).parents[2] / "docs" / "conventions.md"


def lines() -> list[tuple[str, str, str]]:
    """Of each line of a table: what it is about, the program, and what it gives."""
    found = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.split(" | ")]
        if len(cells) >= 3 and cells[1].startswith("`"):
            found.append((cells[0].lstrip("| "), cells[1].strip("`"), cells[2].strip("`| ")))
    return found


LINES = lines()


def grad(function: Callable[..., Any], *values: Any) -> Any:
    inputs = [dg.tensor(value, requires_grad=True) for value in values]
    result = function(*inputs)
    result = result if isinstance(result, dg.Tensor) else result[0]
    gradients = dg.autograd.grad(result.sum(), inputs)
    given = [g.tolist() for g in gradients]
    return given if len(given) > 1 else given[0]


def slope(function: Callable[..., Any], value: float) -> Any:
    """The derivative at a number, as a tensor that can be derived again."""
    x = dg.tensor(value, requires_grad=True)
    return dg.autograd.grad(function(x), x, create_graph=True)[0]


def figures(text: str) -> Any:
    """A literal, in which nan and inf may stand."""
    names = {"nan": float("nan"), "inf": float("inf")}
    known = {n.id for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name)}
    assert known <= set(names), text
    return eval(text, {"__builtins__": {}}, names)


def assert_same(given: Any, wanted: Any) -> None:
    """Of nested lists, whose parts may differ in shape."""
    if isinstance(wanted, list):
        assert len(given) == len(wanted)
        for one, other in zip(given, wanted, strict=True):
            assert_same(one, other)
    else:
        np.testing.assert_allclose(given, wanted, rtol=1e-6)


@pytest.mark.parametrize(("program", "expected"), [line[1:] for line in LINES])
def test_program_gives_the_figures_of_its_line(program: str, expected: str) -> None:
    scope = {
        "dg": dg,
        "jax": jax,
        "jnp": jnp,
        "F": dg.nn.functional,
        "grad": grad,
        "slope": slope,
        "inf": float("inf"),
        "nan": float("nan"),
    }
    given = eval(program, scope)
    given = given.tolist() if isinstance(given, dg.Tensor | jax.Array) else given
    assert_same(given, figures(expected))


def test_page_has_a_program_in_every_line_of_its_tables() -> None:
    text = PAGE.read_text(encoding="utf-8").splitlines()
    tables = [line for line in text if line.startswith("| ")]
    heads = [line for line in tables if line.startswith(("| where", "| ---"))]
    assert len(LINES) == len(tables) - len(heads)
