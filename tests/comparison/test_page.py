"""docs/compare.md: its programs run, one after the other, and what they assert holds."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "compare.md"


def test_programs_of_the_page_run() -> None:
    text = PAGE.read_text(encoding="utf-8")
    scope: dict[str, object] = {}
    programs = list(re.finditer(r"```python\n(.*?)```", text, re.DOTALL))
    assert len(programs) == 4
    for program in programs:
        lines = text.count("\n", 0, program.start(1))
        exec(compile("\n" * lines + program[1], str(PAGE), "exec"), scope)
