"""Lettering: how wide a text is, how a number of bytes reads, and how text is written into markup.

No font is measured: the widths are those of DejaVu Sans, which Verdana shares, and other fonts that
a browser may take instead are narrower. So no text is cut off.
"""

from __future__ import annotations

import functools
import html
from typing import Any

FONT = "DejaVu Sans, Verdana, Helvetica, Arial, sans-serif"
BOLD = 1.14
"""How much wider bold letters are."""

_BY_WIDTH = {
    27: "'", 28: "ijl", 29: "IJ", 32: " ,.·", 34: "/:;\\|", 35: "f", 36: "-", 39: "()[]t", 40: "!",
    41: "r", 46: '"', 50: "*_`", 52: "sz", 53: "?", 55: "c", 56: "L", 58: "Fk", 59: "vxy", 60: "P",
    61: "TYao", 62: "e", 63: "ESbdghnpqu", 64: "$0123456789{}", 66: "K", 68: "AV", 69: "BRXZ",
    70: "C", 73: "U", 75: "HN", 77: "DG", 78: "&", 79: "OQ", 82: "w", 84: "#+<=>^~→×", 86: "M",
    95: "%", 97: "m", 99: "W",
}  # fmt: skip
_WIDTHS = {letter: width / 100 for width, letters in _BY_WIDTH.items() for letter in letters}


def width_of(text: str, size: float, *, bold: bool = False) -> float:
    """The width of a line of text, in the unit of its size.

    >>> from dyngraph.viz.lettering import width_of
    >>> round(width_of("MulBackward0", 12), 1)
    87.7
    """
    width = sum([_WIDTHS.get(letter, 1.0) for letter in text]) * size
    return width * BOLD if bold else width


def escape(text: str) -> str:
    """Text as it stands in SVG and HTML; characters that these do not allow are shown as a dot."""
    return html.escape("".join([c if c.isprintable() else "·" for c in text]))


def shortened(text: str, length: int = 40) -> str:
    """A name that takes no more than `length` letters, with its middle left out if need be."""
    if len(text) <= length:
        return text
    half = (length - 1) // 2
    return f"{text[: length - 1 - half]}…{text[-half:]}"


@functools.lru_cache(4096)
def described(shape: Any, dtype: Any) -> str:
    """Dtype and shape in short, such as `float32[2, 3]`."""
    return f"{dtype.name}{list(shape)}"


def in_bytes(count: float) -> str:
    """A number of bytes to read.

    >>> from dyngraph.viz.lettering import in_bytes
    >>> in_bytes(12), in_bytes(2048), in_bytes(3 << 20)
    ('12 B', '2 KiB', '3 MiB')
    """
    units = ["B", "KiB", "MiB", "GiB", "TiB"]
    while abs(count) >= 1000 and len(units) > 1:
        count /= 1024
        del units[0]
    return f"{count:.3g} {units[0]}"


def in_seconds(seconds: float) -> str:
    """A time to read.

    >>> from dyngraph.viz.lettering import in_seconds
    >>> in_seconds(1.5), in_seconds(0.0123), in_seconds(45e-6)
    ('1.5 s', '12.3 ms', '45 us')
    """
    if seconds >= 1:
        return f"{seconds:.3g} s"
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} us"
