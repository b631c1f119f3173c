"""Jaxprs as lines, and two of them side by side with what differs marked."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

INLINED = frozenset(
    """
    jit pjit closed_call core_call call custom_jvp_call custom_vjp_call custom_vjp_call_jaxpr
    checkpoint remat remat2
    """.split()
)
"""Calls in whose place their bodies are shown."""
MOST_LINES = 2000
"""Longer programs are cut: finding what they share takes time that grows faster than they do."""
WIDTH = 62


class Line(NamedTuple):
    """One equation: as it is shown, and what it does, without the names of its values."""

    text: str
    kind: str


class Pair(NamedTuple):
    """A line of either side; `mark` is " " where they do the same, "~" where they do not, "<" and
    ">" where only one side has it."""

    mark: str
    left: str
    right: str


def lines_of(closed: Any) -> list[Line]:
    """The equations of a closed jaxpr, those of the functions that it calls in their place."""
    names: dict[Any, str] = {}
    fresh = (_letters(i) for i in itertools.count())
    for variable in (*closed.jaxpr.constvars, *closed.jaxpr.invars):
        names[variable] = next(fresh)
    return list(_walk(closed.jaxpr, names, fresh, 0))


def _walk(jaxpr: Any, names: dict[Any, str], fresh: Iterator[str], depth: int) -> Iterator[Line]:
    for equation in jaxpr.eqns:
        inner = _inner(equation)
        if equation.primitive.name in INLINED and len(inner) == 1:
            (body,) = inner
            for variable, given in zip(body.invars, equation.invars, strict=True):
                names[variable] = _name(given, names)
            for variable in body.constvars:
                names[variable] = next(fresh)
            yield from _walk(body, names, fresh, depth)
            for variable, made in zip(equation.outvars, body.outvars, strict=True):
                names[variable] = _name(made, names)
            continue
        given = " ".join(_name(v, names) for v in equation.invars)
        for variable in equation.outvars:
            names[variable] = next(fresh)
        made = " ".join(f"{names[v]}:{_short(v.aval)}" for v in equation.outvars)
        what = equation.primitive.name + _parameters(equation.params)
        kinds = [_short(v.aval) for v in (*equation.invars, *equation.outvars)]
        indent = "  " * depth
        yield Line(f"{indent}{made} = {what} {given}".rstrip(), f"{indent}{what} {' '.join(kinds)}")
        for body in inner:
            for variable in (*body.constvars, *body.invars):
                names[variable] = next(fresh)
            yield from _walk(body, names, fresh, depth + 1)


def _inner(equation: Any) -> list[Any]:
    """The jaxprs among the parameters of an equation."""
    if equation.primitive.name.startswith("custom_"):  # the others are its derivatives
        found = equation.params.get("call_jaxpr", equation.params.get("fun_jaxpr"))
        return [] if found is None else [getattr(found, "jaxpr", found)]
    found = []
    for value in equation.params.values():
        for part in value if isinstance(value, tuple) else (value,):
            body = getattr(part, "jaxpr", part)
            if hasattr(body, "eqns"):
                found.append(body)
    return found


def _name(value: Any, names: dict[Any, str]) -> str:
    if hasattr(value, "val"):  # a literal
        literal = value.val
        if isinstance(literal, int) and not isinstance(literal, bool):
            return str(int(literal))  # JAX's own kinds of int print their dtype
        return str(literal)
    return names.get(value, "_")


def _short(aval: Any) -> str:
    """Shape and dtype: f32[2,3]."""
    text = aval.str_short(short_dtypes=True) if hasattr(aval, "str_short") else str(aval)
    return text.replace(" ", "")


SHORT = {"dimension_numbers": "dims", "broadcast_dimensions": "dims", "permutation": "dims"}
UNSHOWN = frozenset(
    "shape new_sizes out_sharding preferred_element_type accuracy weak_type".split()
)
"""Parameters that the results' types tell already, or that say little."""


def _parameters(parameters: dict[str, Any]) -> str:
    """Those parameters that tell what an equation does, in short."""
    shown = []
    for name, value in sorted(parameters.items()):
        if value in (None, False, ()) or callable(value) or hasattr(value, "eqns"):
            continue
        text = str(value).replace(" ", "")
        if "lambda" in text or len(text) > 40 or name in UNSHOWN:
            continue
        shown.append(f"{SHORT.get(name, name)}={text}")
    return f"[{' '.join(shown)}]" if shown else ""


def _letters(number: int) -> str:
    """a, b, ..., z, aa, ab, ..."""
    text = ""
    number += 1
    while number:
        number, rest = divmod(number - 1, 26)
        text = chr(ord("a") + rest) + text
    return text


class Listing:
    """Two programs side by side: `pairs` of lines, where equations that do the same on the same
    shapes stand beside each other."""

    def __init__(self, title: str, names: tuple[str, str], left: Any, right: Any) -> None:
        self.title = title
        self.names = names
        sides = [lines_of(closed) for closed in (left, right)]
        self.counts = (len(sides[0]), len(sides[1]))
        self.is_cut = max(self.counts) > MOST_LINES
        self.pairs = _pairs(*[side[:MOST_LINES] for side in sides])

    @property
    def shared(self) -> int:
        """How many lines both sides have."""
        return sum(pair.mark == " " for pair in self.pairs)

    def summary(self) -> str:
        """The counts in words."""
        left, right = self.counts
        cut = f", cut after {MOST_LINES} lines" if self.is_cut else ""
        return (
            f"{self.names[0]}: {left} equations, {self.names[1]}: {right}, in common: "
            f"{self.shared}{cut}"
        )

    def __str__(self) -> str:
        rows = [f"{self.title}: {self.summary()}", f"  {self.names[0]:{WIDTH}}   {self.names[1]}"]
        for mark, left, right in self.pairs:
            rows.append(f"{mark} {_cut(left):{WIDTH}} | {_cut(right)}".rstrip())
        return "\n".join(rows)

    def __repr__(self) -> str:
        return f"<Listing: {self.summary()}>"


def _cut(text: str) -> str:
    return text if len(text) <= WIDTH else text[: WIDTH - 1] + "…"


def _pairs(left: Sequence[Line], right: Sequence[Line]) -> list[Pair]:
    matcher = difflib.SequenceMatcher(
        None, [line.kind for line in left], [line.kind for line in right], autojunk=False
    )
    pairs = []
    for tag, i, i_end, j, j_end in matcher.get_opcodes():
        for mine, its in itertools.zip_longest(left[i:i_end], right[j:j_end]):
            mark = " " if tag == "equal" else "<" if its is None else ">" if mine is None else "~"
            pairs.append(
                Pair(mark, "" if mine is None else mine.text, "" if its is None else its.text)
            )
    return pairs
