"""gradcheck on Functions, whose derivatives are written by hand."""

# pyright: reportIncompatibleMethodOverride=false

from __future__ import annotations

from typing import Any

import pytest

import dyngraph as dg
from dyngraph.autograd import Function, forward_ad, gradcheck, gradgradcheck
from dyngraph.autograd.gradcheck import GradcheckError

pytestmark = pytest.mark.usefixtures("x64")
modes = pytest.mark.parametrize("fast_mode", [False, True], ids=["slow", "fast"])


def leaf(*values: float) -> dg.Tensor:
    return dg.tensor(values, dtype=dg.float64, requires_grad=True)


class Double(Function):
    """Twice its input, with derivatives that fail on demand."""

    @staticmethod
    def forward(ctx: Any, x: Any, bad_forward: bool = False, bad_backward: bool = False) -> Any:
        ctx.bad_forward, ctx.bad_backward = bad_forward, bad_backward
        return x * 2

    @staticmethod
    def vjp(ctx: Any, grad: Any) -> Any:
        if ctx.bad_backward:
            raise RuntimeError("FAIL BACKWARD")
        return grad * 2, None, None

    @staticmethod
    def jvp(ctx: Any, tangent: Any, *others: Any) -> Any:
        if ctx.bad_forward:
            raise RuntimeError("FAIL FORWARD")
        return tangent * 2


@modes
@pytest.mark.parametrize(
    ("forward", "backward"), [(True, False), (False, True), (True, True)], ids=["f", "b", "both"]
)
def test_only_what_is_asked_for_runs(forward: bool, backward: bool, fast_mode: bool) -> None:
    options: dict[str, Any] = dict(
        check_forward_ad=forward,
        check_backward_ad=backward,
        check_undefined_grad=backward,
        check_batched_grad=backward,
        fast_mode=fast_mode,
    )
    assert gradcheck(Double.apply, (leaf(1, 2), not forward, not backward), **options)
    message = "FAIL BACKWARD" if backward else "FAIL FORWARD"
    with pytest.raises(RuntimeError, match=message):
        gradcheck(Double.apply, (leaf(1, 2), True, True), **options)


class Wrong(Function):
    """A square with the derivatives of something else."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        return x**2

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * ctx.saved_tensors[0]

    @staticmethod
    def jvp(ctx: Any, tangent: Any) -> Any:
        return tangent * ctx.saved_tensors[0] * 3


@modes
def test_wrong_formulas_raise(fast_mode: bool) -> None:
    with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0 with respect to inp"):
        gradcheck(Wrong.apply, leaf(1, 2), fast_mode=fast_mode)
    with pytest.raises(GradcheckError, match="Jacobian computed with forward mode mismatch"):
        gradcheck(
            Wrong.apply,
            leaf(1, 2),
            check_forward_ad=True,
            check_backward_ad=False,
            fast_mode=fast_mode,
        )


class Jittering(Function):
    """Its input, whose gradient differs a little each time, as do higher derivatives."""

    count = 0

    @staticmethod
    def forward(ctx: Any, x: Any, jitter: float) -> Any:
        ctx.jitter = jitter
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        Jittering.count += 1
        noise = ctx.jitter * (Jittering.count * 7 % 10) / 10
        return Jittering.apply(grad, ctx.jitter) * (1 + noise), None


@modes
def test_random_backward_raises(fast_mode: bool) -> None:
    def func(x: dg.Tensor) -> dg.Tensor:
        return Jittering.apply(x, 1e-7)

    with pytest.raises(GradcheckError, match="Backward is not reentrant"):
        gradcheck(func, leaf(1, 2), fast_mode=fast_mode)
    with pytest.raises(GradcheckError, match="Backward is not reentrant"):
        gradgradcheck(func, leaf(1, 2), rtol=1, fast_mode=fast_mode)
    assert gradcheck(func, leaf(1, 2), nondet_tol=1e-5, fast_mode=fast_mode)


class Copy(Function):
    """Its input, whose backward is asked with None for an absent gradient, and does `action`."""

    @staticmethod
    def forward(ctx: Any, x: Any, action: str) -> Any:
        ctx.set_materialize_grads(False)
        ctx.action = action
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        if grad is None and ctx.action == "raise":
            raise RuntimeError("a gradient is missing")
        if grad is None and ctx.action == "make up":
            grad = dg.ones(1, dtype=dg.float64)
        return grad, None


@pytest.mark.filterwarnings("ignore:Backwards compatibility")  # PyTorch warns before it raises
@modes
@pytest.mark.parametrize(
    ("action", "message"),
    [
        ("raise", "Expected backward function to handle undefined output grads"),
        ("make up", "Expected all input grads to be undefined or zero"),
    ],
)
def test_backward_that_does_not_take_none_for_zeros_raises(
    action: str, message: str, fast_mode: bool
) -> None:
    assert gradcheck(Copy.apply, (leaf(1), "pass on"), fast_mode=fast_mode)
    with pytest.raises(GradcheckError, match=message):
        gradcheck(Copy.apply, (leaf(1), action), fast_mode=fast_mode)


class Identity2(Function):
    """Its two inputs, which in forward mode must not require grad."""

    calls = 0

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        if forward_ad._current_level >= 0:
            assert not x.requires_grad and not y.requires_grad
        return x.clone(), y.clone()

    @staticmethod
    def jvp(ctx: Any, x: Any, y: Any) -> Any:
        Identity2.calls += 1
        return x, y


@pytest.mark.parametrize(
    ("needs", "counts"), [(True, (2, 6, 12)), (False, (1, 2, 5))], ids=["both", "one"]
)
def test_jvp_runs_once_for_each_input_that_requires_grad(
    needs: bool, counts: tuple[int, ...]
) -> None:
    found = []
    for undefined, batched in ((False, False), (True, False), (True, True)):
        Identity2.calls = 0
        gradcheck(
            Identity2.apply,
            (leaf(1), leaf(2).detach().requires_grad_(needs)),
            check_forward_ad=True,
            check_backward_ad=False,
            check_undefined_grad=undefined,
            check_batched_forward_grad=batched,
        )
        found.append(Identity2.calls)
    assert tuple(found) == counts


class ReadsValues(Function):
    """A copy whose backward works on values, not on tensors."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return dg.tensor(grad.tolist(), dtype=dg.float64)


@modes
def test_backward_on_values_passes_but_for_batches(fast_mode: bool) -> None:
    assert gradcheck(ReadsValues.apply, leaf(1, 2), fast_mode=fast_mode)
    with pytest.raises(GradcheckError, match="While computing batched gradients, got:"):
        gradcheck(ReadsValues.apply, leaf(1, 2), check_batched_grad=True, fast_mode=fast_mode)
