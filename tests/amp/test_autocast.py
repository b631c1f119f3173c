"""Autocast does what PyTorch 2.13's does on CPU; see `record_autocast`."""

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import dyngraph as dg
from dyngraph import autocasting
from dyngraph.observed import Interceptor
from dyngraph.utils.checkpoint import checkpoint
from tests.amp.autocast_cases import inputs, network, step

FIGURES = json.loads((Path(__file__).parent / "autocast.json").read_text())
x = dg.ones(2, 2)


# --- which operators compute in which precision ---------------------------------------------------

PREPARING = """
    conj expand gt getitem_alias getitem_none getitem_select getitem_slice getitem_unsqueeze permute
    reshape to_copy transpose unsqueeze
""".split()


class ReachedError(Exception):
    """Says which floating point dtypes an operator was given, so that it need not run."""


class Stop(Interceptor):
    """Stops at the first operator that does more than prepare inputs."""

    def intercept(self, op: Any, given: Any, run: Callable[[], Any]) -> Any:
        if op.spec.name in PREPARING:
            return run()
        raise ReachedError({v.dtype.name for v in given.values() if is_floating(v)})


def is_floating(value: Any) -> bool:
    return isinstance(value, dg.Tensor) and value.is_floating_point()


CASES = [
    (case, dtype, expected.replace("complex64", "float32"))
    for case, both in FIGURES["dtypes"].items()
    for dtype, expected in zip(("float32", "bfloat16"), both, strict=True)
    if expected is not None
]


@pytest.fixture(scope="module")
def given() -> dict[str, Any]:
    return {name: inputs(dg, getattr(dg, name)) for name in ("float32", "bfloat16")}


@pytest.mark.parametrize(("case", "dtype", "expected"), CASES)
def test_operator_is_given_the_dtype_in_which_pytorch_computes(
    given: dict[str, Any], case: str, dtype: str, expected: str
) -> None:
    with pytest.raises(ReachedError, match="float") as reached, dg.autocast("cpu"), Stop():
        eval(case, dict(given[dtype]))
    names = reached.value.args[0]
    assert ("float32" if "float32" in names else "bfloat16") == expected


@pytest.mark.parametrize(
    "case", ["t.mm(a, a.mT)", "F.mse_loss(a, a)", "a + a", "t.prod(a)", "F.cross_entropy(a, n)"]
)
def test_result_has_the_dtype_of_pytorchs(given: dict[str, Any], case: str) -> None:
    expected = FIGURES["dtypes"][case]
    with dg.autocast("cpu"):
        found = [eval(case, dict(given[d])).dtype.name for d in ("float32", "bfloat16")]
    assert found == expected


@pytest.mark.parametrize(
    ("layer", "given_in", "expected"),
    [
        (dg.nn.LSTM, "bfloat16", "bfloat16"),
        (dg.nn.RNN, "float32", "bfloat16"),
        (dg.nn.GRU, "float32", "float32"),
        (dg.nn.GRU, "bfloat16", "bfloat16"),
        (dg.nn.RNNCell, "float32", "bfloat16"),
        (dg.nn.LSTMCell, "float32", "float32"),
    ],
)
def test_recurrent_layer_returns_the_dtype_of_pytorchs(
    layer: Any, given_in: str, expected: str
) -> None:
    """PyTorch 2.13's on CPU; for float32 its LSTM needs instructions that not every CPU has."""
    module, inputs = layer(2, 3), dg.ones(1, 2, dtype=getattr(dg, given_in))
    with dg.autocast("cpu"):
        result = module(inputs)
    result = result[0] if isinstance(result, tuple) else result
    assert result.dtype.name == expected


# --- training -------------------------------------------------------------------------------------


def as_figures(tensors: list[dg.Tensor]) -> list[Any]:
    return [[t.dtype.name, t.tolist()] for t in tensors]


def check_figures(tensors: list[dg.Tensor]) -> None:
    """The last digits of bfloat16, which has eight bits, are rounded in another order."""
    for tensor, (dtype, value) in zip(tensors, FIGURES["step"], strict=True):
        assert tensor.dtype.name == dtype
        np.testing.assert_allclose(tensor.tolist(), value, rtol=0.03, atol=0.03)


@pytest.mark.parametrize("is_compiled", [False, True])
def test_loss_and_gradients_are_pytorchs(is_compiled: bool) -> None:
    with dg.compiled_autograd(is_compiled):
        check_figures(step(dg, network(dg), dg.autocast("cpu")))


def test_deferred_step_gives_pytorchs_figures() -> None:
    with dg.deferred():
        figures = step(dg, network(dg), dg.autocast("cpu"))
    check_figures(figures)


def test_compiled_step_gives_what_the_step_as_written_gives() -> None:
    net = network(dg)
    run = dg.compile(lambda: step(dg, net, dg.autocast("cpu")))
    for _ in range(3):
        net.zero_grad()
        check_figures(run())
    assert len(run.programs) == 1


def test_autocast_around_a_compiled_step_is_part_of_its_key() -> None:
    w = dg.ones(2, 2, requires_grad=True)
    run = dg.compile(lambda: x @ w)
    with dg.autocast("cpu"):
        dg.mm(x, w)  # leaves a cast of the weight, which the step must not take for its own
        lower = [run().dtype for _ in range(3)]
    full = [run().dtype for _ in range(2)]
    assert lower + full == [dg.bfloat16] * 3 + [dg.float32] * 2
    assert len(run.programs) == 2


def test_vmap_and_grad_work_inside() -> None:
    with dg.autocast("cpu"):
        mapped = dg.func.vmap(lambda row: row @ x)(x)
        gradient = dg.func.grad(lambda w: (x @ w).sum().float())(x)
    assert (mapped.dtype, gradient.dtype, gradient.tolist()) == (
        dg.bfloat16,
        dg.float32,
        [[2.0, 2.0], [2.0, 2.0]],
    )


def test_forward_mode_carries_the_tangent_through_the_cast() -> None:
    with dg.autocast("cpu"):
        value, tangent = dg.func.jvp(lambda w: x @ w, (x,), (x,))
    assert (value.dtype, tangent.dtype) == (dg.bfloat16, dg.bfloat16)


def test_backward_of_backward_runs_outside() -> None:
    w = dg.ones(2, 2, requires_grad=True)
    with dg.autocast("cpu"):
        y = ((x @ w) ** 2).sum()
    (first,) = dg.autograd.grad(y, w, create_graph=True)
    (second,) = dg.autograd.grad(first.sum(), w)
    assert (first.dtype, second.dtype, second.tolist()) == (dg.float32, dg.float32, [[8.0] * 2] * 2)


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_checkpoint_runs_again_as_it_ran_first(use_reentrant: bool) -> None:
    w = dg.ones(2, 2, requires_grad=True)
    ran: list[tuple[bool, dg.dtype]] = []

    def product(v: dg.Tensor) -> dg.Tensor:
        y = x @ v
        ran.append((dg.is_autocast_enabled("cpu"), y.dtype))
        return y * y

    with dg.autocast("cpu", dg.float16):
        y = checkpoint(product, w, use_reentrant=use_reentrant)
    y.sum().backward()
    assert ran == [(True, dg.float16)] * 2
    assert w.grad is not None and w.grad.dtype is dg.float32


# --- the mode -------------------------------------------------------------------------------------


def dtype_inside(**options: Any) -> dg.dtype:
    with dg.autocast("cpu", **options):
        return (x @ x).dtype


def test_lower_precision_can_be_chosen() -> None:
    assert (dtype_inside(), dtype_inside(dtype=dg.float16)) == (dg.bfloat16, dg.float16)


def test_disabled_region_inside_computes_as_given() -> None:
    with dg.autocast("cpu"):
        assert dtype_inside(enabled=False) is dg.float32
        assert (x @ x).dtype is dg.bfloat16


def test_region_ends_where_it_is_left_by_an_error() -> None:
    with pytest.raises(KeyError, match="out"), dg.autocast("cpu"):
        raise KeyError("out")
    assert not dg.is_autocast_enabled("cpu")
    assert (x @ x).dtype is dg.float32


def test_one_instance_can_be_entered_again_inside_itself() -> None:
    region = dg.autocast("cpu")
    with region, region:
        pass
    assert not dg.is_autocast_enabled("cpu")


def test_decorated_function_may_call_itself() -> None:
    @dg.autocast("cpu")
    def product(depth: int) -> dg.dtype:
        return product(depth - 1) if depth else (x @ x).dtype

    assert product(2) is dg.bfloat16
    assert not dg.is_autocast_enabled("cpu")


def test_decorating_what_cannot_be_called_raises() -> None:
    with pytest.raises(TypeError, match=r"requires a callable, but got int.*with dg\.autocast"):
        dg.autocast("cpu")(3)  # type: ignore[arg-type]


def test_other_threads_are_not_in_the_region() -> None:
    found: list[bool] = []
    with dg.autocast("cpu"):
        thread = threading.Thread(target=lambda: found.append(dg.is_autocast_enabled("cpu")))
        thread.start()
        thread.join()
    assert found == [False]


def test_double_tensors_stay_double() -> None:
    with jax.enable_x64(True), dg.autocast("cpu"):
        assert (x.double() @ x.double()).dtype is dg.float64


def test_unsupported_dtype_warns_and_disables() -> None:
    with pytest.warns(UserWarning, match=r"bfloat16 and float16. Disabling autocast"):
        assert dtype_inside(dtype=dg.float32) is dg.float32


def test_absent_device_warns_and_disables() -> None:
    with pytest.warns(UserWarning, match=r"no device of type 'cuda'. Disabling autocast"):
        region = dg.autocast("cuda")
    with region:
        assert not dg.is_autocast_enabled("cuda")


def test_device_type_that_is_no_string_raises() -> None:
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
        dg.autocast(3)  # type: ignore[arg-type]


def test_unknown_device_type_raises() -> None:
    with pytest.raises(RuntimeError, match="Expected one of cpu, cuda"):
        dg.autocast("abacus")


def test_state_can_be_set_by_hand() -> None:
    dg.set_autocast_dtype("cpu", dg.float16)
    dg.set_autocast_enabled("cpu", True)
    try:
        assert (x @ x).dtype is dg.float16
    finally:
        dg.set_autocast_enabled("cpu", False)
        dg.set_autocast_dtype("cpu", dg.bfloat16)
    assert (x @ x).dtype is dg.float32


# --- casts of weights -----------------------------------------------------------------------------


def casts_of(weight: dg.Tensor, **options: Any) -> list[Any]:
    """The nodes by which two uses of a weight reach it."""
    with dg.autocast("cpu", **options):
        return [(x @ weight).grad_fn.next_functions[1][0] for _ in range(2)]  # type: ignore[union-attr]


def test_weight_is_cast_once_in_a_region() -> None:
    first, second = casts_of(dg.ones(2, 2, requires_grad=True))
    assert first is second
    assert first.name() == "ToCopyBackward0"


def test_weight_is_cast_at_each_use_without_the_cache() -> None:
    first, second = casts_of(dg.ones(2, 2, requires_grad=True), cache_enabled=False)
    assert first is not second


def test_cast_made_without_recording_is_not_used_with_it() -> None:
    w = dg.ones(2, 2, requires_grad=True)
    with dg.autocast("cpu"):
        with dg.no_grad():
            dg.mm(x, w)
        assert (x @ w).requires_grad


def test_weight_that_was_written_to_is_cast_again() -> None:
    w = dg.ones(2, 2, requires_grad=True)
    with dg.autocast("cpu"):
        dg.mm(x, w)
        with dg.no_grad():
            w.mul_(2)
        assert (x @ w)[0, 0].item() == 4.0


def test_casts_are_forgotten_when_the_outermost_region_is_left() -> None:
    w = dg.ones(2, 2, requires_grad=True)
    with dg.autocast("cpu"):
        with dg.autocast("cpu"):
            dg.mm(x, w)
        assert autocasting._casts.get()
    assert autocasting._casts.get() is None


# --- custom Functions -----------------------------------------------------------------------------


def product_function(**options: Any) -> tuple[type[dg.autograd.Function], list[dg.dtype]]:
    """A product with decorators, and the dtypes in which its two passes compute."""
    ran: list[dg.dtype] = []

    class Product(dg.autograd.Function):
        @staticmethod
        @dg.amp.custom_fwd(device_type="cpu", **options)
        def forward(ctx: Any, a: dg.Tensor) -> dg.Tensor:
            ran.append((a @ a).dtype)
            return a @ a

        @staticmethod
        @dg.amp.custom_bwd(device_type="cpu")
        def backward(ctx: Any, grad: dg.Tensor) -> dg.Tensor:
            ran.append((x @ x).dtype)
            return grad

    return Product, ran


@pytest.mark.parametrize(
    ("options", "expected"), [({}, dg.bfloat16), ({"cast_inputs": dg.float32}, dg.float32)]
)
def test_custom_backward_runs_as_forward_did(options: Any, expected: dg.dtype) -> None:
    product, ran = product_function(**options)
    w = dg.ones(2, 2, requires_grad=True)
    with dg.autocast("cpu"):
        y = product.apply(w)
    y.sum().backward()
    assert ran == [expected, expected]


def test_custom_forward_changes_nothing_outside() -> None:
    product, ran = product_function(cast_inputs=dg.bfloat16)
    product.apply(x)
    assert ran == [dg.float32]


# --- accelerators, whose lists are other ones -----------------------------------------------------


@pytest.fixture
def accelerator(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has this machine's only device counted as an accelerator."""
    monkeypatch.setattr(autocasting, "is_there", lambda kind: True)
    monkeypatch.setattr(autocasting, "_kind_of_inputs", lambda given: "cuda")


@pytest.mark.usefixtures("accelerator")
@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (lambda h: h @ h.float(), "float16"),
        (lambda h: h.exp(), "float32"),
        (lambda h: h.sum(), "float32"),
        (lambda h: h.sum(dtype=dg.float16), "float16"),
        (lambda h: dg.dot(h[0], h[0].float()), "float32"),
        (lambda h: h + h, "float16"),
    ],
)
def test_accelerators_have_lists_of_their_own(
    run: Callable[[dg.Tensor], dg.Tensor], expected: str
) -> None:
    half = x.half()
    with dg.autocast("cuda"):
        assert run(half).dtype.name == expected


@pytest.mark.usefixtures("accelerator")
def test_binary_cross_entropy_is_refused_on_accelerators() -> None:
    with pytest.raises(RuntimeError, match="Use binary_cross_entropy_with_logits"):
        with dg.autocast("cuda"):
            dg.nn.functional.binary_cross_entropy(x, x)
