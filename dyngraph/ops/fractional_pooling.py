"""Maxima of windows that lie at random places, for sizes that are no divisors.

Inputs are (batch, channels, *sizes), or without the batch. Graham 2014,
https://arxiv.org/abs/1412.6071.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from dyngraph import dtypes
from dyngraph.ops.arguments import titled, widened
from dyngraph.ops.operator import define
from dyngraph.ops.random import rand
from dyngraph.tensor import Tensor

_SIDES = ("time", "height", "width")


def _starts(draws: Any, size: int, out: int, kernel: int) -> Any:
    """(planes, out): where the windows of a dim begin, from one draw a plane."""
    if out <= 1:
        return jnp.full((draws.shape[0], out), size - kernel, np.int32)
    step = jnp.asarray((size - kernel) / (out - 1), draws.dtype)
    draws = draws[:, None]
    first = (draws * step).astype(np.int32)
    places = ((jnp.arange(out - 1) + draws) * step).astype(np.int32) - first
    return jnp.concatenate([places, jnp.full_like(places[:, :1], size - kernel)], 1)


def _check(
    where: str, self: Any, samples: Any, kernel: tuple[int, ...], out: tuple[int, ...]
) -> None:
    count = len(kernel)
    if self.ndim not in (count + 1, count + 2):
        raise RuntimeError(
            f"{where}(): Expected {count + 1}D or {count + 2}D tensor, but got: "
            f"{list(self.shape)}. Pass (batch, channels, *sizes), or without the batch."
        )
    if 0 in self.shape[-(count + 1) :]:
        raise RuntimeError(
            f"{where}(): Expected input to have non-zero size for non-batch dimensions, but got "
            f"{list(self.shape)}"
        )
    rows = zip(_SIDES[-count:], self.shape[-count:], kernel, out, strict=True)
    for side, n, k, o in rows:
        if k < 1 or o < 1:
            raise RuntimeError(
                f"{where}(): kernel_size and output_size must be positive, got {list(kernel)} and "
                f"{list(out)}"
            )
        if o + k - 1 > n:
            raise RuntimeError(
                f"{where}(): pool {side} {k} too large relative to input {side} {n} for an output "
                f"of {o}"
            )
    batch = self.shape[0] if self.ndim == count + 2 else 1
    if samples.shape != (batch, self.shape[-(count + 1)], count):
        raise RuntimeError(
            f"{where}(): Expect _random_samples of shape (batch, channels, {count}), got "
            f"{list(samples.shape)} for an input of {list(self.shape)}"
        )


def _define(count: int) -> Callable[..., Any]:
    where = f"fractional_max_pool{count}d"
    # PyTorch reads the draws of two dims from the last to the first.
    order = (1, 0) if count == 2 else (0, 1, 2)

    def maxima(
        self: Any, samples: Any, *, kernel_size: tuple[int, ...], output_size: tuple[int, ...]
    ) -> Any:
        _check(where, self, samples, kernel_size, output_size)
        sizes = self.shape[-count:]
        planes = math.prod(self.shape[:-count])
        draws = widened(samples).reshape(planes, count)
        flat = jnp.zeros((planes, 1, 1), np.int32)
        for i, (n, k, o) in enumerate(zip(sizes, kernel_size, output_size, strict=True)):
            place = _starts(draws[:, order[i]], n, o, k)[:, :, None] + jnp.arange(k)
            both = flat[:, :, None, :, None] * n + place[:, None, :, None, :]
            flat = both.reshape(planes, flat.shape[1] * o, flat.shape[2] * k)
        lines = self.reshape(planes, math.prod(sizes))
        windows = jnp.take_along_axis(lines[:, None], flat, -1)
        choice = jnp.argmax(windows, -1)[..., None]
        shape = (*self.shape[:-count], *output_size)
        indices = jnp.take_along_axis(flat, choice, -1).reshape(shape)
        values = jnp.take_along_axis(windows, choice, -1).reshape(shape)
        return values, indices.astype(dtypes.default_int().dtype)

    def rule(grads: Any, indices: Any, self_shape: Any) -> Any:
        planes = math.prod(self_shape[:-count])
        flat = indices.reshape(planes, math.prod(indices.shape[-count:]))
        zeros = jnp.zeros((planes, math.prod(self_shape[-count:])), grads[0].dtype)
        added = zeros.at[jnp.arange(planes)[:, None], flat].add(grads[0].reshape(flat.shape))
        return added.reshape(self_shape)

    return define(
        where,
        maxima,
        signature="self, samples, kernel_size, output_size",
        outputs=("result", "indices"),
        self=rule,
        samples=None,
    )


def _one_each(where: str, name: str, value: Any, count: int) -> tuple[Any, ...]:
    values = tuple(value) if isinstance(value, (tuple, list)) else (value,) * count
    if len(values) != count:
        raise RuntimeError(
            f"{where}: {name} must either be a single number or a tuple of {count}, got "
            f"{list(values)}"
        )
    return values


def _fractional(count: int, doc: str, doc_with_indices: str) -> tuple[Callable[..., Any], ...]:
    """The function that gives the maxima, and the one that gives their positions too."""
    where = f"fractional_max_pool{count}d"
    operator = _define(count)

    def with_indices(
        input: Tensor,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> Any:
        kernel = tuple(int(k) for k in _one_each(where, "kernel_size", kernel_size, count))
        sizes = tuple(input.shape)
        if output_size is None:
            if output_ratio is None:
                raise ValueError(
                    f"{where} requires specifying either an output_size or an output_ratio"
                )
            ratios = _one_each(where, "output_ratio", output_ratio, count)
            output_size = [int(n * r) for n, r in zip(sizes[-count:], ratios, strict=False)]
        out = tuple(int(o) for o in _one_each(where, "output_size", output_size, count))
        if _random_samples is None:
            lead = (1, *sizes)[-(count + 2) : -count]
            _random_samples = rand(*lead, count, dtype=input.dtype, device=input.device)
        return operator(input, _random_samples, kernel, out)

    def function(
        input: Tensor,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> Any:
        values, indices = with_indices(
            input, kernel_size, output_size, output_ratio, _random_samples=_random_samples
        )
        return (values, indices) if return_indices else values

    return (
        titled(function, where, doc),
        titled(with_indices, f"{where}_with_indices", doc_with_indices),
    )


fractional_max_pool2d, fractional_max_pool2d_with_indices = _fractional(
    2,
    """The largest element of each window of the last two dims, whose places are drawn.

    There are `output_size` windows of `kernel_size` elements, or the share `output_ratio` of the
    input's sizes. The draws, (batch, channels, 2), come from the default generator. With
    `return_indices` also the positions, which `max_unpool2d` takes. Raises RuntimeError where the
    windows do not fit.

    >>> x = dg.arange(16.0).reshape(1, 4, 4)
    >>> dg.nn.functional.fractional_max_pool2d(x, 2, 1)
    tensor([[[15.]]])
    """,
    """The results of `fractional_max_pool2d`, and where they were.

    >>> x = dg.arange(16.0).reshape(1, 4, 4)
    >>> dg.nn.functional.fractional_max_pool2d_with_indices(x, 2, 1)
    (tensor([[[15.]]]), tensor([[[15]]]))
    """,
)
fractional_max_pool3d, fractional_max_pool3d_with_indices = _fractional(
    3,
    """The largest element of each window of the last three dims; as `fractional_max_pool2d`.

    >>> x = dg.arange(27.0).reshape(1, 3, 3, 3)
    >>> dg.nn.functional.fractional_max_pool3d(x, 2, 1)
    tensor([[[[26.]]]])
    """,
    """The results of `fractional_max_pool3d`, and where they were.

    >>> x = dg.arange(27.0).reshape(1, 3, 3, 3)
    >>> dg.nn.functional.fractional_max_pool3d_with_indices(x, 2, 1)
    (tensor([[[[26.]]]]), tensor([[[[26]]]]))
    """,
)

__all__: list[str] = []  # these are functions of nn.functional
METHODS: tuple[str, ...] = ()
