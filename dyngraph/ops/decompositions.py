"""Matrix decompositions with orthogonal factors: QR and singular values, and the pseudo-inverse.

Leading dims are batches. A gradient through vectors that are determined up to sign or phase exists
where the result does not depend on that choice, and where the singular values are distinct.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from dyngraph.ops import permutation
from dyngraph.ops.matrices import adjoint, diagonal_matrices, require_matrices, require_square
from dyngraph.ops.operator import define
from dyngraph.ops.out import takes_out
from dyngraph.tensor import Tensor, wrap

# --- QR ---------------------------------------------------------------------------------------


def _qr_kernel(self: Any, *, mode: str = "reduced") -> tuple[Any, Any]:
    require_matrices("linalg.qr", self)
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"linalg.qr: unrecognized mode '{mode}', expected one of 'reduced', 'complete' or 'r'"
        )
    if mode == "r":
        return jnp.zeros((0,), self.dtype), jnp.linalg.qr(self, "r")
    q, r = jnp.linalg.qr(self, mode)
    return q, r


def _qr_rule(grads: Any, Q: Any, R: Any, mode: str) -> Any:
    """Q^-1 dA R^-1 = Q^H dQ + dR R^-1: the part that is skew, and the triangular one.

    S. Walter, L. Lehmann, Algorithmic differentiation of linear algebra functions, 2010
    (arXiv:1001.1654). A wide A = (X, Y) has R = (U, Q^H Y) with X = QU.
    """
    if mode == "r":
        raise RuntimeError(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Use "
            "'reduced' instead."
        )
    m, n = Q.shape[-2], R.shape[-1]
    if mode == "complete" and m > n:
        raise RuntimeError(
            "The QR decomposition is not differentiable when mode='complete' and nrows > ncols."
        )
    grad_q, grad_r = grads
    if m >= n:
        return _tall_qr_rule(grad_q, grad_r, Q, R)
    beside = grad_r[..., :, m:]
    grad_q = grad_q + Q @ R[..., :, m:] @ adjoint(beside)
    square = _tall_qr_rule(grad_q, grad_r[..., :, :m], Q, R[..., :, :m])
    return jnp.concatenate([square, Q @ beside], -1)


def _tall_qr_rule(grad_q: Any, grad_r: Any, Q: Any, R: Any) -> Any:
    inner = jnp.triu(grad_r @ adjoint(R) - adjoint(Q) @ grad_q)
    diagonal = jnp.real(jnp.diagonal(inner, axis1=-2, axis2=-1)).astype(inner.dtype)
    inner = inner + adjoint(inner) - diagonal_matrices(diagonal)
    return jax.lax.linalg.triangular_solve(
        R,
        grad_q + Q @ inner,
        left_side=False,
        lower=False,
        transpose_a=True,
        conjugate_a=True,
    )


decompose_qr = define(
    "linalg_qr",
    _qr_kernel,
    outputs=("Q", "R"),
    returns="qr",
    self=_qr_rule,
)


@takes_out
def qr(input: Any, some: bool = True) -> Any:
    """Q with orthonormal columns and an upper triangular R, with A = QR.

    Q is square where `some` is False.

    >>> dg.qr(dg.tensor([[3.0], [4.0]])).R.abs()
    tensor([[5.]])
    """
    return decompose_qr(input, "reduced" if some else "complete")


def _raw_qr(self: Any) -> tuple[Any, Any]:
    require_matrices("geqrf", self, "input")
    reflectors, tau = jnp.linalg.qr(self, "raw")
    return jnp.swapaxes(reflectors, -1, -2), tau


geqrf = define(
    "geqrf",
    _raw_qr,
    outputs=("a", "tau"),
    returns="geqrf",
    differentiable=False,
    doc="""QR as LAPACK keeps it: R, below it the Householder vectors, and their factors `tau`.

    >>> dg.geqrf(dg.tensor([[3.0], [4.0]])).tau
    tensor([1.6000])
    """,
)


def _reflect(vectors: Any, tau: Any, target: Any, *, from_last: bool, conjugate: bool) -> Any:
    """H_1 ... H_k applied to `target` from the left, H_k first where `from_last`.

    H_i = 1 - tau_i v_i v_i^H; v_i is 0 above its place, 1 there, and column i of `vectors` below.
    """
    m, k = vectors.shape[-2], tau.shape[-1]
    vectors = jnp.tril(vectors[..., :, :k], -1) + jnp.eye(m, k, dtype=vectors.dtype)
    tau = jnp.conj(tau) if conjugate else tau

    def step(product: Any, i: Any) -> tuple[Any, None]:
        v = jax.lax.dynamic_index_in_dim(vectors, i, -1)  # (..., m, 1)
        factor = jax.lax.dynamic_index_in_dim(tau, i, -1)[..., None]
        return product - factor * v @ (adjoint(v) @ product), None

    if not k:
        return target
    return jax.lax.scan(step, target, jnp.arange(k), reverse=from_last)[0]


def _householder(A: Any, tau: Any) -> Any:
    require_matrices("linalg.householder_product", A)
    m, n = A.shape[-2:]
    if m < n or n < tau.shape[-1]:
        raise RuntimeError(
            "torch.linalg.householder_product: input.shape[-2] must be greater than or equal to "
            "input.shape[-1], and that to tau.shape[-1], got shapes "
            f"{list(A.shape)} and {list(tau.shape)}"
        )
    identity = jnp.broadcast_to(jnp.eye(m, n, dtype=A.dtype), A.shape)
    return _reflect(A, tau, identity, from_last=True, conjugate=False)


householder_product = define(
    "linalg_householder_product",
    _householder,
    doc="""The first columns of the product of Householder reflections, as `geqrf` gives them.

    >>> dg.linalg.householder_product(*dg.geqrf(dg.tensor([[3.0], [4.0]]))).abs()
    tensor([[0.6000],
            [0.8000]])
    """,
)


@takes_out
def orgqr(input: Any, input2: Any) -> Tensor:
    """`linalg.householder_product` under LAPACK's name.

    >>> dg.orgqr(*dg.geqrf(dg.eye(2))).shape
    dyngraph.Size([2, 2])
    """
    return householder_product(input, input2)


def _multiply_by_reflections(
    self: Any, input2: Any, input3: Any, *, left: bool = True, transpose: bool = False
) -> Any:
    require_matrices("ormqr", self, "input")
    if input3.shape[-2 if left else -1] != self.shape[-2]:
        raise RuntimeError(
            f"ormqr: other.shape[{-2 if left else -1}] must be equal to input.shape[-2], got "
            f"shapes {list(input3.shape)} and {list(self.shape)}"
        )
    target = input3 if left else adjoint(input3)
    forward = transpose == left  # which of Q and Q^H is applied from the left
    product = _reflect(self, input2, target, from_last=not forward, conjugate=forward)
    return product if left else adjoint(product)


ormqr = define(
    "ormqr",
    _multiply_by_reflections,
    doc="""The product of Q, as `geqrf` gives it in `input` and tau, and a matrix; Q is not formed.

    Q^H where `transpose`; from the right where not `left`.

    >>> a = dg.tensor([[3.0], [4.0]])
    >>> dg.ormqr(*dg.geqrf(a), a, transpose=True).shape
    dyngraph.Size([2, 1])
    """,
)


# --- singular values --------------------------------------------------------------------------


def _svd_kernel(self: Any, *, full_matrices: bool = True) -> tuple[Any, Any, Any]:
    require_matrices("linalg.svd", self)
    u, s, vh = jnp.linalg.svd(self, full_matrices=full_matrices)
    return u, s, vh


def _svd_rule(grads: Any, U: Any, S: Any, Vh: Any) -> Any:
    """From dU, dS, dV as in J. Townsend, Differentiating the singular value decomposition, 2016.

    Only the first min(m, n) vectors have a gradient, as in PyTorch: the others are any basis.
    """
    k = S.shape[-1]
    m, n = U.shape[-2], Vh.shape[-1]
    grad_u, grad_s, grad_vh = grads[0][..., :, :k], grads[1], grads[2][..., :k, :]
    u, vh = U[..., :, :k], Vh[..., :k, :]
    of_u, of_v = adjoint(u) @ grad_u, vh @ adjoint(grad_vh)
    skew_u, skew_v = of_u - adjoint(of_u), of_v - adjoint(of_v)
    columns, rows = S[..., None, :], S[..., :, None]
    turned = skew_u * columns + rows * skew_v
    gaps = columns**2 - rows**2  # 0 on the diagonal, where `turned` is 0 or imaginary
    eye = jnp.eye(k, dtype=bool)
    gaps = jnp.where(eye | ((gaps == 0) & (turned == 0)), 1, gaps)
    inner = jnp.where(eye, 0, turned / gaps) + diagonal_matrices(grad_s.astype(turned.dtype))
    if jnp.iscomplexobj(U):
        phases = jnp.diagonal(skew_u, axis1=-2, axis2=-1)
        inner = inner + diagonal_matrices(phases / (2 * jnp.where(phases == 0, 1, S)))
    left = u @ inner
    if m > k:
        beside = grad_u - u @ of_u
        left = left + beside / jnp.where(beside == 0, 1, columns)
    grad = left @ vh
    if n > k:
        beside = grad_vh - adjoint(of_v) @ vh
        grad = grad + u @ (beside / jnp.where(beside == 0, 1, rows))
    return grad


decompose_svd = define(
    "linalg_svd",
    _svd_kernel,
    outputs=("U", "S", "Vh"),
    returns="svd",
    self=_svd_rule,
)


class _Svd(NamedTuple):
    U: Tensor
    S: Tensor
    V: Tensor


_Svd.__name__ = "svd"


@takes_out
def svd(input: Any, some: bool = True, compute_uv: bool = True) -> Any:
    """U, S and V with A = U diag(S) V^H: V, where `linalg.svd` has V^H.

    U and V have min(m, n) columns where `some`, else they are square; without `compute_uv` they are
    zeros.

    >>> dg.svd(dg.tensor([[3.0, 0.0], [0.0, 2.0]])).S
    tensor([3., 2.])
    """
    u, s, vh = decompose_svd(input, not (some and compute_uv))
    if not compute_uv:
        return _Svd(filled_like(u), s, filled_like(vh))
    return _Svd(u, s, permutation.adjoint(vh))


def filled_like(tensor: Tensor) -> Tensor:
    """Zeros of that shape and dtype, without history."""
    return wrap(jnp.zeros_like(tensor._cell.array))


svdvals = define(
    "linalg_svdvals",
    lambda self: (
        require_matrices("linalg.svdvals", self),
        jnp.linalg.svd(self, compute_uv=False),
    )[1],
    doc="""The singular values, largest first; unlike those of `svd` they cost no vectors.

    >>> dg.linalg.svdvals(dg.tensor([[0.0, 2.0], [3.0, 0.0]]))
    tensor([3., 2.])
    """,
)


def magnitudes(array: Any, hermitian: bool) -> Any:
    """The singular values: for Hermitian matrices the sizes of the eigenvalues, in their order."""
    if hermitian:
        return jnp.abs(jax.lax.linalg.eigh(array, symmetrize_input=False)[1])
    return jnp.linalg.svd(array, compute_uv=False)


def _pinv_rule(grad: Any, self: Any, result: Any) -> Any:
    """G. Golub, V. Pereyra, The differentiation of pseudo-inverses, 1973, eq. 4.12."""
    m, n = self.shape[-2:]
    grad_h, result_h = adjoint(grad), adjoint(result)
    if m <= n:
        inner = grad_h @ result
        outer = inner @ result_h
        return (
            outer
            - adjoint(result @ inner)
            - (self @ result) @ outer
            + (result_h @ result) @ (grad_h - inner @ self)
        )
    inner = result @ grad_h
    outer = result_h @ inner
    return (
        outer
        - adjoint(inner @ result)
        - (outer @ result) @ self
        + (grad_h - self @ inner) @ result @ result_h
    )


def _pinv(self: Any, atol: Any = None, rtol: Any = None, *, hermitian: bool = False) -> Any:
    require_matrices("linalg.pinv", self)
    if hermitian:
        require_square("linalg.pinv", self)
        u, values = jax.lax.linalg.eigh(self, symmetrize_input=False)
        v, sizes = u, jnp.abs(values)
    else:
        u, values, vh = jnp.linalg.svd(self, full_matrices=False)
        v, sizes = adjoint(vh), values
    if not self.size:
        return jnp.zeros((*self.shape[:-2], *self.shape[:-3:-1]), self.dtype)
    kept = sizes > tolerance(self, sizes, atol, rtol)
    inverse = jnp.where(kept, 1 / jnp.where(kept, values, 1), 0)
    return (v * inverse[..., None, :]) @ adjoint(u)


def tolerance(matrices: Any, sizes: Any, atol: Any, rtol: Any) -> Any:
    """The bound below which singular values count as 0: the larger of the absolute and relative.

    `rtol` is by default the dtype's precision times the longer side, or 0 where `atol` is given.
    """
    if rtol is None:
        default = max(matrices.shape[-2:]) * jnp.finfo(sizes.dtype).eps
        rtol = default if atol is None else jnp.where(jnp.asarray(atol) > 0, 0, default)
    atol = jnp.asarray(0 if atol is None else atol, sizes.dtype)
    relative = jnp.asarray(rtol, sizes.dtype) * sizes.max(-1, initial=0)
    return jnp.maximum(atol, relative)[..., None]


_pinv_operator = define("linalg_pinv", _pinv, self=_pinv_rule, atol=None, rtol=None)


@takes_out
def pinv(
    A: Any, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Tensor:
    """The Moore-Penrose inverse; singular values up to max(atol, rtol * largest) count as 0.

    `rtol`, also called `rcond`, is by default the longer side times the dtype's precision, or 0
    where `atol` is given. A `hermitian` A is decomposed by its eigenvalues.

    >>> dg.linalg.pinv(dg.tensor([[2.0, 0.0], [0.0, 0.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.0000]])
    """
    return _pinv_operator(A, atol, rcond if rtol is None else rtol, hermitian=hermitian)


def pinverse(input: Any, rcond: Any = 1e-15) -> Tensor:
    """The Moore-Penrose inverse; singular values up to `rcond` times the largest count as 0.

    >>> dg.pinverse(dg.tensor([[2.0], [0.0]]))
    tensor([[0.5000, 0.0000]])
    """
    return pinv(input, rtol=rcond)


__all__ = [
    "geqrf",
    "orgqr",
    "ormqr",
    "pinverse",
    "qr",
    "svd",
]

METHODS = tuple(__all__)
"""The functions of this file that are methods of Tensor too."""
