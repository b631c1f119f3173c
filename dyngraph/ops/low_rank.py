"""A few singular or eigenvectors of large matrices, by random and iterative methods."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dyngraph import modes
from dyngraph.ops.arguments import is_inexact
from dyngraph.ops.arithmetic import mul, sub
from dyngraph.ops.decompositions import decompose_qr, decompose_svd
from dyngraph.ops.host_values import array_of, described
from dyngraph.ops.operator import define
from dyngraph.ops.permutation import adjoint
from dyngraph.ops.products import matmul
from dyngraph.ops.random import randn
from dyngraph.ops.reduction import mean
from dyngraph.ops.repetition import expand
from dyngraph.tensor import Tensor, wrap
from dyngraph.tracing import Tracer

# --- singular vectors -------------------------------------------------------------------------


def _directions(A: Tensor, count: int, niter: int) -> Tensor:
    """Orthonormal columns that nearly hold the range of A: Halko et al., algorithm 4.4."""
    start = randn(A.shape[-1], count, dtype=A.dtype, device=A.device)
    basis = decompose_qr(matmul(A, start)).Q
    for _ in range(niter):
        basis = decompose_qr(matmul(adjoint(A), basis)).Q
        basis = decompose_qr(matmul(A, basis)).Q
    return basis


def _svd_of_few(A: Tensor, count: int, niter: int) -> tuple[Tensor, Tensor, Tensor]:
    if A.shape[-2] < A.shape[-1]:
        U, S, V = _svd_of_few(adjoint(A), count, niter)
        return V, S, U
    basis = _directions(A, count, niter)
    U, S, Vh = decompose_svd(matmul(adjoint(basis), A), False)
    return matmul(basis, U), S, adjoint(Vh)


def _check(where: str, A: Any, count: int, niter: int) -> None:
    array = array_of(A)
    if array.ndim < 2 or not is_inexact(array):
        raise RuntimeError(
            f"{where}() expects floating point matrices (..., m, n), got {array.dtype} of shape "
            f"{list(array.shape)}"
        )
    if count < 0 or niter < 0:
        raise ValueError(f"{where}: q(={count}) and niter(={niter}) must be non-negative integers")


def svd_lowrank(
    A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """U, S and V, with A nearly U diag(S) V^H, by `q` directions drawn at random and refined.

    Shapes: A (..., m, n), U (..., m, q), S (..., q), V (..., n, q). With `M` it is A - M that is
    decomposed. `q` should be a little above the rank wanted; `niter` is how often directions are
    refined. Halko, Martinsson and Tropp 2009, https://arxiv.org/abs/0909.4061, algorithm 5.1.
    Raises ValueError for a negative `q`.

    >>> dg.svd_lowrank(dg.tensor([[3.0, 0.0], [0.0, 4.0]]), q=2)[1].round()
    tensor([4., 3.])
    """
    count, rounds = 6 if q is None else q, 2 if niter is None else niter
    _check("svd_lowrank", A, count, rounds)
    return _svd_of_few(A if M is None else sub(A, expand(M, A.shape)), count, rounds)


def pca_lowrank(
    A: Tensor, q: int | None = None, center: bool = True, niter: int = 2
) -> tuple[Tensor, Tensor, Tensor]:
    """The principal components of samples (..., m, n): `svd_lowrank` of them less their mean.

    The columns of V are the components; S ** 2 / (m - 1) is the variance along each. `q` is by
    default min(6, m, n). Raises ValueError for a `q` that is larger than a dim.

    >>> samples = dg.tensor([[1.0, 0.0], [3.0, 0.0]])
    >>> dg.pca_lowrank(samples, q=1)[1]
    tensor([1.4142])
    """
    count = min(6, *described(A).shape[-2:]) if q is None else q
    _check("pca_lowrank", A, count, niter)
    if count > min(A.shape[-2:]):
        raise ValueError(
            f"q(={count}) must be non-negative integer and not greater than min(m, n)="
            f"{min(A.shape[-2:])}"
        )
    if center:
        A = sub(A, mean(A, -2, True))
    return _svd_of_few(A, count, niter)


# --- eigenvectors -----------------------------------------------------------------------------


def _adjoint(matrices: Any) -> Any:
    return jnp.conj(jnp.swapaxes(matrices, -1, -2))


def _ritz(A: Any, B: Any, basis: Any, count: int, largest: bool) -> tuple[Any, Any, Any]:
    """The best eigenvalues and vectors in the span of a basis, and the vectors' coordinates."""
    lengths = jnp.linalg.norm(basis, axis=-2, keepdims=True)
    basis, _ = jnp.linalg.qr(basis / jnp.where(lengths == 0, 1, lengths))
    if B is not None:  # columns that are orthonormal with respect to B
        factor = jnp.linalg.cholesky(_adjoint(basis) @ B @ basis)
        basis = _adjoint(jax.scipy.linalg.solve_triangular(factor, _adjoint(basis), lower=True))
    values, vectors = jnp.linalg.eigh(_adjoint(basis) @ A @ basis)
    if largest:
        values, vectors = values[..., ::-1], vectors[..., ::-1]
    return values[..., :count], basis, vectors[..., :count]


@functools.partial(jax.jit, static_argnames="largest")
def _step(A: Any, B: Any, iK: Any, X: Any, P: Any, *, largest: bool) -> tuple[Any, ...]:
    """One round of LOBPCG: the best vectors in the span of the last ones, their residuals and the
    last steps. Also returns how far the last ones were off.

    Knyazev 2001, https://doi.org/10.1137/S1064827500366124, algorithm 5.1.
    """
    AX, BX = A @ X, X if B is None else B @ X
    values = jnp.sum(jnp.conj(X) * AX, -2).real
    residual = AX - BX * values[..., None, :]
    scale = jnp.linalg.norm(AX, axis=-2) + jnp.abs(values) * jnp.linalg.norm(BX, axis=-2)
    error = jnp.linalg.norm(residual, axis=-2) / jnp.where(scale == 0, 1, scale)
    direction = residual if iK is None else iK @ residual
    count = X.shape[-1]
    values, basis, coordinates = _ritz(A, B, jnp.concatenate([X, direction, P], -1), count, largest)
    step = basis[..., count:] @ coordinates[..., count:, :]
    return values, basis @ coordinates, step, error


@functools.partial(jax.jit, static_argnames="largest")
def _start(A: Any, B: Any, X: Any, *, largest: bool) -> tuple[Any, Any]:
    values, basis, coordinates = _ritz(A, B, X, X.shape[-1], largest)
    return values, basis @ coordinates


def _iterate(
    A: Any, B: Any, iK: Any, X: Any, count: int, niter: int, tol: float, largest: bool
) -> tuple[Any, Any]:
    """Rounds until the first `count` residuals are small, or there were `niter` (-1: no bound)."""
    values, X = _start(A, B, X, largest=largest)
    P = X[..., :0]
    rounds = 0
    while niter < 0 or rounds < niter:
        new = _step(A, B, iK, X, P, largest=largest)
        worst = float(new[3][..., :count].max())
        if not worst >= tol:  # NaN ends it too
            break
        values, X, P, _ = new
        rounds += 1
    return values[..., :count], X[..., :count]


def _gradient(grads: Any, self: Any, values: Any, vectors: Any, largest: bool) -> Any:
    """What A moves: du = (value - A)^+ dA u for each vector, dvalue = u^H dA u for each value.

    The pseudo-inverse comes from all eigenvectors, so that this takes as long as `linalg.eigh`.
    """
    grad_values, grad_vectors = grads
    every, basis = jnp.linalg.eigh(self)
    if largest:
        every, basis = every[..., ::-1], basis[..., ::-1]
    count = values.shape[-1]
    own = jnp.arange(every.shape[-1])[:, None] == jnp.arange(count)
    gaps = jnp.where(own, 1, values[..., None, :] - every[..., :, None])
    moved = jnp.zeros_like(vectors)
    if grad_vectors is not None:
        moved = basis @ jnp.where(own, 0, _adjoint(basis) @ grad_vectors / gaps)
    if grad_values is not None:
        moved = moved + vectors * grad_values[..., None, :]
    return moved @ _adjoint(vectors)


_found = define(
    "lobpcg",
    lambda self, values, vectors, *, largest: (values, vectors),
    outputs=("eigenvalues", "eigenvectors"),
    node="LOBPCGAutogradFunctionBackward",
    self=_gradient,
    values=None,
    vectors=None,
)


def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: None = None,
    ortho_iparams: dict[str, int] | None = None,
    ortho_fparams: dict[str, float] | None = None,
    ortho_bparams: dict[str, bool] | None = None,
) -> tuple[Tensor, Tensor]:
    """The `k` largest (or smallest) eigenvalues and their vectors of symmetric matrices.

    A is (..., m, m); the results are (..., k), from the extreme one on, and (..., m, k). With a
    positive-definite `B` it solves A x = value B x. It starts from `X`, (..., m, n), or from `n`
    random vectors, and goes on until residuals are below `tol` of their terms, by default the root
    of the dtype's epsilon, or for `niter` rounds, by default 1000, -1 for any number. `iK` is a
    preconditioner. Both methods are this one, which is always orthogonalised; the `ortho_*` have no
    effect. Knyazev 2001, https://doi.org/10.1137/S1064827500366124. Raises ValueError for matrices
    with fewer than 3n rows, and where a gradient is asked for through `B`.

    >>> A = dg.diag(dg.arange(1.0, 10.0))
    >>> dg.lobpcg(A, k=1, tol=1e-5)[0].round()
    tensor([9.])
    """
    if tracker is not None:
        raise NotImplementedError(
            "lobpcg() has no tracker: its rounds run as one kernel each. Pass niter and X to go "
            "on from a result."
        )
    if method not in (None, "basic", "ortho"):
        raise ValueError(f"lobpcg: method must be 'basic' or 'ortho', got {method!r}")
    array = array_of(A)
    if array.ndim < 2 or array.shape[-1] != array.shape[-2] or not is_inexact(array):
        raise RuntimeError(
            f"lobpcg: expected floating point square matrices, got {array.dtype} of shape "
            f"{list(array.shape)}"
        )
    rows = array.shape[-1]
    count = k if k is not None else 1 if X is None else described(X).shape[-1]
    width = described(X).shape[-1] if X is not None else count if n is None else n
    if rows < 3 * width:
        raise ValueError(
            f"LOBPCG algorithm is not applicable when the number of A rows (={rows}) is smaller "
            f"than 3 x the number of requested eigenpairs (={width}). Use linalg.eigh()."
        )
    if not 1 <= count <= width:
        raise ValueError(f"lobpcg: expected 1 <= k <= n, got k={count} and n={width}")
    if B is not None and modes.is_recording() and A.requires_grad:
        raise ValueError(
            "lobpcg does not support backward with B != I yet. Detach A, or transform the problem "
            "by linalg.cholesky(B)."
        )
    if isinstance(array, Tracer):
        raise RuntimeError(
            "lobpcg: how many rounds it takes depends on values, which are not known while a "
            "program is traced. Call it outside the compiled function, or use linalg.eigh()."
        )
    start = randn(*array.shape[:-1], width, dtype=A.dtype, device=A.device) if X is None else X
    if A.requires_grad and modes.is_recording():
        A = mul(A + adjoint(A), 0.5)
    values, vectors = _iterate(
        array_of(A),
        None if B is None else array_of(B),
        None if iK is None else array_of(iK),
        array_of(start),
        count,
        1000 if niter is None else niter,
        float(np.sqrt(jnp.finfo(array.dtype).eps)) if tol is None else tol,
        largest is None or bool(largest),
    )
    result = _found(A, wrap(values), wrap(vectors), largest is None or bool(largest))
    return result[0], result[1]


__all__ = ["lobpcg", "pca_lowrank", "svd_lowrank"]
METHODS = ()
"""The functions of this file that are methods of Tensor too."""
