"""`python -m bench [--rounds N] [--async-dispatch {on,off}] [--json FILE]`: the table of ratios."""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

import dyngraph as dg
from bench import compiled, deferred, lengths, optimizers, programs, steps, workloads
from bench.cold import measure
from bench.programs import Program, by_torch, ready, torch
from bench.timing import Candidates, compare, keep_freed_memory, show


def forward() -> Candidates:
    """(a), (d): 200 elementwise operators, by each way of calling them."""
    x, y = (jnp.asarray(a) for a in workloads.chain_arrays())
    half, one = jnp.asarray(0.5), jnp.asarray(1.0)  # a Python number costs jit more than an array
    leaf, other = dg.tensor(x, requires_grad=True), dg.tensor(y)

    def recording() -> None:
        ready(workloads.chain(dg, leaf, other))

    def no_grad() -> None:
        with dg.no_grad():
            ready(workloads.chain(dg, leaf, other))

    def inference() -> None:
        with dg.inference_mode():
            ready(workloads.chain(dg, leaf, other))

    candidates: Candidates = {
        "bare jitted kernels": lambda: ready(workloads.chain(workloads.JITTED, x, y, half, one)),
        "recording": recording,
        "no_grad": no_grad,
        "inference_mode": inference,
        "eager jax.numpy": lambda: ready(workloads.chain(workloads.JNP, x, y)),
    }
    if torch is not None:
        tx, ty = (torch.from_numpy(a) for a in workloads.chain_arrays())
        tx.requires_grad_()
        candidates["torch eager"] = lambda: workloads.chain(torch, tx, ty)
    return candidates


def both_ways(program: Program) -> Candidates:
    """Forward and backward of a program by dyngraph, un-jitted JAX and torch."""
    run, arrays = program
    plain = [jnp.asarray(a) for a in arrays]
    leaves = [dg.tensor(a, requires_grad=True) for a in arrays]

    def define_by_run() -> None:
        loss = run(dg, leaves)
        loss.backward()
        ready([leaf.grad for leaf in leaves])
        for leaf in leaves:
            leaf.grad = None

    value_and_grad = jax.value_and_grad(lambda values: run(workloads.JNP, values))
    candidates: Candidates = {
        "dyngraph": define_by_run,
        "un-jitted jax.value_and_grad": lambda: ready(value_and_grad(plain)),
    }
    return candidates | by_torch(program)


def chain_both_ways() -> Candidates:
    """(b): 200 elementwise operators and their backward."""
    return both_ways(programs.chain())


def lstm_both_ways() -> Candidates:
    """(c): the unrolled LSTM."""
    return both_ways(programs.lstm())


def gpt_both_ways() -> Candidates:
    """(c): the GPT."""
    return both_ways(programs.gpt())


def checkpoints() -> Candidates:
    """(f): the GPT, each of its blocks checkpointed; the names say what waits for backward."""
    symbols, targets, mask = (dg.tensor(a) for a in workloads.gpt_batch())
    leaves = [dg.tensor(a, requires_grad=True) for a in workloads.gpt_arrays()]

    def block(*args: Any) -> Any:
        return dg.utils.checkpoint.checkpoint(workloads.gpt_block, *args, use_reentrant=False)

    def loss(block: Any) -> Any:
        return workloads.gpt(dg, symbols, targets, mask, leaves, block)

    def step(block: Any) -> Callable[[], None]:
        def run() -> None:
            loss(block).backward()
            ready([leaf.grad for leaf in leaves])
            for leaf in leaves:
                leaf.grad = None

        return run

    def waiting(block: Any) -> str:
        step(block)()
        before = live_bytes()
        kept = loss(block)
        ready(kept)
        return f"{(live_bytes() - before) / 1e6:.1f} MB"

    return {
        f"kept: {waiting(workloads.gpt_block)}": step(workloads.gpt_block),
        f"checkpointed: {waiting(block)}": step(block),
    }


def live_bytes() -> int:
    """The bytes of all arrays that are alive."""
    return sum(array.nbytes for array in jax.live_arrays())


def slice_writes() -> Candidates:
    """(e): a row of a large matrix replaced, the row another each time."""
    count = 1000
    big, row = jnp.zeros((count, count)), jnp.ones(count)
    write = jax.jit(lambda x, i, v: x.at[i].set(v))
    places = itertools.cycle([jnp.asarray(i) for i in range(16)])
    numbers = itertools.cycle(range(16))
    tensor, value = dg.tensor(big), dg.tensor(row)
    leaf = dg.zeros(count, count, requires_grad=True)
    result = big

    def bare() -> None:
        nonlocal result
        result = write(result, next(places), row)
        ready(result)

    def in_place() -> None:
        tensor[next(numbers)] = value
        ready(tensor)

    def recorded() -> None:
        interior = leaf * 1
        ready(interior)
        interior[next(numbers)] = value
        ready(interior)

    def only_interior() -> None:
        ready(leaf * 1)

    candidates: Candidates = {
        "jitted .at[i].set": bare,
        "x[i] = v": in_place,
        "y = x * 1": only_interior,
        "y = x * 1; y[i] = v, recorded": recorded,
    }
    if torch is not None:
        there, part = torch.zeros(count, count), torch.ones(count)

        def by_torch() -> None:
            there[next(numbers)] = part

        candidates["torch"] = by_torch
    return candidates


def fast_gradcheck() -> Candidates:
    """(g): gradcheck in fast mode, for the batch and all weights, in 64 bits."""
    with jax.enable_x64(True):
        leaves = [dg.tensor(a, requires_grad=True) for a in workloads.mlp_arrays()]

    def forward_and_backward() -> None:
        with jax.enable_x64(True):
            ready(list(dg.autograd.grad(workloads.mlp(*leaves).sum(), leaves)))

    candidates: Candidates = {
        "forward and backward": forward_and_backward,
        "gradcheck": lambda: dg.autograd.gradcheck(workloads.mlp, leaves, fast_mode=True),
    }
    if torch is not None:
        theirs = [torch.from_numpy(a).requires_grad_() for a in workloads.mlp_arrays()]
        candidates["torch gradcheck"] = lambda: torch.autograd.gradcheck(
            workloads.mlp, theirs, fast_mode=True
        )
    return candidates


def jacobians() -> Candidates:
    """(h): the Jacobian of a function of 64 inputs with 256 outputs, by rows and all at once."""
    weights, point = workloads.jacobian_arrays()

    def candidates(lib: Any, wait: Callable[[Any], object], label: str) -> Candidates:
        first, second = (lib.tensor(w) for w in weights)
        x = lib.tensor(point)

        def function(x: Any) -> Any:
            return workloads.two_layers(lib, x, first, second)

        functional = lib.autograd.functional
        return {
            f"{label}loop": lambda: wait(functional.jacobian(function, x)),
            f"{label}vectorize=True": lambda: wait(
                functional.jacobian(function, x, vectorize=True)
            ),
            f"{label}func.jacrev": lambda: wait(lib.func.jacrev(function)(x)),
            f"{label}func.jacfwd": lambda: wait(lib.func.jacfwd(function)(x)),
        }

    found = candidates(dg, ready, "")
    arrays = [jnp.asarray(a) for a in (*weights, point)]
    found["un-jitted jax.jacrev"] = lambda: ready(
        jax.jacrev(lambda x: workloads.two_layers(workloads.JNP, x, *arrays[:2]))(arrays[2])
    )
    if torch is not None:
        found |= candidates(torch, lambda result: result, "torch ")
    return found


SECTIONS: dict[str, tuple[Callable[[], Candidates], int]] = {
    "(a)(d) forward, 200 elementwise operators on 64x64": (forward, 100),
    "(b) forward + backward of it": (chain_both_ways, 15),
    "(c) LSTM cell, T=64, batch 16, hidden 64": (lstm_both_ways, 7),
    "(c) GPT, 4 layers, d=128, T=64, batch 8": (gpt_both_ways, 9),
    "(e) a row of a 1000x1000 matrix replaced": (slice_writes, 200),
    "(f) GPT, each block checkpointed": (checkpoints, 9),
    "(g) gradcheck in fast mode, MLP of 3 layers, 64 bits": (fast_gradcheck, 15),
    "(h) Jacobian of a function with 256 outputs": (jacobians, 9),
    "(q) deferred: forward + backward of 200 elementwise operators": (deferred.chain, 40),
    "(q) deferred: LSTM cell, T=64": (deferred.lstm, 15),
    "(q) deferred: GPT": (deferred.gpt, 9),
    "(o) AdamW step of 200 parameters of 64x64": (optimizers.step, 100),
    "(p) training step, 200 elementwise operators": (lambda: steps.training(programs.chain()), 40),
    "(p) training step, LSTM cell": (lambda: steps.training(programs.lstm()), 9),
    "(p) training step, GPT": (lambda: steps.training(programs.gpt()), 12),
}


COMPILED: dict[str, Callable[[float], dict[str, Any]]] = {
    lengths.WALKS_TITLE: lengths.show_walks,
    lengths.FIRST_TITLE: lengths.show_first,
    lengths.UNROLLED_TITLE: lengths.show_unrolled,
    lengths.NAMES_TITLE: lengths.show_names,
}

COLD = {
    "elementwise chain": "chain_both_ways",
    "LSTM cell": "lstm_both_ways",
    "GPT": "gpt_both_ways",
}


def show_cold() -> dict[str, list[float]]:
    """The first steps of the programs above, each in a new process without a cache."""
    print(f"\n{COLD_TITLE}\n{'':32}{'import':>9}{'first':>9}{'second':>9}   seconds")
    figures = {}
    for name, make in COLD.items():
        cold = measure(name, make, "dyngraph")
        print(f"{name:32}{cold.start:9.2f}{cold.first:9.2f}{cold.second:9.3f}")
        figures[name] = [cold.start, cold.first, cold.second]
    return figures


COLD_TITLE = "cold: forward + backward in a new process, nothing compiled before"


def main() -> None:
    """Measures every section and prints it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=float, default=1.0, help="multiple of the usual rounds")
    parser.add_argument("--async-dispatch", choices=["on", "off"], default="on")
    parser.add_argument("--only", default="", help="sections whose title has this text")
    parser.add_argument("--slow", action="store_true", help="also what takes minutes to compile")
    parser.add_argument("--json", help="write the figures to this file too")
    options = parser.parse_args()
    keep_freed_memory()
    jax.config.update("jax_cpu_enable_async_dispatch", options.async_dispatch == "on")
    if torch is not None:
        torch.set_num_threads(1)
    print(f"{jax.devices()[0].device_kind}, jax {jax.__version__}", end="")
    print(f", jax_cpu_enable_async_dispatch {options.async_dispatch}", end="")
    print(f", torch {torch.__version__}" if torch is not None else ", no torch installed")
    print("ratio: time over that of the section's first row, in the same round; median of rounds")
    written: dict[str, Any] = {
        "about": {
            "device": jax.devices()[0].device_kind,
            "jax": jax.__version__,
            "torch": "none" if torch is None else torch.__version__,
            "options": " ".join(sys.argv[1:]),
        }
    }
    for title, (make, rounds) in SECTIONS.items():
        if options.only in title:
            figures = compare(make(), rounds=max(3, int(rounds * options.rounds)))
            show(title, figures)
            written[title] = [f._asdict() for f in figures]
    for name, workload in compiled.BACKWARDS.items():
        title = f"{compiled.TITLE}: {name}"
        if options.only in title:
            written[title] = compiled.show_backward(
                title, workload, options.rounds, slow=options.slow
            )
    for title, show_section in COMPILED.items():
        if options.only in title:
            written[title] = show_section(options.rounds)
    if options.only in COLD_TITLE:
        written[COLD_TITLE] = show_cold()
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(written, file, indent=1)


if __name__ == "__main__":
    main()
