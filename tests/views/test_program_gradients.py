"""Random programs of views, writes and operators: gradients against a functional twin in JAX.

The twin keeps all elements of all tensors in one vector. A tensor is an array of places in it, a
view is a view of those places, and a write makes a new vector. All that is in one `lax.scan`, which
`jax.grad` differentiates and jit compiles once for all programs.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given, note, settings, strategies as st

import dyngraph as dg
from dyngraph.autograd.graph import allow_mutation_on_saved_tensors
from tests.views.steps import LONGEST_CHAIN, PROGRAMS, VIEW_STEPS

LONGEST = 30
ROOM = 64  # elements of all tensors together; what would need more is left out
# Few shapes come about from these, and few pairs of them, as each is to be compiled.
LEAVES = [np.array([0.9, -0.4, 0.3, -0.7]), np.array([[0.5, -0.8], [0.6, 0.1]])]
CONSTANT = np.array([[-0.6, 0.4], [0.8, -0.1]])
READ = 6  # The loss reads the tensors made last.

# name: (in place, as an operator, in JAX). Values stay between -1 and 1.
UNARY: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], Callable[..., Any]]] = {
    "sin": (lambda x: x.sin_(), lambda x: x.sin(), lambda a, b: jnp.sin(a)),
    "tanh": (lambda x: x.tanh_(), lambda x: x.tanh(), lambda a, b: jnp.tanh(a)),
    "scale": (lambda x: x.mul_(-0.7), lambda x: x * -0.7, lambda a, b: a * -0.7),
    "fill": (lambda x: x.fill_(0.3), lambda x: dg.full_like(x, 0.3), lambda a, b: 0 * a + 0.3),
}
BINARY: dict[str, tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]] = {
    "mul": (lambda x, y: x.mul_(y), lambda x, y: x * y, lambda a, b: a * b),
    "lerp": (lambda x, y: x.lerp_(y, 0.5), lambda x, y: x.lerp(y, 0.5), lambda a, b: (a + b) / 2),
    "copy": (lambda x, y: x.copy_(y), lambda x, y: y.expand_as(x).clone(), lambda a, b: b),
    "set": (
        lambda x, y: x.__setitem__(..., y),
        lambda x, y: y.expand_as(x).clone(),
        lambda a, b: b,
    ),
}
KERNELS = [*UNARY, *BINARY]
BRANCHES = [kernel for _, _, kernel in (*UNARY.values(), *BINARY.values())]
# How a kernel is applied: written in place, written without being recorded, or as an operator.
HOW = ("in place", "in place", "no_grad", "operator", "detached")
NAMES = [*VIEW_STEPS, *KERNELS]
# A step: which view or kernel, of which tensor, with which other, and how.
Step = tuple[str, int, int, str]


def decode(number: int) -> Step:
    """A step from one number, as drawing one is faster than drawing four."""
    rest, name = divmod(number, len(NAMES))
    rest, which = divmod(rest, 8)
    how, whither = divmod(rest, 8)
    return NAMES[name], which, whither, HOW[how]


steps = st.integers(0, len(NAMES) * 8 * 8 * len(HOW) - 1).map(decode)
programs = st.lists(steps, max_size=LONGEST) | st.lists(steps, min_size=12, max_size=LONGEST)


@dataclass
class Placed:
    """A Tensor, and the places of its elements in the twin's vector."""

    tensor: Any
    places: np.ndarray
    chain: int = 0


@dataclass
class Twin:
    """The rows that the scan goes through: a kernel, where it writes, what it reads, and whether
    its gradient counts."""

    kernels: list[int] = field(default_factory=list)
    written: list[np.ndarray] = field(default_factory=list)
    first: list[np.ndarray] = field(default_factory=list)
    second: list[np.ndarray] = field(default_factory=list)
    recorded: list[bool] = field(default_factory=list)

    def add(
        self, kernel: str, target: np.ndarray, a: np.ndarray, b: np.ndarray, *, recorded: bool
    ) -> None:
        mask, first, second = np.zeros(ROOM, bool), np.arange(ROOM), np.arange(ROOM)
        mask[target], first[target], second[target] = True, a, b
        self.kernels.append(KERNELS.index(kernel))
        self.written.append(mask)
        self.first.append(first)
        self.second.append(second)
        self.recorded.append(recorded)

    def rows(self) -> tuple[np.ndarray, ...]:
        """All rows, and rows that write nothing up to the length of the longest program."""
        while len(self.kernels) < LONGEST:
            nothing = np.zeros(0, int)
            self.add(KERNELS[0], nothing, nothing, nothing, recorded=True)
        columns = self.kernels, self.written, self.first, self.second, self.recorded
        return tuple(np.array(column) for column in columns)


def run_twin(start: jax.Array, rows: Any) -> jax.Array:
    """The vector after all rows."""

    def step(vector: jax.Array, row: Any) -> tuple[jax.Array, None]:
        kernel, written, first, second, recorded = row
        new = jax.lax.switch(kernel, BRANCHES, vector[first], vector[second])
        # What is written unrecorded has the value of the new and the gradient of the old.
        new = jnp.where(recorded, new, vector + jax.lax.stop_gradient(new - vector))
        return jnp.where(written, new, vector), None

    return jax.lax.scan(step, start, rows)[0]


@jax.jit
def twin_values_and_gradient(
    start: jax.Array, rows: Any, weights: jax.Array
) -> tuple[jax.Array, jax.Array]:
    def loss(start: jax.Array) -> tuple[jax.Array, jax.Array]:
        vector = run_twin(start, rows)
        return vector @ weights, vector

    gradient, vector = jax.grad(loss, has_aux=True)(start)
    return vector, gradient


class Run:
    """A program as it runs: the tensors that are there, and the rows of the twin."""

    def __init__(self) -> None:
        self.twin = Twin()
        self.room = 0
        self.start = np.zeros(ROOM, np.float32)
        self.leaves = [dg.tensor(leaf, dtype=dg.float32, requires_grad=True) for leaf in LEAVES]
        constant = dg.tensor(CONSTANT, dtype=dg.float32)
        self.live: list[Placed] = []
        for tensor, values in zip([*self.leaves, constant], [*LEAVES, CONSTANT], strict=True):
            places = self.allocate(values.shape)
            self.start[places] = values
            self.live.append(Placed(tensor * 1, places))

    def allocate(self, shape: tuple[int, ...]) -> np.ndarray:
        count = int(np.prod(shape))
        self.room += count
        return np.arange(self.room - count, self.room).reshape(shape)

    def take(self, step: Step) -> None:
        name, which, whither, how = step
        one, other = (
            self.live[-1 - which % len(self.live)],
            self.live[-1 - whither % len(self.live)],
        )
        if name in VIEW_STEPS:
            self.view(name, one)
        elif name in UNARY:
            self.apply(name, one, (), one.places, how)
        elif other.places.shape in ((), one.places.shape):
            source = other.tensor
            if how != "operator" and np.intersect1d(other.places, one.places).size:
                source = source.clone()  # PyTorch refuses to read what it writes.
            self.apply(name, one, (source,), np.broadcast_to(other.places, one.places.shape), how)

    def view(self, name: str, one: Placed) -> None:
        step = VIEW_STEPS[name]
        if one.chain < LONGEST_CHAIN and step.fits(one.places):
            self.live.append(Placed(step.of(one.tensor), step.twin(one.places), one.chain + 1))

    def apply(
        self, name: str, one: Placed, others: tuple[Any, ...], places: np.ndarray, how: str
    ) -> None:
        in_place, operator, _ = (UNARY | BINARY)[name]
        target = one.places
        if how == "operator":
            if self.room + target.size > ROOM:
                return
            target = self.allocate(target.shape)
            self.live.append(Placed(operator(one.tensor, *others).contiguous(), target))
        elif how == "detached":
            in_place(one.tensor.detach(), *(other.detach() for other in others))
        else:
            with dg.no_grad() if how == "no_grad" else nullcontext():
                in_place(one.tensor, *others)
        recorded = how in ("in place", "operator")
        self.twin.add(name, target, one.places, places, recorded=recorded)

    def check(self, *, may_refuse: bool) -> None:
        """Values and gradients are those of the twin, or backward says what was modified."""
        weights = np.zeros(ROOM, np.float32)
        loss = self.leaves[0].sum() * 0
        for factor, placed in enumerate(self.live[-READ:], 1):
            loss = loss + placed.tensor.sum() * factor
            np.add.at(weights, placed.places, factor)
        rows = self.twin.rows()
        vector, gradient = map(np.asarray, twin_values_and_gradient(self.start, rows, weights))
        for placed in self.live:
            values = placed.tensor.detach().numpy()
            np.testing.assert_allclose(values, vector[placed.places], rtol=1e-4, atol=1e-5)
        try:
            loss.backward()
        except RuntimeError as error:
            if not (may_refuse and "modified by an inplace operation" in str(error)):
                raise
            return
        place = 0
        for leaf in self.leaves:
            expected = gradient[place : place + leaf.numel()].reshape(tuple(leaf.shape))
            got = np.zeros_like(expected) if leaf.grad is None else leaf.grad.numpy()
            np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-4)
            place += leaf.numel()


@settings(max_examples=PROGRAMS)
@given(programs)
def test_gradients_of_programs_whose_saved_tensors_may_be_written(program: list[Step]) -> None:
    note(f"{program}")
    with allow_mutation_on_saved_tensors():
        run = Run()
        for step in program:
            run.take(step)
        run.check(may_refuse=False)


@settings(max_examples=PROGRAMS // 4)
@given(programs)
def test_gradients_of_programs_are_right_or_refused(program: list[Step]) -> None:
    note(f"{program}")
    run = Run()
    for step in program:
        run.take(step)
    run.check(may_refuse=True)
