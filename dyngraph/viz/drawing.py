"""Drawing: an SVG picture of rectangles, lines and texts, complete in itself.

It brings its own background, so that it reads the same in a light notebook and in a dark one, and
styles nothing but itself: no style sheet, no font, no script, no identifier.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from dyngraph.viz.lettering import FONT, escape

INK, FAINT, WARNING, PAPER = "#1f2937", "#6b7280", "#b91c1c", "#ffffff"
MARGIN = 12.0


def number(value: float) -> str:
    """A coordinate, in as few digits as it needs."""
    return f"{value:.1f}".removesuffix(".0")


class Drawing:
    """Collects what is drawn; `svg` gives the picture. Coordinates start inside the margin."""

    def __init__(self) -> None:
        self.parts: list[str] = []

    def rectangle(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        *,
        fill: str,
        stroke: str = "none",
        radius: float = 0.0,
        thickness: float = 1.0,
        dashed: bool = False,
        title: str = "",
        name: str = "",
    ) -> None:
        """A rectangle; `title` shows when the mouse is over it, `name` finds it in the text."""
        dashes = ' stroke-dasharray="5 3"' if dashed else ""
        named = f' class="dyngraph-{name}"' if name else ""
        self.parts.append(
            f'<rect{named} x="{number(x)}" y="{number(y)}" width="{number(width)}" '
            f'height="{number(height)}" rx="{number(radius)}" fill="{fill}" stroke="{stroke}" '
            f'stroke-width="{number(thickness)}"{dashes}>{_title(title)}</rect>'
        )

    def text(
        self,
        x: float,
        y: float,
        text: str,
        size: float,
        *,
        fill: str = INK,
        anchor: str = "middle",
        bold: bool = False,
    ) -> None:
        """A line of text whose foot is at `y`; it catches no mouse."""
        weight = ' font-weight="bold"' if bold else ""
        self.parts.append(
            f'<text x="{number(x)}" y="{number(y)}" font-size="{number(size)}" fill="{fill}" '
            f'text-anchor="{anchor}" pointer-events="none"{weight}>{escape(text)}</text>'
        )

    def line(
        self,
        path: str,
        *,
        stroke: str,
        thickness: float = 1.2,
        fill: str = "none",
        dashed: bool = False,
        title: str = "",
        name: str = "",
    ) -> None:
        """A line along a path of SVG's."""
        dashes = ' stroke-dasharray="4 3"' if dashed else ""
        named = f' class="dyngraph-{name}"' if name else ""
        self.parts.append(
            f'<path{named} d="{path}" fill="{fill}" stroke="{stroke}" '
            f'stroke-width="{number(thickness)}"{dashes}>{_title(title)}</path>'
        )

    def shift(self, by: float) -> None:
        """Moves what has been drawn so far to the right."""
        self.parts = [f'<g transform="translate({number(by)})">', *self.parts, "</g>"]

    def svg(self, width: float, height: float, title: str) -> str:
        """The picture; `title` says what it shows to those who can't see it."""
        w, h = number(width + 2 * MARGIN), number(height + 2 * MARGIN)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{w}" height="{h}" '
            f'viewBox="{number(-MARGIN)} {number(-MARGIN)} {w} {h}" font-family="{FONT}" '
            f'role="img" aria-label="{escape(title)}">'
            f'<rect x="{number(-MARGIN)}" y="{number(-MARGIN)}" width="{w}" height="{h}" '
            f'rx="6" fill="{PAPER}"/>' + "".join(self.parts) + "</svg>"
        )


def curve(points: Sequence[tuple[float, float]]) -> str:
    """A path of SVG's through points, vertical at each of them."""
    parts = [f"M{number(points[0][0])} {number(points[0][1])}"]
    for (x0, y0), (x1, y1) in itertools.pairwise(points):
        if abs(x0 - x1) < 0.05:
            parts.append(f"V{number(y1)}")
        else:
            middle = number((y0 + y1) / 2)
            parts.append(f"C{number(x0)} {middle} {number(x1)} {middle} {number(x1)} {number(y1)}")
    return "".join(parts)


def _title(title: str) -> str:
    return f"<title>{escape(title)}</title>" if title else ""
