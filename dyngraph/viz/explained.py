"""Explained: `explain_grad`, which says why a tensor got no gradient, or zeros."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp

from dyngraph.backward import grad
from dyngraph.graph.accumulate import AccumulateGrad
from dyngraph.graph.node import Edge, Node
from dyngraph.ops.filled import ones_like
from dyngraph.tensor import LEAF, Tensor
from dyngraph.user_code import shown_place
from dyngraph.views import memory_of
from dyngraph.viz.contents import contents, is_freed
from dyngraph.viz.lettering import described, escape
from dyngraph.viz.names import Given, Names, names_of
from dyngraph.viz.outline import visits
from dyngraph.viz.provenance import provenance
from dyngraph.viz.recorder import Recorder
from dyngraph.viz.replay import step_of
from dyngraph.viz.watching import watched

MOST_NAMES = 8
"""How many leaves, or nodes of a path, are listed."""
RECORD = (
    "To see where a path is lost, run the forward pass inside `with dg.viz.provenance() as "
    "record:` and pass the record to explain_grad()."
)


class Explanation:
    """What is known of the gradient of a tensor: `reached` if a path leads to it, `fact` and
    `details` in words."""

    def __init__(self, fact: str, details: Sequence[str], *, reached: bool) -> None:
        self.fact = fact
        self.details = list(details)
        self.reached = reached

    def __repr__(self) -> str:
        return "\n".join([self.fact, *[f"- {detail}" for detail in self.details]])

    def _repr_html_(self) -> str:
        details = "".join([f"<li>{escape(detail)}</li>" for detail in self.details])
        return f"<div>{escape(self.fact)}<ul>{details}</ul></div>"


def explain_grad(
    loss: Tensor, x: Tensor, record: provenance | None = None, names: Given = None
) -> Explanation:
    """Why a backward from `loss` gives `x` the gradient that it has, none, or zeros.

    What a graph can tell is told: the path, where it is freed, what makes a gradient zero, which
    leaves are reached, whether the value of `x` is used as a constant. `record`, of a forward pass
    inside `dg.viz.provenance()`, tells where a path was cut. To find zeros a backward is run that
    leaves `.grad` alone and keeps the graph; hooks run in it. Raises TypeError for what is no
    tensor.

    >>> x = dg.tensor([-1.0, -2.0], requires_grad=True)
    >>> loss = x.relu().sum()
    >>> loss.backward(retain_graph=True)
    >>> dg.explain_grad(loss, x)
    The gradient of x is 0 in all its elements.
    - path: SumBackward0 → ReluBackward0 → AccumulateGrad
    - ReluBackward0 (#1) makes it 0: it was given a gradient of norm 1.414
    """
    for name, value in (("loss", loss), ("x", x)):
        if not isinstance(value, Tensor):
            raise TypeError(
                f"explain_grad(): {name} must be a Tensor, not {type(value).__name__}. Numbers and "
                "arrays of other libraries have no gradient here."
            )
    known = names_of(names)
    name = known.of(x) or "x"
    if not x.dtype.is_differentiable:
        fact = f"No gradient reaches {name}: it is {x.dtype.name}, and only floating point and "
        return Explanation(
            fact + "complex tensors have one.",
            ["convert it before the forward pass, by .float(), and set requires_grad=True on that"],
            reached=False,
        )
    if loss._edge is None:
        return _without_graph(loss, x, name, record)
    root = loss.gradient_edge()
    order = visits([root])
    path = _path(root, x)
    if path is None:
        return _without_path(order, loss, x, name, known, record)
    return _with_path(path, order, loss, x, name)


def _path(root: Edge, x: Tensor) -> list[Node] | None:
    """The nodes of a shortest path from an edge to where the gradient of `x` arrives."""
    target = _edge_of(x)
    if target is None or root[0] is None:
        return None
    before: dict[Edge, Edge | None] = {root: None}
    todo: list[Edge] = [root]
    for edge in todo:
        if edge == target:
            path = []
            step: Edge | None = edge
            while step is not None:
                assert step[0] is not None
                path.append(step[0])
                step = before[step]
            return path[::-1]
        assert edge[0] is not None
        for below in edge[0].edges:
            if below[0] is not None and below not in before:
                before[below] = edge
                todo.append(below)
    return None


def _edge_of(x: Tensor) -> Edge | None:
    """Where the gradient of `x` arrives, if any graph leads there."""
    if x._edge is None:
        return None
    if x._edge is not LEAF:
        return x._edge
    accumulator = x._meta.accumulator if x._meta is not None else None
    node = None if accumulator is None else accumulator()
    return None if node is None else (node, 0)


def _without_graph(loss: Tensor, x: Tensor, name: str, record: provenance | None) -> Explanation:
    details = []
    if loss.is_inference():
        details.append("the loss was made inside inference_mode()")
    if not loss.dtype.is_differentiable:
        details.append(
            f"the loss is {loss.dtype.name}: argmax(), comparisons and casts to integers give "
            "values without a gradient"
        )
    if not x.requires_grad:
        details.append(f"{name} does not require grad: set it before the forward pass")
    fact = f"No gradient reaches {name}: the loss has no graph, it does not require grad."
    return Explanation(fact, [*details, *_cuts(loss, x, record)], reached=False)


def _cuts(loss: Tensor, x: Tensor, record: provenance | None) -> list[str]:
    if record is None:
        return [RECORD]
    cuts = record.cuts(loss, x)
    return cuts or ["in what was recorded, no value that was made from it gets to the loss"]


def _without_path(
    order: Sequence[Node],
    loss: Tensor,
    x: Tensor,
    name: str,
    names: Names,
    record: provenance | None,
) -> Explanation:
    details = []
    if not x.requires_grad:
        details.append(
            f"{name} does not require grad: set requires_grad=True on it before the forward pass, "
            "then run that again"
        )
    root, _ = memory_of(x)
    uses = [
        f"{node.name()} (#{place}) has its value as {kept.field!r}"
        for place, node in enumerate(order)
        for kept in contents(node)
        if kept.owner is not None
        and (kept.owner is root or kept.owner is x._cell)
        and _is_constant(node, kept.source)
    ]
    if uses:
        details.append(
            f"{'; '.join(uses[:MOST_NAMES])}, as a constant: what was used there is detach() or "
            ".data of it, or did not require grad yet"
        )
    details += _cuts(loss, x, record) if record is not None or not uses else []
    version = x._cell.version
    if version:
        file, line = getattr(x._cell, "written_at", ("", 0))
        at = f", last at {shown_place(file, line)}" if file else ""
        details.append(f"{name} was written to in place {version} times{at}")
    leaves = [n.variable for n in order if isinstance(n, AccumulateGrad) and n.variable is not None]
    shown = [
        names.of_leaf(leaf) or described(leaf._cell.array.shape, leaf._cell.array.dtype)
        for leaf in leaves
    ]
    more = f" and {len(shown) - MOST_NAMES} more" if len(shown) > MOST_NAMES else ""
    details.append(f"leaves that are reached: {', '.join(shown[:MOST_NAMES]) or 'none'}{more}")
    fact = f"No gradient reaches {name}: no path leads from {names.of(loss) or 'the loss'} to it."
    return Explanation(fact, details, reached=False)


def _is_constant(node: Any, source: int | None) -> bool:
    """Whether an operator's saved field has no edge, though it could have one."""
    if source is None or source >= len(node.spec.inputs):
        return False
    return node._edge_of(source) is None


def _with_path(
    path: Sequence[Node], order: Sequence[Node], loss: Tensor, x: Tensor, name: str
) -> Explanation:
    titles = [node.name().rpartition("::")[2] for node in path]
    if len(titles) > MOST_NAMES:
        titles[MOST_NAMES // 2 : -MOST_NAMES // 2] = [f"… {len(titles) - MOST_NAMES} more …"]
    details = ["path: " + " → ".join(titles)]
    freed = [node for node in order if is_freed(node)]
    grad_of_x = None if x._meta is None else x._meta.grad
    if grad_of_x is None:
        if not x.is_leaf and not x.retains_grad:
            details.append(
                f"{name} is not a leaf: call {name}.retain_grad() before backward(), or ask "
                "dg.autograd.grad() for it"
            )
            fact = f"A gradient reaches {name}, but is not kept in its .grad."
        else:
            ran = (
                "a backward has run, and freed the graph: .grad was set to None since, or "
                "backward(inputs=...) or autograd.grad() left it out"
                if freed
                else "backward() has not run on this graph yet"
            )
            details.append(ran)
            fact = f"A gradient reaches {name}; its .grad is None."
    elif not bool(jnp.any(grad_of_x._cell.array != 0)):
        fact = f"The gradient of {name} is 0 in all its elements."
    else:
        array = grad_of_x._cell.array
        norm = float(jnp.sqrt(jnp.sum(jnp.abs(array) ** 2)))
        details.append(f"its .grad has norm {norm:.4g}")
        bad = int(jnp.sum(~jnp.isfinite(array)))
        if bad:
            details.append(f"{bad} elements of it are NaN or Inf: dg.viz.trace() finds the first")
        return Explanation(f"A gradient reaches {name}.", details, reached=True)
    if freed:
        details.append(
            f"the graph was freed by an earlier backward, {freed[0].name()} first: what makes a "
            "gradient 0 can't be found any more; pass retain_graph=True there to look"
        )
    else:
        details += _zeros(order, loss, x)
    return Explanation(fact, details, reached=True)


def _zeros(order: Sequence[Node], loss: Tensor, x: Tensor) -> list[str]:
    """What makes the gradient of `x` zero, if it is."""
    recorder = Recorder({node: place for place, node in enumerate(order)})
    with watched(recorder):
        (found,) = grad(loss, x, ones_like(loss), retain_graph=True, allow_unused=True)
    if found is None:
        return ["a node on the way, or a hook, gives None in its place"]
    if bool((found != 0).any()):
        return []
    steps = [step_of(row) for row in recorder.rows]
    return [
        f"{step.name} (#{step.order}) makes it 0: it was given a gradient of norm "
        f"{step.arrived:.4g}"
        for step in steps
        if step.order is not None and step.arrived and step.passed == 0
    ][:MOST_NAMES]
