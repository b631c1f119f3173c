"""Nodes that pass a gradient on: as it is, or summed over the examples of a mapped function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dyngraph.graph.node import Edge, InputMetadata, Node, Values, creation_numbers


class PassNode(Node):
    """Passes a gradient on as it is, between nodes of one example and of all."""

    __slots__ = ()

    def __init__(self, edge: Edge, outputs: Any) -> None:
        self.record = ((edge,), next(creation_numbers), outputs, None)

    def output_metadata(self) -> tuple[InputMetadata, ...]:
        return tuple(InputMetadata(shape, dtype) for shape, dtype in self.outputs)

    def apply(self, grads: Sequence[Any], values: Values) -> Sequence[Any]:
        return grads


class Crossing(PassNode):
    """Passes a gradient on between a mapped function and a rule for all its examples.

    While the function runs, a gradient of one example becomes that of all, or the other way round,
    by `convert`; when it has been left, all gradients are of all examples.
    """

    __slots__ = ("batch", "convert")

    def __init__(self, edge: Edge, outputs: Any, batch: Any, convert: Callable[[Any], Any]) -> None:
        super().__init__(edge, outputs)
        self.batch = batch
        self.convert = convert

    def apply(self, grads: Sequence[Any], values: Values) -> Sequence[Any]:
        (grad,) = grads
        if grad is None or self.batch.index is None:
            return grads
        values.settle("the end of a mapped function", self)
        return (values.unwrap(self.convert(values.wrap(grad)), None, self.name()),)


class SumNode(PassNode):
    """Sums the gradients of all examples, for what is the same for all."""

    __slots__ = ()

    def name(self) -> str:
        return "SumBackward0"

    def apply(self, grads: Sequence[Any], values: Values) -> Sequence[Any]:
        (grad,) = grads
        if grad is None:
            return (None,)
        values.settle("a sum over examples", self)
        return (values.unwrap(values.wrap(grad).sum(0), None, self.name()),)
