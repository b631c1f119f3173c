"""Writes docs/benchmarks.md and its plots from bench/figures/: `python docs/benchmarks.py`.

The figures are what `python -m bench --json FILE` wrote.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
PAGE = DOCS / "benchmarks.md"
PLOTS = DOCS / "benchmarks"
FIGURES = DOCS.parent / "bench" / "figures"

HEAD = """\
# Benchmarks

Written by `python docs/benchmarks.py` from `bench/figures/`; do not edit. Measured by `python -m
bench --json FILE`, which runs the candidates of a section in one process: each once a round, in
an order drawn anew, after a run that is not timed. A ratio is a candidate's time over that of the
first one in the same round: its median, and the middle half of the rounds; `whole / eager` is the
ratio of these two rows. Blue is dyngraph. On another machine the figures are others: run it on
yours.
"""
OURS = re.compile(
    r"dyngraph|dg\.compile|compiled backward|recording|no_grad|inference|whole|in pieces|eager$"
    r"|x\[i\]|y = x|loop$"
)
COLUMNS = {
    "(k)": ("nodes", "lowest", "µs a node", "highest", "graph kept"),
    "(l)": ("first, s", "second", "third", "later", "programs"),
    "cold": ("import, s", "first", "second"),
}
"""What the numbers are of sections that hold no ratios, by how their titles begin."""


def sections() -> dict[str, dict[str, Any]]:
    """The figures of each machine, by the file's name."""
    return {
        path.stem: json.loads(path.read_text(encoding="utf-8"))
        for path in sorted(FIGURES.glob("*.json"))
    }


def page() -> str:
    """The text of the page."""
    lines = [HEAD]
    for machine, figures in sections().items():
        about = figures["about"]
        lines += [f"## {about['device']}", ""]
        lines += [f"jax {about['jax']}; torch {about['torch']}; {about['options']}", ""]
        for title, found in figures.items():
            if isinstance(found, list):
                lines += [f"### {title}", "", f"![{title}](benchmarks/{plot_name(machine, title)})"]
                lines += ["", *_ratios(found), ""]
            elif title.startswith(tuple(COLUMNS)):
                lines += [f"### {title}", "", *_numbers(title, found), ""]
    return "\n".join(lines).rstrip() + "\n"


def _ratios(rows: list[dict[str, Any]]) -> list[str]:
    lines = ["| | ms | ratio | middle half |", "| --- | ---: | ---: | ---: |"]
    for row in rows:
        is_pair = " / " in row["name"]
        time = "" if is_pair else _short(row["milliseconds"])
        half = f"{row['low']:.2f} - {row['high']:.2f}"
        lines.append(f"| {row['name']} | {time} | {row['ratio']:.2f} | {half} |")
    return lines


def _numbers(title: str, found: dict[str, list[float]]) -> list[str]:
    (columns,) = (names for start, names in COLUMNS.items() if title.startswith(start))
    lines = [f"| | {' | '.join(columns)} |", f"| --- |{' ---: |' * len(columns)}"]
    for name, numbers in found.items():
        lines.append(f"| {name} | {' | '.join(f'{n:.4g}' for n in numbers)} |")
    return lines


def _short(number: float) -> str:
    """Three digits, or all before the point."""
    return f"{number:.3g}" if number < 1000 else f"{number:.0f}"


def plot_name(machine: str, title: str) -> str:
    """The file of a section's plot."""
    return f"{machine}-{re.sub(r'[^a-z0-9]+', '-', title.lower()).strip('-')[:40]}.svg"


def plot(title: str, rows: list[dict[str, Any]], path: Path) -> None:
    """Times as bars on a logarithmic scale."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "dyngraph"})
    from matplotlib import pyplot
    from matplotlib.ticker import FuncFormatter

    rows = [row for row in rows if " / " not in row["name"]][::-1]
    figure, axes = pyplot.subplots(figsize=(7.2, 0.34 * len(rows) + 0.75))
    times = [row["milliseconds"] for row in rows]
    colours = ["#2563eb" if OURS.search(row["name"]) else "#d97706" for row in rows]
    colours = ["#d97706" if row["name"].startswith("torch") else c for row, c in zip(rows, colours)]
    axes.barh([row["name"] for row in rows], times, color=colours, height=0.62, log=True)
    for place, time in enumerate(times):
        axes.text(time * 1.04, place, _short(time), va="center", fontsize=8, color="#555")
    axes.set_xlim(min(times) / 2, max(times) * 2)
    axes.set_xlabel("milliseconds, logarithmic", fontsize=8)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(FuncFormatter(lambda value, _: ""))
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    figure.patch.set_facecolor("white")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None, "Title": title})
    pyplot.close(figure)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    PLOTS.mkdir(exist_ok=True)
    for machine, figures in sections().items():
        for title, found in figures.items():
            if isinstance(found, list):
                plot(title, found, PLOTS / plot_name(machine, title))
    print(f"wrote {PAGE}")
