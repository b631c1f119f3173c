"""`torch.masked`: means, variances and norms of the elements where a mask is True.

The mask and `dim` are those of `masked_reductions`.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any

from dyngraph import dtypes
from dyngraph.ops import moments, norms, quantiles, reduction
from dyngraph.ops.arguments import reduced_count, titled
from dyngraph.ops.arithmetic import div, mul, sub
from dyngraph.ops.choosing import maximum
from dyngraph.ops.comparison import ne
from dyngraph.ops.complexes import conj, real
from dyngraph.ops.masked_reductions import converted, mask_like, sum, unmasked
from dyngraph.ops.powers import sqrt
from dyngraph.tensor import Tensor


def _count(input: Tensor, dim: Any, mask: Tensor | None, *, keepdim: bool) -> Any:
    """How many elements count."""
    if mask is None:
        return reduced_count(dim, input.shape)
    return reduction.sum(mask_like(input, mask), dim, keepdim)


def mean(
    input: Tensor,
    dim: Any = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The mean of the elements that count, NaN where there are none.

    Raises ValueError where the result would be an integer.

    >>> dg.masked.mean(dg.tensor([1.0, 2.0, 6.0]), mask=dg.tensor([True, True, False]))
    tensor(1.5000)
    """
    wanted = input.dtype if dtype is None else dtypes.as_dtype(dtype)
    if not wanted.is_differentiable:
        raise ValueError(
            "mean(): Could not infer output dtype. Its dtype must be either a floating point or "
            f"complex dtype. Got: {wanted}"
        )
    total = sum(input, dim, keepdim=keepdim, dtype=wanted, mask=mask)
    return div(total, _count(input, dim, mask, keepdim=keepdim))


def median(
    input: Tensor,
    dim: int = -1,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The median along `dim` of the elements that count, the lower of two; NaN where there are
    none, for which integers raise ValueError.

    >>> dg.masked.median(dg.tensor([1.0, 2.0, 6.0]), mask=dg.tensor([True, False, True]))
    tensor(1.)
    """
    floats = input if input.dtype.is_floating_point else input.to(dtypes.float32)
    middle = quantiles.nanmedian(unmasked(floats, mask, math.nan), dim, keepdim)[0]
    if input.dtype.is_floating_point:
        return middle
    if builtins.bool(reduction.any(ne(middle, middle))):
        raise ValueError(
            "masked median expects no fully masked out rows if dtype is not floating point"
        )
    return middle.to(input.dtype if dtype is None else dtype)


def norm(
    input: Tensor,
    ord: float = 2.0,
    dim: Any = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The `ord`-norm of the elements that count.

    >>> dg.masked.norm(dg.tensor([3.0, 4.0, 9.0]), mask=dg.tensor([True, True, False]))
    tensor(5.)
    """
    filled = unmasked(input, mask, math.inf if ord == -math.inf else 0)
    return norms.vector_norm(filled, ord, dim, keepdim, dtype=dtype)


def _spread(
    input: Tensor, dim: Any, correction: float, keepdim: bool, dtype: Any, mask: Tensor | None
) -> Tensor:
    wanted = input.dtype if dtype is None else dtypes.as_dtype(dtype)
    if not wanted.is_differentiable:
        wanted = dtypes.float32
    count = _count(input, dim, mask, keepdim=True)
    centre = div(sum(input, dim, keepdim=True, dtype=wanted, mask=mask), count)
    centred = sub(input, centre)
    total = sum(mul(centred, conj(centred)), dim, keepdim=keepdim, mask=mask)
    if mask is None:
        count = max(count - correction, 0)
    else:
        count = count if keepdim else count.reshape(total.shape)
        count = maximum(sub(count.to(dtypes.get_default_dtype()), correction), 0.0)
    return div(real(total), count).to(wanted.to_real())


def _correction(unbiased: bool | None, correction: float | None) -> float:
    if unbiased is not None and correction is not None:
        raise AssertionError("Only one of unbiased and correction may be given")
    if correction is not None:
        return correction
    return 1 if unbiased is None or unbiased else 0


def _variance(
    input: Tensor, dim: Any, correction: float, keepdim: bool, dtype: Any, mask: Tensor | None
) -> Tensor:
    if mask is None and input.dtype.is_differentiable:
        spread = moments.var(input, dim, correction=correction, keepdim=builtins.bool(keepdim))
        return converted(spread, dtype)
    return _spread(input, dim, correction, builtins.bool(keepdim), dtype, mask)


def _deviation(*arguments: Any) -> Tensor:
    return sqrt(_variance(*arguments))


def _moment(name: str, moment: Callable[..., Tensor], doc: str) -> Callable[..., Tensor]:
    def function(
        input: Tensor,
        dim: Any = None,
        unbiased: bool | None = None,
        *,
        correction: float | None = None,
        keepdim: bool = False,
        dtype: Any = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        return moment(input, dim, _correction(unbiased, correction), keepdim, dtype, mask)

    return titled(function, name, doc)


var = _moment(
    "var",
    _variance,
    """The variance of the elements that count, with `correction` less of them in the mean (1).

    >>> dg.masked.var(dg.tensor([1.0, 3.0, 9.0]), mask=dg.tensor([True, True, False]))
    tensor(2.)
    """,
)

std = _moment(
    "std",
    _deviation,
    """The standard deviation of the elements that count: the root of `var`.

    >>> dg.masked.std(dg.tensor([1.0, 3.0, 9.0]), mask=dg.tensor([True, True, False]))
    tensor(1.4142)
    """,
)


def normalize(
    input: Tensor,
    ord: float,
    dim: int,
    *,
    eps: float = 1e-12,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The elements that count over their `ord`-norm along `dim`, or over `eps` where that is
    larger; 0 for the others.

    >>> dg.masked.normalize(dg.tensor([3.0, 4.0, 9.0]), 2, 0, mask=dg.tensor([True, True, False]))
    tensor([0.6000, 0.8000, 0.0000])
    """
    size = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return div(unmasked(input, mask, 0), maximum(size, eps))


__all__: list[str] = []
METHODS: tuple[str, ...] = ()
