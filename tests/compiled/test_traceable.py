"""Hooks and Functions that are marked traceable: traced into the program, called by no backward."""

import inspect
from typing import Any

import pytest

import dyngraph as dg
from dyngraph.compiled import traceable
from dyngraph.errors import TraceableError
from tests.compiled.helpers import assert_same, compilations_of, grad_of, leaf, same_in_both_modes


class Square(dg.autograd.Function):
    """k * x**2, whose backward is traced; it counts how often it runs as Python."""

    traceable = True
    runs = 0

    @staticmethod
    def forward(ctx: Any, x: dg.Tensor, k: float) -> dg.Tensor:
        ctx.save_for_backward(x)
        ctx.k = k
        return x * x * k

    @staticmethod
    def backward(ctx: Any, grad: dg.Tensor) -> Any:
        Square.runs += 1
        (x,) = ctx.saved_tensors
        return 2 * x * grad * ctx.k, None


def python_steps() -> int:
    return dg.compiled.stats().python_steps


# Hooks


@pytest.mark.parametrize("kind", ["tensor hook", "pre-hook", "hook"])
def test_traceable_hook_is_no_python_step(kind: str) -> None:
    @traceable
    def twice(*grads: Any) -> Any:
        if kind == "tensor hook":
            return grads[0] * 2
        return tuple(g * 2 for g in grads[0])

    def program() -> dg.Tensor:
        x = leaf(1.0, 2.0)
        y = x.exp()
        assert y.grad_fn is not None
        if kind == "tensor hook":
            y.register_hook(twice)
        elif kind == "pre-hook":
            y.grad_fn.register_prehook(twice)
        else:
            y.grad_fn.register_hook(twice)
        y.sum().backward()
        return grad_of(x)

    same_in_both_modes(program)
    assert python_steps() == 0


def test_traceable_hook_that_answers_nothing_leaves_the_gradient() -> None:
    def program() -> dg.Tensor:
        x = leaf(1.0, 2.0)
        y = x.exp()
        y.register_hook(traceable(lambda grad: None))
        y.sum().backward()
        return grad_of(x)

    same_in_both_modes(program)


def test_fresh_traceable_lambdas_compile_nothing_new() -> None:
    x, scale = leaf(1.0, 2.0), dg.tensor([3.0, 4.0])

    def step() -> None:
        y = x.exp()
        y.register_hook(traceable(lambda grad: grad * scale))
        dg.autograd.grad(y.sum(), x)

    assert compilations_of(step, 4) == [0, 1, 0, 0]


def test_tensor_in_the_closure_of_a_traceable_hook_is_read_every_time() -> None:
    x, scale = leaf(1.0, 2.0), dg.tensor([1.0, 1.0])
    hook = traceable(lambda grad: grad * scale)
    with dg.compiled_autograd():
        for step in range(4):
            scale.fill_(float(step))
            y = x * 1
            y.register_hook(hook)
            assert_same(dg.autograd.grad(y.sum(), x)[0], dg.full((2,), float(step)))


def test_marked_hook_is_called_in_an_ordinary_backward() -> None:
    seen = []
    x = leaf(1.0)
    x.register_hook(traceable(lambda grad: seen.append(grad)))
    (x * 2).backward()
    assert len(seen) == 1


def test_what_takes_no_attribute_cannot_be_marked() -> None:
    with pytest.raises(TypeError, match=r"can't be marked as traceable.*Wrap it in a function"):
        traceable(len)


# Functions


def test_traceable_function_is_traced_once() -> None:
    x = leaf(1.0, 2.0)
    Square.runs = 0
    with dg.compiled_autograd():
        for _ in range(4):
            assert_same(dg.autograd.grad(Square.apply(x, 3.0).sum(), x)[0], 6 * x.detach())
    assert (Square.runs, python_steps()) == (1, 0)


def test_attribute_of_ctx_is_part_of_what_is_traced() -> None:
    x = leaf(1.0, 2.0)
    with dg.compiled_autograd():
        for k in (1.0, 2.0, 1.0, 2.0):
            (grad,) = dg.autograd.grad(Square.apply(x, k).sum(), x)
            assert_same(grad, 2 * k * x.detach())


def test_saved_values_of_a_traceable_function_are_read_every_time() -> None:
    with dg.compiled_autograd():
        for value in (1.0, 2.0, 3.0):
            x = leaf(value)
            assert_same(dg.autograd.grad(Square.apply(x, 1.0), x)[0], 2 * x.detach())


def test_traceable_function_has_second_derivatives() -> None:
    def program() -> dg.Tensor:
        x = leaf(1.0, 2.0)
        (first,) = dg.autograd.grad(Square.apply(x, 3.0).sum(), x, create_graph=True)
        return dg.autograd.grad((first * x).sum(), x)[0]

    same_in_both_modes(program)


def test_traceable_function_checks_the_version_of_what_it_saved() -> None:
    x = leaf(1.0, 2.0)
    y = x * 1
    loss = Square.apply(y, 1.0).sum()
    y.add_(1)
    with dg.compiled_autograd(), pytest.raises(RuntimeError, match="modified by an inplace"):
        loss.backward()


def test_traceable_function_under_saved_tensor_hooks_is_python() -> None:
    def program() -> dg.Tensor:
        x = leaf(1.0, 2.0)
        with dg.autograd.graph.saved_tensors_hooks(lambda t: t.numpy(), dg.tensor):
            loss = Square.apply(x, 3.0).sum()
        loss.backward()
        return grad_of(x)

    same_in_both_modes(program)


# What can't be traced


def looks(grad: dg.Tensor) -> dg.Tensor:
    return grad if grad.sum() > 0 else -grad


def test_hook_that_needs_a_value_is_named_with_its_line() -> None:
    line = inspect.getsourcelines(looks)[1] + 1
    x = leaf(1.0)
    x.register_hook(traceable(lambda grad: looks(grad)))
    with dg.compiled_autograd(), pytest.raises(TraceableError, match=f"{__file__}:{line}") as found:
        (x * 2).backward()
    assert "'<lambda>' is marked traceable" in str(found.value)


def test_error_of_a_trace_says_the_two_ways_out() -> None:
    x = leaf(1.0)
    x.register_hook(traceable(lambda grad: print(grad.item())))
    match = r"Take the mark away.*dg\.where"
    with dg.compiled_autograd(), pytest.raises(TypeError, match=match):
        (x * 2).backward()


def test_function_that_needs_a_value_is_named() -> None:
    class Looking(Square):
        @staticmethod
        def backward(ctx: Any, grad: dg.Tensor) -> Any:
            return (grad if bool(grad.sum() > 0) else -grad), None

    x = leaf(1.0)
    with dg.compiled_autograd(), pytest.raises(TraceableError, match="'Looking' is marked"):
        Looking.apply(x, 1.0).backward()


def test_failed_trace_leaves_the_mode_usable() -> None:
    x = leaf(1.0, 2.0)
    handle = x.register_hook(traceable(looks))
    with dg.compiled_autograd():
        with pytest.raises(TraceableError, match="needs the value"):
            (x * x).sum().backward()
        handle.remove()
        x.grad = None
        for _ in range(3):
            assert_same(dg.autograd.grad((x * x).sum(), x)[0], 2 * x.detach())
