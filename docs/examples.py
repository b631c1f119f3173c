"""Has examples in docstrings shown as code: an extension of griffe, which reads the sources."""

from __future__ import annotations

from typing import Any

import griffe


class Examples(griffe.Extension):
    """Puts fences round the paragraphs that begin with `>>>`."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """A docstring whose examples are fenced; an example ends with a blank line."""
    lines: list[str] = []
    inside = False
    for line in [*text.splitlines(), ""]:
        if not inside and line.lstrip().startswith(">>> "):
            lines.append("```pycon")
            inside = True
        elif inside and not line.strip():
            lines.append("```")
            inside = False
        lines.append(line)
    return "\n".join(lines).rstrip()
