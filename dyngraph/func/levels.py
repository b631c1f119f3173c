"""Level: the stretch of a program whose inputs a transform differentiates, in reverse mode."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, Self

from dyngraph import batches, modes
from dyngraph.backward import grad
from dyngraph.graph.entry import Entry, leads_out
from dyngraph.ops.filled import zeros_like
from dyngraph.storage import cell_of
from dyngraph.tangents import give_tangent, share_tangent, tangents_of
from dyngraph.tensor import LEAF, Tensor, check_differentiable, new_tensor
from dyngraph.tracing import Tracer
from dyngraph.views import alias


class Level:
    """Inside, operators are recorded, and `stand_in(input)` is a leaf in the input's place.

    What is recorded outside stays so: `outside` gives a result the history that it has there. See
    Note [Levels of the graph].
    """

    def __init__(self) -> None:
        self.records_outside = modes.is_recording()
        self.entries: list[Entry] = []

    def __enter__(self) -> Self:
        self.flags = modes.get_flags()
        modes.set_flags(self.flags & ~modes.INFERENCE | modes.GRAD)
        return self

    def __exit__(self, *exception: object) -> None:
        modes.restore_flags(self.flags)
        for entry in self.entries:
            entry.close()

    def reopened(self, records_outside: bool | None) -> Level:
        """This level once more, to go backward through it; None: what is recorded now counts."""
        again = Level()
        if records_outside is not None:
            again.records_outside = records_outside
        again.entries = self.entries
        return again

    def stand_in(self, tensor: Any) -> Tensor:
        """A leaf with the value of an input, which carries the same tangents."""
        if not isinstance(tensor, Tensor):
            raise ValueError(
                f"Thing passed to transform API must be Tensor, got {type(tensor).__name__}. Pass "
                "what is not to be differentiated in another argument, or leave it out of argnums."
            )
        check_differentiable(tensor.dtype)
        array = tensor._cell.array
        leaf = new_tensor(cell_of(array)) if tensor.is_inference() else alias(tensor)
        way_out = None
        if self.records_outside and tensor._edge is not None:
            way_out = tensor.gradient_edge()
        entry = Entry(leaf, ((array.shape, array.dtype),), way_out)
        leaf._edge = LEAF
        leaf.need_meta().accumulator = weakref.ref(entry)
        share_tangent(tensor, leaf)
        self.entries.append(entry)
        batch = batches.current_batch()
        if batch is not None and isinstance(array, Tracer):
            batch.nodes.add(entry)
        return leaf

    def outside(self, tensor: Tensor) -> Tensor:
        """A result as it is outside: without history where that ends with this level."""
        result = tensor
        if tensor._edge is not None:
            if not self.leads_out(tensor):
                result = alias(tensor)
                share_tangent(tensor, result)
            elif tensor._edge is LEAF and tensor.gradient_edge()[0] in self.entries:
                result = alias(tensor)
                result._edge = tensor.gradient_edge()
                share_tangent(tensor, result)
        for tangent in tangents_of(tensor):
            assert tangent.tensor is not None
            settled = self.outside(tangent.tensor)
            if settled is not tangent.tensor:
                give_tangent(result, settled, tangent.level)
        return result

    def leads_out(self, tensor: Tensor) -> bool:
        """Whether a tensor has a history outside, as far as that is recorded."""
        if tensor._edge is None or not self.records_outside:
            return False
        return leads_out([tensor.gradient_edge()], self.entries)

    def is_seen_outside(self, tensors: Sequence[Tensor]) -> bool:
        """Whether a derivative of these, or of what they carry, could be asked for outside."""
        todo = list(tensors)
        while todo:
            tensor = todo.pop()
            if self.leads_out(tensor):
                return True
            todo += [t.tensor for t in tangents_of(tensor) if t.tensor is not None]
        return False


def gradients(
    outputs: Sequence[Tensor],
    inputs: Sequence[Tensor],
    cotangents: Sequence[Tensor] | None,
    *,
    retain_graph: bool,
    create_graph: bool,
) -> list[Tensor]:
    """The gradients for each input; zeros where no output depends on it."""
    places = [i for i, out in enumerate(outputs) if out.requires_grad]
    if not places:
        return [zeros_like(x.detach()) for x in inputs]
    found = grad(
        [outputs[i] for i in places],
        inputs,
        None if cotangents is None else [cotangents[i] for i in places],
        retain_graph=retain_graph,
        create_graph=create_graph,
        allow_unused=True,
    )
    pairs = zip(found, inputs, strict=True)
    return [zeros_like(x.detach()) if g is None else g for g, x in pairs]
