"""Functions for `dg.func` to transform, each with its twin in jax.numpy.

Each takes one vector and gives one number. What they do inside is what the transforms must see
through: writes, views, indexing, a backward of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import dyngraph as dg

MATRIX = np.array([[0.5, -1.0, 0.3], [1.2, 0.1, -0.4]], np.float32)
POINT = np.array([0.4, -0.7, 1.1], np.float32)


class Program(NamedTuple):
    run: Callable[[Any], Any]
    twin: Callable[[Any], Any]


def _network(x: Any) -> Any:
    return (dg.tensor(MATRIX) @ (x.sin() * x)).tanh().pow(2).sum()


def _writes(x: Any) -> Any:
    y = x * x
    y[1] = x[0] * y[2].clone()
    y.mul_(x)
    return y.exp().sum()


def _writes_twin(x: Any) -> Any:
    y = x * x
    y = y.at[1].set(x[0] * y[2])
    return jnp.exp(y * x).sum()


def _fills(x: Any) -> Any:
    out = dg.zeros(4)
    out[:3] = x.sin()
    out[3] = x[0] * x[1]
    return (out * out).cumsum(0).prod()


def _fills_twin(x: Any) -> Any:
    out = jnp.concatenate([jnp.sin(x), x[None, 0] * x[None, 1]])
    return jnp.prod(jnp.cumsum(out * out))


def _views(x: Any) -> Any:
    y = (x[:, None] * x).clone()
    y.t()[0].add_(x.exp())
    y.diagonal().mul_(x)
    return (y[1] * y[:, 2]).sum()


def _views_twin(x: Any) -> Any:
    y = x[:, None] * x
    y = y.at[:, 0].add(jnp.exp(x))
    i = jnp.arange(3)
    y = y.at[i, i].set(y[i, i] * x)
    return (y[1] * y[:, 2]).sum()


def _sorts(x: Any) -> Any:
    values, places = x.sort()
    return (values[1:] * x[places[0]]).sum() + x.softmax(0).max() * x.relu().sum()


def _sorts_twin(x: Any) -> Any:
    places = jnp.argsort(x)
    values = x[places]
    return (values[1:] * x[places[0]]).sum() + jax.nn.softmax(x).max() * jax.nn.relu(x).sum()


def _slopes(x: Any) -> Any:
    y = (x**3).sum() * x[0]
    (slope,) = dg.autograd.grad(y, x, create_graph=True)
    return (slope * x).sum()


def _slopes_twin(x: Any) -> Any:
    return (jax.grad(lambda x: (x**3).sum() * x[0])(x) * x).sum()


def _hooks(x: Any) -> Any:
    y = x * x
    if y.requires_grad:
        y.register_hook(lambda grad: grad * 2)
    return (y * x).sum()


PROGRAMS = {
    "network": Program(
        _network, lambda x: (jnp.tanh(jnp.asarray(MATRIX) @ (jnp.sin(x) * x)) ** 2).sum()
    ),
    "writes": Program(_writes, _writes_twin),
    "fills": Program(_fills, _fills_twin),
    "views": Program(_views, _views_twin),
    "sorts": Program(_sorts, _sorts_twin),
}
SLOPES = Program(_slopes, _slopes_twin)
HOOKS = _hooks
