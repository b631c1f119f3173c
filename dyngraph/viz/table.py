"""Table: rows under headings, as text in a terminal and as HTML in a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dyngraph.viz.lettering import escape

_CELL = "padding:2px 10px;text-align:{};white-space:nowrap"


MOST_ROWS = 300
"""A table of more shows the first and the last; `rows` has all."""


class Table:
    """Rows of texts and numbers; numbers stand to the right. `note` is a line below it."""

    def __init__(
        self, headings: Sequence[str], rows: Sequence[Sequence[Any]], note: str = ""
    ) -> None:
        self.headings = tuple(headings)
        self.rows = [tuple(row) for row in rows]
        self.note = note

    def __str__(self) -> str:
        cells = [self.headings, *[[_shown(cell) for cell in row] for row in self._few_rows()]]
        widths = [max([len(row[i]) for row in cells]) for i in range(len(self.headings))]
        right = [self._is_right(i) for i in range(len(self.headings))]
        lines = [
            "  ".join(
                [
                    cell.rjust(width) if to_right else cell.ljust(width)
                    for cell, width, to_right in zip(row, widths, right, strict=True)
                ]
            ).rstrip()
            for row in cells
        ]
        return "\n".join([*lines, self.note] if self.note else lines)

    __repr__ = __str__

    def html(self) -> str:
        """The table as HTML, without a style sheet."""
        right = [self._is_right(i) for i in range(len(self.headings))]
        head = "".join(
            [_cell("th", name, to_right) for name, to_right in zip(self.headings, right)]
        )
        body = "".join(
            [
                "<tr>" + "".join([_cell("td", c, r) for c, r in zip(row, right)]) + "</tr>"
                for row in self._few_rows()
            ]
        )
        note = f"<div>{escape(self.note)}</div>" if self.note else ""
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        return f'<div style="overflow-x:auto">{table}</div>{note}'

    def _few_rows(self) -> list[tuple[Any, ...]]:
        """The rows that are shown."""
        left = len(self.rows) - MOST_ROWS
        if left <= 0:
            return self.rows
        half = MOST_ROWS // 2
        gap = (f"… {left} more …", *[None] * (len(self.headings) - 1))
        return [*self.rows[:half], gap, *self.rows[half + left :]]

    def _is_right(self, column: int) -> bool:
        cells = [row[column] for row in self.rows]
        return any([isinstance(cell, int | float) for cell in cells])

    def _repr_html_(self) -> str:
        return self.html()


def _cell(tag: str, value: Any, to_right: bool) -> str:
    style = _CELL.format("right" if to_right else "left")
    return f'<{tag} style="{style}">{escape(_shown(value))}</{tag}>'


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)
