"""Picture: `graph`, which draws the graph behind a tensor, and what it returns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dyngraph.graph.node import Edge, GradientEdge, Node
from dyngraph.tensor import Tensor
from dyngraph.viz import markup
from dyngraph.viz.diagram import diagram
from dyngraph.viz.folding import body, fold
from dyngraph.viz.frame import forms_of
from dyngraph.viz.keepers import kept_arrays
from dyngraph.viz.names import Given, Names, names_of
from dyngraph.viz.outline import Outline, outline, visits

LIMIT = 300
"""How many boxes a picture has before it is folded."""


class GraphPicture:
    """A graph as it was when it was drawn, in several forms.

    A notebook shows it as SVG, a terminal as text. It holds no node and no tensor.
    """

    def __init__(
        self,
        whole: Outline,
        limit: int,
        *,
        engine: str = "auto",
        saved_bytes: int | None = None,
    ) -> None:
        self.whole = whole
        self.shown = fold(whole, limit)
        self.limit = limit
        self.engine = engine
        self.saved_bytes = saved_bytes

    def svg(self) -> str:
        """The picture as SVG, complete in itself."""
        return diagram(self.shown, engine=self.engine)

    def mermaid(self) -> str:
        """The graph in Mermaid's language, which GitHub and many wikis draw."""
        return markup.mermaid(self.shown)

    def dot(self) -> str:
        """The graph in Graphviz's language."""
        return markup.dot(self.shown)

    def text(self) -> str:
        """The graph as lines of text: each box with the numbers of those that it leads to."""
        return markup.plain(self.shown, self.saved_bytes)

    def inside(self, number: int) -> GraphPicture:
        """What is folded into box `number`, as `text()` counts them: of what repeats, the first.

        Raises ValueError for a box in which nothing is folded, IndexError where there is none.
        """
        box = self.shown.boxes[number]
        if not box.members:
            raise ValueError(
                f"box {number}, {box.title}, is one node: nothing is folded into it. Folded boxes "
                f"are {[i for i, b in enumerate(self.shown.boxes) if b.members]}."
            )
        limit = max(self.limit, LIMIT)
        return GraphPicture(body(self.whole, box), limit, engine=self.engine)

    def save(self, path: str | Path) -> None:
        """Writes the picture to a file; its ending says as what: .svg, .mmd, .dot, .gv or .txt.

        Raises ValueError for another ending.
        """
        forms = {
            ".svg": self.svg,
            ".mmd": self.mermaid,
            ".dot": self.dot,
            ".gv": self.dot,
            ".txt": self.text,
        }
        ending = Path(path).suffix.lower()
        if ending not in forms:
            raise ValueError(
                f"save(): can't tell from {str(path)!r} what to write. Let it end in one of "
                f"{', '.join(forms)}."
            )
        Path(path).write_text(forms[ending](), encoding="utf-8")

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return forms_of(self.svg(), self.text())

    def __repr__(self) -> str:
        return self.text()


def graph(
    of: Tensor | Node | GradientEdge | Sequence[Tensor | Node | GradientEdge],
    names: Given = None,
    *,
    saved: bool = True,
    shapes: bool = True,
    limit: int = LIMIT,
    engine: str = "auto",
) -> GraphPicture:
    """The backward graph behind a tensor, several, or a node, as a picture.

    Boxes are nodes, in the colours of their kinds, with what they saved (`saved`), hooks and names;
    arrows lead where gradients go, with their dtypes and shapes (`shapes`). Tensors are called as
    the caller's variables are, or as `names` says: a dict, pairs, or a module. A graph of more than
    `limit` boxes is folded, with what repeats in one box. `engine` lays it out: "dot" is Graphviz,
    "own" needs nothing, "auto" takes Graphviz where it is installed.

    Raises ValueError for a tensor without a graph, TypeError for what is no tensor or node.

    >>> x = dg.tensor([2.0, 3.0], requires_grad=True)
    >>> loss = (x * x).sum()
    >>> dg.viz.graph(loss, {"x": x, "loss": loss}, saved=False)
    [0] loss            -> [1]  (float32[])  (GraphRoot)
    [1] SumBackward0    -> [2] float32[2]
    [2] MulBackward0    -> [3] float32[2], [3] float32[2]
    [3] AccumulateGrad  -> [4]
    [4] x               (float32[2])
    3 nodes, 8 B saved
    """
    known = names_of(names)
    roots = roots_of(of, known)
    whole = outline(roots, known, limit=limit, saved=saved, shapes=shapes)
    count = saved_bytes([edge for edge, _ in roots])
    return GraphPicture(whole, limit, engine=engine, saved_bytes=count)


def roots_of(of: Any, names: Names) -> list[tuple[Edge, str]]:
    """The edges that a picture starts from, each with the name of its tensor."""
    items: list[Any] = [of]
    if type(of) in (list, tuple):  # a GradientEdge is a tuple as well
        items = list(of)
    roots: list[tuple[Edge, str]] = []
    for item in items:
        if isinstance(item, Node):
            roots.append(((item, 0), item.name().rpartition("::")[2]))
        elif isinstance(item, GradientEdge):
            roots.append(((item.node, item.output_nr), names.of_output(item.node, item.output_nr)))
        elif not isinstance(item, Tensor):
            raise TypeError(
                f"expected a Tensor, a Node or a GradientEdge, got {type(item).__name__}. Pass "
                "the loss, or its grad_fn."
            )
        elif item._edge is None:
            raise ValueError(
                f"this {item.dtype.name}{list(item.shape)} tensor has no backward graph: it does "
                "not require grad, so no operator on it is recorded. Set requires_grad=True on an "
                "input before the forward pass; dg.explain_grad(loss, x) tells where a path ends."
            )
        else:
            roots.append((item.gradient_edge(), names.of(item)))
    if not roots:
        raise ValueError("there is no tensor to draw the graph of. Pass at least one.")
    return roots


def saved_bytes(roots: Sequence[Edge]) -> int:
    """The bytes of all that the graph keeps, each array counted once."""
    arrays = {id(array): array.nbytes for _, array in kept_arrays(visits(roots))}
    return sum(arrays.values())
