"""What is written from the operators, and what binding them to Tensor must keep."""

from __future__ import annotations

from pathlib import Path

import pytest

import dyngraph as dg
from dyngraph import generated


@pytest.mark.parametrize("path", generated.TEXTS, ids=lambda path: path.name)
def test_generated_text_is_current(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == generated.TEXTS[path](), "run `make generated`"


def test_operator_with_an_operand_of_another_kind_asks_that_operand() -> None:
    class Other:
        def __radd__(self, tensor: dg.Tensor) -> str:
            return "asked"

    assert dg.ones(2) + Other() == "asked"


def test_dispatcher_shows_its_source() -> None:
    assert "forward(x0, x1)" in getattr(dg.mul, "source", "")
