"""Random programs: the Engine against a naive one, and against `jax.grad` of the same program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given, strategies as st

import dyngraph as dg
from tests import naive

LEAVES = 3
UNARY: list[tuple[Callable[..., Any], Callable[..., Any]]] = [
    (dg.tanh, jnp.tanh),
    (dg.sin, jnp.sin),
    (dg.sigmoid, jax.nn.sigmoid),
    (lambda x: x.sum(0, keepdim=True), lambda x: x.sum(0, keepdims=True)),
    (lambda x: x[1:2], lambda x: x[1:2]),
    (lambda x: x * 0.5, lambda x: x * 0.5),
]
BINARY: list[Callable[..., Any]] = [
    lambda a, b: a + b,
    lambda a, b: a - b,
    lambda a, b: a * b,
    lambda a, b: a / (b * b + 1.0),
]
# A step is an operator and the values it works on, counted back from the newest one.
Step = tuple[int, int, int]
programs = st.lists(
    st.tuples(st.integers(0, len(UNARY) + len(BINARY) - 1), st.integers(0, 50), st.integers(0, 50)),
    min_size=1,
    max_size=25,
)


def run(program: list[Step], leaves: list[Any], *, in_jax: bool) -> list[Any]:
    """All values of a program, leaves first; shapes are (3,) or (1,), which broadcast."""
    values = list(leaves)
    for which, i, j in program:
        a, b = values[-1 - i % len(values)], values[-1 - j % len(values)]
        if which < len(UNARY):
            if a.shape[0] == 1 and which == 4:
                continue  # nothing to slice
            values.append(UNARY[which][in_jax](a))
        else:
            values.append(BINARY[which - len(UNARY)](a, b))
    return values


def loss_of(values: list[Any]) -> Any:
    """Reads the last few values, so that parts of the program are dead and others shared."""
    total = (values[-1] * 1.0).sum()
    for value in values[-4:-1]:
        total = total + value.sum()
    return total


def start() -> list[np.ndarray]:
    draws = np.random.default_rng(3)
    return [draws.standard_normal(3).astype(np.float32) for _ in range(LEAVES)]


@given(programs)
def test_engine_agrees_with_jax_grad(program: list[Step]) -> None:
    leaves = [dg.tensor(a, requires_grad=True) for a in start()]
    loss_of(run(program, leaves, in_jax=False)).backward()
    arrays = [jnp.asarray(a) for a in start()]
    with jax.disable_jit():
        expected = jax.grad(lambda values: loss_of(run(program, values, in_jax=True)))(arrays)
    for leaf, want in zip(leaves, expected, strict=True):
        got = np.zeros(3, np.float32) if leaf.grad is None else leaf.grad.numpy()
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@given(programs)
def test_engine_agrees_with_the_naive_engine(program: list[Step]) -> None:
    leaves = [dg.tensor(a, requires_grad=True) for a in start()]
    loss = loss_of(run(program, leaves, in_jax=False))
    expected = naive.gradients(loss)
    loss.backward()
    for leaf in leaves:
        assert (leaf.grad is None) == (leaf not in expected)
        if leaf.grad is not None:
            np.testing.assert_allclose(
                leaf.grad.numpy(), expected[leaf].numpy(), rtol=1e-5, atol=1e-6
            )


@given(programs)
def test_recorded_backward_gives_the_same_gradients(program: list[Step]) -> None:
    leaves = [dg.tensor(a, requires_grad=True) for a in start()]
    loss = loss_of(run(program, leaves, in_jax=False))
    plain = dg.autograd.grad(loss, leaves, retain_graph=True, materialize_grads=True)
    recorded = dg.autograd.grad(loss, leaves, create_graph=True, materialize_grads=True)
    for a, b in zip(plain, recorded, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.detach().numpy())


@given(programs, st.integers(0, 20))
def test_captured_gradients_are_those_of_retained_ones(program: list[Step], which: int) -> None:
    leaves = [dg.tensor(a, requires_grad=True) for a in start()]
    values = run(program, leaves, in_jax=False)
    chosen = (
        values[LEAVES + which % max(len(values) - LEAVES, 1)] if len(values) > LEAVES else leaves[0]
    )
    chosen.retain_grad()
    loss = loss_of(values)
    (captured,) = dg.autograd.grad(loss, chosen, retain_graph=True, allow_unused=True)
    chosen.grad = None
    loss.backward()
    assert (captured is None) == (chosen.grad is None)
    if captured is not None and chosen.grad is not None:
        np.testing.assert_array_equal(captured.numpy(), chosen.grad.numpy())
