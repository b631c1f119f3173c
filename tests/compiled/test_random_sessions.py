"""Random sessions: what users do to leaves and graphs, eagerly, compiled, and by `jax.grad`."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import dyngraph as dg
from tests.conftest import set_config
from tests.graph.test_random_graphs import LEAVES, Step, loss_of, programs, run, start

MODES = (False, True)
short_programs = programs.map(lambda program: program[:6])
numbers = st.integers(0, LEAVES - 1)


class Graph(NamedTuple):
    """A program that ran, and its loss in each mode."""

    program: list[Step]
    losses: list[dg.Tensor]
    logs: list[list[float]]


class Session(RuleBasedStateMachine):
    """Leaves with gradients in both modes, and what their gradients are by `jax.grad`."""

    def __init__(self) -> None:
        super().__init__()
        dg.compiled.clear()
        self.arrays = [jnp.asarray(a) for a in start()]
        self.leaves = [[dg.tensor(a, requires_grad=True) for a in start()] for _ in MODES]
        self.expected: list[Any] = [None] * LEAVES
        self.graph: Graph | None = None

    def by_jax(self, program: list[Step]) -> list[Any]:
        """The gradient of each leaf."""
        with jax.disable_jit():
            return jax.grad(lambda values: loss_of(run(program, values, in_jax=True)))(self.arrays)

    def make(self, program: list[Step], *, hooked: bool) -> Graph:
        """Runs the program in both modes; with a hook on each value that can have one."""
        losses, logs = [], []
        for leaves in self.leaves:
            values, log = run(program, leaves, in_jax=False), list[float]()
            for value in values[LEAVES:] if hooked else ():
                value.register_hook(lambda grad, log=log: log.append(float(grad.sum())))
            losses.append(loss_of(values))
            logs.append(log)
        return Graph(program, losses, logs)

    def send(self, graph: Graph, *, keep: bool) -> None:
        """Calls backward in both modes, and adds to what is expected."""
        for compiled, loss in zip(MODES, graph.losses, strict=True):
            with set_config(compile_after=1), dg.compiled_autograd(compiled):
                loss.backward(retain_graph=keep)
        for i, (leaf, grad) in enumerate(
            zip(self.leaves[0], self.by_jax(graph.program), strict=True)
        ):
            if leaf.grad is not None:
                was = self.expected[i]
                self.expected[i] = grad if was is None else was + grad

    @rule(program=short_programs, hooked=st.booleans(), keep=st.booleans())
    def train(self, program: list[Step], hooked: bool, keep: bool) -> None:
        graph = self.make(program, hooked=hooked)
        self.send(graph, keep=keep)
        eager, compiled = graph.logs
        np.testing.assert_allclose(compiled, eager, rtol=1e-4, atol=1e-5)
        self.graph = graph if keep else Graph(program, [], [])

    @precondition(lambda self: self.graph is not None and self.graph.losses)
    @rule(keep=st.booleans())
    def use_the_graph_again(self, keep: bool) -> None:
        assert self.graph is not None
        self.send(self.graph, keep=keep)
        self.graph = self.graph if keep else Graph(self.graph.program, [], [])

    @precondition(lambda self: self.graph is not None)
    @rule()
    def run_the_program_again_and_compile_nothing(self) -> None:
        assert self.graph is not None
        for _ in range(2):  # in the first a leaf may get its first gradient
            self.send(self.make(self.graph.program, hooked=False), keep=False)
        before = dg.compiled.stats()
        self.send(self.make(self.graph.program, hooked=False), keep=False)
        after = dg.compiled.stats()
        assert (after.hits, after.compilations) == (before.hits + 1, before.compilations)

    @rule(program=short_programs, which=st.sets(numbers, min_size=1))
    def ask_for_gradients(self, program: list[Step], which: set[int]) -> None:
        for compiled, loss, leaves in zip(
            MODES, self.make(program, hooked=False).losses, self.leaves, strict=True
        ):
            asked = [leaves[i] for i in sorted(which)]
            with set_config(compile_after=1), dg.compiled_autograd(compiled):
                found = dg.autograd.grad(loss, asked, allow_unused=True)
            for i, grad in zip(sorted(which), found, strict=True):
                got = np.zeros(3) if grad is None else grad.numpy()
                np.testing.assert_allclose(got, self.by_jax(program)[i], rtol=1e-4, atol=1e-5)

    @rule(which=numbers)
    def drop_a_gradient(self, which: int) -> None:
        self.expected[which] = None
        for leaves in self.leaves:
            leaves[which].grad = None

    @rule(which=numbers, rate=st.sampled_from([0.5, -0.25]))
    def write_to_a_leaf(self, which: int, rate: float) -> None:
        self.arrays[which] = self.arrays[which] * rate
        for leaves in self.leaves:
            with dg.no_grad():
                leaves[which].mul_(rate)
        if self.graph is not None:  # its graph may have saved the leaf
            self.graph = Graph(self.graph.program, [], [])

    @invariant()
    def gradients_are_the_same_three_times(self) -> None:
        for i, (eager, compiled) in enumerate(zip(*self.leaves, strict=True)):
            assert (eager.grad is None) == (compiled.grad is None) == (self.expected[i] is None)
            if eager.grad is not None and compiled.grad is not None:
                np.testing.assert_allclose(
                    compiled.grad.numpy(), eager.grad.numpy(), rtol=1e-5, atol=1e-6
                )
                np.testing.assert_allclose(
                    eager.grad.numpy(), self.expected[i], rtol=1e-4, atol=1e-5
                )


TestSession = Session.TestCase
TestSession.settings = settings(max_examples=8, stateful_step_count=8, deadline=None)
