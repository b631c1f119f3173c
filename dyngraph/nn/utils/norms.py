"""The kernels of weight norm and spectral norm: one a call."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from dyngraph.ops.operator import define

__all__: list[str] = []


def _weight_norm(v: Any, g: Any, *, dim: int) -> Any:
    axes = None if dim == -1 else tuple(i for i in range(v.ndim) if i != dim % v.ndim)
    squares = jnp.sum(jnp.abs(v) ** 2, axis=axes, keepdims=axes is not None)
    return v * (g / jnp.sqrt(squares))


weight_norm = define("weight_norm", _weight_norm, node="WeightNormInterfaceBackward0")
"""v with the length g along each index of `dim`, or in all where that is -1."""


def _matrix(weight: Any, dim: int) -> Any:
    return jnp.moveaxis(weight, dim, 0).reshape(weight.shape[dim], -1)


def _normalized(vector: Any, eps: float) -> Any:
    return vector / jnp.maximum(jnp.sqrt(jnp.sum(jnp.abs(vector) ** 2)), eps)


def _power_method(
    weight: Any, u: Any, v: Any, dim: int, steps: int, eps: float, v_first: bool
) -> tuple[Any, Any]:
    matrix = _matrix(weight, dim)

    def step(_: Any, vectors: Any) -> Any:
        u, v = vectors
        if v_first:
            v = _normalized(matrix.conj().T @ u, eps)
            return _normalized(matrix @ v, eps), v
        u = _normalized(matrix @ v, eps)
        return u, _normalized(matrix.conj().T @ u, eps)

    return jax.lax.fori_loop(0, steps, step, (u, v))


power_method = jax.jit(_power_method, static_argnames=("dim", "eps", "v_first"))
"""The left and right vectors of the largest singular value, some steps nearer to it."""


def _spectral_norm(weight: Any, u: Any, v: Any, *, dim: int) -> Any:
    return weight / jnp.vdot(u, _matrix(weight, dim) @ v)


spectral_norm = define("spectral_norm", _spectral_norm, node="DivBackward0")
"""The weight over its largest singular value, as u and v give it."""
