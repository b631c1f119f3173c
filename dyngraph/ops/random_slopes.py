"""Rectifiers whose slope is drawn at random."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from dyngraph.ops.dropouts import draw_mask_key
from dyngraph.ops.in_place import in_place
from dyngraph.ops.operator import define
from dyngraph.ops.piecewise_linear import leaky_relu
from dyngraph.random import Generator
from dyngraph.tensor import Tensor
from dyngraph.writing import run_in_place


def _slopes(shape: Any, dtype: Any, key: Any, lower: Any, upper: Any) -> Any:
    drawn = jax.random.uniform(jax.random.wrap_key_data(key), shape, dtype)
    return lower + (upper - lower) * drawn


def _rrelu(self: Any, key: Any, lower: Any, upper: Any) -> Any:
    return jnp.where(self >= 0, self, self * _slopes(self.shape, self.dtype, key, lower, upper))


def _rrelu_rule(grad: Any, self: Any, key: Any, lower: Any, upper: Any) -> Any:
    return jnp.where(self >= 0, grad, grad * _slopes(self.shape, self.dtype, key, lower, upper))


# The slopes are not saved, but drawn again from their key.
_drawn = define("rrelu", _rrelu, self=_rrelu_rule, key=None, lower=None, upper=None)


def rectified(
    input: Tensor, lower: float, upper: float, training: bool, generator: Generator | None
) -> Tensor:
    """`rrelu`, with draws of any generator."""
    if lower > upper:
        raise RuntimeError(
            f"Lower bound should be less than or equal to the upper bound, got {lower} and {upper}"
        )
    if not training:
        return leaky_relu(input, (lower + upper) / 2)
    return _drawn(input, draw_mask_key(generator), lower, upper)


def rrelu(
    input: Tensor,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """`leaky_relu` with a slope between two bounds: drawn for each element, or their mean.

    It is drawn when `training`, from the default generator; `inplace` writes to the input. Xu et
    al. 2015, https://arxiv.org/abs/1505.00853. Raises RuntimeError for bounds in the wrong order.

    >>> dg.nn.functional.rrelu(dg.tensor([-1.0, 2.0]), 0.25, 0.75)
    tensor([-0.5000,  2.0000])
    """
    if inplace:
        return run_in_place(rrelu, input, lower, upper, training)
    return rectified(input, lower, upper, training, None)


rrelu_ = in_place(rrelu)

__all__ = ["rrelu_"]  # the others are functions of nn.functional
METHODS: tuple[str, ...] = ()
