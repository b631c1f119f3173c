"""`dyngraph.numpy` has JAX's conventions at ties and kinks; PyTorch's names have PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import dyngraph as dg
import numpy as np

ZEROS = [0.0, 0.0]
PROGRAMS: list[tuple[str, Callable[[Any, Any], Any], list[float]]] = [
    ("abs at 0", lambda np, x: np.abs(x), ZEROS),
    ("x ** 0 at 0", lambda np, x: np.power(x, 0), ZEROS),
    ("x ** 0. at 0", lambda np, x: np.power(x, 0.0), ZEROS),
    ("x ** 2 below 0", lambda np, x: np.power(x, 2), [-1.0, 0.0]),
    ("maximum of equals", lambda np, x: np.maximum(x, np.flip(x)), ZEROS),
    ("maximum with a number", lambda np, x: np.maximum(x, 0.0), ZEROS),
    ("max of equals", lambda np, x: np.max(x), ZEROS),
    ("clip at its edge", lambda np, x: np.clip(x, 0.0, 1.0), [0.0, 1.0]),
    ("norm at 0", lambda np, x: np.linalg.norm(x), ZEROS),
    ("norm of order 1 at 0", lambda np, x: np.linalg.norm(x, 1), ZEROS),
    ("std of a constant", lambda np, x: np.std(x), [1.0, 1.0]),
    ("where at 0", lambda np, x: np.where(x >= 0, x, 0), ZEROS),
    ("sinc at 0", lambda np, x: np.sinc(x), ZEROS),
]


@pytest.mark.parametrize(("program", "values"), [pytest.param(p, v, id=n) for n, p, v in PROGRAMS])
@pytest.mark.filterwarnings("ignore")
def test_gradient_is_that_of_jax_grad(program: Callable[..., Any], values: list[float]) -> None:
    x = dg.tensor(values, requires_grad=True)
    dg.numpy.sum(program(dg.numpy, x)).backward()
    want = jax.grad(lambda x: jnp.sum(program(jnp, x)))(jnp.asarray(values))
    assert x.grad is not None
    np.testing.assert_array_equal(x.grad.numpy(), want)


def test_complex_gradient_is_the_conjugate_of_jax_grad() -> None:
    value = jnp.asarray(1.0 + 2.0j)
    z = dg.tensor(value, requires_grad=True)
    dg.numpy.real(dg.numpy.square(z)).backward()
    want = jnp.conj(jax.grad(lambda z: jnp.real(jnp.square(z)))(value))
    assert z.grad is not None
    assert complex(z.grad) == complex(want)
