"""The stub of Tensor's methods, and what binding them must keep."""

from __future__ import annotations

from pathlib import Path

import dyngraph as dg
from dyngraph import methods


def test_stub_is_what_is_bound() -> None:
    written = Path(methods.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    assert written == methods.stub(), "run `make stub`"


def test_operator_with_an_operand_of_another_kind_asks_that_operand() -> None:
    class Other:
        def __radd__(self, tensor: dg.Tensor) -> str:
            return "asked"

    assert dg.ones(2) + Other() == "asked"


def test_dispatcher_shows_its_source() -> None:
    assert "forward(x0, x1)" in getattr(dg.mul, "source", "")
