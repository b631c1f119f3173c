"""from_jax: a jax function is one operator, with JAX's derivatives."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas as pl

import dyngraph as dg

POINTS = [0.5, 2.0]


def leaf(values: Any = POINTS) -> dg.Tensor:
    return dg.tensor(values, requires_grad=True)


def test_call_is_one_node_named_after_the_function() -> None:
    def wave(x: Any) -> Any:
        return jnp.sin(jnp.cos(x)) * 2

    y = dg.from_jax(wave)(leaf())
    assert repr(y.grad_fn) == "<WaveBackward0>"
    assert len(y.grad_fn.next_functions) == 1


def test_trees_go_in_and_come_out() -> None:
    class Pair(NamedTuple):
        first: Any
        second: Any

    def swap(pair: Any, rest: Any, flag: Any) -> Any:
        return {"swapped": Pair(pair.second * 2, [pair.first]), "flag": flag, "none": None} | rest

    x = leaf()
    out = dg.from_jax(swap)(Pair(x, jnp.ones(2)), {"n": np.arange(2)}, flag="as it is")
    assert out["swapped"].first.tolist() == [2.0, 2.0]
    assert out["swapped"].second[0].requires_grad
    assert (out["flag"], out["none"], out["n"].tolist()) == ("as it is", None, [0, 1])


def test_integer_and_bool_leaves_have_no_gradient() -> None:
    choose = dg.from_jax(lambda x, i, mask: (jnp.where(mask, x[i], 0.0), mask))
    x = leaf()
    y, mask = choose(x, dg.tensor([1, 0]), dg.tensor([True, False]))
    assert (y.tolist(), mask.dtype, mask.requires_grad) == ([2.0, 0.0], dg.bool, False)
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0.0, 1.0]


def test_derivatives_are_jax_s_to_the_third_order() -> None:
    function = lambda x: jnp.sum(jnp.exp(x) * x**2)  # noqa: E731
    x = leaf()
    (first,) = dg.autograd.grad(dg.from_jax(function)(x), x, create_graph=True)
    (second,) = dg.autograd.grad(first.sum(), x, create_graph=True)
    (third,) = dg.autograd.grad(second.sum(), x)
    of_sum = lambda f: lambda x: jnp.sum(f(x))  # noqa: E731
    expected = jax.grad(of_sum(jax.grad(of_sum(jax.grad(function)))))(jnp.array(POINTS))
    np.testing.assert_allclose(third.numpy(), expected, rtol=1e-5)


@jax.custom_vjp
def straight_through(x: Any) -> Any:
    return jnp.round(x)


straight_through.defvjp(lambda x: (jnp.round(x), None), lambda _, grad: (grad * 10,))


def test_custom_vjp_is_the_derivative() -> None:
    x = leaf()
    dg.from_jax(straight_through)(x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [10.0, 10.0]


@jax.custom_jvp
def steep(x: Any) -> Any:
    return x


steep.defjvp(lambda xs, ts: (xs[0], 5 * ts[0]))


def test_custom_jvp_is_the_derivative_both_ways() -> None:
    run, x = dg.from_jax(steep), leaf()
    run(x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [5.0, 5.0]
    assert dg.func.jvp(run, (dg.ones(2),), (dg.ones(2),))[1].tolist() == [5.0, 5.0]


def _pallas_double(x: Any) -> Any:
    def kernel(source: Any, target: Any) -> None:
        target[...] = source[...] * 2

    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pl.pallas_call(kernel, out_shape=shape, interpret=True)(x)


pallas_double = jax.custom_vjp(_pallas_double)
pallas_double.defvjp(lambda x: (_pallas_double(x), None), lambda _, grad: (_pallas_double(grad),))


@pytest.mark.parametrize("backward_mode", ["eager", "compiled"], indirect=True)
def test_pallas_kernels_run_forward_and_backward() -> None:
    run, x = dg.from_jax(pallas_double), leaf()
    y = run(x)
    y.sum().backward()
    assert y.tolist() == [1.0, 4.0]
    assert x.grad is not None
    assert x.grad.tolist() == [2.0, 2.0]


def test_it_is_mapped_by_vmap() -> None:
    dot = dg.from_jax(lambda x, y: jnp.dot(x, y))
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    out = dg.func.vmap(dot, in_dims=(0, None))(x, dg.tensor([1.0, 10.0]))
    out.sum().backward()
    assert out.tolist() == [21.0, 43.0]
    assert x.grad is not None
    assert x.grad.tolist() == [[1.0, 10.0], [1.0, 10.0]]


def test_only_what_backward_reads_is_saved() -> None:
    x, y = leaf(), leaf()
    node = dg.from_jax(lambda x, y: x * 2 + jnp.sin(y))(x, y).grad_fn
    assert [s.tolist() for s in node.tensors()] == [POINTS]


def test_it_is_traced_once_for_each_kind_of_call() -> None:
    traced = []

    @dg.from_jax
    def scaled(x: Any, factor: Any, mode: str = "a") -> Any:
        traced.append(mode)
        return x * factor

    for factor in (2.0, 3.0, 4.0):
        assert scaled(leaf(), factor).tolist() == [0.5 * factor, 2.0 * factor]
    scaled(leaf(), 2.0, mode="b")
    scaled(leaf([1.0]), 2.0)
    assert traced == ["a", "b", "a"]


def test_static_arguments_are_told_apart_by_value_and_type() -> None:
    total = dg.from_jax(
        lambda x, axis, keep=False: jnp.sum(x, axis, keepdims=keep),
        static_argnames=("axis", "keep"),
    )
    x = dg.ones(2, 3)
    assert total(x, 0).shape == (3,)
    assert total(x, axis=1).shape == (2,)
    assert total(x, (0, 1), keep=True).shape == (1, 1)


def test_static_floats_keep_the_sign_of_zero() -> None:
    run = dg.from_jax(lambda x, z: jnp.copysign(x, z), static_argnames="z")
    assert [run(dg.ones(1), 0.0).item(), run(dg.ones(1), -0.0).item()] == [1.0, -1.0]


def test_keys_are_inputs_and_outputs() -> None:
    @dg.from_jax
    def draw(key: Any, x: Any) -> Any:
        key, own = jax.random.split(key)
        return key, x * jax.random.normal(own, x.shape)

    key = jax.random.key(0)
    after, y = draw(key, leaf())
    expected, own = jax.random.split(key)
    assert (jax.random.key_data(after) == jax.random.key_data(expected)).all()
    np.testing.assert_allclose(
        y.detach().numpy(), np.array(POINTS) * jax.random.normal(own, (2,)), rtol=1e-6
    )
    assert len(draw.recorded.ways) == 1
    draw(jax.random.key(1), leaf())
    assert len(draw.recorded.ways) == 1


def test_complex_gradient_is_the_conjugate_of_jax_s() -> None:
    function = lambda z: jnp.real(jnp.sum(z * z))  # noqa: E731
    z = dg.tensor([1 + 2j], requires_grad=True)
    dg.from_jax(function)(z).backward()
    expected = jnp.conj(jax.grad(function)(jnp.array([1 + 2j])))
    assert z.grad is not None
    assert z.grad.tolist() == expected.tolist() == [2 - 4j]


def test_decorator_takes_options() -> None:
    @functools.partial(dg.from_jax, static_argnames="n")
    def repeat(x: Any, n: int) -> Any:
        """Says what it does."""
        return jnp.tile(x, n)

    assert repeat(dg.ones(1), n=3).shape == (3,)
    assert repeat.__doc__ == "Says what it does."


def test_function_without_arrays_in_its_result_is_called() -> None:
    assert dg.from_jax(lambda x: ("no array", None))(dg.ones(2)) == ("no array", None)


CLOSED_OVER: Any = dg.ones(2)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: jnp.add(x, CLOSED_OVER),
        lambda x: x + jnp.asarray(CLOSED_OVER),
        lambda x: jnp.sin(x * CLOSED_OVER),
    ],
)
def test_tensor_that_is_closed_over_is_refused(function: Any) -> None:
    with pytest.raises(TypeError, match="Pass it as an argument"):
        dg.from_jax(function)(leaf())


def test_tensor_as_result_is_refused() -> None:
    with pytest.raises(TypeError, match=r"Call it as it is, or make it a function of arrays"):
        dg.from_jax(lambda x: dg.ones(2))(leaf())


def test_static_value_that_can_t_be_hashed_is_refused() -> None:
    with pytest.raises(TypeError, match=r"must be hashable.* got \[1\] \(list\)"):
        dg.from_jax(lambda x, n: x, static_argnames="n")(leaf(), [1])


def test_unknown_static_name_is_refused() -> None:
    with pytest.raises(TypeError, match=r"static_argnames has \['m'\]"):
        dg.from_jax(lambda x, n: x, static_argnames="m")


def test_function_without_derivative_says_what_to_do() -> None:
    raw = dg.from_jax(lambda x: jax.pure_callback(np.sin, jax.ShapeDtypeStruct((2,), "float32"), x))
    assert raw(dg.zeros(2)).tolist() == [0.0, 0.0]
    with pytest.raises(ValueError, match="Pure callbacks do not support JVP") as caught:
        raw(leaf())
    assert "define one by jax.custom_vjp" in caught.value.__notes__[-1]


def test_value_asked_for_by_a_jax_function_is_jax_s_error() -> None:
    with pytest.raises(jax.errors.TracerBoolConversionError, match="traced array"):
        dg.from_jax(lambda x: x if x[0] > 0 else -x)(leaf())


def test_tracer_that_is_closed_over_does_not_stay() -> None:
    @jax.jit
    def run(a: Any) -> Any:
        scaled = dg.from_jax(lambda x: x * a)
        result = scaled(dg.interop.tensors_of(a))
        assert not scaled.recorded.ways
        return dg.interop.arrays_of(result)

    with jax.checking_leaks():
        assert run(jnp.array([3.0])).tolist() == [9.0]
