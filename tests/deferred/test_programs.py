"""Programs in deferred mode: what they compute, what is compiled, what happens in a backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import dyngraph as dg
from tests.compiled.helpers import assert_same
from tests.conftest import set_config
from tests.deferred.helpers import grad_of, is_pending, leaf, noting_runs
from tests.graph.test_random_graphs import Step, loss_of, programs, run, start


def gradients(program: list[Step], *, write: bool) -> list[Any]:
    """A program's loss and gradients; with `write`, into a view of each value on the way."""
    leaves = [dg.tensor(a, requires_grad=True) for a in start()]
    values = run(program, [leaf * 1 for leaf in leaves], in_jax=False)
    for value in values if write else ():
        value[:1].mul_(0.5)
    loss = loss_of(values)
    try:
        loss.backward()
    except RuntimeError as error:  # what was saved has been written to
        return [str(error).partition(" at ")[0]]
    return [loss, *(leaf.grad for leaf in leaves)]


@pytest.mark.parametrize("write", [False, True], ids=["pure", "writes"])
@settings(max_examples=12)
@given(program=programs.map(lambda program: program[:8]))
def test_random_program_gives_the_same_values(write: bool, program: list[Step]) -> None:
    expected = gradients(program, write=write)
    with set_config(compile_after=1), dg.deferred():
        got = gradients(program, write=write)
    assert_same(got, expected)


def step(x: dg.Tensor) -> dg.Tensor:
    return (x.sin() * x).sum()


def test_same_program_is_compiled_at_its_second_sight_and_never_again() -> None:
    dg.compiled.clear()
    made = []
    for _ in range(4):
        x = leaf(1.0, 2.0)
        with dg.deferred():
            step(x).backward()
        made.append(dg.compiled.stats().compilations)
        np.testing.assert_allclose(
            grad_of(x).numpy(), np.sin([1, 2]) + [1, 2] * np.cos([1, 2]), rtol=1e-6
        )
    assert made == [0, 1, 1, 1]


def test_forward_and_backward_are_one_program() -> None:
    dg.compiled.clear()
    with set_config(compile_after=1), dg.deferred():
        step(leaf(1.0, 2.0)).backward()
    text = str(dg.compiled.programs()[-1])
    assert "sin(" in text
    assert "SinBackward0(" in text


def test_backward_of_a_known_structure_joins_as_one_call() -> None:
    dg.compiled.clear()
    counts = []
    for _ in range(3):
        with noting_runs() as runs, dg.deferred():
            x = leaf(1.0, 2.0)
            step(x).backward()
        counts.append(len(runs[0].kinds))
    assert counts[0] > counts[1] == counts[2]
    assert counts[1] == 4


@pytest.mark.parametrize("compiled", [False, True], ids=["alone", "with compiled_autograd"])
def test_gradients_add_up(compiled: bool) -> None:
    x = leaf(1.0, 2.0)
    with dg.deferred(), dg.compiled_autograd(compiled):
        for _ in range(4):
            (x * x).sum().backward()
        assert is_pending(grad_of(x))
    assert grad_of(x).tolist() == [8.0, 16.0]


def test_gradient_is_written_in_place() -> None:
    x = leaf(1.0)
    with dg.deferred():
        x.sum().backward()
        grad = grad_of(x)
        x.sum().backward()
        assert x.grad is grad
        assert grad._version == 1
    assert grad.item() == 2.0


def test_grad_returns_pending_gradients() -> None:
    x = leaf(3.0)
    for _ in range(3):
        with dg.deferred():
            (grad,) = dg.autograd.grad((x * x).sum(), x)
            assert is_pending(grad)
        assert grad.item() == 6.0


def test_second_derivative_is_put_off_too() -> None:
    x = leaf(3.0)
    with noting_runs() as runs, dg.deferred():
        (first,) = dg.autograd.grad((x**3).sum(), x, create_graph=True)
        (second,) = dg.autograd.grad(first.sum(), x)
    assert (first.item(), second.item()) == (27.0, 18.0)
    assert len(runs) == 1


def test_hook_sees_a_tensor_and_runs_every_time() -> None:
    seen: list[bool] = []

    def hook(grad: dg.Tensor) -> dg.Tensor:
        seen.append(is_pending(grad))
        return grad * 10

    x = leaf(1.0, 2.0)
    with noting_runs() as runs, dg.deferred():
        for _ in range(2):
            y = x * 2
            y.register_hook(hook)
            y.sum().backward()
    assert seen == [True, True]
    assert grad_of(x).tolist() == [40.0, 40.0]
    assert len(runs) == 1


def test_hook_that_looks_at_a_value_finds_it() -> None:
    seen: list[float] = []
    x = leaf(1.0, 2.0)
    with dg.deferred():
        y = x * 2
        y.register_hook(lambda grad: seen.append(grad.sum().item()))
        (y * y).sum().backward()
    assert seen == [12.0]
    assert grad_of(x).tolist() == [8.0, 16.0]


class Double(dg.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: dg.Tensor) -> dg.Tensor:
        (x,) = ctx.saved_tensors
        return grad * 2 + x * 0


SAME: dict[str, Callable[[dg.Tensor], dg.Tensor]] = {
    "Function": lambda x: Double.apply(x * 1),
    "checkpoint": lambda x: dg.utils.checkpoint.checkpoint(
        lambda a: a.sin() * a, x, use_reentrant=False
    ),
    "retain_grad": lambda x: (x * 2).exp(),
    "pow and where": lambda x: dg.where(x > 1, x**2, x),
    "several outputs": lambda x: dg.sort(x, descending=True).values * dg.arange(2.0),
    "index": lambda x: x[[1, 0]] * x,
    "views": lambda x: (x * 1).reshape(2, 1).expand(2, 3).transpose(0, 1),
    "split": lambda x: dg.cat([part * i for i, part in enumerate((x * 1).split(1))]),
    "write": lambda x: (x * 2).mul_(x).add_(1),
    "setitem": lambda x: set_first(x * 2, x[1]),
    "batch_norm": lambda x: dg.nn.functional.batch_norm(x.reshape(2, 1), None, None, training=True),
    "constant": lambda x: x + dg.ones(2),
    "numpy": lambda x: dg.numpy.cumsum(x),
}


def set_first(x: dg.Tensor, value: dg.Tensor) -> dg.Tensor:
    x[0] = value
    return x


@pytest.mark.parametrize("name", SAME)
def test_same_values_and_gradients(name: str) -> None:
    def program() -> list[dg.Tensor]:
        x = leaf(0.5, 1.5)
        y = SAME[name](x)
        y.retain_grad()
        (y * y).sum().backward()
        return [y.detach(), grad_of(x), grad_of(y)]

    expected = program()
    for _ in range(2):
        with dg.deferred():
            got = program()
        assert_same(got, expected)


def test_running_statistics_move_without_a_run() -> None:
    def statistics() -> list[dg.Tensor]:
        norm = dg.nn.BatchNorm1d(2)
        for i in range(2):
            norm(dg.arange(6.0).reshape(3, 2) * i)
        assert norm.running_mean is not None
        assert norm.running_var is not None
        return [norm.running_mean, norm.running_var]

    expected = statistics()
    with noting_runs() as runs, dg.deferred():
        got = statistics()
        assert not runs
    assert_same(got, expected)


def test_training_gives_the_same_parameters() -> None:
    def train() -> list[dg.Tensor]:
        dg.manual_seed(0)
        model = dg.nn.Sequential(dg.nn.Linear(2, 3), dg.nn.Tanh(), dg.nn.Linear(3, 1))
        optimizer = dg.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        x = dg.arange(8.0).reshape(4, 2) / 8
        for _ in range(4):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
        return [p.detach() for p in model.parameters()]

    expected = train()
    with noting_runs() as runs, dg.deferred():
        got = train()
    assert_same(got, expected)
    assert len(runs) == 4


def test_graph_of_a_deferred_forward_goes_backward_outside() -> None:
    for compiled in (False, True):
        x = leaf(2.0)
        with dg.deferred():
            y = x.exp() * x
        with dg.compiled_autograd(compiled):
            y.backward()
        np.testing.assert_allclose(grad_of(x).numpy(), [3 * np.exp(2.0)], rtol=1e-6)


def test_saved_values_show_as_without() -> None:
    x = leaf(2.0)
    with dg.deferred():
        y = x.exp()
        assert is_pending(y)
        assert y.grad_fn is not None
        assert y.grad_fn._saved_result.tolist() == y.tolist()
    assert y.grad_fn._saved_result.tolist() == y.tolist()


def test_version_check_needs_no_value() -> None:
    x = leaf(2.0)
    with noting_runs() as runs, dg.deferred():
        y = x.exp()
        z = y * y
        y.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            z.backward()
        assert not runs


def test_inference_tensors_are_made() -> None:
    with dg.deferred(), dg.inference_mode():
        y = dg.ones(2) * 2
    assert y.is_inference()
    assert y.tolist() == [2.0, 2.0]


def test_each_leaf_gets_its_own_gradient_in_every_order_of_arrival() -> None:
    def program() -> list[dg.Tensor]:
        x, y, z = leaf(1.0, 2.0), leaf(3.0), dg.ones(2, 2, requires_grad=True)
        ((z.sum() * 2 + y.sum() * 3) * x.sum()).backward()
        return [grad_of(t) for t in (x, y, z)]

    expected = program()
    for _ in range(3):
        with set_config(compile_after=1), dg.deferred():
            got = program()
        assert_same(got, expected)


def test_compiled_step_is_a_program_of_its_own() -> None:
    @dg.compile
    def compiled_step(x: dg.Tensor) -> dg.Tensor:
        return (x * 2).sum()

    with dg.deferred():
        results = [compiled_step(dg.ones(3) * i).item() for i in range(3)]
    assert results == [0.0, 6.0, 12.0]
    assert len(compiled_step.programs) == 1
