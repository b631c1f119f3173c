"""PyTorch's `torch.masked`: functions of the elements where a mask is True."""

from dyngraph.ops.masked_moments import (
    mean,
    median,
    norm,
    normalize,
    std,
    var,
)
from dyngraph.ops.masked_reductions import (
    amax,
    amin,
    argmax,
    argmin,
    cumprod,
    cumsum,
    log_softmax,
    logaddexp,
    logsumexp,
    prod,
    softmax,
    softmin,
    sum,
)

__all__ = [
    "amax",
    "amin",
    "argmax",
    "argmin",
    "cumprod",
    "cumsum",
    "log_softmax",
    "logaddexp",
    "logsumexp",
    "mean",
    "median",
    "norm",
    "normalize",
    "prod",
    "softmax",
    "softmin",
    "std",
    "sum",
    "var",
]
