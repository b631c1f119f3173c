"""compare: one function by every way, measured in turns."""

from __future__ import annotations

import linecache
import os
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dyngraph import random
from dyngraph.comparison.agreement import agreement
from dyngraph.comparison.arguments import Arguments
from dyngraph.comparison.listing import Listing
from dyngraph.comparison.report import Comparison, Row
from dyngraph.comparison.rounds import Stopwatch, take_turns
from dyngraph.comparison.ways import WAYS, CompiledBackward, JaxGrad, Jitted, Subject, Way
from dyngraph.func.argnums import Argnums
from dyngraph.interop.to_jax import to_jax
from dyngraph.user_code import shown_place

SEED = 0
"""What the random draws of every first call start from, so that all ways draw the same."""
OUTSIDE = tuple(os.path.dirname(module.__file__ or "") + os.sep for module in (jax, jnp, np))
OURS = os.path.dirname(os.path.dirname(__file__)) + os.sep


def compare(
    fn: Callable[..., Any],
    *args: Any,
    argnums: Argnums | None = None,
    twin: Callable[..., Any] | None = None,
    namespaces: tuple[Any, Any] | None = None,
    modes: Sequence[str] = tuple(WAYS),
    rounds: int = 20,
    seconds: float = 10.0,
) -> Comparison:
    """Gradients of `fn(*args)` by define-by-run and by function transforms, side by side.

    `fn` takes tensors and returns a tensor without dims. `args` are tensors, arrays, structures of
    them, and anything else, which is passed on. Gradients are for the floating point ones among the
    arguments at `argnums`, all arguments by default. JAX gets the same function through
    `interop.to_jax`; or `twin`, a function of arrays; or, with `namespaces=(ours, theirs)`, `fn`
    called as `fn(theirs, *args)` on arrays, and as `fn(ours, *args)` on tensors.

    The ways in `modes` are

    - "eager": define-by-run, kernel by kernel; the others are compared with the first that works;
    - "compiled": with the compiled backward;
    - "no_grad": the forward alone, not recorded;
    - "step": define-by-run, forward and backward, as one program by `dg.compile`;
    - "traced": define-by-run, the Engine's walk included, inside `jax.jit`;
    - "jax.grad": `jax.value_and_grad`, not jitted;
    - "jax.jit": `jax.jit` of it.

    After first calls, in this order, each way runs until it compiles nothing more, then they take
    turns for `rounds` rounds or `seconds` seconds. What ran in the process before is compiled
    already, so first times mean most in a new one. A way that fails has its reason in its row.

    The result prints as a table, shows itself in notebooks, and has `rows`, `listings` (jaxprs of
    both worlds with their differences marked), `to_dict()` and `json()`.

    Raises RuntimeError where no argument has a gradient, ValueError for a mode that is not there,
    and what the first way raises where all of them fail.

    >>> def loss(w, x):
    ...     return (x @ w).tanh().square().mean()
    >>> found = dg.compare(loss, dg.ones(3), dg.ones(2, 3), modes=["eager", "jax.jit"], rounds=2)
    >>> found["jax.jit"].agreement.absolute < 1e-6
    True
    """
    unknown = [mode for mode in modes if mode not in WAYS]
    if unknown or not modes:
        raise ValueError(
            f"dg.compare: modes has {unknown or 'nothing'}: expected some of {', '.join(WAYS)}"
        )
    subject = _subject(fn, Arguments(args, argnums), twin, namespaces)
    ways = {mode: WAYS[mode](subject) for mode in modes}
    rows = {mode: Row(mode, way.name, way.meaning) for mode, way in ways.items()}
    with random.fork_rng():
        for mode, way in ways.items():
            _start(way, rows[mode])
        runs = {mode: way for mode, way in ways.items() if rows[mode].error is None}
        if not runs:
            raise _first_failure(rows)
        _settle(runs, rows, seconds)
        calls = {
            mode: lambda way=way: jax.block_until_ready(way.again()) for mode, way in runs.items()
        }
        for mode, times in take_turns(calls, rounds=rounds, seconds=seconds).items():
            rows[mode].times = times
        _measure(runs, rows)
        listings = _listings(ways, rows)
    _agree(rows)
    jax_form = "fn on its own namespace" if namespaces else "twin" if twin else "to_jax(fn)"
    name = getattr(fn, "__name__", type(fn).__name__)
    return Comparison(name, list(rows.values()), listings, jax_form)


def _subject(
    fn: Callable[..., Any],
    arguments: Arguments,
    twin: Callable[..., Any] | None,
    namespaces: tuple[Any, Any] | None,
) -> Subject:
    """The function in both worlds."""
    if namespaces is not None:
        if twin is not None:
            raise ValueError("dg.compare: give twin or namespaces, not both")
        ours, theirs = namespaces
        return Subject(
            lambda *given: fn(ours, *given),
            lambda *given: fn(theirs, *given),
            arguments,
        )
    if twin is None:
        pure = to_jax(fn, takes_key=True)
        key = jax.random.key_data(jax.random.key(SEED))
        twin = lambda *given: pure(key, *given)  # noqa: E731
    return Subject(fn, twin, arguments)


def _start(way: Way, row: Row) -> None:
    """The first call, whose gradients are those that are compared."""
    timer = Stopwatch()
    try:
        random.manual_seed(SEED)
        value, grads = jax.block_until_ready(way.first())
        row.first = timer.lap()
        row.parts = dict(way.parts)
        row.value = np.asarray(value)
        # JAX's gradient of a complex input is the conjugate of ours
        turned = np.conj if isinstance(way, JaxGrad) or way.name.startswith("jax.") else np.asarray
        row.gradients = [turned(np.asarray(g)) for g in grads] if way.has_gradients else None
    except Exception as error:
        row.failure = error
        row.error = reason(error)


def _first_failure(rows: dict[str, Row]) -> BaseException:
    error = next(iter(rows.values())).failure
    assert error is not None
    error.add_note("This happened in dg.compare, where every way failed.")
    return error


def _settle(runs: dict[str, Way], rows: dict[str, Row], seconds: float) -> None:
    """Runs each way until it compiles nothing more, or until its share of the seconds is over."""
    for mode, way in runs.items():
        timer, row = Stopwatch(), rows[mode]
        while row.warm_calls < way.settles and row.warm_seconds < seconds / 2:
            jax.block_until_ready(way.again())
            row.warm_calls += 1
            row.warm_seconds += timer.lap()


def _measure(runs: dict[str, Way], rows: dict[str, Row]) -> None:
    for mode, way in runs.items():
        try:
            rows[mode].sizes = way.sizes()
        except Exception as error:
            rows[mode].note = f"its size is not known: {reason(error)}"


def _agree(rows: dict[str, Row]) -> None:
    """Compares each row's gradients with those of the first that has some."""
    expected = next((row for row in rows.values() if row.gradients is not None), None)
    for row in rows.values():
        if expected is not None and row.gradients is not None and row is not expected:
            assert expected.gradients is not None
            row.agreement = agreement(row.gradients, expected.gradients)


def _listings(ways: dict[str, Way], rows: dict[str, Row]) -> list[Listing]:
    """The jaxprs of both worlds beside each other, as far as there are any."""
    found = []
    compiled, by_jax = ways.get("compiled"), ways.get("jax.grad")
    if isinstance(compiled, CompiledBackward) and isinstance(by_jax, JaxGrad):
        programs = compiled.programs
        if len(programs) == 1 and rows["jax.grad"].error is None:
            value, pull = by_jax.pull()
            theirs = jax.make_jaxpr(lambda pull, one: pull(one))(pull, jnp.ones_like(value))
            title = "The backward alone"
            names = ("the compiled backward's Program", "the function of jax.vjp")
            found.append(Listing(title, names, programs[0].jaxpr, theirs))
    whole, jitted = ways.get("traced"), ways.get("jax.jit")
    if isinstance(whole, Jitted) and isinstance(jitted, Jitted):
        both = [rows[mode].error is None for mode in ("traced", "jax.jit")]
        if all(both):
            title = "Forward and backward"
            names = ("define-by-run, traced", "jax.value_and_grad")
            found.append(Listing(title, names, whole.traced.jaxpr, jitted.traced.jaxpr))
    return found


def reason(error: BaseException) -> str:
    """Why a way can't, in a line or two: for a value that tracing has not, where it is asked."""
    if isinstance(error, _NEEDS_VALUE):
        return (
            f"what it does depends on a value, at {_place(error)}; jax.jit traces without values. "
            "Write it with jax.lax.cond, while_loop or dg.where, or keep it define-by-run."
        )
    text = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


_NEEDS_VALUE = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
    jax.errors.NonConcreteBooleanIndexError,
)


def _place(error: BaseException) -> str:
    """The user's line from which an error came."""
    frames = traceback.extract_tb(error.__traceback__)
    for frame in reversed(frames):
        if not frame.filename.startswith((OURS, *OUTSIDE, "<dispatcher", "<frozen")):
            line = (frame.line or linecache.getline(frame.filename, frame.lineno or 0)).strip()
            where = os.path.basename(shown_place(frame.filename, frame.lineno))
            return f"{where}: `{line}`" if line else where
    return "a line that is not known"
