"""Pages of docs/ whose programs are run."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"


def run_page(name: str, *, programs: int) -> None:
    """Runs the programs of a page, one after the other in one scope; what they assert must hold.

    An error, and whatever names lines, names those of the page.
    """
    page = DOCS / name
    text = page.read_text(encoding="utf-8")
    found = list(re.finditer(r"```python\n(.*?)```", text, re.DOTALL))
    assert len(found) == programs
    scope: dict[str, object] = {}
    for program in found:
        lines = text.count("\n", 0, program.start(1))
        exec(compile("\n" * lines + program[1], str(page), "exec"), scope)
