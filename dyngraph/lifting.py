"""What a mapped function leaves behind, for all examples at once: results, tangents, and the graph.

# Note [The graph is lifted]
Inside a mapped function a node is about one example, and what it saved may be a tracer. Before the
function is left, each node that a result leads to becomes the node of all examples: its saved
arrays are those of the whole batch, its plan runs the old plan under `jax.vmap`, and a gradient for
what is the same for all examples is summed over them. So the function runs once, and derivatives of
every order go through the mapped call as through any operator.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from dyngraph.batches import Batch, current_batch, open_batch
from dyngraph.graph.accumulate import AccumulateGrad
from dyngraph.graph.entry import Entry
from dyngraph.graph.node import NO_EDGE, Edge, Extra, Node
from dyngraph.graph.passing import Crossing, SumNode
from dyngraph.mapped_plan import mapped_plan
from dyngraph.operator_node import OperatorNode
from dyngraph.storage import Storage, cell_of
from dyngraph.tangents import Tangent, give_tangent, tangents_of
from dyngraph.tensor import LEAF, Tensor, new_tensor
from dyngraph.tracing import Tracer


class Mapped(NamedTuple):
    """A result of a mapped function: with `batched`, all examples, batch first; else the same for
    each."""

    tensor: Tensor
    batched: bool


def run_mapped(
    function: Callable[..., Sequence[Tensor]],
    inputs: Sequence[Tensor],
    size: int,
    randomness: str = "error",
) -> list[Mapped]:
    """`function` of one example, run for all `size` of them at once; dim 0 of inputs is the batch.

    An input that the function writes to is written to.
    """
    batch = Batch(size, randomness)
    arrays: list[Any] = []
    for tensor in inputs:
        _gather(tensor, arrays)
    results: list[Mapped] = []
    written: list[tuple[Tensor, Tensor]] = []

    def of_example(index: Any, *examples: Any) -> Any:
        batch.index = index
        open_batch(batch)
        try:
            arrays_left = iter(examples)
            given = [_stand_in(batch, tensor, arrays_left) for tensor in inputs]
            versions = [t._cell.version for t in given]
            outs = list(function(*given))
            changed = [i for i, t in enumerate(given) if t._cell.version != versions[i]]
            lifted = Lift(batch).run([*outs, *(given[i] for i in changed)])
            results.extend(lifted[: len(outs)])
            for i, result in zip(changed, lifted[len(outs) :], strict=True):
                written.append((inputs[i], result.tensor))
        finally:
            batch.index = None
            open_batch(batch.outer)
        return index

    jax.vmap(of_example)(jnp.arange(size, dtype=jnp.uint32), *arrays)
    for tensor, value in written:
        tensor.copy_(value)
    return results


def spread_all(results: Sequence[Mapped], size: int) -> list[Tensor]:
    """The results for each example, batch first, also of those that are the same for all."""
    return [t if batched else t.expand(size, *t.shape) for t, batched in results]


def _gather(tensor: Tensor, arrays: list[Any]) -> None:
    arrays.append(tensor._cell.array)
    for tangent in tangents_of(tensor):
        assert tangent.tensor is not None
        _gather(tangent.tensor, arrays)


def _stand_in(batch: Batch, tensor: Tensor, arrays: Iterator[Any]) -> Tensor:
    """The tensor of one example, with what it carries; `arrays` are in the order of `_gather`."""
    array = next(arrays)
    result = new_tensor(cell_of(array, tensor._cell.version))
    result._cell.batch = batch
    if tensor._edge is not None:
        leaf = tensor._edge is LEAF
        outputs = ((array.shape, array.dtype),)
        entry = Entry(result if leaf else None, outputs, tensor.gradient_edge())
        batch.entries.append(entry)
        batch.nodes.add(entry)
        result._edge = LEAF if leaf else (entry, 0)
        if leaf:
            result.need_meta().accumulator = weakref.ref(entry)
    for tangent in tangents_of(tensor):
        assert tangent.tensor is not None
        give_tangent(result, _stand_in(batch, tangent.tensor, arrays), tangent.level)
    return result


# --- rules for all examples at once -------------------------------------------------------------


def leave_batch(tensor: Tensor) -> Mapped:
    """Inside a mapped function, the tensor of all examples, batch first, and True; or the tensor
    itself and False, where it is the same for all.

    A rule that treats all examples at once runs on these, with `open_batch(batch.outer)`; then
    `enter_batch` leads its results back.
    """
    batch = current_batch()
    assert batch is not None, "nothing is mapped here"
    ((array, batched),) = batch.whole([tensor._cell.array])
    edge = None if tensor._edge is None else tensor.gradient_edge()
    if edge is not None and edge[0] in batch.nodes and not batched:
        array, batched = jnp.broadcast_to(array, (batch.size, *array.shape)), True
    carried = [(t.level, t.tensor) for t in tangents_of(tensor) if t.tensor is not None]
    tangents = [(level, leave_batch(tangent)) for level, tangent in carried]
    if not batched and not any(tangent.batched for _, tangent in tangents):
        return Mapped(tensor, batched=False)
    if edge is not None:
        batch.exits.append(edge[0])
        edge = Crossing(edge, ((array.shape, array.dtype),), batch, enter_batch), 0
    result = new_tensor(cell_of(array), edge)
    for level, tangent in tangents:
        (whole,) = spread_all([tangent], batch.size)
        give_tangent(result, whole, level)
    return Mapped(result, batched=True)


def enter_batch(tensor: Tensor) -> Tensor:
    """Inside a mapped function, the tensor of one example from that of all, batch first."""
    batch = current_batch()
    assert batch is not None, "nothing is mapped here"
    array = batch.example(tensor._cell.array)
    result = new_tensor(cell_of(array, tensor._cell.version))
    result._cell.batch = batch
    if tensor._edge is not None:
        outputs = ((array.shape, array.dtype),)
        node = Crossing(tensor.gradient_edge(), outputs, batch, _of_all)
        batch.nodes.add(node)
        result._edge = node, 0
    for tangent in tangents_of(tensor):
        assert tangent.tensor is not None
        give_tangent(result, enter_batch(tangent.tensor), tangent.level)
    return result


def _of_all(tensor: Tensor) -> Tensor:
    """The tensor of all examples, also of one that they share."""
    batch = current_batch()
    assert batch is not None
    return spread_all([leave_batch(tensor)], batch.size)[0]


class Lift:
    """Lifts the results of a mapped function out of it, and the graph behind them."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.nodes: dict[Node, None] = {}
        self.arrays: dict[int, Any] = {}
        self.whole: dict[int, tuple[Any, bool]] = {}
        self.cells: dict[int, Storage] = {}

    def run(self, tensors: Sequence[Tensor]) -> list[Mapped]:
        """The tensors of all examples."""
        self.collect(tensors)
        known = list(self.arrays.values())
        self.whole = dict(zip(self.arrays, self.batch.whole(known), strict=True))
        for entry in self.batch.entries:
            entry.close()
        results = [self.tensor(t) for t in tensors]
        for node in self.nodes:
            self.node(node)
            if self.batch.outer is not None:
                self.batch.outer.nodes.add(node)
        return results

    def collect(self, tensors: Sequence[Tensor]) -> None:
        """Finds the nodes and the arrays to lift."""
        todo: list[Any] = [*tensors, *self.batch.exits]
        while todo:
            item = todo.pop()
            if isinstance(item, Tensor):
                self.note(item._cell.array)
                if item._edge is not None:
                    todo.append(item.gradient_edge()[0])
                todo += [t.tensor for t in tangents_of(item)]
            elif item in self.batch.nodes and item not in self.nodes:
                self.nodes[item] = None
                todo += [node for node, _ in item.edges if node is not None]
                if isinstance(item, OperatorNode):
                    if item.saved is not None:
                        item.saved = item.arrays()  # what a hook packed belongs to one example
                    for value in item.saved or ():
                        self.note(value)
                    todo += [t.tensor for t in _tangents_of_saved(item)]
                elif hasattr(item, "lift"):  # a user's, which knows what it has saved
                    arrays, behind = item.collect()
                    for array in arrays:
                        self.note(array)
                    todo += behind

    def note(self, array: Any) -> None:
        if isinstance(array, Tracer):
            self.arrays[id(array)] = array

    def array(self, array: Any) -> tuple[Any, bool]:
        """The array of all examples and True, or the one that they share and False."""
        return self.whole.get(id(array), (array, False))

    def spread(self, array: Any) -> Any:
        """The array of all examples, also of one that they share."""
        whole, batched = self.array(array)
        return whole if batched else jnp.broadcast_to(whole, (self.batch.size, *whole.shape))

    def is_lifted(self, edge: Edge | None) -> bool:
        return edge is not None and edge[0] in self.nodes

    def tensor(self, tensor: Tensor) -> Mapped:
        """A result, with its place in the graph and what it carries."""
        edge = None if tensor._edge is None else tensor.gradient_edge()
        _, batched = self.array(tensor._cell.array)
        tangents = [t for t in tangents_of(tensor) if t.tensor is not None]
        if not (batched or self.is_lifted(edge) or any(self.differs(t.tensor) for t in tangents)):
            return Mapped(tensor, batched=False)
        result = new_tensor(cell_of(self.spread(tensor._cell.array)), self.edge(edge))
        for tangent in tangents:
            give_tangent(result, self.all_of(tangent.tensor), tangent.level)
        return Mapped(result, batched=True)

    def differs(self, tensor: Tensor | None) -> bool:
        assert tensor is not None
        return self.array(tensor._cell.array)[1] or self.is_lifted(tensor._edge)

    def all_of(self, tensor: Tensor | None) -> Tensor:
        """The tensor of all examples, also of one that they share."""
        assert tensor is not None
        result, batched = self.tensor(tensor)
        if batched:
            return result
        return tensor.expand(self.batch.size, *tensor.shape)

    def edge(self, edge: Edge | None) -> Edge | None:
        """Where the gradient of all examples goes."""
        if edge is None or self.is_lifted(edge):
            return edge
        node, output_nr = edge
        if node is None or _belongs_to_example(node):
            return None
        shape, dtype = node.outputs[output_nr]
        return SumNode(edge, (((self.batch.size, *shape), dtype),)), 0

    def node(self, node: Node) -> None:
        """Makes a node that of all examples."""
        size = self.batch.size
        own = node in self.batch.entries or isinstance(node, Crossing)
        if isinstance(node, OperatorNode):
            self.operator_node(node)
        elif not own:
            node.edges = tuple(self.edge(e) or NO_EDGE for e in node.edges)
            if hasattr(node, "lift"):
                node.lift(self)
        node.outputs = tuple(o and ((size, *o[0]), o[1]) for o in node.outputs)
        if node.extra is not None:
            map_hooks(node.extra, size)

    def operator_node(self, node: OperatorNode) -> None:
        edges = [NO_EDGE if _belongs_to_example(n) else (n, i) for n, i in node.edges]
        node.edges = tuple(edges)
        if node.saved is None:
            return
        saved, batched = [], []
        for position, value in enumerate(node.saved):
            whole, differs = self.array(value)
            if value is not None and not differs and self.is_lifted(_edge_of_saved(node, position)):
                whole, differs = self.spread(value), True
            saved.append(whole)
            batched.append(differs)
        node.saved = tuple(saved)
        node.guards = tuple(self.guard(g) for g in node.guards)
        if node.extra is not None and node.extra.tangents is not None:
            node.extra.tangents = [
                t and self.saved_tangents(t, spread=b)
                for t, b in zip(node.extra.tangents, batched, strict=True)
            ]
        apart = tuple(self.is_lifted(e) for e in edges)
        node.plan = mapped_plan(node.plan, tuple(batched), apart)

    def saved_tangents(self, tangents: tuple[Tangent, ...], *, spread: bool) -> Any:
        found = []
        for tangent in tangents:
            if tangent.tensor is not None:
                lifted = self.all_of(tangent.tensor) if spread else tangent.tensor
                found.append(Tangent(lifted, tangent.level))
        return tuple(found)

    def guard(self, owner: Any) -> Any:
        """The owner of a saved value; one of an example is replaced by what has its version."""
        if not isinstance(owner, Storage) or getattr(owner, "batch", None) is not self.batch:
            return owner
        if id(owner) not in self.cells:
            cell = self.cells[id(owner)] = cell_of(None, owner.version)  # type: ignore[arg-type]
            if hasattr(owner, "written_at"):
                cell.written_at = owner.written_at
        return self.cells[id(owner)]


def _belongs_to_example(node: Node | None) -> bool:
    """Whether a node accumulates into a leaf of one example: it ends with the mapped function."""
    return (
        isinstance(node, AccumulateGrad)
        and not isinstance(node, Entry)
        and isinstance(node.variable._cell.array, Tracer)
        and getattr(node.variable._cell, "batch", None) is current_batch()
    )


def _tangents_of_saved(node: OperatorNode) -> list[Tangent]:
    kept = node.extra.tangents if node.extra is not None else None
    return [t for tangents in kept or () for t in tangents or () if t.tensor is not None]


def _edge_of_saved(node: OperatorNode, position: int) -> Edge | None:
    """The place in the graph of the saved value at `position`."""
    source, spec = node.plan.sources[position], node.spec
    if source >= len(spec.inputs):
        return node, source - len(spec.inputs)
    name = spec.inputs[source]
    return node.edges[spec.differentiable.index(name)] if name in spec.differentiable else None


def map_hooks(extra: Extra, size: int) -> None:
    """Has each hook of a node run on one example, as it was written, for all examples at once."""
    extra.retained.clear()
    for hooks in filter(None, (extra.pre_hooks, extra.post_hooks, *extra.tensor_hooks.values())):
        for key, hook in list(hooks.items()):
            hooks[key] = functools.wraps(hook)(functools.partial(_run_hook, hook, size))


def _run_hook(hook: Callable[..., Any], size: int, *args: Any) -> Any:
    leaves, structure = jax.tree_util.tree_flatten(args)
    answer: list[Any] = []

    def of_example(*examples: Tensor) -> list[Tensor]:
        tensors, answered = jax.tree_util.tree_flatten(
            hook(*jax.tree_util.tree_unflatten(structure, examples))
        )
        answer.append(answered)
        return tensors

    found = run_mapped(of_example, leaves, size)
    return jax.tree_util.tree_unflatten(answer[0], spread_all(found, size))
