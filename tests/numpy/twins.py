"""Compares a function on tensors with its twin on jax arrays: value and gradient."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import dyngraph as dg
import numpy as np


def is_float(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "fc"


def is_inexact(array: Any) -> bool:
    return bool(jnp.issubdtype(array.dtype, jnp.inexact))


def cotangent(out: Any, place: int) -> jax.Array:
    """A gradient to start from, which is different in each element."""
    values = 1 + 0.3 * np.arange(out.size).reshape(out.shape) + place
    return jnp.asarray(values, out.dtype)


def leaves_of(result: Any) -> list[Any]:
    return [o for o in jax.tree.leaves(result) if isinstance(o, (jax.Array, np.ndarray, dg.Tensor))]


class Twins:
    """One call of a function and of its twin; numpy arrays in it become tensors and jax arrays."""

    def __init__(
        self,
        ours: Callable[..., Any],
        twin: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any] | None = None,
    ) -> None:
        self.ours, self.twin = ours, twin
        self.leaves, self.tree = jax.tree.flatten((args, kwargs or {}))
        self.places = [i for i, v in enumerate(self.leaves) if is_float(v)]
        self.tensors = [
            dg.tensor(v).requires_grad_(is_float(v)) if isinstance(v, np.ndarray) else v
            for v in self.leaves
        ]

    def forget_gradients(self) -> None:
        """Makes every input a constant, so that only values are compared."""
        for place in self.places:
            self.tensors[place].requires_grad_(False)
        self.places = []

    def call(self, function: Callable[..., Any], leaves: list[Any]) -> list[Any]:
        args, kwargs = jax.tree.unflatten(self.tree, leaves)
        return leaves_of(function(*args, **kwargs))

    def run(self) -> list[dg.Tensor]:
        return self.call(self.ours, self.tensors)

    def reference(self, *floats: Any) -> list[Any]:
        leaves = [jnp.asarray(v) if isinstance(v, np.ndarray) else v for v in self.leaves]
        for place, value in zip(self.places, floats, strict=True):
            leaves[place] = value
        return self.call(self.twin, leaves)

    def reference_gradients(self, *floats: Any) -> tuple[list[Any], list[Any]]:
        """The values of the twin, and its gradients by JAX in PyTorch's convention."""

        def inexact(*floats: Any) -> tuple[list[Any], list[Any]]:
            outs = self.reference(*floats)
            return [o for o in outs if is_inexact(o)], outs

        outs, vjp, values = jax.vjp(inexact, *floats, has_aux=True)
        grads = vjp([jnp.conj(cotangent(o, i)) for i, o in enumerate(outs)])
        return values, [jnp.conj(g) for g in grads]

    def floats(self) -> list[jax.Array]:
        return [jnp.asarray(self.leaves[p]) for p in self.places]

    def gradients(self, outs: list[dg.Tensor], *, create_graph: bool = False) -> list[Any]:
        inexact = [o for o in outs if is_inexact(o.detach().jax())]
        given = [dg.tensor(cotangent(o.detach().jax(), i)) for i, o in enumerate(inexact)]
        pairs = [(o, g) for o, g in zip(inexact, given, strict=True) if o.requires_grad]
        return list(
            dg.autograd.grad(
                [o for o, _ in pairs],
                [self.tensors[p] for p in self.places],
                [g for _, g in pairs],
                create_graph=create_graph,
                materialize_grads=True,
            )
        )

    def check(self, *, rtol: float = 1e-4, atol: float = 1e-5) -> None:
        """Asserts that values, dtypes and gradients are those of the twin.

        Where JAX has no gradient, ours is to raise the same error.
        """
        outs = self.run()
        values, grads, found = None, [], []
        if self.places and any(is_inexact(o.detach().jax()) for o in outs):
            try:
                values, grads = self.compiled(self.reference_gradients)
            except NotImplementedError as error:
                with pytest.raises(NotImplementedError, match=re.escape(str(error)[:30])):
                    self.gradients(outs)
            else:
                found = self.gradients(outs)
        if values is None:
            values = self.compiled(self.reference)
        assert len(outs) == len(values)
        for got, want in zip([*outs, *found], [*values, *grads], strict=True):
            array = got.detach().jax()
            assert (array.shape, array.dtype) == (want.shape, want.dtype)
            np.testing.assert_allclose(array, want, rtol=rtol, atol=atol)

    def compiled(self, function: Callable[..., Any]) -> Any:
        """`function` of the inputs, by one compilation where JAX can trace it."""
        try:
            return jax.jit(function)(*self.floats())
        except (jax.errors.JAXTypeError, jax.errors.JAXIndexError):
            return function(*self.floats())

    def check_second(self, *, rtol: float = 1e-3, atol: float = 1e-4) -> None:
        """Asserts that the gradient of the sum of the gradients is the twin's."""
        grads = self.gradients(self.run(), create_graph=True)
        total: Any = sum(g.sum() for g in grads)
        found = dg.autograd.grad(total, [self.tensors[p] for p in self.places])

        def twin_total(*floats: Any) -> Any:
            return sum(jnp.sum(g) for g in self.reference_gradients(*floats)[1])

        places = tuple(range(len(self.places)))
        want = self.compiled(lambda *floats: jax.grad(twin_total, places)(*floats))
        for got, expected in zip(found, want, strict=True):
            np.testing.assert_allclose(got.detach().jax(), expected, rtol=rtol, atol=atol)
