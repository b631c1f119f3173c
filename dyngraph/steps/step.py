"""`compile`: a define-by-run function as one XLA program, with all that it reads and writes."""

from __future__ import annotations

import contextlib
import functools
import threading
import time
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from copy import deepcopy
from typing import Any

import jax

from dyngraph import autocasting, devices, dtypes, modes
from dyngraph.compiled import report
from dyngraph.graph.anomaly import frames_of_ours
from dyngraph.interop.leaves import name_of
from dyngraph.pure import current_pure
from dyngraph.steps.arguments import Arguments, read_arguments
from dyngraph.steps.conditions import Conditions
from dyngraph.steps.program import StepProgram
from dyngraph.steps.reached import Reached, state_of
from dyngraph.steps.sources import Found, sources_of
from dyngraph.steps.trace import StepTrace, Unfit
from dyngraph.steps.watch import Watch
from dyngraph.storage import Storage

MOST_PROGRAMS = 64
"""So many programs a step keeps; the one that was used least recently goes first."""
MOST_TRACES = 4
"""So often a step is traced until all that it reaches is known."""
CHURN = 8
"""At how many programs for one function there is a warning."""


class CompiledStep:
    """What `compile` returns: called as the function is; attributes are the function's own.

    >>> double = dg.compile(lambda x: x * 2)
    >>> [double(dg.ones(2)).tolist() for _ in range(2)]
    [[2.0, 2.0], [2.0, 2.0]]
    >>> double(dg.ones(3)).tolist()
    [2.0, 2.0, 2.0]
    >>> double
    <dg.compile(lambda): 2 programs>
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._name = name_of(function)
        self._reached: dict[Hashable, Reached] = {}
        self._programs: OrderedDict[Hashable, list[StepProgram]] = OrderedDict()
        self._written: weakref.WeakKeyDictionary[Storage, int | None] = weakref.WeakKeyDictionary()
        self._refused: dict[Hashable, str] = {}
        self._failures: dict[Hashable, int] = {}
        self._last_kinds: tuple[Hashable, ...] | None = None
        self._events: list[str] = []
        self._has_several = self._has_warned = False
        self._lock = threading.RLock()
        with contextlib.suppress(AttributeError):
            functools.update_wrapper(self, function, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if modes.get_flags() & modes.OBSERVED & ~modes.AUTOCAST == modes.DEFERRED:
            modes.switch(modes.DEFERRED, on=False)  # there is one program already
            try:
                return self(*args, **kwargs)
            finally:
                modes.switch(modes.DEFERRED, on=True)
        if modes.get_flags() & modes.OBSERVED & ~modes.AUTOCAST or current_pure() is not None:
            return self._function(*args, **kwargs)
        given = read_arguments(self._name, args, kwargs)
        if given is None:
            return self._function(*args, **kwargs)
        mode = (
            given.tree,
            modes.get_flags(),
            autocasting.state(),
            dtypes.get_default_dtype(),
            jax.config.jax_enable_x64,  # type: ignore[attr-defined]
            jax.config.jax_default_matmul_precision,  # type: ignore[attr-defined]
            devices.default(),
        )
        key = mode, given.kinds
        with self._lock:
            programs = self._programs.get(key, [])
            for place, program in enumerate(programs):
                found = program.look(given.tensors)
                if not isinstance(found, str):
                    if place:
                        programs.insert(0, programs.pop(place))
                    self._programs.move_to_end(key)
                    written = self._written if self._has_several else None
                    return program.run(given.tensors, found, given.arrays, written)
            structure = mode, tuple([kind.without_shape() for kind in given.kinds])
            if structure in self._refused:
                return self._function(*args, **kwargs)
            if structure not in self._reached:
                return self._run_as_written(structure, given, args, kwargs)
            try:
                return self._run_traced(key, structure, given)
            except Unfit as reason:
                self._refuse(structure, str(reason))
            return self._function(*args, **kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        bound = CompiledStep(_Method(self._function, instance))
        attributes = getattr(instance, "__dict__", None)
        if attributes is None:
            return functools.partial(self, instance)
        return attributes.setdefault(self._function.__name__, bound)

    def __getattr__(self, name: str) -> Any:
        if name == "_function":
            raise AttributeError(name)
        return getattr(self._function, name)

    def __deepcopy__(self, memo: dict[int, Any]) -> CompiledStep:
        return CompiledStep(deepcopy(self._function, memo))

    def __reduce__(self) -> Any:
        return CompiledStep, (self._function,)

    def __repr__(self) -> str:
        return f"<dg.compile({self._name}): {len(self.programs)} programs>"

    @property
    def programs(self) -> list[StepProgram]:
        """The programs, each with its `jaxpr`, `hlo()` and `cost()`; the one used last at the
        end."""
        return [program for programs in self._programs.values() for program in programs]

    def explain(self) -> report.Explanation:
        """What was traced, what was new each time, and why calls run as written, if they do."""
        return report.Explanation(self._events)

    def reset(self) -> None:
        """Forgets everything that is compiled."""
        with self._lock:
            self.__init__(self._function)

    # --- one call -------------------------------------------------------------------------------

    def _run_as_written(self, structure: Hashable, given: Arguments, args: Any, kwargs: Any) -> Any:
        """The first call of its kind, which shows what the function reaches."""
        with Watch(self._name) as watch, autocasting.casts_of_its_own():
            returned = self._function(*args, **kwargs)
        reached = self._reached[structure] = Reached()
        watch.found.forget(given.tensors)
        reached.add_all(watch.found)
        self._note("ran as written: the first call of its kind")
        return returned

    def _run_traced(self, key: Hashable, structure: Hashable, given: Arguments) -> Any:
        """A call for which there is no program."""
        difference = self._difference(key, given)
        start = time.perf_counter()
        program, found = self._trace(self._reached[structure], given)
        seconds = time.perf_counter() - start
        returned = program.run(given.tensors, found, given.arrays)
        self._note(
            f"traced in {seconds:.2f} s, ran first in {program.seconds:.2f} s: {difference}; "
            f"{len(program.jaxpr.eqns)} kernels"
        )
        problem = program.effects.problem or self._problem_of_kept(structure, program)
        if problem is not None:
            self._refuse(structure, problem)
        elif not program.effects.kept:
            self._keep(key, program)
        return returned

    def _trace(self, reached: Reached, given: Arguments) -> tuple[StepProgram, Found]:
        is_recorded, traces = False, 0
        while True:
            sources = sources_of(reached, given.tensors)
            found = sources.find(given.tensors)
            assert found is not None, "what was reached just now is there"
            conditions = Conditions(sources, found, given.tensors, reached)
            trace = StepTrace(
                self._name,
                autocasting.casts_of_its_own()(self._function),
                sources,
                found,
                given.tensors,
                reached,
                given.rebuild,
                is_recorded=is_recorded,
            )
            traced = trace.run(given.arrays)
            trace.found.forget(given.tensors)
            conditions.settle()
            traces += 1
            grown = reached.add_all(trace.found) or traced.effects.is_recorded != is_recorded
            if traced.effects.kept or not grown or traces == MOST_TRACES:
                return StepProgram(self._name, traced, sources, conditions), found
            is_recorded = traced.effects.is_recorded

    def _keep(self, key: Hashable, program: StepProgram) -> None:
        self._programs.setdefault(key, []).insert(0, program)
        self._programs.move_to_end(key)
        self._has_several = len(self.programs) > 1
        while len(self.programs) > MOST_PROGRAMS:
            oldest = next(iter(self._programs))
            self._programs[oldest].pop()
            if not self._programs[oldest]:
                del self._programs[oldest]
        if len(self.programs) == CHURN and not self._has_warned:
            self._has_warned = True
            self._warn(
                f"has {CHURN} programs by now, each compiled for itself. The last one: "
                f"{self._events[-1]}. Pad to few shapes, pass what changes as a tensor instead of "
                "a Python number"
            )

    def _problem_of_kept(self, structure: Hashable, program: StepProgram) -> str | None:
        """What is wrong where a step leaves behind tensors of its own; None the first time.

        State that an optimizer has begun is none of that: the next step finds it.
        """
        optimizers = self._reached[structure].optimizers
        states = {id(tensor._cell) for o in optimizers for tensor in state_of(o)}
        if all([id(reference()) in states for reference, _ in program.effects.kept]):
            return None
        self._failures[structure] = self._failures.get(structure, 0) + 1
        if self._failures[structure] < 2:
            return None
        shapes = [list(cell.array.shape) for ref, _ in program.effects.kept if (cell := ref())]
        return (
            f"it makes tensors, of shapes {shapes[:3]}, that something outside keeps after each "
            "call. Return them, or write into tensors that are there, as by copy_()"
        )

    def _refuse(self, structure: Hashable, problem: str) -> None:
        self._refused[structure] = problem
        self._note(f"runs as written: {problem}")
        self._warn(f"runs as it is written, not compiled: {problem}")

    def _warn(self, text: str) -> None:
        warnings.warn(
            f"dg.compile({self._name}) {text}; .explain() tells more.",
            UserWarning,
            stacklevel=frames_of_ours(),
        )

    def _note(self, text: str) -> None:
        report.logger.debug(f"{self._name}: {text}")
        del self._events[: -report.KEPT_EVENTS]
        self._events.append(text)

    def _difference(self, key: Hashable, given: Arguments) -> str:
        """What is new about a call."""
        last, self._last_kinds = self._last_kinds, given.kinds
        programs = self._programs.get(key)
        if programs:
            why = programs[0].look(given.tensors)
            return why if isinstance(why, str) else "nothing is new"
        if last is None:
            return "the first program"
        if len(last) != len(given.kinds):
            return f"{len(given.kinds)} arguments, were {len(last)}"
        for place, (was, now) in enumerate(zip(last, given.kinds, strict=True)):
            if was != now:
                return f"argument {place} was {was}, is {now}"
        return "other modes, or arguments in another structure"


class _Method:
    """A method of an object that is known weakly."""

    def __init__(self, function: Callable[..., Any], instance: Any) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._instance = weakref.ref(instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(self._instance(), *args, **kwargs)

    def __deepcopy__(self, memo: dict[int, Any]) -> _Method:
        return _Method(self._function, deepcopy(self._instance(), memo))


def compile(
    fn: Callable[..., Any] | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = None,
    mode: str | None = None,
    options: Any = None,
    disable: bool = False,
) -> Any:
    """The function `fn`, or a module, with a whole call compiled into one XLA program.

    That is forward, backward, the optimizer's step, writes to buffers, and draws of generators:
    whatever the call does with tensors. The first call runs as written; by that it is found what
    the function reads and writes. The second one is traced, with what it found as inputs and
    outputs, and compiled; later calls run the program and no Python of the function. Results,
    `.grad`s, parameters, state and generators are afterwards as the function leaves them. What is
    overwritten is donated, so that memory stays flat.

    Tensors and arrays among the arguments are inputs; all others, Python's numbers too, are part of
    the key, as are shapes, modes, `training` and the numbers that are attributes of modules, which
    `.grad`s there are, and options of optimizers; the rates that schedulers change are inputs.
    Something new is traced and compiled again. What the function reads elsewhere, such as global
    Python numbers, stays what it was when it was traced, and what it does beside tensors, such as
    printing, happens only then. Hooks are traced in.

    Where a result has a history, so that backward comes later, the call is recorded as one node,
    with a compiled backward. A result whose graph is freed has no history.

    The keyword arguments are PyTorch's; all but `disable`, which returns `fn` itself, change
    nothing: there is always one graph, compiled by XLA.

    Raises what JAX raises where the function asks for the value of a tensor, with the line and the
    ways out; TypeError for arguments that cannot be a key.

    >>> w = dg.ones(2, requires_grad=True)
    >>> optimizer = dg.optim.SGD([w], lr=0.1)
    >>> @dg.compile
    ... def step(x):
    ...     optimizer.zero_grad()
    ...     loss = (w * x).sum()
    ...     loss.backward()
    ...     optimizer.step()
    ...     return loss
    >>> [round(step(dg.tensor([1.0, 2.0])).item(), 4) for _ in range(3)]
    [3.0, 2.5, 2.0]
    """
    if fn is None:
        return functools.partial(compile, disable=disable)
    if not callable(fn):
        raise TypeError(f"compile() takes a function or a module, got {type(fn).__name__}.")
    return fn if disable else CompiledStep(fn)


__all__ = ["CompiledStep", "compile"]
