"""Drawn shapes: broadcasting and reductions, values and gradients, with dims of length 0 and 1."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import array_shapes, mutually_broadcastable_shapes

import dyngraph as dg

BINARY = {
    "add": jnp.add,
    "sub": jnp.subtract,
    "mul": jnp.multiply,
    "true_divide": jnp.true_divide,
    "maximum": jnp.maximum,
    "atan2": jnp.arctan2,
}
REDUCTIONS = {"sum": jnp.sum, "mean": jnp.mean, "amax": jnp.max, "logsumexp": jax.nn.logsumexp}
# Every drawn shape compiles kernels of its own, so there are few draws, and small ones.
few = settings(max_examples=25, deadline=None)


def draw(shape: tuple[int, ...], seed: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.5, 2.0, shape).astype(np.float32)


def check(ours: Any, twin: Any, arrays: list[np.ndarray]) -> None:
    """Value and gradients of `ours` on tensors against `twin` on jax arrays."""
    tensors = [dg.tensor(a, requires_grad=True) for a in arrays]
    result = ours(*tensors)
    expected, vjp = jax.vjp(twin, *(jnp.asarray(a) for a in arrays))
    assert tuple(result.shape) == expected.shape
    np.testing.assert_allclose(result.detach().numpy(), expected, rtol=1e-5, atol=1e-6)
    cotangent = draw(expected.shape, 9)
    grads = dg.autograd.grad(result, tensors, dg.tensor(cotangent))
    for grad, want in zip(grads, vjp(jnp.asarray(cotangent)), strict=True):
        assert tuple(grad.shape) == want.shape
        np.testing.assert_allclose(grad.numpy(), want, rtol=1e-4, atol=1e-5)


@few
@given(
    st.sampled_from(sorted(BINARY)),
    mutually_broadcastable_shapes(num_shapes=2, max_dims=3, min_side=0, max_side=3),
)
def test_gradients_are_summed_to_what_was_broadcast(name: str, drawn: Any) -> None:
    arrays = [draw(shape, i) for i, shape in enumerate(drawn.input_shapes)]
    check(getattr(dg, name), BINARY[name], arrays)


@few
@given(
    st.sampled_from(sorted(REDUCTIONS)),
    array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=3),
    st.data(),
)
def test_reductions_over_any_dims(name: str, shape: tuple[int, ...], data: st.DataObject) -> None:
    dims = data.draw(
        st.lists(
            st.integers(-len(shape), len(shape) - 1),
            min_size=1,
            unique_by=lambda d: d % len(shape),
        ).map(tuple)
    )
    keep = data.draw(st.booleans())
    check(
        lambda x: getattr(dg, name)(x, dims, keep),
        lambda x: REDUCTIONS[name](x, axis=dims, keepdims=keep),
        [draw(shape, 0)],
    )
