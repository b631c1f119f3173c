"""Markup: an outline as Mermaid, as Graphviz's DOT, and as plain text."""

from __future__ import annotations

from dyngraph.viz.diagram import COLOURS, FREED
from dyngraph.viz.lettering import in_bytes
from dyngraph.viz.outline import KINDS, LEAF, Arrow, Outline


def mermaid(shown: Outline) -> str:
    """The outline in Mermaid's language, as Markdown takes it."""
    lines = ["flowchart TD"]
    for i, box in enumerate(shown.boxes):
        text = "<br/>".join([_for_mermaid(part) for part in (box.title, *box.lines)])
        shape = f'(["{text}"])' if box.kind == LEAF else f'["{text}"]'
        style = "freed" if box.freed else box.kind
        lines.append(f"  n{i}{shape}:::{style}")
    for arrow in shown.arrows:
        label = _label(arrow)
        middle = f'-->|"{_for_mermaid(label)}"|' if label else "-->"
        lines.append(f"  n{arrow.source} {middle} n{arrow.target}")
    used = {"freed" if box.freed else box.kind for box in shown.boxes}
    colours = {**COLOURS, "freed": FREED}
    for kind in (*KINDS, "freed"):
        if kind in used:
            fill, stroke = colours[kind]
            lines.append(f"  classDef {kind} fill:{fill},stroke:{stroke},color:#1f2937")
    return "\n".join(lines) + "\n"


def _for_mermaid(text: str) -> str:
    """Text as Mermaid takes it between quotes: what could end it or be markup as an entity."""
    return "".join([c if c.isalnum() or c in " _.,:=→×+-/*()[]" else f"#{ord(c)};" for c in text])


def dot(shown: Outline) -> str:
    """The outline in Graphviz's language."""
    lines = [
        "digraph backward {",
        '  node [shape=box, style="filled,rounded", fontname="Helvetica", fontsize=11]',
        '  edge [fontname="Helvetica", fontsize=9]',
    ]
    for i, box in enumerate(shown.boxes):
        fill, stroke = FREED if box.freed else COLOURS[box.kind]
        text = "\\n".join([_for_dot(part) for part in (box.title, *box.lines)])
        lines.append(f'  n{i} [label="{text}", fillcolor="{fill}", color="{stroke}"]')
    for arrow in shown.arrows:
        label = _label(arrow)
        shown_label = f' [label="{_for_dot(label)}"]' if label else ""
        lines.append(f"  n{arrow.source} -> n{arrow.target}{shown_label}")
    return "\n".join([*lines, "}"]) + "\n"


def _for_dot(text: str) -> str:
    kept = "".join([c if c.isprintable() else "·" for c in text])
    return kept.replace("\\", "\\\\").replace('"', '\\"')


def _label(arrow: Arrow) -> str:
    return arrow.label if arrow.count == 1 else f"{arrow.count} × {arrow.label}"


def plain(shown: Outline, saved_bytes: int | None) -> str:
    """The outline as lines: a box each, with the numbers of those that it leads to."""
    below: list[list[Arrow]] = [[] for _ in shown.boxes]
    for arrow in shown.arrows:
        below[arrow.source].append(arrow)
    heads = [f"[{i}] {box.title}" for i, box in enumerate(shown.boxes)]
    width = min(max(map(len, heads), default=0), 48)
    lines = []
    for i, box in enumerate(shown.boxes):
        to = ", ".join([_target(arrow, shown) for arrow in below[i]])
        parts = [
            heads[i].ljust(width),
            f"-> {to}" if to else "",
            *[f"({line})" for line in box.lines],
        ]
        lines.append("  ".join([part for part in parts if part]).rstrip())
    total = f"{shown.nodes} nodes"
    if saved_bytes is not None:
        total += f", {in_bytes(saved_bytes)} saved"
    return "\n".join([*lines, total])


def _target(arrow: Arrow, shown: Outline) -> str:
    nr = f".{arrow.output_nr}" if shown.boxes[arrow.target].outputs > 1 else ""
    label = _label(arrow)
    return f"[{arrow.target}{nr}] {label}".rstrip()
