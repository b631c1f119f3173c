"""Training steps by an ordinary backward, a compiled one, wholly compiled, or by `jax.grad`; and
their files."""

from __future__ import annotations

import statistics
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from os import PathLike
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

import dyngraph as dg
from dyngraph.demo.problem import Batch, Problem

EAGER, COMPILED, WHOLE, JAX = MODES = ("eager", "compiled", "whole", "jax")


def rule_of(problem: Problem) -> optax.GradientTransformation:
    """How gradients move the parameters: the same in all modes."""
    return optax.chain(optax.clip_by_global_norm(1.0), optax.adam(problem.rate))


class Trainer(ABC):
    """A way of making training steps."""

    mode: str

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    @abstractmethod
    def step(self, batch: Batch) -> float:
        """Moves the parameters against the gradient of the batch's loss, which is returned."""

    @abstractmethod
    def state(self) -> Any:
        """What it remembers between steps, to be saved."""

    @abstractmethod
    def load_state(self, state: Any) -> None:
        """Takes up what `state` gave, after the model was loaded."""

    @abstractmethod
    def put_into_model(self) -> None:
        """Brings the model's parameters up to date."""


class DynamicTrainer(Trainer):
    """Steps whose graph grows as the loss runs."""

    def __init__(self, problem: Problem, mode: str) -> None:
        super().__init__(problem)
        self.mode = mode
        self.optimizer = dg.optim.Optax(problem.model.parameters(), rule_of(problem))
        self._step = dg.compile(self._dynamic_step, disable=mode != WHOLE)

    def _dynamic_step(self, *batch: dg.Tensor) -> dg.Tensor:
        with dg.compiled_autograd(self.mode == COMPILED):
            loss = self.problem.loss(*batch)
            loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss

    def step(self, batch: Batch) -> float:
        return self._step(*map(dg.tensor, batch)).item()

    def put_into_model(self) -> None:
        pass  # it is the model's parameters that move

    def state(self) -> Any:
        return self.optimizer.state_dict()

    def load_state(self, state: Any) -> None:
        self.optimizer.load_state_dict(state)


class JaxTrainer(Trainer):
    """Steps that are one jitted function, compiled for each shape of batch."""

    mode = JAX

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.rule = rule_of(problem)
        self.arrays = problem.arrays()
        self.memory = self.rule.init(self.arrays)
        self._step = jax.jit(self._pure_step)

    def _pure_step(self, arrays: Any, memory: Any, batch: Any) -> Any:
        loss, grads = jax.value_and_grad(self.problem.loss_in_jnp)(arrays, *batch)
        updates, memory = self.rule.update(grads, memory, arrays)
        return loss, optax.apply_updates(arrays, updates), memory

    def step(self, batch: Batch) -> float:
        loss, self.arrays, self.memory = self._step(self.arrays, self.memory, batch)
        return float(loss)

    def put_into_model(self) -> None:
        with dg.no_grad():
            for name, p in self.problem.model.named_parameters():
                p.copy_(dg.as_tensor(self.arrays[name]))

    def state(self) -> Any:
        return [dg.as_tensor(leaf) for leaf in jax.tree.leaves(self.memory)]

    def load_state(self, state: Any) -> None:
        self.arrays = self.problem.arrays()
        leaves = [leaf.jax() for leaf in state]
        self.memory = jax.tree.unflatten(jax.tree.structure(self.memory), leaves)


def make_trainer(problem: Problem, mode: str) -> Trainer:
    return JaxTrainer(problem) if mode == JAX else DynamicTrainer(problem, mode)


# Files


class Session(NamedTuple):
    """A training run: what it learns, how, by which draws, and what it has done."""

    trainer: Trainer
    draws: np.random.Generator
    generator: dg.Generator
    done: int


def save_session(path: str | PathLike[str], session: Session) -> None:
    """Writes all that the run needs to go on."""
    trainer = session.trainer
    trainer.put_into_model()
    dg.save(
        {
            "mode": trainer.mode,
            "title": trainer.problem.title,
            "model": trainer.problem.model.state_dict(),
            "trainer": trainer.state(),
            "draws": session.draws.bit_generator.state,
            "generator": session.generator.get_state(),
            "done": session.done,
        },
        path,
    )


def load_session(path: str | PathLike[str], session: Session) -> Session:
    """The run that was saved, in a new session of the same problem and mode."""
    saved, trainer = dg.load(path), session.trainer
    for what, mine in (("mode", trainer.mode), ("title", trainer.problem.title)):
        if saved[what] != mine:
            raise SystemExit(f"{path} holds a run of {saved[what]!r}, and this one is of {mine!r}")
    trainer.problem.model.load_state_dict(saved["model"])
    trainer.load_state(saved["trainer"])
    session.draws.bit_generator.state = saved["draws"]
    session.generator.set_state(saved["generator"])
    return session._replace(done=saved["done"])


# Comparing


class Figures(NamedTuple):
    """What some training steps came to, in seconds."""

    loss: float
    first: float
    median: float
    all: float


def measure(trainer: Trainer, batches: Sequence[Batch]) -> Figures:
    """The mean loss of the last ten steps, and what the steps took."""
    losses, seconds = [], []
    for batch in batches:
        start = time.perf_counter()
        losses.append(trainer.step(batch))
        seconds.append(time.perf_counter() - start)
    return Figures(
        statistics.mean(losses[-10:]), seconds[0], statistics.median(seconds), sum(seconds)
    )


def disagreement(problem: Problem, batch: Batch, mode: str) -> float:
    """The greatest difference of any gradient from `jax.grad`'s, relative to the greatest entry."""
    parameters = dict(problem.model.named_parameters())

    def gradients(*batch: dg.Tensor) -> Sequence[dg.Tensor]:
        return dg.autograd.grad(problem.loss(*batch), list(parameters.values()))

    call = dg.compile(gradients, disable=mode != WHOLE)
    with dg.compiled_autograd(mode == COMPILED):
        call(*map(dg.tensor, batch))
        grads = call(*map(dg.tensor, batch))  # compiled when it comes a second time
    expected = jax.jit(jax.grad(problem.loss_in_jnp))(problem.arrays(), *batch)
    worst = 0.0
    for grad, want in zip(grads, (expected[name] for name in parameters), strict=True):
        scale = float(jnp.abs(want).max())
        worst = max(worst, float(jnp.abs(grad.jax() - want).max()) / (scale or 1.0))
    return worst
