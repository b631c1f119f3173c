"""gradcheck and gradgradcheck: which derivatives they pass, which they refuse, what they say."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

import dyngraph as dg
from dyngraph.autograd import forward_ad, gradcheck, gradgradcheck
from dyngraph.autograd.gradcheck import GradcheckError

pytestmark = pytest.mark.usefixtures("x64")
modes = pytest.mark.parametrize("fast_mode", [False, True], ids=["slow", "fast"])


def leaf(*values: complex, dtype: Any = None) -> dg.Tensor:
    if dtype is None:
        dtype = dg.complex128 if any(isinstance(v, complex) for v in values) else dg.float64
    return dg.tensor(values, dtype=dtype, requires_grad=True)


def falsified(y: dg.Tensor, hook: Callable[[Any], Any] = lambda grad: grad + 1e-2) -> dg.Tensor:
    """The same value, with another gradient."""
    y = y.clone()
    y.register_hook(hook)
    return y


# --- what passes -------------------------------------------------------------------------------


@modes
def test_several_inputs_and_outputs_pass(fast_mode: bool) -> None:
    assert gradcheck(lambda x, y: (x * y, x.sin()), (leaf(1, 2), leaf(3, 4)), fast_mode=fast_mode)


@modes
def test_single_tensor_and_list_of_inputs_pass(fast_mode: bool) -> None:
    assert gradcheck(lambda x: x * 5, leaf(1, 2), fast_mode=fast_mode)
    assert gradcheck(lambda x: [x * 5], [leaf(1, 2)], fast_mode=fast_mode)


@modes
def test_inputs_that_are_constant_or_no_tensors_pass(fast_mode: bool) -> None:
    constant = dg.tensor([3.0, 4.0], dtype=dg.float64)
    assert gradcheck(
        lambda n, c, x, flag: x**n * c if flag else x,
        (2, constant, leaf(1, 2), True),
        fast_mode=fast_mode,
    )


@modes
def test_outputs_that_do_not_require_grad_are_left_out(fast_mode: bool) -> None:
    assert gradcheck(lambda x: (x * 2, x.detach() * 2), leaf(1, 2), fast_mode=fast_mode)


@modes
def test_outputs_that_are_not_differentiable_may_come_first(fast_mode: bool) -> None:
    def func(x: dg.Tensor) -> tuple[dg.Tensor, ...]:
        return x.argmax(), x.detach() * 2, falsified(x)

    with pytest.raises(GradcheckError, match="for output 2 with respect to input 0"):
        gradcheck(func, leaf(1, 2), fast_mode=fast_mode)


@modes
def test_outputs_that_show_the_memory_of_an_input_pass(fast_mode: bool) -> None:
    x = dg.arange(6, dtype=dg.float64).reshape(2, 3).requires_grad_()
    assert gradcheck(lambda x: (x, x.t(), x[0]), x, fast_mode=fast_mode)


@modes
def test_input_that_an_operator_made_passes(fast_mode: bool) -> None:
    assert gradcheck(lambda x: x.exp(), leaf(0.1, 0.2) * 2, fast_mode=fast_mode)


@modes
def test_input_that_the_function_reads_past_its_argument_is_moved(fast_mode: bool) -> None:
    x = leaf(1, 2)
    assert gradcheck(lambda _: x * x, x, fast_mode=fast_mode)
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        gradcheck(lambda _: falsified(x), x, fast_mode=fast_mode)


@modes
def test_empty_inputs_and_outputs_pass(fast_mode: bool) -> None:
    empty = dg.zeros(0, 2, dtype=dg.float64).requires_grad_()
    assert gradcheck(lambda x, y: (x * 2, y[:0], y), (empty, leaf(1, 2)), fast_mode=fast_mode)


@modes
def test_scalar_passes(fast_mode: bool) -> None:
    x = dg.tensor(2.0, dtype=dg.float64, requires_grad=True)
    assert gradcheck(lambda x: x**3, x, fast_mode=fast_mode)


@modes
def test_in_place_operators_on_views_pass(fast_mode: bool) -> None:
    def func(root: dg.Tensor, b: dg.Tensor) -> dg.Tensor:
        x = root.clone()
        x.narrow(1, 2, 2).narrow(0, 1, 2).mul_(b)
        x.narrow(1, 0, 2).narrow(0, 1, 2).mul_(b)
        return x

    a = dg.linspace(-1, 1, 12, dtype=dg.float64).reshape(3, 4).requires_grad_()
    b = dg.linspace(1, 2, 4, dtype=dg.float64).reshape(2, 2).requires_grad_()
    go = dg.linspace(0, 1, 12, dtype=dg.float64).reshape(3, 4).requires_grad_()
    assert gradcheck(func, [a, b], fast_mode=fast_mode)
    assert gradgradcheck(func, (a, b), (go,), fast_mode=fast_mode)


def test_check_leaves_its_inputs_as_they_were() -> None:
    x = leaf(1, 2)
    x.grad = dg.zeros(2, dtype=dg.float64)
    saved = x * x
    gradcheck(lambda x: x**3, x, check_forward_ad=True)
    assert (x.tolist(), x.grad.tolist(), x._version) == ([1, 2], [0, 0], 0)
    saved.sum().backward()
    assert x.grad.tolist() == [2, 4]


# --- a wrong gradient --------------------------------------------------------------------------


@modes
def test_wrong_gradient_raises(fast_mode: bool) -> None:
    with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0 with respect to inp"):
        gradcheck(falsified, leaf(1, 2), fast_mode=fast_mode)


@modes
def test_error_names_output_and_input(fast_mode: bool) -> None:
    with pytest.raises(RuntimeError, match="for output 1 with respect to input 1,"):
        gradcheck(lambda x, y: (x, x * falsified(y)), (leaf(1), leaf(2)), fast_mode=fast_mode)


@modes
def test_error_shows_both_jacobians(fast_mode: bool) -> None:
    with pytest.raises(GradcheckError, match="analytical") as raised:
        gradcheck(lambda x: falsified(x, lambda g: g * 3), leaf(1, 1), fast_mode=fast_mode)
    shown = "".join(str(raised.value).lower().split())
    assert "numerical:tensor([[1.0000,0.0000],[0.0000,1.0000]]" in shown
    assert "analytical:tensor([[3.,0.],[0.,3.]]" in shown


def test_fast_mode_says_where_slow_mode_would_pass() -> None:
    signs = dg.tensor([1.0, -1.0] * 10, dtype=dg.float64)  # so that products cancel, errors do not
    x = dg.ones(20, dtype=dg.float64).requires_grad_()

    def func(x: dg.Tensor) -> dg.Tensor:
        return falsified(x, lambda grad: grad + 9e-4 * grad.abs()) * signs

    assert gradcheck(func, x, check_undefined_grad=False)
    with pytest.raises(GradcheckError, match="Fast gradcheck failed but element-wise differences"):
        gradcheck(func, x, fast_mode=True)


@modes
def test_wrong_gradient_gives_false_without_exceptions(fast_mode: bool) -> None:
    assert gradcheck(falsified, leaf(1, 2), raise_exception=False, fast_mode=fast_mode) is False


@modes
def test_what_the_function_raises_is_passed_on(fast_mode: bool) -> None:
    def func(x: dg.Tensor) -> dg.Tensor:
        raise RuntimeError("Not a GradcheckError!")

    with pytest.raises(RuntimeError, match="Not a GradcheckError!"):
        gradcheck(func, leaf(1, 2), raise_exception=False, fast_mode=fast_mode)


def test_tolerances_and_step_are_taken() -> None:
    def near(x: dg.Tensor) -> dg.Tensor:
        return falsified(x, lambda grad: grad * (1 + 5e-3))

    assert not gradcheck(near, leaf(1), raise_exception=False)
    assert gradcheck(near, leaf(1), rtol=1e-2, check_undefined_grad=False)
    assert gradcheck(near, leaf(1), atol=1e-2, check_undefined_grad=False)
    assert not gradcheck(lambda x: x**3, leaf(1), eps=0.1, raise_exception=False)


@modes
def test_gradient_that_is_not_linear_in_the_incoming_one_raises(fast_mode: bool) -> None:
    with pytest.raises(GradcheckError, match="backward not multiplied by grad_output"):
        gradcheck(
            lambda x: falsified(x, lambda grad: grad + 1e-7),
            leaf(1, 2),
            fast_mode=fast_mode,
        )


def test_masked_lets_gradients_of_zeros_be_nearly_zero() -> None:
    def func(x: dg.Tensor) -> dg.Tensor:
        return falsified(x, lambda grad: grad + 1e-9)

    assert gradcheck(func, leaf(1), masked=True, check_undefined_grad=False)
    assert not gradcheck(func, leaf(1), check_undefined_grad=False, raise_exception=False)


@modes
def test_random_backward_raises(fast_mode: bool) -> None:
    noise = itertools.count()

    def func(x: dg.Tensor) -> dg.Tensor:
        return falsified(x, lambda grad: grad * (1 + 1e-7 * next(noise)))

    with pytest.raises(GradcheckError, match="Backward is not reentrant"):
        gradcheck(func, leaf(1, 2), fast_mode=fast_mode)
    options: dict[str, Any] = dict(nondet_tol=1e-4, check_undefined_grad=False, fast_mode=fast_mode)
    assert gradcheck(func, leaf(1, 2), **options)


# --- outputs without gradients -----------------------------------------------------------------


@modes
def test_output_that_changes_but_does_not_require_grad_raises(fast_mode: bool) -> None:
    def func(x: dg.Tensor) -> dg.Tensor:
        return dg.tensor([x.item()], dtype=dg.float64)

    with pytest.raises(RuntimeError, match="Numerical gradient for function expected to be zero"):
        gradcheck(func, leaf(1), fast_mode=fast_mode)
    assert not gradcheck(func, leaf(1), raise_exception=False, fast_mode=fast_mode)


@modes
def test_outputs_that_stay_as_they_are_pass(fast_mode: bool) -> None:
    assert gradcheck(lambda x: dg.ones(2, dtype=dg.float64), leaf(1), fast_mode=fast_mode)
    assert gradcheck(lambda x: (), leaf(1), fast_mode=fast_mode)


@modes
def test_shape_that_depends_on_values_raises(fast_mode: bool) -> None:
    def func(x: dg.Tensor) -> dg.Tensor:
        return dg.cat([x, x]) if bool((x >= 1).all()) else x

    with pytest.raises(AssertionError, match="outputs with the same shape when inputs are pert"):
        gradcheck(func, leaf(1), fast_mode=fast_mode)


@modes
def test_dtype_that_depends_on_values_raises(fast_mode: bool) -> None:
    def func(x: dg.Tensor) -> dg.Tensor:
        return x.to(dg.float32) if bool((x >= 1).all()) else x

    with pytest.raises(AssertionError, match="outputs with the same dtype when inputs are pert"):
        gradcheck(func, leaf(1), fast_mode=fast_mode)


# --- misuse ------------------------------------------------------------------------------------


@modes
def test_no_input_that_requires_grad_raises(fast_mode: bool) -> None:
    with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
        gradcheck(
            lambda x: x, dg.ones(2, dtype=dg.float64), raise_exception=False, fast_mode=fast_mode
        )


@modes
def test_input_that_shows_an_element_twice_raises(fast_mode: bool) -> None:
    x = leaf(1).expand(2, 2)
    with pytest.raises(RuntimeError, match="The 0th input has a dimension with stride 0"):
        gradcheck(lambda x: x, x, raise_exception=False, fast_mode=fast_mode)


@pytest.mark.parametrize(
    ("check", "options", "message"),
    [
        (gradcheck, dict(check_backward_ad=False), "at least one of check_forward_ad or"),
        (
            gradcheck,
            dict(check_batched_grad=True, check_backward_ad=False, check_forward_ad=True),
            "check_batched_grad=True requires check_backward_ad",
        ),
        (
            gradcheck,
            dict(check_batched_forward_grad=True),
            "check_batched_forward_grad=True requires check_forward_ad",
        ),
        (gradgradcheck, dict(check_rev_over_rev=False), "at least one of check_fwd_over_rev or"),
        (
            gradgradcheck,
            dict(check_rev_over_rev=False, check_fwd_over_rev=True),
            "check_undefined_grad=True requires check_rev_over_rev",
        ),
        (
            gradgradcheck,
            dict(
                check_rev_over_rev=False,
                check_fwd_over_rev=True,
                check_undefined_grad=False,
                check_batched_grad=True,
            ),
            "check_batched_grad=True requires check_rev_over_rev",
        ),
    ],
)
def test_options_that_contradict_each_other_raise(
    check: Callable[..., bool], options: dict[str, bool], message: str
) -> None:
    with pytest.raises(AssertionError, match=message):
        check(lambda x: x, leaf(1), raise_exception=False, **options)


# --- absent gradients --------------------------------------------------------------------------

# PyTorch warns, beside raising, that it once did not check this.
warns = pytest.mark.filterwarnings("ignore:Backwards compatibility")


@warns
@modes
def test_backward_that_fails_for_an_absent_gradient_raises(fast_mode: bool) -> None:
    def hook(grad: dg.Tensor | None) -> None:
        if grad is None:
            raise RuntimeError("x is undefined")

    with pytest.raises(GradcheckError, match="function to handle undefined output grads"):
        gradcheck(lambda x: falsified(x, hook), leaf(1), fast_mode=fast_mode)
    assert gradcheck(
        lambda x: falsified(x, hook), leaf(1), fast_mode=fast_mode, check_undefined_grad=False
    )


@warns
def test_outputs_are_left_without_a_gradient_one_by_one() -> None:
    absent = []

    def func(x: dg.Tensor) -> tuple[dg.Tensor, ...]:
        seen: list[int] = []
        absent.append(seen)
        outputs = [x.clone() for _ in range(3)]
        for i, output in enumerate(outputs):
            output.register_hook(lambda grad, i=i: seen.append(i) if grad is None else None)
        return tuple(outputs)

    assert gradcheck(func, leaf(1))
    assert [sorted(seen) for seen in absent[-4:]] == [[0, 1, 2], [0], [1], [2]]


# --- complex numbers ---------------------------------------------------------------------------


@modes
@pytest.mark.parametrize(
    ("func", "inputs"),
    [
        (lambda z: z * z.conj() + z.exp(), (1 + 2j, 0.5j)),
        (lambda z: z.abs(), (1 + 2j, 0.5j)),
        (lambda x: dg.complex(x, x * x), (1.0, 2.0)),
        (lambda z: (z, z.real, z.imag * 2), (1 + 2j, 0.5j)),
    ],
    ids=["C to C", "C to R", "R to C", "C to both"],
)
def test_complex_functions_pass(
    func: Callable[..., Any], inputs: tuple[complex, ...], fast_mode: bool
) -> None:
    options: dict[str, Any] = dict(
        fast_mode=fast_mode, check_forward_ad=True, check_batched_grad=True
    )
    assert gradcheck(func, leaf(*inputs), **options)


@modes
def test_real_and_complex_inputs_pass_together(fast_mode: bool) -> None:
    inputs = leaf(1 + 2j, 3 - 1j), leaf(1, 2)
    assert gradcheck(lambda z, x: (z * x, x + 1), inputs, fast_mode=fast_mode)
    assert gradgradcheck(lambda z, x: z * x, inputs, fast_mode=fast_mode)


@modes
def test_wrong_gradient_of_a_complex_output_names_its_part(fast_mode: bool) -> None:
    for x in (leaf(1 + 1j), leaf(1)):
        with pytest.raises(GradcheckError, match="the imaginary part of complex outputs only, Jac"):
            gradcheck(lambda x: falsified(x * 1j, lambda g: g * 2), x, fast_mode=fast_mode)
    with pytest.raises(GradcheckError, match="the real part of complex outputs only, Jacobian"):
        gradcheck(
            lambda x: dg.complex(falsified(x, lambda g: g * 2), x), leaf(1), fast_mode=fast_mode
        )


@modes
def test_wrong_gradient_of_a_complex_input_raises(fast_mode: bool) -> None:
    with pytest.raises(GradcheckError, match=r"^Jacobian mismatch for output 0 with respect to i"):
        gradcheck(lambda z: falsified(z.real), leaf(1 + 1j), fast_mode=fast_mode)
    with pytest.raises(GradcheckError, match=r"^Jacobian mismatch for output 0 with respect to i"):
        gradcheck(
            lambda z: falsified(z, lambda grad: grad.conj()).abs(), leaf(1j), fast_mode=fast_mode
        )


# --- forward mode ------------------------------------------------------------------------------


def wrong_tangent(x: dg.Tensor, y: dg.Tensor) -> tuple[dg.Tensor, dg.Tensor]:
    if forward_ad._current_level >= 0:
        primal, tangent = forward_ad.unpack_dual(y)
        if tangent is not None:
            y = forward_ad.make_dual(primal, tangent * 1.1)
    return x + y, y


@modes
@pytest.mark.parametrize(
    ("x", "y"),
    [((1, 2), (3, 4)), ((1 + 1j, 2j), (3, 4)), ((1 + 1j, 2j), (3j, 4 + 1j))],
    ids=["real", "mixed", "complex"],
)
def test_forward_mode_is_checked(x: tuple[complex], y: tuple[complex], fast_mode: bool) -> None:
    inputs = leaf(*x), leaf(*y)
    assert gradcheck(lambda x, y: (x * y, y), inputs, check_forward_ad=True, fast_mode=fast_mode)
    assert gradcheck(wrong_tangent, inputs, fast_mode=fast_mode)
    message = "Jacobian computed with forward mode mismatch for output 0 with respect to input 1"
    with pytest.raises(GradcheckError, match=message):
        gradcheck(wrong_tangent, inputs, check_forward_ad=True, fast_mode=fast_mode)


@modes
def test_wrong_tangent_of_a_complex_input_names_its_part(fast_mode: bool) -> None:
    with pytest.raises(GradcheckError, match="While considering the imaginary part of complex inp"):
        gradcheck(wrong_tangent, (leaf(1j), leaf(1j)), check_forward_ad=True, fast_mode=fast_mode)


@modes
def test_real_view_of_a_complex_product_passes_in_forward_mode(fast_mode: bool) -> None:
    assert gradcheck(
        lambda x: dg.view_as_real(x * 1j), leaf(1, 2), check_forward_ad=True, fast_mode=fast_mode
    )


@modes
def test_only_the_asked_direction_is_checked(fast_mode: bool) -> None:
    def wrong_backward(x: dg.Tensor) -> dg.Tensor:
        return x * 2 if forward_ad._current_level >= 0 else falsified(x * 2)

    x, y = leaf(1, 2), leaf(3, 4)
    forward_only: dict[str, Any] = dict(
        check_forward_ad=True, check_backward_ad=False, fast_mode=fast_mode
    )
    assert gradcheck(wrong_backward, x, **forward_only)
    assert not gradcheck(wrong_backward, x, fast_mode=fast_mode, raise_exception=False)
    assert not gradcheck(wrong_tangent, (x, y), raise_exception=False, **forward_only)
    assert gradcheck(wrong_tangent, (x, y), fast_mode=fast_mode)


def test_wrong_backward_is_told_before_a_wrong_tangent() -> None:
    with pytest.raises(GradcheckError, match=r"^Jacobian mismatch"):
        gradcheck(
            lambda x, y: falsified(wrong_tangent(x, y)[0]),
            (leaf(1), leaf(2)),
            check_forward_ad=True,
        )


def test_inputs_are_detached_in_forward_mode() -> None:
    needed = []

    def func(x: dg.Tensor, y: dg.Tensor) -> tuple[dg.Tensor, ...]:
        if forward_ad._current_level >= 0:
            needed.append((x.requires_grad, y.requires_grad))
        return x.clone(), y.clone()

    options: dict[str, Any] = dict(
        check_backward_ad=False, check_forward_ad=True, check_batched_forward_grad=True
    )
    assert gradcheck(func, (leaf(1), leaf(2)), **options)
    assert set(needed) == {(False, False)}


@pytest.mark.parametrize(
    ("y", "counts"), [(True, (2, 6, 12)), (False, (1, 3, 6))], ids=["both", "one"]
)
def test_forward_mode_runs_once_for_each_input_that_requires_grad(
    y: bool, counts: tuple[int, ...]
) -> None:
    calls = []

    def func(x: dg.Tensor, y: dg.Tensor) -> tuple[dg.Tensor, ...]:
        if forward_ad._current_level >= 0:
            calls.append(1)
        return x.clone(), y.clone()

    inputs = leaf(1), leaf(2).detach().requires_grad_(y)
    found = []
    for undefined, batched in ((False, False), (True, False), (True, True)):
        calls.clear()
        gradcheck(
            func,
            inputs,
            check_backward_ad=False,
            check_forward_ad=True,
            check_undefined_grad=undefined,
            check_batched_forward_grad=batched,
        )
        found.append(len(calls))
    assert tuple(found) == counts


def test_tangent_made_up_for_an_input_without_one_raises() -> None:
    def func(x: dg.Tensor, y: dg.Tensor) -> dg.Tensor:
        if forward_ad._current_level >= 0 and forward_ad.unpack_dual(y).tangent is None:
            x = forward_ad.make_dual(x.detach(), dg.ones(1, dtype=dg.float64) * 7)
        return x * y

    with pytest.raises(GradcheckError, match="Mismatch in tangent values"):
        gradcheck(func, (leaf(1), leaf(2)), check_forward_ad=True)
    assert gradcheck(func, (leaf(1), leaf(2)), check_forward_ad=True, check_undefined_grad=False)


# --- batches -----------------------------------------------------------------------------------


def reading(grad: dg.Tensor) -> dg.Tensor:
    return grad + 0 * grad.sum().item()


@modes
def test_backward_that_reads_values_fails_for_batches(fast_mode: bool) -> None:
    options: dict[str, Any] = dict(check_undefined_grad=False, fast_mode=fast_mode)
    assert gradcheck(lambda x: falsified(x, reading), leaf(1, 2), **options)
    with pytest.raises(GradcheckError, match="While computing batched gradients, got:"):
        gradcheck(lambda x: falsified(x, reading), leaf(1, 2), check_batched_grad=True, **options)


@pytest.mark.parametrize("forward", [False, True], ids=["backward", "forward"])
def test_batch_that_gives_something_else_raises(forward: bool) -> None:
    calls = itertools.count(1)
    batch = 8 if forward else 5  # which call is that of the batch

    def func(x: dg.Tensor) -> dg.Tensor:
        if not forward:
            return falsified(x, lambda grad: grad * (2 if next(calls) == batch else 1))
        primal, tangent = forward_ad.unpack_dual(x)
        if next(calls) == batch and tangent is not None:
            return forward_ad.make_dual(primal.detach(), tangent * 2)
        return x * 1

    option = "check_batched_forward_grad" if forward else "check_batched_grad"
    options: dict[str, Any] = {option: True, "check_undefined_grad": False}
    with pytest.raises(GradcheckError, match=r"For output 0 and input 0:"):
        gradcheck(func, leaf(1), check_forward_ad=forward, **options)


def test_batched_gradients_pass() -> None:
    assert gradcheck(
        lambda x, y: (x * y, x.detach(), y.exp()), (leaf(1, 2), leaf(3)), check_batched_grad=True
    )


def test_batched_tangents_pass() -> None:
    options: dict[str, Any] = dict(
        check_forward_ad=True, check_backward_ad=False, check_batched_forward_grad=True
    )
    assert gradcheck(lambda a, b: (a.clone(), a * b), (leaf(1, 2), 3), **options)
    assert gradcheck(lambda a, c: a.clone(), (leaf(1, 2), leaf(3)), **options)


def test_forward_mode_that_reads_values_fails_for_batches() -> None:
    def func(x: dg.Tensor) -> dg.Tensor:
        tangent = forward_ad.unpack_dual(x).tangent
        return x if tangent is None or tangent.sum().item() > 0 else x * 1

    with pytest.raises(GradcheckError, match="While computing batched gradients, got:"):
        gradcheck(func, leaf(1, 2), check_forward_ad=True, check_batched_forward_grad=True)


# --- second derivatives ------------------------------------------------------------------------


@modes
def test_second_derivatives_pass(fast_mode: bool) -> None:
    inputs = leaf(1, 2), leaf(3, 4)
    assert gradgradcheck(lambda x, y: (x**3 * y, y.exp()), inputs, fast_mode=fast_mode)
    assert gradgradcheck(lambda x: x * 5, leaf(1), fast_mode=fast_mode)


@modes
def test_wrong_second_derivative_raises(fast_mode: bool) -> None:
    def func(x: dg.Tensor) -> dg.Tensor:
        return falsified(x, lambda grad: grad.detach()) ** 2 + x**3

    assert gradcheck(func, leaf(1, 2), check_undefined_grad=False, fast_mode=fast_mode)
    with pytest.raises(GradcheckError, match="mismatch for output 0 with respect to input 0"):
        gradgradcheck(func, leaf(1, 2), check_undefined_grad=False, fast_mode=fast_mode)
    assert not gradgradcheck(
        func, leaf(1, 2), check_undefined_grad=False, fast_mode=fast_mode, raise_exception=False
    )


@modes
def test_given_gradients_of_outputs_are_used(fast_mode: bool) -> None:
    seen = []

    def func(x: dg.Tensor) -> dg.Tensor:
        return falsified(x**2, lambda grad: seen.append(grad.tolist()))

    options: dict[str, Any] = dict(check_undefined_grad=False, fast_mode=fast_mode)
    assert gradgradcheck(func, leaf(1, 2), (leaf(5, 7),), **options)
    assert seen[0] == [5, 7]
    assert gradgradcheck(func, leaf(1, 2), leaf(5, 7).detach(), **options)


@pytest.mark.parametrize("mixed", [False, True])
def test_random_gradients_of_outputs_are_contiguous_unless_asked(mixed: bool) -> None:
    contiguous = []

    def func(x: dg.Tensor) -> dg.Tensor:
        return falsified(x**2, lambda grad: contiguous.append(grad.is_contiguous()))

    options: dict[str, Any] = dict(check_undefined_grad=False, gen_non_contig_grad_outputs=mixed)
    assert gradgradcheck(func, leaf(1, 2), **options)
    assert contiguous[0] is not mixed


@modes
def test_forward_mode_over_backward_is_checked(fast_mode: bool) -> None:
    options: dict[str, Any] = dict(check_fwd_over_rev=True, fast_mode=fast_mode)
    assert gradgradcheck(lambda x, y: x.sin() * y, (leaf(1, 2), leaf(3, 4)), **options)
    options.update(check_rev_over_rev=False, check_undefined_grad=False)
    assert gradgradcheck(lambda x, y: x.sin() * y, (leaf(1, 2), leaf(3, 4)), **options)
    with pytest.raises(GradcheckError, match="computed with forward mode mismatch for output 0"):
        gradgradcheck(
            lambda x: falsified(x, lambda grad: grad.detach()) ** 2 + x**3, leaf(1, 2), **options
        )


@modes
def test_batched_second_derivatives_pass(fast_mode: bool) -> None:
    assert gradgradcheck(lambda x: x**3, leaf(1, 2), check_batched_grad=True, fast_mode=fast_mode)


def test_second_derivative_of_a_product_with_two_zeros_raises() -> None:
    index = dg.tensor([0, 0])
    inputs = leaf(1), leaf(0, 0)

    def func(x: dg.Tensor, source: dg.Tensor) -> dg.Tensor:
        return x.scatter_reduce(0, index, source, "prod")

    assert gradcheck(func, inputs)
    with pytest.raises(RuntimeError, match="scatter"):
        gradgradcheck(func, inputs)


# --- Jacobians by themselves -------------------------------------------------------------------

deprecated = pytest.mark.filterwarnings("ignore:.*private API:FutureWarning")


def module() -> Any:
    import importlib

    return importlib.import_module(gradcheck.__module__)


@deprecated
def test_numerical_jacobian_of_the_first_output() -> None:
    x, y = leaf(1, 2), leaf(3)
    found = module().get_numerical_jacobian(lambda inputs: (inputs[0] ** 2, inputs[1]), (x, y))
    assert [j.shape for j in found] == [(2, 2), (1, 2)]
    assert dg.allclose(found[0], dg.tensor([[2.0, 0.0], [0.0, 4.0]], dtype=dg.float64))
    assert found[1].tolist() == [[0, 0]]


@deprecated
def test_numerical_jacobian_for_another_target() -> None:
    x, hidden = leaf(1, 2), leaf(5)
    (found,) = module().get_numerical_jacobian(lambda i: i[0] * hidden, (x,), target=(hidden,))
    assert dg.allclose(found, dg.tensor([[1.0, 2.0]], dtype=dg.float64))


@deprecated
def test_analytical_jacobian_and_what_it_found() -> None:
    x = leaf(1, 2)
    jacobians, reentrant, right_sizes, right_types = module().get_analytical_jacobian((x,), x**2)
    assert jacobians[0].tolist() == [[2, 0], [0, 4]]
    assert (reentrant, right_sizes, right_types) == (True, True, True)
    noise = itertools.count()
    y = falsified(x, lambda grad: grad * next(noise))
    assert module().get_analytical_jacobian((x,), y)[1] is False
    assert module().get_analytical_jacobian((x,), y, nondet_tol=10)[1] is True


def test_numerical_jacobian_for_one_input() -> None:
    x, y = leaf(1, 2), leaf(3)
    outputs = (x * y, y)
    found = module().get_numerical_jacobian_wrt_specific_input(
        lambda x, y: (x * y, y), 1, (x, y), outputs, 1e-6
    )
    assert dg.allclose(found[0], dg.tensor([[1.0, 2.0]], dtype=dg.float64))
    assert dg.allclose(found[1], dg.tensor([[1.0]], dtype=dg.float64))


def test_numerical_jacobian_for_an_input_that_does_not_require_grad_raises() -> None:
    x = leaf(1).detach()
    with pytest.raises(AssertionError, match="Expected input to have requires_grad=True"):
        module().get_numerical_jacobian_wrt_specific_input(lambda x: x, 0, (x,), (x,), 1e-6)


@pytest.mark.parametrize("name", ["get_numerical_jacobian", "get_analytical_jacobian"])
def test_jacobian_functions_are_deprecated(name: str) -> None:
    x = leaf(1)
    arguments = (lambda i: i[0], (x,)) if "numerical" in name else ((x,), x * 2)
    with pytest.warns(FutureWarning, match=f"`{name}` was part of PyTorch's private API"):
        getattr(module(), name)(*arguments)


@deprecated
@pytest.mark.parametrize("name", ["get_numerical_jacobian", "get_analytical_jacobian"])
def test_jacobian_functions_refuse_complex_outputs_and_grad_out(name: str) -> None:
    x = leaf(1)
    real = (lambda i: i[0], (x,)) if "numerical" in name else ((x,), x * 2)
    imaginary = (lambda i: i[0] * 1j, (x,)) if "numerical" in name else ((x,), x * 1j)
    with pytest.raises(ValueError, match=r"Expected grad_out to be 1\.0"):
        getattr(module(), name)(*real, grad_out=2.0)
    with pytest.raises(ValueError, match="Expected output to be non-complex"):
        getattr(module(), name)(*imaginary)


def test_gradcheck_is_a_function_and_a_module() -> None:
    assert dg.autograd.gradcheck is gradcheck
    assert module().__name__.endswith("autograd.gradcheck")
    assert issubclass(module().GradcheckError, RuntimeError)
    assert module().gradgradcheck is dg.autograd.gradgradcheck


def test_input_that_is_not_used_passes() -> None:
    assert gradcheck(lambda x, y: x * x, (leaf(1, 2), leaf(3)))
    assert gradgradcheck(lambda x, y: x * x, (leaf(1, 2), leaf(3)))
