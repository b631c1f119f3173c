"""Deferred mode: forward and backward of the programs, beside ordinary mode, one jitted function,
and torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

import dyngraph as dg
from bench import programs, workloads
from bench.compiled import compiled, settings
from bench.programs import Program, by_torch, ready
from bench.timing import Candidates

WITHOUT_FUSION = {"xla_disable_hlo_passes": "fusion"}


def both_ways(program: Program, options: Mapping[str, Any]) -> Candidates:
    """Forward and backward of a program; `options` are XLA's for the jitted function."""
    run, arrays = program
    leaves = [dg.tensor(a, requires_grad=True) for a in arrays]

    def step() -> None:
        run(dg, leaves).backward()

    def with_gradients(step: Callable[[], None]) -> Callable[[], None]:
        def run_and_wait() -> None:
            step()
            ready([leaf.grad for leaf in leaves])
            for leaf in leaves:
                leaf.grad = None

        return run_and_wait

    deferred = with_gradients(dg.deferred()(step))

    with settings(compile_after=1, compile_whole_after=1):
        deferred()
    jitted = jax.jit(
        jax.value_and_grad(lambda values: run(workloads.JNP, values)),
        compiler_options=dict(options),
    )
    plain = [jnp.asarray(a) for a in arrays]
    candidates: Candidates = {
        "dyngraph": with_gradients(step),
        "compiled backward": compiled(with_gradients(step)),
        "deferred": deferred,
        "one jitted JAX function": lambda: ready(jitted(plain)),
    }
    return candidates | by_torch(program)


def chain() -> Candidates:
    """(q): 200 elementwise operators."""
    return both_ways(programs.chain(), {})


def lstm() -> Candidates:
    """(q): the unrolled LSTM."""
    return both_ways(programs.lstm(), WITHOUT_FUSION)


def gpt() -> Candidates:
    """(q): the GPT."""
    return both_ways(programs.gpt(), {})
