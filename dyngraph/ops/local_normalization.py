"""Normalisation within one sample: of each channel, and of neighbouring channels."""

from __future__ import annotations

import math
from typing import Any

import jax

from dyngraph.dispatch import lift
from dyngraph.ops.arguments import widened
from dyngraph.ops.channel_normalization import batch_norm, group_norm
from dyngraph.ops.operator import define
from dyngraph.sequence import call
from dyngraph.tensor import Tensor


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Each channel of each sample of (batch, channels, ...) with mean 0 and variance 1.

    Without `use_input_stats` by the running mean and variance, otherwise these move towards the
    batch's average, in place. Ulyanov et al. 2016, https://arxiv.org/abs/1607.08022. Raises
    ValueError for a single value a channel.

    >>> dg.nn.functional.instance_norm(dg.tensor([[[1.0, 3.0], [0.0, 4.0]]]))
    tensor([[[-1.0000,  1.0000],
             [-1.0000,  1.0000]]])
    """
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, eps=eps)
    array = input._cell.held
    if array.ndim < 3 or math.prod(array.shape[2:]) == 1:
        raise ValueError(
            "Expected more than 1 spatial element when training, got input size "
            f"{list(array.shape)}"
        )
    result = group_norm(input, array.shape[1], weight, bias, eps)
    if running_mean is not None and running_var is not None:
        mean, var = running_mean._cell, running_var._cell
        new_mean, new_var = call(
            _moved_averages, array, mean.held, var.held, lift(momentum, "norm", "momentum")
        )
        mean.write(new_mean)
        var.write(new_var)
    return result


@jax.jit
def _moved_averages(array: Any, mean: Any, var: Any, momentum: Any) -> tuple[Any, Any]:
    """Running mean and variance after a batch, by the averages over its samples."""
    wide, axes = widened(array), tuple(range(2, array.ndim))
    new_mean, new_var = wide.mean(axes).mean(0), wide.var(axes, ddof=1).mean(0)
    return (
        ((1 - momentum) * mean + momentum * new_mean).astype(mean.dtype),
        ((1 - momentum) * var + momentum * new_var).astype(var.dtype),
    )


def _local_response(self: Any, alpha: Any, beta: Any, k: Any, *, size: int) -> Any:
    if self.ndim < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {self.ndim} dimensions)")
    wide = widened(self)
    window = [size if d == 1 else 1 for d in range(self.ndim)]
    pairs = [(size // 2, (size - 1) // 2) if d == 1 else (0, 0) for d in range(self.ndim)]
    ones = [1] * self.ndim
    sums = jax.lax.reduce_window(wide * wide, 0.0, jax.lax.add, window, ones, pairs)
    return (wide / (sums / size * alpha + k) ** beta).astype(self.dtype)


local_response_norm = define(
    "local_response_norm",
    _local_response,
    signature="self, size, alpha=0.0001, beta=0.75, k=1.0",
    alpha=None,
    beta=None,
    k=None,
    doc="""The input over `(k + alpha * mean of squares) ** beta`, the mean over `size` channels.

    Krizhevsky et al. 2012, section 3.3. Raises ValueError for fewer than three dims.

    >>> dg.nn.functional.local_response_norm(dg.ones(1, 1, 2), 1, alpha=3.0, beta=0.5)
    tensor([[[0.5000, 0.5000]]])
    """,
)


__all__: list[str] = []  # these are functions of nn.functional
METHODS: tuple[str, ...] = ()
