"""Eigenvalues and eigenvectors."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dyngraph.ops.host_values import array_of
from dyngraph.ops.matrices import adjoint, require_square
from dyngraph.ops.operator import define
from dyngraph.ops.out import takes_out
from dyngraph.tensor import Tensor
from dyngraph.tracing import Tracer


def _eigh(self: Any, *, UPLO: str = "L") -> tuple[Any, Any]:
    require_square("linalg.eigh", self)
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    vectors, values = jax.lax.linalg.eigh(self, lower=UPLO.upper() == "L", symmetrize_input=False)
    return values, vectors


def _gaps(values: Any, numerators: Any) -> Any:
    """L_j - L_i; 1 on the diagonal, and where nothing is divided by it."""
    gaps = values[..., None, :] - values[..., :, None]
    return jnp.where((gaps == 0) & (numerators == 0) | jnp.eye(gaps.shape[-1], dtype=bool), 1, gaps)


def _on_diagonal(matrices: Any, values: Any) -> Any:
    """`matrices` with `values` as their diagonals."""
    eye = jnp.eye(values.shape[-1], dtype=bool)
    return jnp.where(eye, values[..., None], matrices)


def _eigh_rule(grads: Any, eigenvalues: Any, eigenvectors: Any) -> Any:
    """The Hermitian part of V (diag(gL) + V^H gV / E) V^H, with E_ij = L_j - L_i."""
    grad_values, grad_vectors = grads
    inner = adjoint(eigenvectors) @ grad_vectors
    inner = inner / _gaps(eigenvalues, inner)
    inner = _on_diagonal(inner, grad_values.astype(inner.dtype))
    inner = (inner + adjoint(inner)) / 2
    return eigenvectors @ inner @ adjoint(eigenvectors)


_decompose_symmetric = define(
    "linalg_eigh",
    _eigh,
    outputs=("eigenvalues", "eigenvectors"),
    returns="eigh",
    self=_eigh_rule,
)


@takes_out
def eigh(A: Any, UPLO: str = "L") -> Any:
    """Eigenvalues (ascending) and orthonormal eigenvectors of symmetric or Hermitian matrices.

    Only the triangle `UPLO` is read. The gradient of vectors needs distinct eigenvalues.

    >>> dg.linalg.eigh(dg.tensor([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
    tensor([1., 2.])
    """
    return _decompose_symmetric(A, UPLO)


@takes_out
def eigvalsh(A: Any, UPLO: str = "L") -> Tensor:
    """The eigenvalues of symmetric or Hermitian matrices, ascending.

    >>> dg.linalg.eigvalsh(dg.tensor([[0.0, 1.0], [1.0, 0.0]]))
    tensor([-1.,  1.])
    """
    return _decompose_symmetric(A, UPLO)[0]


def _eig(self: Any) -> tuple[Any, Any]:
    require_square("linalg.eig", self)
    values, vectors = jnp.linalg.eig(self)
    return values, vectors


def _eig_rule(grads: Any, eigenvalues: Any, eigenvectors: Any) -> Any:
    """V^-H (diag(gL) + (V^H gV - V^H V diag(Re V^H gV)) / conj(E)) V^H, E_ij = L_j - L_i.

    C. Boeddeker et al., On the computation of complex-valued gradients with application to
    statistically optimum beamforming, 2017 (arXiv:1701.00392), eq. 4.77, for vectors of norm 1.
    """
    grad_values, grad_vectors = grads
    v_h = adjoint(eigenvectors)
    inner = v_h @ grad_vectors
    along = jnp.real(jnp.diagonal(inner, axis1=-2, axis2=-1)).astype(inner.dtype)
    inner = inner - (v_h @ eigenvectors) * along[..., None, :]
    inner = _on_diagonal(inner / jnp.conj(_gaps(eigenvalues, inner)), grad_values)
    return jnp.linalg.solve(v_h, inner @ v_h)


_decompose = define(
    "linalg_eig",
    _eig,
    outputs=("eigenvalues", "eigenvectors"),
    returns="eig",
    self=_eig_rule,
)


@takes_out
def eig(A: Any) -> Any:
    """Complex eigenvalues, in no order, and eigenvectors of norm 1, of square matrices.

    Raises RuntimeError where A has values that are not finite.

    >>> dg.linalg.eig(dg.tensor([[2.0, 1.0], [0.0, 1.0]])).eigenvalues
    tensor([2.+0.j, 1.+0.j])
    """
    array = array_of(A)
    if not isinstance(array, Tracer) and not np.isfinite(np.asarray(array)).all():
        raise RuntimeError(
            "torch.linalg.eig: input tensor should not contain infs or NaNs. Look for what made "
            "them, for example by isfinite()."
        )
    return _decompose(A)


@takes_out
def eigvals(A: Any) -> Tensor:
    """The complex eigenvalues of square matrices, in no order.

    >>> dg.linalg.eigvals(dg.tensor([[0.0, 1.0], [-1.0, 0.0]])).imag.abs()
    tensor([1., 1.])
    """
    return eig(A)[0]
