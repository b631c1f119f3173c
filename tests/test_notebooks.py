"""The notebooks run from top to bottom, and what is stored of them is of no one machine."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

from notebooks.execute import FOLDER, execute

NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
each = pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])

PICTURES = ("image/png", "image/svg+xml")
OF_A_MACHINE = re.compile(
    r"(?<![\w<:/.])/(home|Users|root|tmp|usr|opt|var|mnt|private)/\w"  # a path
    r"|site-packages|ipykernel_\d+"
    r"|\bat 0x[0-9a-f]{6,}"  # where an object lies
)


def code_of(path: Path) -> list[Any]:
    """The cells with code."""
    notebook = nbformat.read(path, as_version=4)
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def stored(path: Path) -> Iterator[tuple[str, str]]:
    """The type and text of everything that the cells have put out."""
    for cell in code_of(path):
        for output in cell.outputs:
            if output.output_type == "stream":
                yield "text/plain", output.text
            yield from output.get("data", {}).items()


@each
def test_notebook_runs(path: Path) -> None:
    execute(path)


@each
def test_outputs_are_those_of_one_run_from_top_to_bottom(path: Path) -> None:
    counts = [cell.execution_count for cell in code_of(path)]
    assert counts == list(range(1, len(counts) + 1))
    assert not [out for cell in code_of(path) for out in cell.outputs if out.output_type == "error"]


@each
def test_pictures_are_inside(path: Path) -> None:
    assert any(kind in PICTURES or "<svg" in text for kind, text in stored(path))


@each
def test_first_output_says_on_what_it_was_run(path: Path) -> None:
    kind, text = next(stored(path))
    assert kind == "text/plain"
    assert re.search(r"jax \d+\.\d+.* on \w+", text)


@each
def test_outputs_tell_nothing_of_the_machine(path: Path) -> None:
    found = [
        m[0]
        for kind, text in stored(path)
        if kind != "image/png"
        for m in OF_A_MACHINE.finditer(text)
    ]
    assert not found


@each
def test_notebook_has_more_than_code(path: Path) -> None:
    cells = nbformat.read(path, as_version=4).cells
    prose = [cell for cell in cells if cell.cell_type == "markdown"]
    assert prose and prose[0] is cells[0]
    assert prose[0].source.startswith("# ")
