"""`dyngraph.special`: PyTorch's names, and the rest of `jax.scipy.special` as JAX has it."""

from __future__ import annotations

import jax.scipy.special
import numpy as np
import pytest

import dyngraph as dg
from tests.numpy.calls import drawn
from tests.numpy.twins import Twins
from tests.opinfo import Sample, between, call, complex_normal, normal

UNIT = between(0.1, 0.9, 2, 3)
CALLS: dict[str, Sample] = {
    # differentiable by its last argument only
    "betainc": call(2.0, 1.5, UNIT),
    "bernoulli": call(5),
    "bessel_jn": call(UNIT[0], v=2, n_iter=20),
    "boxcox": call(UNIT, UNIT[0]),
    "erfcinv": call(UNIT),
    "expn": call(2, UNIT),
    "factorial": call(5 * UNIT),
    "hyp2f1": call(np.float32(0.5), np.float32(1.5), np.float32(2.5), UNIT),
    "owens_t": call(normal(3), UNIT[0]),
    "sph_harm_y": call(np.array([2]), np.array([1]), UNIT[0, :1], UNIT[1, :1], n_max=2),
    "wofz": call(complex_normal(3)),
}
# JAX has no derivative of spherical harmonics; that of hyp2f1 takes 20 seconds to compile.
VALUE_ONLY = {"hyp2f1", "sph_harm_y"}
FROM_JAX = [n for n in dg.special.__all__ if n not in dg.special._TORCH_NAMES]


@pytest.mark.parametrize("name", FROM_JAX)
def test_function_that_torch_lacks_is_that_of_jax(name: str) -> None:
    twin = getattr(jax.scipy.special, name)
    sample = CALLS.get(name) or drawn(twin)
    assert sample is not None, f"{name} needs a call in CALLS"
    pair = Twins(getattr(dg.special, name), twin, sample.args, sample.kwargs)
    if name in VALUE_ONLY:
        pair.forget_gradients()
    pair.check(rtol=1e-3)


def test_every_function_of_jax_is_there() -> None:
    public = {n for n in dir(jax.scipy.special) if not n.startswith("_")}
    assert public - set(dg.special.__all__) == set()
    assert [n for n in dg.special.__all__ if not callable(getattr(dg.special, n))] == []


def test_torch_names_are_the_operators_themselves() -> None:
    assert dg.special.expit is dg.sigmoid
    assert dg.special.psi is dg.digamma
    assert dg.special.gammainc is dg.igamma
    assert dg.special.multigammaln is dg.mvlgamma


def test_polygamma_is_a_method_with_the_order_last() -> None:
    x = dg.tensor([1.0, -8.5])
    assert x.polygamma(1).tolist() == dg.polygamma(1, x).tolist()
    # recorded from PyTorch 2.13
    np.testing.assert_allclose(x.polygamma(1), [1.6449341, 9.7586069], rtol=1e-5)


def test_polygamma_of_a_negative_order_raises() -> None:
    with pytest.raises(RuntimeError, match=r"does not support negative n, got -1\. Pass an order"):
        dg.polygamma(-1, dg.ones(1))


def test_zeta_has_no_derivative_by_its_exponent() -> None:
    x = dg.tensor([2.0], requires_grad=True)
    with pytest.raises(NotImplementedError, match=r"'special_zeta: self' is not .* Detach that"):
        dg.special.zeta(x, 1.0).sum().backward()


def test_igamma_of_integers_raises() -> None:
    with pytest.raises(RuntimeError, match=r"igamma\(\) is not implemented for int32: .* float"):
        dg.igamma(dg.tensor([1]), dg.tensor([2]))


@pytest.mark.parametrize("name", ["i0", "entr", "ndtr", "log_ndtr", "erfcx"])
def test_integers_become_the_default_dtype(name: str) -> None:
    function = getattr(dg.special, name)
    assert function(dg.tensor([1, 2])).tolist() == function(dg.tensor([1.0, 2.0])).tolist()


# Recorded from PyTorch 2.13.
EDGES = [
    ("entr", [0.0, -1.0, 1.0], [0.0, -np.inf, 0.0], [np.inf, np.nan, -1.0]),
    ("ndtri", [0.0, 2.0], [-np.inf, np.nan], [np.inf, np.nan]),
    ("i1", [0.0, -1.0], [0.0, -0.565159], [0.5, 0.7009067]),
    ("i1e", [0.0, -1.0], [0.0, -0.207910], [0.5, 0.049939]),
    ("log_ndtr", [0.0, -30.0], [-0.693147, -454.3212], [0.797885, 30.03326]),
]


@pytest.mark.parametrize(("name", "values", "results", "slopes"), EDGES)
def test_edge_is_that_of_torch(
    name: str, values: list[float], results: list[float], slopes: list[float]
) -> None:
    x = dg.tensor(values, requires_grad=True)
    result = getattr(dg.special, name)(x)
    result.sum().backward()
    assert x.grad is not None
    np.testing.assert_allclose(result.detach(), results, rtol=1e-4)
    np.testing.assert_allclose(x.grad, slopes, rtol=1e-4)


# Recorded from SciPy 1.17: at 0, near it, on both sides of where approximations meet, far, below 0.
INF, NAN = np.inf, np.nan
AT = [0.0, 1e-4, 2.0, 5.25, 40.0, -3.0]
BESSEL = {
    "bessel_j0": [1, 1, 0.2238908, -0.09308099, 0.007366891, -0.260052],
    "bessel_j1": [0, 5e-05, 0.5767248, -0.345014, 0.1260383, -0.339059],
    "bessel_y0": [-INF, -5.937289, 0.5103757, -0.3347772, 0.1259364, NAN],
    "bessel_y1": [-INF, -6366.198, -0.1070324, 0.061861, -0.005793506, NAN],
    "modified_bessel_k0": [INF, 9.326272, 0.1138939, 0.002808185, 8.392861e-19, NAN],
    "modified_bessel_k1": [INF, 10000, 0.1398659, 0.003064795, 8.497132e-19, NAN],
    "scaled_modified_bessel_k0": [INF, 9.327205, 0.8415682, 0.5351454, 0.1975556, NAN],
    "scaled_modified_bessel_k1": [INF, 10001, 1.033477, 0.5840466, 0.20001, NAN],
    "airy_ai": [0.3550281, 0.3550022, 0.03492413, 6.081011e-05, 0, -0.3788143],
}


@pytest.mark.parametrize("name", BESSEL)
def test_bessel_function_is_that_of_scipy(name: str) -> None:
    values = getattr(dg.special, name)(dg.tensor(AT))
    np.testing.assert_allclose(values, BESSEL[name], rtol=2e-5, atol=2e-7)


# Recorded from SciPy 1.17, at 0.3.
DEGREES = [
    ("legendre_polynomial_p", 30, 0.1466550),
    ("chebyshev_polynomial_t", 30, 0.9599428),
    ("laguerre_polynomial_l", 30, 0.1900936),
    ("hermite_polynomial_h", 12, 49478.716),
]


@pytest.mark.parametrize(("name", "degree", "value"), DEGREES)
def test_polynomial_of_a_high_degree_is_that_of_scipy(name: str, degree: int, value: float) -> None:
    result = getattr(dg.special, name)(dg.tensor(0.3), degree)
    np.testing.assert_allclose(result, value, rtol=1e-4)


def test_polynomial_takes_numbers_and_integers_as_torch_does() -> None:
    legendre = dg.special.legendre_polynomial_p
    assert legendre(dg.tensor([2]), 3).tolist() == [17.0]
    assert legendre(2.0, dg.tensor([3, -1])).tolist() == [17.0, 0.0]
    assert legendre(dg.tensor([0.5]), dg.tensor(2.7)).tolist() == [-0.125]  # of degree 2
    beyond = dg.special.hermite_polynomial_h(dg.tensor(0.1), dg.tensor([2, 129]))
    assert beyond.isnan().tolist() == [False, True]
