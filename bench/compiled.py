"""The compiled backward: beside the eager one, beside what XLA alone takes, and beside torch's."""

from __future__ import annotations

import contextlib
import importlib
import time
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

import dyngraph as dg
from bench import programs, workloads
from bench.programs import Program, ready, torch
from bench.timing import Bound, Candidates, ratio, show, show_bounds, take_turns
from dyngraph.graph.node import kept_graphs

NEVER = 10**9


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

TITLE = "(j) backward alone, its graph kept"
EAGER, PIECES, WHOLE, TORCH = "eager", "in pieces", "whole", "torch eager"
ANEW = "whole, walked anew"
FLOOR, FAIR_FLOOR = "jitted vjp", "jitted vjp, with the cosines"


class Floor(NamedTuple):
    """A jitted vjp: its library, XLA's options, and whether it takes minutes to compile."""

    lib: Any = workloads.JNP
    options: Mapping[str, Any] = MappingProxyType({})
    slow: bool = False


def backward_alone(program: Program, floors: dict[str, Floor], *, slow: bool) -> Candidates:
    """Every way to the gradients of a loss whose graph is there."""
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

    def anew() -> None:  # as of a new graph: of one that is kept, the walk is remembered
        remembered = dict(kept_graphs)
        kept_graphs.clear()
        whole()
        kept_graphs.update(remembered)

    candidates: Candidates = {
        EAGER: backward_of(loss, leaves),
        PIECES: pieces,
        WHOLE: whole,
        ANEW: anew,
    }
    for name, floor in floors.items():
        if slow or not floor.slow:
            candidates[name] = jitted_vjp(program, floor)
    if torch is not None:
        candidates |= backward_by_torch(program, slow=slow)
    return candidates


def jitted_vjp(program: Program, floor: Floor) -> Callable[[], None]:
    """What XLA alone takes: the jitted function of `jax.vjp`, with its residuals as inputs."""
    plain = [jnp.asarray(a) for a in program.arrays]
    _, pullback = jax.vjp(lambda values: program.run(floor.lib, values), plain)
    jitted = jax.jit(
        lambda pullback, gradient: pullback(gradient), compiler_options=dict(floor.options)
    )
    one = jnp.ones(())
    return lambda: ready(jitted(pullback, one))


def backward_by_torch(program: Program, *, slow: bool) -> Candidates:
    """The same by torch, and by its compiled autograd, whose first call takes minutes."""
    parameters = [torch.from_numpy(a.copy()).requires_grad_() for a in program.arrays]
    loss = program.run(torch, parameters)
    switch: Any = importlib.import_module("torch._dynamo.compiled_autograd") if slow else None

    def eager() -> None:
        loss.backward(retain_graph=True)
        for p in parameters:
            p.grad = None

    def by_compiled_autograd() -> None:
        with switch._enable(torch.compile(backend="eager")):
            eager()

    candidates: Candidates = {TORCH: eager}
    if slow:
        began = time.perf_counter()
        by_compiled_autograd()
        seconds = time.perf_counter() - began
        candidates[f"torch compiled, {seconds:.0f} s first"] = by_compiled_autograd
    return candidates


class Workload(NamedTuple):
    """A program, its floors, how often it is measured, and the bounds."""

    make: Callable[[], Program]
    floors: dict[str, Floor]
    rounds: int
    bounds: list[Bound]


BACKWARDS = {
    "chain of 200 operators": Workload(
        programs.chain,
        {FLOOR: Floor(), FAIR_FLOOR: Floor(workloads.InputSaved)},
        40,
        [
            Bound(WHOLE, EAGER, 1 / 6),
            Bound(WHOLE, FLOOR, 1.8),
            Bound(WHOLE, FAIR_FLOOR, 1.8),
            Bound(WHOLE, TORCH, 0.5),
        ],
    ),
    "LSTM cell, T=64": Workload(
        programs.lstm,
        {
            FLOOR: Floor(options={"xla_disable_hlo_passes": "fusion"}),
            f"{FLOOR}, fused": Floor(slow=True),
        },
        20,
        [Bound(WHOLE, EAGER, 1 / 6), Bound(WHOLE, FLOOR, 1.5), Bound(WHOLE, TORCH, 0.55)],
    ),
    "mixture of 8 experts, 4 layers": Workload(
        programs.moe, {FLOOR: Floor()}, 30, [Bound(WHOLE, EAGER, 1 / 2), Bound(WHOLE, TORCH, 0.95)]
    ),
    "GPT": Workload(programs.gpt, {FLOOR: Floor()}, 15, [Bound(WHOLE, FLOOR, 1.15)]),
}


def show_backward(title: str, workload: Workload, rounds: float, *, slow: bool) -> list[Any]:
    """The backward alone of one workload, and its bounds."""
    make, floors, usual, bounds = workload
    candidates = backward_alone(make(), floors, slow=slow)
    with settings(compile_whole_after=NEVER):
        times = take_turns(candidates, rounds=max(3, int(usual * rounds)))
    figures = [ratio(candidate, EAGER, times) for candidate in times]
    show(title, figures)
    return [f._asdict() for f in figures + show_bounds(bounds, times)]
