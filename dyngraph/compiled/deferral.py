"""Deferred mode: kernels that were put off run together, as one Program, when a value is asked
for."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator, Sequence as Row
from contextlib import nullcontext, suppress
from typing import Any, Self

import jax

from dyngraph import modes
from dyngraph.compiled import report
from dyngraph.compiled.joined import Fragment
from dyngraph.compiled.program import Aval, Cache, Call, run_call
from dyngraph.compiled.schedule import Schedule, find_schedule, forget
from dyngraph.pending import PUT_OFF, Failed, Kind
from dyngraph.sequence import Batch, Sequence, current_sequence
from dyngraph.tracing import Tracer
from dyngraph.user_code import shown_place


class deferred(modes.ModeSwitch):  # noqa: N801 - it is used as a function is
    """Inside, kernels are noted when operators are called, and run together when a value is asked
    for.

    A context manager and a decorator, for the thread that it is used in; `deferred(False)` switches
    it off. Tensors, graphs, views, writes, hooks and errors are those of ordinary mode: a tensor
    has its shape and its dtype at once, and its value when someone looks: `item()`, `print`, an
    `if`, numpy, an optimizer's step, or the end of the block. What nobody refers to any more by
    then is not computed.

    >>> x = dg.tensor([2.0, 3.0], requires_grad=True)
    >>> with dg.deferred():
    ...     y = (x.exp() * x).sum()
    ...     y.backward()
    >>> x.grad
    tensor([22.1672, 80.3421])
    """

    def __init__(self, enabled: bool = True) -> None:
        super().__init__()
        self.enabled = enabled

    def __enter__(self) -> Self:
        flags = modes.get_flags()
        self.previous.append(flags)
        modes.switch(modes.DEFERRED, on=self.enabled)
        return self

    def __exit__(self, *exception: Any) -> None:
        modes.switch(modes.DEFERRED, on=bool(self.previous.pop() & modes.DEFERRED))
        if self.enabled and not modes.get_flags() & modes.DEFERRED:
            # an error that leaves the block goes first: who asks for what failed hears of it again
            with suppress(Exception) if exception[0] else nullcontext():
                current_sequence().run()

    def clone(self) -> deferred:
        return deferred(self.enabled)


# --- running what was put off -----------------------------------------------------------------

_schedules = Cache(lambda schedule: len(schedule.calls))


def run(batch: Batch) -> None:
    """Runs the calls as one Schedule, and gives the values to what is alive."""
    if jax.config.jax_enable_x64 != batch.x64:  # type: ignore[attr-defined]
        with jax.enable_x64(batch.x64):
            run(batch)
        return
    key: Hashable = (
        tuple(batch.flat),
        tuple([given.kind for given in batch.given]),
        tuple([value.number for value in batch.alive]),
    )
    schedule = _schedules.find(key)
    if schedule is None:
        schedule = _schedules.keep(key, _schedule(batch))
    else:
        report.note_hit()
    schedule.note_sighting()
    arrays = [given.value for given in batch.given]
    try:
        results = schedule.run(arrays)
        if results and isinstance(results[0], Tracer):  # someone asked while JAX traces
            with jax.ensure_compile_time_eval():
                results = schedule.run(arrays)
    except Exception as error:
        forget(schedule)
        _schedules.forget(key)
        _run_one_by_one(batch, error)
        return
    for value, result in zip(batch.alive, results, strict=True):
        value.value, value.sequence = result, None


Sequence.execute = staticmethod(run)


class _Calls:
    """The calls of a batch, each by itself: those of a Fragment too.

    `numbers` gives for each value of the batch its number among those that these calls make, of
    kinds `made`.
    """

    def __init__(self, batch: Batch) -> None:
        self.calls: list[Call] = []
        self.places: list[Any] = []
        self.made: list[Kind] = []
        self.numbers: list[int] = []
        for (kernel, inputs), kind, place in zip(
            _rows(batch.flat), batch.kinds, batch.places, strict=False
        ):
            given = [i if i is None or i < 0 else self.numbers[i] for i in inputs]
            first = len(self.made)
            if type(kernel) is Fragment:
                for (inner, own), made in zip(_rows(kernel.flat), kernel.kinds, strict=True):
                    moved = [i if i is None else i + first if i >= 0 else given[~i] for i in own]
                    self._add(inner, moved, made, place)
                self.numbers += [first + number for number in kernel.outputs]
            else:
                self._add(kernel, given, kind, place)
                self.numbers += range(first, len(self.made))

    def _add(self, kernel: Any, inputs: list[int | None], kind: Any, place: Any) -> None:
        kinds = [k for k in (kind if type(kind) is tuple else (kind,)) if k is not None]
        self.calls.append(Call(kernel, tuple(inputs), len(kinds)))
        self.made += kinds
        self.places.append(place)


def _rows(flat: Row[Any]) -> Iterator[tuple[Any, list[int | None]]]:
    """Each call's kernel and the numbers of its arguments."""
    starts = [i for i, item in enumerate(flat) if not (item is None or type(item) is int)]
    for start, end in itertools.pairwise([*starts, len(flat)]):
        yield flat[start], list(flat[start + 1 : end])


def _aval(kind: Kind) -> Aval:
    return Aval(kind.shape, kind.dtype, kind.weak_type)


def _schedule(batch: Batch) -> Schedule:
    """The Schedule of these calls."""
    found = _Calls(batch)
    inputs = [_aval(given.kind) for given in batch.given]
    outputs = [found.numbers[value.number] for value in batch.alive]
    return find_schedule(found.calls, inputs, [_aval(kind) for kind in found.made], outputs, 0)


def _run_one_by_one(batch: Batch, error: Exception) -> None:
    """Runs the calls again, each by itself: those that fail, and what depends on them, have no
    value; raises the first error, which names its line."""
    arrays = [given.value for given in batch.given]
    values: list[Any] = []
    first: Exception | None = None
    found = _Calls(batch)
    for call, place in zip(found.calls, found.places, strict=True):
        failed = [
            values[i] for i in call.inputs if i is not None and i >= 0 and type(values[i]) is Failed
        ]
        if failed:
            values += [failed[0]] * call.made
            continue
        try:
            run_call(call, arrays, values)
        except Exception as failure:
            _blame(failure, call, place)
            first = first or failure
            values += [Failed(failure)] * call.made
    for value in batch.alive:
        value.value, value.sequence = values[found.numbers[value.number]], None
    if first is not None:
        raise first
    report.note_failure(len(found.calls), error)  # only together did they fail


def _blame(error: Exception, call: Call, place: Any) -> None:
    """Notes where the call was made."""
    code, last = place
    line = next((n for start, end, n in code.co_lines() if start <= last < end and n), None)
    setattr(error, PUT_OFF, (code.co_filename, line))
    error.add_note(
        f"This happened in {call.kernel.__name__}, called at "
        f"{shown_place(code.co_filename, line)} in deferred mode: it ran when asked for a value."
    )


def clear() -> None:
    """Forgets the sequences that ran."""
    _schedules.clear()
