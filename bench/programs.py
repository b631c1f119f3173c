"""The workloads as losses of their weights, and the libraries that they are measured with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import dyngraph as dg
from bench import workloads

try:
    import torch  # pyright: ignore[reportMissingImports]
except ImportError:
    torch: Any = None


class Program(NamedTuple):
    """`run(lib, weights)` is the loss; `arrays` are the weights that gradients are taken for."""

    run: Callable[[Any, list[Any]], Any]
    arrays: list[np.ndarray]


def ready(result: Any) -> None:
    """Waits for a result of dyngraph's or JAX's."""
    jax.block_until_ready(
        jax.tree.map(lambda r: r.detach().jax() if isinstance(r, dg.Tensor) else r, result)
    )


def libraries() -> list[Any]:
    """The libraries to measure, as `Program.run` is told them."""
    return [dg, workloads.JNP, workloads.InputSaved, *([torch] if torch is not None else [])]


def by_torch(program: Program) -> dict[str, Callable[[], object]]:
    """Forward and backward of a program by torch, if it is installed."""
    if torch is None:
        return {}
    run, arrays = program
    parameters = [torch.from_numpy(a.copy()).requires_grad_() for a in arrays]

    def step() -> None:
        run(torch, parameters).backward()
        for p in parameters:
            p.grad = None

    return {"torch eager": step}


def constant(lib: Any, array: Any) -> Any:
    """A constant of the library's own kind."""
    if lib in (workloads.JNP, workloads.InputSaved):
        return jnp.asarray(array)
    if lib is dg:
        return dg.tensor(array)
    value = torch.from_numpy(array)
    return value if value.is_floating_point() else value.long()


def chain(rounds: int = 20) -> Program:
    """Ten elementwise operators a round."""
    x, y = workloads.chain_arrays()
    others = {lib: constant(lib, y) for lib in libraries()}
    return Program(
        lambda lib, values: workloads.chain(lib, values[0], others[lib], rounds=rounds).sum(), [x]
    )


def shuffled(count: int) -> Program:
    """So many elementwise operators in an order that does not repeat."""
    x, y = workloads.chain_arrays()
    others = {lib: constant(lib, y) for lib in libraries()}
    return Program(
        lambda lib, values: workloads.shuffled(lib, values[0], others[lib], count).sum(), [x]
    )


def lstm(steps: int = 64) -> Program:
    """The unrolled LSTM."""
    inputs, *weights = workloads.lstm_arrays(steps)
    given = {lib: [constant(lib, x) for x in inputs] for lib in libraries()}
    zeros = {lib: constant(lib, 0 * inputs[0]) for lib in libraries()}
    return Program(lambda lib, values: workloads.lstm(lib, given[lib], zeros[lib], values), weights)


def moe() -> Program:
    """The mixture of experts."""
    x, *weights = workloads.moe_arrays()
    given = {lib: constant(lib, x) for lib in libraries()}
    return Program(lambda lib, values: workloads.moe(lib, given[lib], values), weights)


def gpt() -> Program:
    """The GPT."""
    data = {lib: [constant(lib, a) for a in workloads.gpt_batch()] for lib in libraries()}

    def run(lib: Any, weights: list[Any]) -> Any:
        symbols, targets, mask = data[lib]
        return workloads.gpt(lib, symbols, targets, mask, weights)

    return Program(run, workloads.gpt_arrays())
