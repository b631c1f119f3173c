"""OperatorNode: the node of a recorded operator, and what it saved for backward."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import jax

from dyngraph import devices, dtypes
from dyngraph.errors import GraphFreedError, SavedTensorModifiedError
from dyngraph.graph import anomaly, mutation
from dyngraph.graph.node import (
    EXTRA,
    OUTPUTS,
    Edge,
    InputMetadata,
    Node,
    Values,
    field,
    kept_graphs,
)
from dyngraph.graph.packing import Hooks, Packed, PackedValues, pack
from dyngraph.graph.saved import SavedTensor
from dyngraph.kernels import BackwardPlan, OperatorSpec, is_differentiable
from dyngraph.pending import Pending, resolved
from dyngraph.storage import cell_of
from dyngraph.tensor import LEAF, Tensor, new_tensor, tensor_at

PLAN, SAVED, GUARDS = range(EXTRA + 1, EXTRA + 4)
"""The places that the record of an operator's node has beside every node's."""


class OperatorNode(Node):
    """The node of a recorded operator: its backward plan, and what that plan saved.

    `guards` tell whether a saved value has been written to since: for each one, in turn, the
    Storage that owned it (None: a constant) and the version that it had. After `release`, `saved`
    is None.
    """

    __slots__ = ()

    spec: ClassVar[OperatorSpec]

    plan: BackwardPlan = field(PLAN, "What runs backward.")
    saved: tuple[Any, ...] | None = field(SAVED, "What it reads; None once that is freed.")
    guards: tuple[Any, ...] = field(GUARDS, "What tells of writes to what was saved.")

    def apply(self, grads: Sequence[Any], values: Values) -> Sequence[Any]:
        edges, _, outputs, _, plan, saved, guards = self.record
        if saved is None:
            raise GraphFreedError(self.name())
        absent = None
        for i in range(0, len(guards), 2):
            owner = guards[i]
            if owner is not None and owner.version != guards[i + 1]:
                self.check_version(i // 2)
        if grads[0] is None or (len(grads) > 1 and any([g is None for g in grads])):
            if all([g is None for g in grads]):
                return (None,) * len(edges)
            pairs = zip(grads, outputs, strict=True)
            absent = tuple([meta if g is None else None for g, meta in pairs])
            grads = [g for g in grads if g is not None]
        targets: tuple[Any, ...] = ()  # added to one by one: faster than a comprehension
        for node, output_nr in edges:
            targets += (None if node is None else node.record[OUTPUTS][output_nr],)
        if plan.passes_on and all([t is None or t == outputs[0] for t in targets]):
            return [None if t is None else grads[0] for t in targets]
        return values.run(self, targets, absent, grads)

    def release(self) -> None:
        edges, sequence_nr, outputs, extra, plan, saved, _ = self.record
        if saved:
            self.record = (edges, sequence_nr, outputs, extra, plan, None, ())
            if extra is not None:
                extra.tangents = None

    def output_metadata(self) -> tuple[InputMetadata, ...]:
        device = self._device()
        return tuple(InputMetadata(s, dtypes.of(d), device) for s, d in self.outputs)

    def _device(self) -> devices.device:
        """Where the outputs live: where the first leaf does, as operators never mix devices."""
        node: Any = self
        while isinstance(node, OperatorNode):
            for value in node.saved or ():
                if isinstance(value, (jax.Array, Pending)) and value.ndim:
                    return devices.of(value)  # type: ignore[arg-type]
            node = next(n for n, _ in node.edges if n is not None)
        return node.output_metadata()[0].device

    def check_version(self, position: int) -> None:
        """Raises where the saved value at `position` was written in place after it was saved."""
        owner, version = self.guards[2 * position : 2 * position + 2]
        if owner is not None and owner.version != version and not mutation.is_allowed(self):
            assert self.saved is not None and owner.version is not None
            value = self.saved[position]
            raise SavedTensorModifiedError(
                self.name(),
                self.field_names()[self.plan.sources[position]],
                f"{dtypes.of(value.dtype).name}{list(value.shape)}",
                version,
                owner.version,
                getattr(owner, "written_at", None),
                anomaly.origin(self),
            )

    @classmethod
    def field_names(cls) -> tuple[str, ...]:
        """The names of what can be saved: inputs, then outputs."""
        return (*cls.spec.inputs, *cls.spec.output_names)

    def pack(self, position: int, tensor: Tensor, hooks: Hooks) -> None:
        """Keeps what a pack hook makes of a saved value, whose version is not checked from now
        on."""
        assert self.saved is not None
        packed, at = pack(tensor, hooks), 2 * position
        kept_graphs.clear()
        saved, guards = self.saved, self.guards
        self.saved = PackedValues((*saved[:position], packed, *saved[position + 1 :]))
        self.guards = (*guards[:at], None, 0, *guards[at + 2 :])

    def hook_order(self) -> list[int]:
        """The positions of what is saved as PyTorch goes through them: inputs, then outputs, each
        by name."""
        names, sources, count = self.field_names(), self.plan.sources, len(self.spec.inputs)
        return sorted(range(len(sources)), key=lambda i: (sources[i] >= count, names[sources[i]]))

    def arrays(self) -> tuple[Any, ...]:
        """What was saved, as the kernel takes it; unpack hooks are called."""
        return tuple([resolved(value) for value in self.held()])

    def held(self) -> tuple[Any, ...]:
        """The same with what is pending as it is."""
        assert self.saved is not None
        values = list(self.saved)
        for position in self.hook_order() if type(self.saved) is PackedValues else ():
            if type(values[position]) is Packed:
                values[position] = self._unpacked(position)._cell.held
        return tuple(values)

    def tensors(self) -> list[Tensor | None]:
        """What was saved, as tensors with their history; unpack hooks are called."""
        assert self.saved is not None
        if type(self.saved) is not PackedValues:
            return [self.unpack(i) for i in range(len(self.saved))]
        found = {position: self.unpack(position) for position in self.hook_order()}
        return [found[i] for i in range(len(self.saved))]

    def _unpacked(self, position: int) -> Tensor:
        assert self.saved is not None
        tensor, source = unpacked(self.saved[position]), self.plan.sources[position]
        if self._edge_of(source) is not None and not tensor.dtype.is_differentiable:
            raise RuntimeError(
                "Only Tensors of floating point and complex dtype can require gradients: the "
                f"unpack hook returned one of {tensor.dtype} for what {self.name()} saved as "
                f"{self.field_names()[source]!r}. Convert it by .to()."
            )
        return tensor

    def _edge_of(self, source: int) -> Edge | None:
        """Where the gradient of an input goes; None for one that needs none, and for outputs."""
        spec = self.spec
        if source >= len(spec.inputs) or spec.inputs[source] not in spec.differentiable:
            return None
        edge = self.edges[spec.differentiable.index(spec.inputs[source])]
        return None if edge[0] is None else edge

    def unpack(self, position: int) -> Tensor | None:
        """The saved value as a tensor with the history and the tangent of when it was saved."""
        tensor = self._with_history(position)
        extra = self.extra
        if extra is not None and extra.tangents is not None and tensor is not None:
            tensor.need_meta().tangent = extra.tangents[position]
        return tensor

    def _with_history(self, position: int) -> Tensor | None:
        # Note [Outputs are saved without history]
        # A node that held a tensor which it made would be a cycle. So arrays are saved, and the
        # history is put back here: an input's is this node's own edge, an output's this node.
        _, _, _, _, plan, saved, guards = self.record
        if saved is None:
            raise GraphFreedError(self.name())
        self.check_version(position)
        value, owner, spec = saved[position], guards[2 * position], self.spec
        if value is None:
            return None
        if type(value) is Packed:
            shown = self._unpacked(position)
            cell = shown._cell if shown._view is None else cell_of(shown._cell.held)
            value = cell.held
        else:
            cell = owner if owner is not None and owner.holds(value) else cell_of(value)
        source = plan.sources[position]
        if source >= len(spec.inputs):
            if not is_differentiable(value.dtype):
                return new_tensor(cell)
            # outputs that can have a gradient come first, so their numbers are those of the edges
            return new_tensor(cell, (self, source - len(spec.inputs)))
        return tensor_at(cell, self._edge_of(source))

    def show(self, position: int) -> Tensor | None:
        """The saved value as users see it: as `unpack`, but a leaf that was saved is itself."""
        tensor = self.unpack(position)
        if tensor is None or tensor._edge is not LEAF:
            return tensor
        leaf = tensor.gradient_edge()[0].variable  # type: ignore[union-attr]
        return leaf if leaf._cell is self.guards[2 * position] else tensor

    def saved_field(self, name: str) -> Tensor | None:
        """What `_saved_<name>` shows: the saved tensor; None where no gradient needs it."""
        position = self._position_of(name)
        return None if position is None else self.show(position)

    def raw_saved_field(self, name: str) -> SavedTensor:
        """What `_raw_saved_<name>` shows: the handle of a saved tensor."""
        return SavedTensor(self, self._position_of(name))

    def _position_of(self, name: str) -> int | None:
        source = self.field_names().index(name)
        return self.plan.sources.index(source) if source in self.plan.sources else None

    def input_shape(self, name: str) -> tuple[int, ...]:
        """What `_saved_<name>_sym_sizes` shows: the shape that the rule broadcasts to."""
        node, output_nr = self.edges[self.spec.differentiable.index(name)]
        return () if node is None else node.outputs[output_nr][0]

    def static(self, name: str) -> Any:
        """What `_saved_<name>` shows of a static argument."""
        return self.plan.kernel.statics[name]


def unpacked(packed: Packed) -> Tensor:
    """The tensor that an unpack hook gets back; TypeError where it is none."""
    tensor = packed.unpack_hook(packed.value)
    if not isinstance(tensor, Tensor):
        raise TypeError(
            "Output of saved tensor unpack_hook expected to be a Tensor but got result of type "
            f"{type(tensor).__name__}. Return a tensor of the values that were packed."
        )
    return tensor


def node_class(spec: OperatorSpec) -> type[OperatorNode]:
    """The Node class of an operator, with its `_saved_*` fields."""
    body: dict[str, Any] = {"__slots__": (), "spec": spec, "__module__": __name__}
    for name in spec.saved_names:
        body[f"_saved_{name}"] = property(lambda self, name=name: self.saved_field(name))
        body[f"_raw_saved_{name}"] = property(lambda self, name=name: self.raw_saved_field(name))
    for name in spec.shape_names:
        body[f"_saved_{name}_sym_sizes"] = property(lambda self, name=name: self.input_shape(name))
    for name in spec.statics:
        body[f"_saved_{name}"] = property(lambda self, name=name: self.static(name))
    return type(spec.node_name, (OperatorNode,), body)
