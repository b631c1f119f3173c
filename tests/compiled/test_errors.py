"""Errors of a compiled backward: eager's text, and what had happened before them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import pytest

import dyngraph as dg
from dyngraph.ops import operator
from dyngraph.ops.operator import define
from tests.compiled.helpers import (
    SIGHTS,
    assert_same,
    compilations_of,
    leaf,
    raised_by,
    same_in_both_modes,
)


def error_in_both_modes(program: Callable[[], Any]) -> Any:
    """The error that `program` returns first, with what else it returns the same in both modes."""
    error, *_ = same_in_both_modes(program)
    assert error is not None
    return error


def test_saved_tensor_that_was_written_raises_with_eagers_text() -> None:
    def program() -> Any:
        x, z = leaf(1.0, 2.0), leaf(3.0, 4.0)
        y = x.exp()
        loss = (y.sin() * z).sum()
        y.add_(1)
        return raised_by(loss.backward), x.grad, z.grad

    assert "modified by an inplace operation" in error_in_both_modes(program).text


def test_tensor_written_after_a_hit_raises_all_the_same() -> None:
    def loss_of(x: dg.Tensor) -> tuple[dg.Tensor, dg.Tensor]:
        y = x.exp()
        return y, y.sin().sum()

    x = leaf(1.0, 2.0)
    with dg.compiled_autograd():
        for _ in range(SIGHTS):
            loss_of(x)[1].backward()
        y, loss = loss_of(x)
        y.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()


def test_freed_graph_raises_with_eagers_text() -> None:
    def program() -> Any:
        x = leaf(1.0, 2.0)
        loss = (x.exp() * x).sum()
        loss.backward()
        return raised_by(loss.backward), x.grad

    assert "second time" in error_in_both_modes(program).text


def test_part_of_a_graph_that_was_freed_raises_with_what_came_before() -> None:
    def program() -> Any:
        x, z = leaf(1.0, 2.0), leaf(3.0, 4.0)
        y = x.exp()
        y.sum().backward()
        loss = (y.sin() * z).sum()
        return raised_by(loss.backward), x.grad, z.grad, raised_by(loss.backward)

    error_in_both_modes(program)


def test_input_that_is_not_reached_raises_with_eagers_text() -> None:
    def program() -> Any:
        x, z = leaf(1.0, 2.0), leaf(3.0, 4.0)
        return (raised_by(lambda: dg.autograd.grad(x.exp().sum(), [x, z])),)

    error_in_both_modes(program)


def test_error_leaves_the_next_backward_as_it_was() -> None:
    x = leaf(1.0, 2.0)

    def step() -> Any:
        x.grad = None
        loss = (x.exp() * x).sum()
        loss.backward()
        assert raised_by(loss.backward) is not None

    assert compilations_of(step, 4)[2:] == [0, 0]


# Rules that fail


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], dg.Tensor]:
    """An operator whose rule raises when it is traced."""

    def rule(grad: jax.Array) -> jax.Array:
        raise ValueError("from the rule")

    monkeypatch.setattr(operator, "OPERATORS", {})
    return define("failing", lambda self: self, self=rule)


def test_rule_that_fails_raises_with_eagers_text_and_grads(
    failing: Callable[[Any], dg.Tensor],
) -> None:
    def program() -> Any:
        x, z = leaf(1.0, 2.0), leaf(3.0, 4.0)
        loss = (failing(x.exp()) * z).sum()
        return raised_by(loss.backward), x.grad, z.grad

    error = error_in_both_modes(program)
    assert error.text == "from the rule"
    assert "This happened in backward, at FailingBackward0." in error.notes


def test_rule_that_fails_before_a_hook_is_blamed_alone(
    failing: Callable[[Any], dg.Tensor],
) -> None:
    def program() -> Any:
        x = leaf(1.0, 2.0)
        y = x.exp()
        y.register_hook(lambda grad: None)
        loss = failing(y * 2).sum()
        return raised_by(loss.backward), x.grad

    error = error_in_both_modes(program)
    notes = [note for note in error.notes if note.startswith("This happened")]
    assert notes == ["This happened in backward, at FailingBackward0."]


def test_rule_that_fails_leaves_freed_what_eager_leaves_freed(
    failing: Callable[[Any], dg.Tensor],
) -> None:
    def program() -> Any:
        x, z = leaf(1.0, 2.0), leaf(3.0, 4.0)
        y = x.exp()
        w = y * z
        loss = failing(y).sum() + w.sin().sum()
        first = raised_by(loss.backward)
        return first, raised_by(w.sum().backward), raised_by(y.sum().backward), x.grad, z.grad

    error_in_both_modes(program)


def test_gradients_retained_before_a_rule_fails_are_set(
    failing: Callable[[Any], dg.Tensor],
) -> None:
    def program() -> Any:
        x = leaf(1.0, 2.0)
        y = failing(x.exp())
        z = y * 2
        y.retain_grad()
        z.retain_grad()
        return raised_by(z.sum().backward), y.grad, z.grad

    error_in_both_modes(program)


def test_good_graph_runs_and_compiles_after_a_rule_that_fails(
    failing: Callable[[Any], dg.Tensor],
) -> None:
    x = leaf(1.0, 2.0)
    with dg.compiled_autograd():
        for _ in range(SIGHTS):
            with pytest.raises(ValueError, match="from the rule"):
                failing(x.exp()).sum().backward()
    dg.compiled.reset()

    def step() -> None:
        x.grad = None
        x.exp().sum().backward()

    assert compilations_of(step, 4) == [0, 1, 0, 0]
    assert_same(x.grad, x.detach().exp())


def test_rule_that_works_the_next_time_works_then(monkeypatch: pytest.MonkeyPatch) -> None:
    fails = [True]

    def rule(grad: jax.Array) -> jax.Array:
        if fails[0]:
            raise ValueError("from the rule")
        return grad * 3

    monkeypatch.setattr(operator, "OPERATORS", {})
    moody: Any = define("moody", lambda self: self, self=rule)
    x = leaf(1.0, 2.0)
    with dg.compiled_autograd():
        for _ in range(SIGHTS):
            with pytest.raises(ValueError, match="from the rule"):
                moody(x).sum().backward()
        fails[0] = False
        for _ in range(SIGHTS):
            x.grad = None
            moody(x).sum().backward()
            assert_same(x.grad, dg.full((2,), 3.0))


# Anomaly mode


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
def test_non_finite_gradient_in_anomaly_mode_raises_with_eagers_text() -> None:
    def program() -> Any:
        x = leaf(0.0, 2.0)
        with dg.autograd.detect_anomaly():
            loss = (x.sqrt() * 0).sum()
            with pytest.warns(UserWarning, match="forward call"):
                error = raised_by(loss.backward)
        return error, x.grad

    error_in_both_modes(program)


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
def test_anomaly_mode_runs_eagerly_and_says_so() -> None:
    with dg.compiled_autograd(), dg.autograd.detect_anomaly():
        leaf(1.0).exp().backward()
    assert dg.compiled.stats().eager == 1
    assert "anomaly mode" in str(dg.compiled.explain())
