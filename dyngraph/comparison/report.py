"""Comparison: what `compare` found, as a table, as a page, and as figures."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jax

from dyngraph.comparison import page
from dyngraph.comparison.agreement import Agreement
from dyngraph.comparison.listing import Listing
from dyngraph.comparison.rounds import Spread, spread
from dyngraph.comparison.sizes import Sizes
from dyngraph.viz.lettering import in_bytes, in_seconds


class Row:
    """One way: what it gave, how long it took, how large it is; `error` says why it failed."""

    def __init__(self, mode: str, name: str, meaning: str) -> None:
        self.mode = mode
        self.name = name
        self.meaning = meaning
        self.error: str | None = None
        self.failure: BaseException | None = None
        self.note: str | None = None
        self.value: Any = None
        self.gradients: list[Any] | None = None
        self.agreement: Agreement | None = None
        self.first: float | None = None
        self.parts: dict[str, float] = {}
        self.warm_calls = 0
        self.warm_seconds = 0.0
        self.times: list[float] = []
        self.sizes = Sizes()

    @property
    def later(self) -> Spread | None:
        """The seconds of later calls: their median and middle half."""
        return spread(self.times) if self.times else None

    def ratio(self, baseline: Row) -> Spread | None:
        """Its time over that of another row in the same round."""
        pairs = list(zip(self.times, baseline.times, strict=False))
        return spread([mine / its for mine, its in pairs]) if pairs else None

    def to_dict(self) -> dict[str, Any]:
        """The figures, without the gradients."""
        later = self.later
        return {
            "mode": self.mode,
            "name": self.name,
            "error": self.error,
            "note": self.note,
            "value": None if self.value is None else complex(self.value).real,
            "agreement": None if self.agreement is None else self.agreement._asdict(),
            "first_seconds": self.first,
            "first_parts": dict(self.parts),
            "warm_calls": self.warm_calls,
            "warm_seconds": self.warm_seconds,
            "later_seconds": None if later is None else later._asdict(),
            "times": list(self.times),
            "sizes": self.sizes._asdict(),
        }

    def __repr__(self) -> str:
        return f"<Row {self.name!r}: {self.error or 'ran'}>"


class Comparison:
    """The rows of a comparison; `listings` are jaxprs side by side. Print it, or end a notebook's
    cell with it."""

    columns = (
        *("", "first call", "later calls", "ratio", "middle half", "max |Δ|", "ulp"),
        *("program", "memory"),
    )
    text_columns = (0, 7, 8)

    def __init__(
        self, function: str, rows: list[Row], listings: list[Listing], jax_form: str
    ) -> None:
        self.function = function
        self.jax_form = jax_form
        self.rows = rows
        self.listings = listings
        self.environment = {
            "device": jax.devices()[0].device_kind,
            "platform": jax.default_backend(),
            "jax": jax.__version__,
        }

    def __getitem__(self, mode: str) -> Row:
        for row in self.rows:
            if mode in (row.mode, row.name):
                return row
        raise KeyError(f"{mode!r}: expected one of {', '.join(row.mode for row in self.rows)}")

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def baseline(self) -> Row:
        """The first row that ran: what ratios and differences are against."""
        return next(row for row in self.rows if row.error is None)

    def cells(self, row: Row) -> list[str]:
        """The cells of a row's line in the table."""
        if row.error is not None or row.first is None:
            return [row.name]
        later, ratio = row.later, row.ratio(self.baseline)
        return [
            row.name,
            in_seconds(row.first),
            "" if later is None else in_seconds(later.median),
            "" if ratio is None else f"{ratio.median:.2f}",
            "" if ratio is None else f"{ratio.low:.2f}-{ratio.high:.2f}",
            *_agreement_cells(row, self.baseline),
            _program(row.sizes),
            _memory(row.sizes),
        ]

    def heading(self) -> str:
        """What was compared, on what."""
        count = max(len(row.times) for row in self.rows)
        rounds = "1 round" if count == 1 else f"{count} rounds"
        return (
            f"{self.function}: value and gradients, {rounds} in turns; ratio: to "
            f"{self.baseline.name}, in the same round. JAX differentiates {self.jax_form}. "
            f"{self.environment['device']}, jax {self.environment['jax']}"
        )

    def notes(self) -> list[str]:
        """What is said below the table: failures, and what first calls were made of."""
        found = []
        for row in self.rows:
            if row.error is not None:
                found.append(f"{row.name}: can't: {row.error}")
            if row.note is not None:
                found.append(f"{row.name}: {row.note}")
            if row.parts:
                parts = ", ".join(f"{name} {in_seconds(s)}" for name, s in row.parts.items())
                found.append(f"{row.name}: of the first call, {parts}")
            elif row.warm_calls > 2:
                spent = in_seconds(row.warm_seconds)
                found.append(f"{row.name}: {row.warm_calls} calls, {spent}, until all was compiled")
        return found

    def __str__(self) -> str:
        table = [self.columns, *[self.cells(row) for row in self.rows if row.error is None]]
        widths = [max(len(line[i]) for line in table) for i in range(len(self.columns))]
        lines = [self.heading(), ""]
        for line in table:
            cells = [
                cell.ljust(w) if i in self.text_columns else cell.rjust(w)
                for i, (cell, w) in enumerate(zip(line, widths, strict=True))
            ]
            lines.append("  ".join(cells).rstrip())
        lines += ["", *self.notes(), *[f"{x.title}: {x.summary()}" for x in self.listings]]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return page.html(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/html": self._repr_html_(), "text/plain": str(self)}

    def to_dict(self) -> dict[str, Any]:
        """All figures, as what JSON can hold."""
        return {
            "function": self.function,
            "jax_form": self.jax_form,
            "environment": dict(self.environment),
            "baseline": self.baseline.mode,
            "rows": [row.to_dict() for row in self.rows],
            "listings": [
                {
                    "title": x.title,
                    "names": list(x.names),
                    "counts": list(x.counts),
                    "shared": x.shared,
                    "pairs": [list(pair) for pair in x.pairs],
                }
                for x in self.listings
            ],
        }

    def json(self, **options: Any) -> str:
        """`to_dict()` as text; `options` are `json.dumps`'s. Infinities are written as strings."""
        return json.dumps(_finite(self.to_dict()), **options)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_finite(part) for part in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), -float("inf"))):
        return str(value)
    return value


def _agreement_cells(row: Row, baseline: Row) -> tuple[str, str]:
    if row.agreement is not None:
        absolute = row.agreement.absolute
        return f"{absolute:.1e}" if absolute else "0", f"{row.agreement.ulp:.3g}"
    return ("0", "0") if row is baseline else ("", "")


def _program(sizes: Sizes) -> str:
    """How large a program is."""
    parts = [
        f"{count} {what}"
        for count, what in (
            (sizes.nodes, "nodes"),
            (sizes.calls, "calls"),
            (sizes.equations, "equations"),
            (sizes.instructions, "HLO"),
        )
        if count
    ]
    if sizes.programs is not None and sizes.programs > 1:
        parts.append(f"in {sizes.programs} programs")
    return ", ".join(parts)


def _memory(sizes: Sizes) -> str:
    """What it keeps."""
    parts = []
    if sizes.saved_bytes is not None:
        parts.append(f"saved {in_bytes(sizes.saved_bytes)}")
    if sizes.temp_bytes is not None:
        parts.append(f"temp {in_bytes(sizes.temp_bytes)}")
    return ", ".join(parts)
