"""PyTorch's `torch.special`, and what else `jax.scipy.special` has, recorded.

Functions that both have are PyTorch's, with its signatures and conventions. The others are JAX's,
recorded like those of `dyngraph.numpy`, by JAX's names: `beta`, `betainc`, `expi`, `factorial`,
`rel_entr` and more.

>>> x = dg.tensor([0.5], requires_grad=True)
>>> dg.special.rel_entr(x, dg.tensor([0.25]))
tensor([0.3466], grad_fn=<ScipySpecialRelEntrBackward0>)
"""

from __future__ import annotations

import math
from typing import Any

import jax.scipy.special

from dyngraph.numpy.namespace import member, names
from dyngraph.ops.activation import sigmoid
from dyngraph.ops.bessel_functions import (
    airy_ai as airy_ai,
    bessel_j0 as bessel_j0,
    bessel_j1 as bessel_j1,
    bessel_y0 as bessel_y0,
    bessel_y1 as bessel_y1,
    i0 as i0,
    i0e as i0e,
    i1 as i1,
    i1e as i1e,
    modified_bessel_k0 as modified_bessel_k0,
    modified_bessel_k1 as modified_bessel_k1,
    scaled_modified_bessel_k0 as scaled_modified_bessel_k0,
    scaled_modified_bessel_k1 as scaled_modified_bessel_k1,
)
from dyngraph.ops.gamma_functions import (
    entr as entr,
    erfcx as erfcx,
    igamma,
    igammac,
    log_ndtr as log_ndtr,
    mvlgamma,
    ndtr as ndtr,
    ndtri as ndtri,
    polygamma as polygamma,
    xlog1py as xlog1py,
    zeta as zeta,
)
from dyngraph.ops.orthogonal_polynomials import (
    chebyshev_polynomial_t as chebyshev_polynomial_t,
    chebyshev_polynomial_u as chebyshev_polynomial_u,
    chebyshev_polynomial_v as chebyshev_polynomial_v,
    chebyshev_polynomial_w as chebyshev_polynomial_w,
    hermite_polynomial_h as hermite_polynomial_h,
    hermite_polynomial_he as hermite_polynomial_he,
    laguerre_polynomial_l as laguerre_polynomial_l,
    legendre_polynomial_p as legendre_polynomial_p,
    shifted_chebyshev_polynomial_t as shifted_chebyshev_polynomial_t,
    shifted_chebyshev_polynomial_u as shifted_chebyshev_polynomial_u,
    shifted_chebyshev_polynomial_v as shifted_chebyshev_polynomial_v,
    shifted_chebyshev_polynomial_w as shifted_chebyshev_polynomial_w,
)
from dyngraph.ops.out import takes_out
from dyngraph.ops.powers import exp2 as exp2, expm1 as expm1, log1p as log1p, xlogy as xlogy
from dyngraph.ops.rounding import round as round
from dyngraph.ops.softmaxes import (
    log_softmax as log_softmax,
    logsumexp as logsumexp,
    softmax as softmax,
)
from dyngraph.ops.special import (
    digamma as digamma,
    erf as erf,
    erfc as erfc,
    erfinv as erfinv,
    lgamma,
    logit as logit,
    sinc as sinc,
)
from dyngraph.tensor import Tensor

expit = sigmoid
gammainc = igamma
gammaincc = igammac
gammaln = lgamma
modified_bessel_i0 = i0
modified_bessel_i1 = i1
multigammaln = mvlgamma
psi = digamma


@takes_out
def spherical_bessel_j0(input: Tensor) -> Tensor:
    """`sin(input) / input`, and 1 at 0.

    >>> dg.special.spherical_bessel_j0(dg.tensor([0.0, 1.0]))
    tensor([1.0000, 0.8415])
    """
    return sinc(input / math.pi)


_TORCH_NAMES = [
    "airy_ai",
    "bessel_j0",
    "bessel_j1",
    "bessel_y0",
    "bessel_y1",
    "chebyshev_polynomial_t",
    "chebyshev_polynomial_u",
    "chebyshev_polynomial_v",
    "chebyshev_polynomial_w",
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "exp2",
    "expit",
    "expm1",
    "gammainc",
    "gammaincc",
    "gammaln",
    "hermite_polynomial_h",
    "hermite_polynomial_he",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "laguerre_polynomial_l",
    "legendre_polynomial_p",
    "log1p",
    "log_ndtr",
    "log_softmax",
    "logit",
    "logsumexp",
    "modified_bessel_i0",
    "modified_bessel_i1",
    "modified_bessel_k0",
    "modified_bessel_k1",
    "multigammaln",
    "ndtr",
    "ndtri",
    "polygamma",
    "psi",
    "round",
    "scaled_modified_bessel_k0",
    "scaled_modified_bessel_k1",
    "shifted_chebyshev_polynomial_t",
    "shifted_chebyshev_polynomial_u",
    "shifted_chebyshev_polynomial_v",
    "shifted_chebyshev_polynomial_w",
    "sinc",
    "softmax",
    "spherical_bessel_j0",
    "xlog1py",
    "xlogy",
    "zeta",
]
_JAX_NAMES = names(jax.scipy.special, _TORCH_NAMES)

__all__ = sorted([*_TORCH_NAMES, *_JAX_NAMES])  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    value = globals()[name] = member(jax.scipy.special, name, __name__, {})
    return value


def __dir__() -> list[str]:
    return __all__
