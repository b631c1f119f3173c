"""PyTorch's `torch.autograd.gradcheck`: derivatives held against finite differences.

What it compares, and how, is in `dyngraph.autograd.checking`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dyngraph.autograd.checking import laws
from dyngraph.autograd.checking.comparison import Comparison, Tolerances
from dyngraph.autograd.checking.jacobians import (
    Point,
    as_tuple,
    by_backward,
    differentiable,
    numerical,
    unit_directions,
    unit_vectors,
)
from dyngraph.autograd.checking.mismatch import difference
from dyngraph.autograd.checking.parts import parts_of_inputs, parts_of_outputs
from dyngraph.autograd.checking.precision import in_double, place
from dyngraph.backward import grad
from dyngraph.errors import GradcheckError as GradcheckError
from dyngraph.tensor import Tensor, wrap

__all__ = [
    "GradcheckError",
    "get_analytical_jacobian",
    "get_numerical_jacobian",
    "get_numerical_jacobian_wrt_specific_input",
    "gradcheck",
    "gradgradcheck",
]


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Compares the derivatives of `func` with finite differences, for inputs that require grad.

    `func(*inputs)` returns a tensor, or a tuple of tensors; `inputs` is a tensor, or a tuple of
    tensors and of whatever else `func` takes. True if all is right. What is wrong raises
    GradcheckError, which shows both Jacobians, or gives False with `raise_exception=False`.

    Precision: finite differences need 64 bits, and the check switches x64 on for itself. float32
    inputs become float64 ones while it runs, and so do the tensors that `func` reads beside them,
    so you need no float64 tensors of your own. A tensor that `func` makes does not: give it
    `dtype=x.dtype`.

    - eps: how far inputs move. atol, rtol: as in `allclose`.
    - fast_mode: compares one random product of the Jacobian instead of all its elements.
    - check_backward_ad, check_forward_ad: which mode is checked.
    - nondet_tol: by how much two backward passes over one graph may differ.
    - check_undefined_grad: whether absent gradients, and absent tangents, must count as zeros.
    - check_batched_grad, check_batched_forward_grad: whether they must work under `jax.vmap`.
    - check_grad_dtypes: whether gradients must have the dtype of their inputs.
    - masked: for PyTorch's sparse tensors; here it allows gradients of zeros to be nearly so.

    A complex output is checked as two real ones. Points where `func` has a kink may fail.

    Raises ValueError where no input requires grad, RuntimeError for one that shows an element
    twice, AssertionError for options that contradict each other and where shape or dtype of an
    output changes with the inputs' values, TypeError where an output is no tensor.

    >>> x = dg.tensor([1.0, 2.0], requires_grad=True)
    >>> dg.autograd.gradcheck(lambda x: x.sin() * x, x)
    True
    >>> def wrong(x):
    ...     y = x.exp()
    ...     handle = y.register_hook(lambda grad: grad * 2)
    ...     return y
    >>> dg.autograd.gradcheck(wrong, x)
    Traceback (most recent call last):
    ...
    dyngraph.errors.GradcheckError: Jacobian mismatch for output 0 with respect to input 0,
    numerical:tensor([[2.7183, 0.0000],
            [0.0000, 7.3891]])
    analytical:tensor([[ 5.4366,  0.0000],
            [ 0.0000, 14.7781]])
    The largest difference is 7.38906, at [1, 1]: the derivative of element [1] of output 0 with
    respect to element [1] of input 0.
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError(
            "Expected at least one of check_forward_ad or check_backward_ad to be True"
        )
    if check_batched_grad and not check_backward_ad:
        raise AssertionError(
            "Setting check_batched_grad=True requires check_backward_ad to be True"
        )
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError(
            "Setting check_batched_forward_grad=True requires check_forward_ad to be True"
        )
    tolerances = Tolerances(eps, atol, rtol, nondet_tol, check_grad_dtypes, fast_mode)
    given = as_tuple(inputs)
    _check_inputs(given)
    try:
        with in_double(func, given) as in_64_bits:
            point = Point.of(in_64_bits, given)
            if check_backward_ad:
                for part, each in parts_of_outputs(point):
                    Comparison(each, tolerances, forward=False, part=part).run()
            if check_forward_ad:
                parts = list(parts_of_inputs(point))
                for part, each in parts:
                    Comparison(each, tolerances, forward=True, part=part).run()
                for _, each in parts if check_undefined_grad else ():
                    laws.undefined_for_zeros_forward(each)
            if check_batched_forward_grad:
                laws.batched_forward(point)
            if not check_backward_ad:
                return True
            for output in point.recorded() if check_batched_grad else ():
                laws.batched_backward(point, output)
            laws.zero_for_zero(point, masked=masked)
            if check_undefined_grad:
                laws.undefined_for_zeros_backward(point)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _check_inputs(inputs: Sequence[Any]) -> None:
    places = differentiable(inputs)
    if not places:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them "
            "have requires_grad=True."
        )
    for i in places:
        tensor = inputs[i]
        if any(s == 0 and n > 1 for s, n in zip(tensor.stride(), tensor.shape, strict=True)):
            raise RuntimeError(
                f"The {i}th input has a dimension with stride 0: it shows an element of its memory "
                "more than once, and no element could be moved by itself. Call contiguous() on it "
                "before passing it to gradcheck."
            )


# --- second derivatives -------------------------------------------------------------------------


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Compares the second derivatives of `func` with finite differences of its gradients.

    It is `gradcheck`, which see, of the function from the inputs and `grad_outputs` to the
    gradients of the inputs. Without `grad_outputs` they are random numbers from -1 to 1, which with
    `gen_non_contig_grad_outputs` are not contiguous. `check_rev_over_rev` is for backward over
    backward, `check_fwd_over_rev` for forward mode over backward.

    Raises what `gradcheck` raises, and ValueError where no output requires grad.

    >>> x = dg.tensor([1.0, 2.0], requires_grad=True)
    >>> dg.autograd.gradgradcheck(lambda x: x**3, x)
    True
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError(
            "Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True"
        )
    for option, is_on in (
        ("check_undefined_grad", check_undefined_grad),
        ("check_batched_grad", check_batched_grad),
    ):
        if is_on and not check_rev_over_rev:
            raise AssertionError(f"Setting {option}=True requires check_rev_over_rev to be True")
    given = as_tuple(inputs)
    starts = () if grad_outputs is None else as_tuple(grad_outputs)
    with in_double(func, (*given, *starts)) as in_64_bits:
        if grad_outputs is None:
            outputs = Point.of(in_64_bits, given).outputs
            draw = np.random.default_rng(0)
            starts = tuple(
                _random_gradient(draw, o, is_contiguous=not gen_non_contig_grad_outputs)
                for o in outputs
                if o.requires_grad
            )
        if not starts:
            raise ValueError(
                "gradgradcheck expects at least one output to require gradient, but none of them "
                "have requires_grad=True."
            )
        return gradcheck(
            _gradients_of(in_64_bits, given, starts),
            (*given, *starts),
            eps=eps,
            atol=atol,
            rtol=rtol,
            raise_exception=raise_exception,
            nondet_tol=nondet_tol,
            check_undefined_grad=check_undefined_grad,
            check_grad_dtypes=check_grad_dtypes,
            check_batched_grad=check_batched_grad,
            fast_mode=fast_mode,
            check_forward_ad=check_fwd_over_rev,
            check_backward_ad=check_rev_over_rev,
            masked=masked,
        )


def _random_gradient(draw: np.random.Generator, like: Tensor, *, is_contiguous: bool) -> Tensor:
    shape = tuple(like.shape) if is_contiguous else (*like.shape, 2)
    value = draw.uniform(-1, 1, shape)
    if like.is_complex():
        value = value + 1j * draw.uniform(-1, 1, shape)
    made = wrap(place(value.astype(like.dtype.dtype), like._cell.array))
    return (made if is_contiguous else made[..., 0]).requires_grad_()


def _gradients_of(
    func: Callable[..., Any], inputs: Sequence[Any], starts: Sequence[Any]
) -> Callable[..., tuple[Any, ...]]:
    """The function from inputs and gradients of the outputs to the gradients of the inputs."""
    moving, moving_starts = differentiable(inputs), differentiable(starts)
    count = len(inputs)

    def gradients(*args: Any) -> tuple[Any, ...]:
        # forward mode has detached them
        for i in (*moving, *(count + j for j in moving_starts)):
            args[i].requires_grad_()
        outputs = [o for o in as_tuple(func(*args[:count])) if o.requires_grad]
        wanted = [args[i] for i in moving]
        found = grad(outputs, wanted, args[count:], create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None)

    return gradients


# --- Jacobians by themselves, as PyTorch still has them -----------------------------------------


def get_numerical_jacobian(
    fn: Callable[..., Any], inputs: Any, target: Any = None, eps: float = 1e-3, grad_out: Any = 1.0
) -> tuple[Tensor, ...]:
    """The Jacobians of the first output of `fn` by finite differences; deprecated.

    `fn` takes the inputs as one tuple. A Jacobian, (input elements, output elements), for each
    tensor that requires grad of `target`, or of `inputs` where that is None. Raises ValueError for
    complex outputs and for a `grad_out` that is not 1.
    """
    _warn_deprecated("get_numerical_jacobian")
    _refuse_grad_out("get_numerical_jacobian", grad_out)
    with jax.enable_x64(True):
        point = Point.of(lambda *values: fn(values), as_tuple(inputs))
        if any(o.is_complex() for o in point.outputs):
            raise _complex_output("get_numerical_jacobian")
        moved = point.inputs if target is None else as_tuple(target)
        return tuple(_numerical(point, moved[i], eps)[0] for i in differentiable(moved))


def get_numerical_jacobian_wrt_specific_input(
    fn: Callable[..., Any],
    input_idx: int,
    inputs: Any,
    outputs: Any,
    eps: float,
    input: Tensor | None = None,
    is_forward_ad: bool = False,
) -> tuple[Tensor, ...]:
    """The Jacobian of each output of `fn(*inputs)` for one input, by finite differences.

    `outputs` is what `fn(*inputs)` returned; `input` a tensor to move in place of
    `inputs[input_idx]`. Raises AssertionError where it does not require grad, and for complex
    outputs without `is_forward_ad`.
    """
    moved = inputs[input_idx] if input is None else input
    if not moved.requires_grad:
        raise AssertionError("Expected input to have requires_grad=True")
    with jax.enable_x64(True):
        point = Point(fn, as_tuple(inputs), as_tuple(outputs))
        if not is_forward_ad and any(o.is_complex() for o in point.outputs):
            raise AssertionError("Expected ds_dx to be real-valued, not complex.")
        return tuple(_numerical(point, moved, eps))


def get_analytical_jacobian(
    inputs: Any, output: Tensor, nondet_tol: float = 0.0, grad_out: Any = 1.0
) -> tuple[tuple[Tensor, ...], bool, bool, bool]:
    """The Jacobians of `output` by backward, for each of `inputs` that requires grad; deprecated.

    Also whether a second backward gave the same within `nondet_tol`, and whether gradients had the
    sizes and the dtypes of the inputs. Raises ValueError for a complex output and for a `grad_out`
    that is not 1.
    """
    _warn_deprecated("get_analytical_jacobian")
    _refuse_grad_out("get_analytical_jacobian", grad_out)
    if output.is_complex():
        raise _complex_output("get_analytical_jacobian")
    given = as_tuple(inputs)
    wanted = [given[i] for i in differentiable(given)]
    with jax.enable_x64(True):
        gradients = list(unit_vectors(output.numel()))
        first, again = (by_backward(output, wanted, gradients) for _ in range(2))
        jacobians = tuple(wrap(jnp.asarray(one.jacobian)) for one in first)
    is_reentrant = all(
        difference(one.jacobian, other.jacobian).max(initial=0.0) <= nondet_tol
        for one, other in zip(first, again, strict=True)
    )
    has_right_sizes = all(one.has_right_size for one in first)
    return jacobians, is_reentrant, has_right_sizes, all(one.has_right_dtype for one in first)


def _numerical(point: Point, moved: Tensor, eps: float) -> list[Tensor]:
    jacobians = numerical(point, moved, unit_directions(moved.numel()), eps)
    tensors = []
    for output, jacobian in zip(point.outputs, jacobians, strict=True):
        if jacobian is not None:
            dtype = (moved if moved.is_complex() else output).dtype.dtype
            tensors.append(wrap(jnp.asarray(jacobian.astype(dtype))))
    return tensors


def _warn_deprecated(name: str) -> None:
    warnings.warn(
        f"`{name}` was part of PyTorch's private API and is deprecated there; it is kept for "
        "programs that use it. Use dyngraph.autograd.functional.jacobian, or gradcheck.",
        FutureWarning,
        stacklevel=3,
    )


def _refuse_grad_out(name: str, grad_out: Any) -> None:
    if grad_out != 1.0:
        raise ValueError(
            f"Expected grad_out to be 1.0. {name} no longer supports values of grad_out != 1.0. "
            "Multiply the Jacobian."
        )


def _complex_output(name: str) -> ValueError:
    return ValueError(
        f"Expected output to be non-complex. {name} no longer supports functions that return "
        "complex outputs. Take their real and imag one by one."
    )
