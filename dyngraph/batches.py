"""Batch: one level of `func.vmap`, the stretch of a program in which a function is mapped.

# Note [Mapping is tracing]
`jax.vmap` runs the function once, on tracers that look like the arrays of one example. Tensors hold
these like any array, so operators, views, writes, backward and forward mode work on one example and
need not know. What they do know of a batch is here: which values differ from example to example,
what may be written where, and how random numbers are drawn.

JAX tells what a tracer stands for only to the batching rule of a function: see `Batch.whole`.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap

from dyngraph import modes
from dyngraph.tracing import Tracer

ERROR, SAME, DIFFERENT = "error", "same", "different"


class Batch:
    """One level of `func.vmap`: `size` examples, inside the level `outer`.

    `index` is the number of the example, a tracer. `nodes` are those recorded inside whose inputs
    or outputs may differ from example to example; `entries` those at which the function begins,
    `exits` those that a rule for all examples at once goes on behind.
    """

    __slots__ = (
        "__weakref__",
        "entries",
        "exits",
        "index",
        "nodes",
        "outer",
        "randomness",
        "size",
    )

    def __init__(self, size: int, randomness: str) -> None:
        self.size = size
        self.randomness = randomness
        self.outer: Batch | None = _current.get()
        self.index: Any = None
        self.nodes: weakref.WeakSet[Any] = weakref.WeakSet()
        self.entries: list[Any] = []
        self.exits: list[Any] = []

    def whole(self, arrays: Sequence[Any]) -> list[tuple[Any, bool]]:
        """For each array: that of all examples, batch first, and True; itself and False for one
        that is the same for all."""
        found: list[tuple[Any, bool]] = []

        @custom_vmap
        def ask(index: Any, *arrays: Any) -> Any:
            return index

        @ask.def_vmap
        def rule(size: int, batched: Any, index: Any, *arrays: Any) -> tuple[Any, bool]:
            if not batched[0]:  # a level inside this one, of which the caller asks later
                ask(index, *arrays)
            else:
                found.extend(zip(arrays, batched[1:], strict=True))
            return index, True

        ask(self.index, *arrays)
        return found

    def example(self, array: Any) -> Any:
        """The tracer of one example, from the array of all, batch first: undoes `whole`."""

        @custom_vmap
        def give(index: Any) -> Any:
            return jnp.zeros(array.shape[1:], array.dtype)

        @give.def_vmap
        def rule(size: int, batched: Any, index: Any) -> tuple[Any, bool]:
            return array, True

        return give(self.index)

    def differs(self, array: Any) -> bool:
        """Whether an array differs from example to example."""
        if not isinstance(array, Tracer):
            return False
        ((_, batched),) = self.whole([array])
        return batched


_current: ContextVar[Batch | None] = ContextVar("dyngraph_batch", default=None)
current_batch = _current.get


def open_batch(batch: Batch | None) -> None:
    """Makes `batch` the innermost level; with None, nothing is mapped."""
    _current.set(batch)
    modes.switch(modes.MAPPED, on=batch is not None)


def note_made(cell: Any) -> None:
    """Remembers that a Storage was made inside, and may be written to."""
    cell.batch = current_batch()


def note(inputs: Sequence[Any], results: Sequence[Any], kind: type) -> None:
    """Remembers what one operator made inside: those results that are tensors, and their node."""
    for result in results:
        if isinstance(result, kind):
            note_made(result._cell)
    note_nodes(inputs, results, kind)


def note_nodes(inputs: Sequence[Any], results: Sequence[Any], kind: type) -> None:
    """Remembers the node of an operator whose inputs or results may differ between examples."""
    batch = current_batch()
    assert batch is not None
    if any(isinstance(t, kind) and isinstance(t._cell.array, Tracer) for t in (*inputs, *results)):
        made = [r for r in results if isinstance(r, kind)]
        batch.nodes.update(r.grad_fn for r in made if r.grad_fn is not None)


def note_copy(node: Any, copy: Any) -> None:
    """Remembers that a node is like another one that was made inside."""
    batch = current_batch()
    if batch is not None and node in batch.nodes:
        batch.nodes.add(copy)


def check_write(cell: Any, array: Any) -> None:
    """Raises where a value that differs from example to example is written to a tensor that is the
    same for all."""
    batch = current_batch()
    if batch is None or not isinstance(array, Tracer):
        return
    made_in = getattr(cell, "batch", None)
    while batch is not None and batch is not made_in:
        if batch.differs(array) and not batch.differs(cell.array):
            raise RuntimeError(
                "vmap: inplace arithmetic(self, *extra_args) is not possible because self is not "
                "being vmapped over, while the value written to it is: it has one value for each "
                "example, and a tensor from outside of the mapped function has room for one. Use "
                "the out-of-place operator, write to a tensor that the function made, or pass "
                "the tensor as an input that is mapped."
            )
        batch = batch.outer


def refuse_value(array: Any, what: str) -> None:
    """Raises where a program asks for the value of a tensor that has one for each example."""
    if current_batch() is None or not isinstance(array, Tracer):
        return
    if what == "bool":
        raise RuntimeError(
            "vmap: It looks like you're attempting to use a Tensor in some data-dependent control "
            "flow. We don't support that yet: the condition may differ from example to example. "
            "Compute both branches and choose by dg.where(), or loop over the examples."
        )
    raise RuntimeError(
        f"vmap: It looks like you're calling {what} on a Tensor. We don't support vmap over "
        f"calling {what} on a Tensor, which has another value for each example: please try to "
        "rewrite what you're doing with other operations."
    )


@jax.jit
def _fold(key: Any, index: Any) -> Any:
    folded = jax.random.fold_in(jax.random.wrap_key_data(key, impl="threefry2x32"), index)
    return jax.random.key_data(folded)


def spread_key(key: Any) -> Any:
    """The key's two words for a draw inside mapped functions, as their `randomness` says."""
    batch = current_batch()
    while batch is not None:
        if batch.randomness == ERROR:
            raise RuntimeError(
                "vmap: called random operation while in randomness error mode. Please either use "
                "the 'same' or 'different' randomness flags on vmap or perform the randomness "
                "operation out of vmap."
            )
        if batch.randomness == DIFFERENT:
            key = _fold(key, batch.index)
        batch = batch.outer
    return key
