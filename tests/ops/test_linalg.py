"""What the rows can't say of linear algebra: errors, gradients that no sign or phase changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dyngraph as dg
from tests.opinfo import complex_normal, normal

linalg = dg.linalg

ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "inv of a singular matrix": (
        lambda: linalg.inv(dg.zeros(2, 2)),
        linalg.LinAlgError,
        "linalg.inv: The diagonal element 1 is zero",
    ),
    "inv of a batch": (
        lambda: linalg.inv(dg.stack([dg.eye(2), dg.ones(2, 2)])),
        linalg.LinAlgError,
        r"linalg.inv: \(Batch element 1\): The diagonal element 2 is zero",
    ),
    "inv of a rectangle": (
        lambda: linalg.inv(dg.ones(2, 3)),
        RuntimeError,
        "linalg.inv: A must be batches of square matrices, but they are 2 by 3 matrices",
    ),
    "inv of a vector": (
        lambda: linalg.inv(dg.ones(2)),
        RuntimeError,
        "The input tensor A must have at least 2 dimensions",
    ),
    "det of integers": (
        lambda: dg.det(dg.ones(2, 2, dtype=dg.int32)),
        RuntimeError,
        "Expected a floating point or complex tensor as input",
    ),
    "solve": (
        lambda: linalg.solve(dg.zeros(2, 2), dg.ones(2)),
        linalg.LinAlgError,
        "The solver failed because the input matrix is singular",
    ),
    "solve, shapes": (
        lambda: linalg.solve(dg.eye(2), dg.ones(3)),
        RuntimeError,
        r"Incompatible shapes of A and B for the equation AX = B \(2x2 and 3x1\)",
    ),
    "cholesky": (
        lambda: linalg.cholesky(dg.tensor([[1.0, 2.0], [2.0, 1.0]])),
        linalg.LinAlgError,
        "the leading minor of order 2 is not positive-definite",
    ),
    "lu_factor": (
        lambda: linalg.lu_factor(dg.zeros(2, 2)),
        linalg.LinAlgError,
        r"U\[1,1\] is zero and using it on lu_solve",
    ),
    "qr": (lambda: linalg.qr(dg.eye(2), "x"), RuntimeError, "unrecognized mode 'x'"),
    "eigh": (
        lambda: linalg.eigh(dg.eye(2), "x"),
        RuntimeError,
        "Expected UPLO argument to be 'L' or 'U'",
    ),
    "eig": (
        lambda: linalg.eig(dg.full((2, 2), float("nan"))),
        RuntimeError,
        "input tensor should not contain infs or NaNs",
    ),
    "matrix_norm": (
        lambda: linalg.matrix_norm(dg.eye(2), 7),
        RuntimeError,
        "linalg.matrix_norm: Order 7 not supported",
    ),
    "norm": (
        lambda: linalg.norm(dg.ones(1, 2, 2), 2),
        RuntimeError,
        "the input must be 1D or 2D. Got 3D",
    ),
    "multi_dot": (
        lambda: linalg.multi_dot([dg.eye(2)]),
        RuntimeError,
        "expected at least 2 tensors but got 1",
    ),
    "nuclear_norm of a vector": (
        lambda: dg.nuclear_norm(dg.ones(2)),
        RuntimeError,
        "must have at least 2 dimensions, got 1",
    ),
    "nuclear_norm of one dim": (
        lambda: dg.nuclear_norm(dg.ones(2, 2), 1),
        RuntimeError,
        "dim must be a 2-tuple",
    ),
    "nuclear_norm of a dim twice": (
        lambda: dg.nuclear_norm(dg.ones(2, 2), (1, -1)),
        RuntimeError,
        "dims must be different",
    ),
    "frobenius_norm": (
        lambda: dg.frobenius_norm(dg.ones(2, 2, 2), (0, 1, 2)),
        RuntimeError,
        r"Call linalg\.vector_norm for more",
    ),
    "ldl_factor": (
        lambda: linalg.ldl_factor(dg.zeros(2, 2)),
        linalg.LinAlgError,
        r"D\[1,1\] is zero.* Call linalg.ldl_factor_ex\(A\)",
    ),
    "ldl_factor of no square": (
        lambda: linalg.ldl_factor(dg.ones(2, 3)),
        RuntimeError,
        "they are 2 by 3 matrices",
    ),
    "ldl_solve": (
        lambda: linalg.ldl_solve(dg.eye(2), dg.tensor([1, 2]), dg.ones(2)),
        RuntimeError,
        r"A vector becomes a matrix by unsqueeze\(-1\)",
    ),
    "ldl_solve pivots": (
        lambda: linalg.ldl_solve(dg.eye(2), dg.tensor([1]), dg.ones(2, 1)),
        RuntimeError,
        r"expected integer pivots of shape \[2\]",
    ),
    "vander": (lambda: linalg.vander(dg.ones(2), N=1), RuntimeError, "N must be greater than 1"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_wrong_argument_raises(case: str) -> None:
    call, error, message = ERRORS[case]
    with pytest.raises(error, match=message):
        call()


def test_linalg_errors_are_runtime_errors() -> None:
    assert issubclass(linalg.LinAlgError, RuntimeError)


def conjugate_transpose(a: Any) -> Any:
    return a.mH if isinstance(a, dg.Tensor) else jnp.conj(jnp.swapaxes(a, -1, -2))


def svd_function(lib: Any, a: Any) -> Any:
    u, s, vh = (linalg.svd if lib is dg else jnp.linalg.svd)(a, full_matrices=False)
    return (u * (s * s)[..., None, :]) @ vh


def qr_function(lib: Any, a: Any) -> Any:
    q, r = (linalg.qr if lib is dg else jnp.linalg.qr)(a)
    return q @ (r * r)


def eigh_function(lib: Any, a: Any) -> Any:
    values, vectors = (linalg.eigh if lib is dg else jnp.linalg.eigh)(a + conjugate_transpose(a))
    return (vectors * (values * values)[..., None, :]) @ conjugate_transpose(vectors)


def gradient(function: Callable[[Any, Any], Any], a: np.ndarray, cotangent: np.ndarray) -> Any:
    x = dg.tensor(a, requires_grad=True)
    return dg.autograd.grad(function(dg, x), x, dg.tensor(cotangent))[0]


@pytest.mark.parametrize(
    ("function", "a"),
    [
        (svd_function, normal(2, 3)),
        (svd_function, normal(3, 2)),
        (svd_function, complex_normal(2, 2)),
        (qr_function, normal(3, 2)),
        (eigh_function, complex_normal(2, 2)),
    ],
)
def test_gradient_that_no_phase_changes_is_jaxs(function: Any, a: np.ndarray) -> None:
    cotangent = (normal if a.dtype.kind == "f" else complex_normal)(*a.shape)
    _, vjp = jax.vjp(lambda x: function(jnp, x), jnp.asarray(a))
    expected = np.conj(vjp(jnp.conj(cotangent))[0])
    got = np.asarray(gradient(function, a, cotangent))
    np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-3)


def difference(function: Callable[[np.ndarray], Any], a: np.ndarray, along: np.ndarray) -> float:
    """The central difference of a real function, in steps that float32 allows."""
    step = np.float32(1e-2)
    return float(function(a + step * along) - function(a - step * along)) / (2 * float(step))


def absolute_eigenvectors(a: Any) -> Any:
    return (linalg.eig(dg.as_tensor(a)).eigenvectors.abs() * weights).sum()


def wide_qr(a: Any) -> Any:
    q, r = linalg.qr(dg.as_tensor(a))
    return (r.abs() * weights[:2]).sum() + (q.abs() * weights[:2, :2]).sum()


def full_svd(a: Any) -> Any:
    u, _, vh = linalg.svd(dg.as_tensor(a))
    return (u.abs() * weights[:2, :2]).sum() + (vh[:2].abs() * weights[:2]).sum()


weights = dg.tensor(np.array([[1, 2, -1], [0.5, -1, 1], [3, 0.2, -0.4]], np.float32))
SQUARE = np.array([[1, 0.4, -0.3], [0.2, -0.8, 0.5], [0.7, -0.2, 2]], np.float32)


@pytest.mark.parametrize(
    ("function", "a"),
    [(absolute_eigenvectors, SQUARE), (wide_qr, SQUARE[:2]), (full_svd, SQUARE[:2])],
)
def test_gradient_of_vectors_is_that_of_differences(function: Any, a: np.ndarray) -> None:
    along = np.random.default_rng(3).standard_normal(a.shape).astype(np.float32)
    x = dg.tensor(a, requires_grad=True)
    (grad,) = dg.autograd.grad(function(x), x)
    expected = difference(function, a, along)
    assert float((grad.numpy() * along).sum()) == pytest.approx(expected, rel=2e-2, abs=2e-2)


def test_complete_qr_of_a_tall_matrix_has_no_gradient() -> None:
    q, _ = linalg.qr(dg.ones(3, 2, requires_grad=True), "complete")
    with pytest.raises(RuntimeError, match="not differentiable when mode='complete'"):
        q.sum().backward()


def test_gradient_of_cholesky_is_symmetric() -> None:
    a = dg.tensor([[4.0, 1.0], [1.0, 3.0]], requires_grad=True)
    linalg.cholesky(a).sum().backward()
    grad = a.grad
    assert grad is not None
    assert grad[0, 1].item() == pytest.approx(grad[1, 0].item())


def test_repeated_singular_values_have_a_gradient() -> None:
    a = dg.eye(2).requires_grad_()
    linalg.svd(a).S.sum().backward()
    assert a.grad is not None
    assert a.grad.tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_empty_matrices_have_determinant_one() -> None:
    assert dg.det(dg.ones(0, 0)).item() == 1
    assert dg.det(dg.ones(2, 0, 0)).tolist() == [1, 1]


def test_least_squares_tells_rank_and_residuals() -> None:
    a, b = dg.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]), dg.tensor([[1.0], [2.0], [3.0]])
    result = linalg.lstsq(a, b, driver="gelsd")
    assert result.rank.item() == 2
    assert result.residuals.tolist() == pytest.approx([9.0])
    assert result.singular_values.tolist() == pytest.approx([1.0, 1.0])
    assert linalg.lstsq(a, b).residuals.shape == (0,)


def test_nuclear_norm_takes_keepdim_in_the_place_of_dim() -> None:
    assert dg.nuclear_norm(dg.eye(3), True).tolist() == [[3.0]]
    assert dg.nuclear_norm(dg.ones(2, 3, 4), (0, 2)).shape == (3,)


def test_norm_except_no_dim_is_that_of_all() -> None:
    assert dg.norm_except_dim(dg.ones(2, 2), 2, -1).tolist() == 2.0
    assert dg.norm_except_dim(dg.tensor([-1.0, 2.0])).tolist() == [1.0, 2.0]


def indefinite(count: int, *, hermitian: bool, zeros: bool) -> np.ndarray:
    """A symmetric or Hermitian matrix, which with zeros on its diagonal has blocks of two."""
    a = complex_normal(count, count) if hermitian else normal(count, count)
    a = a + a.conj().T
    return a - np.diag(np.diag(a)) if zeros else a


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("hermitian", [False, True])
def test_factors_of_an_indefinite_matrix_solve(hermitian: bool, zeros: bool) -> None:
    A = indefinite(6, hermitian=hermitian, zeros=zeros)
    B = normal(6, 2).astype(A.dtype)
    factors = linalg.ldl_factor(dg.tensor(A), hermitian=hermitian)
    X = linalg.ldl_solve(*factors, dg.tensor(B), hermitian=hermitian)
    np.testing.assert_allclose(A @ X.numpy(), B, atol=1e-3)


def test_factors_of_an_indefinite_matrix_are_lapacks() -> None:
    A = dg.tensor([[0.0, 2.0, 1.0], [2.0, 0.0, 4.0], [1.0, 4.0, 1.0]])
    LD, pivots, info = linalg.ldl_factor_ex(A)
    # What PyTorch 2.13 has.
    assert pivots.tolist() == [-2, -2, 3]
    np.testing.assert_allclose(LD.numpy(), [[0, 0, 0], [2, 0, 0], [2, 0.5, -3]], atol=1e-6)
    assert info.item() == 0


def test_batches_of_factors_broadcast_against_right_hand_sides() -> None:
    A = np.stack([indefinite(3, hermitian=False, zeros=zeros) for zeros in (False, True)])
    factors = linalg.ldl_factor(dg.tensor(A))
    X = linalg.ldl_solve(*factors, dg.eye(3))
    np.testing.assert_allclose(A @ X.numpy(), np.stack([np.eye(3)] * 2), atol=1e-3)
