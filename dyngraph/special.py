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
from dyngraph.ops.gamma_functions import (
    entr as entr,
    erfcx as erfcx,
    i0 as i0,
    i0e as i0e,
    i1 as i1,
    i1e as i1e,
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
    "i0",
    "i0e",
    "i1",
    "i1e",
    "log1p",
    "log_ndtr",
    "log_softmax",
    "logit",
    "logsumexp",
    "modified_bessel_i0",
    "modified_bessel_i1",
    "multigammaln",
    "ndtr",
    "ndtri",
    "polygamma",
    "psi",
    "round",
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
