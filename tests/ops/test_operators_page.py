"""docs/operators.md says what the operators are now."""

from __future__ import annotations

import runpy
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_page_of_operators_is_current() -> None:
    written = (DOCS / "operators.md").read_text(encoding="utf-8")
    current = runpy.run_path(str(DOCS / "operators.py"))["page"]()
    assert written == current, "operators have changed: run `python docs/operators.py`"
