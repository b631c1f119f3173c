"""How large programs are, and what they keep: nodes, equations, instructions, bytes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from dyngraph.compiled.program import Program
from dyngraph.compiled.recording import RecordedValues
from dyngraph.graph.engine import GraphTask
from dyngraph.graph.node import Edge
from dyngraph.steps.program import StepProgram
from dyngraph.tracing import jaxpr_as_fun
from dyngraph.values import ARRAYS, TENSORS

INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%?[\w.\-]+ = ", re.MULTILINE)
MOST_CALLS = 400
"""Programs of more kernel calls are not compiled again to count their instructions."""


class Sizes(NamedTuple):
    """What is known of a way's program; None where it has no such thing.

    `nodes` of the backward graph; kernel `calls` of its compiled `programs`; `equations` of the
    jaxpr; `instructions` of the HLO that XLA compiled. `saved_bytes` are what waits for backward,
    each buffer once; `temp_bytes` what XLA takes beside arguments and results, which are
    `argument_bytes` and `output_bytes`.
    """

    nodes: int | None = None
    programs: int | None = None
    calls: int | None = None
    equations: int | None = None
    instructions: int | None = None
    saved_bytes: int | None = None
    temp_bytes: int | None = None
    argument_bytes: int | None = None
    output_bytes: int | None = None


def distinct_bytes(leaves: Iterable[Any]) -> int:
    """The bytes of the arrays among them, each once."""
    arrays = {id(a): a for a in leaves if isinstance(a, (jax.Array, np.ndarray))}
    return sum(a.nbytes for a in arrays.values())


def programs_of(run: Callable[[Any], object]) -> list[Program]:
    """What a compiled backward traces in `run`, which is given the runner for the Engine: one
    Program for each stretch between two steps of Python."""
    trails: list[Any] = []

    def runner(task: GraphTask, edges: Sequence[Edge], gradients: Sequence[Any]) -> None:
        how = task.values
        if how not in (ARRAYS, TENSORS):
            GraphTask.run(task, edges, gradients)
            return
        recorded = task.values = RecordedValues(how)
        try:
            GraphTask.run(task, edges, gradients)
            symbols = dict(task.captured)
            recorded.settle("the end", None)
            task.captured.update((i, recorded.value_of(value)) for i, value in symbols.items())
        finally:
            task.values = how
        trails.extend(recorded.trail)

    run(runner)
    schedules = [settled.schedule for settled in trails if settled.schedule is not None]
    return [Program(s.calls, s.inputs, s.outputs) for s in schedules]


def compiled_sizes(compiled: Any) -> dict[str, int | None]:
    """Of one program that XLA compiled."""
    found: dict[str, int | None] = {"instructions": len(INSTRUCTION.findall(compiled.as_text()))}
    memory = compiled.memory_analysis()
    for ours, theirs in (
        ("temp_bytes", "temp_size_in_bytes"),
        ("argument_bytes", "argument_size_in_bytes"),
        ("output_bytes", "output_size_in_bytes"),
    ):
        found[ours] = getattr(memory, theirs, None)
    return found


def compile_program(program: Program | StepProgram) -> Any:
    """A Program compiled by XLA by itself, to look at."""
    function = jax.jit(jaxpr_as_fun(program.jaxpr), compiler_options=program.options)
    return function.lower(*program.jaxpr.in_avals).compile()
