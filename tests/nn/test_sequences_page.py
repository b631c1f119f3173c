"""docs/sequences.md: its program runs, and what it asserts holds."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "sequences.md"


def test_program_of_the_page_runs() -> None:
    programs = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(programs) == 1
    exec(programs[0], {})
