"""The gamma function's relatives below 0 and at 0, where JAX differs; figures of PyTorch 2.13."""

from __future__ import annotations

import numpy as np

import dyngraph as dg

POINTS = [-2.5, -0.3, 0.7, 3.0]


def test_digamma_at_zero_is_infinite() -> None:
    assert dg.digamma(dg.tensor([0.0, -0.0])).tolist() == [-np.inf, np.inf]


def test_second_derivative_of_lgamma_below_zero() -> None:
    x = dg.tensor(POINTS, requires_grad=True)
    (first,) = dg.autograd.grad(dg.lgamma(x).sum(), x, create_graph=True)
    (second,) = dg.autograd.grad(first.sum(), x)
    np.testing.assert_allclose(first.detach().numpy(), [1.1032, 2.1133, -1.22, 0.9228], rtol=1e-3)
    np.testing.assert_allclose(second.numpy(), [9.5392, 13.9452, 2.834, 0.3949], rtol=1e-3)


def test_second_derivative_of_digamma_below_zero() -> None:
    x = dg.tensor(POINTS, requires_grad=True)
    (first,) = dg.autograd.grad(dg.digamma(x).sum(), x, create_graph=True)
    (second,) = dg.autograd.grad(first.sum(), x)
    np.testing.assert_allclose(second.numpy(), [-0.1082, 67.6391, -6.435, -0.1541], rtol=1e-3)
