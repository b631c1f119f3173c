"""docs/situations.md names, for each situation, tests that are there, or says why there is none."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "situations.md"
NAMED = re.compile(r"`([\w/]+\.py)::(test_\w+)`")


def rows() -> dict[str, list[tuple[str, str]]]:
    """Situation and answer of each row, by area."""
    areas: dict[str, list[tuple[str, str]]] = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            areas[line[3:]] = []
        elif line.startswith("| ") and not line.startswith(("| ---", "| situation |")):
            situation, answer = line.strip("| ").split(" | ")
            areas[next(reversed(areas))].append((situation, answer))
    return areas


@functools.cache
def names_in(path: str) -> set[str]:
    """The names of the tests in a file below tests/, which is read and not imported."""
    tree = ast.parse((TESTS / path).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


AREAS = rows()


@pytest.mark.parametrize("area", AREAS)
def test_every_test_that_the_page_names_exists(area: str) -> None:
    named = [found for _, answer in AREAS[area] for found in NAMED.findall(answer)]
    missing = [f"{path}::{name}" for path, name in named if name not in names_in(path)]
    assert not missing, "docs/situations.md names tests that are gone: write their new names"


@pytest.mark.parametrize("area", AREAS)
def test_every_situation_has_a_test_or_a_reason(area: str) -> None:
    assert AREAS[area]
    for situation, answer in AREAS[area]:
        tests = ", ".join(f"`{path}::{name}`" for path, name in NAMED.findall(answer))
        assert answer == tests != "" or answer.startswith("Not here: "), situation


def test_page_has_each_situation_once() -> None:
    assert len(AREAS) == 22
    assert sum(len(answers) for answers in AREAS.values()) == 402
    for area, answers in AREAS.items():
        assert len({situation for situation, _ in answers}) == len(answers), area
