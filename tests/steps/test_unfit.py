"""Whole steps that are refused, or run as they are written."""

from __future__ import annotations

from typing import Any

import jax
import pytest

import dyngraph as dg
from tests.steps.helpers import grad_of

pytestmark = pytest.mark.filterwarnings("error")


def test_value_that_is_asked_for_names_the_line() -> None:
    w = dg.ones(2)

    @dg.compile
    def step() -> Any:
        w.add_(1)
        if w.sum().item() > 100:
            return 1
        return 0

    assert step() == 0
    with pytest.raises(jax.errors.ConcretizationTypeError, match="Abstract tracer") as caught:
        step()
    assert any("test_unfit.py:" in note for note in caught.value.__notes__)
    assert w.tolist() == [2.0, 2.0]
    assert w._version == 1


def test_failing_step_leaves_everything_as_it_was() -> None:
    w = dg.ones(2, requires_grad=True)
    buffer = dg.zeros(2)
    calls = []

    @dg.compile
    def step() -> None:
        dg.rand(1)
        buffer.add_(1)
        (w * buffer).sum().backward()
        calls.append(1)
        if len(calls) > 1:
            raise ValueError("no")

    dg.manual_seed(0)
    step()
    with pytest.raises(ValueError, match="no"):
        step()
    assert buffer.tolist() == [1.0, 1.0]
    assert grad_of(w) == [1.0, 1.0]
    state = dg.manual_seed(0) and dg.rand(2).tolist()
    dg.manual_seed(0)
    step.reset()
    calls.clear()
    step()
    dg.manual_seed(0)
    assert dg.rand(2).tolist() == state


def test_step_that_keeps_tensors_runs_as_written_and_says_so() -> None:
    kept: list[dg.Tensor] = []
    step = dg.compile(lambda x: kept.append(x * 2))
    for i in range(2):
        step(dg.full((2,), float(i)))
    with pytest.warns(UserWarning, match=r"runs as it is written.*something outside keeps"):
        step(dg.full((2,), 2.0))
    for i in range(3, 6):
        step(dg.full((2,), float(i)))
    assert [t.tolist()[0] for t in kept] == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]


def test_step_that_gives_outside_a_history_runs_as_written_and_says_so() -> None:
    w = dg.ones(2, requires_grad=True)
    hidden = dg.zeros(2)

    def step() -> None:
        hidden.detach_()
        hidden.copy_(w * 2)

    call = dg.compile(step)
    call()
    with pytest.warns(UserWarning, match="a place in the graph"):
        call()
    call()
    hidden.sum().backward()
    assert grad_of(w) == [2.0, 2.0]


def test_argument_that_gets_a_history_has_it_at_once() -> None:
    w, x = dg.ones(2, requires_grad=True), dg.full((2,), 3.0)
    step = dg.compile(lambda x: [x.mul_(w)][1:])
    step(dg.ones(2))
    with pytest.warns(UserWarning, match="runs as it is written"):
        step(x)
    x.sum().backward()
    assert grad_of(w) == [3.0, 3.0]


def test_step_that_gives_a_tensor_other_memory_runs_as_written_and_says_so() -> None:
    w = dg.ones(2, requires_grad=True)

    def step() -> None:
        w.grad = None
        w.square().sum().backward()
        assert w.grad is not None
        w.data = w.data - 0.25 * w.grad

    call = dg.compile(step)
    call()
    with pytest.warns(UserWarning, match=r"assigning to \.data"):
        call()
    call()
    assert w.tolist() == [0.125, 0.125]


def test_leaves_that_share_memory_get_their_own_gradients_later() -> None:
    flat = dg.ones(4)
    w, v = flat[:2].requires_grad_(), flat[2:].requires_grad_()
    step = dg.compile(lambda: (w * 2 + v * 3).sum())
    step()
    with pytest.warns(UserWarning, match="leaves that require grad share memory"):
        loss = step()
    loss.backward()
    assert (grad_of(w), grad_of(v)) == ([2.0, 2.0], [3.0, 3.0])


def test_step_that_keeps_tensors_and_returns_a_history_is_refused() -> None:
    w, kept = dg.ones(2, requires_grad=True), []

    @dg.compile
    def step() -> dg.Tensor:
        kept.append((w * 2).detach())
        return w * 3

    step()
    with pytest.raises(RuntimeError, match="returns a tensor with a history, and keeps others"):
        step()


def test_argument_that_cannot_be_a_key_is_refused() -> None:
    step = dg.compile(lambda x, names: x)
    with pytest.raises(TypeError, match="of type set must be hashable"):
        step(dg.ones(2), {"a"})


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(TypeError, match="takes a function or a module, got int"):
        dg.compile(3)  # type: ignore[arg-type]
