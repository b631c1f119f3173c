"""What the tests of deferred mode share: a count of what ran, and a leaf."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import dyngraph as dg
from dyngraph.sequence import Batch, Sequence
from dyngraph.storage import PendingStorage


def leaf(*values: float) -> dg.Tensor:
    """A leaf that requires grad."""
    return dg.tensor(list(values), requires_grad=True)


def grad_of(x: dg.Tensor) -> dg.Tensor:
    assert x.grad is not None
    return x.grad


def is_pending(tensor: dg.Tensor) -> bool:
    """Whether the tensor has no value yet."""
    return isinstance(tensor._cell, PendingStorage)


@contextlib.contextmanager
def noting_runs() -> Iterator[list[Batch]]:
    """Inside, what runs of any thread is noted in the list."""
    noted: list[Batch] = []
    execute = Sequence.execute

    def note_and_execute(batch: Batch) -> None:
        noted.append(batch)
        execute(batch)

    Sequence.execute = staticmethod(note_and_execute)
    try:
        yield noted
    finally:
        Sequence.execute = staticmethod(execute)
