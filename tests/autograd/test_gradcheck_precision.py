"""gradcheck in 64 bits while JAX has x64 off, what it says of a mismatch, and where inputs live."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import dyngraph as dg
from dyngraph.autograd import forward_ad, gradcheck, gradgradcheck
from dyngraph.autograd.checking import jacobians
from dyngraph.autograd.checking.precision import tensors_of
from dyngraph.autograd.gradcheck import GradcheckError
from dyngraph.tangents import give_tangent

W = dg.tensor([[1.0, 2.0], [3.0, 4.0]])


def leaf(*values: Any) -> dg.Tensor:
    return dg.tensor(values, requires_grad=True)


def uses_global(x: dg.Tensor) -> dg.Tensor:
    return (x @ W).exp()


# --- 64 bits -----------------------------------------------------------------------------------


@pytest.mark.parametrize("fast_mode", [False, True])
def test_float32_inputs_pass_without_x64(fast_mode: bool) -> None:
    inputs = leaf(0.3, 1.2), leaf(0.4, 2.0)
    func: Callable[..., Any] = lambda x, y: (x.sin() * y, x.exp())  # noqa: E731
    assert gradcheck(func, inputs, check_forward_ad=True, fast_mode=fast_mode)
    assert gradgradcheck(func, inputs, fast_mode=fast_mode)


def test_function_runs_in_float64_and_inputs_are_float32_again_afterwards() -> None:
    x = leaf(0.1, 0.2)
    seen = set()

    def func(given: dg.Tensor) -> dg.Tensor:
        seen.add((given is x, given.dtype))
        return given * 2

    gradcheck(func, x)
    assert seen == {(True, dg.float64)}
    assert x.dtype == dg.float32
    np.testing.assert_array_equal(x.detach(), np.array([0.1, 0.2], np.float32))
    assert x._version == 0


def test_inputs_are_float32_again_after_an_error() -> None:
    x = leaf(1.0)

    def func(x: dg.Tensor) -> dg.Tensor:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        gradcheck(func, x)
    assert x.dtype == dg.float32
    with pytest.raises(TypeError, match="jax_enable_x64"):
        x.double()


def test_float64_inputs_pass_while_x64_is_off() -> None:
    with jax.enable_x64(True):
        x = dg.tensor([1.0, 2.0], dtype=dg.float64, requires_grad=True)
    assert gradcheck(lambda x: x.sin(), x)
    assert gradgradcheck(lambda x: x.sin(), x)


def test_half_and_complex64_inputs_pass() -> None:
    assert gradcheck(lambda x: x.exp(), dg.tensor([1.0, 2.0], dtype=dg.float16).requires_grad_())
    assert gradcheck(lambda z: z * z.conj(), dg.tensor([1 + 2j]).requires_grad_())


def test_inputs_that_need_no_gradient_are_lifted_with_those_that_do() -> None:
    assert gradcheck(lambda x, w: x @ w, (leaf(1.0, 2.0), W))
    assert W.dtype == dg.float32


def test_input_that_an_operator_made_keeps_its_place_in_the_graph() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    assert gradgradcheck(lambda y: y**3, y, check_grad_dtypes=True)
    y.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [2, 2]


def test_hook_of_an_input_that_an_operator_made_is_seen() -> None:
    y = leaf(1.0, 2.0) * 2
    y.register_hook(lambda grad: grad * 2)
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        gradcheck(lambda y: y.exp(), y)


def test_view_is_lifted_by_itself_and_shares_memory_again_afterwards() -> None:
    base = dg.tensor([1.0, 2.0, 3.0])
    x = base[1:].requires_grad_()
    assert gradcheck(lambda x: x.exp(), x)
    base.mul_(2)
    assert x.tolist() == [4, 6]


# --- tensors that the function reads -----------------------------------------------------------


class Model:
    def __init__(self) -> None:
        self.layers = [{"weight": leaf(1.0, 2.0)}, {"weight": dg.tensor([3.0, 4.0])}]

    def __call__(self, x: dg.Tensor) -> dg.Tensor:
        for layer in self.layers:
            x = (x * layer["weight"]).tanh() @ dg.eye(2, dtype=x.dtype)
        return x

    def method(self, x: dg.Tensor) -> dg.Tensor:
        return self(x)


def test_model_passes_and_is_float32_again_afterwards() -> None:
    model = Model()
    assert gradcheck(model, leaf(0.1, 0.2))
    assert [layer["weight"].dtype for layer in model.layers] == [dg.float32, dg.float32]


def test_parameters_that_the_function_reads_past_its_arguments_are_checked() -> None:
    model, x = Model(), dg.tensor([0.1, 0.2])
    weight = model.layers[0]["weight"]
    assert gradcheck(lambda _: model(x), weight)
    weight.register_hook(lambda grad: grad * 2)
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        gradcheck(lambda _: model(x), weight)


@pytest.mark.parametrize(
    "find",
    [
        lambda w: lambda x: x @ w,
        lambda w: lambda x, w=w: x @ w,
        lambda w: functools.partial(lambda w, x: x @ w, w),
        lambda w: functools.partial(lambda x, w: x @ w, w=w),
        lambda w: functools.wraps(uses_global)(lambda x: next(v @ w for v in [x])),
        lambda w: {"w": (w, "text")},
    ],
    ids=["closure", "default", "partial", "partial keyword", "wrapped", "containers"],
)
def test_tensor_that_a_function_reads_is_found(find: Callable[[Any], Any]) -> None:
    w = dg.ones(2, 2)
    assert any(found is w for found in tensors_of(find(w)))


def test_global_and_method_are_found() -> None:
    assert tensors_of(uses_global) == [W]
    assert gradcheck(uses_global, leaf(0.1, 0.2))
    model = Model()
    assert [t.tolist() for t in tensors_of(model.method)] == [[1, 2], [3, 4]]


def test_search_ends_in_what_is_its_own_part() -> None:
    loop: list[Any] = [W]
    loop.append(loop)
    assert tensors_of(loop) == [W]


def test_what_the_function_writes_to_a_tensor_stays() -> None:
    calls = dg.zeros(1)

    def func(x: dg.Tensor) -> dg.Tensor:
        with dg.no_grad():
            calls.add_(1)
        return x * 2

    gradcheck(func, leaf(1.0), check_undefined_grad=False)
    assert calls.dtype == dg.float32
    assert calls.tolist() == [3]


def test_error_in_the_function_says_that_it_runs_in_64_bits() -> None:
    with pytest.raises(RuntimeError, match="same dtype") as raised:
        gradcheck(lambda x: x @ dg.ones(2, 2), leaf(1.0, 2.0))
    assert any("dtype=x.dtype" in note for note in raised.value.__notes__)


def test_coarse_output_is_told() -> None:
    with pytest.raises(GradcheckError, match=r"Output 0 is dyngraph\.float32, which is too coarse"):
        gradcheck(lambda x: x.float() ** 2, leaf(1.7))


# --- what an error says ------------------------------------------------------------------------


def wrong_in_one_place(x: dg.Tensor, y: dg.Tensor) -> tuple[dg.Tensor, ...]:
    y = y.clone()
    wrong = dg.tensor([[0.0, 0.0, 0.0], [0.0, 0.5, 0.0]], dtype=y.dtype)
    y.register_hook(lambda grad: grad + grad * wrong)
    return x, (y * 2).t()


POINT = r"\[4, 3\]: the derivative of element \[1, 1\] of output 1 with respect to element \[1, 1\]"


@pytest.mark.parametrize("fast_mode", [False, True])
def test_largest_difference_and_its_place_are_told(fast_mode: bool) -> None:
    y = dg.arange(6.0).reshape(2, 3).requires_grad_()
    with pytest.raises(GradcheckError, match=rf"largest difference is 1, at {POINT} of input 1"):
        gradcheck(wrong_in_one_place, (leaf(1.0), y), fast_mode=fast_mode)


def test_fast_mode_shows_products_and_whole_jacobians() -> None:
    y = dg.arange(6.0).reshape(2, 3).requires_grad_()
    with pytest.raises(GradcheckError, match=r"computed in fast mode.*In slow mode they are") as e:
        gradcheck(wrong_in_one_place, (leaf(1.0), y), fast_mode=True)
    assert str(e.value).count("numerical:tensor(") == 2


def test_nan_is_no_match() -> None:
    with pytest.raises(GradcheckError, match="The largest difference is nan"):
        gradcheck(lambda x: x.sqrt() * 0, dg.tensor([0.0], requires_grad=True))


@pytest.mark.parametrize("fast_mode", [False, True])
def test_infinite_output_is_no_match(fast_mode: bool) -> None:
    with pytest.raises(GradcheckError, match="The largest difference is nan"):
        gradcheck(lambda x: x - np.inf, leaf(1.0, 2.0), fast_mode=fast_mode)


def test_output_that_is_no_tensor_raises() -> None:
    with pytest.raises(TypeError, match="func returned NoneType as output 1: expected a tensor"):
        gradcheck(lambda x: (x, None), leaf(1.0))


def test_second_derivative_without_an_output_that_requires_grad_raises() -> None:
    with pytest.raises(ValueError, match="at least one output to require gradient"):
        gradgradcheck(lambda x: x.detach(), leaf(1.0))


def test_other_error_for_an_absent_gradient_has_a_note() -> None:
    def func(x: dg.Tensor) -> dg.Tensor:
        y = x.clone()
        y.register_hook(lambda grad: grad * 1)
        return y

    with pytest.raises(TypeError, match="NoneType") as raised:
        gradcheck(func, leaf(1.0))
    assert any("check_undefined_grad=False" in note for note in raised.value.__notes__)


# What the Engine and forward mode do not let happen: so it is put in between.


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (lambda grad: grad.float(), {"check_grad_dtypes": True}, "Gradient has dtype mismatch"),
        (lambda grad: grad[:1], {}, "Analytical gradient has incorrect size"),
    ],
)
def test_gradient_of_another_kind_raises(
    change: Callable[[Any], Any],
    options: dict[str, Any],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def changed(*args: Any, **kwargs: Any) -> Any:
        return tuple(map(change, dg.autograd.grad(*args, **kwargs)))

    monkeypatch.setattr(jacobians, "grad", changed)
    with pytest.raises(GradcheckError, match=message):
        gradcheck(lambda x: x * 2, leaf(1.0, 2.0), **options)


def test_complex_tangent_of_a_real_output_raises() -> None:
    def func(x: dg.Tensor) -> dg.Tensor:
        y = x * 2
        if forward_ad._current_level >= 0:
            give_tangent(y, dg.tensor([1j]))
        return y

    options: dict[str, Any] = dict(check_forward_ad=True, check_backward_ad=False)
    with pytest.raises(GradcheckError, match="Forward AD gradient has dtype mismatch"):
        gradcheck(func, leaf(1.0), check_grad_dtypes=True, **options)


def test_names_are_found_by_import() -> None:
    from dyngraph.autograd.gradcheck import gradcheck as function

    assert function is dg.autograd.gradcheck


# --- devices -----------------------------------------------------------------------------------


@pytest.mark.parametrize("fast_mode", [False, True])
def test_output_may_be_on_another_device(fast_mode: bool) -> None:
    x = dg.tensor([1.0, 2.0], device="cpu:1", requires_grad=True)
    assert gradcheck(lambda x: x.to("cpu:2") * 2, x, fast_mode=fast_mode, check_batched_grad=True)


def test_default_device_has_no_say_in_where_inputs_live() -> None:
    x = dg.tensor([1.0, 2.0], device="cpu:1", requires_grad=True)
    with jax.default_device(jax.devices()[2]):
        assert gradcheck(lambda x: x.exp(), x, check_forward_ad=True)
        assert gradgradcheck(lambda x: x.exp(), x)
    assert str(x.device) == "cpu:1"
