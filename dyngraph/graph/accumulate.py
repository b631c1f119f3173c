"""AccumulateGrad: where a gradient leaves the graph, into the `.grad` of a leaf."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from dyngraph.graph.node import InputMetadata, Node, Values

FIRST = 2**64 - 1
"""The sequence number of every accumulation: it runs as soon as its gradient is complete."""


class AccumulateGrad(Node):
    """Adds what arrives to `variable.grad`, then calls the leaf's post-accumulate hooks."""

    __slots__ = ("lock", "variable")

    def __init__(self, variable: Any) -> None:
        self.edges = ()
        self.extra = None
        self.sequence_nr = FIRST
        self.variable = variable
        self.lock = threading.Lock()

    def name(self) -> str:
        return "torch::autograd::AccumulateGrad"

    @property
    def outputs(self) -> tuple[tuple[tuple[int, ...], Any], ...]:
        """Shape and dtype of the leaf, in the place where a recorded node keeps its outputs'."""
        array = self.variable._cell.held
        return ((array.shape, array.dtype),)

    def output_metadata(self) -> tuple[InputMetadata, ...]:
        leaf = self.variable
        return (InputMetadata(leaf.shape, leaf.dtype, leaf.device),)

    def apply(self, grads: Sequence[Any], values: Values) -> Sequence[Any]:
        variable = self.variable
        if grads[0] is None:
            return ()
        with self.lock:  # backward in another thread may be adding to this leaf as well
            values.accumulate(variable, grads[0])
        hooks = variable._post_accumulate_grad_hooks
        if hooks:
            values.settle("a post-accumulate hook", self)
            for hook in list(hooks.values()):
                answer = hook(variable)
                if answer is not None:
                    raise TypeError(
                        "Tensor post accumulate grad hooks should return None, but hook returned "
                        f"'{type(answer).__name__}'. Change variable.grad instead."
                    )
        return ()

    def __repr__(self) -> str:
        return "<AccumulateGrad>"
