"""docs/pictures.md: its programs run, and print what it shows below them."""

import contextlib
import io
import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "pictures.md"


def test_programs_of_the_page_print_what_it_shows() -> None:
    page = PAGE.read_text(encoding="utf-8")
    programs = re.findall(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", page, re.DOTALL)
    assert len(programs) == 9
    assert sum(shown != "" for _, shown in programs) == 3
    scope: dict[str, object] = {"__name__": "page"}
    for program, shown in programs:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(program, scope)
        assert not shown or printed.getvalue() == shown
