"""Complex numbers from their parts, and their parts from them.

Gradients are in PyTorch's convention: the conjugate of JAX's.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax

from dyngraph.kernels import same
from dyngraph.ops.operator import define

real = define(
    "real",
    lambda self: jnp.real(self),
    self=same,
    doc="""The real part; a real tensor's own values.

    >>> dg.real(dg.tensor([1.0 + 2.0j]))
    tensor([1.])
    """,
)


def _imaginary(self: Any) -> Any:
    if not jnp.issubdtype(self.dtype, jnp.complexfloating):
        raise RuntimeError(
            "imag is not implemented for tensors with non-complex dtypes. A real tensor's "
            "imaginary part is zeros_like() of it."
        )
    return jnp.imag(self)


imag = define(
    "imag",
    _imaginary,
    self=lambda grad: 1j * grad,
    doc="""The imaginary part; RuntimeError for a real tensor.

    >>> dg.imag(dg.tensor([1.0 + 2.0j]))
    tensor([2.])
    """,
)

conj = define(
    "conj",
    lambda self: jnp.conj(self),
    self=lambda grad: jnp.conj(grad),
    elementwise=True,
    doc="""The complex conjugate.

    >>> dg.conj(dg.tensor([1.0 + 2.0j]))
    tensor([1.-2.j])
    """,
)

angle = define(
    "angle",
    lambda self: jnp.angle(self),
    doc="""The angle of a complex number, in radians.

    >>> dg.angle(dg.tensor([1.0 + 1.0j]))
    tensor([0.7854])
    """,
)

complex = define(
    "complex",
    lambda real, imag: lax.complex(*jnp.broadcast_arrays(real, imag)),
    real=lambda grad: jnp.real(grad),
    imag=lambda grad: jnp.imag(grad),
    doc="""Complex numbers from their parts.

    >>> dg.complex(dg.tensor([1.0]), dg.tensor([2.0]))
    tensor([1.+2.j])
    """,
)

polar = define(
    "polar",
    lambda abs, angle: lax.complex(abs * jnp.cos(angle), abs * jnp.sin(angle)),
    doc="""Complex numbers from their absolute value and angle.

    >>> dg.polar(dg.tensor([2.0]), dg.tensor([0.0]))
    tensor([2.+0.j])
    """,
)


__all__ = [
    "angle",
    "complex",
    "conj",
    "imag",
    "polar",
    "real",
]

METHODS = (
    "angle",
    "conj",
)
"""The functions of this file that are methods of Tensor too."""
PROPERTIES = {"real": real, "imag": imag}
"""The properties of Tensor that this file has, by name."""
