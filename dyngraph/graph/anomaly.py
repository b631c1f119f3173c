"""Anomaly mode: nodes remember the line that made them, and backward stops where NaN is born."""

from __future__ import annotations

import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any

from dyngraph import modes
from dyngraph.graph.node import Node, Values
from dyngraph.user_code import cell_of, is_ours, shown_place

_checked: ContextVar[tuple[str, ...]] = ContextVar("dyngraph_anomaly_checks", default=("nan",))
_evaluated: ContextVar[Node | None] = ContextVar("dyngraph_evaluated_node", default=None)


def get_checks() -> tuple[str, ...]:
    """Which values backward stops at while the mode is on: of "nan" and "inf"."""
    return _checked.get()


def is_enabled() -> bool:
    """Whether the mode is on in this thread."""
    return bool(modes.get_flags() & modes.ANOMALY)


def set_enabled(enabled: bool, checks: Sequence[str]) -> None:
    """Switches the mode on or off in this thread."""
    modes.switch(modes.ANOMALY, on=enabled)
    _checked.set(tuple(checks))


# --- where a node was made --------------------------------------------------------------------


def remember_origin(node: Node) -> None:
    """Keeps in `node.metadata` the user's frames that lead here, from a notebook's cell on, and the
    node whose backward made this one, if one did."""
    frames = [f for f in traceback.walk_stack(sys._getframe(1)) if not is_ours(f[0])]
    summary = traceback.StackSummary.extract(iter(reversed(frames)))
    node.metadata["origin_"] = (summary[-1].filename, summary[-1].lineno) if summary else None
    cells = [cell_of(frame.filename) for frame in summary]
    first = next((place for place, cell in enumerate(cells) if cell is not None), 0)
    for frame, cell in zip(summary, cells, strict=True):
        frame.filename = cell or frame.filename
    node.metadata["traceback_"] = summary.format()[first:]
    parent = _evaluated.get()
    if parent is not None:
        node.metadata["parent_"] = parent


def origin(node: Node) -> tuple[str, int] | None:
    """File and line of the call that made the node; None where the mode was off then."""
    metadata = node.extra.metadata if node.extra is not None else None
    return metadata.get("origin_") if metadata else None


def _history(node: Node) -> Iterator[str]:
    """The forward call behind a node; and, for a node that a backward made, what led to that."""
    seen: set[Node] = set()
    text = f"Error detected in {node.name()}. Traceback of forward call that caused the error:"
    current: Any = node
    while isinstance(current, Node) and current not in seen:
        seen.add(current)
        lines = current.metadata.get("traceback_")
        if not lines:
            yield (
                f"Error detected in {current.name()}. No forward pass information available. "
                "Enable detect anomaly during forward pass for more information."
            )
            return
        yield f"{text}\n{''.join(map(str, lines))}"
        current = current.metadata.get("parent_")
        if isinstance(current, Node):
            text = (
                f"Previous calculation was induced by {current.name()}. Traceback of forward call "
                "that induced the previous calculation:"
            )


# --- during backward --------------------------------------------------------------------------


def run_watched(
    values: Values, run: Callable[[Node, list[Any]], Sequence[Any]], node: Node, grads: list[Any]
) -> Sequence[Any]:
    """`run(node, grads)`, which warns of where the node was made if it fails or gives NaN."""
    token = _evaluated.set(node)
    try:
        results = run(node, grads)
        for position, result in enumerate(results):
            for kind in _checked.get():
                if result is not None and values.has(kind, result):
                    raise RuntimeError(_report(node, position, kind, grads, result, values))
    except Exception:
        text = "\n\n".join(_history(node))
        try:
            warnings.warn(text, UserWarning, stacklevel=frames_of_ours())
        except UserWarning:  # the error of backward is the one to raise
            print(text, file=sys.stderr)
        raise
    finally:
        _evaluated.reset(token)
    return results


def frames_of_ours() -> int:
    """From the caller outwards, the number of the first frame that is not this package's."""
    frames = enumerate(traceback.walk_stack(sys._getframe(1)), 1)
    return next((number for number, (frame, _) in frames if not is_ours(frame)), 1)


def _report(
    node: Node, position: int, kind: str, grads: Sequence[Any], result: Any, values: Values
) -> str:
    made = origin(node)
    place = "" if made is None else f" Its forward call is at {shown_place(*made)}."
    reason = " Look at the values that it was given, and at those that it saved."
    if any(g is not None and values.has(kind, g) for g in grads):
        reason = (
            f" The gradient that it was given has {kind} already: it comes from a hook, or from "
            "the gradient that backward started with."
        )
    elif any(g is not None and values.is_zero_where(g, kind, result) for g in grads):
        reason = (
            " The gradient that it was given is 0 there, as where() or a mask makes it for what "
            f"they leave out, and 0 times an infinite derivative is {kind}. Compute only what is "
            "used: dg.where_safe(condition, f, g, *args) does."
        )
    fact = f"Function '{node.name()}' returned {kind} values in its {position}th output."
    return fact + place + reason
