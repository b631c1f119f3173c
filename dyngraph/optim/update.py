"""One jitted update of all parameters, which writes to the memory of what it replaces."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from dyngraph.optim.fields import fields, refill
from dyngraph.optim.need_optax import need_optax
from dyngraph.optim.options import Form, lift_all

Lists = dict[str, list[Any]]
"""State by name; the lists have an entry a parameter, None where it has no such state."""


class Rule(NamedTuple):
    """What is compiled into the update of some parameters."""

    optimizer: Any
    names: tuple[str, ...]
    forms: tuple[Form, ...]

    def options(self, inputs: Inputs) -> Any:
        """The options of the group, traced; `first`: whether this is the first step."""
        return lift_all((*self.names, "first"), self.forms, inputs.numbers, inputs.tensors)


class Inputs(NamedTuple):
    """What the update of some parameters reads beside what it replaces.

    `shared` are the numbers of the state that all of them have in common, by name.
    """

    grads: list[Any]
    shared: dict[str, Any]
    numbers: Any
    tensors: list[Any]


@functools.partial(jax.jit, static_argnums=0, donate_argnums=1)
def run(
    rules: tuple[Rule, ...],
    replaced: Sequence[tuple[list[Any], Lists]],
    inputs: Sequence[Inputs],
) -> list[tuple[list[Any], Lists, dict[str, Any]]]:
    """New parameters, state, and shared numbers, for each rule those that it is about."""
    return [
        _update(rule, params, own, read)
        for rule, (params, own), read in zip(rules, replaced, inputs, strict=True)
    ]


def _update(
    rule: Rule, params: list[Any], own: Lists, inputs: Inputs
) -> tuple[list[Any], Lists, dict[str, Any]]:
    optax = need_optax()
    options, names = rule.options(inputs), rule.optimizer.field_names
    transformation = rule.optimizer.transformation(options)
    values = enter(params)
    known: dict[str, Any] = {name: enter(arrays) for name, arrays in own.items()}
    known |= {name: _weak(number) for name, number in inputs.shared.items()}
    fresh = transformation.init(values)
    counts = {n: v.dtype for n, v in fields(fresh, names).items() if not isinstance(v, list)}
    for name, dtype in counts.items():
        if jnp.issubdtype(dtype, jnp.integer):
            known[name] = known[name].astype(dtype)
    updates, state = transformation.update(enter(inputs.grads), refill(fresh, names, known), values)
    moved = leave(optax.apply_updates(values, updates), params)
    found = fields(state, names)
    shared = {name: found.pop(name).astype(jnp.float32) for name in inputs.shared}
    return moved, {name: leave(arrays, params) for name, arrays in found.items()}, shared


@functools.partial(jax.jit, static_argnums=0)
def start(rule: Rule, params: list[Any], inputs: Inputs) -> tuple[Lists, dict[str, Any]]:
    """The state of parameters before their first step, and the numbers that they share."""
    state = rule.optimizer.transformation(rule.options(inputs)).init(enter(params))
    found = fields(state, rule.optimizer.field_names)
    shared = {name: value for name, value in found.items() if not isinstance(value, list)}
    own = {name: leave(found[name], params) for name in found if name not in shared}
    return own, {name: value.astype(jnp.float32) for name, value in shared.items()}


def _weak(number: Any) -> Any:
    return jax.lax.convert_element_type(number, float)


def enter(arrays: list[Any]) -> list[Any]:
    """The arrays as an update computes with them: complex numbers as pairs, half precision in
    single."""
    return [None if a is None else _enter(a) for a in arrays]


def _enter(array: Any) -> Any:
    if jnp.iscomplexobj(array):
        return jnp.stack([array.real, array.imag], -1)
    return array.astype(jnp.promote_types(array.dtype, jnp.float32))


def leave(arrays: list[Any], likes: list[Any]) -> list[Any]:
    """The arrays in the dtypes of `likes` again."""
    return [None if a is None else _leave(a, like) for a, like in zip(arrays, likes, strict=True)]


def _leave(array: Any, like: Any) -> Any:
    if jnp.iscomplexobj(like):
        return jax.lax.complex(array[..., 0], array[..., 1])
    return array.astype(like.dtype)
