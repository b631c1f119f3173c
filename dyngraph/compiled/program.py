"""Program: a straight-line sequence of kernel calls, run as one XLA call.

Invariant: a Program holds kernels, numbers, shapes and its jaxpr; never a node, a tensor or an
array of the user's.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import jax

from dyngraph.compiled import report
from dyngraph.compiled.fusion import compiler_options
from dyngraph.configuration import config
from dyngraph.dispatch import write_dispatcher
from dyngraph.kernels import OperatorSpec
from dyngraph.tensor import Tensor
from dyngraph.tracing import ClosedJaxpr, jaxpr_as_fun

MOST_CALLS = 50_000
"""How much a cache keeps: the calls, or nodes, of all its things together."""


class Aval(NamedTuple):
    """What a Program knows of an array."""

    shape: tuple[int, ...]
    dtype: Any
    weak_type: bool = False


class Call(NamedTuple):
    """One call of a kernel.

    Values have numbers: what the calls make is counted 0, 1, 2, ..., what comes from outside -1,
    -2, ...; None stands for an argument that is None. `made` is how many values this call makes.
    """

    kernel: Callable[..., Any]
    inputs: tuple[int | None, ...]
    made: int


def run_calls(calls: Sequence[Call], arrays: Sequence[Any]) -> list[Any]:
    """Everything that the calls make of the arrays that come from outside."""
    values: list[Any] = []
    for call in calls:
        run_call(call, arrays, values)
    return values


def run_for(calls: Sequence[Call], outputs: Sequence[int], arrays: Sequence[Any]) -> list[Any]:
    """Those of the values that go out."""
    values = run_calls(calls, arrays)
    return [values[i] if i >= 0 else arrays[~i] for i in outputs]


def run_call(call: Call, arrays: Sequence[Any], values: list[Any]) -> None:
    """Runs one call, and appends to `values` what it makes."""
    made = call.kernel(
        *[None if i is None else values[i] if i >= 0 else arrays[~i] for i in call.inputs]
    )
    if isinstance(made, (tuple, list)):
        values += [value for value in made if value is not None]
    else:
        values.append(made)


class Program:
    """A sequence of kernel calls with the values that go out of it, traced and jitted when it first
    runs.

    Call it with the arrays that come from outside; it returns a list. `key` is its structure: two
    Programs with equal keys are one, see `find_program`. `of_pieces` says that its calls are those
    of whole pieces, by their `kernel`.
    """

    __slots__ = (
        "__weakref__",
        "_jaxpr",
        "_jitted",
        "_kernel",
        "_lock",
        "_operator",
        "avals",
        "calls",
        "key",
        "of_pieces",
        "options",
        "outputs",
        "seconds",
        "sightings",
    )

    def __init__(
        self,
        calls: Sequence[Call],
        avals: Sequence[Aval],
        outputs: Sequence[int],
        *,
        of_pieces: bool = False,
    ) -> None:
        self.calls = tuple(calls)
        self.avals = tuple(avals)
        self.outputs = tuple(outputs)
        self.key: Hashable = (self.calls, self.avals, self.outputs)
        self.of_pieces = of_pieces
        self.sightings = 0
        self.seconds = 0.0
        self.options: dict[str, Any] | None = None
        self._jaxpr: ClosedJaxpr | None = None
        self._jitted: Callable[..., Any] | None = None
        self._kernel: Callable[..., Any] | None = None
        self._operator: Callable[..., Any] | None = None
        self._lock = threading.Lock()

    @property
    def is_compiled(self) -> bool:
        """Whether a run would call XLA's executable."""
        return self._jitted is not None

    def compile(self, arrays: Sequence[Any]) -> list[Any]:
        """Traces, compiles and runs the Program; if that fails it stays as it was."""
        with self._lock:
            if self._jitted is not None:
                return self._jitted(*arrays)
            start = time.perf_counter()
            jaxpr = self.jaxpr
            options = compiler_options(len(self.calls), self.avals, of_pieces=self.of_pieces)
            jitted = jax.jit(jaxpr_as_fun(jaxpr), compiler_options=options)
            results = jitted(*arrays)
            self.options = options
            self.seconds = time.perf_counter() - start
            self._jitted = jitted
            report.note_compilation(self)
            return results

    def __call__(self, *arrays: Any) -> list[Any]:
        jitted = self._jitted
        return self.compile(arrays) if jitted is None else jitted(*arrays)

    @property
    def kernel(self) -> Callable[..., Any]:
        """The Program as one kernel of a larger Program, which XLA fuses with nothing outside."""
        if self._kernel is None:
            calls, outputs = self.calls, self.outputs

            def piece(*arrays: Any) -> Any:
                return jax.lax.optimization_barrier(tuple(run_for(calls, outputs, arrays)))

            self._kernel = jax.jit(piece)
        return self._kernel

    def operator(self, *tensors: Tensor) -> list[Tensor]:
        """The Program as an operator on tensors, which records a node: its rule is JAX's."""
        if self._operator is None:
            function = jaxpr_as_fun(self.jaxpr)
            spec = OperatorSpec(
                "CompiledBackward0",
                lambda *values: tuple(function(*values)),
                inputs=[f"value{i}" for i in range(len(self.avals))],
                outputs=[f"result{i}" for i in range(len(self.outputs))],
                node_name="CompiledBackward0",
            )
            self._operator = write_dispatcher(spec, ", ".join(spec.inputs))
        return list(self._operator(*tensors))

    def function(self, *arrays: Any) -> list[Any]:
        """The calls one by one, traced into whatever is being traced."""
        return run_for(self.calls, self.outputs, arrays)

    @property
    def jaxpr(self) -> ClosedJaxpr:
        """What was traced, one equation a kernel call; to be read beside `jax.make_jaxpr`'s."""
        if self._jaxpr is None:
            inputs = [
                jax.ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in self.avals
            ]
            self._jaxpr = jax.make_jaxpr(self.function)(*inputs)
        return self._jaxpr

    def _compiled(self) -> Any:
        function = jax.jit(jaxpr_as_fun(self.jaxpr), compiler_options=self.options)
        return function.lower(*self.jaxpr.in_avals).compile()

    def hlo(self) -> str:
        """The program as XLA compiled it; compiles it anew."""
        return self._compiled().as_text()

    def cost(self) -> dict[str, float]:
        """XLA's own estimate: floating point operations, bytes accessed; compiles it anew."""
        found = self._compiled().cost_analysis()
        return dict(found[0] if isinstance(found, list) else found or {})

    def __len__(self) -> int:
        return len(self.calls)

    def __str__(self) -> str:
        lines = [f"in{i}: {_shown(a)}" for i, a in enumerate(self.avals)]
        number = 0
        for kernel, inputs, count in self.calls:
            made = ", ".join(f"%{number + i}" for i in range(count))
            given = ", ".join(map(_name_of, inputs))
            lines.append(f"{made} = {kernel.__name__}({given})")
            number += count
        lines.append(f"return {', '.join(map(_name_of, self.outputs))}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        state = "compiled" if self.is_compiled else "not compiled"
        return (
            f"<Program: {len(self.calls)} calls, {len(self.avals)} inputs, "
            f"{len(self.outputs)} outputs, {state}>"
        )


def _name_of(number: int | None) -> str:
    if number is None:
        return "None"
    return f"%{number}" if number >= 0 else f"in{~number}"


def _shown(aval: Aval) -> str:
    return f"{aval.dtype.name}[{','.join(map(str, aval.shape))}]"


class Sealed:
    """A key that is hashed once: that of a large graph takes as long as looking it up."""

    __slots__ = ("hash", "key")

    def __init__(self, key: Hashable) -> None:
        self.key = key
        self.hash = hash(key)

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sealed) and self.key == other.key


class Cache:
    """What was made, by its key; the least recently used goes first. Shared by all threads.

    `weigh` says how many calls, or nodes, a thing has. What is kept is bounded in number and in
    weight, and one that is heavier than all may be together is not kept.
    """

    def __init__(self, weigh: Callable[[Any], int]) -> None:
        self.weigh = weigh
        self.evictions = 0
        self._made: OrderedDict[Sealed, tuple[Sealed, Any]] = OrderedDict()
        self._weight = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._made)

    def find(self, key: Hashable) -> Any:
        """What is there, or None."""
        sealed = Sealed(key)
        with self._lock:
            entry = self._made.get(sealed)
            if entry is None:
                return None
            own, found = entry
            self._made.move_to_end(own)  # the key that is there is found without being compared
            return found

    def keep(self, key: Hashable, made: Any) -> Any:
        """Keeps `made`, unless another thread was faster: what is there then."""
        if self.weigh(made) > MOST_CALLS:
            return made
        sealed = Sealed(key)
        with self._lock:
            own, found = self._made.setdefault(sealed, (sealed, made))
            self._made.move_to_end(own)
            if own is sealed:
                self._weight += self.weigh(made)
            while len(self._made) > config.compiled_cache_size or self._weight > MOST_CALLS:
                self._drop(next(iter(self._made)))
                self.evictions += 1
            return found

    def latest(self, count: int) -> list[Any]:
        """What was used last, at most `count` things, the last one first."""
        with self._lock:
            entries = itertools.islice(reversed(self._made.values()), count)
            return [made for _, made in entries]

    def forget(self, key: Hashable) -> None:
        """Takes out what is there, if anything is."""
        sealed = Sealed(key)
        with self._lock:
            if sealed in self._made:
                self._drop(sealed)

    def clear(self) -> None:
        """Takes out everything."""
        with self._lock:
            self._made.clear()
            self._weight = 0

    def _drop(self, sealed: Sealed) -> None:
        _, made = self._made.pop(sealed)
        self._weight -= self.weigh(made)
