"""Whether what a node saved may have been written to since: `allow_mutation_on_saved_tensors`.

What is saved is a snapshot, so allowing it costs nothing: it only leaves out a check.
"""

from __future__ import annotations

from contextvars import ContextVar
from types import TracebackType
from typing import Any, Self

from dyngraph.graph.node import creation_numbers

_first = ContextVar[int | None]("dyngraph_mutation", default=None)
"""The number of the first node that was made in the block which is open here."""


class allow_mutation_on_saved_tensors:  # noqa: N801 - PyTorch's name
    """Inside, tensors that were saved for backward may be written to: it uses their old values.

    Counts for what is recorded and run backward inside. Raises RuntimeError inside another block.

    >>> x = dg.ones(2, requires_grad=True)
    >>> with dg.autograd.graph.allow_mutation_on_saved_tensors():
    ...     y = x * 3
    ...     loss = (y * y).sum()
    ...     _ = y.zero_()
    ...     loss.backward()
    >>> x.grad
    tensor([18., 18.])
    """

    def __enter__(self) -> Self:
        if _first.get() is not None:
            raise RuntimeError(
                "allow_mutation_on_saved_tensors contexts cannot be nested. Leave the one that is "
                "open first: it allows all that another would."
            )
        _first.set(next(creation_numbers))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _first.set(None)


def is_allowed(node: Any) -> bool:
    """Whether `node` was made in the block that is open here."""
    first = _first.get()
    return first is not None and node.sequence_nr >= first
