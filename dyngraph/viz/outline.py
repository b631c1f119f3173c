"""Outline: a graph as boxes and arrows, in the order in which backward visits it.

Invariant: an outline holds texts and numbers alone, no node and no tensor, so that a picture keeps
no memory of the graph's; and an arrow leads to a box of a higher number.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Sequence

from dyngraph.autograd.function_node import BackwardCFunction
from dyngraph.graph.accumulate import AccumulateGrad
from dyngraph.graph.node import Edge, Extra, Node
from dyngraph.tensor import Tensor
from dyngraph.utils.reentrant import CheckpointFunction
from dyngraph.viz.contents import MODIFIED, RECOMPUTED, Kept, contents, is_freed
from dyngraph.viz.lettering import described, shortened
from dyngraph.viz.names import Names
from dyngraph.viz.scopes import Scope, path_of

ROOT, OPERATOR, FUNCTION, CHECKPOINT = "root", "operator", "Function", "checkpoint"
COMPILED, ACCUMULATE, LEAF, FOLDED = "compiled", "AccumulateGrad", "leaf", "folded"
KINDS = (ROOT, OPERATOR, FUNCTION, CHECKPOINT, COMPILED, ACCUMULATE, LEAF, FOLDED)
DONE, NOW = "done", "now"
MOST_LEAVES = 40
"""In graphs of more nodes, a leaf is named in the box of its AccumulateGrad."""


class Box:
    """A node, a tensor at an end of the graph, or several nodes that are folded into one box.

    `lines` stand below its title; `warnings` are those of them that tell of something wrong.
    `order` is the place of the node in a backward, None for a tensor; `scopes` are the parts of the
    program that made it; `state` is DONE or NOW in a picture of one step of a backward. `members`
    are the numbers, in the outline that was folded, of what is in the box, `times` the same body.
    """

    __slots__ = (
        "freed",
        "kind",
        "lines",
        "members",
        "order",
        "outputs",
        "scopes",
        "state",
        "times",
        "title",
        "warnings",
    )

    def __init__(self, kind: str, title: str, lines: Sequence[str] = ()) -> None:
        self.kind = kind
        self.title = title
        self.lines = list(lines)
        self.warnings: set[str] = set()
        self.freed = False
        self.order: int | None = None
        self.outputs = 1
        self.state = ""
        self.scopes: tuple[Scope, ...] = ()
        self.members: tuple[int, ...] = ()
        self.times = 1


class Arrow:
    """An edge: output `position` of the backward of `source` goes to input `output_nr` of `target`.

    `label` tells what flows there; `count` how many edges of a folded graph it stands for.
    """

    __slots__ = ("count", "label", "output_nr", "position", "source", "target")

    def __init__(
        self, source: int, position: int, target: int, output_nr: int, label: str, count: int = 1
    ) -> None:
        self.source = source
        self.position = position
        self.target = target
        self.output_nr = output_nr
        self.label = label
        self.count = count

    def __repr__(self) -> str:
        return f"{self.source} -> {self.target}: {self.label}"


class Outline:
    """The boxes and arrows of a picture, and how many nodes of a graph they stand for."""

    def __init__(self, boxes: list[Box], arrows: list[Arrow], nodes: int) -> None:
        self.boxes = boxes
        self.arrows = arrows
        self.nodes = nodes


def visits(roots: Sequence[Edge]) -> list[Node]:
    """The nodes that a backward from `roots` visits, in its order."""
    waiting: dict[Node, int] = {}
    todo: list[Node] = []
    starts = list(dict.fromkeys(node for node, _ in roots if node is not None))
    for node in starts:
        waiting[node] = 0
        todo.append(node)
    while todo:
        for node, _ in todo.pop().edges:
            if node is None:
                continue
            if node not in waiting:
                waiting[node] = 0
                todo.append(node)
            waiting[node] += 1
    ticks = itertools.count()
    ready = [(-node.sequence_nr, next(ticks), node) for node in starts if not waiting[node]]
    heapq.heapify(ready)
    order = []
    while ready:
        node = heapq.heappop(ready)[2]
        order.append(node)
        for below, _ in node.edges:
            if below is None:
                continue
            waiting[below] -= 1
            if not waiting[below]:
                heapq.heappush(ready, (-below.sequence_nr, next(ticks), below))
    return order


def outline(
    roots: Sequence[tuple[Edge, str]],
    names: Names,
    *,
    limit: int = MOST_LEAVES,
    saved: bool = True,
    shapes: bool = True,
    tensors: bool = True,
) -> Outline:
    """The outline of what `roots` reach: edges, each with the name of its tensor.

    `saved` shows what nodes keep, `shapes` labels the arrows, `tensors` shows roots and leaves as
    boxes of their own; leaves only where there are no more than `limit` boxes with them, and few.
    """
    order = visits([edge for edge, _ in roots])
    rooted = {edge for edge, _ in roots} if tensors else set()
    leaf_count = sum([isinstance(node, AccumulateGrad) for node in order])
    fits = len(roots) + len(order) + leaf_count <= limit
    own_leaves = tensors and fits and len(order) <= MOST_LEAVES
    boxes: list[Box] = []
    arrows: list[Arrow] = []
    for (node, output_nr), name in roots if tensors else ():
        assert node is not None
        boxes.append(Box(ROOT, shortened(name or "output"), [_label(node, output_nr), "GraphRoot"]))
    numbers: dict[Node, int] = {}
    leaves: list[tuple[int, Box]] = []
    for place, node in enumerate(order):
        number = numbers[node] = len(boxes)
        box = _box(node, saved=saved)
        made = [names.of_output(node, i) for i in range(box.outputs) if (node, i) not in rooted]
        if any(made):
            box.lines.insert(0, "makes " + ", ".join([shortened(name) for name in made if name]))
        box.order = place
        if not isinstance(node, AccumulateGrad):
            box.scopes = path_of(node.sequence_nr)
        boxes.append(box)
        if isinstance(node, AccumulateGrad) and node.variable is not None:
            leaf = node.variable
            name, label = shortened(names.of_leaf(leaf)), _label(node, 0)
            if own_leaves:
                leaves.append((number, Box(LEAF, name or "leaf", [label])))
            else:
                box.lines.insert(0, f"{name}: {label}" if name else label)
    for number, ((node, output_nr), _) in enumerate(roots if tensors else ()):
        assert node is not None
        arrows.append(Arrow(number, 0, numbers[node], output_nr, ""))
    for node in order:
        for position, (below, output_nr) in enumerate(node.edges):
            if below is not None:
                label = _label(below, output_nr) if shapes else ""
                arrows.append(Arrow(numbers[node], position, numbers[below], output_nr, label))
    _place_leaves_in_scopes(boxes, arrows)
    for number, box in leaves:
        arrows.append(Arrow(number, 0, len(boxes), 0, ""))
        boxes.append(box)
    return Outline(boxes, arrows, len(order))


def _place_leaves_in_scopes(boxes: Sequence[Box], arrows: Sequence[Arrow]) -> None:
    """Gives each leaf's node the scopes that all its uses are in."""
    if not any([box.scopes for box in boxes]):
        return
    seen: set[int] = set()
    for arrow in arrows:
        if boxes[arrow.target].kind != ACCUMULATE:
            continue
        target, scopes = boxes[arrow.target], boxes[arrow.source].scopes
        if arrow.target in seen:
            pairs = zip(target.scopes, scopes, strict=False)
            scopes = tuple([a for a, b in itertools.takewhile(lambda p: p[0] is p[1], pairs)])
        seen.add(arrow.target)
        target.scopes = scopes


def _label(node: Node, output_nr: int) -> str:
    """What flows to a node for one of its outputs, such as `float32[2, 3]`."""
    output = node.outputs[output_nr] if output_nr < len(node.outputs) else None
    return "" if output is None else described(*output)


def _box(node: Node, *, saved: bool) -> Box:
    kept = contents(node)
    box = Box(_kind(node, kept), shortened(node.name().rpartition("::")[2]))
    box.outputs = len(node.outputs)
    if saved:
        for value in kept:
            box.lines.append(value.line)
            if value.state == MODIFIED:
                box.warnings.add(box.lines[-1])
    elif any([value.state == MODIFIED for value in kept]):
        box.lines.append("a saved tensor was modified")
        box.warnings.add(box.lines[-1])
    if is_freed(node):
        box.freed = True
        box.lines.append("freed")
    if node.extra is not None:
        box.lines += hooks_of(node.extra)
    if isinstance(node, AccumulateGrad) and isinstance(node.variable, Tensor):
        count = len(node.variable._post_accumulate_grad_hooks or ())
        if count:
            box.lines.append(_count(count, "post-accumulate hook"))
    return box


def _kind(node: Node, kept: Sequence[Kept]) -> str:
    if isinstance(node, AccumulateGrad):
        return ACCUMULATE if node.variable is not None else OPERATOR
    if isinstance(node, BackwardCFunction):
        is_checkpoint = node._forward_cls is CheckpointFunction
        return CHECKPOINT if is_checkpoint else FUNCTION
    if any([value.state == RECOMPUTED for value in kept]):
        return CHECKPOINT
    return COMPILED if node.name().startswith("Compiled") else OPERATOR


def hooks_of(extra: Extra) -> list[str]:
    """The hooks of a node, in words."""
    counts = {
        "tensor hook": sum([len(hooks) for hooks in extra.tensor_hooks.values()]),
        "pre-hook": len(extra.pre_hooks or ()),
        "hook": len(extra.post_hooks or ()),
    }
    lines = [_count(count, what) for what, count in counts.items() if count]
    if any([reference() is not None for reference in extra.retained.values()]):
        lines.append("retains grad")
    return lines


def _count(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
