"""A few singular or eigenvectors of large matrices, against all of them by numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dyngraph as dg

random = np.random.default_rng(1)
LOW_RANK = (random.standard_normal((6, 2)) @ random.standard_normal((2, 5))).astype(np.float32)
SYMMETRIC = np.diag(np.arange(1.0, 10)).astype(np.float32) + 0.3
VALUES, VECTORS = np.linalg.eigh(SYMMETRIC)


@pytest.mark.parametrize("matrix", [LOW_RANK, LOW_RANK.T], ids=["tall", "wide"])
def test_few_directions_make_a_matrix_of_low_rank(matrix: np.ndarray) -> None:
    U, S, V = dg.svd_lowrank(dg.tensor(matrix), 3)
    assert (U.shape[-1], S.shape[-1], V.shape[-1]) == (3, 3, 3)
    np.testing.assert_allclose((U * S @ V.mH).numpy(), matrix, atol=1e-4)


def test_svd_lowrank_takes_off_a_matrix_first() -> None:
    S = dg.svd_lowrank(dg.tensor(LOW_RANK) + 1.0, 3, M=dg.ones(1, 5))[1]
    expected = np.linalg.svd(LOW_RANK, compute_uv=False)
    np.testing.assert_allclose(S.numpy(), expected[:3], atol=1e-4)


def test_pca_lowrank_centers_the_samples() -> None:
    S = dg.pca_lowrank(dg.tensor(LOW_RANK), 2)[1]
    expected = np.linalg.svd(LOW_RANK - LOW_RANK.mean(0), compute_uv=False)
    np.testing.assert_allclose(S.numpy(), expected[:2], rtol=1e-4)


@pytest.mark.parametrize("largest", [True, False])
def test_lobpcg_finds_the_extreme_eigenvalues_in_order(largest: bool) -> None:
    values, vectors = dg.lobpcg(dg.tensor(SYMMETRIC), 2, largest=largest, tol=1e-6)
    chosen = slice(None, -3, -1) if largest else slice(2)
    np.testing.assert_allclose(values.numpy(), VALUES[chosen], rtol=1e-4)
    product = np.abs(np.sum(vectors.numpy() * VECTORS[:, chosen], 0))
    np.testing.assert_allclose(product, [1.0, 1.0], rtol=1e-4)


def test_lobpcg_solves_the_generalized_problem() -> None:
    B = np.diag(np.linspace(1, 2, 9)).astype(np.float32)
    values, X = dg.lobpcg(dg.tensor(SYMMETRIC), B=dg.tensor(B), tol=1e-6)
    np.testing.assert_allclose(SYMMETRIC @ X.numpy(), B @ X.numpy() * values.numpy(), atol=1e-2)


def test_lobpcg_ends_after_niter_rounds() -> None:
    X = dg.eye(9, 1)
    values, vectors = dg.lobpcg(dg.tensor(SYMMETRIC), X=X, niter=0)
    assert values.item() == pytest.approx(SYMMETRIC[0, 0])
    assert vectors.abs().tolist() == X.tolist()


def test_gradient_of_lobpcg_is_that_of_all_eigenvectors() -> None:
    weights = dg.arange(9.0)
    grads = []
    for few in (True, False):
        A = dg.tensor(SYMMETRIC, requires_grad=True)
        if few:
            values, vectors = dg.lobpcg(A, 1, tol=1e-7)
        else:
            every = dg.linalg.eigh((A + A.mT) / 2)
            values, vectors = every[0][-1:], every[1][:, -1:]
        (values.sum() + (weights @ vectors**2).sum()).backward()
        assert A.grad is not None
        grads.append(A.grad.numpy())
    np.testing.assert_allclose(grads[0], grads[1], atol=1e-2)


A = dg.tensor(SYMMETRIC)
REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "negative q": (lambda: dg.svd_lowrank(A, -1), ValueError, "must be non-negative integers"),
    "large q": (lambda: dg.pca_lowrank(A, 10), ValueError, r"not greater than min\(m, n\)=9"),
    "integers": (
        lambda: dg.svd_lowrank(dg.ones(2, 2).int()),
        RuntimeError,
        "expects floating point matrices",
    ),
    "few rows": (lambda: dg.lobpcg(A, 4), ValueError, r"Use linalg.eigh\(\)"),
    "more than n": (lambda: dg.lobpcg(A, 3, n=2), ValueError, "expected 1 <= k <= n"),
    "not square": (lambda: dg.lobpcg(A[1:]), RuntimeError, "floating point square matrices"),
    "method": (lambda: dg.lobpcg(A, method="fast"), ValueError, "must be 'basic' or 'ortho'"),
    "tracker": (
        lambda: dg.lobpcg(A, tracker=print),  # type: ignore[arg-type]
        NotImplementedError,
        "Pass niter and X to go on",
    ),
    "gradient with B": (
        lambda: dg.lobpcg(A.clone().requires_grad_(), B=A),
        ValueError,
        "Detach A, or transform the problem",
    ),
}


@pytest.mark.parametrize(("call", "error", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_arguments_that_do_not_fit_are_refused(
    call: Callable[[], Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call()
