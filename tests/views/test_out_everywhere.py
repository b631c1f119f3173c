"""out= everywhere: every function that takes it writes what it returns without."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dyngraph as dg
from tests.opinfo import Sample, call
from tests.rows import ROWS

# The functions of PyTorch's that take `out=`, as far as they are here, and the other names that the
# same functions have here: in nn.functional PyTorch's are wrapped, and take none.
NAMES = """
    abs absolute acos acosh add addbmm addcdiv addcmul addmm addmv addr alias_copy all amax
    amin aminmax angle any arange arccos arccosh arcsin arcsinh arctan arctan2 arctanh
    argmax argmin argsort as_strided_copy asin asinh atan atan2 atanh baddbmm bernoulli
    bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor
    bmm bucketize cat ceil chain_matmul cholesky cholesky_inverse cholesky_solve clamp
    clamp_max clamp_min clip column_stack complex concat concatenate conj_physical copysign
    cos cosh cross cummax cummin cumprod cumsum deg2rad det detach_copy diag diagonal_copy
    diff digamma div divide dot dstack empty eq erf erfc erfinv exp exp2 expand_copy expm1
    eye fft.fft fft.fft2 fft.fftfreq fft.fftn fft.hfft fft.hfft2 fft.hfftn fft.ifft
    fft.ifft2 fft.ifftn fft.ihfft fft.ihfft2 fft.ihfftn fft.irfft fft.irfft2 fft.irfftn
    fft.rfft fft.rfft2 fft.rfftfreq fft.rfftn fix float_power floor floor_divide fmax fmin
    fmod frac frexp frobenius_norm full gather gcd ge geqrf ger greater greater_equal gt
    hardshrink heaviside histc histogram hstack hypot i0 igamma igammac index_add index_copy
    index_reduce index_select inner inverse isin isneginf isposinf kron kthvalue lcm ldexp
    le lerp less less_equal lgamma linalg.cholesky linalg.cholesky_ex linalg.cond
    linalg.cross linalg.det linalg.eig linalg.eigh linalg.eigvals linalg.eigvalsh
    linalg.householder_product linalg.inv linalg.inv_ex linalg.ldl_factor
    linalg.ldl_factor_ex linalg.ldl_solve linalg.lu linalg.lu_factor linalg.lu_factor_ex
    linalg.lu_solve linalg.matmul linalg.matrix_norm linalg.matrix_power linalg.matrix_rank
    linalg.multi_dot linalg.norm linalg.pinv linalg.qr linalg.slogdet linalg.solve
    linalg.solve_ex linalg.solve_triangular linalg.svd linalg.svdvals linalg.tensorinv
    linalg.tensorsolve linalg.vecdot linalg.vector_norm linspace log log10 log1p log2
    log_softmax logaddexp logaddexp2 logcumsumexp logical_and logical_not logical_or
    logical_xor logit logspace logsumexp lt lu_solve lu_unpack masked_select matmul
    matrix_power max maximum mean median min minimum mm mode msort mul multinomial multiply
    mv mvlgamma nan_to_num nanmean nanmedian nanquantile nansum narrow_copy
    native_batch_norm ne neg negative nextafter nn.functional.avg_pool2d
    nn.functional.avg_pool3d nn.functional.gelu nn.functional.hardshrink
    nn.functional.linear nn.functional.log_softmax nn.functional.logsigmoid
    nn.functional.logsumexp nn.functional.normalize nn.functional.sigmoid
    nn.functional.softmax nn.functional.softplus nn.functional.softshrink nn.functional.tanh
    nn.functional.threshold nonzero nonzero_static norm normal not_equal nuclear_norm ones
    orgqr ormqr outer permute_copy polar polygamma pow prod qr quantile rad2deg rand randint
    randn randperm range reciprocal remainder renorm round row_stack rsqrt scatter
    scatter_add scatter_reduce searchsorted select_copy sgn sigmoid sign signbit sin sinc
    sinh slice_copy slice_scatter slogdet softmax sort special.digamma special.entr
    special.erf special.erfc special.erfcx special.erfinv special.exp2 special.expit
    special.expm1 special.gammainc special.gammaincc special.gammaln special.i0 special.i0e
    special.i1 special.i1e special.log1p special.log_ndtr special.log_softmax special.logit
    special.logsumexp special.modified_bessel_i0 special.modified_bessel_i1
    special.multigammaln special.ndtr special.ndtri special.polygamma special.psi
    special.round special.sinc special.softmax special.spherical_bessel_j0 special.xlog1py
    special.xlogy special.zeta split_copy split_with_sizes_copy sqrt square squeeze_copy
    stack std sub subtract sum svd t_copy take take_along_dim tan tanh tensordot threshold
    topk transpose_copy triangular_solve tril triu true_divide trunc unbind_copy unfold_copy
    unsqueeze_copy var vdot view_as_complex_copy view_as_real_copy view_copy vstack where
    xlogy zeros
""".split()

NAMESPACES = ("fft", "linalg", "nn.functional", "special")
SYMMETRIC = np.array([[2.0, 0.5], [0.5, 3.0]], np.float32)
# Calls of functions which have no row of samples.
CALLS: dict[str, Sample] = {
    "arange": call(3),
    "bernoulli": call(np.full((2, 3), 0.5, np.float32)),
    "detach_copy": call(SYMMETRIC),
    "empty": call(2, 3),
    "eye": call(3),
    "fft.fftfreq": call(4),
    "fft.rfftfreq": call(4),
    "full": call((2, 3), 1.5),
    "gcd": call(np.array([4, 6]), np.array([6, 9])),
    "heaviside": call(np.array([-1.0, 0.0], np.float32), np.array([0.5, 0.5], np.float32)),
    "lcm": call(np.array([4, 6]), np.array([6, 9])),
    "linalg.cholesky": call(SYMMETRIC),
    "linalg.ldl_factor": call(SYMMETRIC),
    "linalg.ldl_factor_ex": call(SYMMETRIC),
    "linalg.ldl_solve": call(SYMMETRIC, np.array([1, 2], np.int32), SYMMETRIC),
    "linalg.lu": call(SYMMETRIC),
    "linalg.lu_factor_ex": call(SYMMETRIC),
    "linalg.vector_norm": call(SYMMETRIC),
    "linspace": call(0, 1, 3),
    "logspace": call(0, 1, 3),
    "lu_solve": call(SYMMETRIC, SYMMETRIC, np.array([1, 2], np.int32)),
    "multinomial": call(np.array([0.5, 0.5], np.float32), 1),
    "native_batch_norm": call(SYMMETRIC, None, None, None, None, True, 0.1, 1e-5),
    "nonzero": call(np.array([0.0, 1.0], np.float32)),
    "normal": call(np.zeros(3, np.float32), 1.0),
    "ones": call(2, 3),
    "orgqr": call(SYMMETRIC, np.array([1.0, 0.5], np.float32)),
    "qr": call(SYMMETRIC),
    "rand": call(2, 3),
    "randint": call(9, (2, 3)),
    "randn": call(2, 3),
    "randperm": call(4),
    "range": call(1, 3),
    "special.spherical_bessel_j0": call(SYMMETRIC),
    "svd": call(SYMMETRIC),
    "zeros": call(2, 3),
}


def function_of(name: str) -> Any:
    found: Any = dg
    for part in name.split("."):
        found = getattr(found, part)
    return found


def takes_out(function: Any) -> bool:
    if not callable(function) or inspect.isclass(function):
        return False
    return "out" in inspect.signature(function).parameters


def names_of(namespace: str) -> list[str]:
    module: Any = function_of(namespace)
    return [f"{namespace}.{name}" for name in module.__all__]


def samples() -> dict[str, tuple[Callable[..., Any], Sample]]:
    """Each function once, by its first name, with a call of it."""
    rows = {row.name: row.samples[0] for row in ROWS} | CALLS
    found: dict[Callable[..., Any], tuple[str, Sample]] = {}
    for name in NAMES:
        if name in rows:
            found.setdefault(function_of(name), (name, rows[name]))
    return {name: (function, sample) for function, (name, sample) in found.items()}


SAMPLES = samples()


def test_functions_that_take_out_are_those_of_pytorch() -> None:
    public = [*dg.__all__, *(n for space in NAMESPACES for n in names_of(space))]
    assert sorted(n for n in public if takes_out(function_of(n))) == sorted(NAMES)


def test_every_function_that_takes_out_is_called() -> None:
    called = {function for function, _ in SAMPLES.values()}
    assert [n for n in NAMES if function_of(n) not in called] == []


def as_tensors(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(as_tensors(v) for v in value)
    return dg.tensor(value) if isinstance(value, np.ndarray) else value


@pytest.mark.filterwarnings("ignore:range\\(\\) is deprecated")
@pytest.mark.parametrize(("function", "sample"), SAMPLES.values(), ids=SAMPLES)
def test_out_gets_what_is_returned_without(function: Callable[..., Any], sample: Sample) -> None:
    args = [as_tensors(a) for a in sample.args]
    dg.manual_seed(0)
    expected = function(*args, **sample.kwargs)
    several = not isinstance(expected, dg.Tensor)
    wanted = list(expected) if several else [expected]
    outs = tuple(dg.empty(0, dtype=w.dtype) for w in wanted)
    dg.manual_seed(0)
    result = function(*args, **sample.kwargs, out=outs if several else outs[0])
    assert type(result) is type(expected)
    results = result if several else [result]
    assert all(r is o for r, o in zip(results, outs, strict=True))
    for out, value in zip(outs, wanted, strict=True):
        np.testing.assert_array_equal(out.numpy(), value.numpy())
