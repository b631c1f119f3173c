"""StepTrace: a step, run once on tracers, as a function of everything that it reads and writes.

# Note [A step is traced in place]
The tensors that a step reaches hold tracers while it is traced, and what they held before is put
back afterwards. So aliases, leaves, `.grad`s and views are themselves, and nothing in the step can
tell. What it reads that is not known yet stays an array, which would be a constant: it is noted,
and the step is traced once more with it. What the step has made and something outside keeps goes
out of the program too, because it would hold tracers for good.
"""

from __future__ import annotations

import contextlib
import gc
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from dyngraph.graph import engine
from dyngraph.graph.engine import GraphTask
from dyngraph.interop.to_jax import Differentiated, apply_function
from dyngraph.placement import constraint, spread_of
from dyngraph.pure import Pure
from dyngraph.steps.effects import (
    Again,
    Argument,
    Array,
    Constant,
    Draws,
    Effects,
    Grad,
    Outside,
    Place,
    Result,
    Value,
    Written,
)
from dyngraph.steps.reached import Reached, root_of, state_of
from dyngraph.steps.sources import Found, Sources, grad_of
from dyngraph.steps.watch import Watch
from dyngraph.storage import Storage, ViewStorage
from dyngraph.tensor import LEAF, Tensor
from dyngraph.tracing import ClosedJaxpr, Tracer


class Unfit(Exception):
    """A step can't be served by a program, and must run as written, this time too."""


class Traced(NamedTuple):
    """A step as a program of arrays, and what is to be made of its results."""

    jaxpr: ClosedJaxpr
    effects: Effects


# --- the trace --------------------------------------------------------------------------------


class _Generator:
    """How a generator is drawn from while the step is traced."""

    def __init__(self, generator: Any, key: Any, count: Any) -> None:
        self.generator = generator
        self.key, self.count = key, count
        self.start = generator._seed, generator._count
        self.is_seeded = False

    def effect(self) -> Draws:
        seed, count = self.generator._seed, self.generator._count
        return Draws(seed, count) if self.is_seeded else Draws(None, count - self.start[1])


class StepTrace(Watch):
    """Runs `function(*args, **kwargs)` with tracers in the place of what `sources` have found.

    `given` are the tensors among the arguments; `make_arguments(arrays)` makes the arguments, with
    these in the place of the arrays among them. `reached` is what is known of the step. With
    `is_recorded`, JAX's derivatives of what is traced are dyngraph's.
    """

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        sources: Sources,
        found: Found,
        given: Sequence[Tensor],
        reached: Reached,
        make_arguments: Callable[[Sequence[Any]], tuple[Any, Any]],
        *,
        is_recorded: bool,
    ) -> None:
        super().__init__(name)
        self.is_recorded = self.is_differentiated = is_recorded
        if is_recorded:
            self.apply_function = apply_function
            _check_leaves(found.leaves)
        self.function = function
        self.sources = sources
        self.given = given
        self.reached = reached
        self.make_arguments = make_arguments
        self.inputs, self.leaves = found
        self.spreads = {id(cell): spread_of(cell.array) for cell in self.inputs}
        self.grads_before = [grad_of(leaf) for leaf in self.leaves]
        self.places = {id(cell): place for place, cell in enumerate(self.inputs)}
        self.generators: dict[int, _Generator] = {}
        self.generators_before: list[tuple[Any, int, int]] = []
        self.numbers: dict[tuple[int, Any], Any] = {}
        self.flags: dict[int, tuple[weakref.ref[Tensor], bool]] = {}
        self.histories: list[tuple[weakref.ref[Tensor], Any]] = []
        self.problem: str | None = None
        self.effects: Effects | None = None

    def run(self, arrays: Sequence[Any]) -> Traced:
        """Traces the step; `arrays` are those among the arguments."""
        cells = [cell.array for cell in self.inputs]
        versions = [cell.version for cell in self.inputs]
        modules = [(module, module.training) for module in self.reached.modules]
        runner = engine.get_runner()
        engine.set_runner(GraphTask.run)
        try:
            with Differentiated() if self.is_recorded else contextlib.nullcontext(), self:
                jaxpr = jax.make_jaxpr(self._run)([*cells, *self.sources.numbers(), *arrays])
        except jax.errors.JAXTypeError as error:
            error.add_note(
                f"It is dg.compile({self.name}) that traces; only the first call ran as written."
            )
            raise
        finally:
            engine.set_runner(runner)
            self._put_back(cells, versions)
        assert self.effects is not None
        self._note_constants(jaxpr.consts)
        if any([module.training != training for module, training in modules]):
            self._refuse("it leaves a module in another mode, by train() or eval()")
        return Traced(jaxpr, self.effects._replace(problem=self.problem))

    def _refuse(self, reason: str) -> None:
        self.problem = self.problem or reason

    def _run(self, arrays: Sequence[Any]) -> list[Any]:
        values = iter(arrays)
        for cell in self.inputs:
            _fill(cell, next(values))
        for reference in self.sources.generators:
            generator = reference()
            self.generators[id(generator)] = _Generator(generator, next(values), next(values))
        for owner, key in self.sources.lifted:
            self.numbers[id(owner()), key] = next(values)
        for tensor in self.given:
            if not tensor.is_leaf:  # what is behind it is not the step's
                self.histories.append((weakref.ref(tensor), tensor._edge))
                tensor._edge = LEAF
        args, kwargs = self.make_arguments(list(values))
        outputs: list[Any] = []
        returned = [self.function(*args, **kwargs)]
        del args, kwargs
        self._finish(returned, outputs)
        return outputs

    def _put_back(self, arrays: Sequence[Any], versions: Sequence[int | None]) -> None:
        """Leaves everything as it was before the trace."""
        for reference, edge in reversed(self.histories):
            tensor = reference()
            if tensor is not None:
                tensor._edge = edge
        for reference, requires_grad in self.flags.values():
            leaf = reference()
            if leaf is not None:
                leaf.requires_grad_(requires_grad)
        for cell, array, version in zip(self.inputs, arrays, versions, strict=True):
            _fill(cell, array)
            cell.version = version
        for own in self.generators.values():
            own.generator._set(*own.start)
        for generator, seed, count in self.generators_before:
            generator._set(seed, count)

    def _note_constants(self, arrays: Sequence[Any]) -> None:
        """Notes the Storages that hold what has become a constant: no operator has read them, but
        something that takes arrays out of tensors."""
        constants = {id(array): array for array in arrays if isinstance(array, jax.Array)}
        for holder in gc.get_referrers(*constants.values()) if constants else ():
            if (
                type(holder) in (Storage, ViewStorage)
                and not holder.is_empty()
                and id(holder.array) in constants
            ):
                self.found.cells.add(root_of(holder))

    # --- what is noted --------------------------------------------------------------------------

    def write(self, cell: Storage, array: Any) -> Any:
        Pure.note_write(self, cell)
        if any([t._view is not None and t._view.root is cell for t in self.given]):
            self._refuse("it writes to memory that an argument is a view of. Pass a clone()")
        self.note_cell(cell)
        return Pure.write(self, cell, array) if self.is_recorded else array

    def renew(self, cell: Storage, array: Any) -> None:
        Pure.note_write(self, cell)
        super().renew(cell, array)

    def note_grad(self, tensor: Any) -> None:
        super().note_grad(tensor)
        Pure.note_grad(self, tensor)

    def note_flag(self, tensor: Any) -> None:
        super().note_flag(tensor)
        self.flags.setdefault(id(tensor), (weakref.ref(tensor), tensor.requires_grad))

    def note_memory(self, tensor: Any) -> None:
        super().note_memory(tensor)
        Pure.note_memory(self, tensor)

    def note_history(self, tensor: Any) -> None:
        if self._is_outside(tensor._cell):
            self.histories.append((weakref.ref(tensor), tensor._edge))

    def _is_outside(self, cell: Storage) -> bool:
        return id(cell) in self.places or not isinstance(cell.array, Tracer)

    def take(self, generator: Any, *, is_default: bool) -> tuple[Any, Any] | None:
        own = self.generators.get(id(generator))
        if own is None:
            self._note_generator(generator)
            return None
        if own.is_seeded:
            return None
        offset = generator._count - own.start[1]
        generator._count += 1
        return own.key, own.count + np.uint32(offset)

    def note_seed(self, generator: Any, seed: int, count: int, *, restored: bool) -> None:
        own = self.generators.get(id(generator))
        if own is None:
            self._note_generator(generator)
        else:
            is_own = seed == own.start[0] and own.start[1] <= count <= generator._count
            own.is_seeded = not (restored and is_own)

    def _note_generator(self, generator: Any) -> None:
        if generator not in self.found.generators:
            self.found.generators.add(generator)
            self.generators_before.append((generator, generator._seed, generator._count))

    def lift(self, owner: Any, key: Any, array: Any) -> Any:
        number = self.numbers.get((id(owner), key))
        return super().lift(owner, key, array) if number is None else number

    # --- the end --------------------------------------------------------------------------------

    def _finish(self, returned: list[Any], outputs: list[Any]) -> None:
        """Puts everything that goes out into `outputs`, and says where it belongs."""
        for reference, edge in self.histories:
            tensor = reference()
            if tensor is not None and tensor._edge not in (edge, LEAF):
                raise Unfit(
                    "it gives a tensor of outside a place in the graph. Write to it under "
                    "no_grad(), or write what is detach()ed"
                )
        for memory in self.memories.values():
            if memory.is_alive() and self._is_outside(memory.root):
                raise Unfit(
                    "it gives a tensor of outside other memory, as by assigning to .data. Write to "
                    "it in place under no_grad(), as by copy_()"
                )
        leaves, tree = jax.tree.flatten(returned.pop())
        is_recorded = any([isinstance(leaf, Tensor) and _has_history(leaf) for leaf in leaves])
        results: list[Result] = []
        seen: dict[int, int] = {}
        for place, leaf in enumerate(leaves):
            if isinstance(leaf, Tensor) and id(leaf) in seen:
                results.append(Again(seen[id(leaf)]))
                continue
            seen[id(leaf)] = place
            results.append(self._result(leaf, outputs))
        written = [
            Written(
                place,
                _add(outputs, self._beside(cell, cell.array)),
                entry.writes,
                _written_at(cell),
            )
            for entry in self.cells.values()
            if (cell := entry.cell()) is not None and (place := self._place(entry)) is not None
        ]
        grads = self._new_grads(outputs)
        flags = [
            (number, leaf.requires_grad)
            for number, leaf in enumerate(self.leaves)
            if id(leaf) in self.flags and leaf.requires_grad != self.flags[id(leaf)][1]
        ]
        del leaves, seen
        leaf = cell = None  # nothing here may keep what the step has made
        kept = [(weakref.ref(cell), _add(outputs, cell.array)) for cell in self._survivors()]
        if kept and is_recorded:
            raise RuntimeError(
                f"dg.compile({self.name}): the step returns a tensor with a history, and keeps "
                "others that it has made. Return them all, or call backward() in the step."
            )
        self.effects = Effects(
            tree,
            tuple(results),
            tuple(written),
            tuple(grads),
            tuple(flags),
            tuple([own.effect() for own in self.generators.values()]),
            tuple(kept),
            is_recorded,
            None,
        )

    def _place(self, entry: Any) -> int | weakref.ref[Storage] | None:
        """The Storage of outside that was written; None for one of the step's own."""
        place = self.places.get(id(entry.cell()))
        return entry.cell if place is None and not isinstance(entry.array, Tracer) else place

    def _new_grads(self, outputs: list[Any]) -> list[tuple[Any, Result | None]]:
        found: list[tuple[Any, Result | None]] = []
        known = {id(leaf): number for number, leaf in enumerate(self.leaves)}
        for entry in self.grads.values():
            leaf = entry.tensor()
            if leaf is None or grad_of(leaf) is entry.grad:
                continue
            number = known.get(id(leaf))
            if any([t is leaf for t in self.given]) and number is None:
                raise RuntimeError(
                    f"dg.compile({self.name}): backward arrived at an argument that has a history, "
                    f"of shape {list(leaf.shape)}, whose backward is not in the step. Pass its "
                    "detach(), with requires_grad_() if its gradient matters."
                )
            is_own = id(leaf._cell) not in self.places and isinstance(leaf._cell.array, Tracer)
            if number is None and is_own:  # a leaf of the step's own
                continue
            now = grad_of(leaf)
            result = None if now is None else self._result(now, outputs)
            if isinstance(result, Value):
                outputs[result.place] = self._beside(leaf._cell, outputs[result.place])
            found.append((entry.tensor if number is None else number, result))
        return found

    def _beside(self, cell: Storage, array: Any) -> Any:
        """An array that is to be spread over devices as the Storage was before the step."""
        place = self.spreads.get(id(cell))
        return array if place is None else constraint(place)(array)

    def _result(self, leaf: Any, outputs: list[Any]) -> Result:
        if isinstance(leaf, Tracer):
            return Array(_add(outputs, leaf))
        if not isinstance(leaf, Tensor):
            return Constant(leaf)
        for place, tensor in enumerate(self.given):
            if tensor is leaf:
                return Argument(place)
        for number, grad in enumerate(self.grads_before):
            if grad is leaf and grad_of(self.leaves[number]) is leaf:
                return Grad(number)
        place = self.places.get(id(leaf._cell))
        if place is not None and not self.sources.is_grad(place):
            return Outside(weakref.ref(leaf), place)
        self.note_cell(leaf._cell)
        return Value(
            _add(outputs, leaf._cell.array),
            leaf._edge is LEAF,
            leaf._cell.version is None,
            has_history=self.is_recorded and _has_history(leaf),
        )

    def _survivors(self) -> list[Storage]:
        """The Storages with tracers that something outside keeps."""
        found = self._look_for_survivors()
        if found:
            del found
            gc.collect()  # what only a cycle keeps is not kept
            found = self._look_for_survivors()
        return found

    def _look_for_survivors(self) -> list[Storage]:
        grads = {id(g._cell) for leaf in self.leaves if (g := grad_of(leaf)) is not None}
        optimizers = [*self.reached.optimizers, *self.found.optimizers]
        states = [tensor._cell for optimizer in optimizers for tensor in state_of(optimizer)]
        alive = [cell for reference in self.made if (cell := reference()) is not None]
        survivors = {
            id(cell): cell
            for cell in [*states, *alive]
            if id(cell) not in self.places
            and id(cell) not in grads
            and root_of(cell) is cell
            and isinstance(cell.array, Tracer)
        }
        return list(survivors.values())


def _add(outputs: list[Any], array: Any) -> Place:
    outputs.append(array)
    return len(outputs) - 1


def _written_at(cell: Storage) -> tuple[str, int] | None:
    return getattr(cell, "written_at", None)


def _fill(cell: Storage, array: Any) -> None:
    """Gives a Storage an array, without counting a write; its views fill themselves from it."""
    for looker in cell.lookers():
        with contextlib.suppress(AttributeError):
            del looker._cell.array
    cell.array = array


def _check_leaves(leaves: Sequence[Tensor]) -> None:
    """Raises Unfit where a Storage does not tell which leaf its gradient is for."""
    needing = [leaf._cell for leaf in leaves if leaf._edge is LEAF]
    if len({id(root_of(cell)) for cell in needing}) < len(needing) or any(
        [root_of(cell) is not cell for cell in needing]
    ):
        raise Unfit(
            "its results have a history, and leaves that require grad share memory. Call "
            "backward() in the step"
        )


def _has_history(tensor: Tensor) -> bool:
    """Whether a backward from a tensor would find all that it needs."""
    if tensor.is_leaf:
        return False
    pending, seen = [tensor.grad_fn], set()
    while pending:
        node = pending.pop()
        if node is None or id(node) in seen:
            continue
        seen.add(id(node))
        if getattr(node, "saved", ()) is None:
            return False
        pending += [other for other, _ in node.next_functions]
    return True
