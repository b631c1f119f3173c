"""Steps that hypothesis draws: compiled, they give and leave what they do as written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given, settings, strategies as st

import dyngraph as dg

N = 3
COMPILED_EXAMPLES = 8
"""Each one is compiled."""


class World:
    """What a step may reach, and the instructions that it is made of, one a method."""

    def __init__(self) -> None:
        dg.manual_seed(0)
        self.w = dg.tensor([0.5, -1.0, 2.0], requires_grad=True)
        self.v = dg.tensor([1.0, 0.25, -0.5], requires_grad=True)
        self.buffer = dg.ones(N)
        self.rows = dg.zeros(2, N)
        self.row = self.rows[1]
        self.optimizer = dg.optim.Adam([self.w, self.v], lr=0.05)

    def multiply(self, x: dg.Tensor) -> dg.Tensor:
        return x * self.w

    def add(self, x: dg.Tensor) -> dg.Tensor:
        return x + self.v * self.buffer

    def squash(self, x: dg.Tensor) -> dg.Tensor:
        return dg.tanh(x)

    def drop(self, x: dg.Tensor) -> dg.Tensor:
        return dg.dropout(x, 0.5, True)

    def write(self, x: dg.Tensor) -> dg.Tensor:
        with dg.no_grad():
            self.buffer.mul_(0.5).add_(x)
        return x

    def write_through_a_view(self, x: dg.Tensor) -> dg.Tensor:
        with dg.no_grad():
            self.row.copy_(x)
            self.rows[0] += self.row
        return x + self.rows.sum(0)

    def own_memory(self, x: dg.Tensor) -> dg.Tensor:
        y = dg.zeros(2, N)
        y[0] = x
        y[1, 1:] = x[:-1]
        return y.sum(0)

    def backward(self, x: dg.Tensor) -> dg.Tensor:
        if x.requires_grad:
            x.square().sum().backward(retain_graph=True)
        return x

    def forget(self, x: dg.Tensor) -> dg.Tensor:
        self.optimizer.zero_grad()
        return x

    def zero(self, x: dg.Tensor) -> dg.Tensor:
        self.optimizer.zero_grad(set_to_none=False)
        return x

    def move(self, x: dg.Tensor) -> dg.Tensor:
        self.optimizer.step()
        return x.detach()

    def read_grad(self, x: dg.Tensor) -> dg.Tensor:
        return x if self.w.grad is None else x + self.w.grad

    def seed(self, x: dg.Tensor) -> dg.Tensor:
        dg.manual_seed(7)
        return x

    # --- what happens between the calls ---

    def outside_fill(self) -> None:
        self.buffer.fill_(0.75)

    def outside_grad(self) -> None:
        self.v.grad = dg.ones(N)

    def outside_backward(self) -> None:
        (self.w * self.v).sum().backward()

    def outside_rate(self) -> None:
        self.optimizer.param_groups[0]["lr"] *= 0.5

    def outside_freeze(self) -> None:
        self.v.requires_grad_(not self.v.requires_grad)

    def outside_view(self) -> None:
        self.rows[1, 0] += 1

    def outside_nothing(self) -> None:
        pass

    def state(self) -> list[Any]:
        tensors = [self.w, self.v, self.w.grad, self.v.grad, self.buffer, self.rows, self.row]
        tensors += [t for p in (self.w, self.v) for t in self.optimizer.state.get(p, {}).values()]
        versions = [t._version for t in (self.w, self.v, self.buffer)]
        return [None if t is None else t.detach().numpy() for t in tensors] + versions


INSTRUCTIONS = [n for n in vars(World) if not n.startswith(("_", "outside", "state"))]
EVENTS = [n for n in vars(World) if n.startswith("outside")]


def run(wrap: Callable[..., Any], program: list[str], events: list[str]) -> list[Any]:
    world = World()

    def step(x: dg.Tensor) -> dg.Tensor:
        for name in program:
            x = getattr(world, name)(x)
        return x.detach()

    call, found = wrap(step), []
    for i, event in enumerate(events):
        getattr(world, event)()
        try:
            found.append(call(dg.full((N,), i + 0.5)).numpy())
        except RuntimeError as error:  # a write to what was saved
            return [*found, type(error)]
        found += world.state()
    return [*found, dg.rand(2).numpy()]


@settings(max_examples=COMPILED_EXAMPLES)
@given(
    st.lists(st.sampled_from(INSTRUCTIONS), min_size=1, max_size=7),
    st.lists(st.sampled_from(EVENTS), min_size=3, max_size=6),
)
def test_random_step(program: list[str], events: list[str]) -> None:
    expected = run(lambda f: f, program, events)
    for a, b in zip(run(dg.compile, program, events), expected, strict=True):
        if isinstance(b, np.ndarray):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
        else:
            assert a == b
