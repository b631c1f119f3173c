"""Nodes that pass a gradient on: as it is, or summed over the examples of a mapped function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dyngraph.graph.node import Edge, InputMetadata, Node, Values, creation_numbers


class PassNode(Node):
    """Passes a gradient on as it is, between nodes of one example and of all."""

    __slots__ = ("outputs",)

    outputs: Any

    def __init__(self, edge: Edge, outputs: Any) -> None:
        self.edges = (edge,)
        self.extra = None
        self.sequence_nr = next(creation_numbers)
        self.outputs = outputs

    def output_metadata(self) -> tuple[InputMetadata, ...]:
        return tuple(InputMetadata(shape, dtype) for shape, dtype in self.outputs)

    def apply(self, grads: Sequence[Any], values: Values) -> Sequence[Any]:
        return grads


class SumNode(PassNode):
    """Sums the gradients of all examples, for what is the same for all."""

    __slots__ = ()

    def name(self) -> str:
        return "SumBackward0"

    def apply(self, grads: Sequence[Any], values: Values) -> Sequence[Any]:
        (grad,) = grads
        if grad is None:
            return (None,)
        return (values.unwrap(values.wrap(grad).sum(0), None, self.name()),)
