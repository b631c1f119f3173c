"""docs/steps.md: its programs run, one after the other, and what they assert holds."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "steps.md"


def test_programs_of_the_page_run() -> None:
    programs = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(programs) == 4
    scope: dict[str, object] = {}
    for program in programs:
        exec(program, scope)
