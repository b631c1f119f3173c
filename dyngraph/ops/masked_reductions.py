"""PyTorch's `torch.masked`: functions of the elements where a mask is True; the others don't count.

Each fills the masked elements with what changes nothing (0 for a sum, -inf for a maximum), so that
their gradient is 0. The mask broadcasts to the input; None means that every element counts. `dim`
None or () is all dims. The names are those of `dyngraph.masked`.
"""

from __future__ import annotations

import builtins
import math
from typing import Any

import jax.numpy as jnp

from dyngraph import dtypes
from dyngraph.ops import extremes, moments, norms, quantiles, reduction, scans, softmaxes
from dyngraph.ops.arguments import reduced_count
from dyngraph.ops.arithmetic import mul, sub, true_divide
from dyngraph.ops.choosing import maximum, where
from dyngraph.ops.comparison import ne
from dyngraph.ops.complexes import conj, real
from dyngraph.ops.powers import logaddexp as _logaddexp, sqrt
from dyngraph.ops.repetition import broadcast_to
from dyngraph.tensor import Tensor, wrap


def _mask_like(input: Tensor, mask: Any) -> Tensor:
    """The mask, a tensor or an array, as bools in the shape of the input."""
    mask = mask if isinstance(mask, Tensor) else wrap(jnp.asarray(mask))
    if mask.ndim > input.ndim:
        raise IndexError(
            f"a mask must broadcast to the input, but it has {mask.ndim} dims and the input "
            f"{input.ndim}"
        )
    mask = mask if mask.dtype == dtypes.bool else ne(mask, 0)
    return mask if mask.shape == input.shape else broadcast_to(mask, input.shape)


def _unmasked(input: Tensor, mask: Tensor | None, fill: Any) -> Tensor:
    return input if mask is None else where(_mask_like(input, mask), input, fill)


def _lowest(dtype: dtypes.dtype) -> Any:
    """What a maximum of elements of this dtype does not see."""
    return -math.inf if dtype.is_floating_point else int(jnp.iinfo(dtype.dtype).min)


def _highest(dtype: dtypes.dtype) -> Any:
    return math.inf if dtype.is_floating_point else int(jnp.iinfo(dtype.dtype).max)


def _converted(result: Tensor, dtype: Any) -> Tensor:
    return result if dtype is None else result.to(dtype)


def sum(
    input: Tensor,
    dim: Any = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The sum of the elements that count, 0 where there are none.

    >>> dg.masked.sum(dg.tensor([1.0, 2.0, 3.0]), mask=dg.tensor([True, False, True]))
    tensor(4.)
    """
    return reduction.sum(_unmasked(input, mask, 0), dim, builtins.bool(keepdim), dtype=dtype)


def prod(
    input: Tensor,
    dim: Any = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The product of the elements that count, 1 where there are none.

    >>> dg.masked.prod(dg.tensor([1.0, 2.0, 3.0]), mask=dg.tensor([False, True, True]))
    tensor(6.)
    """
    return reduction.prod(_unmasked(input, mask, 1), dim, builtins.bool(keepdim), dtype=dtype)


def cumsum(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The running sum along `dim` of the elements that count.

    >>> dg.masked.cumsum(dg.tensor([1.0, 2.0, 3.0]), 0, mask=dg.tensor([True, False, True]))
    tensor([1., 1., 4.])
    """
    return scans.cumsum(_unmasked(input, mask, 0), dim, dtype=dtype)


def cumprod(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The running product along `dim` of the elements that count.

    >>> dg.masked.cumprod(dg.tensor([1.0, 2.0, 3.0]), 0, mask=dg.tensor([True, False, True]))
    tensor([1., 1., 3.])
    """
    return scans.cumprod(_unmasked(input, mask, 1), dim, dtype=dtype)


def amax(
    input: Tensor,
    dim: Any = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The largest of the elements that count, the dtype's lowest value where there are none.

    >>> dg.masked.amax(dg.tensor([1.0, 2.0, 3.0]), mask=dg.tensor([True, True, False]))
    tensor(2.)
    """
    filled = _unmasked(input, mask, _lowest(input.dtype))
    return _converted(extremes.amax(filled, () if dim is None else dim, keepdim), dtype)


def amin(
    input: Tensor,
    dim: Any = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The smallest of the elements that count, the dtype's highest value where there are none.

    >>> dg.masked.amin(dg.tensor([1.0, 2.0, 3.0]), mask=dg.tensor([False, True, True]))
    tensor(2.)
    """
    filled = _unmasked(input, mask, _highest(input.dtype))
    return _converted(extremes.amin(filled, () if dim is None else dim, keepdim), dtype)


def argmax(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Where the largest of the elements that count is; it has no gradient.

    >>> dg.masked.argmax(dg.tensor([1.0, 2.0, 3.0]), mask=dg.tensor([True, True, False]))
    tensor(1)
    """
    filled = _unmasked(input, mask, _lowest(input.dtype))
    return _converted(extremes.argmax(filled, dim, keepdim), dtype)


def argmin(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Where the smallest of the elements that count is; it has no gradient.

    >>> dg.masked.argmin(dg.tensor([1.0, 2.0, 3.0]), mask=dg.tensor([False, True, True]))
    tensor(1)
    """
    filled = _unmasked(input, mask, _highest(input.dtype))
    return _converted(extremes.argmin(filled, dim, keepdim), dtype)


def _count(input: Tensor, dim: Any, mask: Tensor | None, *, keepdim: bool) -> Any:
    """How many elements count."""
    if mask is None:
        return reduced_count(dim, input.shape)
    return reduction.sum(_mask_like(input, mask), dim, keepdim)


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
    return true_divide(total, _count(input, dim, mask, keepdim=keepdim))


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
    middle = quantiles.nanmedian(_unmasked(floats, mask, math.nan), dim, keepdim)[0]
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
    filled = _unmasked(input, mask, math.inf if ord == -math.inf else 0)
    return norms.vector_norm(filled, ord, dim, keepdim, dtype=dtype)


def _spread(
    input: Tensor, dim: Any, correction: float, keepdim: bool, dtype: Any, mask: Tensor | None
) -> Tensor:
    wanted = input.dtype if dtype is None else dtypes.as_dtype(dtype)
    if not wanted.is_differentiable:
        wanted = dtypes.float32
    count = _count(input, dim, mask, keepdim=True)
    centre = true_divide(sum(input, dim, keepdim=True, dtype=wanted, mask=mask), count)
    centred = sub(input, centre)
    total = sum(mul(centred, conj(centred)), dim, keepdim=keepdim, mask=mask)
    if mask is None:
        count = max(count - correction, 0)
    else:
        count = count if keepdim else count.reshape(total.shape)
        count = maximum(sub(count.to(dtypes.get_default_dtype()), correction), 0.0)
    return true_divide(real(total), count).to(wanted.to_real())


def _correction(unbiased: bool | None, correction: float | None) -> float:
    if unbiased is not None and correction is not None:
        raise AssertionError("Only one of unbiased and correction may be given")
    if correction is not None:
        return correction
    return 1 if unbiased is None or unbiased else 0


def var(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The variance of the elements that count, with `correction` less of them in the mean (1).

    >>> dg.masked.var(dg.tensor([1.0, 3.0, 9.0]), mask=dg.tensor([True, True, False]))
    tensor(2.)
    """
    correction = _correction(unbiased, correction)
    if mask is None and input.dtype.is_differentiable:
        spread = moments.var(input, dim, correction=correction, keepdim=builtins.bool(keepdim))
        return _converted(spread, dtype)
    return _spread(input, dim, correction, builtins.bool(keepdim), dtype, mask)


def std(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The standard deviation of the elements that count: the root of `var`.

    >>> dg.masked.std(dg.tensor([1.0, 3.0, 9.0]), mask=dg.tensor([True, True, False]))
    tensor(1.4142)
    """
    return sqrt(
        var(input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype, mask=mask)
    )


def softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The softmax of the elements that count; the others get 0, NaN where none counts.

    >>> dg.masked.softmax(dg.zeros(3), 0, mask=dg.tensor([True, True, False]))
    tensor([0.5000, 0.5000, 0.0000])
    """
    return softmaxes.softmax(_unmasked(input, mask, _lowest(input.dtype)), dim, dtype)


def log_softmax(
    input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The logarithm of `softmax`; -inf for the elements that don't count.

    >>> dg.masked.log_softmax(dg.zeros(3), 0, mask=dg.tensor([True, True, False]))
    tensor([-0.6931, -0.6931,    -inf])
    """
    return softmaxes.log_softmax(_unmasked(input, mask, _lowest(input.dtype)), dim, dtype)


def softmin(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The softmax of `-input` over the elements that count; the others get 0.

    >>> dg.masked.softmin(dg.zeros(3), 0, mask=dg.tensor([True, True, False]))
    tensor([0.5000, 0.5000, 0.0000])
    """
    return softmaxes.softmin(_unmasked(input, mask, _highest(input.dtype)), dim, dtype)


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
    return true_divide(_unmasked(input, mask, 0), maximum(size, eps))


def logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: Any = None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """The logarithm of the sum of two exponentials, without those that a mask leaves out.

    >>> dg.masked.logaddexp(dg.zeros(2), dg.zeros(2), other_mask=dg.tensor([True, False]))
    tensor([0.6931, 0.0000])
    """
    summed = _logaddexp(
        _unmasked(input, input_mask, -math.inf), _unmasked(other, other_mask, -math.inf)
    )
    return summed.to(input.dtype if dtype is None else dtype)


def logsumexp(
    input: Tensor,
    dim: Any = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The logarithm of the sum of exponentials of the elements that count; -inf where none does.

    >>> dg.masked.logsumexp(dg.zeros(3), mask=dg.tensor([True, True, False]))
    tensor(0.6931)
    """
    dims = tuple(range(input.ndim)) if dim is None or dim == () else dim
    summed = softmaxes.logsumexp(_unmasked(input, mask, _lowest(input.dtype)), dims, keepdim)
    return summed.to(input.dtype if dtype is None else dtype)


__all__: list[str] = []
METHODS: tuple[str, ...] = ()
