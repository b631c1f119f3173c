"""Frame: how a notebook shows a picture that may be wider than its cell."""

from __future__ import annotations

import re

READABLE = 1000.0
"""A picture of this width can be read when a cell makes it smaller."""
# What `framed` writes has a class, since a style of an element can't say what happens when another
# is unfolded.
_STYLE = """<style>
.dyngraph-wide > div { overflow: auto; }
.dyngraph-wide > details { font-size: small; opacity: .7; cursor: pointer; }
.dyngraph-wide > details[open] + div > svg { max-width: none !important; }
</style>"""


def fitted(svg: str) -> str:
    """The picture, made smaller where the cell is narrower."""
    return svg.replace("<svg ", '<svg style="max-width:100%;height:auto" ', 1)


def framed(svg: str) -> str:
    """The picture as HTML; a wide one unfolds to its full size, to scroll in."""
    if not is_wide(svg):
        return f"<div>{fitted(svg)}</div>"
    return (
        f'{_STYLE}<div class="dyngraph-wide"><details><summary>fitted into the cell; unfold for '
        f"full size</summary></details><div>{fitted(svg)}</div></div>"
    )


def is_wide(svg: str) -> bool:
    """Whether the picture may be too small to read once it is fitted."""
    found = re.match(r'<svg [^>]*?\bwidth="([\d.]+)"', svg)
    return found is not None and float(found[1]) > READABLE


def forms_of(svg: str, text: str) -> dict[str, str]:
    """What a notebook is given of a picture, by kinds; HTML where it is wide, since notebooks
    prefer it."""
    forms = {"image/svg+xml": fitted(svg), "text/plain": text}
    return {"text/html": framed(svg), **forms} if is_wide(svg) else forms
