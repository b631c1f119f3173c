"""Effects: what a step returns and leaves behind, as numbers of what goes into it and out of it."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax

from dyngraph.steps.sources import Sources
from dyngraph.storage import Storage, cell_of
from dyngraph.tensor import LEAF, Tensor, new_tensor

Place = int
"""The number of an output."""


# --- what comes back --------------------------------------------------------------------------


class Value(NamedTuple):
    """A tensor that the step made."""

    place: Place
    requires_grad: bool
    is_inference: bool
    has_history: bool


class Array(NamedTuple):
    """A jax array that the step made."""

    place: Place


class Argument(NamedTuple):
    """An argument itself."""

    place: int


class Grad(NamedTuple):
    """The `.grad` of the leaf with this number."""

    leaf: int


class Outside(NamedTuple):
    """A tensor of outside, or another over the Storage with this number."""

    reference: weakref.ref[Tensor]
    cell: int


class Again(NamedTuple):
    """What the result with this number is."""

    place: int


class Constant(NamedTuple):
    """Something without tensors."""

    value: Any


Result = Value | Array | Argument | Grad | Outside | Again | Constant


class Written(NamedTuple):
    """A Storage that the step writes: its number, or itself where it was not known; its new value,
    how many writes that were, and where the last one was written."""

    cell: int | weakref.ref[Storage]
    place: Place
    writes: int
    written_at: tuple[str, int] | None


class Draws(NamedTuple):
    """How a generator goes on: so many draws further, or, with a seed, from there."""

    seed: int | None
    number: int


class Effects(NamedTuple):
    """What a step returns and what it leaves behind, as numbers of what goes in and out.

    `grads` are the `.grad`s that are others than before, None where there is none any more;
    `flags` the leaves that require grad otherwise than before;
    `kept` the Storages that the step has made and something outside keeps; `problem` says why
    later calls can't be served, if they can't.
    """

    tree: Any
    results: tuple[Result, ...]
    written: tuple[Written, ...]
    grads: tuple[tuple[int | weakref.ref[Tensor], Result | None], ...]
    flags: tuple[tuple[int, bool], ...]
    draws: tuple[Draws, ...]
    kept: tuple[tuple[weakref.ref[Storage], Place], ...]
    is_recorded: bool
    problem: str | None


class Call(NamedTuple):
    """One call of a step: what its sources found, and what came out: arrays, or tensors where the
    call was recorded.

    `grads` are the `.grad`s of the leaves before it.
    """

    given: Sequence[Tensor]
    cells: Sequence[Storage]
    leaves: Sequence[Tensor]
    grads: Sequence[Tensor | None]
    outputs: Sequence[Any]

    def finish(self, effects: Effects, sources: Sources) -> Any:
        """Writes the effects; what the step returns."""
        for written in effects.written:
            place = written.cell
            cell = self.cells[place] if isinstance(place, int) else place()
            if cell is not None:
                _write(cell, self._array(written.place), written)
        for reference, place in effects.kept:
            cell = reference()
            if cell is not None:
                cell.array = self._array(place)
        for source, draws in zip(sources.generators, effects.draws, strict=True):
            _draw(source(), draws)
        results: list[Any] = []
        for result in effects.results:
            results.append(self._made(result, results))
        for number, result in effects.grads:
            leaf = self.leaves[number] if isinstance(number, int) else number()
            if leaf is not None:
                grad = None if result is None else self._made(result, results)
                leaf.need_meta().grad = grad
        for number, requires_grad in effects.flags:
            self.leaves[number].requires_grad_(requires_grad)
        return jax.tree.unflatten(effects.tree, results)

    def _array(self, place: Place) -> Any:
        value = self.outputs[place]
        return value._cell.array if isinstance(value, Tensor) else value

    def _made(self, result: Result, results: Sequence[Any]) -> Any:
        match result:
            case Value(place, requires_grad, is_inference, has_history):
                if has_history:
                    return self.outputs[place]
                cell = cell_of(self._array(place), None if is_inference else 0)
                return new_tensor(cell, LEAF if requires_grad else None)
            case Array(place):
                return self._array(place)
            case Argument(place):
                return self.given[place]
            case Grad(leaf):
                return self.grads[leaf]
            case Outside(reference, cell):
                tensor = reference()
                return new_tensor(self.cells[cell]) if tensor is None else tensor
            case Again(place):
                return results[place]
            case Constant(value):
                return value


def _write(cell: Storage, array: Any, written: Written) -> None:
    """Gives a Storage its new value, as so many writes did."""
    if cell.views is None:
        cell.array = array
        if cell.version is not None:
            cell.version += written.writes
            if written.written_at is not None:
                cell.written_at = written.written_at
        return
    version = cell.version
    cell.write(array)
    if version is not None:
        cell.set_version(version + written.writes)


def _draw(generator: Any, draws: Draws) -> None:
    if draws.seed is None:
        generator.advance(draws.number)
    else:
        generator.go_on(draws.seed, draws.number)
