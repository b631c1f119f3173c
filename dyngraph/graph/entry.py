"""Entry: where a function that is transformed begins, as seen by the graph.

# Note [Levels of the graph]
`func.grad`, `func.vjp` and `func.vmap` run a function on stand-ins for its inputs. While it runs, a
stand-in is a leaf, or the end of the graph: what the function computes, and may differentiate
itself, is about the function alone. When it has run, the level is closed, and the stand-in's node
leads on to where the input itself is in the graph. So the results are differentiable with respect
to everything outside.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dyngraph.graph.accumulate import AccumulateGrad
from dyngraph.graph.node import EDGES, Edge, InputMetadata, Node, Values


class Entry(AccumulateGrad):
    """The node of a stand-in: accumulates like a leaf's, and after `close` passes gradients on.

    `variable` is the stand-in, where it is a leaf, else None, and then what arrives is dropped.
    """

    __slots__ = ("is_open", "way_out")

    def __init__(self, variable: Any, outputs: Any, way_out: Edge | None) -> None:
        super().__init__(variable)
        self.outputs = outputs
        self.way_out = way_out
        self.is_open = True

    def close(self) -> None:
        """Makes it lead to where the input is in the graph, if anywhere."""
        self.is_open = False
        self.variable = None
        if self.way_out is not None:
            self.change(EDGES, (self.way_out,))

    def name(self) -> str:
        return super().name() if self.is_open else "Entry"

    def output_metadata(self) -> tuple[InputMetadata, ...]:
        return tuple(InputMetadata(shape, dtype) for shape, dtype in self.outputs)

    def apply(self, grads: Sequence[Any], values: Values) -> Sequence[Any]:
        if not self.is_open:
            return grads if self.edges else ()
        return super().apply(grads, values) if self.variable is not None else ()

    def __repr__(self) -> str:
        return super().__repr__() if self.is_open else "<Entry>"


def leads_out(edges: Sequence[Edge], own: Sequence[Entry]) -> bool:
    """Whether a gradient that is sent along `edges` would leave the level whose entries are
    `own`."""
    seen: set[Node] = set()
    todo = [node for node, _ in edges if node is not None]
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        if isinstance(node, Entry):
            if node.is_open and node not in own:
                return True
            if node.way_out is not None and node.way_out[0] is not None:
                todo.append(node.way_out[0])
        elif isinstance(node, AccumulateGrad):
            return True
        todo += [n for n, _ in node.edges if n is not None]
    return False
