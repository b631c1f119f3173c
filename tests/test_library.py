"""Custom operators: functions on values that autograd, and JAX, see as a whole."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dyngraph as dg

library: Any = dg.library


def sine(name: str = "tests::sine") -> Any:
    """x -> sin(x) by numpy, with its derivative."""

    def body(x: dg.Tensor) -> dg.Tensor:
        return dg.tensor(np.sin(x.detach().numpy()))

    op = library.custom_op(name, body, mutates_args=())
    op.register_autograd(
        lambda ctx, grad: grad * ctx.saved_tensors[0].cos(),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
    )
    return op


def leaf() -> Any:
    return dg.tensor([0.5, 1.0], requires_grad=True)


def test_value_is_that_of_the_body() -> None:
    assert sine()(leaf()).tolist() == np.sin(np.array([0.5, 1.0], np.float32)).tolist()


def test_gradient_is_the_registered_one() -> None:
    x = leaf()
    sine()(x).sum().backward()
    assert x.grad.tolist() == x.cos().tolist()


def test_second_derivative_goes_through_what_is_registered() -> None:
    x = leaf()
    (g,) = dg.autograd.grad(sine()(x).sum(), x, create_graph=True)
    assert dg.autograd.grad(g.sum(), x)[0].tolist() == (-x.sin()).tolist()


def test_body_is_not_recorded() -> None:
    seen: list[bool] = []
    op = library.custom_op(
        "tests::mode", lambda x: seen.append(dg.is_grad_enabled()) or x * 1, mutates_args=()
    )
    op(leaf())
    assert seen == [False]


def test_node_is_named_after_the_operator() -> None:
    assert sine()(leaf()).grad_fn.name() == "tests_sineBackward"


def test_decorator_makes_the_operator() -> None:
    @library.custom_op("tests::half", mutates_args=())
    def half(x: dg.Tensor) -> dg.Tensor:
        """Half of x."""
        return x / 2

    assert half(dg.ones(2)).tolist() == [0.5, 0.5]
    assert half.__doc__ == "Half of x."
    assert repr(half) == "<CustomOpDef(tests::half)>"


def test_operators_are_found_by_name() -> None:
    op = library.custom_op("tests::named", lambda x: x * 3, mutates_args=())
    library.register_autograd("tests::named", lambda ctx, grad: grad * 3)
    library.register_fake("tests::named", lambda x: dg.empty_like(x))
    x = leaf()
    op(x).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_defaults_and_keywords_reach_body_and_context() -> None:
    seen: dict[str, Any] = {}

    def setup_context(ctx: Any, inputs: Any, keyword_only_inputs: Any, output: Any) -> None:
        seen.update(n=inputs[1], k=keyword_only_inputs["k"], outputs=len(output))

    def body(x: dg.Tensor, n: int = 2, *, k: float = 1.0) -> Any:
        return x * n, x * k

    op = library.custom_op("tests::two", body, mutates_args=())
    op.register_autograd(lambda ctx, g, h: (g * 2 + h, None), setup_context=setup_context)
    x = leaf()
    first, second = op(x, k=3.0)
    (first + second).sum().backward()
    assert seen == {"n": 2, "k": 3.0, "outputs": 2}
    assert x.grad.tolist() == [3.0, 3.0]


def test_list_of_tensors_gets_a_list_of_gradients() -> None:
    op = library.custom_op("tests::total", lambda xs: xs[0] + xs[1] * 2, mutates_args=())
    op.register_autograd(lambda ctx, g: ([g, g * 2],))
    x, y = leaf(), leaf()
    op([x, y]).sum().backward()
    assert (x.grad.tolist(), y.grad.tolist()) == ([1.0, 1.0], [2.0, 2.0])


def test_written_argument_counts_the_write() -> None:
    op = library.custom_op("tests::into", _into, mutates_args={"y"})
    y = dg.zeros(2)
    assert op(dg.ones(2), y) is None
    assert y.tolist() == [2.0, 2.0]
    assert y._version == 1


def _into(x: Any, y: Any) -> None:
    y.copy_(x * 2)


def test_kernel_of_the_device_is_chosen() -> None:
    op = library.custom_op("tests::kinds", lambda x: x * 0, mutates_args=(), device_types="cuda")
    op.register_kernel("cpu", lambda x: x * 5)
    assert op(dg.ones(1)).tolist() == [5.0]


# --- under JAX's transformations -----------------------------------------------------------------


def faked() -> Any:
    op = sine("tests::faked")
    op.register_fake(lambda x: dg.empty_like(x))
    return op


def test_operator_runs_under_jit() -> None:
    op = faked()
    compiled = jax.jit(lambda a: op(dg.as_tensor(a)).jax())
    assert compiled(jnp.ones(2)).tolist() == pytest.approx(np.sin([1.0, 1.0]).tolist())


def test_gradient_runs_under_jit() -> None:
    op = faked()

    def gradient(a: Any) -> Any:
        x = dg.as_tensor(a).requires_grad_()
        return dg.autograd.grad(op(x).sum(), x)[0].jax()

    assert jax.jit(gradient)(jnp.ones(2)).tolist() == pytest.approx(np.cos([1.0, 1.0]).tolist())


def test_operator_runs_under_jax_vmap() -> None:
    op = faked()
    mapped = jax.vmap(lambda a: op(dg.as_tensor(a)).jax())
    assert mapped(jnp.ones((3, 2))).tolist() == [pytest.approx(np.sin([1.0, 1.0]).tolist())] * 3


def test_jit_without_a_fake_is_refused() -> None:
    op = sine("tests::unfaked")
    with pytest.raises(RuntimeError, match="no fake impl registered"):
        jax.jit(lambda a: op(dg.as_tensor(a)).jax())(jnp.ones(2))


def test_jit_without_a_kernel_for_the_host_is_refused() -> None:
    op = library.custom_op("tests::far", lambda x: x * 1, mutates_args=(), device_types="cuda")
    op.register_fake(lambda x: dg.empty_like(x))
    with pytest.raises(NotImplementedError, match="has no kernel for device 'cpu'"):
        jax.jit(lambda a: op(dg.as_tensor(a)).jax())(jnp.ones(2))


# --- checks ---------------------------------------------------------------------------------------


def test_opcheck_of_a_good_operator() -> None:
    assert set(library.opcheck(faked(), (leaf(),)).values()) == {"SUCCESS"}


def test_opcheck_finds_a_write_that_is_not_named() -> None:
    op = library.custom_op("tests::sly", lambda x: x.add_(1) * 1, mutates_args=())
    with pytest.raises(RuntimeError, match="not defined as mutable but was mutated"):
        library.opcheck(op, (dg.ones(2),), test_utils="test_schema")


def test_opcheck_finds_a_wrong_fake() -> None:
    op = sine("tests::misfaked")
    op.register_fake(lambda x: dg.empty(3))
    found = library.opcheck(op, (dg.ones(2),), raise_exception=False)
    assert "fake impl says" in str(found["test_faketensor"])
    assert found["test_schema"] == "SUCCESS"


# --- bad input ------------------------------------------------------------------------------------


def no_formula() -> Any:
    op = library.custom_op("tests::plain", lambda x: x * 2, mutates_args=())
    return op(leaf()).sum().backward()


def writing() -> Any:
    return library.custom_op("tests::writing", _into, mutates_args="y")


def few_gradients() -> Any:
    op = library.custom_op("tests::few", lambda x, y: x * y, mutates_args=())
    op.register_autograd(lambda ctx, g: g)
    return op(leaf(), leaf()).sum().backward()


BAD: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no namespace": (
        lambda: library.custom_op("sine", lambda x: x, mutates_args=()),
        ValueError,
        "expected a name with its namespace",
    ),
    "no such parameter": (
        lambda: library.custom_op("tests::w", lambda x: x, mutates_args=("y",)),
        ValueError,
        r"mutates_args names \['y'\]",
    ),
    "no tensor": (lambda: sine()(3), RuntimeError, "Expected a value of type 'Tensor'"),
    "alias of the input": (
        lambda: library.custom_op("tests::alias", lambda x: x, mutates_args=())(dg.ones(2)),
        RuntimeError,
        "must not also be an input",
    ),
    "view of the input": (
        lambda: library.custom_op("tests::view", lambda x: x[:1], mutates_args=())(dg.ones(2)),
        RuntimeError,
        "may not alias any inputs",
    ),
    "no formula": (no_formula, RuntimeError, "no autograd formula was registered"),
    "formula for a write": (
        lambda: writing().register_autograd(lambda ctx, g: g),
        RuntimeError,
        "Cannot register autograd formula for non-functional operator",
    ),
    "too few gradients": (few_gradients, RuntimeError, "expected backward to return 2 gradients"),
    "unknown name": (
        lambda: library.register_fake("tests::nowhere", lambda x: x),
        AttributeError,
        "there is no operator 'tests::nowhere'",
    ),
    "unknown check": (
        lambda: library.opcheck(sine(), (leaf(),), test_utils="test_speed"),
        ValueError,
        "is no check",
    ),
    "no kernel": (
        lambda: library.custom_op("tests::gpu", _into, mutates_args=(), device_types="cuda")(
            leaf(), leaf()
        ),
        NotImplementedError,
        "has no kernel for device 'cpu'",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name: str) -> None:
    call, error, message = BAD[name]
    with pytest.raises(error, match=message):
        call()
