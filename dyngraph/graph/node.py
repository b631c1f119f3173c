"""Node: one step of the backward pass, with edges to the steps that its gradients go to next.

Invariant: an edge leads to a node that was made earlier, so the graph has no cycle; and a node
holds no tensor that it made, so the graph and its tensors form none either.
"""

from __future__ import annotations

import itertools
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from dyngraph.graph.hooks import HookList, RemovableHandle

creation_numbers = itertools.count()
"""Numbers nodes in the order of their making, over all threads."""

# Note [Edges are plain tuples]
# An edge is (node, which output of the forward operator), or `NO_EDGE` for an input that needs no
# gradient. Every consumer of a tensor shares the one tuple that the tensor carries, and
# `next_functions` shows them as they are: recording allocates nothing for an edge.
Edge = tuple["Node | None", int]
NO_EDGE: Edge = (None, 0)


class InputMetadata(NamedTuple):
    """What a gradient that arrives at a node must look like: as the forward operator's output."""

    shape: tuple[int, ...]
    dtype: Any
    device: Any = None
    is_nested_tensor: bool = False
    is_cpp_nested_tensor: bool = False


class PythonCall(NamedTuple):
    """Python of the user's that backward runs: `function`, which is `what` of `node`.

    `run(grads, values, ())` calls it and gives back gradients. To trace it, `run` is given what
    stands in for the arrays `inputs`, which it reads too; beside them it depends on `key` alone,
    None where that can't be compared.
    """

    function: Any
    what: str
    node: Any
    run: Callable[[list[Any], Any, Sequence[Any]], list[Any]]
    key: Any = ()
    inputs: Sequence[Any] = ()


class Values(Protocol):
    """How the Engine handles gradients, whose kind it does not know: as arrays or as tensors."""

    def run(self, node: Any, targets: Any, absent: Any, grads: Sequence[Any]) -> Sequence[Any]:
        """Runs the backward kernel of an operator's node: what `node.apply` returns."""
        ...

    def settle(self, what: str, node: Any) -> None:
        """Called before Python of the user's runs, `what` of `node`: what was put off until now
        must be done."""
        ...

    def call(self, call: PythonCall, grads: list[Any]) -> list[Any]:
        """What Python of the user's makes of gradients."""
        ...

    def blame(self, node: Any, error: Exception) -> None:
        """Notes that an error was raised at `node`, unless it is one of an earlier node's."""

    def release(self, node: Any, /) -> None:
        """Frees what a node that has run saved."""
        ...

    def total(self, parts: Sequence[Any]) -> Any:
        """The sum of gradients that met at one input, in the order of `parts`."""
        ...

    def is_small(self, value: Any) -> bool:
        """Whether to let several such gradients wait, to be added in one go."""
        ...

    def has(self, kind: str, value: Any) -> bool:
        """Whether an element is NaN, or infinite: `kind` is "nan" or "inf"."""
        ...

    def is_zero_where(self, value: Any, kind: str, other: Any) -> bool:
        """Whether `value` is 0 in all elements where `other`, of its shape, has that kind."""
        ...

    def is_tensor(self, value: Any) -> bool:
        """Whether `value` can be a gradient that a user gives."""
        ...

    def wrap(self, value: Any) -> Any:
        """The tensor that a hook sees."""
        ...

    def unwrap(self, tensor: Any, like: Any, where: str) -> Any:
        """The value of what a hook returned in place of `like`; raises where it does not fit."""
        ...

    def accumulate(self, variable: Any, value: Any) -> None:
        """Adds a gradient into a leaf's `.grad`."""
        ...

    def retain(self, tensor: Any, value: Any) -> None:
        """Sets `.grad` of an interior tensor."""
        ...


kept_graphs: weakref.WeakKeyDictionary[Node, Any] = weakref.WeakKeyDictionary()
"""What was found out about graphs that a backward has kept, by their last node. It holds what is
saved, so it is emptied as soon as a graph is freed."""


def blame(node: Any, error: Exception) -> None:
    """Adds a note to an error that was raised at `node`."""
    error.add_note(f"This happened in backward, at {node.name()}.")


class Extra:
    """What few nodes have: hooks, retained gradients, tangents, metadata, a priority set by
    hand."""

    __slots__ = (
        "metadata",
        "post_hooks",
        "pre_hooks",
        "retained",
        "tangents",
        "tensor_hooks",
        "topological_nr",
    )

    def __init__(self) -> None:
        self.metadata: dict[Any, Any] | None = None
        self.pre_hooks: HookList | None = None
        self.post_hooks: HookList | None = None
        self.tensor_hooks: dict[int, HookList] = {}
        self.retained: dict[int, weakref.ref[Any]] = {}
        self.tangents: Any = None  # of what was saved, in forward mode
        self.topological_nr: int | None = None


# Note [A node's record]
# What a loop over nodes reads of each is one tuple. Every kind of node is a class of its own, and
# an attribute that is read of one class after another costs CPython several times what it costs of
# a single class: each place in its bytecode remembers one.
EDGES, SEQUENCE_NR, OUTPUTS, EXTRA = range(4)
"""The places in the record of every node."""


def field(place: int, doc: str) -> Any:
    """An attribute of a node that is kept in its record."""
    return property(
        lambda node: node.record[place], lambda node, value: node.change(place, value), doc=doc
    )


class Node(ABC):
    """A node of the backward graph: what `grad_fn` is."""

    __slots__ = ("__weakref__", "record")

    record: tuple[Any, ...]
    edges: tuple[Edge, ...] = field(EDGES, "Where the gradients of the inputs go.")
    sequence_nr: int = field(SEQUENCE_NR, "The node's place in the order of making.")
    outputs: Any = field(
        OUTPUTS, "Shape and dtype of each output of the forward operator that can have a gradient."
    )
    extra: Extra | None = field(EXTRA, "What few nodes have.")

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...  # `_saved_*` and `_raw_saved_*`

    requires_grad: ClassVar[bool] = True
    current_values: ClassVar[Any]
    """A function: how a node called by hand handles its gradients. Set by the layer above."""

    def change(self, place: int, value: Any) -> None:
        """Makes another record, with this value at one place."""
        self.record = (*self.record[:place], value, *self.record[place + 1 :])

    @abstractmethod
    def apply(self, grads: Sequence[Any], values: Values) -> Sequence[Any]:
        """The gradients of the forward inputs, one for each edge, from those of its outputs."""

    @abstractmethod
    def output_metadata(self) -> tuple[InputMetadata, ...]:
        """What the gradients given to `apply` must look like."""

    def release(self) -> None:  # noqa: B027 - most nodes save nothing
        """Frees what was saved for backward; running the node again raises."""

    def name(self) -> str:
        """The node's kind, such as `MulBackward0`."""
        return type(self).__name__

    @property
    def next_functions(self) -> tuple[Edge, ...]:
        """For each input of the forward operator: (node or None, which of its outputs)."""
        return self.edges

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dict for the user's own notes on this node."""
        extra = self.need_extra()
        if extra.metadata is None:
            extra.metadata = {}
        return extra.metadata

    @property
    def _input_metadata(self) -> list[InputMetadata]:
        return list(self.output_metadata())

    @property
    def topological_nr(self) -> int:
        """The length of the longest path from here to a leaf; found when asked for, then kept."""
        extra = self.extra
        number = None if extra is None else extra.topological_nr
        return _number_topologically(self) if number is None else number

    def _sequence_nr(self) -> int:
        return self.sequence_nr

    def _set_sequence_nr(self, number: int) -> None:
        self.change(SEQUENCE_NR, number)

    def need_extra(self) -> Extra:
        """The node's `Extra`, made when first needed."""
        extra = self.extra
        if extra is None:
            extra = Extra()
            self.change(EXTRA, extra)
        return extra

    def register_hook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Calls `fn(grad_inputs, grad_outputs)` after the node ran; it may return new grad_inputs.

        >>> x = dg.ones(2, requires_grad=True)
        >>> y = x.exp()
        >>> handle = y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * 0,))
        >>> y.sum().backward()
        >>> x.grad
        tensor([0., 0.])
        """
        extra = self.need_extra()
        if extra.post_hooks is None:
            extra.post_hooks = HookList()
        return extra.post_hooks.add(fn)

    def register_prehook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Calls `fn(grad_outputs)` before the node runs; it may return new grad_outputs.

        >>> x = dg.ones(2, requires_grad=True)
        >>> y = x.exp()
        >>> handle = y.grad_fn.register_prehook(lambda grad_outputs: (grad_outputs[0] * 0,))
        >>> y.sum().backward()
        >>> x.grad
        tensor([0., 0.])
        """
        extra = self.need_extra()
        if extra.pre_hooks is None:
            extra.pre_hooks = HookList()
        return extra.pre_hooks.add(fn)

    def __call__(self, *grads: Any, **named: Any) -> Any:
        """Runs the node by hand, without its hooks: one gradient for each forward output."""
        expected = len(self.outputs)
        if named:
            raise TypeError(f"{self.name()} takes no keyword arguments, got {list(named)}")
        if len(grads) != expected:
            raise TypeError(
                f"{self.name()} expected {expected} arguments, got {len(grads)}. Pass one gradient "
                "for each output of its forward operator, None for one without."
            )
        values = self.current_values()
        for position, grad in enumerate(grads):
            if grad is not None and not values.is_tensor(grad):
                raise TypeError(
                    f"{self.name()}: argument {position} is not a Tensor or None, but "
                    f"{type(grad).__name__}"
                )
        given = [None if g is None else values.unwrap(g, None, self.name()) for g in grads]
        results = [None if r is None else values.wrap(r) for r in self.apply(given, values)]
        return results[0] if len(results) == 1 else tuple(results)

    def __repr__(self) -> str:
        return f"<{self.name()}>"


class GradientEdge(NamedTuple):
    """One output of one node: names a place in the graph without keeping the tensor there alive."""

    node: Node
    output_nr: int
    ownership_token: Any = None


def _number_topologically(start: Node) -> int:
    """Numbers `start` and what is below it: one more than the highest number next to a node."""
    stack = [start]
    while stack:
        node = stack[-1]
        below = [n for n, _ in node.edges if n is not None]
        todo = [n for n in below if n.need_extra().topological_nr is None]
        if todo:
            stack.extend(todo)
            continue
        stack.pop()
        highest = max((n.need_extra().topological_nr or 0 for n in below), default=-1)
        node.need_extra().topological_nr = highest + 1
    return start.need_extra().topological_nr or 0


def graph_desc(node: Node | None) -> str:
    """The graph behind a node as a string, for tests and for the eye.

    >>> x = dg.ones(2, requires_grad=True)
    >>> dg.autograd.graph.graph_desc((x * 2).sum().grad_fn)
    'SumBackward0(MulBackward0(AccumulateGrad(), None))'
    """
    parts: list[str] = []
    todo: list[Node | str | None] = [node]
    while todo:
        item = todo.pop()
        if isinstance(item, str) or item is None:
            parts.append(item or "None")
            continue
        parts.append(item.name().rpartition("::")[2] + "(")
        todo.append(")")
        for place, (below, _) in reversed(list(enumerate(item.edges))):
            todo.append(below)
            if place:
                todo.append(", ")
    return "".join(parts)
