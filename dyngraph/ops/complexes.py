"""Complex numbers from their parts, and their parts from them.

Gradients are in PyTorch's convention: the conjugate of JAX's.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax

from dyngraph.kernels import same
from dyngraph.ops.operator import define
from dyngraph.ops.out import takes_out
from dyngraph.tensor import Tensor
from dyngraph.viewing import Layout, Viewing


def _part_layout(layout: Layout, first: int) -> Layout:
    """Every other one of the numbers that complex ones are made of."""
    return Layout(layout.shape, tuple(2 * n for n in layout.stride), 2 * layout.offset + first)


_real = define(
    "real",
    lambda self: jnp.real(self),
    self=same,
    viewing=Viewing(
        lambda parent, value: lax.complex(value, jnp.imag(parent)),
        layout=lambda layout: _part_layout(layout, 0),
    ),
)
imag = define(
    "imag",
    lambda self: jnp.imag(_require_complex(self)),
    self=lambda grad: 1j * grad,
    viewing=Viewing(
        lambda parent, value: lax.complex(jnp.real(parent), value),
        layout=lambda layout: _part_layout(layout, 1),
    ),
    doc="""The imaginary part, a view; RuntimeError for a real tensor.

    >>> dg.imag(dg.tensor([1.0 + 2.0j]))
    tensor([2.])
    """,
)


def _require_complex(self: Any) -> Any:
    if not jnp.issubdtype(self.dtype, jnp.complexfloating):
        raise RuntimeError(
            "imag is not implemented for tensors with non-complex dtypes. A real tensor's "
            "imaginary part is zeros_like() of it."
        )
    return self


_conj = define(
    "conj",
    lambda self: jnp.conj(self),
    self=lambda grad: jnp.conj(grad),
    viewing=Viewing(lambda parent, value: jnp.conj(value), layout=lambda layout: layout),
)


def real(input: Any) -> Tensor:
    """The real part, a view; a real tensor itself.

    >>> dg.real(dg.tensor([1.0 + 2.0j]))
    tensor([1.])
    """
    return _real(input) if _is_complex(input) else input


def conj(input: Any) -> Tensor:
    """The complex conjugate, a view; a real tensor itself.

    >>> dg.conj(dg.tensor([1.0 + 2.0j]))
    tensor([1.-2.j])
    """
    return _conj(input) if _is_complex(input) else input


def _is_complex(input: Any) -> bool:
    return not isinstance(input, Tensor) or input._cell.held.dtype.kind == "c"


def _angle_rule(grad: Any, self: Any) -> Any:
    """0 for reals, whose angle does not move, and at 0, as in PyTorch."""
    if not jnp.iscomplexobj(self):
        return jnp.zeros_like(grad)
    return jnp.where(self == 0, 0, 1j * grad / jnp.conj(jnp.where(self == 0, 1, self)))


angle = define(
    "angle",
    lambda self: jnp.angle(self),
    self=_angle_rule,
    doc="""The angle of a complex number, in radians.

    >>> dg.angle(dg.tensor([1.0 + 1.0j]))
    tensor([0.7854])
    """,
)


def _wide_parts(where: str, *parts: Any) -> list[Any]:
    """The parts at one shape; RuntimeError for dtypes that no complex dtype is made of."""
    for part in parts:
        if part.dtype not in (jnp.float32, jnp.float64):
            raise RuntimeError(
                f"{where}(): expected both inputs to be float32 or float64 tensors but got "
                f"{part.dtype}. Convert them by .float()."
            )
    return jnp.broadcast_arrays(*parts)


def _polar(abs: Any, angle: Any) -> Any:
    abs, angle = _wide_parts("polar", abs, angle)
    return lax.complex(abs * jnp.cos(angle), abs * jnp.sin(angle))


complex = define(
    "complex",
    lambda real, imag: lax.complex(*_wide_parts("complex", real, imag)),
    real=lambda grad: jnp.real(grad),
    imag=lambda grad: jnp.imag(grad),
    doc="""Complex numbers from their parts.

    >>> dg.complex(dg.tensor([1.0]), dg.tensor([2.0]))
    tensor([1.+2.j])
    """,
)

polar = define(
    "polar",
    _polar,
    doc="""Complex numbers from their absolute value and angle.

    >>> dg.polar(dg.tensor([2.0]), dg.tensor([0.0]))
    tensor([2.+0.j])
    """,
)


_conj_physical = define(
    "conj_physical",
    lambda self: jnp.conj(self),
    self=lambda grad: jnp.conj(grad),
)


@takes_out
def conj_physical(input: Any) -> Tensor:
    """The complex conjugate in memory of its own; a real tensor itself.

    >>> dg.conj_physical(dg.tensor([1.0 + 2.0j]))
    tensor([1.-2.j])
    """
    return _conj_physical(input) if _is_complex(input) else input


def resolve_conj(input: Tensor) -> Tensor:
    """The input itself: no tensor here waits for its conjugation.

    >>> dg.resolve_conj(dg.conj(dg.tensor([1.0 + 2.0j])))
    tensor([1.-2.j])
    """
    return input


def resolve_neg(input: Tensor) -> Tensor:
    """The input itself: no tensor here waits for its negation.

    >>> dg.resolve_neg(dg.tensor([1.0]))
    tensor([1.])
    """
    return input


def is_conj(input: Tensor) -> bool:
    """Whether the tensor waits for its conjugation: never, it is computed at once.

    >>> dg.is_conj(dg.conj(dg.tensor([1.0 + 2.0j])))
    False
    """
    return False


def is_neg(input: Tensor) -> bool:
    """Whether the tensor waits for its negation: never, it is computed at once.

    >>> dg.is_neg(dg.tensor([1.0]))
    False
    """
    return False


def _parts(self: Any) -> Any:
    if not jnp.issubdtype(self.dtype, jnp.complexfloating):
        raise RuntimeError(
            f"view_as_real is only supported for complex tensors, got {self.dtype}. A real "
            "tensor's parts are itself and zeros."
        )
    return jnp.stack([jnp.real(self), jnp.imag(self)], -1)


def _from_parts(self: Any) -> Any:
    if self.dtype not in (jnp.float32, jnp.float64):
        raise RuntimeError(
            f"view_as_complex is only supported for float32 and float64 tensors, got {self.dtype}. "
            "Convert it by .float()."
        )
    if not self.ndim or self.shape[-1] != 2:
        raise RuntimeError(
            "Tensor must have a last dimension of size 2: the real and the imaginary parts. Got "
            f"shape {list(self.shape)}"
        )
    return lax.complex(self[..., 0], self[..., 1])


view_as_real = define(
    "view_as_real",
    _parts,
    self=lambda grad: lax.complex(grad[..., 0], grad[..., 1]),
    viewing=Viewing(
        lambda parent, value: lax.complex(value[..., 0], value[..., 1]),
        layout=lambda layout: Layout(
            (*layout.shape, 2), (*(2 * n for n in layout.stride), 1), 2 * layout.offset
        ),
    ),
    doc="""Real and imaginary parts in a last dim of size 2; RuntimeError for a real tensor.

    >>> dg.view_as_real(dg.tensor([1.0 + 2.0j]))
    tensor([[1., 2.]])
    """,
)
view_as_complex = define(
    "view_as_complex",
    _from_parts,
    self=lambda grad: jnp.stack([jnp.real(grad), jnp.imag(grad)], -1),
    viewing=Viewing(
        lambda parent, value: jnp.stack([jnp.real(value), jnp.imag(value)], -1),
        layout=lambda layout: Layout(
            layout.shape[:-1], tuple(n // 2 for n in layout.stride[:-1]), layout.offset // 2
        ),
    ),
    doc="""Complex numbers from a last dim of real and imaginary parts.

    Raises RuntimeError where that dim has not size 2, and for other dtypes than float32 and
    float64.

    >>> dg.view_as_complex(dg.tensor([[1.0, 2.0]]))
    tensor([1.+2.j])
    """,
)


__all__ = [
    "angle",
    "complex",
    "conj",
    "conj_physical",
    "imag",
    "is_conj",
    "is_neg",
    "polar",
    "real",
    "resolve_conj",
    "resolve_neg",
    "view_as_complex",
    "view_as_real",
]

METHODS = (
    "angle",
    "conj",
    "conj_physical",
    "is_conj",
    "is_neg",
    "resolve_conj",
    "resolve_neg",
)
"""The functions of this file that are methods of Tensor too."""
PROPERTIES = {"real": real, "imag": imag}
"""The properties of Tensor that this file has, by name."""
