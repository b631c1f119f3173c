"""Sequence: the kernel calls that a thread has put off, in order.

Invariant: a Sequence holds kernels, numbers, and the arrays that come from outside; it knows what
its calls will make weakly, so that what nobody refers to any more is not made. Only its own thread
adds to it, and a call is there when its kind is; so another thread may run what it finds, and both
come to the same values.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Sequence as Row
from types import CodeType
from typing import Any, NamedTuple
from weakref import ref

import jax

from dyngraph import modes
from dyngraph.pending import Kind, Pending, kind_of, resolved
from dyngraph.tracing import Tracer, calls_back
from dyngraph.user_code import user_frame

LONGEST = 4000
"""After so many calls a sequence runs by itself."""


class Given:
    """A value that comes from outside: its number counts down from -1."""

    __slots__ = ("devices", "kind", "number", "value")

    def __init__(self, value: Any, kind: Any, number: int | None, devices: Any) -> None:
        self.value = value
        self.kind = kind
        self.number = number
        self.devices = devices


_NOTHING = Given(None, None, None, None)


class Again(Exception):
    """Something had to run before a call can be noted: `run()` does it."""

    def __init__(self, run: Callable[[], Any]) -> None:
        self.run = run


class AtOnce(Exception):
    """A call that can't be put off."""


class Batch(NamedTuple):
    """The calls of a sequence that are about to run.

    `flat` has for each call its kernel, and after that the numbers of its arguments; `kinds` what
    each makes, `places` from which line. `given` come from outside; `alive` are the values that
    somebody refers to.
    """

    flat: list[Any]
    kinds: list[Any]
    places: list[tuple[CodeType, int]]
    given: list[Given]
    alive: list[Pending]
    x64: bool


class Sequence:
    """The calls that a thread has put off since calls were last run."""

    __slots__ = (
        "devices",
        "entries",
        "flat",
        "given",
        "home",
        "kept",
        "kinds",
        "many",
        "places",
        "refs",
        "x64",
    )

    execute: Callable[[Batch], None]
    """Runs the calls and gives the values to what is alive; set by the layer above."""

    def __init__(self, *, many: bool | None = None) -> None:
        self.flat: list[Any] = []
        self.kinds: list[Any] = []
        self.refs: list[ref[Pending]] = []
        self.places: list[tuple[CodeType, int]] = []
        self.given: list[Given] = []
        self.entries: dict[int, Given] = {id(None): _NOTHING}
        self.kept: list[Any] = []
        self.home: Any = None
        self.many = are_many() if many is None else many
        self.devices: Any = None
        self.x64: bool = jax.config.jax_enable_x64  # type: ignore[attr-defined]

    def run(self) -> None:
        """Runs what was put off; raises the first error, after all has run that can."""
        is_own = _own.sequence is self
        if is_own:
            _own.sequence = Sequence()
        if not self.kinds:
            return
        flat, kinds, refs = self._calls(is_own=is_own)
        known = [value for reference in refs if (value := reference()) is not None]
        alive = [value for value in known if value.value is None]
        batch = Batch(flat, kinds, self.places, self.given, alive, self.x64)
        flags = modes.get_flags()
        modes.set_flags(flags & ~modes.DEFERRED)
        try:
            Sequence.execute(batch)
        finally:
            modes.set_flags(flags)

    def _calls(self, *, is_own: bool) -> tuple[list[Any], list[Any], list[ref[Pending]]]:
        """`flat`, `kinds` and `refs` of the calls that are there: copies, if more are noted now."""
        count = len(self.kinds)
        if is_own and len(self.places) == count:
            return self.flat, self.kinds, self.refs
        flat, kinds = self.flat[:], self.kinds[:count]
        kernels = [i for i, item in enumerate(flat) if not (item is None or type(item) is int)]
        made = sum([1 if k.__class__ is Kind else len(k) - k.count(None) for k in kinds])
        return flat[: [*kernels, len(flat)][count]], kinds, self.refs[:made]

    # --- noting a call ------------------------------------------------------------------------

    def enter(self, value: Any) -> Given:
        """What the sequence knows of a value that it has not met."""
        found = None
        if value.__class__ is Pending:
            if value.sequence is not None:  # of another thread
                raise Again(value.force)
            array = value.force()
            self.kept.append(value)
            found = self.entries.get(id(array))
        else:
            array = value
        if found is None:
            if isinstance(array, Tracer):
                raise AtOnce
            x64 = jax.config.jax_enable_x64  # type: ignore[attr-defined]
            if x64 != self.x64:
                raise Again(self.run)
            devices = _devices_of(array) if self.many else None
            found = Given(array, kind_of(array, x64), ~len(self.given), devices)
            self.given.append(found)
            self.entries[id(array)] = found
        self.entries[id(value)] = found
        return found

    def keep_apart(self, inputs: Row[Any]) -> None:
        """Has what was put off run first, if it is for other devices than these values are on."""
        found = {d for i in inputs if i.__class__ is Given and (d := i.devices) is not None}
        if any([i.__class__ is Pending for i in inputs]) and self.devices is not None:
            found.add(self.devices)
        devices = next(iter(found), None)
        if len(found) > 1 and not self.kinds:
            raise AtOnce
        if (len(found) > 1 or devices != self.devices) and self.kinds:
            raise Again(self.run)
        self.devices = devices

    def infer(self, kernel: Any, inputs: Row[Any]) -> Any:
        """What a kernel makes of these inputs: a Kind, or a tuple with None for each None.

        Raises what the call would raise.
        """
        if not hasattr(kernel, "trace") or hasattr(kernel, "calls_back"):
            raise AtOnce  # a function that runs on values, or one in which Python runs
        shapes = vars(kernel).setdefault("shapes", {})
        kinds, x64 = tuple([i.kind for i in inputs]), self.x64
        found = shapes.get(kinds)
        if found is None:
            flags = modes.get_flags()
            modes.set_flags(flags & ~modes.DEFERRED)
            try:
                traced = kernel.trace(*[None if k is None else k.struct() for k in kinds])
            finally:
                modes.set_flags(flags)
            if calls_back(traced.jaxpr.jaxpr):
                kernel.calls_back = True
                raise AtOnce
            made = traced.out_info
            if isinstance(made, (tuple, list)):
                found = tuple([None if m is None else kind_of(m, x64) for m in made])
            else:
                found = kind_of(made, x64)
            shapes[kinds] = found
            if _own.sequence is not self:  # the kernel asked for a value that was put off
                raise Again(lambda: None)
        return found

    def make(self, kinds: Row[Kind | None]) -> list[Pending | None]:
        """The values that a call of several outputs will make."""
        made: list[Pending | None] = []
        for kind in kinds:
            out = None
            if kind is not None:
                out = _new(Pending)
                out.kind, out.number, out.sequence, out.value = kind, len(self.refs), self, None
                self.refs.append(ref(out))
            made.append(out)
        return made

    def note_whole(
        self, whole: Any, made: Row[Kind], values: Row[Any], frame: Any
    ) -> list[Pending | None]:
        """Notes several calls as one, which make values of known kinds."""
        try:
            known = [
                v
                if v.__class__ is Pending and v.sequence is self
                else self.entries.get(id(v)) or self.enter(v)
                for v in values
            ]
            if self.many:
                self.keep_apart(known)
        except Again as why:
            why.run()
            return _own.sequence.note_whole(whole, made, values, frame)
        frame = self.find_user(frame)
        self.places.append((frame.f_code, frame.f_lasti))
        self.flat += (whole, *[k.number for k in known])
        results = self.make(made)
        self.kinds.append(tuple(made))
        return results

    def find_user(self, frame: Any) -> Any:
        """The innermost frame that is not this package's, from where operators are called."""
        frame = user_frame(frame)
        self.home = frame.f_globals
        return frame

    def otherwise(self, why: Exception, kernel: Any, values: Row[Any]) -> Any:
        """What becomes of a call that could not be noted as it was."""
        if type(why) is Again:
            why.run()
            return note(kernel, *values)
        if hasattr(kernel, "noted"):  # it calls another kernel
            return kernel.noted(*values)
        return run_now(kernel, *values)


def run_now(kernel: Any, *values: Any) -> Any:
    """A kernel's results, computed now."""
    return kernel(*[resolved(value) for value in values])


def _devices_of(array: Any) -> Any:
    """The devices that an array was put on; None for one that may be anywhere."""
    return frozenset(array.sharding.device_set) if getattr(array, "committed", False) else None


_new: Any = object.__new__


@functools.cache
def are_many() -> bool:
    """Whether arrays may be on several devices."""
    return jax.device_count() > 1 or jax.default_backend() != "cpu"


class _Own(threading.local):
    def __init__(self) -> None:
        self.sequence = Sequence(many=True)  # to ask JAX now would fix its devices


_own = _Own()


def current_sequence() -> Sequence:
    """What this thread puts off."""
    return _own.sequence


def is_deferring() -> bool:
    """Whether kernels are put off here: deferred mode is on, and nothing that looks at them."""
    return modes.get_flags() & modes.OBSERVED & ~(modes.PACKING | modes.AUTOCAST) == modes.DEFERRED


def call(kernel: Any, *held: Any) -> Any:
    """A kernel's results on what Storages hold: noted in deferred mode, else computed."""
    if is_deferring():
        return note(kernel, *held)
    return kernel(*[resolved(value) for value in held])


# --- one function for each number of arguments ------------------------------------------------


_FIND = """
        s{i} = (
            x{i}
            if x{i}.__class__ is Pending and x{i}.sequence is sequence
            else entries.get(id(x{i})) or sequence.enter(x{i})
        )"""
_NOTE = """
def note{count}(kernel, {values}):
    sequence = own.sequence
    kinds = sequence.kinds
    if len(kinds) >= LONGEST:
        sequence.run()
        sequence = own.sequence
        kinds = sequence.kinds
    try:
        entries = sequence.entries{find}
        if sequence.many:
            sequence.keep_apart(({inputs},))
        try:
            kind = kernel.shapes[{keys}]
        except (AttributeError, KeyError):
            kind = sequence.infer(kernel, ({inputs},))
        frame = getframe(3)
        if frame.f_globals is not sequence.home:
            frame = sequence.find_user(frame)
        sequence.places.append((frame.f_code, frame.f_lasti))
        sequence.flat += (kernel, {numbers})
        if kind.__class__ is tuple:
            out = sequence.make(kind)
        else:
            refs = sequence.refs
            out = new(Pending)
            out.kind = kind
            out.number = len(refs)
            out.sequence = sequence
            out.value = None
            refs.append(ref(out))
        kinds.append(kind)
        return out
    except (Again, AtOnce) as why:
        return sequence.otherwise(why, kernel, ({values},))
"""


def _write(count: int) -> Callable[..., Any]:
    """The function `(kernel, *values)` that notes a call of so many arguments."""

    def row(text: str) -> str:
        return ", ".join(text.format(i=i) for i in range(count))

    source = _NOTE.format(
        count=count,
        values=row("x{i}"),
        find="".join(_FIND.format(i=i) for i in range(count)),
        inputs=row("s{i}"),
        keys=f"({row('s{i}.kind')},)",
        numbers=row("s{i}.number"),
    )
    scope: dict[str, Any] = {
        "Again": Again,
        "AtOnce": AtOnce,
        "LONGEST": LONGEST,
        "Pending": Pending,
        "getframe": sys._getframe,
        "new": _new,
        "own": _own,
        "ref": ref,
    }
    exec(compile(source, f"<noting of {count} arguments>", "exec"), scope)
    return scope[f"note{count}"]


class _Notes(dict[int, Callable[..., Any]]):
    """The functions that note calls, by the number of arguments; without any, a call runs."""

    def __missing__(self, count: int) -> Callable[..., Any]:
        return self.setdefault(count, _write(count) if count else run_now)


NOTES = _Notes()


def note(kernel: Any, *values: Any) -> Any:
    """Notes a call; what it will make: a Pending, or a list of them, None for each None."""
    return NOTES[len(values)](kernel, *values)
