"""to_jax: a define-by-run function goes through JAX's transformations, and leaves nothing there."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, PartitionSpec

import dyngraph as dg

X = np.array([1.0, -2.0], np.float32)


def written(x: dg.Tensor) -> dg.Tensor:
    """Writes to a tensor of its own, and to its argument."""
    y = dg.zeros(2)
    y[0] = (x * x).sum()
    return (y * x.mul_(2)).sum()


def by_jax(x: Any) -> Any:
    return jnp.sum(x * x) * 2 * x[0]


def slope(x: dg.Tensor) -> Any:
    """An inner backward."""
    x.requires_grad_()
    (x**3).sum().backward()
    return x.grad


def test_jit_gives_what_the_function_gives() -> None:
    pure = dg.to_jax(written)
    expected = by_jax(jnp.asarray(X))
    assert pure(X) == jax.jit(pure)(X) == expected


def test_argument_that_was_written_to_stays_outside() -> None:
    x = jnp.asarray(X)
    dg.to_jax(written)(x)
    assert x.tolist() == X.tolist()


def test_gradients_of_both_orders_are_those_of_the_same_jax_function() -> None:
    np.testing.assert_allclose(
        jax.jit(jax.grad(dg.to_jax(written)))(X), jax.grad(by_jax)(X), rtol=1e-6
    )
    second = jax.jit(jax.hessian(dg.to_jax(lambda x: (x**3).sum())))(X)
    np.testing.assert_allclose(second, np.diag(6 * X), rtol=1e-6)


def test_checkpointed_gradient_is_the_same() -> None:
    pure = jax.checkpoint(dg.to_jax(written))
    np.testing.assert_allclose(jax.jit(jax.grad(pure))(X), jax.grad(by_jax)(X), rtol=1e-6)


def test_it_is_mapped_with_its_gradient() -> None:
    rows = np.stack([X, X + 1])
    found = jax.jit(jax.vmap(jax.grad(dg.to_jax(written))))(rows)
    np.testing.assert_allclose(found, jax.vmap(jax.grad(by_jax))(rows), rtol=1e-6)


def test_it_runs_in_shards() -> None:
    mesh = Mesh(np.array(jax.devices()[:2]), ("rows",))
    spec = PartitionSpec("rows")
    pure = dg.to_jax(lambda x: x.sin() * 2)
    run = jax.shard_map(pure, mesh=mesh, in_specs=spec, out_specs=spec)
    np.testing.assert_allclose(jax.jit(run)(X), np.sin(X) * 2, rtol=1e-6)


def test_inner_backward_runs_and_is_differentiated() -> None:
    pure = dg.to_jax(slope)
    np.testing.assert_allclose(jax.jit(pure)(X), 3 * X**2)
    np.testing.assert_allclose(jax.jacobian(pure)(X), np.diag(6 * X))


def test_inner_compiled_backward_is_the_same() -> None:
    with dg.compiled_autograd():
        np.testing.assert_allclose(jax.jit(dg.to_jax(slope))(X), 3 * X**2)


def test_inner_grad_with_create_graph_is_differentiated() -> None:
    def penalty(x: dg.Tensor) -> dg.Tensor:
        x.requires_grad_()
        (g,) = dg.autograd.grad((x**3).sum(), x, create_graph=True)
        return (g * g).sum()

    np.testing.assert_allclose(jax.grad(dg.to_jax(penalty))(X), 36 * X**3)


class TimesTen(dg.autograd.Function):
    """Rounds, and says that its derivative is 10."""

    @staticmethod
    def forward(ctx: Any, x: Any, n: int) -> Any:
        return x.round()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * 10, None


def test_function_has_its_own_backward() -> None:
    pure = dg.to_jax(lambda x: (TimesTen.apply(x, 1) * x).sum())
    np.testing.assert_allclose(jax.jit(jax.grad(pure))(X), X * 10 + X)


def test_function_of_a_tensor_that_requires_grad_has_it_in_both_ways() -> None:
    weight = dg.ones(2, requires_grad=True)

    def both(x: dg.Tensor) -> Any:
        y = TimesTen.apply(x * weight, 1)
        return y.sum(), dg.autograd.grad(y.sum(), weight)[0]

    found, inner = jax.jit(jax.grad(dg.to_jax(both), has_aux=True))(X)
    assert (found.tolist(), inner.tolist()) == ([10.0, 10.0], (X * 10).tolist())


def test_function_that_writes_to_its_argument_is_refused() -> None:
    class Write(dg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            return x.mul_(2)

    with pytest.raises(RuntimeError, match=r"writes to its arguments in forward.*Return a new"):
        dg.to_jax(Write.apply)(X)


# What PyTorch's autograd does not go through, JAX's does not.


def detached(x: dg.Tensor) -> dg.Tensor:
    return (x.detach() * x).sum()


def without_grad(x: dg.Tensor) -> dg.Tensor:
    with dg.no_grad():
        y = x * 2
    return (x * y).sum()


def written_without_grad(x: dg.Tensor) -> dg.Tensor:
    with dg.no_grad():
        x.mul_(2)
    return (x * 5).sum()


def written_through_detach(x: dg.Tensor) -> dg.Tensor:
    y = x * 1
    y.detach()[0] = 7.0
    return (y * 3).sum()


def conventions(x: dg.Tensor) -> dg.Tensor:
    zero = x - x.detach()
    return dg.norm(zero) + dg.amax(zero, 0) + zero.clamp(0.0, 1.0).sum()


@pytest.mark.parametrize(
    "program", [detached, without_grad, written_without_grad, written_through_detach, conventions]
)
def test_gradient_is_dyngraph_s(program: Any) -> None:
    leaf = dg.tensor(X, requires_grad=True)
    x = leaf * 1 if program in (detached, without_grad, conventions) else leaf.clone()
    program(x).backward()
    assert leaf.grad is not None
    found = jax.jit(jax.grad(dg.to_jax(program)))(X)
    np.testing.assert_allclose(found, leaf.grad.numpy())


def test_forward_mode_has_the_same_conventions() -> None:
    _, tangent = jax.jvp(dg.to_jax(dg.norm), (jnp.zeros(2),), (jnp.ones(2),))
    assert float(tangent) == 0.0


def test_complex_gradient_is_jax_s() -> None:
    z = jnp.array([1 + 2j])
    found = jax.grad(dg.to_jax(lambda z: (z * z).real.sum() + z.abs().sum()))(z)
    expected = jax.grad(lambda z: jnp.sum((z * z).real) + jnp.sum(jnp.abs(z)))(z)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_round_trip_is_the_function() -> None:
    x = dg.tensor(X, requires_grad=True)
    dg.from_jax(dg.to_jax(lambda x: (x**3).sum()))(x).backward()
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), 3 * X**2)


def test_steps_of_an_optimizer_run_inside() -> None:
    def trained(w: dg.Tensor) -> dg.Tensor:
        w = w.clone().requires_grad_()
        optimizer = dg.optim.SGD([w], lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            (w * w).sum().backward()
            optimizer.step()
        return w.detach()

    np.testing.assert_allclose(jax.jit(dg.to_jax(trained))(X), X * 0.8**2, rtol=1e-6)


# --- random numbers ---------------------------------------------------------------------------


def test_key_is_drawn_from() -> None:
    pure = jax.jit(dg.to_jax(lambda x: (dg.rand(3), dg.rand(3) + x), takes_key=True))
    first, second = pure(jax.random.key(0), 0.0)
    assert not (first == second).any()
    assert (pure(jax.random.key(0), 0.0)[0] == first).all()
    assert not (pure(jax.random.key(1), 0.0)[0] == first).any()


def test_default_generator_is_not_drawn_from() -> None:
    state = dg.get_rng_state()
    dg.to_jax(lambda: dg.rand(3), takes_key=True)(jax.random.PRNGKey(0))
    assert (dg.get_rng_state() == state).all()
    with pytest.raises(RuntimeError, match=r"to_jax\(fn, takes_key=True\)"):
        dg.to_jax(lambda: dg.rand(3))()


def test_what_is_no_key_is_refused() -> None:
    with pytest.raises(TypeError, match=r"Pass jax.random.key\(seed\)"):
        dg.to_jax(lambda x: x, takes_key=True)(X)


# --- what stays -------------------------------------------------------------------------------


def test_no_tracer_leaks() -> None:
    with jax.checking_leaks():
        jax.jit(jax.grad(dg.to_jax(written)))(X)
        jax.jit(jax.vmap(dg.to_jax(slope)))(np.stack([X, X]))


@pytest.mark.usefixtures("no_gc")
def test_tensors_of_a_trace_are_freed_with_it() -> None:
    seen = []

    def watched(x: dg.Tensor) -> dg.Tensor:
        y = x * 2
        seen.extend([weakref.ref(x), weakref.ref(y), weakref.ref(y._cell)])
        return y

    jax.jit(dg.to_jax(watched))(X)
    assert [reference() for reference in seen] == [None, None, None]


def test_leaf_from_outside_keeps_its_grad() -> None:
    weight = dg.ones(2, requires_grad=True)
    weight.sum().backward()

    def step(x: dg.Tensor) -> dg.Tensor:
        (weight * x).sum().backward()
        return x

    with pytest.raises(
        RuntimeError, match=r"backward set the \.grad of a Tensor from outside.*Use"
    ):
        jax.jit(dg.to_jax(step))(X)
    assert weight.grad is not None
    assert weight.grad.tolist() == [1.0, 1.0]


def test_tensor_from_outside_keeps_its_value_and_version() -> None:
    base = dg.zeros(2)
    row = base[0:1]

    def count(x: dg.Tensor) -> dg.Tensor:
        base.add_(x)
        return x + row

    with pytest.raises(RuntimeError, match=r"test_to_jax.py:\d+ changed the value of a Tensor"):
        jax.jit(dg.to_jax(count))(X)
    assert (base.tolist(), row.tolist(), base._version) == ([0.0, 0.0], [0.0], 0)


def test_view_from_outside_is_filled_with_values() -> None:
    base = dg.zeros(2)
    row = base[0:1]
    base.add_(1)  # empties the view
    jax.jit(dg.to_jax(lambda x: x + row))(X)
    assert row.tolist() == [1.0]


def test_error_of_the_function_leaves_all_as_it_was() -> None:
    base = dg.zeros(2)

    def fail(x: dg.Tensor) -> dg.Tensor:
        base.add_(x)
        raise LookupError("on purpose")

    with pytest.raises(LookupError, match="on purpose"):
        jax.jit(dg.to_jax(fail))(X)
    assert base.tolist() == [0.0, 0.0]
    assert dg.ones(1).add_(1).item() == 2.0


def test_tensor_that_only_a_cycle_keeps_is_not_outside() -> None:
    def cyclic(x: dg.Tensor) -> dg.Tensor:
        own = dg.zeros(2)
        holder: list[Any] = [own]
        holder.append(holder)
        return own.add_(x)

    gc.collect()
    assert jax.jit(dg.to_jax(cyclic))(X).tolist() == X.tolist()


# --- bad input --------------------------------------------------------------------------------

ASKS = {
    "bool": lambda x: x if x.sum() > 0 else -x,
    ".item()": lambda x: x * x.sum().item(),
    ".numpy()": lambda x: x.numpy(),
    ".tolist()": lambda x: x.tolist(),
}


@pytest.mark.parametrize("what", ASKS)
def test_value_asked_for_is_jax_s_error_with_the_line(what: str) -> None:
    with pytest.raises(jax.errors.JAXTypeError) as caught:  # noqa: PT011
        jax.jit(dg.to_jax(ASKS[what]))(X)
    note = next(n for n in caught.value.__notes__ if n.startswith("dyngraph"))
    assert f"({what}) while JAX traces" in note
    assert "test_to_jax.py" in note
    assert "dg.where()" in note


def test_tensor_as_argument_is_refused() -> None:
    with pytest.raises(TypeError, match=r"pass interop\.arrays_of\(arguments\)"):
        dg.to_jax(lambda x: x)(dg.ones(2))


def test_forward_mode_inside() -> None:
    pure = dg.to_jax(lambda x: dg.func.jvp(lambda v: (v**3).sum(), (x,), (dg.ones(2),)))
    value, slope = jax.jit(pure)(X)
    assert (value, slope) == (-7.0, 15.0)


def test_memory_given_to_a_tensor_from_outside_is_refused_and_put_back() -> None:
    outside = dg.ones(2)

    def give(x: dg.Tensor) -> dg.Tensor:
        outside.data = x
        return outside * 2

    with pytest.raises(RuntimeError, match=r"an assignment to \.data changed the memory"):
        jax.jit(dg.to_jax(give))(X)
    assert outside.tolist() == [1.0, 1.0]
