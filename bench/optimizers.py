"""An optimizer's step: AdamW on 200 parameters, by dyngraph, by optax alone, and by torch."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

import dyngraph as dg
from bench.programs import ready, torch
from bench.timing import Candidates

COUNT = 200


def step() -> Candidates:
    """(o): the optax update is jitted and donates parameters and state; each step waits for its
    parameters."""
    draws = np.random.default_rng(0)
    values = [draws.standard_normal((64, 64)).astype(np.float32) for _ in range(COUNT)]
    rule = optax.adamw(1e-3, weight_decay=1e-2)

    def update(params: Any, state: Any, grads: Any) -> Any:
        updates, state = rule.update(grads, state, params)
        return optax.apply_updates(params, updates), state

    jitted = jax.jit(update, donate_argnums=(0, 1))
    arrays, grads = ([jnp.array(v) for v in values] for _ in range(2))
    state = rule.init(arrays)

    def by_optax() -> None:
        nonlocal arrays, state
        arrays, state = jitted(arrays, state, grads)
        ready(arrays)

    params = [dg.tensor(v, requires_grad=True) for v in values]
    for p, value in zip(params, values, strict=True):
        p.grad = dg.tensor(value)
    adamw = dg.optim.AdamW(params)
    others = [dg.tensor(v, requires_grad=True) for v in values]
    for p, value in zip(others, values, strict=True):
        p.grad = dg.tensor(value)
    wrapped = dg.optim.Optax(others, rule)

    def by_dyngraph(params: Any, optimizer: Any) -> None:
        optimizer.step()
        jax.block_until_ready([p._cell.array for p in params])

    candidates: Candidates = {
        "jitted, donated optax": by_optax,
        "optim.AdamW": lambda: by_dyngraph(params, adamw),
        "optim.Optax": lambda: by_dyngraph(others, wrapped),
    }
    if torch is not None:
        for kind in ("foreach", "fused"):
            theirs = [torch.from_numpy(v.copy()).requires_grad_() for v in values]
            for p, value in zip(theirs, values, strict=True):
                p.grad = torch.from_numpy(value.copy())
            options: Any = {kind: True}
            candidates[f"torch {kind}"] = torch.optim.AdamW(theirs, **options).step
    return candidates
