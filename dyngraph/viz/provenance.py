"""Provenance: a record of what operators did with values, also of what autograd does not record.

Values are known by their arrays: `detach()` keeps the array, so that a value is followed through
it, and an in-place operation makes another array of the same tensor.
"""

from __future__ import annotations

import weakref
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from typing import Any, NamedTuple, Self

from dyngraph import modes
from dyngraph.errors import InPlaceError
from dyngraph.observed import Interceptor
from dyngraph.storage import Storage
from dyngraph.tensor import Tensor
from dyngraph.user_code import caller, shown_place
from dyngraph.ways_out import heard_by

MOST_CALLS = 1_000_000
"""How many calls are remembered, the last ones."""


class Value(NamedTuple):
    """A value as a call met it: its number, and whether a gradient could go through it there."""

    number: int
    requires_grad: bool


class Call(NamedTuple):
    """One call of an operator, and the line of the user's program that made it."""

    name: str
    place: str
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    reason: str
    """Why its outputs carry no gradient, if they don't."""


class WayOut(NamedTuple):
    """A value that left as a number or as an array of another library."""

    number: int
    how: str
    place: str


class provenance(Interceptor):  # noqa: N801 - it is used as a function is
    """Inside, what operators of this thread do is noted for `dg.explain_grad`: where values come
    from, also past `detach()`, `no_grad()`, integers and `.item()`.

    It keeps numbers and texts, no arrays.

    >>> x = dg.tensor([2.0], requires_grad=True)
    >>> w = dg.tensor([3.0], requires_grad=True)
    >>> with dg.viz.provenance() as record:
    ...     loss = (x.exp().detach() * w).sum()
    >>> dg.explain_grad(loss, x, record)
    No gradient reaches x: no path leads from loss to it.
    - cut by detach() or .data: between exp at <...>:2 and mul at <...>:2
    - leaves that are reached: w
    """

    def __init__(self) -> None:
        self.calls: deque[Call] = deque(maxlen=MOST_CALLS)
        self.ways_out: deque[WayOut] = deque(maxlen=MOST_CALLS)
        self._numbers: dict[int, tuple[weakref.ref[Any], int]] = {}
        self._cells: weakref.WeakKeyDictionary[Storage, list[int]] = weakref.WeakKeyDictionary()
        self._next = 0

    def __enter__(self) -> Self:
        self._stack = ExitStack()
        self._stack.enter_context(heard_by(self._hear))
        return super().__enter__()

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        self._stack.close()

    def intercept(self, op: Any, given: Mapping[str, Any], run: Callable[[], Any]) -> Any:
        inputs = self._values(given.values())
        flags = modes.get_flags()
        results = run()
        made = results if isinstance(results, tuple | list) else (results,)
        self.calls.append(
            Call(
                op.__name__,
                shown_place(*caller(1)),
                inputs,
                self._values(made),
                _reason(flags, made),
            )
        )
        return results

    def _hear(self, array: Any, how: str) -> None:
        self.ways_out.append(WayOut(self._number(array), how, shown_place(*caller(1))))

    def _values(self, values: Iterable[Any]) -> tuple[Value, ...]:
        tensors = [t for t in values if isinstance(t, Tensor) and not t._cell.is_empty()]
        found = []
        for tensor in tensors:
            number = self._number(tensor._cell.array)
            numbers = self._cells.setdefault(tensor._cell, [])
            if number not in numbers:
                numbers.append(number)
            found.append(Value(number, _requires_grad(tensor)))
        return tuple(found)

    def _number(self, array: Any) -> int:
        key = id(array)
        known = self._numbers.get(key)
        if known is None:
            numbers = self._numbers
            reference = weakref.ref(array, lambda _: numbers.pop(key, None))
            known = numbers[key] = (reference, self._next)
            self._next += 1
        return known[1]

    def numbers_of(self, tensor: Tensor) -> set[int]:
        """The numbers that a tensor's values have had here."""
        known = self._numbers.get(id(tensor._cell.array))
        return {*self._cells.get(tensor._cell, ()), *(() if known is None else (known[1],))}

    def cuts(self, loss: Tensor, x: Tensor) -> list[str]:
        """Where the way from `x` to `loss` loses its gradient, in words; where it leaves the
        tensors, if it gets to no end; nothing, if neither was seen."""
        users: dict[int, list[Call]] = defaultdict(list)
        for call in self.calls:
            for value in call.inputs:
                users[value.number].append(call)
        makers = {value.number: call for call in self.calls for value in call.outputs}
        leads = self._leads_to(self.numbers_of(loss))
        found: dict[str, None] = {}
        carried = deque(self.numbers_of(x))
        seen = set(carried)
        while carried:
            number = carried.popleft()
            for call in users[number]:
                ends = [value for value in call.outputs if value.number in leads]
                if not ends:
                    continue
                if not any(v.requires_grad for v in call.inputs if v.number == number):
                    found[_lost_before(call, makers.get(number))] = None
                elif not any(value.requires_grad for value in ends):
                    found[f"cut in {call.name} at {call.place}: {call.reason}"] = None
                else:
                    new = [v.number for v in ends if v.requires_grad and v.number not in seen]
                    seen.update(new)
                    carried += new
        return list(found) or self._ways_out_of(x, users)

    def _leads_to(self, ends: set[int]) -> set[int]:
        """The numbers of the values that `ends` were made from, and theirs."""
        found = set(ends)
        for call in reversed(self.calls):
            if any(value.number in found for value in call.outputs):
                found.update(value.number for value in call.inputs)
        return found

    def _ways_out_of(self, x: Tensor, users: Mapping[int, list[Call]]) -> list[str]:
        """Where values that were made from `x` left the tensors."""
        todo = list(self.numbers_of(x))
        seen = set(todo)
        while todo:
            for call in users.get(todo.pop(), ()):
                new = [value.number for value in call.outputs if value.number not in seen]
                seen.update(new)
                todo += new
        ways = [way for way in self.ways_out if way.number in seen]
        return list(
            dict.fromkeys(
                f"left the graph by {way.how} at {way.place}: what is computed from a number, or "
                "from another library's array, has no gradient"
                for way in ways
            )
        )


def _lost_before(call: Call, maker: Call | None) -> str:
    start = f"{maker.name} at {maker.place}" if maker else "the tensor itself"
    return f"cut by detach() or .data: between {start} and {call.name} at {call.place}"


def _requires_grad(tensor: Tensor) -> bool:
    try:
        return tensor.requires_grad
    except InPlaceError:
        return False


def _reason(flags: int, made: Iterable[Any]) -> str:
    if flags & modes.INFERENCE:
        return "inference_mode() was on"
    if not flags & modes.GRAD:
        return "no_grad() was on"
    dtypes = {t.dtype for t in made if isinstance(t, Tensor) and not t.dtype.is_differentiable}
    if dtypes:
        return f"{', '.join(sorted(d.name for d in dtypes))} values have none"
    return "the operator has no derivative"
