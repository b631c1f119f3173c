"""dg.compile: a call of the compiled function is a call of the function."""

from __future__ import annotations

import copy
import gc
import weakref
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dyngraph as dg

pytestmark = pytest.mark.filterwarnings("error")
CALLS = 4
X = np.arange(6, dtype=np.float32).reshape(2, 3) / 3


def both(make: Callable[[], tuple[Callable[..., Any], Callable[[], Any]]], *args: Any) -> Any:
    """The results of some calls, and what is left after them, of the function and compiled.

    `make` makes the function and what looks at its state.
    """
    outcomes = []
    for wrap in (lambda f: f, dg.compile):
        dg.manual_seed(0)
        function, look = make()
        call = wrap(function)
        results = [values(call(*args)) for _ in range(CALLS)]
        outcomes.append((results, values(look()), call))
    (expected, expected_state, _), (found, state, step) = outcomes
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), found, expected)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), state, expected_state)
    return step


def values(tree: Any) -> Any:
    return jax.tree.map(lambda t: np.array(t.detach().jax()) if dg.is_tensor(t) else t, tree)


def grad_of(x: dg.Tensor) -> Any:
    return None if x.grad is None else x.grad.tolist()


# --- what a step does ---------------------------------------------------------------------------


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


# --- arguments and results ----------------------------------------------------------------------


def test_arguments_may_be_nested_and_of_every_kind() -> None:
    def make() -> Any:
        def step(batch: dict[str, Any], scale: float, *, name: str, array: Any) -> Any:
            assert name == "a"
            return {"y": batch["x"] * scale + dg.tensor(array), "n": 3}

        return step, lambda: None

    def call(step: Any) -> Any:
        return step({"x": dg.tensor(X)}, 2.0, name="a", array=X)

    step = dg.compile(make()[0])
    found = [call(step) for _ in range(CALLS)][-1]
    np.testing.assert_allclose(found["y"].numpy(), X * 3, rtol=1e-6)
    assert found["n"] == 3
    assert len(step.programs) == 1


def test_number_is_part_of_the_key() -> None:
    step = dg.compile(lambda x, n: x * n)
    for n in (1, 1, 2, 2, 3.0, 3.0, True, True, 2):
        np.testing.assert_allclose(step(dg.ones(2), n).numpy(), [n, n])


def test_shape_is_part_of_the_key() -> None:
    step = dg.compile(lambda x: x.sum() * x.shape[0])
    for n in (2, 2, 3, 2, 3):
        assert step(dg.ones(n)).item() == n * n
    assert len(step.programs) == 2


def test_argument_that_is_returned_is_itself() -> None:
    step = dg.compile(lambda x: (x, x.add_(1)))
    x = dg.zeros(2)
    for _ in range(CALLS):
        first, second = step(x)
        assert first is x is second
    assert x.tolist() == [CALLS, CALLS]


def test_one_result_twice_is_one_tensor() -> None:
    step = dg.compile(lambda x: [x + 1] * 2)
    for _ in range(CALLS):
        first, second = step(dg.ones(2))
        assert first is second


def test_parameter_that_is_returned_is_itself() -> None:
    w = dg.ones(2, requires_grad=True)
    step = dg.compile(lambda x: (w, (w * x).detach(), w.grad))
    for _ in range(CALLS):
        assert step(dg.ones(2))[0] is w


def test_leaf_argument_gets_its_grad() -> None:
    step = dg.compile(lambda x: x.square().sum().backward())
    for _ in range(CALLS):
        x = dg.ones(2, requires_grad=True)
        step(x)
        assert grad_of(x) == [2.0, 2.0]


def test_argument_may_be_made_a_leaf_inside() -> None:
    step = dg.compile(lambda x: x.requires_grad_().square().sum().backward())
    for _ in range(CALLS):
        x = dg.ones(2)
        step(x)
        assert x.requires_grad
        assert grad_of(x) == [2.0, 2.0]


def test_parameter_may_be_frozen_inside() -> None:
    def make() -> Any:
        w, v = (dg.ones(3, requires_grad=True) for _ in range(2))

        def step(x: dg.Tensor) -> None:
            w.grad = v.grad = None
            v.requires_grad_(not v.requires_grad)
            (w * v * x).sum().backward()

        return step, lambda: [w.grad, v.grad, v.requires_grad]

    both(make, dg.tensor(X))


def test_argument_with_the_memory_of_a_parameter_counts_as_it() -> None:
    w = dg.ones(2)

    @dg.compile
    def step(x: dg.Tensor) -> dg.Tensor:
        w.add_(1)
        return x * w

    assert step(dg.ones(2)).tolist() == [2.0, 2.0]
    assert step(dg.ones(2)).tolist() == [3.0, 3.0]
    assert step(w).tolist() == [16.0, 16.0]
    assert step(w).tolist() == [25.0, 25.0]
    assert step(dg.ones(2)).tolist() == [6.0, 6.0]


def test_views_among_the_arguments_may_look_at_other_places() -> None:
    data = dg.tensor(X)
    step = dg.compile(lambda row: row * 2 + data.sum())
    for i in (0, 0, 1, 1):
        np.testing.assert_allclose(step(data[i]).numpy(), X[i] * 2 + X.sum(), rtol=1e-6)


def test_method_is_compiled_for_each_object() -> None:
    class Counter:
        def __init__(self) -> None:
            self.total = dg.zeros(2)

        @dg.compile
        def add(self, x: dg.Tensor) -> dg.Tensor:
            return self.total.add_(x)

    first, second = Counter(), Counter()
    for _ in range(CALLS):
        first.add(dg.ones(2))
    second.add(dg.ones(2))
    assert (first.total.tolist(), second.total.tolist()) == ([CALLS] * 2, [1, 1])


def test_copy_of_an_object_has_a_step_of_its_own() -> None:
    class Scale(dg.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = dg.nn.Parameter(dg.ones(2))

        @dg.compile
        def move(self) -> None:
            with dg.no_grad():
                self.w.add_(1)

    first = Scale()
    for _ in range(3):
        first.move()
    second = copy.deepcopy(first)
    for _ in range(3):
        second.move()
    assert (first.w.tolist(), second.w.tolist()) == ([4.0, 4.0], [7.0, 7.0])


def test_value_written_over_itself_stays() -> None:
    w, v = dg.ones(2), dg.zeros(2)

    @dg.compile
    def step(x: dg.Tensor) -> dg.Tensor:
        w.copy_(w)
        v.copy_(x)
        return x

    for i in range(4):
        x = dg.full((2,), float(i))
        assert step(x) is x
        assert (w.tolist(), v.tolist(), x.tolist()) == ([1.0, 1.0], [i, i], [i, i])


def test_generator_that_is_gone_is_another_next_time() -> None:
    own = {"generator": dg.Generator().manual_seed(1)}
    step = dg.compile(lambda: dg.rand(2, generator=own["generator"]))
    first = [step().tolist() for _ in range(3)]
    own["generator"] = dg.Generator().manual_seed(1)
    assert [step().tolist() for _ in range(3)] == first


# --- what is new --------------------------------------------------------------------------------


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


# --- a result with a history --------------------------------------------------------------------


def test_model_is_compiled_and_its_backward_comes_later() -> None:
    def run(wrap: Callable[..., Any]) -> Any:
        dg.manual_seed(0)
        model = dg.nn.Sequential(dg.nn.Linear(3, 4), dg.nn.BatchNorm1d(4), dg.nn.Tanh())
        call, x = wrap(model), dg.tensor(X)
        for _ in range(CALLS):
            x = dg.tensor(X, requires_grad=True)
            (call(x * 2).square() * x.sum()).sum().backward()
        return [x.grad, *[p.grad for p in model.parameters()], *model.buffers()]

    found, expected = run(dg.compile), run(lambda f: f)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6)


def test_compiled_module_shows_the_module() -> None:
    model = dg.nn.Linear(2, 1)
    compiled = dg.compile(model)
    assert len([*compiled.parameters()]) == 2
    assert compiled.weight is model.weight


def test_rule_written_by_hand_is_used_in_a_later_backward() -> None:
    step = dg.compile(lambda x: x.sqrt().sum() + dg.norm(x - 1))
    for _ in range(3):
        x = dg.tensor([0.0, 1.0], requires_grad=True)
        y = dg.tensor([0.0, 1.0], requires_grad=True)
        step(x).backward()
        (y.sqrt().sum() + dg.norm(y - 1)).backward()
        assert grad_of(x) == grad_of(y)


def test_second_derivative_of_a_compiled_call() -> None:
    step = dg.compile(lambda x: (x**3).sum())
    for _ in range(3):
        x = dg.tensor([1.0, 2.0], requires_grad=True)
        (first,) = dg.autograd.grad(step(x), x, create_graph=True)
        (second,) = dg.autograd.grad(first.sum(), x)
        assert second.tolist() == [6.0, 12.0]


def test_some_results_of_a_compiled_call_may_be_left_out() -> None:
    step = dg.compile(lambda x: (x * 2, (x**2).sum(), x.detach() + 1, x.int()))
    for _ in range(3):
        x = dg.tensor([1.0, 2.0], requires_grad=True)
        _, total, constant, number = step(x)
        total.backward()
        assert grad_of(x) == [2.0, 4.0]
        assert not (constant.requires_grad or number.requires_grad)


def test_gradient_of_a_compiled_complex_function_is_pytorch_s() -> None:
    step = dg.compile(lambda z: (z * z * (1 + 2j)).abs().sum())
    for _ in range(3):
        z, w = (dg.tensor([1 + 1j, 2 - 1j], requires_grad=True) for _ in range(2))
        step(z).backward()
        (w * w * (1 + 2j)).abs().sum().backward()
        np.testing.assert_allclose(grad_of(z), grad_of(w), rtol=1e-6)


def test_graph_of_a_compiled_call_is_freed_by_backward() -> None:
    step = dg.compile(lambda x: x.exp().sum())
    step(dg.ones(2, requires_grad=True))
    x = dg.ones(2, requires_grad=True)
    loss = step(x)
    assert loss.grad_fn is not None
    assert loss.grad_fn.name() == "CompiledCallBackward"
    loss.backward(retain_graph=True)
    loss.backward()
    with pytest.raises(RuntimeError, match="a second time"):
        loss.backward()


def test_backward_that_arrives_at_the_history_of_an_argument_is_refused() -> None:
    step = dg.compile(lambda x: x.sum().backward())
    w = dg.ones(2, requires_grad=True)
    step(w * 2)
    with pytest.raises(RuntimeError, match="an argument that has a history, of shape"):
        step(w * 2)
    assert grad_of(w) == [2.0, 2.0]


# --- what can't be compiled ---------------------------------------------------------------------


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
    assert any("test_compile.py:" in note for note in caught.value.__notes__)
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


# --- inside other things ------------------------------------------------------------------------


def test_inside_jax_and_mapped_functions_it_is_the_function() -> None:
    step = dg.compile(lambda x: x * 2)
    assert jax.jit(dg.to_jax(step))(jnp.ones(2)).tolist() == [2.0, 2.0]
    assert dg.func.vmap(step)(dg.ones(2, 2)).tolist() == [[2.0, 2.0]] * 2
    assert dg.func.grad(lambda x: step(x).sum())(dg.ones(2)).tolist() == [2.0, 2.0]


def test_compiled_step_in_a_compiled_step() -> None:
    inner = dg.compile(lambda x: x * 2)
    outer = dg.compile(lambda x: inner(x) + 1)
    for _ in range(CALLS):
        assert outer(dg.ones(2)).tolist() == [3.0, 3.0]


def test_modes_are_part_of_the_key() -> None:
    w = dg.ones(2, requires_grad=True)
    step = dg.compile(lambda: w * 2)
    for _ in range(2):
        assert step().requires_grad
        with dg.no_grad():
            assert not step().requires_grad
        with dg.inference_mode():
            assert step().is_inference()


# --- memory -------------------------------------------------------------------------------------


def test_nothing_of_a_call_is_kept_alive() -> None:
    w = dg.ones(2, requires_grad=True)
    step = dg.compile(lambda x: (w * x).sum().backward())
    step(dg.ones(2))
    gc.disable()
    try:
        seen, x = [], None
        for _ in range(3):
            x = dg.ones(2)
            step(x)
            seen.append(weakref.ref(x._cell))
        del x
        assert [reference() for reference in seen] == [None] * 3
    finally:
        gc.enable()


def test_programs_do_not_keep_what_the_function_let_go() -> None:
    tensors = {"w": dg.ones(2)}
    step = dg.compile(lambda x: tensors["w"] * x)
    for _ in range(3):
        step(dg.ones(2))
    old = weakref.ref(tensors["w"]._cell)
    tensors["w"] = dg.zeros(2)
    assert old() is None
    assert step(dg.ones(2)).tolist() == [0.0, 0.0]


def test_detached_result_of_the_first_call_is_no_view() -> None:
    step = dg.compile(lambda x: (x * 2).detach())
    assert not step(dg.ones(2, requires_grad=True))._is_view()


def test_arrays_are_as_many_after_more_steps() -> None:
    model = dg.nn.Linear(3, 2)
    optimizer = dg.optim.Adam(model.parameters())

    @dg.compile
    def step(x: dg.Tensor) -> dg.Tensor:
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    counts = []
    for _ in range(4):
        for _ in range(5):
            step(dg.tensor(X))
        counts.append(len(jax.live_arrays()))
    assert counts[1] == counts[2] == counts[3]


def test_memory_of_what_is_overwritten_is_used_again() -> None:
    w = dg.zeros(4)
    step = dg.compile(lambda: [w.add_(1)][1:])
    for _ in range(3):
        step()
    old = w._cell.array
    shown = w.detach()
    del shown
    reference = old
    step()
    assert not reference.is_deleted()  # somebody held it
    del old, reference
    pointer = w._cell.array.unsafe_buffer_pointer()
    step()
    assert w._cell.array.unsafe_buffer_pointer() == pointer
