"""Rich: how a notebook shows a Tensor and a Node."""

from __future__ import annotations

from typing import Any

from dyngraph.graph.node import Node
from dyngraph.tensor import Tensor
from dyngraph.viz.contents import contents, is_freed
from dyngraph.viz.lettering import described, escape, in_bytes
from dyngraph.viz.outline import hooks_of
from dyngraph.viz.table import Table


def tensor_html(tensor: Tensor) -> str:
    """The values of a tensor, and its place in the graph."""
    facts = [
        ("shape", str(list(tensor.shape))),
        ("dtype", tensor.dtype.name),
        ("device", str(tensor.device)),
        ("size", in_bytes(tensor.nbytes)),
    ]
    if not tensor._edge_is_lost():
        node = tensor.grad_fn
        facts.append(("requires_grad", str(tensor.requires_grad)))
        if node is not None:
            facts.append(("grad_fn", node.name().rpartition("::")[2]))
    meta = tensor._meta
    if meta is not None and meta.grad is not None:
        facts.append(("grad", described(meta.grad.shape, meta.grad.dtype)))
    if tensor._cell.version:
        facts.append(("version", str(tensor._cell.version)))
    shown = " · ".join([f"<b>{escape(name)}</b> {escape(value)}" for name, value in facts])
    values = f'<pre style="font-family:monospace">{_escaped_lines(repr(tensor))}</pre>'
    return f"<div>{values}<small>{shown}</small></div>"


def node_html(node: Node) -> str:
    """The name of a node, where its gradients go, what it saved."""
    outputs = ", ".join([described(*output) for output in node.outputs if output is not None])
    rows = []
    for i, (below, nr) in enumerate(node.next_functions):
        if below is None:
            rows.append((i, "None", "needs no gradient"))
            continue
        output = below.outputs[nr] if nr < len(below.outputs) else None
        what = "" if output is None else described(*output)
        rows.append((i, below.name().rpartition("::")[2], what))
    parts = [f"<div><b>{escape(node.name())}</b> of {escape(outputs)}</div>"]
    if rows:
        parts.append(Table(("input", "next function", "gradient"), rows).html())
    notes = [kept.line for kept in contents(node)]
    if is_freed(node):
        notes.append("freed: an earlier backward let go of what it saved")
    if node.extra is not None:
        notes += hooks_of(node.extra)
    parts += [f"<div>{escape(note)}</div>" for note in notes]
    return "".join(parts)


def _escaped_lines(text: str) -> str:
    return "\n".join([escape(line) for line in text.split("\n")])


def show_richly() -> None:
    """Gives tensors and nodes what a notebook asks for."""
    classes: list[tuple[Any, Any]] = [(Tensor, tensor_html), (Node, node_html)]
    for cls, html in classes:
        cls._repr_html_ = html


show_richly()
