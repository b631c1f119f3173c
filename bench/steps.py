"""A whole training step: by `dg.compile`, by the other ways, and by a function jitted by hand."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import optax

import dyngraph as dg
from bench import workloads
from bench.programs import Program, ready, torch
from bench.timing import Candidates
from dyngraph.compiled.fusion import compiler_options

RATE = 1e-3


def training(program: Program) -> Candidates:
    """(p): loss, gradients and AdamW. The hand-written function donates parameters and state, and
    is compiled with the options that dyngraph chose for its own."""
    run, arrays = program

    def define_by_run(way: str) -> Any:
        leaves = [dg.tensor(a, requires_grad=True) for a in arrays]
        optimizer = dg.optim.AdamW(leaves, lr=RATE)

        def step() -> dg.Tensor:
            optimizer.zero_grad()
            loss = run(dg, leaves)
            with dg.compiled_autograd(way == "compiled backward"):
                loss.backward()
            optimizer.step()
            return loss

        whole = dg.compile(step, disable=way != "dg.compile")
        for _ in range(3):
            whole()
        calls = len(whole.programs[0].jaxpr.eqns) if way == "dg.compile" else 0
        return calls, lambda: ready([whole(), *leaves])

    ways = {way: define_by_run(way) for way in ("dg.compile", "compiled backward", "dyngraph")}
    candidates: Candidates = {
        "jitted, donated JAX and optax": by_hand(program, ways["dg.compile"][0]),
        **{way: made for way, (_, made) in ways.items()},
    }
    if torch is not None:
        theirs = [torch.from_numpy(a.copy()).requires_grad_() for a in arrays]
        optimizer = torch.optim.AdamW(theirs, lr=RATE, fused=True)

        def by_torch() -> None:
            optimizer.zero_grad()
            run(torch, theirs).backward()
            optimizer.step()

        candidates["torch eager, fused AdamW"] = by_torch
    return candidates


def by_hand(program: Program, calls: int) -> Any:
    """The step as JAX has it written."""
    run, arrays = program
    rule = optax.adamw(RATE, weight_decay=1e-2)
    values = [jnp.array(a) for a in arrays]
    state = rule.init(values)

    def pure(values: Any, state: Any) -> Any:
        loss, grads = jax.value_and_grad(lambda v: run(workloads.JNP, v))(values)
        updates, state = rule.update(grads, state, values)
        return loss, optax.apply_updates(values, updates), state

    options = compiler_options(calls, values)
    jitted = jax.jit(pure, donate_argnums=(0, 1), compiler_options=options)

    def step() -> None:
        nonlocal values, state
        loss, values, state = jitted(values, state)
        ready([loss, *values])

    return step
