"""Whole steps: what a program depends on, so that something new is traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dyngraph as dg
from tests.steps.helpers import CALLS, values

pytestmark = pytest.mark.filterwarnings("error")


def test_mode_of_a_module_is_part_of_the_key() -> None:
    model = dg.nn.Dropout(0.5)
    step = dg.compile(lambda x: model(x))
    for _ in range(3):
        step(dg.ones(8))
    model.eval()
    assert step(dg.ones(8)).tolist() == [1.0] * 8
    model.train()
    assert step(dg.ones(64)).tolist() != [1.0] * 64


def test_numbers_of_a_module_are_part_of_the_key() -> None:
    model = dg.nn.Dropout(0.0)
    step = dg.compile(lambda x: model(x))
    for _ in range(3):
        assert step(dg.ones(8)).tolist() == [1.0] * 8
    model.p = 1.0
    assert step(dg.ones(8)).tolist() == [0.0] * 8
    assert "p of a Dropout was 0.0, is 1.0" in step.explain()[-1]


def test_module_that_counts_its_calls_is_traced_once() -> None:
    class Counting(dg.nn.Module):
        calls = 0

        def forward(self, x: dg.Tensor) -> dg.Tensor:
            self.calls += 1
            return x * 2

    step = dg.compile(Counting())
    for _ in range(CALLS):
        step(dg.ones(2))
    assert len(step.programs) == 1


def test_frozen_parameter_gets_no_grad() -> None:
    w, v = dg.ones(2, requires_grad=True), dg.ones(2, requires_grad=True)

    @dg.compile
    def step() -> None:
        w.grad = v.grad = None
        (w * v).sum().backward()

    step()
    step()
    v.requires_grad_(False)
    step()
    assert w.grad is not None
    assert v.grad is None


def test_parameter_of_another_size_is_read() -> None:
    w = dg.ones(2)
    step = dg.compile(lambda: w.sum())
    for _ in range(3):
        step()
    w.resize_(5).fill_(1)
    assert step().item() == 5


def test_value_written_outside_is_read() -> None:
    w = dg.ones(2)
    step = dg.compile(lambda: w.sum())
    for _ in range(3):
        step()
    w.fill_(4)
    assert step().item() == 8
    w.data = dg.zeros(2)
    assert step().item() == 0


def test_loaded_state_is_read() -> None:
    model = dg.nn.Linear(2, 1)
    step = dg.compile(lambda x: model(x).detach())
    for _ in range(3):
        step(dg.ones(1, 2))
    model.load_state_dict({"weight": dg.ones(1, 2), "bias": dg.zeros(1)})
    assert step(dg.ones(1, 2)).item() == 2


def test_parameter_that_is_replaced_is_read() -> None:
    model = dg.nn.Linear(2, 1, bias=False)
    step = dg.compile(lambda x: model(x).detach())
    for _ in range(3):
        step(dg.ones(1, 2))
    old = model.weight
    model.weight = dg.nn.Parameter(dg.ones(1, 2))
    assert step(dg.ones(1, 2)).item() == 2
    assert old is not model.weight


def test_parameter_that_is_left_out_of_some_steps_counts_its_own() -> None:
    def run(wrap: Callable[..., Any]) -> Any:
        w, v = (dg.tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
        optimizer = dg.optim.Adam([w, v], lr=0.1)

        def step(*, left_out: bool) -> None:
            optimizer.zero_grad()
            v.requires_grad_(not left_out)
            (w * v).square().sum().backward()
            optimizer.step()

        call = wrap(step)
        for i in range(8):
            call(left_out=i % 3 == 2)
        return values([w, v])

    np.testing.assert_allclose(run(dg.compile), run(lambda f: f), rtol=1e-6)


def test_state_that_an_optimizer_begins_later_is_no_problem() -> None:
    w, v = (dg.ones(2, requires_grad=True) for _ in range(2))
    optimizer = dg.optim.Adam([w, v])
    step = dg.compile(lambda: optimizer.step())
    step()
    for leaf in (w, v, w):
        leaf.grad = dg.ones(2)
        step()
    assert len(optimizer.state) == 2
    assert len(step.programs) == 1


def test_second_optimizer_of_another_branch_starts_as_it_does_without() -> None:
    def run(wrap: Callable[..., Any]) -> Any:
        w, v = (dg.tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
        slow, fast = dg.optim.Adam([w], lr=0.1), dg.optim.Adam([v], lr=0.5)

        def step(*, both: bool) -> None:
            slow.zero_grad()
            fast.zero_grad()
            (w * v).square().sum().backward()
            slow.step()
            if both:
                fast.step()

        call = wrap(step)
        for i in range(8):
            call(both=i % 3 == 2)
        return [w.detach().numpy(), v.detach().numpy()]

    np.testing.assert_allclose(run(dg.compile), run(lambda f: f), rtol=1e-6)
