"""Checkpoints inside each other, and with what else hooks saved tensors."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

import dyngraph as dg

ck: Any = dg.utils.checkpoint
checkpoint: Any = partial(ck.checkpoint, use_reentrant=False)
reentrant: Any = partial(ck.checkpoint, use_reentrant=True)


@pytest.fixture(params=[False, True], ids=["runs on", "early stop"], autouse=True)
def early_stop(request: pytest.FixtureRequest) -> Any:
    """Each test runs with the second run ending early, and going on."""
    with ck.set_checkpoint_early_stop(request.param):
        yield request.param


def leaf() -> Any:
    return dg.tensor([0.5, 1.0], requires_grad=True)


def gradient(run: Callable[[Any], Any]) -> list[float]:
    """The gradient, and that of its sum."""
    x = leaf()
    (first,) = dg.autograd.grad(run(x).sum(), x, create_graph=True)
    (second,) = dg.autograd.grad(first.sum(), x)
    return first.tolist() + second.tolist()


def inner(x: Any) -> Any:
    return x.sin().exp()


def nested(function: Any, *args: Any, **kwargs: Any) -> Any:
    """`function` in two checkpoints."""
    return checkpoint(lambda: checkpoint(function, *args, **kwargs))


def test_two_checkpoints_in_one() -> None:
    def two(run: Any, x: Any) -> Any:
        return run(inner, x) * run(inner, x * 2)

    found = gradient(lambda x: checkpoint(lambda x: two(checkpoint, x).sin(), x))
    assert found == pytest.approx(gradient(lambda x: two(lambda f, x: f(x), x).sin()))


def test_keywords_reach_the_innermost_function() -> None:
    def function(x: Any, *, factor: Any = None) -> Any:
        return inner(x * factor)

    found = gradient(lambda x: nested(function, x, factor=x.exp()))
    assert found == pytest.approx(gradient(lambda x: function(x, factor=x.exp())))


def test_arguments_and_results_that_are_no_tensors_pass_all_of_them() -> None:
    def function(x: Any, name: str, pair: Any) -> Any:
        return name, [inner(x) * pair["a"], None]

    x = leaf()
    name, (y, nothing) = nested(function, x, "name", {"a": 3})
    assert (name, nothing) == ("name", None)
    y.sum().backward()
    assert x.grad.tolist() == pytest.approx((3 * x.cos() * inner(x)).tolist())


def test_one_graph_runs_twice() -> None:
    x = leaf()
    y = nested(inner, x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == pytest.approx((2 * x.cos() * inner(x)).tolist())


def test_hook_inside_may_run_a_backward_of_its_own() -> None:
    grads: list[Any] = []

    def hook(grad: Any) -> None:
        with dg.enable_grad():
            other = leaf()
            nested(inner, other).sum().backward()
        grads.append(other.grad.tolist())

    def function(x: Any) -> Any:
        y = x.sin()
        y.register_hook(hook)
        return y.exp()

    x = leaf()
    nested(function, x).sum().backward()
    expected = pytest.approx((x.cos() * inner(x)).tolist())
    assert x.grad.tolist() == expected
    assert grads[0] == expected


def test_number_of_runs_of_each_level(early_stop: bool) -> None:
    runs: list[str] = []

    def one(x: Any) -> Any:
        runs.append("begin")
        y = x.sin().exp()
        runs.append("end")
        return y + 1

    nested(one, leaf()).sum().backward()
    assert runs.count("begin") == (2 if early_stop else 3)
    assert runs.count("end") == (1 if early_stop else 3)


def test_saved_constant_is_the_argument_itself() -> None:
    seen: list[bool] = []

    class Same(dg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            ctx.save_for_backward(y)
            return x * 1

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            seen.append(ctx.saved_tensors[0] is constant)
            return grad, None

    constant = dg.ones(2)
    checkpoint(Same.apply, leaf(), constant).sum().backward()
    assert seen == [True]


@pytest.mark.parametrize("order", ["inside", "outside", "around one of two"])
def test_what_is_saved_may_be_moved_to_the_cpu_too(order: str) -> None:
    on_cpu = dg.autograd.graph.save_on_cpu

    def moved(x: Any) -> Any:
        with on_cpu():
            return inner(x)

    x = leaf()
    if order == "inside":
        y = checkpoint(moved, x)
    else:
        with on_cpu():
            y = checkpoint(inner, x)
    if order == "around one of two":
        y = y + checkpoint(inner, x) - inner(x)
    y.sum().backward()
    assert x.grad.tolist() == pytest.approx((x.cos() * inner(x)).tolist())


def test_policy_starts_anew_for_each_checkpoint() -> None:
    decisions: list[int] = []

    def contexts() -> Any:
        calls = itertools.count()

        def decide(ctx: Any, op: Any, *args: Any, **kwargs: Any) -> Any:
            if ctx.is_recompute:
                return ck.CheckpointPolicy.PREFER_RECOMPUTE
            decisions.append(next(calls))
            first = decisions[-1] == 0
            found = ck.CheckpointPolicy
            return found.MUST_SAVE if first else found.PREFER_RECOMPUTE

        return ck.create_selective_checkpoint_contexts(decide)

    def run(x: Any) -> Any:
        return checkpoint(inner, x, context_fn=contexts)

    x = leaf()
    run(run(x)).sum().backward()
    assert decisions == [0, 1, 0, 1]
    assert x.grad.tolist() == pytest.approx(dg.autograd.grad(inner(inner(x)).sum(), x)[0].tolist())


def test_reentrant_checkpoint_is_usable_after_it_refused_grad() -> None:
    x = leaf()
    with pytest.raises(RuntimeError, match=r"incompatible with \.grad"):
        dg.autograd.grad(reentrant(inner, x).sum(), x)
    reentrant(inner, x).sum().backward()
    assert x.grad.tolist() == pytest.approx((x.cos() * inner(x)).tolist())


def test_tensor_used_inside_and_outside_gets_both_gradients() -> None:
    w = leaf()
    (checkpoint(lambda x: inner(x * w), leaf().detach()) * w).sum().backward()
    v = leaf()
    (inner(leaf().detach() * v) * v).sum().backward()
    assert w.grad.tolist() == pytest.approx(v.grad.tolist())
