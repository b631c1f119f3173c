"""Whole steps: what a call does and leaves behind, as the function does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dyngraph as dg
from tests.steps.helpers import CALLS, X, both

pytestmark = pytest.mark.filterwarnings("error")


def test_parameters_move_as_they_do_without() -> None:
    def make() -> Any:
        w = dg.tensor([1.0, 2.0, 3.0], requires_grad=True)
        optimizer = dg.optim.AdamW([w], lr=0.1)

        def step(x: dg.Tensor) -> dg.Tensor:
            optimizer.zero_grad()
            loss = (w * x).square().sum()
            loss.backward()
            optimizer.step()
            return loss

        return step, lambda: [w, w.grad, *optimizer.state[w].values()]

    step = both(make, dg.tensor(X))
    assert len(step.programs) == 1


def test_gradients_accumulate_into_the_same_tensor() -> None:
    w = dg.ones(3, requires_grad=True)
    w.grad = grad = dg.zeros(3)

    @dg.compile
    def step(x: dg.Tensor) -> None:
        (w * x).sum().backward()

    for _ in range(CALLS):
        step(dg.tensor(X))
    assert w.grad is grad
    np.testing.assert_allclose(grad.numpy(), CALLS * X.sum(0), rtol=1e-6)


def test_buffers_are_written() -> None:
    def make() -> Any:
        total, count = dg.zeros(3), dg.tensor(0)

        def step(x: dg.Tensor) -> dg.Tensor:
            total.add_(x.sum(0))
            count.add_(1)
            total[0] = count
            return total / count

        return step, lambda: [total, count]

    both(make, dg.tensor(X))


def test_draws_go_on_as_they_do_without() -> None:
    own = dg.Generator()

    def make() -> Any:
        own.manual_seed(5)

        def step() -> Any:
            return dg.rand(2), dg.randn(3, generator=own), dg.dropout(dg.ones(8), 0.5, True)

        return step, lambda: [dg.rand(2), dg.rand(2, generator=own)]

    both(make)


def test_generator_that_is_seeded_inside_starts_there_each_time() -> None:
    def make() -> Any:
        def step() -> Any:
            first = dg.rand(2)
            dg.manual_seed(3)
            return first, dg.rand(2)

        return step, lambda: dg.rand(2)

    both(make)


def test_state_of_a_generator_that_is_put_back_inside_is_relative() -> None:
    def make() -> Any:
        def step() -> Any:
            with dg.random.fork_rng():
                first = dg.rand(2)
            return first, dg.rand(2), dg.rand(2)

        return step, lambda: dg.rand(2)

    both(make)


def test_batch_norm_and_dropout_train_as_they_do_without() -> None:
    def make() -> Any:
        model = dg.nn.Sequential(
            dg.nn.Linear(3, 4), dg.nn.BatchNorm1d(4), dg.nn.Dropout(0.3), dg.nn.Linear(4, 1)
        )
        optimizer = dg.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

        def step(x: dg.Tensor) -> dg.Tensor:
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            dg.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            return loss

        return step, lambda: dict(model.state_dict())

    both(make, dg.tensor(X))


def test_step_of_an_optimizer_alone_moves_by_gradients_of_outside() -> None:
    def run(wrap: Callable[..., Any]) -> Any:
        w = dg.tensor([1.0, 2.0, 3.0], requires_grad=True)
        optimizer = dg.optim.Adam([w], lr=0.1)
        step = wrap(lambda: optimizer.step())
        for i in range(CALLS):
            optimizer.zero_grad()
            (w * w * i).sum().backward()
            step()
        return w.detach().numpy()

    np.testing.assert_allclose(run(dg.compile), run(lambda f: f), rtol=1e-6)


def test_rate_that_a_scheduler_changes_compiles_nothing() -> None:
    def run(wrap: Callable[..., Any]) -> Any:
        w = dg.tensor([1.0, 2.0, 3.0], requires_grad=True)
        optimizer = dg.optim.SGD([w], lr=0.1)
        scheduler = dg.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)

        def step() -> None:
            optimizer.zero_grad()
            w.square().sum().backward()
            optimizer.step()

        call = wrap(step)
        for _ in range(CALLS):
            call()
            scheduler.step()
        return w.detach().numpy(), call

    expected, _ = run(lambda f: f)
    found, step = run(dg.compile)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert len(step.programs) == 1


def test_optimizer_in_plain_python_moves_as_it_does_without() -> None:
    class Descent(dg.optim.Optimizer):
        def __init__(self, params: Any, lr: float) -> None:
            super().__init__(params, {"lr": lr})

        @dg.no_grad()
        def step(self, closure: Any = None) -> None:
            for group in self.param_groups:
                for p in group["params"]:
                    p.add_(p.grad, alpha=-group["lr"])

    def run(wrap: Callable[..., Any]) -> Any:
        w = dg.tensor([1.0, 2.0, 3.0], requires_grad=True)
        optimizer = Descent([w], 0.1)

        def step() -> None:
            optimizer.zero_grad()
            w.square().sum().backward()
            optimizer.step()

        call = wrap(step)
        for i in range(2 * CALLS):
            optimizer.param_groups[0]["lr"] = 0.1 if i < CALLS else 0.01
            call()
        return w.detach().numpy(), call

    expected, _ = run(lambda f: f)
    found, step = run(dg.compile)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert len(step.programs) == 2


def test_hooks_are_traced_in() -> None:
    def make() -> Any:
        w = dg.ones(3, requires_grad=True)
        w.register_hook(lambda grad: grad * 2)
        seen = dg.zeros(3)

        def note(grad: dg.Tensor) -> None:
            seen.add_(grad.sum(0))

        def step(x: dg.Tensor) -> None:
            y = w * x
            y.register_hook(note)
            w.grad = None
            y.square().sum().backward()

        return step, lambda: [w.grad, seen]

    both(make, dg.tensor(X))


def test_functions_and_checkpoints_run_inside() -> None:
    class Double(dg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: dg.Tensor) -> dg.Tensor:
            (x,) = ctx.saved_tensors
            return grad * 2 + 0 * x

    def make() -> Any:
        w = dg.ones(3, requires_grad=True)

        def block(x: dg.Tensor) -> dg.Tensor:
            return dg.dropout(Double.apply(w * x), 0.5, True).exp()

        def step(x: dg.Tensor) -> None:
            w.grad = None
            dg.utils.checkpoint.checkpoint(block, x, use_reentrant=False).sum().backward()

        return step, lambda: [w.grad, dg.rand(1)]

    both(make, dg.tensor(X))


def test_second_derivatives_inside() -> None:
    def make() -> Any:
        w = dg.tensor([1.0, 2.0, 3.0], requires_grad=True)

        def step(x: dg.Tensor) -> Any:
            (first,) = dg.autograd.grad((w**3 * x).sum(), w, create_graph=True)
            (second,) = dg.autograd.grad(first.sum(), w)
            return first, second

        return step, lambda: None

    both(make, dg.tensor(X))


def test_arrays_that_are_taken_out_of_tensors_are_read() -> None:
    def make() -> Any:
        total, model = dg.zeros(3), dg.nn.Linear(3, 1)
        average = dg.optim.swa_utils.AveragedModel(
            model, multi_avg_fn=dg.optim.swa_utils.get_ema_multi_avg_fn(0.5)
        )

        def step(x: dg.Tensor) -> Any:
            with dg.no_grad():
                total.add_(1)
                model.weight.add_(x[0])
            average.update_parameters(model)
            return dg.tensor(jnp.sin(total.jax()))

        return step, lambda: [total, *average.parameters()]

    both(make, dg.tensor(X))


def test_optimizers_in_backward_move_as_they_do_without() -> None:
    def make() -> Any:
        w = dg.ones(3, requires_grad=True)
        optimizer = dg.optim.SGD([w], lr=0.1, momentum=0.9)

        def move(leaf: dg.Tensor) -> None:
            optimizer.step()
            leaf.grad = None

        w.register_post_accumulate_grad_hook(move)

        def step(x: dg.Tensor) -> None:
            (w * x).square().sum().backward()

        return step, lambda: [w, w.grad]

    both(make, dg.tensor(X))


def test_function_transforms_run_inside() -> None:
    def make() -> Any:
        w = dg.tensor([1.0, 2.0, 3.0], requires_grad=True)

        def step(x: dg.Tensor) -> Any:
            slope = dg.func.grad(lambda v: (v * x).square().sum())(w)
            rows = dg.func.vmap(lambda row: (row * w).sum())(x)
            return slope, rows, dg.func.jvp(lambda v: (v**3).sum(), (w,), (x[0],))

        return step, lambda: None

    both(make, dg.tensor(X))


def test_arrays_on_several_devices_stay_there() -> None:
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("d",))
    split = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("d"))
    whole = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    w = dg.as_tensor(jax.device_put(jnp.ones(3), whole)).requires_grad_()
    optimizer = dg.optim.SGD([w], lr=0.1)

    @dg.compile
    def step(x: dg.Tensor) -> dg.Tensor:
        optimizer.zero_grad()
        (w * x).sum().backward()
        optimizer.step()
        return x * 2

    x = dg.as_tensor(jax.device_put(jnp.ones((len(jax.devices()), 3)), split))
    *_, result = [step(x) for _ in range(3)]
    assert result.detach().jax().sharding.is_equivalent_to(split, 2)
    np.testing.assert_allclose(w.detach().numpy(), 1 - 0.1 * 3 * len(jax.devices()), rtol=1e-6)


def test_views_of_state_are_written_and_read() -> None:
    def make() -> Any:
        flat = dg.zeros(6)
        row = flat.view(2, 3)[1]

        def step(x: dg.Tensor) -> Any:
            row.add_(x[0])
            flat[0] += 1
            return row + flat.sum()

        return step, lambda: [flat, row]

    both(make, dg.tensor(X))
