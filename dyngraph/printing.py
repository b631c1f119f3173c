"""Printing: the text of an array, character for character what PyTorch 2.13 prints for a tensor.

Only values and shape matter here. What else a tensor says of itself arrives as ready suffixes.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

__all__ = ["set_printoptions"]


@dataclasses.dataclass(slots=True)
class PrintOptions:
    """What `set_printoptions` sets; the defaults are PyTorch's."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


PRINT_OPTS = PrintOptions()

_PROFILES = {
    "default": PrintOptions(),
    "short": PrintOptions(precision=2, edgeitems=2),
    "full": PrintOptions(threshold=math.inf),
}


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: Literal["default", "short", "full"] | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Changes how tensors print from now on; what is None stays, apart from `sci_mode`.

    precision: digits after the point. threshold: an array of more elements is summarised to
    `edgeitems` at either end of each axis. linewidth: characters a line. profile: presets of these
    four, which the ones given beside it override. sci_mode: whether to write exponents; as in
    PyTorch every call sets it anew, and None lets the values decide. Raises ValueError for an
    unknown profile.

    >>> dg.set_printoptions(precision=2)
    >>> dg.tensor([1.23456])
    tensor([1.23])
    >>> dg.set_printoptions(profile="default")
    """
    if profile is not None and profile not in _PROFILES:
        raise ValueError(f"unknown profile {profile!r}. Use one of {', '.join(_PROFILES)}.")
    given = dict(precision=precision, threshold=threshold, edgeitems=edgeitems, linewidth=linewidth)
    options = {} if profile is None else dataclasses.asdict(_PROFILES[profile])
    options |= {name: value for name, value in given.items() if value is not None}
    options["sci_mode"] = sci_mode
    for name, value in options.items():
        setattr(PRINT_OPTS, name, value)


class _RealStyle(NamedTuple):
    """How all numbers of one array are written: one format, padded on the left to one width."""

    spec: str
    width: int

    def write(self, value: Any) -> str:
        return format(value, self.spec).rjust(self.width)


class _ComplexStyle(NamedTuple):
    """Real and imaginary parts side by side, each in the style of all of its kind."""

    real: _RealStyle
    imag: _RealStyle

    @property
    def width(self) -> int:
        return self.real.width + self.imag.width + 1  # PyTorch counts the j and not the plus

    def write(self, value: complex) -> str:
        imag = self.imag.write(value.imag).lstrip()
        return f"{self.real.write(value.real)}{'' if imag.startswith('-') else '+'}{imag}j"


def _style_of(array: np.ndarray) -> _RealStyle | _ComplexStyle:
    if np.iscomplexobj(array):
        return _ComplexStyle(_real_style_of(np.real(array)), _real_style_of(np.imag(array)))
    return _real_style_of(array)


def _real_style_of(array: np.ndarray) -> _RealStyle:
    spec = ""
    if array.dtype.kind == "f":
        # Zeros and nonfinite numbers have no say in the format, nor in the width.
        array = array[np.isfinite(array) & (array != 0)]
        spec = _float_spec(np.abs(array))
    return _RealStyle(spec, max((len(format(x, spec)) for x in array.ravel().tolist()), default=1))


def _float_spec(magnitudes: np.ndarray) -> str:
    """The format for floats of these magnitudes, all finite and above zero."""
    whole = "#.0f"  # the # keeps the point, as in 3.
    if magnitudes.size == 0:
        return whole
    least, most = float(magnitudes.min()), float(magnitudes.max())
    scientific = PRINT_OPTS.sci_mode
    if scientific is None:
        scientific = most / least > 1000 or most > 1e8 or least < 1e-4
    if scientific:
        return f".{PRINT_OPTS.precision}e"
    is_whole = np.array_equal(magnitudes, np.floor(magnitudes))
    return whole if is_whole else f".{PRINT_OPTS.precision}f"


def format_array(array: np.ndarray, indent: int) -> str:
    """The numbers in their brackets, as they stand `indent` characters into the first line.

    >>> from dyngraph.printing import format_array
    >>> format_array(np.array([1.0, 0.5, float("nan")]), indent=7)
    '[1.0000, 0.5000,    nan]'
    >>> print(format_array(np.arange(4).reshape(2, 2), indent=0))
    [[0, 1],
     [2, 3]]
    """
    if array.size == 0:
        return "[]"
    shown, edge = array, PRINT_OPTS.edgeitems
    if array.size > PRINT_OPTS.threshold:
        for axis, length in enumerate(array.shape):
            if length > 2 * edge:
                shown = np.delete(shown, slice(edge, length - edge), axis)
    if shown.dtype.kind in "fV":  # V: bfloat16, which numpy knows from ml_dtypes only
        shown = shown.astype(np.float64)
    is_cut = [kept < length for kept, length in zip(shown.shape, array.shape)]
    return _brackets(shown, is_cut, indent, _style_of(shown))


def _brackets(
    shown: np.ndarray, is_cut: Sequence[bool], indent: int, style: _RealStyle | _ComplexStyle
) -> str:
    """The text of what is shown, with dots in the middle of the axes where `is_cut` says so."""
    if shown.ndim == 0:
        return style.write(shown.item())
    edge = PRINT_OPTS.edgeitems
    new_line = "," + "\n" * max(1, shown.ndim - 1) + " " * (indent + 1)
    if shown.ndim > 1:
        rows = [_brackets(row, is_cut[1:], indent + 1, style) for row in shown]
        if is_cut[0]:
            rows.insert(edge, "...")
        return f"[{new_line.join(rows)}]"
    words = [style.write(value) for value in shown.tolist()]
    if is_cut[0]:
        words.insert(edge, " ..." if edge else "...")
    per_line = max(1, (PRINT_OPTS.linewidth - indent) // (style.width + len(", ")))
    lines = [", ".join(words[i : i + per_line]) for i in range(0, len(words), per_line)]
    return f"[{new_line.join(lines)}]"


def format_tensor(array: np.ndarray, *, suffixes: Sequence[str]) -> str:
    """`tensor(...)` round the numbers and, in the order given, the suffixes, which wrap between.

    The size is added where the numbers do not show it: before the suffixes, but after a device.

    >>> from dyngraph.printing import format_tensor
    >>> format_tensor(np.float32([1, 2]), suffixes=["requires_grad=True"])
    'tensor([1., 2.], requires_grad=True)'
    >>> format_tensor(np.zeros((0, 3)), suffixes=["dtype=dyngraph.float64"])
    'tensor([], size=(0, 3), dtype=dyngraph.float64)'
    """
    indent = len("tensor(")
    text = "tensor(" + format_array(array, indent)
    notes = list(suffixes)
    if (array.ndim != 1) if array.size == 0 else (PRINT_OPTS.edgeitems == 0):
        notes.insert(sum(note.startswith("device=") for note in notes), f"size={array.shape}")
    # Two more than the last line has: so counts PyTorch until it first breaks the line.
    column = len(text) - text.rfind("\n") + 1
    for note in notes:
        if column + len(", ") + len(note) > PRINT_OPTS.linewidth:
            text += ",\n" + " " * indent + note
            column = indent + len(note)
        else:
            text += ", " + note
            column += len(", ") + len(note)
    return text + ")"
