"""docs/errors.md: each program raises what its heading says, in these words; each remedy runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import jax.numpy as jnp
import pytest

import dyngraph as dg
from dyngraph import errors

PAGE = Path(__file__).parent.parent / "docs" / "errors.md"


class Entry(NamedTuple):
    error: str
    title: str
    programs: list[str]
    says: str


def entries() -> list[Entry]:
    found = []
    for section in re.split(r"^### ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        heading = re.match(r"`(\w+)`: (.*)", section)
        says = re.search(r"^> (.*)", section, re.MULTILINE)
        assert heading and says and "**Cause.**" in section and "**Remedy.**" in section, section
        programs = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
        found.append(Entry(heading[1], heading[2], programs, says[1]))
    return found


ENTRIES = entries()


@pytest.mark.parametrize("entry", ENTRIES, ids=[entry.title for entry in ENTRIES])
def test_program_raises_what_the_page_says_and_the_remedy_runs(entry: Entry) -> None:
    raising, *remedy = entry.programs
    with pytest.raises(Exception, match=re.escape(entry.says)) as caught:
        exec(raising, {"dg": dg, "jnp": jnp})
    assert entry.error in [kind.__name__ for kind in type(caught.value).__mro__]
    for program in remedy:
        exec(program, {"dg": dg, "jnp": jnp})


def test_every_error_class_has_an_entry() -> None:
    ours = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and value.__module__ == errors.__name__
    }
    assert ours <= {entry.error for entry in ENTRIES}
