"""User code: the frames that are not this package's, and how a line of them is called."""

from __future__ import annotations

import re
import sys
from typing import Any

_OLD_CELL = re.compile(r"ipython-input-(\d+)-")


def is_ours(frame: Any) -> bool:
    """Whether a frame runs this package's code."""
    name = frame.f_globals.get("__name__", "")
    return name == "dyngraph" or name.startswith("dyngraph.")


def user_frame(frame: Any) -> Any:
    """The innermost frame, from `frame` outwards, that is not this package's."""
    while frame.f_back is not None and is_ours(frame):
        frame = frame.f_back
    return frame


def caller(own: int) -> tuple[str, int]:
    """File and line of the innermost frame that is not this package's; the first `own` are."""
    frame: Any = sys._getframe(own)
    while frame.f_globals.get("__name__", "").startswith("dyngraph"):
        if frame.f_back is None:
            break
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


def cell_of(file: str) -> str | None:
    """What a notebook calls the cell that it runs under the name of a file, such as `cell In[3]`;
    None for other files."""
    ipython = sys.modules.get("IPython")
    shell = ipython and ipython.get_ipython()
    if not shell:
        return None
    try:
        found = shell.compile.format_code_name(file)
    except AttributeError:  # before IPython 8
        number = _OLD_CELL.search(file)
        return f"cell In[{number[1]}]" if number else None
    return f"cell {found[1]}" if found else None


def shown_place(file: str, line: int | None) -> str:
    """A line of a file, or of a notebook's cell, as messages show it."""
    cell = cell_of(file)
    return f"{file}:{line}" if cell is None else f"{cell}, line {line}"
