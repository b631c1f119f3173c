"""AccumulateGrad: where a gradient leaves the graph, into the `.grad` of a leaf."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Any

from dyngraph.graph.node import InputMetadata, Node, Values

FIRST = 2**64 - 1
"""The sequence number of every accumulation: it runs as soon as its gradient is complete."""


class LeafOutputs:
    """Shape and dtype of a leaf as it is now, in the place where other nodes keep their
    outputs'."""

    __slots__ = ("variable",)

    def __init__(self, variable: Any) -> None:
        self.variable = variable

    def __len__(self) -> int:
        return 1

    def __getitem__(self, output_nr: int) -> tuple[tuple[int, ...], Any]:
        array = self.variable._cell.held
        return ((array.shape, array.dtype),)[output_nr]


class AccumulateGrad(Node):
    """Adds what arrives to `variable.grad`, then calls the leaf's post-accumulate hooks."""

    __slots__ = ("lock", "variable")

    def __init__(self, variable: Any) -> None:
        self.record = ((), FIRST, LeafOutputs(variable), None)
        self.variable = variable
        self.lock = threading.Lock()

    def name(self) -> str:
        return "torch::autograd::AccumulateGrad"

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


class Held:
    """A block in which no other thread accumulates at these nodes.

    Every thread takes the locks in the same order, so that none waits for another in a ring.
    """

    __slots__ = ("locks", "taken")

    def __init__(self, nodes: Iterable[AccumulateGrad]) -> None:
        self.locks = sorted([node.lock for node in nodes], key=id)
        self.taken: list[threading.Lock] = []

    def __enter__(self) -> None:
        try:
            for lock in self.locks:
                lock.acquire()
                self.taken.append(lock)
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        for lock in self.taken:
            lock.release()
