"""Forward mode: dual tensors, their level, and derivatives of both directions in one program."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dyngraph as dg
from dyngraph import modes
from dyngraph.autograd import forward_ad as fwd
from dyngraph.autograd.graph import graph_desc
from dyngraph.ops.operator import OPERATORS
from dyngraph.tensor import wrap
from tests.ops.test_conventions import LINES, slope

V, T = [1.0, 2.0, 3.0], [1.0, 0.5, -1.0]


@pytest.fixture
def level() -> Iterator[None]:
    """Runs the test inside a level."""
    with fwd.dual_level():
        yield


inside = pytest.mark.usefixtures("level")


def dual(values: Any = V, tangent: Any = T, *, requires_grad: bool = False) -> dg.Tensor:
    primal = dg.tensor(values)
    return fwd.make_dual(primal.requires_grad_(requires_grad), dg.tensor(tangent))


def tangent(tensor: dg.Tensor) -> dg.Tensor:
    found = fwd.unpack_dual(tensor).tangent
    assert found is not None
    return found


def assert_values(tensor: dg.Tensor | None, expected: Any, **kwargs: Any) -> None:
    assert tensor is not None
    np.testing.assert_allclose(np.asarray(tensor.detach()), np.asarray(expected), **kwargs)


def hvp(function: Callable[[Any], Any]) -> tuple[Any, Any, Any]:
    """Gradient, the Hessian's product with the tangent, and the first derivative along it."""
    v, t = jnp.asarray(V), jnp.asarray(T)
    gradient, second = jax.jvp(jax.grad(function), (v,), (t,))
    return gradient, second, jax.jvp(function, (v,), (t,))[1]


# --- dual tensors ------------------------------------------------------------------------------


@inside
def test_make_and_unpack_are_inverse() -> None:
    given = dg.tensor(T)
    x = fwd.make_dual(dg.tensor(V), given)
    unpacked = fwd.unpack_dual(x)
    assert_values(unpacked.primal, V)
    assert unpacked.tangent is given
    assert fwd.unpack_dual(unpacked.primal).tangent is None


@inside
def test_dual_shares_the_storage_of_its_primal() -> None:
    x = dg.tensor(V)
    fwd.make_dual(x, dg.tensor(T))._cell.write(jnp.zeros(3))
    assert_values(x, [0.0, 0.0, 0.0])
    assert x._version == 1


@inside
def test_tensor_that_was_made_dual_carries_no_tangent_itself() -> None:
    x = dg.tensor(V)
    fwd.make_dual(x, dg.tensor(T))
    assert fwd.unpack_dual(x).tangent is None


@inside
def test_dual_and_its_primal_are_recorded() -> None:
    x = dual(requires_grad=True)
    assert graph_desc(x.grad_fn) == "ViewBackward0(AccumulateGrad())"
    assert graph_desc(fwd.unpack_dual(x).primal.grad_fn) == (
        "ViewBackward0(ViewBackward0(AccumulateGrad()))"
    )


@inside
def test_detach_and_data_carry_no_tangent() -> None:
    x = dual()
    assert fwd.unpack_dual(x.detach()).tangent is None
    assert fwd.unpack_dual(x.data).tangent is None


@inside
def test_dual_prints_its_tangent() -> None:
    assert repr(dual([1.0], [2.0])) == "tensor([1.], tangent=tensor([2.]))"
    assert repr(dual([1.0], [2.0], requires_grad=True) * 2) == (
        "tensor([2.], grad_fn=<MulBackward0>, tangent=tensor([4.]))"
    )


def test_tangents_end_with_their_level() -> None:
    with fwd.dual_level():
        y = dual() * 2
    assert fwd.unpack_dual(y) == (y, None)
    assert repr(y) == "tensor([2., 4., 6.])"
    with fwd.dual_level():
        assert fwd.unpack_dual(y).tangent is None


@inside
def test_tangent_of_another_precision_is_kept_as_it_is_and_used_in_the_primals() -> None:
    x = fwd.make_dual(dg.tensor(V), dg.tensor(T).half())
    assert tangent(x).dtype == dg.float16
    assert tangent(x * 2).dtype == dg.float32


@inside
def test_shape_and_values_of_a_dual_can_be_read() -> None:
    x = dual()
    assert x.tolist() == V
    assert x.shape == (3,)
    np.testing.assert_array_equal(x.numpy(), V)


# --- levels ------------------------------------------------------------------------------------


def test_entering_and_leaving_by_calls() -> None:
    assert fwd._current_level == -1
    assert fwd.enter_dual_level() == 0
    assert fwd._current_level == 0
    fwd.exit_dual_level(level=0)
    assert fwd._current_level == -1


def test_dual_level_is_a_decorator() -> None:
    @fwd.dual_level()
    def along(x: dg.Tensor) -> dg.Tensor:
        return tangent(fwd.make_dual(x, x) * x)

    assert_values(along(dg.tensor(V)), np.square(V))


def test_level_is_left_where_its_block_raises() -> None:
    with pytest.raises(RuntimeError, match="must match the size"), fwd.dual_level():
        _ = dual() + dg.ones(2)
    assert fwd._current_level == -1


def test_level_left_inside_another_mode_stays_left() -> None:
    fwd.enter_dual_level()
    with dg.no_grad():
        fwd.exit_dual_level()
    assert modes.get_flags() == modes.GRAD


def test_level_entered_inside_another_mode_stays_open() -> None:
    with dg.no_grad():
        fwd.enter_dual_level()
    assert_values(tangent(dual() * 2), [2.0, 1.0, -2.0])
    fwd.exit_dual_level()


def test_other_threads_have_levels_of_their_own() -> None:
    found = []

    def work(x: dg.Tensor) -> None:
        found.append(fwd._current_level)
        with fwd.dual_level():
            found.append(fwd.unpack_dual(x).tangent)

    with fwd.dual_level():
        thread = threading.Thread(target=work, args=(dual(),))
        thread.start()
        thread.join()
    assert found == [-1, None]


@inside
def test_no_grad_passes_tangents_on_and_inference_mode_does_not() -> None:
    x = dual(requires_grad=True)
    with dg.no_grad():
        y = x * 2
        assert_values(tangent(y), [2.0, 1.0, -2.0])
        assert not tangent(y).requires_grad
    with dg.inference_mode():
        assert fwd.unpack_dual(x).tangent is None
        assert fwd.unpack_dual(x * 2).tangent is None
        assert fwd.unpack_dual(dual()).tangent is None


@inside
def test_tangents_can_be_switched_off() -> None:
    x = dual()
    with fwd._set_fwd_grad_enabled(False):
        assert not fwd._is_fwd_grad_enabled()
        assert fwd.unpack_dual(x).tangent is None
        y = x * 2
    assert fwd.unpack_dual(y).tangent is None
    assert_values(tangent(x), T)

    @fwd._set_fwd_grad_enabled(False)
    def double(x: dg.Tensor) -> dg.Tensor:
        return x * 2

    assert fwd._is_fwd_grad_enabled()
    assert fwd.unpack_dual(double(x)).tangent is None


# --- operators ---------------------------------------------------------------------------------


@inside
def test_operator_of_two_duals_adds_what_follows_from_each() -> None:
    x, y = dual(), dual([2.0, 2.0, 2.0], [0.0, 1.0, 1.0])
    assert_values(tangent(x * y), [2.0, 3.0, 1.0])
    assert_values(tangent(x * dg.tensor(V)), [1.0, 1.0, -3.0])
    assert_values(tangent(3 - x), [-1.0, -0.5, 1.0])


@inside
def test_tangent_is_broadcast_with_its_primal() -> None:
    x = dual([[1.0], [2.0]], [[1.0], [10.0]])
    assert_values(tangent(x + dg.zeros(3)), [[1.0] * 3, [10.0] * 3])


@inside
def test_results_without_a_derivative_carry_no_tangent() -> None:
    x = dual()
    for result in (x > 1, x.argmax(), x.int(), dg.zeros_like(x), x.new_zeros(2)):
        assert fwd.unpack_dual(result).tangent is None


@inside
def test_each_result_of_several_carries_its_tangent() -> None:
    values, indices = dual([3.0, 1.0], [1.0, 2.0]).sort()
    assert_values(tangent(values), [2.0, 1.0])
    assert fwd.unpack_dual(indices).tangent is None
    assert [tangent(part).tolist() for part in dual().unbind()] == T


@inside
def test_where_gradients_follow_pytorchs_convention_so_do_tangents() -> None:
    assert_values(tangent(dual([1.0, 1.0, 0.0], T).max()), 0.75)  # ties share
    assert_values(tangent(dual([0.0, -1.0, 1.0], T).relu()), [0.0, 0.0, -1.0])
    assert_values(tangent(dual([0.0, -1.0, 1.0], T).abs()), [0.0, -0.5, -1.0])


@pytest.mark.parametrize("program", [p for _, p, _ in LINES if p.startswith("grad(")])
def test_tangent_follows_the_convention_of_the_gradient(program: str) -> None:
    def compare(function: Callable[..., Any], *values: Any) -> None:
        inputs = [dg.tensor(v, requires_grad=True) for v in values]
        result = function(*inputs)
        result = result if isinstance(result, dg.Tensor) else result[0]
        gradients = [g.numpy() for g in dg.autograd.grad(result.sum(), inputs)]
        ways = [(np.arange(g.size) + 1.0).reshape(g.shape).astype(g.dtype) for g in gradients]
        with fwd.dual_level():
            duals = [fwd.make_dual(x, dg.tensor(t)) for x, t in zip(inputs, ways, strict=True)]
            along = function(*duals)
            along = tangent(along if isinstance(along, dg.Tensor) else along[0]).sum()
        expected = sum(np.vdot(g, t) for g, t in zip(gradients, ways, strict=True))
        if np.isfinite(expected):
            assert_values(along.real, np.real(expected), rtol=1e-4)

    scope = {"dg": dg, "jnp": jnp, "F": dg.nn.functional, "inf": np.inf, "nan": np.nan}
    eval(program, {**scope, "grad": compare, "slope": slope})


@inside
def test_complex_tangents() -> None:
    x = dual([1 + 2j], [3 - 1j])
    assert_values(tangent(x.conj()), [3 + 1j])
    assert_values(tangent(x * x), [2 * (1 + 2j) * (3 - 1j)], rtol=1e-6)
    assert_values(tangent(x.real), [3.0])
    assert_values(tangent(x.imag), [-1.0])
    assert_values(tangent(x.abs()), [(3 - 2) / 5**0.5], rtol=1e-6)
    assert_values(tangent(dual() * 1j), 1j * np.asarray(T))


@inside
def test_conversions_carry_tangents() -> None:
    assert tangent(dual().half()).dtype == dg.float16
    moved = dual(requires_grad=True).to("cpu:1")
    assert tangent(moved).device == moved.device
    assert_values(tangent(moved), T)


@inside
def test_scalar_on_another_device_follows_with_its_tangent() -> None:
    x = dual().to("cpu:1")
    y = dual(2.0, 1.0).to("cpu:0")
    assert_values(tangent(x * y), [3.0, 3.0, 1.0])


@inside
def test_functions_of_jax_numpy_carry_tangents() -> None:
    x = dual()
    assert_values(tangent(dg.numpy.sin(x)), np.cos(V) * T, rtol=1e-6)
    assert_values(tangent(dg.numpy.power(x, 2)), 2 * np.multiply(V, T))
    assert_values(tangent(dg.numpy.concatenate([x, dg.ones(1)])), [*T, 0.0])


@inside
def test_functions_that_run_on_values_carry_tangents() -> None:
    x = dual(requires_grad=True)
    kept = dg.numpy.compress(x > 1, x)
    assert_values(tangent(kept), T[1:])
    (grad,) = dg.autograd.grad((kept**2).sum(), x)
    assert_values(grad, [0.0, 4.0, 6.0])
    assert_values(tangent(grad), [0.0, 1.0, -2.0])


@inside
def test_new_static_arguments_and_shapes_find_their_own_tangents() -> None:
    for size in (2, 3):
        x = dual(np.ones((size, 2), np.float32), np.arange(2.0 * size).reshape(size, 2))
        assert_values(tangent(x.sum(0)), np.arange(2.0 * size).reshape(size, 2).sum(0))
        assert_values(tangent(x.sum(1)), np.arange(2.0 * size).reshape(size, 2).sum(1))


@inside
def test_jit_and_vmap_inside_a_level() -> None:
    def along(v: jax.Array, t: jax.Array) -> jax.Array:
        return tangent(fwd.make_dual(wrap(v), wrap(t)).exp()).jax()

    v, t = jnp.asarray(V), jnp.asarray([T, V])
    got = jax.jit(jax.vmap(along, (None, 0)))(v, t)
    np.testing.assert_allclose(got, jnp.exp(v) * t, rtol=1e-6)


# --- with backward -----------------------------------------------------------------------------

FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "by rules": (lambda x: ((x * x).exp() / x.sum()).sum(), lambda x: sum_of(x)),
    "by default": (
        lambda x: dg.logcumsumexp(x * x, 0).sum(),
        lambda x: jnp.sum(jax.lax.cumlogsumexp(x * x)),
    ),
    "several results": (
        lambda x: (x.sort(descending=True).values * x).sum(),
        lambda x: jnp.sum(x * -jnp.sort(-x)),
    ),
    "matrices": (
        lambda x: dg.linalg.inv(dg.outer(x, x) + dg.eye(3)).sum(),
        lambda x: jnp.linalg.inv(jnp.outer(x, x) + jnp.eye(3)).sum(),
    ),
    "jax.numpy": (lambda x: dg.numpy.prod(x) * x[0], lambda x: jnp.prod(x) * x[0]),
}


def sum_of(x: Any) -> Any:
    return jnp.sum(jnp.exp(x * x) / jnp.sum(x))


each_function = pytest.mark.parametrize(("ours", "twin"), FUNCTIONS.values(), ids=FUNCTIONS)
CLOSE = {"rtol": 1e-4, "atol": 1e-5}


@inside
@each_function
def test_backward_over_forward(ours: Callable[[Any], Any], twin: Callable[[Any], Any]) -> None:
    x = dg.tensor(V, requires_grad=True)
    y = ours(fwd.make_dual(x, dg.tensor(T)))
    gradient, second, first = hvp(twin)
    assert_values(tangent(y), first, **CLOSE)
    (of_tangent,) = dg.autograd.grad(tangent(y), x, retain_graph=True)
    assert_values(of_tangent, second, **CLOSE)
    assert_values(dg.autograd.grad(y, x)[0], gradient, **CLOSE)


@inside
@each_function
@pytest.mark.parametrize("create_graph", [False, True])
def test_forward_over_backward(
    ours: Callable[[Any], Any], twin: Callable[[Any], Any], create_graph: bool
) -> None:
    x = dual(requires_grad=True)
    (grad,) = dg.autograd.grad(ours(x), x, create_graph=create_graph)
    gradient, second, _ = hvp(twin)
    assert_values(grad, gradient, **CLOSE)
    assert_values(tangent(grad), second, **CLOSE)
    assert grad.requires_grad is create_graph
    assert tangent(grad).requires_grad is create_graph


@inside
def test_the_first_index_of_a_dual_that_requires_grad_is_recorded() -> None:
    select: Any = OPERATORS["getitem_select"]
    select.spec.jvps.clear()  # as in a program that has indexed none before
    x = dual(requires_grad=True)
    assert_values(tangent(x[1]), T[1])
    assert tangent(x[1]).grad_fn is None and x[1].grad_fn is not None


@inside
def test_third_derivative_by_backward_over_forward_over_backward() -> None:
    x = dg.tensor(2.0, requires_grad=True)
    d = fwd.make_dual(x, dg.tensor(1.0))
    (grad,) = dg.autograd.grad(d**4, d, create_graph=True)
    assert_values(tangent(grad), 48.0)
    assert_values(dg.autograd.grad(tangent(grad), x)[0], 48.0)


@inside
def test_gradient_for_the_tangent_is_the_ordinary_gradient() -> None:
    t = dg.tensor(T, requires_grad=True)
    y = fwd.make_dual(dg.tensor(V), t).exp()
    assert not y.requires_grad
    assert_values(dg.autograd.grad(tangent(y).sum(), t)[0], np.exp(V), rtol=1e-6)


@inside
def test_numbers_among_the_inputs_of_a_recorded_operator() -> None:
    x = dg.tensor(V, requires_grad=True)
    y = dg.nn.functional.elu(fwd.make_dual(x, dg.tensor(T)) * 2.0, 0.5) ** 2.0
    _, second, _ = hvp(lambda v: jnp.sum(jax.nn.elu(v * 2.0, 0.5) ** 2))
    assert_values(dg.autograd.grad(tangent(y).sum(), x)[0], second, **CLOSE)


@inside
def test_tangent_of_a_linear_operator_does_not_lead_back_to_its_input() -> None:
    x = dg.tensor([0.0], requires_grad=True)
    t = dg.tensor([1.0], requires_grad=True)
    y = fwd.make_dual(x.sqrt(), t) * 2  # through sqrt, the gradient of x would be NaN
    gx, gt = dg.autograd.grad(tangent(y), [x, t], allow_unused=True)
    assert gx is None
    assert_values(gt, [2.0])


@inside
@pytest.mark.parametrize("function", [dg.norm, dg.std, lambda x: x.abs().prod()])
def test_second_derivative_through_a_result_is_that_of_the_rule(function: Any) -> None:
    x = dg.tensor([0.0, 0.0], requires_grad=True)
    y = function(fwd.make_dual(x, dg.tensor([1.0, 2.0])))
    (along,) = dg.autograd.grad(tangent(y), x, allow_unused=True)
    assert along is None or np.isfinite(along.numpy()).all()


@inside
def test_accumulated_gradients_carry_tangents() -> None:
    x = dg.tensor(V, requires_grad=True)
    for times in (1, 2):
        (fwd.make_dual(x, dg.tensor(T)) ** 3).sum().backward()
        assert_values(x.grad, times * 3 * np.square(V))
        assert x.grad is not None
        assert_values(tangent(x.grad), times * 6 * np.multiply(V, T))


@inside
def test_backward_writes_into_the_same_grad() -> None:
    x = dg.tensor(V, requires_grad=True)
    (x * x).sum().backward()
    first = x.grad
    (x * x).sum().backward()
    assert x.grad is first
    assert_values(first, 4 * np.asarray(V))


@inside
def test_gradient_of_a_root_may_be_dual() -> None:
    x = dg.tensor(V, requires_grad=True)
    (grad,) = dg.autograd.grad(x * 3, x, dual())
    assert_values(tangent(grad), 3 * np.asarray(T))
    assert not grad.requires_grad


@inside
def test_batched_gradients_carry_tangents() -> None:
    x = dual(requires_grad=True)
    (rows,) = dg.autograd.grad(x**3, x, dg.eye(3), is_grads_batched=True)
    assert_values(rows, np.diag(3 * np.square(V)))
    assert_values(tangent(rows), np.diag(6 * np.multiply(V, T)))


@inside
def test_hooks_see_tangents() -> None:
    x = dual(requires_grad=True)
    seen = []
    x.register_hook(lambda grad: seen.append(tangent(grad)))
    (x**3).sum().backward()
    assert_values(seen[0], 6 * np.multiply(V, T))


def test_graph_of_a_level_runs_backward_after_it() -> None:
    x = dg.tensor(V, requires_grad=True)
    with fwd.dual_level():
        y = (fwd.make_dual(x, dg.tensor(T)) ** 2).sum()
        t = tangent(y)
    assert_values(dg.autograd.grad(y, x)[0], 2 * np.asarray(V))
    assert_values(dg.autograd.grad(t, x)[0], 2 * np.asarray(T))


# --- memory ------------------------------------------------------------------------------------


@pytest.mark.usefixtures("no_gc")
def test_leaving_a_level_frees_its_tangents_while_the_duals_live() -> None:
    with fwd.dual_level():
        x = dual(requires_grad=True)
        y = (x * x).exp()
        refs = [weakref.ref(tangent(t)) for t in (x, y)]
        arrays = [weakref.ref(tangent(t)._cell) for t in (x, y)]
        assert all(r() is not None for r in refs)
    assert all(r() is None for r in [*refs, *arrays])
    assert y.grad_fn is not None


@inside
@pytest.mark.usefixtures("no_gc")
def test_dropping_duals_frees_them_inside_the_level() -> None:
    x = dual(requires_grad=True)
    y = (x.exp() * x).sum()
    refs = [weakref.ref(t) for t in (x, y, tangent(y), tangent(x))]
    nodes = [weakref.ref(y.grad_fn), weakref.ref(tangent(y).grad_fn)]
    del x, y
    assert [r() for r in [*refs, *nodes]] == [None] * 6


@inside
@pytest.mark.usefixtures("no_gc")
def test_backward_frees_saved_tangents_as_it_goes() -> None:
    x = dual(requires_grad=True)
    y = x * 2
    saved = weakref.ref(tangent(y))
    loss = (y * y).sum()
    del y
    assert saved() is not None
    loss.backward()
    assert saved() is None


@inside
@pytest.mark.usefixtures("no_gc")
def test_forward_mode_makes_no_garbage() -> None:
    def step() -> None:
        x = dual(requires_grad=True)
        dg.autograd.grad((x.exp() * x).sum(), x, create_graph=True)

    step()
    gc.collect()
    step()
    assert gc.collect() == 0


# --- misuse ------------------------------------------------------------------------------------


def test_dual_outside_a_level_raises() -> None:
    with pytest.raises(RuntimeError, match="no level exists, make sure to enter_dual_level"):
        dual()


def test_unpacking_outside_a_level_gives_the_tensor_itself() -> None:
    x = dg.tensor(V)
    assert fwd.unpack_dual(x) == (x, None)


def test_exit_without_a_level_raises() -> None:
    with pytest.raises(RuntimeError, match="Dual level must be a positive number"):
        fwd.exit_dual_level()


@inside
def test_exit_of_another_level_raises() -> None:
    with pytest.raises(RuntimeError, match="not the last one that was created: got 3"):
        fwd.exit_dual_level(level=3)


@inside
def test_nested_level_raises() -> None:
    with pytest.raises(RuntimeError, match="Nested forward mode AD is not supported"):
        fwd.enter_dual_level()
    assert_values(tangent(dual() * 2), [2.0, 1.0, -2.0])  # the open one goes on


@inside
def test_integers_cannot_be_dual() -> None:
    with pytest.raises(ValueError, match="Expected primal to be floating point or complex"):
        fwd.make_dual(dg.tensor([1]), dg.ones(1))
    with pytest.raises(ValueError, match="Expected tangent to be floating point or complex"):
        fwd.make_dual(dg.ones(1), dg.tensor([1]))


@inside
@pytest.mark.parametrize("shape", [(3,), (2,), (2, 1), ()])
def test_tangent_of_another_shape_raises(shape: tuple[int, ...]) -> None:
    with pytest.raises(RuntimeError, match="different size than that of the original Tensor"):
        fwd.make_dual(dg.ones(2, 3), dg.ones(shape))


@inside
def test_complex_tangent_of_a_real_tensor_raises() -> None:
    with pytest.raises(RuntimeError, match=r"Take its \.real"):
        fwd.make_dual(dg.ones(1), dg.tensor([1j]))


@inside
def test_what_is_dual_cannot_be_made_dual_again() -> None:
    with pytest.raises(RuntimeError, match="already has a forward gradient at the same level"):
        fwd.make_dual(dual(), dg.tensor(T))
    with pytest.raises(RuntimeError, match="itself has a forward gradient at the same level"):
        fwd.make_dual(dg.tensor(V), dual())


@inside
def test_only_tensors_can_be_dual() -> None:
    with pytest.raises(TypeError, match="primal must be Tensor, not float"):
        fwd.make_dual(1.0, dg.tensor(T))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="tangent must be Tensor, not list"):
        fwd.make_dual(dg.tensor(V), T)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="must be Tensor, not float"):
        fwd.unpack_dual(1.0)  # type: ignore[arg-type]


@inside
def test_level_that_is_not_open_raises() -> None:
    with pytest.raises(RuntimeError, match="Invalid level given to make_dual: 1"):
        fwd.make_dual(dg.tensor(V), dg.tensor(T), level=1)
    assert fwd.unpack_dual(dual(), level=1).tangent is None


@inside
def test_failed_operator_leaves_the_mode_on() -> None:
    with pytest.raises(RuntimeError, match="must match the size"):
        _ = dual() + dg.ones(2)
    assert_values(tangent(dual() * 2), [2.0, 1.0, -2.0])


@inside
def test_operands_of_foreign_types_are_left_to_them() -> None:
    with pytest.raises(TypeError, match="unsupported operand"):
        dual() + object()  # type: ignore[operator]


# --- where a tangent comes from -----------------------------------------------------------------


def test_dual_of_inference_tensors_is_one() -> None:
    with dg.inference_mode():
        primal, given = dg.ones(3), dg.ones(3)
        assert primal.is_inference()
        with fwd.dual_level():
            x = fwd.make_dual(primal, given)
            assert x.is_inference() and not x._is_view()
            x += 1
        assert_values(primal, [2, 2, 2])


@inside
@pytest.mark.parametrize("shape", [(0,), (2, 0, 3)])
def test_tensor_without_elements_has_a_tangent_without_elements(shape: Any) -> None:
    x = fwd.make_dual(dg.ones(shape), dg.zeros(shape))
    assert tangent(x.exp()).shape == shape


@inside
@pytest.mark.parametrize("which", ["primal", "tangent", "both"])
def test_conjugates_may_be_primal_and_tangent(which: str) -> None:
    v, t = dg.tensor([1 + 2j]), dg.tensor([3 - 1j])
    v = v.conj() if which != "tangent" else v
    t = t.conj() if which != "primal" else t
    x = fwd.make_dual(v, t)
    assert_values(tangent(x * x), (2 * v * t).numpy())
    assert_values(tangent(x.conj()).resolve_conj(), t.conj().resolve_conj().numpy())


@inside
@pytest.mark.parametrize("which", ["primal", "tangent", "both"])
def test_negated_views_may_be_primal_and_tangent(which: str) -> None:
    v, t = dg.tensor([1 + 2j]), dg.tensor([3 - 1j])
    # PyTorch's imaginary part of a conjugate is a negated view.
    a = v.conj().imag if which != "tangent" else v.imag
    b = t.conj().imag if which != "primal" else t.imag
    x = fwd.make_dual(a, b)
    assert_values(tangent(x * x), [2 * a.item() * b.item()])


@inside
def test_primal_and_tangent_may_lie_differently_in_memory() -> None:
    x = fwd.make_dual(dg.ones(2, 3), dg.ones(6)[::1].view(3, 2).T)
    assert_values(tangent(x.view(6)), np.ones(6))
    y = fwd.make_dual(dg.ones(4)[1:3], dg.ones(2))
    assert_values(tangent(y * 2), [2, 2])


@inside
def test_tangent_of_a_leaf_and_its_gradient_are_apart() -> None:
    x = dg.tensor(V, requires_grad=True)
    given = dg.tensor(T, requires_grad=True)
    d = fwd.make_dual(x, given)
    d.sum().backward()
    assert_values(x.grad, [1, 1, 1])
    assert given.grad is None
    tangent(d).sum().backward()
    assert_values(given.grad, [1, 1, 1])
