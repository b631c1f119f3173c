"""The compiled backward of graphs that are large, or another one at every step."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

import dyngraph as dg
from bench import programs, workloads
from bench.compiled import EAGER, NEVER, backward_of, compiled, settings
from bench.programs import ready
from bench.timing import Bound, Times, ratio, show_bounds, take_turns
from dyngraph.compiled.walk import walk
from dyngraph.graph.engine import GraphTask
from dyngraph.values import ARRAYS

# --- the key walk ---------------------------------------------------------------------------------

WALKS_TITLE = "(k) the key walk and the gathering of arrays"
WALKS: dict[str, Callable[[], programs.Program]] = {
    "chain of 200 operators": programs.chain,
    "chain of 2,000 operators": lambda: programs.chain(200),
    "chain of 10,000 operators": lambda: programs.chain(1000),
    "LSTM cell, T=64": programs.lstm,
    "mixture of experts": programs.moe,
    "GPT": programs.gpt,
}
MICROSECONDS_A_NODE = 2.0


def show_walks(rounds: float) -> dict[str, Any]:
    """The walk alone, a node: of a new graph, and of one that was kept and walked before."""
    print(f"\n{WALKS_TITLE}\n{'':32}{'nodes':>9}{'us/node':>9}   middle half   graph kept")
    written = {}
    for name, make in WALKS.items():
        run, arrays = make()
        loss = run(dg, [dg.tensor(a, requires_grad=True) for a in arrays])
        edges, ones = [(loss.grad_fn, 0)], [jnp.ones(())]

        def once(edges: Any = edges, ones: Any = ones, *, keep_graph: bool = False) -> Any:
            return walk(GraphTask(ARRAYS, keep_graph=keep_graph), edges, ones)

        def again(once: Any = once) -> Any:
            return once(keep_graph=True)

        found = once()
        nodes = len(found.operators) + len(found.accumulating)
        for _ in range(2):
            again()
        times = take_turns({"new": once, "kept": again}, rounds=max(4, int(50 * rounds)))
        low, middle, high = statistics.quantiles([1e6 * t / nodes for t in times["new"]], n=4)
        kept = statistics.median(times["kept"]) * 1e6 / nodes
        print(f"{name:32}{nodes:9}{middle:9.2f}   {low:.2f} - {high:.2f}   {kept:10.2f}", end="")
        print(f"   at most {MICROSECONDS_A_NODE:.0f}: {verdict(middle, MICROSECONDS_A_NODE)}")
        written[name] = [nodes, low, middle, high, kept]
    return written


def verdict(figure: float, most: float) -> str:
    """How a figure stands to its bound."""
    return "met" if figure <= most else "MISSED"


# --- first calls ------------------------------------------------------------------------------

FIRST_TITLE = "(l) the first compiled backwards of a new process without a compilation cache"
FIRST: dict[str, tuple[str, int, int, float | None]] = {
    # name: (program, compile_after, compile_whole_after, bound of the first in seconds)
    "LSTM cell, T=64": ("lstm()", 1, NEVER, 3.0),
    "the same, compile_after=2": ("lstm()", 2, NEVER, None),
    "the same, whole": ("lstm()", 1, 1, 10.0),
    "GPT": ("gpt()", 1, NEVER, 5.0),
    "chain of 200 operators": ("chain()", 1, NEVER, None),
    "chain of 2,000": ("chain(200)", 1, NEVER, None),
    "chain of 10,000": ("chain(1000)", 1, NEVER, None),
    "2,000 in an order of chance": ("shuffled(2000)", 1, NEVER, None),
    "10,000 in an order of chance": ("shuffled(10000)", 1, NEVER, None),
}
_FIRST = """
from bench.lengths import first_backwards
from bench.programs import *
print(*first_backwards({make}, {after}, {whole}))
"""


def first_backwards(program: programs.Program, after: int, whole: int) -> list[float]:
    """Seconds of the first three backwards and of a later one, and how many programs were
    compiled."""
    run, arrays = program
    leaves = [dg.tensor(a, requires_grad=True) for a in arrays]
    loss = run(dg, leaves)
    ready(loss)
    backward = compiled(backward_of(loss, leaves))
    times = []
    with settings(compile_after=after, compile_whole_after=whole):
        for _ in range(8):
            start = time.perf_counter()
            backward()
            times.append(time.perf_counter() - start)
    return [*times[:3], statistics.median(times[3:]), dg.compiled.stats().compilations]


def in_new_process(code: str) -> list[float]:
    """The numbers that the code prints last, in a process of its own without a cache of compiled
    kernels."""
    environment = {**os.environ, "JAX_ENABLE_COMPILATION_CACHE": "false"}
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    return [float(value) for value in done.stdout.splitlines()[-1].split()]


def show_first(rounds: float) -> dict[str, Any]:
    """The first backwards of each program."""
    head = "".join(f"{word:>9}" for word in ("first", "second", "third", "later", "programs"))
    print(f"\n{FIRST_TITLE}\n{'':32}{head}   seconds")
    written = {}
    for name, (make, after, whole, most) in FIRST.items():
        figures = in_new_process(_FIRST.format(make=make, after=after, whole=whole))
        row = "".join(f"{figure:9.3f}" for figure in figures[:4])
        said = "" if most is None else f"   first at most {most:.0f}: {verdict(figures[0], most)}"
        print(f"{name:32}{row}{figures[4]:9.0f}{said}", flush=True)
        written[name] = figures
    return written


# --- an unrolled loop of other lengths ------------------------------------------------------------

UNROLLED_TITLE = "(m) LSTM cell of other lengths, from pieces: what each length compiles"
LENGTHS = (64, 80, 100, 37, 64)
_UNROLLED = """
from bench.lengths import *
print(*unrolled())
"""


def unrolled() -> list[float]:
    """For each of `LENGTHS` how many programs are compiled, and the seconds of its first
    backward."""
    found = []
    for steps in LENGTHS:
        before = dg.compiled.stats().compilations
        first, *_ = first_backwards(programs.lstm(steps), 1, NEVER)
        found += [dg.compiled.stats().compilations - before, first]
    return found


def show_unrolled(rounds: float) -> dict[str, Any]:
    """The programs that each length needs."""
    print(f"\n{UNROLLED_TITLE}\n{'':32}{'compiled':>9}{'first':>9}   seconds")
    figures = in_new_process(_UNROLLED)
    for place, (steps, count, seconds) in enumerate(
        zip(LENGTHS, figures[::2], figures[1::2], strict=True)
    ):
        said = f"   at most 2: {verdict(count, 2)}" if place else ""
        print(f"{f'T={steps}':32}{count:9.0f}{seconds:9.3f}{said}")
    return {UNROLLED_TITLE: figures}


# --- training on names ----------------------------------------------------------------------------

NAMES_TITLE = "(n) training on names, an RNN cell unrolled over each name, 16 of one length a step"
STEPS, SETTLED = 400, 200
_NAMES = """
from bench.lengths import *
print(*train_on_names({whole}))
"""


def train_on_names(whole: int, steps: int = STEPS) -> list[float]:
    """For each step: the length of its names, how many programs its backward compiled, and the
    seconds of its compiled and of its eager backward."""
    from dyngraph.demo.first_names import load_names

    data = load_names(0).train
    draws = np.random.default_rng(0)
    shares = np.array([len(rows) for rows in data.values()], float)
    lengths = draws.choice(list(data), steps, p=shares / shares.sum())
    leaves = [dg.tensor(a, requires_grad=True) for a in workloads.rnn_arrays()]
    found: list[float] = []
    with settings(compile_whole_after=whole):
        for step, length in enumerate(lengths.tolist()):
            rows = data[length]
            words = dg.tensor(rows[draws.integers(0, len(rows), 16)])
            loss = workloads.rnn(dg, words, leaves)
            ready(loss)
            eager = backward_of(loss, leaves)
            runs = [compiled(eager), eager]
            before = dg.compiled.stats().compilations
            seconds = [0.0, 0.0]
            for place in (0, 1) if step % 2 else (1, 0):
                start = time.perf_counter()
                runs[place]()
                seconds[place] = time.perf_counter() - start
            found += [length, dg.compiled.stats().compilations - before, *seconds]
            with dg.no_grad():
                for leaf, grad in zip(leaves, dg.autograd.grad(loss, leaves), strict=True):
                    leaf -= 0.1 * grad
    return found


def show_names(rounds: float) -> dict[str, Any]:
    """Which steps compiled, and what a settled step's backward takes."""
    print(f"\n{NAMES_TITLE}")
    written = {}
    for name, whole in (("in pieces", NEVER), ("as configured", dg.config.compile_whole_after)):
        figures = in_new_process(_NAMES.format(whole=whole))
        counts = [int(count) for count in figures[1::4]]
        at = [step for step, count in enumerate(counts) if count]
        print(f"{name}: {sum(counts)} programs compiled, at steps {', '.join(map(str, at))}")
        times: Times = {EAGER: figures[3::4][SETTLED:], name: figures[2::4][SETTLED:]}
        bound = show_bounds([Bound(name, EAGER, 1 / 3)], times)
        written[name] = [counts, ratio(name, EAGER, times)._asdict(), *bound]
    return written
