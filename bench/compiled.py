"""The compiled backward: beside the eager one, beside what XLA alone takes, and beside torch's."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

import dyngraph as dg
from bench import programs, workloads
from bench.programs import Program, ready, torch
from bench.timing import Bound, Candidates, ratio, show, show_bounds, take_turns
from dyngraph.compiled import report
from dyngraph.compiled.walk import walk
from dyngraph.graph.engine import GraphTask
from dyngraph.values import ARRAYS

NEVER = 10**9
WITHOUT_FUSION = {"xla_disable_hlo_passes": "fusion"}


@contextlib.contextmanager
def settings(**values: Any) -> Iterator[None]:
    """`dg.config` with these settings, in a block."""
    before = {name: getattr(dg.config, name) for name in values}
    try:
        for name, value in values.items():
            setattr(dg.config, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(dg.config, name, value)


class Compiled(NamedTuple):
    """How many programs were compiled so far, and the seconds that it took."""

    count: int
    seconds: float


def compiled_so_far() -> Compiled:
    """What the report says."""
    return Compiled(report.S.compilations, report.S.seconds)


def backward_of(loss: Any, leaves: list[Any]) -> Callable[[], None]:
    """The backward of a loss, whose graph is kept, into leaves without gradients."""

    def run() -> None:
        loss.backward(retain_graph=True)
        ready([leaf.grad for leaf in leaves])
        for leaf in leaves:
            leaf.grad = None

    return run


def compiled(run: Callable[[], None]) -> Callable[[], None]:
    """`run`, with the compiled backward."""
    return dg.compiled_autograd()(run)


# --- the backward alone -----------------------------------------------------------------------

EAGER, PIECES, WHOLE, FLOOR, TORCH = "eager", "in pieces", "whole", "jitted vjp", "torch eager"


def backward_alone(program: Program, floor: dict[str, Any], *, slow: bool) -> Candidates:
    """Every way to the gradients of a loss whose graph is there; `floor` are XLA's options for the
    jitted vjp."""
    run, arrays = program
    leaves = [dg.tensor(a, requires_grad=True) for a in arrays]
    loss = run(dg, leaves)
    whole = compiled(backward_of(loss, leaves))
    # One node more, so that this is another sequence of kernels than the one compiled whole.
    pieces = compiled(backward_of(loss * 1, leaves))
    with settings(compile_after=1, compile_whole_after=NEVER):
        pieces()
    with settings(compile_whole_after=1):
        whole()
    plain = [jnp.asarray(a) for a in arrays]
    _, pullback = jax.vjp(lambda values: run(workloads.JNP, values), plain)
    one = jnp.ones(())

    def vjp(options: dict[str, Any]) -> Callable[[], None]:
        jitted = jax.jit(lambda pullback, gradient: pullback(gradient), compiler_options=options)
        return lambda: ready(jitted(pullback, one))

    candidates: Candidates = {
        EAGER: backward_of(loss, leaves),
        PIECES: pieces,
        WHOLE: whole,
        FLOOR: vjp(floor),
    }
    if slow and floor:
        candidates[f"{FLOOR}, fused"] = vjp({})
    if torch is not None:
        candidates |= backward_by_torch(program, slow=slow)
    return candidates


def backward_by_torch(program: Program, *, slow: bool) -> Candidates:
    """The same by torch, and by its compiled autograd, whose first call takes minutes."""
    parameters = [torch.from_numpy(a.copy()).requires_grad_() for a in program.arrays]
    loss = program.run(torch, parameters)

    def eager() -> None:
        loss.backward(retain_graph=True)
        for p in parameters:
            p.grad = None

    def by_compiled_autograd() -> None:
        with torch._dynamo.compiled_autograd._enable(torch.compile(backend="eager")):
            eager()

    candidates: Candidates = {TORCH: eager}
    if slow:
        began = time.perf_counter()
        by_compiled_autograd()
        seconds = time.perf_counter() - began
        candidates[f"torch compiled, {seconds:.0f} s first"] = by_compiled_autograd
    return candidates


class Workload(NamedTuple):
    """A program, XLA's options for its jitted vjp, how often it is measured, and the bounds."""

    make: Callable[[], Program]
    floor: dict[str, Any]
    rounds: int
    bounds: list[Bound]


BACKWARDS = {
    "chain of 200 operators": Workload(
        programs.chain,
        {},
        40,
        [Bound(WHOLE, EAGER, 1 / 6), Bound(WHOLE, FLOOR, 1.8), Bound(WHOLE, TORCH, 0.5)],
    ),
    "LSTM cell, T=64": Workload(
        programs.lstm,
        WITHOUT_FUSION,
        20,
        [Bound(WHOLE, EAGER, 1 / 6), Bound(WHOLE, FLOOR, 1.5), Bound(WHOLE, TORCH, 0.55)],
    ),
    "mixture of 8 experts, 4 layers": Workload(
        programs.moe, {}, 30, [Bound(WHOLE, EAGER, 1 / 2), Bound(WHOLE, TORCH, 0.95)]
    ),
    "GPT": Workload(programs.gpt, {}, 15, [Bound(WHOLE, FLOOR, 1.15)]),
}


def show_backwards(rounds: float, *, slow: bool) -> dict[str, Any]:
    """The backward alone of each workload."""
    written = {}
    for name, (make, floor, usual, bounds) in BACKWARDS.items():
        candidates = backward_alone(make(), floor, slow=slow)
        with settings(compile_whole_after=NEVER):
            times = take_turns(candidates, rounds=max(3, int(usual * rounds)))
        figures = [ratio(candidate, EAGER, times) for candidate in times]
        show(f"{BACKWARDS_TITLE}: {name}", figures)
        written[name] = [f._asdict() for f in figures + show_bounds(bounds, times)]
    return written


BACKWARDS_TITLE = "(j) backward alone, its graph kept"


# --- the key walk ---------------------------------------------------------------------------------

WALKS = {
    "chain of 200 operators": programs.chain,
    "chain of 2,000 operators": lambda: programs.chain(200),
    "chain of 10,000 operators": lambda: programs.chain(1000),
    "LSTM cell, T=64": programs.lstm,
    "mixture of experts": programs.moe,
    "GPT": programs.gpt,
}
MICROSECONDS_A_NODE = 2.0


def show_walks(rounds: float, *, slow: bool) -> dict[str, Any]:
    """The key walk with the gathering of the arrays, a node."""
    print(f"\n{WALKS_TITLE}\n{'':32}{'nodes':>9}{'us/node':>9}   middle half")
    written = {}
    for name, make in WALKS.items():
        run, arrays = make()
        loss = run(dg, [dg.tensor(a, requires_grad=True) for a in arrays])
        edges, ones = [(loss.grad_fn, 0)], [jnp.ones(())]

        def once(edges: Any = edges, ones: Any = ones) -> Any:
            return walk(GraphTask(ARRAYS, keep_graph=True), edges, ones)

        nodes = len(once().nodes)
        times = take_turns({name: once}, rounds=max(4, int(50 * rounds)))[name]
        low, middle, high = statistics.quantiles([1e6 * t / nodes for t in times], n=4)
        said = "met" if middle <= MICROSECONDS_A_NODE else "MISSED"
        print(f"{name:32}{nodes:9}{middle:9.2f}   {low:.2f} - {high:.2f}", end="")
        print(f"   at most {MICROSECONDS_A_NODE:.0f}: {said}")
        written[name] = [nodes, low, middle, high]
    return written


WALKS_TITLE = "(k) the key walk and the gathering of arrays"
