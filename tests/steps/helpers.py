"""What tests of compiled steps share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

import dyngraph as dg

CALLS = 4
X = np.arange(6, dtype=np.float32).reshape(2, 3) / 3


def both(make: Callable[[], tuple[Callable[..., Any], Callable[[], Any]]], *args: Any) -> Any:
    """The results of some calls, and what is left after them, of the function and compiled.

    `make` makes the function and what looks at its state.
    """
    outcomes = []
    for wrap in (lambda f: f, dg.compile):
        dg.manual_seed(0)
        function, look = make()
        call = wrap(function)
        results = [values(call(*args)) for _ in range(CALLS)]
        outcomes.append((results, values(look()), call))
    (expected, expected_state, _), (found, state, step) = outcomes
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), found, expected)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), state, expected_state)
    return step


def values(tree: Any) -> Any:
    return jax.tree.map(lambda t: np.array(t.detach().jax()) if dg.is_tensor(t) else t, tree)


def grad_of(x: dg.Tensor) -> Any:
    return None if x.grad is None else x.grad.tolist()
