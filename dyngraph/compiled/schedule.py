"""Schedule: a sequence of calls, and how it is run: call by call, in pieces, or whole."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

from dyngraph.compiled.compilation import compile_now
from dyngraph.compiled.pieces import Piece, avals_of, cut
from dyngraph.compiled.program import Aval, Cache, Call, Program, run_calls
from dyngraph.configuration import config
from dyngraph.tensor import Tensor

WHOLE_LIMIT = 5000
"""Longer sequences stay in pieces: XLA's time to compile grows faster than they do."""

_programs = Cache(len)
_schedules = Cache(lambda schedule: len(schedule.calls))
_recent: deque[int] = deque(maxlen=64)
"""The last sequences that ran, over all threads."""


def find_program(calls: Sequence[Call], avals: Sequence[Aval], outputs: Sequence[int]) -> Program:
    """The one Program of this structure."""
    program = Program(calls, avals, outputs)
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

    `inputs` and `made` are shapes and dtypes of what comes from outside and of what is made.
    """

    __slots__ = ("__weakref__", "calls", "inputs", "made", "outputs", "sightings", "steps", "whole")

    def __init__(
        self,
        calls: tuple[Call, ...],
        inputs: tuple[Aval, ...],
        made: tuple[Aval, ...],
        outputs: tuple[int, ...],
    ) -> None:
        self.calls = calls
        self.inputs = inputs
        self.made = made
        self.outputs = outputs
        self.sightings = 0
        self.steps = self._steps(cut(calls, outputs))
        self.whole: Step | None = self.steps[0] if len(self.steps) == 1 else None

    def _steps(self, pieces: Sequence[Piece]) -> list[Step]:
        kept, steps = set(self.outputs), []
        for piece in reversed(pieces):
            done = tuple([i for i in dict.fromkeys(piece.inputs) if i >= 0 and i not in kept])
            kept.update(done)
            avals = avals_of(piece, self.inputs, self.made)
            program = find_program(piece.calls, avals, piece.local_outputs())
            steps.append(Step(program, piece.inputs, piece.outputs, done))
        return steps[::-1]

    def programs(self) -> list[Program]:
        """The Programs of its pieces, each once."""
        return list(dict.fromkeys(step.program for step in self.steps))

    def note_sighting(self) -> None:
        """Counts one more backward that had this sequence."""
        self.sightings += 1
        _recent.append(id(self))
        for program in self.programs() if self.sightings <= config.compile_after else ():
            program.sightings += 1
        if self.whole is None and len(self.calls) <= WHOLE_LIMIT:
            after = config.compile_whole_after
            if self.sightings >= after and _recent.count(id(self)) >= after:
                (self.whole,) = self._steps(cut(self.calls, self.outputs, [0, len(self.calls)]))

    def run(self, arrays: Sequence[Any]) -> list[Any]:
        """The outputs, from what comes from outside."""
        whole = self.whole
        if whole is not None and (whole.program.is_compiled or len(self.steps) > 1):
            given = [arrays[~i] for i in whole.inputs]
            if whole.program.is_compiled:
                return whole.program(*given)
            if compile_now(whole.program, given):
                return whole.program(*given)
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
                    Call(run, call.inputs, call.count)
                    for run, call in zip(mine, program.calls, strict=True)
                ]
                all_made = run_calls(calls, given)
                made = [all_made[i] for i in program.outputs]
            values.update(zip(outputs, made, strict=True))
            for number in done:
                del values[number]
        return [values[number] for number in self.outputs]


def _run_piece(program: Program, given: Sequence[Any]) -> list[Any]:
    if program.is_compiled:
        return program(*given)
    if program.sightings >= config.compile_after and compile_now(program, given):
        return program(*given)
    return program.function(*given)


def find_schedule(
    calls: Sequence[Call], inputs: Sequence[Aval], made: Sequence[Aval], outputs: Sequence[int]
) -> Schedule:
    """The one Schedule of this structure."""
    key: Hashable = (tuple(calls), tuple(inputs), tuple(outputs))
    found = _schedules.find(key)
    if found is None:
        found = _schedules.keep(key, Schedule(*key[:2], tuple(made), key[2]))
    return found
