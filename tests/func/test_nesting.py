"""Transforms in transforms, and in JAX's own, against the same transforms of jax.numpy twins."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dyngraph as dg
import dyngraph.func as func

from .programs import POINT, PROGRAMS, SLOPES, Program

Transform = Callable[[Any, Callable[..., Any]], Callable[..., Any]]


def rows(x: Any) -> Any:
    return x * x[:, None] + 0.1


# Each is written once, for `lib` dg.func and jax.
TRANSFORMS: dict[str, Transform] = {
    "grad": lambda lib, f: lib.grad(f),
    "hessian": lambda lib, f: lib.hessian(f),
    "grad of vmap of grad": lambda lib, f: lib.grad(
        lambda x: (lib.vmap(lib.grad(f))(rows(x)) ** 2).sum()
    ),
}
MORE: dict[str, Transform] = {
    "jacrev of jacrev": lambda lib, f: lib.jacrev(lib.jacrev(f)),
    "jacfwd of jacfwd": lambda lib, f: lib.jacfwd(lib.jacfwd(f)),
    "jacrev of jacfwd": lambda lib, f: lib.jacrev(lib.jacfwd(f)),
    "jacfwd of hessian": lambda lib, f: lib.jacfwd(lib.hessian(f)),
    "jacrev of hessian": lambda lib, f: lib.jacrev(lib.hessian(f)),
    "vmap of hessian": lambda lib, f: lambda x: lib.vmap(lib.hessian(f))(rows(x)),
    "hessian of vmap": lambda lib, f: lib.hessian(lambda x: (lib.vmap(f)(rows(x)) ** 2).sum()),
    "jvp of vmap": lambda lib, f: lambda x: lib.jvp(lambda x: lib.vmap(f)(rows(x)), (x,), (x,))[1],
    "vmap of jvp": lambda lib, f: (
        lambda x: lib.vmap(lambda t: lib.jvp(lib.grad(f), (x,), (t,))[1])(rows(x))
    ),
    "grad of jvp": lambda lib, f: lib.grad(lambda x: lib.jvp(f, (x,), (x,))[1]),
    "grad of vmap of vmap": lambda lib, f: lib.grad(
        lambda x: (lib.vmap(lib.vmap(f))(rows(x)[:, None] * x[:, None]) ** 2).sum()
    ),
    "vmap of vjp": lambda lib, f: lambda x: lib.vmap(lib.vjp(lib.grad(f), x)[1])(rows(x))[0],
    "linearize": lambda lib, f: lambda x: lib.linearize(lib.grad(f), x)[1](x),
}
SINES = Program(lambda x: (x.sin() * x).prod(), lambda x: (jnp.sin(x) * x).prod())


@functools.cache  # for both modes of a test
def expected_of(transform: Transform, twin: Callable[..., Any]) -> np.ndarray:
    return np.asarray(jax.jit(transform(jax, twin))(jnp.asarray(POINT)))


def check(transform: Transform, program: Program) -> None:
    found = transform(func, program.run)(dg.tensor(POINT))
    expected = expected_of(transform, program.twin)
    np.testing.assert_allclose(found.numpy(), expected, rtol=3e-4, atol=3e-4)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_transform_of_a_program_agrees_with_jax(transform: str, program: str) -> None:
    check(TRANSFORMS[transform], PROGRAMS[program])


@pytest.mark.parametrize("transform", MORE)
def test_transform_of_a_transform_agrees_with_jax(transform: str) -> None:
    check(MORE[transform], SINES)


def test_function_with_a_gradient_of_its_own_is_transformed() -> None:
    check(TRANSFORMS["hessian"], SLOPES)


# --- JAX outside --------------------------------------------------------------------------------


def run(transformed: Callable[..., Any]) -> Callable[[Any], Any]:
    """A function of arrays, with dyngraph inside."""
    return lambda array: transformed(dg.from_jax_array(array)).jax()


def cube(x: Any) -> Any:
    return (x**3).sum()


@pytest.mark.parametrize(
    ("outside", "expected"),
    [
        (jax.jit, [[6.0, 0.0], [0.0, 12.0]]),
        (lambda f: jax.grad(lambda a: f(a).sum()), [6.0, 6.0]),
        (lambda f: lambda a: jax.vmap(f)(a[None])[0], [[6.0, 0.0], [0.0, 12.0]]),
        (lambda f: lambda a: jax.jvp(f, (a,), (a,))[1], [[6.0, 0.0], [0.0, 12.0]]),
    ],
    ids=["jit", "grad", "vmap", "jvp"],
)
def test_jax_transforms_what_func_transformed(outside: Any, expected: Any) -> None:
    found = outside(run(func.hessian(cube)))(jnp.array([1.0, 2.0]))
    np.testing.assert_allclose(found, expected)


def test_jit_of_a_map_that_draws_different_numbers() -> None:
    mapped = func.vmap(lambda x: x * 0 + dg.rand(()), randomness="different")
    first, second = jax.jit(run(mapped))(jnp.ones(2))
    assert first != second


def test_jax_array_leaves_a_mapped_function_in_no_way() -> None:
    with pytest.raises(RuntimeError, match=r"calling .numpy.. on a Tensor"):
        func.vmap(lambda x: dg.from_jax_array(jnp.asarray(np.asarray(x))))(dg.ones(2))
