"""Grad mode and inference mode: what they switch, how they nest, decorate and end."""

import copy
import inspect
import threading
from collections.abc import Callable, Generator, Iterator
from typing import Any

import numpy as np
import pytest

import dyngraph as dg


def leaf() -> dg.Tensor:
    return dg.tensor([1.0, 2.0], requires_grad=True)


def grad_of(tensor: dg.Tensor) -> list[float]:
    assert tensor.grad is not None
    return tensor.grad.tolist()


# Recording


def test_grad_mode_is_on_by_default() -> None:
    assert dg.is_grad_enabled()


def test_no_grad_switches_grad_mode_off() -> None:
    with dg.no_grad():
        inside = dg.is_grad_enabled()
    assert (inside, dg.is_grad_enabled()) == (False, True)


def test_results_under_no_grad_are_leaves_without_history() -> None:
    with dg.no_grad():
        y = leaf() * 2
    assert (y.requires_grad, y.grad_fn, y.is_leaf) == (False, None, True)


def test_graph_made_partly_under_no_grad_ends_there() -> None:
    x = leaf()
    with dg.no_grad():
        factor = x * 2
    (x * factor).sum().backward()
    assert grad_of(x) == [2.0, 4.0]


def test_requires_grad_can_be_asked_for_under_no_grad() -> None:
    with dg.no_grad():
        made = dg.ones(2, requires_grad=True)
        switched = dg.ones(2).requires_grad_()
    assert made.requires_grad and switched.requires_grad


def test_operator_on_a_leaf_made_under_no_grad_is_recorded_afterwards() -> None:
    with dg.no_grad():
        x = dg.ones(2, requires_grad=True)
    (x * 3).sum().backward()
    assert grad_of(x) == [3.0, 3.0]


def test_gradients_do_not_require_grad_without_create_graph() -> None:
    x = leaf()
    (x * x).sum().backward()
    assert x.grad is not None
    assert not x.grad.requires_grad


def test_enable_grad_records_inside_no_grad() -> None:
    x = leaf()
    with dg.no_grad():
        with dg.enable_grad():
            y = x * 2
        z = x * 2
    assert (y.requires_grad, z.requires_grad) == (True, False)


@pytest.mark.parametrize("mode", [True, False])
def test_set_grad_enabled_as_a_context_manager_restores_the_mode(mode: bool) -> None:
    with dg.set_grad_enabled(mode):
        inside = dg.is_grad_enabled()
    assert (inside, dg.is_grad_enabled()) == (mode, True)


def test_set_grad_enabled_as_a_function_stays() -> None:
    with dg.enable_grad():
        dg.set_grad_enabled(False)
        off = dg.is_grad_enabled()
        dg.set_grad_enabled(True)
        on = dg.is_grad_enabled()
    assert (off, on) == (False, True)


def test_leaving_a_context_undoes_set_grad_enabled_inside_it() -> None:
    with dg.no_grad():
        dg.set_grad_enabled(True)
    with dg.enable_grad():
        dg.set_grad_enabled(False)
    assert dg.is_grad_enabled()


def test_set_grad_enabled_takes_the_mode_by_name() -> None:
    with dg.set_grad_enabled(mode=False):
        assert not dg.is_grad_enabled()


def test_modes_restore_in_the_order_of_nesting() -> None:
    seen = []
    with dg.no_grad():
        with dg.enable_grad():
            with dg.set_grad_enabled(False):
                seen.append(dg.is_grad_enabled())
            seen.append(dg.is_grad_enabled())
        seen.append(dg.is_grad_enabled())
    assert seen == [False, True, False]


@pytest.mark.parametrize(
    "enter",
    [dg.no_grad, lambda: dg.set_grad_enabled(False), dg.inference_mode],
    ids=["no_grad", "set_grad_enabled", "inference_mode"],
)
def test_mode_is_restored_after_an_exception(enter: Callable[[], Any]) -> None:
    with pytest.raises(KeyError, match="inside"), enter():
        raise KeyError("inside")
    assert dg.is_grad_enabled() and not dg.is_inference_mode_enabled()


def test_mode_is_restored_after_an_exception_in_a_decorated_function() -> None:
    @dg.no_grad()
    def fails() -> None:
        raise KeyError("inside")

    with pytest.raises(KeyError, match="inside"):
        fails()
    assert dg.is_grad_enabled()


@pytest.mark.parametrize(
    "enter", [dg.no_grad, dg.inference_mode], ids=["no_grad", "inference_mode"]
)
def test_modes_of_another_thread_are_its_own(enter: Callable[[], Any]) -> None:
    seen: list[bool] = []

    def look() -> None:
        seen.extend((dg.is_grad_enabled(), dg.is_inference_mode_enabled()))

    with enter():
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    assert seen == [True, False]


def test_mode_set_by_another_thread_does_not_leak() -> None:
    thread = threading.Thread(target=dg.set_grad_enabled, args=(False,))
    thread.start()
    thread.join()
    assert dg.is_grad_enabled()


# Decorators of functions


@pytest.mark.parametrize(
    "decorate, expected",
    [
        (dg.no_grad, False),
        (dg.no_grad(), False),
        (dg.enable_grad, True),
        (dg.enable_grad(), True),
        (dg.inference_mode, False),
        (dg.inference_mode(), False),
        (dg.inference_mode(False), True),
    ],
    ids=[
        "no_grad",
        "no_grad()",
        "enable_grad",
        "enable_grad()",
        "inference_mode",
        "inference_mode()",
        "inference_mode(False)",
    ],
)
def test_decorated_function_runs_in_its_mode(decorate: Callable[..., Any], expected: bool) -> None:
    @decorate
    def mode() -> bool:
        return dg.is_grad_enabled()

    with dg.set_grad_enabled(not expected):
        assert mode() is expected
        assert dg.is_grad_enabled() is not expected


@pytest.mark.parametrize("mode", [True, False])
def test_set_grad_enabled_decorates_functions(mode: bool) -> None:
    @dg.set_grad_enabled(mode)
    def inside() -> bool:
        return dg.is_grad_enabled()

    with dg.set_grad_enabled(not mode):
        assert inside() is mode


def test_decorating_with_set_grad_enabled_leaves_the_mode_alone() -> None:
    with dg.enable_grad():
        dg.set_grad_enabled(False)(lambda: None)
        assert dg.is_grad_enabled()


def test_calling_a_set_grad_enabled_object_to_decorate_takes_its_switch_back() -> None:
    with dg.enable_grad():
        switch = dg.set_grad_enabled(False)
        before = dg.is_grad_enabled()
        switch(lambda: None)
        assert (before, dg.is_grad_enabled()) == (False, True)


def test_decorated_function_keeps_its_name_docstring_and_signature() -> None:
    @dg.no_grad()
    def documented(a: int, b: int = 2) -> int:
        """What it does."""
        return a + b

    assert (documented.__name__, documented.__doc__) == ("documented", "What it does.")
    assert list(inspect.signature(documented).parameters) == ["a", "b"]
    assert documented(1, b=5) == 6


def test_decorated_method_receives_its_object() -> None:
    class Model:
        @dg.no_grad()
        def mode(self) -> tuple[Any, bool]:
            return self, dg.is_grad_enabled()

    model = Model()
    assert model.mode() == (model, False)


def test_decorated_function_may_call_itself() -> None:
    @dg.no_grad()
    def down(depth: int) -> list[bool]:
        with dg.enable_grad():
            deeper = down(depth - 1) if depth else []
        return [*deeper, dg.is_grad_enabled()]

    assert down(3) == [False] * 4
    assert dg.is_grad_enabled()


@pytest.mark.parametrize("decorate", [dg.no_grad, dg.no_grad()], ids=["no_grad", "no_grad()"])
def test_decorating_a_class_warns_and_wraps_its_constructor_alone(
    decorate: Callable[..., Any],
) -> None:
    class Model:
        def __init__(self) -> None:
            self.at_construction = dg.is_grad_enabled()

        def mode(self) -> bool:
            return dg.is_grad_enabled()

    with pytest.warns(FutureWarning, match="Decorating classes is deprecated"):
        decorated = decorate(Model)
    model = decorated()
    assert (model.at_construction, model.mode()) == (False, True)


# Decorators of generators and coroutines


def test_decorated_generator_function_is_a_generator_function() -> None:
    @dg.no_grad()
    def numbers() -> Iterator[int]:
        yield 1

    assert inspect.isgeneratorfunction(numbers)


@pytest.mark.parametrize("mode", [True, False])
def test_generator_has_its_mode_and_its_caller_keeps_its_own(mode: bool) -> None:
    @dg.set_grad_enabled(mode)
    def modes() -> Iterator[bool]:
        for _ in range(3):
            yield dg.is_grad_enabled()

    seen = []
    with dg.set_grad_enabled(not mode):
        for inside in modes():
            seen.append((inside, dg.is_grad_enabled()))
    assert seen == [(mode, not mode)] * 3


def test_generator_follows_the_mode_of_a_context_inside_it_after_each_yield() -> None:
    @dg.no_grad
    def modes() -> Iterator[bool]:
        yield dg.is_grad_enabled()
        with dg.enable_grad():
            inside = dg.is_grad_enabled()
        yield inside
        yield dg.is_grad_enabled()

    assert list(modes()) == [False, True, False]
    assert dg.is_grad_enabled()


def test_mode_of_the_caller_may_change_between_two_steps_of_a_generator() -> None:
    @dg.no_grad()
    def modes() -> Iterator[bool]:
        while True:
            yield dg.is_grad_enabled()

    steps = modes()
    assert next(steps) is False
    with dg.no_grad():
        assert next(steps) is False
        assert not dg.is_grad_enabled()
    assert next(steps) is False
    assert dg.is_grad_enabled()


def test_recursive_generators_keep_their_modes_apart() -> None:
    @dg.enable_grad()
    def on(depth: int) -> Iterator[bool]:
        yield dg.is_grad_enabled()
        if depth:
            for inner in off(depth - 1):
                assert dg.is_grad_enabled()
                yield inner
        yield dg.is_grad_enabled()

    @dg.no_grad()
    def off(depth: int) -> Iterator[bool]:
        yield dg.is_grad_enabled()
        if depth:
            for inner in on(depth - 1):
                assert not dg.is_grad_enabled()
                yield inner
        yield dg.is_grad_enabled()

    for outside in (True, False):
        with dg.set_grad_enabled(outside):
            assert list(on(3)) == [True, False, True, False, False, True, False, True]
            assert dg.is_grad_enabled() is outside


def test_generator_receives_what_is_sent_in_its_mode() -> None:
    @dg.no_grad()
    def echo() -> Generator[Any, int, None]:
        received: Any = None
        while True:
            received = yield received, dg.is_grad_enabled()

    steps = echo()
    next(steps)
    assert [steps.send(1), steps.send(2)] == [(1, False), (2, False)]
    assert dg.is_grad_enabled()


def test_generator_returns_its_value() -> None:
    @dg.no_grad()
    def returns() -> Generator[int, None, str]:
        yield 1
        return "done"

    def outer() -> Generator[int, None, str]:
        return (yield from returns())

    steps = outer()
    next(steps)
    with pytest.raises(StopIteration, match="done"):
        next(steps)


def test_exception_thrown_into_a_generator_is_handled_in_its_mode() -> None:
    @dg.no_grad()
    def recovers() -> Iterator[Any]:
        while True:
            try:
                yield dg.is_grad_enabled()
            except ValueError as error:
                yield error.args[0], dg.is_grad_enabled()

    steps: Any = recovers()
    assert next(steps) is False
    assert steps.throw(ValueError("benign")) == ("benign", False)
    assert next(steps) is False
    assert dg.is_grad_enabled()


def test_exception_that_a_generator_does_not_handle_reaches_the_caller() -> None:
    @dg.no_grad()
    def fails() -> Iterator[bool]:
        yield dg.is_grad_enabled()

    steps: Any = fails()
    next(steps)
    with pytest.raises(ValueError, match="critical"):
        steps.throw(ValueError("critical"))
    assert dg.is_grad_enabled()


def test_exception_raised_by_a_generator_restores_the_mode() -> None:
    @dg.no_grad()
    def fails() -> Iterator[int]:
        yield 1
        raise ValueError("inside")

    with pytest.raises(ValueError, match="inside"):
        list(fails())
    assert dg.is_grad_enabled()


@pytest.mark.parametrize("mode", [True, False])
def test_closing_a_generator_runs_its_cleanup_in_its_mode(mode: bool) -> None:
    seen = []

    @dg.set_grad_enabled(mode)
    def cleans() -> Iterator[int]:
        try:
            yield 1
        finally:
            seen.append(dg.is_grad_enabled())

    with dg.set_grad_enabled(not mode):
        steps: Any = cleans()
        next(steps)
        steps.close()
        assert dg.is_grad_enabled() is not mode
    assert seen == [mode]


def test_operators_in_a_decorated_generator_are_not_recorded() -> None:
    @dg.no_grad()
    def powers(x: dg.Tensor) -> Iterator[dg.Tensor]:
        for _ in range(2):
            x = x * 2
            yield x

    assert [y.requires_grad for y in powers(leaf())] == [False, False]


# Inference mode


def inference_ones() -> dg.Tensor:
    with dg.inference_mode():
        return dg.ones(2)


def test_inference_mode_is_off_by_default() -> None:
    assert not dg.is_inference_mode_enabled()


def test_inference_mode_switches_grad_mode_off_too() -> None:
    with dg.inference_mode():
        inside = (dg.is_inference_mode_enabled(), dg.is_grad_enabled())
    assert inside == (True, False)
    assert (dg.is_inference_mode_enabled(), dg.is_grad_enabled()) == (False, True)


@pytest.mark.parametrize("outer, inner", [(True, False), (False, True), (True, True)])
def test_inference_mode_nests(outer: bool, inner: bool) -> None:
    with dg.inference_mode(outer):
        with dg.inference_mode(inner):
            assert dg.is_inference_mode_enabled() is inner
        assert dg.is_inference_mode_enabled() is outer
    assert not dg.is_inference_mode_enabled()


def test_inference_mode_false_makes_normal_tensors_inside_inference_mode() -> None:
    with dg.inference_mode(), dg.inference_mode(False):
        assert not dg.ones(2).is_inference()


def test_inference_mode_keeps_an_outer_no_grad_afterwards() -> None:
    with dg.no_grad():
        with dg.inference_mode():
            pass
        assert not dg.is_grad_enabled()


@pytest.mark.parametrize("mode", [True, False])
def test_decorated_function_runs_in_inference_mode(mode: bool) -> None:
    @dg.inference_mode(mode=mode)
    def inside() -> bool:
        return dg.is_inference_mode_enabled()

    assert inside() is mode
    assert not dg.is_inference_mode_enabled()


def test_inference_mode_without_parentheses_decorates() -> None:
    @dg.inference_mode
    def made(factor: int) -> dg.Tensor:
        return leaf() * factor

    result = made(3)
    assert (result.is_inference(), result.tolist()) == (True, [3.0, 6.0])


FACTORIES: dict[str, Callable[[], dg.Tensor]] = {
    "tensor": lambda: dg.tensor([1.0]),
    "as_tensor": lambda: dg.as_tensor([1.0]),
    "from_numpy": lambda: dg.from_numpy(np.ones(2, np.float32)),
    "zeros": lambda: dg.zeros(2),
    "ones": lambda: dg.ones(2),
    "full": lambda: dg.full((2,), 3.0),
    "empty": lambda: dg.empty(2),
    "arange": lambda: dg.arange(3),
    "linspace": lambda: dg.linspace(0, 1, 3),
    "eye": lambda: dg.eye(2),
    "rand": lambda: dg.rand(2),
    "randn": lambda: dg.randn(2),
}


@pytest.mark.parametrize("factory", FACTORIES)
def test_factories_make_inference_tensors_in_inference_mode(factory: str) -> None:
    with dg.inference_mode():
        made = FACTORIES[factory]()
    assert made.is_inference() and dg.is_inference(made)
    assert not FACTORIES[factory]().is_inference()


def test_like_factories_make_inference_tensors_of_normal_ones() -> None:
    x = dg.ones(2)
    with dg.inference_mode():
        made = [dg.zeros_like(x), x.new_zeros(2)]
    assert [y.is_inference() for y in made] == [True, True]


def test_results_in_inference_mode_are_inference_tensors() -> None:
    x, normal = leaf(), dg.ones(2)
    with dg.inference_mode():
        results = [x * 2, normal + 1, x + normal, dg.ones(2).exp()]
    assert all(y.is_inference() for y in results)


def test_results_in_inference_mode_do_not_require_grad() -> None:
    x = leaf()
    with dg.inference_mode():
        y = x * 2
    assert (y.requires_grad, y.grad_fn, y.is_leaf) == (False, None, True)


def test_normal_tensors_stay_normal_in_inference_mode() -> None:
    x = leaf()
    with dg.inference_mode():
        assert (x.is_inference(), x.requires_grad) == (False, True)


def test_enable_grad_inside_inference_mode_records_nothing() -> None:
    x = leaf()
    with dg.inference_mode(), dg.enable_grad():
        y = x * 2
    assert (y.requires_grad, y.is_inference()) == (False, True)


def test_backward_of_a_result_of_inference_mode_raises() -> None:
    x = leaf()
    with dg.inference_mode():
        y = x.sum()
    with pytest.raises(RuntimeError, match="does not require grad"):
        y.backward()


def test_requires_grad_may_be_asked_for_in_inference_mode() -> None:
    with dg.inference_mode():
        made = dg.ones(2, requires_grad=True)
        switched = dg.ones(2).requires_grad_()
    assert [(x.requires_grad, x.is_inference()) for x in (made, switched)] == [(True, True)] * 2


def test_requires_grad_on_an_inference_tensor_outside_raises() -> None:
    x = inference_ones()
    with pytest.raises(RuntimeError, match="inference tensor outside InferenceMode"):
        x.requires_grad_()
    with pytest.raises(RuntimeError, match="inference tensor outside InferenceMode"):
        x.requires_grad = True


def test_requires_grad_of_an_inference_tensor_may_be_set_to_false() -> None:
    x = inference_ones()
    x.requires_grad = False
    assert not x.requires_grad


def test_version_of_an_inference_tensor_raises() -> None:
    with pytest.raises(RuntimeError, match="Inference tensors do not track version counter"):
        _ = inference_ones()._version


def test_operator_on_inference_tensors_outside_makes_a_normal_tensor() -> None:
    x = inference_ones()
    y = x * 2 + x.exp()
    assert (y.is_inference(), y.requires_grad) == (False, False)


def test_operator_that_saves_nothing_mixes_inference_and_normal_tensors() -> None:
    x = leaf()
    y = x + inference_ones()
    y.sum().backward(dg.tensor(1.0))
    assert (y.tolist(), y.is_inference()) == ([2.0, 3.0], False)


@pytest.mark.parametrize(
    "operator",
    [lambda x, i: x * i, lambda x, i: x / i, lambda x, i: x @ i, lambda x, i: x.exp() * i],
    ids=["mul", "div", "matmul", "mul of a result"],
)
def test_saving_an_inference_tensor_for_backward_raises(operator: Callable[..., Any]) -> None:
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        operator(leaf(), inference_ones())


def test_error_of_saving_an_inference_tensor_advises_a_clone() -> None:
    with pytest.raises(RuntimeError, match="clone"):
        _ = leaf() * inference_ones()


def test_inference_tensor_may_meet_a_recorded_one_under_no_grad() -> None:
    with dg.no_grad():
        y = leaf() * inference_ones()
    assert (y.tolist(), y.is_inference()) == ([1.0, 2.0], False)


def test_clone_of_an_inference_tensor_outside_is_normal() -> None:
    x = leaf()
    copied = inference_ones().clone()
    (x * copied).sum().backward()
    assert not copied.is_inference()
    assert grad_of(x) == [1.0, 1.0]


def test_detach_of_an_inference_tensor_is_an_inference_tensor() -> None:
    assert inference_ones().detach().is_inference()


def test_deepcopy_of_an_inference_tensor_outside_is_normal() -> None:
    assert not copy.deepcopy(inference_ones()).is_inference()


def test_graph_recorded_before_inference_mode_runs_backward_in_it() -> None:
    x = leaf()
    y = (x * x).sum()
    with dg.inference_mode():
        (grad,) = dg.autograd.grad(y, x)
    assert grad.tolist() == [2.0, 4.0]


def test_inference_tensor_is_a_constant_for_operators_that_do_not_save_it() -> None:
    with dg.inference_mode():
        constant = dg.ones(2) * 3
    x = leaf()
    (grad,) = dg.autograd.grad((x - constant).sum(), x, dg.tensor(2.0))
    assert grad.tolist() == [2.0, 2.0]


def test_leaf_of_inference_mode_takes_a_gradient_where_it_is_not_saved() -> None:
    with dg.inference_mode():
        x = dg.ones(2, requires_grad=True)
    (x + dg.ones(2, requires_grad=True)).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [1.0, 1.0]
