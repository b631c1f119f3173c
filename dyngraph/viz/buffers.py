"""Buffers: `saved`, which tells what a graph keeps for its backward, and who else holds it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax

from dyngraph.graph.accumulate import AccumulateGrad
from dyngraph.graph.node import GradientEdge, Node
from dyngraph.tensor import Tensor
from dyngraph.tracing import Tracer
from dyngraph.viz.charts import BLUE, GREY, Bar, bars
from dyngraph.viz.contents import RECOMPUTED, contents
from dyngraph.viz.frame import framed
from dyngraph.viz.keepers import Keeper, kept_arrays
from dyngraph.viz.lettering import described, in_bytes
from dyngraph.viz.names import Given, names_of
from dyngraph.viz.outline import visits
from dyngraph.viz.picture import roots_of
from dyngraph.viz.table import Table

MOST_LISTED = 2
"""How many keepers and holders of a buffer a table names."""
MOST_TOLD = 20
"""How many keepers the text of a bar names."""
MOST_BARS = 30
"""How many buffers a chart shows, the largest."""


class Buffer(NamedTuple):
    """An array that a graph keeps: what it is, which nodes keep it as what, who else holds it.

    `keepers` are nodes, or checkpoints, which keep what they start from; `holders` are names of
    leaves and of the caller's variables.
    """

    value: str
    nbytes: int
    keepers: tuple[Keeper, ...]
    holders: tuple[str, ...]
    device: str


class SavedReport:
    """What a graph keeps: `buffers`, the largest first, each counted once.

    `recomputed` counts the values that checkpoints compute again instead. A notebook shows a chart
    and a table.
    """

    def __init__(self, buffers: list[Buffer], recomputed: int, nodes: int) -> None:
        self.buffers = buffers
        self.recomputed = recomputed
        self.nodes = nodes

    @property
    def total(self) -> int:
        """The bytes of all buffers."""
        return sum([buffer.nbytes for buffer in self.buffers])

    @property
    def freed_with_graph(self) -> int:
        """The bytes that nobody holds but the graph."""
        return sum([buffer.nbytes for buffer in self.buffers if not buffer.holders])

    def table(self) -> Table:
        """A row for each buffer."""
        rows = [
            (
                b.value,
                in_bytes(b.nbytes),
                _listed([*map(str, b.keepers)]),
                _listed(b.holders),
                b.device,
            )
            for b in self.buffers
        ]
        return Table(("buffer", "size", "kept by", "also held by", "device"), rows, self._note())

    def _note(self) -> str:
        note = (
            f"{in_bytes(self.total)} in {len(self.buffers)} buffers, kept by {self.nodes} nodes; "
            f"{in_bytes(self.freed_with_graph)} of it by nobody else"
        )
        return f"{note}; {self.recomputed} values are recomputed" if self.recomputed else note

    def by_operator(self) -> dict[str, int]:
        """The bytes by the kind of the first that keeps them, most first."""
        counts: Counter[str] = Counter()
        for buffer in self.buffers:
            counts[buffer.keepers[0].kind] += buffer.nbytes
        return dict(counts.most_common())

    def compared_with(self, other: SavedReport) -> Table:
        """The bytes by kind of node in this report and in another, as before and after.

        >>> from dyngraph.utils.checkpoint import checkpoint
        >>> x = dg.ones(2, requires_grad=True)
        >>> f = lambda x: (x * x).sin().sum()
        >>> before = dg.viz.saved(f(x))
        >>> before.compared_with(dg.viz.saved(checkpoint(f, x, use_reentrant=False)))
        kept by       before  after  difference
        SinBackward0  8 B     0 B    -8 B
        MulBackward0  8 B     0 B    -8 B
        checkpoint    0 B     8 B    8 B
        in all        16 B    8 B    -8 B
        """
        mine, others = self.by_operator(), other.by_operator()
        rows = [
            (kind, mine.get(kind, 0), others.get(kind, 0))
            for kind in dict.fromkeys([*mine, *others])
        ]
        rows.append(("in all", self.total, other.total))
        shown = [(kind, in_bytes(a), in_bytes(b), in_bytes(b - a)) for kind, a, b in rows]
        return Table(("kept by", "before", "after", "difference"), shown)

    def svg(self) -> str:
        """A bar for each buffer, the largest first."""
        shown = self.buffers[:MOST_BARS]
        rows = [
            Bar(
                f"{b.keepers[0]}" + (f" and {len(b.keepers) - 1} more" if b.keepers[1:] else ""),
                0.0,
                b.nbytes,
                " · ".join([in_bytes(b.nbytes), ", ".join(b.holders)][: 1 + bool(b.holders)]),
                GREY if b.holders else BLUE,
                "\n".join(
                    [b.value, *_first(b.keepers), *[f"held by {name}" for name in b.holders]]
                ),
            )
            for b in shown
        ]
        left = len(self.buffers) - len(shown)
        title = f"{in_bytes(self.total)} saved for backward"
        if left:
            title += f": the {len(shown)} largest of {len(self.buffers)} buffers"
        return bars(rows, title, [("kept by the graph alone", BLUE), ("also held by name", GREY)])

    def __repr__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        return framed(self.svg()) + self.table().html()


def saved(of: Tensor | Node | GradientEdge | list[Any], names: Given = None) -> SavedReport:
    """What the graph behind a tensor, or several, keeps for its backward.

    Tensors are called as the caller's variables are, or as `names` says: a dict, pairs, or a
    module. What saved-tensor hooks keep is counted where it is an array, wherever it lies; no hook
    is called. A checkpoint keeps its function's arguments.

    Raises ValueError for a tensor without a graph.

    >>> x = dg.tensor([2.0, 3.0], requires_grad=True)
    >>> loss = x.exp().sum() + (x * x).sum()
    >>> dg.viz.saved(loss)
    buffer      size  kept by                                   also held by  device
    float32[2]  8 B   #2 MulBackward0.self, #2 MulBackward0.other  x             cpu
    float32[2]  8 B   #4 ExpBackward0.result                                  cpu
    16 B in 2 buffers, kept by 2 nodes; 8 B of it by nobody else
    """
    known = names_of(names)
    order = visits([edge for edge, _ in roots_of(of, known)])
    for node in order:
        leaf = node.variable if isinstance(node, AccumulateGrad) else None
        if isinstance(leaf, Tensor) and not known.of_array(leaf._cell.array):
            known.add("a leaf", leaf)
    keepers: dict[int, tuple[Any, list[Keeper]]] = {}
    for keeper, array in kept_arrays(order):
        keepers.setdefault(id(array), (array, []))[1].append(keeper)
    buffers = [
        Buffer(
            described(array.shape, array.dtype),
            array.nbytes,
            tuple(mine),
            tuple(known.of_array(array)),
            device_of(array),
        )
        for array, mine in keepers.values()
    ]
    buffers.sort(key=lambda buffer: -buffer.nbytes)
    recomputed = sum([kept.state == RECOMPUTED for node in order for kept in contents(node)])
    nodes = {place for _, mine in keepers.values() for keeper in mine for place in keeper.places}
    return SavedReport(buffers, recomputed, len(nodes))


def _first(keepers: Sequence[Keeper]) -> list[str]:
    """The first keepers of a buffer, for what shows when the mouse is over its bar."""
    left = len(keepers) - MOST_TOLD
    more = [f"and {left} more"] if left > 0 else []
    return [*map(str, keepers[:MOST_TOLD]), *more]


def _listed(texts: Sequence[str]) -> str:
    """The first texts of several."""
    more = f" and {len(texts) - MOST_LISTED} more" if len(texts) > MOST_LISTED else ""
    return ", ".join(texts[:MOST_LISTED]) + more


def device_of(array: Any) -> str:
    """Where an array lies; numpy's is in the host's memory, a tracer is nowhere yet."""
    if isinstance(array, Tracer):
        return "nowhere yet"
    if not isinstance(array, jax.Array):
        return "host"
    found = sorted(array.devices(), key=lambda device: device.id)
    first = found[0]
    name = first.platform if first.platform == "cpu" and first.id == 0 else f"{first}"
    return name if len(found) == 1 else f"{name} and {len(found) - 1} more"
