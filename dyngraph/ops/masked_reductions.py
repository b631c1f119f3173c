"""PyTorch's `torch.masked`: functions of the elements where a mask is True; the others don't count.

Each fills the masked elements with what changes nothing (0 for a sum, -inf for a maximum), so that
their gradient is 0. The mask broadcasts to the input; None means that every element counts. `dim`
None or () is all dims. The names are those of `dyngraph.masked`.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from dyngraph import dtypes
from dyngraph.ops import extremes, reduction, scans, softmaxes
from dyngraph.ops.arguments import titled
from dyngraph.ops.choosing import where
from dyngraph.ops.comparison import ne
from dyngraph.ops.powers import logaddexp as _logaddexp
from dyngraph.ops.repetition import broadcast_to
from dyngraph.tensor import Tensor, wrap


def mask_like(input: Tensor, mask: Any) -> Tensor:
    """The mask, a tensor or an array, as bools in the shape of the input."""
    mask = mask if isinstance(mask, Tensor) else wrap(jnp.asarray(mask))
    if mask.ndim > input.ndim:
        raise IndexError(
            f"a mask must broadcast to the input, but it has {mask.ndim} dims and the input "
            f"{input.ndim}"
        )
    mask = mask if mask.dtype == dtypes.bool else ne(mask, 0)
    return mask if mask.shape == input.shape else broadcast_to(mask, input.shape)


def unmasked(input: Tensor, mask: Tensor | None, fill: Any) -> Tensor:
    """The input with `fill` where the mask is False."""
    return input if mask is None else where(mask_like(input, mask), input, fill)


def _zero(dtype: dtypes.dtype) -> int:
    return 0


def _one(dtype: dtypes.dtype) -> int:
    return 1


def _lowest(dtype: dtypes.dtype) -> Any:
    """What a maximum of elements of this dtype does not see."""
    return -math.inf if dtype.is_floating_point else int(jnp.iinfo(dtype.dtype).min)


def _highest(dtype: dtypes.dtype) -> Any:
    return math.inf if dtype.is_floating_point else int(jnp.iinfo(dtype.dtype).max)


def converted(result: Tensor, dtype: Any) -> Tensor:
    """The result in a dtype, if one was asked for."""
    return result if dtype is None else result.to(dtype)


def _reduction(
    name: str, reduce: Callable[..., Tensor], fill: Callable[[dtypes.dtype], Any], doc: str
) -> Callable[..., Tensor]:
    """The reduction `reduce(input, dim, keepdim, dtype=dtype)`, blind to elements like `fill`."""

    def function(
        input: Tensor,
        dim: Any = None,
        *,
        keepdim: bool = False,
        dtype: Any = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        filled = unmasked(input, mask, fill(input.dtype))
        return reduce(filled, dim, builtins.bool(keepdim), dtype=dtype)

    return titled(function, name, doc)


sum = _reduction(
    "sum",
    reduction.sum,
    _zero,
    """The sum of the elements that count, 0 where there are none.

    >>> dg.masked.sum(dg.tensor([1.0, 2.0, 3.0]), mask=dg.tensor([True, False, True]))
    tensor(4.)
    """,
)

prod = _reduction(
    "prod",
    reduction.prod,
    _one,
    """The product of the elements that count, 1 where there are none.

    >>> dg.masked.prod(dg.tensor([1.0, 2.0, 3.0]), mask=dg.tensor([False, True, True]))
    tensor(6.)
    """,
)


def _extreme(run: Callable[..., Tensor], every: Any = None) -> Callable[..., Tensor]:
    """One of `extremes`, which have no dtype; `every` is how it calls all dims."""

    def reduce(input: Tensor, dim: Any, keepdim: bool, *, dtype: Any) -> Tensor:
        return converted(run(input, every if dim is None else dim, keepdim), dtype)

    return reduce


amax = _reduction(
    "amax",
    _extreme(extremes.amax, ()),
    _lowest,
    """The largest of the elements that count, the dtype's lowest value where there are none.

    >>> dg.masked.amax(dg.tensor([1.0, 2.0, 3.0]), mask=dg.tensor([True, True, False]))
    tensor(2.)
    """,
)

amin = _reduction(
    "amin",
    _extreme(extremes.amin, ()),
    _highest,
    """The smallest of the elements that count, the dtype's highest value where there are none.

    >>> dg.masked.amin(dg.tensor([1.0, 2.0, 3.0]), mask=dg.tensor([False, True, True]))
    tensor(2.)
    """,
)

argmax = _reduction(
    "argmax",
    _extreme(extremes.argmax),
    _lowest,
    """Where the largest of the elements that count is; it has no gradient.

    >>> dg.masked.argmax(dg.tensor([1.0, 2.0, 3.0]), mask=dg.tensor([True, True, False]))
    tensor(1)
    """,
)

argmin = _reduction(
    "argmin",
    _extreme(extremes.argmin),
    _highest,
    """Where the smallest of the elements that count is; it has no gradient.

    >>> dg.masked.argmin(dg.tensor([1.0, 2.0, 3.0]), mask=dg.tensor([False, True, True]))
    tensor(1)
    """,
)


def _along(
    name: str, run: Callable[..., Tensor], fill: Callable[[dtypes.dtype], Any], doc: str
) -> Callable[..., Tensor]:
    """The function `run(input, dim, dtype=dtype)` of lines, blind to elements like `fill`."""

    def function(
        input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None
    ) -> Tensor:
        return run(unmasked(input, mask, fill(input.dtype)), dim, dtype=dtype)

    return titled(function, name, doc)


cumsum = _along(
    "cumsum",
    scans.cumsum,
    _zero,
    """The running sum along `dim` of the elements that count.

    >>> dg.masked.cumsum(dg.tensor([1.0, 2.0, 3.0]), 0, mask=dg.tensor([True, False, True]))
    tensor([1., 1., 4.])
    """,
)

cumprod = _along(
    "cumprod",
    scans.cumprod,
    _one,
    """The running product along `dim` of the elements that count.

    >>> dg.masked.cumprod(dg.tensor([1.0, 2.0, 3.0]), 0, mask=dg.tensor([True, False, True]))
    tensor([1., 1., 3.])
    """,
)

softmax = _along(
    "softmax",
    softmaxes.softmax,
    _lowest,
    """The softmax of the elements that count; the others get 0, NaN where none counts.

    >>> dg.masked.softmax(dg.zeros(3), 0, mask=dg.tensor([True, True, False]))
    tensor([0.5000, 0.5000, 0.0000])
    """,
)

log_softmax = _along(
    "log_softmax",
    softmaxes.log_softmax,
    _lowest,
    """The logarithm of `softmax`; -inf for the elements that don't count.

    >>> dg.masked.log_softmax(dg.zeros(3), 0, mask=dg.tensor([True, True, False]))
    tensor([-0.6931, -0.6931,    -inf])
    """,
)

softmin = _along(
    "softmin",
    softmaxes.softmin,
    _highest,
    """The softmax of `-input` over the elements that count; the others get 0.

    >>> dg.masked.softmin(dg.zeros(3), 0, mask=dg.tensor([True, True, False]))
    tensor([0.5000, 0.5000, 0.0000])
    """,
)


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
        unmasked(input, input_mask, -math.inf), unmasked(other, other_mask, -math.inf)
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
    summed = softmaxes.logsumexp(unmasked(input, mask, _lowest(input.dtype)), dims, keepdim)
    return summed.to(input.dtype if dtype is None else dtype)


__all__: list[str] = []
METHODS: tuple[str, ...] = ()
