"""Schedule: a sequence of calls, and how it is run: call by call, in pieces, or whole."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

from dyngraph.compiled import report
from dyngraph.compiled.compilation import compile_now
from dyngraph.compiled.difference import difference
from dyngraph.compiled.pieces import GRAIN, KnownPieces, avals_of, boundaries, cut
from dyngraph.compiled.program import Aval, Cache, Call, Program, run_calls
from dyngraph.configuration import config
from dyngraph.tensor import Tensor

WHOLE_LIMIT = 5000
"""Longer sequences stay in pieces: XLA's time to compile grows faster than they do."""

_programs = Cache(len)
_known_pieces = KnownPieces()
_schedules = Cache(lambda schedule: len(schedule.calls))
_numbers = itertools.count()
_recent: deque[int] = deque(maxlen=1024)
"""The numbers of the last sequences that ran, over all threads."""


def find_program(
    calls: Sequence[Call], avals: Sequence[Aval], outputs: Sequence[int], *, of_pieces: bool = False
) -> Program:
    """The one Program of this structure."""
    program = Program(calls, avals, outputs, of_pieces=of_pieces)
    found = _programs.find(program.key)
    return _programs.keep(program.key, program) if found is None else found


class Step(NamedTuple):
    """A piece as it is run: where its arguments are, which numbers its results get, and which
    values nobody needs afterwards."""

    program: Program
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    done: tuple[int, ...]


class Schedule:
    """A straight-line sequence of calls with what goes out of it. Equal ones are one, as Programs
    are.

    `inputs` and `made` are shapes and dtypes of what comes from outside and of what is made; the
    last `sums` calls add to `.grad`s that were there.
    """

    __slots__ = (
        "__weakref__",
        "calls",
        "inputs",
        "key",
        "made",
        "number",
        "outputs",
        "sightings",
        "steps",
        "sums",
        "whole",
    )

    def __init__(
        self,
        calls: tuple[Call, ...],
        inputs: tuple[Aval, ...],
        made: tuple[Aval, ...],
        outputs: tuple[int, ...],
        sums: int,
    ) -> None:
        self.calls = calls
        self.inputs = inputs
        self.made = made
        self.outputs = outputs
        self.key: Hashable = (calls, inputs, outputs)
        self.sums = sums
        self.number = next(_numbers)
        self.sightings = 0
        self.steps = self._steps(_cuts(self.kernels()))
        self.whole: Step | None = self.steps[0] if len(self.steps) == 1 else None

    def kernels(self) -> list[Any]:
        """The kernels that are called."""
        return [call.kernel for call in self.calls]

    def _steps(self, cuts: Sequence[int]) -> list[Step]:
        kept, steps = set(self.outputs), []
        for piece in reversed(cut(self.calls, self.outputs, cuts)):
            done = tuple([i for i in dict.fromkeys(piece.inputs) if i >= 0 and i not in kept])
            kept.update(done)
            avals = avals_of(piece, self.inputs, self.made)
            program = find_program(piece.calls, avals, piece.local_outputs())
            steps.append(Step(program, piece.inputs, piece.outputs, done))
        return steps[::-1]

    def _whole(self) -> Step:
        """Its calls in small pieces, these as the calls of one Program."""
        calls, numbers = [], {}
        for program, inputs, outputs, _ in self._steps(boundaries(self.kernels(), GRAIN)):
            given = tuple([numbers[i] if i >= 0 else i for i in inputs])
            calls.append(Call(program.kernel, given, len(outputs)))
            for number in outputs:
                numbers[number] = len(numbers)
        (piece,) = cut(calls, [numbers[i] for i in self.outputs], [0, len(calls)])
        avals = [self.inputs[~i] for i in piece.inputs]
        program = find_program(piece.calls, avals, piece.local_outputs(), of_pieces=True)
        return Step(program, piece.inputs, self.outputs, ())

    def programs(self) -> list[Program]:
        """The Programs of its pieces, each once."""
        return list(dict.fromkeys(step.program for step in self.steps))

    def note_sighting(self) -> None:
        """Counts one more backward that had this sequence."""
        self.sightings += 1
        _recent.append(self.number)
        for program in self.programs() if self.sightings <= config.compile_after else ():
            program.sightings += 1
        if self.whole is None and len(self.calls) <= WHOLE_LIMIT:
            after = config.compile_whole_after
            last = itertools.islice(reversed(_recent), after * 3 // 2)
            if self.sightings >= after and sum(number == self.number for number in last) >= after:
                self.whole = self._whole()

    def run(self, arrays: Sequence[Any]) -> list[Any]:
        """The outputs, from what comes from outside."""
        whole = self.whole
        if whole is not None and (whole.program.is_compiled or len(self.steps) > 1):
            given = [arrays[~i] for i in whole.inputs]
            made = _run_compiled(whole.program, given, len(self.calls))
            if made is not None:
                return made
        values: dict[int, Any] = {}
        for program, inputs, outputs, done in self.steps:
            given = [values[i] if i >= 0 else arrays[~i] for i in inputs]
            values.update(zip(outputs, _run_piece(program, given), strict=True))
            for number in done:
                del values[number]
        return [values[number] for number in self.outputs]

    def run_recorded(
        self, tensors: Sequence[Tensor], recorded: Sequence[Callable[..., Any]]
    ) -> list[Tensor]:
        """The outputs as tensors with a history: each piece is one operator, or, until it is due,
        each of its calls, which `recorded` does on tensors."""
        values: dict[int, Tensor] = {}
        position = 0
        for program, inputs, outputs, done in self.steps:
            given = [values[i] if i >= 0 else tensors[~i] for i in inputs]
            mine = recorded[position : position + len(program)]
            position += len(program)
            if program.sightings >= config.compile_after:
                made = program.operator(*given)
            else:
                calls = [
                    Call(run, call.inputs, call.made)
                    for run, call in zip(mine, program.calls, strict=True)
                ]
                all_made = run_calls(calls, given)
                made = [all_made[i] for i in program.outputs]
            values.update(zip(outputs, made, strict=True))
            for number in done:
                del values[number]
        return [values[number] for number in self.outputs]


def _run_piece(program: Program, given: Sequence[Any]) -> list[Any]:
    """A piece compiled, if it is due, or kernel by kernel."""
    made = None
    if program.is_compiled or program.sightings >= config.compile_after:
        made = _run_compiled(program, given, len(program))
    if made is None:
        made = program.function(*given)
        report.note_piece(len(program), made)
    return made


def _run_compiled(program: Program, given: Sequence[Any], calls: int) -> list[Any] | None:
    """What a Program of so many calls makes; None where it is being compiled in the background."""
    made = program(*given) if program.is_compiled else compile_now(program, given)
    if made is not None:
        report.note_segment(calls, made)
    return made


def _cuts(kernels: Sequence[Hashable]) -> list[int]:
    """Where to cut a sequence that calls these kernels."""
    cuts = boundaries(kernels)
    if len(cuts) > 2:
        _known_pieces.remember(kernels, cuts)
        return cuts
    return _known_pieces.cuts(kernels) or cuts


def find_schedule(
    calls: Sequence[Call],
    inputs: Sequence[Aval],
    made: Sequence[Aval],
    outputs: Sequence[int],
    sums: int,
) -> Schedule:
    """The one Schedule of this structure."""
    key = tuple(calls), tuple(inputs), tuple(outputs)
    found = _schedules.find(key)
    if found is not None:
        report.note_hit()
        return found
    schedule = Schedule(key[0], key[1], tuple(made), key[2], sums)
    known = all(step.program.is_compiled for step in schedule.steps)
    report.note_miss(difference(schedule, _schedules.latest(8)), is_compiled=known)
    return _schedules.keep(key, schedule)


def forget(schedule: Schedule) -> None:
    """Takes out a Schedule that failed, and its Programs that are not compiled."""
    _schedules.forget(schedule.key)
    for program in schedule.programs():
        if not program.is_compiled:
            _programs.forget(program.key)


def clear() -> None:
    """Forgets every Schedule and Program."""
    _schedules.clear()
    _programs.clear()
    _known_pieces.clear()
    _recent.clear()


def kept() -> list[Program]:
    """The Programs that are kept, the one used last at the end."""
    return list(_programs.latest(len(_programs)))[::-1]


def evictions() -> int:
    """How many Programs had to go."""
    return _programs.evictions
