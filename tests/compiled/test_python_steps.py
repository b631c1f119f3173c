"""Hooks, Functions and checkpoints in a compiled backward: Python that runs every time, in eager's
order, and never makes anything compile again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dyngraph as dg
from dyngraph.autograd.graph import register_multi_grad_hook, saved_tensors_hooks
from dyngraph.utils.checkpoint import checkpoint
from tests.compiled.helpers import (
    compilations,
    compilations_of,
    grad_of,
    leaf,
    raised_by,
    same_in_both_modes,
)
from tests.graph.helpers import node_of, queue_callback

Action = Callable[[Any], object]


class Square(dg.autograd.Function):
    """Calls what it is given when its backward runs."""

    @staticmethod
    def forward(ctx: Any, x: dg.Tensor, action: Action) -> dg.Tensor:
        ctx.save_for_backward(x)
        ctx.action = action
        return x * x

    @staticmethod
    def backward(ctx: Any, grad: dg.Tensor) -> tuple[Any, ...]:
        (x,) = ctx.saved_tensors
        ctx.action(grad)
        return grad * 2 * x, None


# Places where Python runs: each takes the value that it works on and what to call there, and gives
# the value that goes on.


def with_tensor_hook(y: dg.Tensor, action: Action) -> dg.Tensor:
    y.register_hook(lambda grad: action(grad))  # returns None, or a new gradient
    return y


def with_pre_hook(y: dg.Tensor, action: Action) -> dg.Tensor:
    node_of(y).register_prehook(lambda grads: action(grads[0]) and None)
    return y


def with_post_hook(y: dg.Tensor, action: Action) -> dg.Tensor:
    node_of(y).register_hook(lambda inputs, grads: action(inputs[0]) and None)
    return y


def with_function(y: dg.Tensor, action: Action) -> dg.Tensor:
    return Square.apply(y, action)


def with_unpack_hook(y: dg.Tensor, action: Action) -> dg.Tensor:
    def unpack(value: Any) -> Any:
        action(value)
        return value

    with saved_tensors_hooks(lambda value: value.clone(), unpack):
        return y.sin()


def with_checkpoint(y: dg.Tensor, action: Action) -> dg.Tensor:
    def body(value: dg.Tensor) -> dg.Tensor:
        action(value)
        return value.sin()

    return checkpoint(body, y, use_reentrant=False)


def with_multi_grad_hook(y: dg.Tensor, action: Action) -> dg.Tensor:
    def hook(grads: Any) -> None:
        action(grads[0])

    register_multi_grad_hook([y], hook)
    return y


PLACES = [
    with_tensor_hook,
    with_pre_hook,
    with_post_hook,
    with_function,
    with_unpack_hook,
    with_checkpoint,
    with_multi_grad_hook,
]
every_place = pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__[5:])


# Compilations


@every_place
def test_new_closure_every_step_compiles_nothing_more(place: Callable[..., Any]) -> None:
    x = leaf(1.0, 2.0)

    def step() -> None:
        x.grad, here = None, []
        y = place(x.exp(), lambda grad: here.append(grad))
        (y.sin() * y).sum().backward()
        assert here

    made = compilations_of(step, 6)
    assert sum(made[:2]) > 0
    assert made[2:] == [0, 0, 0, 0]


def test_new_post_accumulate_hook_every_step_compiles_nothing_more() -> None:
    def step() -> None:
        x, seen = leaf(1.0, 2.0), []
        x.register_post_accumulate_grad_hook(lambda t: seen.append(t))
        (x.exp() * x).sum().backward()
        assert seen == [x]

    assert compilations_of(step, 5)[2:] == [0, 0, 0]


def test_hook_that_changes_the_gradient_compiles_nothing_more() -> None:
    scales = iter(range(1, 9))

    def step() -> None:
        scale = next(scales)
        x = leaf(1.0, 2.0)
        y = x * 3
        y.register_hook(lambda grad: grad * scale)
        y.sin().sum().backward()
        assert grad_of(x).tolist() == pytest.approx((y.detach().cos() * 3 * scale).tolist())

    assert compilations_of(step, 6)[2:] == [0, 0, 0, 0]


def test_nothing_is_compiled_between_two_hooks_of_one_tensor() -> None:
    x = leaf(1.0, 2.0)
    with dg.compiled_autograd():
        for _ in range(2):
            y = x.exp()
            y.register_hook(lambda grad: None)
            y.register_hook(lambda grad: None)
            y.sum().backward()
    assert compilations() <= 3


# Order and values of what Python sees


class Diary:
    """What happened, in order: names, and the values that were there to be seen."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    def note(self, name: str, *more: Callable[[], Any]) -> Action:
        """An action that writes down the name, what it is given, and what `more` gives then."""

        def action(value: Any) -> None:
            seen = value.detach().clone() if isinstance(value, dg.Tensor) else value
            self.events.append((name, seen, *[get() for get in more]))

        return action


def grad_or_none(x: dg.Tensor) -> Callable[[], Any]:
    return lambda: None if x.grad is None else x.grad.clone()


@every_place
def test_python_sees_what_it_sees_eagerly(place: Callable[..., Any]) -> None:
    def program() -> Any:
        diary, x, z = Diary(), leaf(1.0, 2.0), leaf(3.0, 4.0)
        y = place(x.exp() * 1, diary.note("here", grad_or_none(x), grad_or_none(z)))
        (y * z).sin().sum().backward()
        return diary.events, x.grad, z.grad

    same_in_both_modes(program)


@every_place
def test_python_in_a_loop_runs_once_each_time_and_last_first(place: Callable[..., Any]) -> None:
    def program() -> Any:
        diary, x = Diary(), leaf(1.0, 2.0)
        y = x
        for i in range(4):
            y = place(y.sin() + x, diary.note(f"step {i}"))
        y.sum().backward()
        return diary.events, x.grad

    same_in_both_modes(program)


def test_all_kinds_of_python_run_in_eagers_order() -> None:
    def program() -> Any:
        diary, x, z = Diary(), leaf(1.0, 2.0), leaf(3.0, 4.0)
        y = x.exp()
        for place in PLACES:
            y = place(y.tanh() * z, diary.note(place.__name__, grad_or_none(x), grad_or_none(z)))
        for name, t in (("x", x), ("z", z)):
            t.register_hook(diary.note(f"hook of {name}"))
            t.register_post_accumulate_grad_hook(
                lambda t, name=name: diary.note(f"after {name}")(t.grad)
            )
        y.sum().backward()
        return diary.events, x.grad, z.grad

    same_in_both_modes(program)


def test_several_hooks_of_one_tensor_see_each_others_gradients() -> None:
    def program() -> Any:
        diary, x = Diary(), leaf(1.0, 2.0)
        y = x.exp()
        for factor in (2, 3):
            y.register_hook(diary.note(f"before {factor}"))
            y.register_hook(lambda grad, factor=factor: grad * factor)
        y.retain_grad()
        y.sum().backward()
        return diary.events, x.grad, y.grad

    same_in_both_modes(program)


def test_node_hooks_replace_gradients() -> None:
    def program() -> Any:
        x, z = leaf(1.0, 2.0), leaf(3.0, 4.0)
        y = x.exp() * z
        node_of(y).register_prehook(lambda grads: (grads[0] * 2,))
        node_of(y).register_hook(lambda inputs, grads: (inputs[0] * 5, None))
        y.sum().backward()
        return x.grad, z.grad

    same_in_both_modes(program)


def test_hook_on_a_tensor_that_gets_no_gradient_is_not_called() -> None:
    def program() -> Any:
        diary, x = Diary(), leaf(1.0, 2.0)
        first, second = x.chunk(2)
        second.register_hook(diary.note("second"))
        first.register_hook(diary.note("first"))
        first.sum().backward()
        return diary.events, x.grad

    same_in_both_modes(program)


def test_hook_that_removes_itself_runs_once() -> None:
    def program() -> Any:
        diary, x = Diary(), leaf(1.0, 2.0)
        y = x.exp()

        def once(grad: dg.Tensor) -> None:
            handle.remove()
            diary.note("once")(grad)

        handle = y.register_hook(once)
        y.sum().backward(retain_graph=True)
        y.sum().backward()
        return diary.events, x.grad

    same_in_both_modes(program)


def test_hook_may_hang_a_hook_on_what_comes_later() -> None:
    def program() -> Any:
        diary, x = Diary(), leaf(1.0, 2.0)
        y = x.exp()
        y.sin().register_hook(lambda grad: None)
        z = y.sin()
        z.register_hook(lambda grad: y.register_hook(diary.note("later")) and None)
        z.sum().backward()
        return diary.events, x.grad

    same_in_both_modes(program)


def test_hook_may_call_backward_of_another_graph() -> None:
    def program() -> Any:
        x, z = leaf(1.0, 2.0), leaf(3.0, 4.0)
        y = x.exp()
        other = (z * z).sum()
        y.register_hook(lambda grad: other.backward())
        (y * z).sum().backward()
        return x.grad, z.grad

    same_in_both_modes(program)


def test_hook_may_ask_for_gradients_of_the_graph_that_is_running() -> None:
    def program() -> Any:
        diary, x = Diary(), leaf(1.0, 2.0)
        y = x.exp()
        z, other = y.sin(), y.sum()

        def ask(grad: dg.Tensor) -> None:
            diary.note("asked")(dg.autograd.grad(other, x, retain_graph=True)[0])

        z.register_hook(ask)
        z.sum().backward()
        return diary.events, x.grad

    same_in_both_modes(program)


def test_hook_may_change_the_grad_of_a_leaf() -> None:
    def program() -> Any:
        x, z = leaf(1.0, 2.0), leaf(3.0, 4.0)
        z.grad = dg.ones(2)
        y = x.exp()
        y.register_hook(lambda grad: setattr(z, "grad", grad.detach() * 100))
        (y * 2 + (z * z)).sum().backward()
        return x.grad, z.grad

    same_in_both_modes(program)


def test_hook_that_writes_to_its_gradient_changes_what_it_changes_eagerly() -> None:
    def program() -> Any:
        x, z = leaf(1.0, 2.0), leaf(3.0, 4.0)
        y = x * 2

        def write(grad: dg.Tensor) -> None:
            grad.mul_(10)

        y.register_hook(write)
        (y + z).backward(dg.ones(2))
        return x.grad, z.grad

    same_in_both_modes(program)


def test_post_accumulate_hook_may_take_the_step_and_drop_the_grad() -> None:
    def program() -> Any:
        x = leaf(1.0, 2.0)

        def take_step(leaf: dg.Tensor) -> None:
            with dg.no_grad():
                leaf -= grad_of(leaf) * 0.1
            leaf.grad = None

        x.register_post_accumulate_grad_hook(take_step)
        for _ in range(3):
            (x.exp() * x).sum().backward()
        return x, x.grad

    same_in_both_modes(program)


def test_callback_runs_after_all_gradients_are_there() -> None:
    def program() -> Any:
        found: list[Any] = []
        x, z = leaf(1.0, 2.0), leaf(3.0, 4.0)
        y = x.exp()
        y.register_hook(lambda grad: queue_callback(lambda: found.extend([grad_of(x), grad_of(z)])))
        (y * z).sum().backward()
        return found

    same_in_both_modes(program)


def test_gradient_that_a_hook_kept_keeps_its_value() -> None:
    def program() -> Any:
        kept: list[dg.Tensor] = []
        x = leaf(1.0, 2.0)
        y = x.exp()
        y.register_hook(kept.append)
        for _ in range(3):
            (y * kept[-1] if kept else y).sum().backward(retain_graph=True)
        return kept, x.grad

    same_in_both_modes(program)


def test_grad_mode_in_a_hook_is_off() -> None:
    def program() -> Any:
        diary, x = Diary(), leaf(1.0, 2.0)
        y = x.exp()
        y.register_hook(diary.note("grad mode", dg.is_grad_enabled))
        y.sum().backward()
        return diary.events

    same_in_both_modes(program)


# Functions


def test_function_that_returns_none_sometimes() -> None:
    def program() -> Any:
        class Picky(dg.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: dg.Tensor, answers: bool) -> dg.Tensor:
                ctx.answers = answers
                return x * 2

            @staticmethod
            def backward(ctx: Any, grad: dg.Tensor) -> tuple[Any, ...]:
                return grad * 2 if ctx.answers else None, None

        found = []
        for answers in (True, False, True, False):
            x, z = leaf(1.0, 2.0), leaf(3.0, 4.0)
            (Picky.apply(x.exp(), answers) * z).sum().backward()
            found.append((x.grad, z.grad))
        return found

    same_in_both_modes(program)


def test_function_with_two_outputs_of_which_one_is_used() -> None:
    class Both(dg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: dg.Tensor) -> tuple[dg.Tensor, dg.Tensor]:
            return x * 2, x * 3

        @staticmethod
        def backward(ctx: Any, first: dg.Tensor, second: dg.Tensor) -> dg.Tensor:
            return first * 2 + second * 3

    def program() -> Any:
        x = leaf(1.0, 2.0)
        _, second = Both.apply(x.exp())
        second.sum().backward()
        return x.grad

    same_in_both_modes(program)


def test_function_that_needs_no_materialized_gradients_sees_none() -> None:
    def program() -> Any:
        seen: list[Any] = []

        class Both(dg.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: dg.Tensor) -> tuple[dg.Tensor, dg.Tensor]:
                ctx.set_materialize_grads(False)
                return x * 2, x * 3

            @staticmethod
            def backward(ctx: Any, first: Any, second: Any) -> Any:
                seen.append((first is None, second is None))
                return second * 3

        x = leaf(1.0, 2.0)
        _, second = Both.apply(x.exp())
        second.sum().backward()
        return seen, x.grad

    same_in_both_modes(program)


def test_function_that_runs_a_backward_of_its_own() -> None:
    class Inner(dg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        def backward(ctx: Any, grad: dg.Tensor) -> dg.Tensor:
            (x,) = ctx.saved_tensors
            with dg.enable_grad():
                x = x.detach().requires_grad_()
                (by_x,) = dg.autograd.grad(x.sin(), x, grad)
            return by_x

    def program() -> Any:
        x = leaf(1.0, 2.0)
        (Inner.apply(x.exp()) * x).sum().backward()
        return x.grad

    same_in_both_modes(program)


# Checkpoints and saved-tensor hooks


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_checkpoint_recomputes_once_each_backward(use_reentrant: bool) -> None:
    def program() -> Any:
        calls: list[int] = []

        def body(value: dg.Tensor) -> dg.Tensor:
            calls.append(1)
            return value.exp().sin()

        x = leaf(1.0, 2.0)
        y = checkpoint(body, x * 1, use_reentrant=use_reentrant)
        y.sum().backward()
        return len(calls), x.grad

    calls, _ = same_in_both_modes(program)
    assert calls == 2


def test_unpack_hooks_are_called_in_eagers_order() -> None:
    def program() -> Any:
        diary, x = Diary(), leaf(1.0, 2.0)

        def unpack(value: Any) -> Any:
            diary.note("unpack")(value)
            return value

        with saved_tensors_hooks(lambda value: value.clone(), unpack):
            y = (x.exp() * x.sin()).tanh() / x
        y.sum().backward()
        return diary.events, x.grad

    same_in_both_modes(program)


def test_values_packed_to_numpy_come_back() -> None:
    def program() -> Any:
        x = leaf(1.0, 2.0)
        with saved_tensors_hooks(lambda value: value.numpy(), dg.tensor):
            y = x.detach() * x.exp()
        y.sum().backward()
        return x.grad

    same_in_both_modes(program)


# Hooks that raise or write


@every_place
def test_error_in_python_is_eagers_and_so_is_what_had_happened(place: Callable[..., Any]) -> None:
    def fail(value: Any) -> None:
        raise ValueError("from the hook")

    def program() -> Any:
        x, z = leaf(1.0, 2.0), leaf(3.0, 4.0)
        y = place(x.exp() * 1, lambda value: None)
        loss = (place(y.sin() * 1, fail) * z).sum() if place is not with_checkpoint else None
        if loss is None:
            started: list[int] = []

            def body(value: dg.Tensor) -> dg.Tensor:
                started.append(1)
                if len(started) > 1:
                    fail(value)
                return value.sin()

            loss = (checkpoint(body, y, use_reentrant=False) * z).sum()
        first = raised_by(loss.backward)
        assert first is not None
        return first, x.grad, z.grad, raised_by(loss.backward), x.grad, z.grad

    same_in_both_modes(program)


def test_error_in_a_post_accumulate_hook_is_eagers() -> None:
    def program() -> Any:
        x, z = leaf(1.0, 2.0), leaf(3.0, 4.0)
        z.register_post_accumulate_grad_hook(lambda t: 1 / 0 and None)
        return raised_by((x.exp() * z).sum().backward), x.grad, z.grad

    same_in_both_modes(program)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(lambda grad: 3, id="no tensor"),
        pytest.param(lambda grad: grad[:1], id="another shape"),
        pytest.param(lambda grad: grad.to(dg.bfloat16), id="another dtype"),
    ],
)
def test_answer_of_a_hook_that_does_not_fit_raises_as_eagerly(answer: Action) -> None:
    def program() -> Any:
        x, z = leaf(1.0, 2.0), leaf(3.0, 4.0)
        y = x.exp()
        y.register_hook(answer)
        return raised_by((y * z).sum().backward), x.grad, z.grad

    assert same_in_both_modes(program)[0] is not None


def test_hook_that_writes_to_a_saved_tensor_raises_as_eagerly() -> None:
    def program() -> Any:
        x, w = leaf(1.0, 2.0), dg.tensor([3.0, 4.0])
        y = x.exp() * w
        z = y.sin()

        def write(grad: dg.Tensor) -> None:
            w.add_(1)

        z.register_hook(write)
        return raised_by(z.sum().backward), x.grad

    error, _ = same_in_both_modes(program)
    assert "modified by an inplace operation" in error.text


def test_hook_that_writes_to_what_was_used_already_is_fine() -> None:
    def program() -> Any:
        x, w = leaf(1.0, 2.0), dg.tensor([3.0, 4.0])
        y = x.exp()
        z = y * w

        def write(grad: dg.Tensor) -> None:
            w.add_(1)

        y.register_hook(write)
        z.sum().backward()
        return x.grad, w

    same_in_both_modes(program)


def test_hook_that_writes_to_a_leaf_that_was_saved_raises_as_eagerly() -> None:
    def program() -> Any:
        x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
        z = (x.exp() * w).sin()

        def write(grad: dg.Tensor) -> None:
            with dg.no_grad():
                w.mul_(2)

        z.register_hook(write)
        return raised_by(z.sum().backward), x.grad, w.grad

    assert same_in_both_modes(program)[0] is not None


def test_hook_that_frees_the_graph_below_raises_as_eagerly() -> None:
    def program() -> Any:
        x = leaf(1.0, 2.0)
        y = x.exp()
        z = y.sin()

        below = y.sum()

        def run_below(grad: dg.Tensor) -> None:
            below.backward()

        z.register_hook(run_below)
        return raised_by(z.sum().backward), x.grad

    error, _ = same_in_both_modes(program)
    assert "second time" in error.text


def test_backward_after_an_error_in_a_hook_compiles_as_ever() -> None:
    def fail(grad: Any) -> None:
        raise ValueError("from the hook")

    x = leaf(1.0, 2.0)
    with dg.compiled_autograd():
        y = x.exp()
        y.register_hook(fail)
        with pytest.raises(ValueError, match="from the hook"):
            y.sum().backward()
    assert x.grad is None
    same_in_both_modes(lambda: dg.autograd.grad(x.exp().sum(), x))
