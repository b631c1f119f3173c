"""The dropouts of the package, whose `p` and `train` have no defaults: `alpha_dropout` and others.

As in `dropouts`, a mask is not saved, but drawn again from its key.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dyngraph.ops import dropouts
from dyngraph.ops.arguments import require_float
from dyngraph.ops.arithmetic import mul
from dyngraph.ops.dropouts import draw_mask_key
from dyngraph.ops.operator import define
from dyngraph.tensor import Tensor
from dyngraph.writing import run_in_place

# What SELU tends to far below 0, negated: its scale times its alpha.
_SATURATION = 1.7580993408473766


def _kept(self: Any, key: Any, p: Any, *, channels: bool) -> Any:
    """True with probability 1 - p: for each element, or for each slice of the first two dims."""
    shape = (*self.shape[:2], *[1] * (self.ndim - 2)) if channels else self.shape
    keep = 1 - jnp.asarray(p, np.float32)
    return jax.random.bernoulli(jax.random.wrap_key_data(key), keep, shape)


def _check_channels(self: Any) -> None:
    if self.ndim < 2:
        raise RuntimeError(
            "Feature dropout requires at least 2 dimensions in the input, got "
            f"{self.ndim}. Use dropout(), which drops elements."
        )


def _dropped_channels(self: Any, key: Any, p: Any) -> Any:
    _check_channels(self)
    require_float("feature_dropout", self)
    scale = (1 / (1 - jnp.asarray(p, np.float32))).astype(self.dtype)
    return jnp.where(_kept(self, key, p, channels=True), self * scale, 0)


_feature_dropout = define(
    "feature_dropout",
    _dropped_channels,
    node="MulBackward0",
    self=lambda grad, key, p: _dropped_channels(grad, key, p),
    key=None,
    p=None,
)


def _alpha_scale(p: Any) -> Any:
    """What keeps the variance at 1, for the shift that keeps the mean at 0; see `alpha_dropout`."""
    p = jnp.asarray(p, np.float32)
    return 1 / jnp.sqrt((_SATURATION**2 * p + 1) * (1 - p))


def _saturated(self: Any, key: Any, p: Any, *, channels: bool) -> Any:
    if channels:
        _check_channels(self)
    require_float("alpha_dropout", self)
    scale = _alpha_scale(p)
    kept = _kept(self, key, p, channels=channels)
    shift = (_SATURATION * scale * p).astype(self.dtype)
    values = jnp.where(kept, self * scale.astype(self.dtype), 0)
    return values + jnp.where(kept, 0, -_SATURATION * scale).astype(self.dtype) + shift


def _saturated_rule(grad: Any, key: Any, p: Any, channels: bool) -> Any:
    kept = _kept(grad, key, p, channels=channels)
    return jnp.where(kept, grad * _alpha_scale(p).astype(grad.dtype), 0)


_alpha_dropout = define(
    "alpha_dropout",
    _saturated,
    signature="self, key, p, channels",
    node="AddBackward0",
    self=_saturated_rule,
    key=None,
    p=None,
)


def _drops(input: Tensor, p: float, *, train: bool) -> bool:
    """Whether anything is dropped; RuntimeError for a `p` that is no probability."""
    if not 0 <= p <= 1:
        raise RuntimeError(
            f"dropout probability has to be between 0 and 1, but got {p}. Pass the chance that "
            "an element is dropped."
        )
    return bool(train) and p != 0 and input.numel() != 0


def dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """`nn.functional.dropout`; RuntimeError for a `p` that is no probability.

    >>> dg.dropout(dg.ones(3), 0.5, False)
    tensor([1., 1., 1.])
    """
    return dropouts.dropout(input, p) if _drops(input, p, train=train) else input


def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Zeroes each `input[i, j]` with probability `p` and scales the others by 1 / (1 - p).

    Tompson et al. 2015, https://arxiv.org/abs/1411.4280. Without `train` it is the input itself.
    Draws from the default generator. RuntimeError for fewer than two dims.

    >>> dg.feature_dropout(dg.ones(1, 1, 2), 1.0, True)
    tensor([[[0., 0.]]])
    """
    if not _drops(input, p, train=train):
        return input
    if p == 1:
        return mul(input, 0)
    return _feature_dropout(input, draw_mask_key(), float(p))


def _alpha(input: Tensor, p: float, *, train: bool, channels: bool) -> Tensor:
    if not _drops(input, p, train=train):
        return input
    if p == 1:
        return mul(input, 0)
    return _alpha_dropout(input, draw_mask_key(), float(p), channels)


def alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Sets each element with probability `p` to what SELU tends to, then rescales and shifts all.

    Mean 0 and variance 1 stay so: Klambauer et al. 2017, https://arxiv.org/abs/1706.02515, "New
    Dropout Technique". Without `train` it is the input itself. Draws from the default generator.

    >>> dg.alpha_dropout(dg.ones(3), 0.5, False)
    tensor([1., 1., 1.])
    """
    return _alpha(input, p, train=train, channels=False)


def feature_alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """`alpha_dropout` of each `input[i, j]` as a whole; RuntimeError for fewer than two dims.

    >>> dg.feature_alpha_dropout(dg.ones(1, 1, 2), 0.5, False)
    tensor([[[1., 1.]]])
    """
    return _alpha(input, p, train=train, channels=True)


def _written(function: Callable[..., Tensor], input: Tensor, p: float, train: bool) -> Tensor:
    """The function's result written to the input, where anything is dropped."""
    return run_in_place(function, input, p, train) if _drops(input, p, train=train) else input


def feature_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """`feature_dropout`, written to the tensor itself.

    >>> dg.feature_dropout_(dg.ones(1, 2), 1.0, True)
    tensor([[0., 0.]])
    """
    return _written(feature_dropout, input, p, train)


def alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """`alpha_dropout`, written to the tensor itself.

    >>> dg.alpha_dropout_(dg.ones(2), 1.0, True)
    tensor([0., 0.])
    """
    return _written(alpha_dropout, input, p, train)


def feature_alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """`feature_alpha_dropout`, written to the tensor itself.

    >>> dg.feature_alpha_dropout_(dg.ones(1, 2), 1.0, True)
    tensor([[0., 0.]])
    """
    return _written(feature_alpha_dropout, input, p, train)


__all__ = [
    "alpha_dropout",
    "alpha_dropout_",
    "dropout",
    "feature_alpha_dropout",
    "feature_alpha_dropout_",
    "feature_dropout",
    "feature_dropout_",
]
METHODS: tuple[str, ...] = ()
