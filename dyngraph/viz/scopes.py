"""Scopes: which part of a program made a node, told by the number of the node.

Nodes are numbered in the order of their making, so that a part of a program that ran is known by
the numbers at its beginning and at its end: noting it costs nothing for the nodes in it.
"""

from __future__ import annotations

import contextlib
from bisect import bisect_right
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

from dyngraph.graph.node import creation_numbers

MOST_SCOPES = 20_000
"""How many parts are remembered; of more, the older half goes."""


class Scope:
    """A part of a program that ran: the numbers of the nodes that it made, and the part that it is
    in."""

    __slots__ = ("end", "name", "outer", "start")

    def __init__(self, name: str, outer: Scope | None) -> None:
        self.name = name
        self.outer = outer
        self.start = next(creation_numbers)
        self.end: int | None = None

    def has(self, number: int) -> bool:
        """Whether the node of that number was made in it."""
        return self.start < number and (self.end is None or number < self.end)

    def path(self) -> tuple[Scope, ...]:
        """It and those that it is in, the outermost first."""
        found: list[Scope] = []
        scope: Scope | None = self
        while scope is not None:
            found.append(scope)
            scope = scope.outer
        return tuple(found[::-1])


_known: list[Scope] = []
_open: ContextVar[Scope | None] = ContextVar("dyngraph_scope", default=None)


def _begin(name: str) -> None:
    inner = Scope(name, _open.get())
    if len(_known) >= MOST_SCOPES:
        del _known[: MOST_SCOPES // 2]
    _known.append(inner)
    _open.set(inner)


def _end() -> None:
    inner = _open.get()
    if inner is not None:
        inner.end = next(creation_numbers)
        _open.set(inner.outer)


@contextlib.contextmanager
def scope(name: str) -> Iterator[None]:
    """Names what is recorded inside: large pictures fold it into one box of that name.

    >>> x = dg.ones(2, requires_grad=True)
    >>> with dg.viz.scope("encoder"):
    ...     y = x.sin().cos()
    >>> dg.viz.graph(y.sum(), {"x": x}, limit=4, saved=False)
    [0] output        -> [1]  (float32[])  (GraphRoot)
    [1] SumBackward0  -> [2] float32[2]
    [2] encoder       (3 nodes)  (CosBackward0)  (SinBackward0)  (AccumulateGrad)
    4 nodes, 16 B saved
    """
    _begin(name)
    try:
        yield
    finally:
        _end()


@contextlib.contextmanager
def modules(model: Any) -> Iterator[None]:
    """Names what the modules of a model record inside, each by its name in the model and its class.

    Raises TypeError for what has no `named_modules()`.

    >>> model = dg.nn.Sequential(dg.nn.Linear(2, 2), dg.nn.Linear(2, 2))
    >>> with dg.viz.modules(model):
    ...     y = model(dg.ones(2)).sum()
    >>> [box.title for box in dg.viz.graph(y, limit=5).shown.boxes]
    ['y', 'SumBackward0', '1 (Linear)', '0 (Linear)']
    """
    if not hasattr(model, "named_modules"):
        raise TypeError(
            f"modules(): expected a module with named_modules(), got {type(model).__name__}. Use "
            "dg.viz.scope(name) round a part of a program that is no module."
        )
    before, handles = _open.get(), []
    for name, module in model.named_modules():
        kind = type(module).__name__
        shown = f"{name} ({kind})" if name else kind
        enter = module.register_forward_pre_hook(lambda *_, shown=shown: _begin(shown))
        leave = module.register_forward_hook(lambda *_: _end(), always_call=True)
        handles += [enter, leave]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
        while _open.get() is not before:
            _end()


def path_of(number: int) -> tuple[Scope, ...]:
    """The scopes that the node of a number was made in, the outermost first."""
    place = bisect_right(_known, number, key=lambda known: known.start)
    found = _known[place - 1] if place else None
    while found is not None and not found.has(number):
        found = found.outer
    return () if found is None else found.path()
