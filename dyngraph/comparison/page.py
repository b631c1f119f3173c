"""The HTML that a Comparison shows in a notebook: a table, bars, and listings that unfold."""

from __future__ import annotations

import html as markup
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dyngraph.comparison.listing import Listing
    from dyngraph.comparison.report import Comparison

# Colours with alpha, over whatever ground the notebook has, and its own text colour.
STYLE = """
<style>
.dg-compare { font: 12px system-ui, sans-serif; overflow-x: auto; }
.dg-compare table { border-collapse: collapse; margin: 6px 0; font: inherit; }
.dg-compare th, .dg-compare td { padding: 3px 7px; text-align: right; white-space: nowrap;
  border-bottom: 1px solid rgba(128,128,128,.3); }
.dg-compare td.text, .dg-compare th.text { text-align: left; white-space: normal; }
.dg-compare td.why { text-align: left; white-space: normal; max-width: 60em; opacity: .85; }
.dg-compare .bar { background: rgba(37,99,235,.55); height: 9px; min-width: 1px; }
.dg-compare .first { background: rgba(217,119,6,.6); }
.dg-compare .listing td { font-family: ui-monospace, monospace; font-size: 11px; }
.dg-compare .listing td { text-align: left; padding: 0 8px; border: 0; white-space: pre; }
.dg-compare .listing { display: block; max-height: 30em; overflow: auto; }
.dg-compare .only td.mine, .dg-compare .other td { background: rgba(217,119,6,.22); }
.dg-compare ul { margin: 4px 0; padding-left: 18px; }
</style>
"""


def html(comparison: Comparison) -> str:
    """The page of a comparison."""
    text, columns = comparison.text_columns, comparison.columns
    head = "".join(
        f'<th class="text">{_safe(h)}</th>' if i in text else f"<th>{_safe(h)}</th>"
        for i, h in enumerate((*columns, "first, later (log)"))
    )
    scale = _Scale(comparison)
    lines = []
    for row in comparison.rows:
        cells = comparison.cells(row)
        title = f' title="{_safe(row.meaning)}"'
        if row.error is not None:
            lines.append(
                f'<tr{title}><td class="text">{_safe(row.name)}</td>'
                f'<td class="why" colspan="{len(columns)}">can\'t: {_safe(row.error)}</td></tr>'
            )
            continue
        shown = "".join(
            f'<td class="text">{_safe(c)}</td>' if i in text else f"<td>{_safe(c)}</td>"
            for i, c in enumerate(cells)
        )
        lines.append(f'<tr{title}>{shown}<td class="text">{scale.bars(row)}</td></tr>')
    notes = "".join(
        f"<li>{_safe(note)}</li>" for note in comparison.notes() if ": can't: " not in note
    )
    return (
        f'{STYLE}<div class="dg-compare"><div>{_safe(comparison.heading())}</div>'
        f'<table class="figures"><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table>"
        f"<ul>{notes}</ul>{''.join(map(_listing, comparison.listings))}</div>"
    )


class _Scale:
    """Times as bars on a logarithmic scale that all rows share."""

    def __init__(self, comparison: Comparison) -> None:
        times = [t for row in comparison.rows for t in self._times(row)]
        self.low = math.log(min(times) / 2)
        self.high = math.log(max(times))

    @staticmethod
    def _times(row: Any) -> list[float]:
        later = row.later
        return [t for t in (row.first, None if later is None else later.median) if t]

    def bars(self, row: Any) -> str:
        """One bar for the first call, one for later ones."""
        made = []
        for kind, seconds in zip(("first", ""), self._times(row), strict=False):
            width = 110 * (math.log(seconds) - self.low) / max(self.high - self.low, 1e-9)
            made.append(f'<div class="bar {kind}" style="width:{width:.0f}px"></div>')
        return "".join(made)


def _listing(listing: Listing) -> str:
    rows = []
    for mark, left, right in listing.pairs:
        kind = {" ": "", "~": "other", "<": "only", ">": "only"}[mark]
        sides = [
            f'<td class="mine">{_safe(side)}</td>' if side else "<td></td>"
            for side in (left, right)
        ]
        rows.append(f'<tr class="{kind}"><td>{_safe(mark)}</td>{"".join(sides)}</tr>')
    names = "".join(f'<th class="text">{_safe(name)}</th>' for name in listing.names)
    return (
        f"<details><summary>{_safe(listing.title)}: {_safe(listing.summary())}</summary>"
        f'<table class="listing"><tr><th></th>{names}</tr>{"".join(rows)}</table></details>'
    )


def _safe(text: str) -> str:
    return markup.escape(text)
