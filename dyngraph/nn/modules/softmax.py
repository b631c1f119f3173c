"""Softmaxes: the elements along one dim, or the channels, as shares of one."""

from __future__ import annotations

import warnings
from typing import Any

from dyngraph.nn import functional as F
from dyngraph.nn.modules.layer import Layer, layer
from dyngraph.nn.modules.module import Module
from dyngraph.tensor import Tensor

__all__ = [
    "LogSoftmax",
    "Softmax",
    "Softmax2d",
    "Softmin",
]


def _dim_of(module: Any, input: Tensor) -> int:
    """The dim of a softmax; the one that PyTorch once chose, where it is None."""
    if module.dim is not None:
        return module.dim
    warnings.warn(
        f"Implicit dimension choice for {type(module).__name__.lower()} has been deprecated. "
        "Change the call to include dim=X as an argument.",
        UserWarning,
        stacklevel=4,
    )
    return 0 if input.ndim in (0, 1, 3) else 1


@layer
class Softmin(Layer):
    """softmax(-x) along `dim`.

    >>> dg.nn.Softmin(dim=0)(dg.zeros(2))
    tensor([0.5000, 0.5000])
    """

    dim: int | None = None

    def forward(self, input: Tensor) -> Tensor:
        return F.softmin(input, _dim_of(self, input))


@layer
class Softmax(Layer):
    """exp(x) over its sum along `dim`.

    >>> dg.nn.Softmax(dim=0)(dg.zeros(2))
    tensor([0.5000, 0.5000])
    """

    dim: int | None = None

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, _dim_of(self, input))


class Softmax2d(Module):
    """The softmax over the channels of (N, C, H, W) or (C, H, W); ValueError for other inputs.

    >>> dg.nn.Softmax2d()(dg.zeros(2, 1, 1)).flatten()
    tensor([0.5000, 0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (3, 4):
            raise ValueError(
                f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead"
            )
        return F.softmax(input, -3)


@layer
class LogSoftmax(Layer):
    """log(softmax(x)) along `dim`.

    >>> dg.nn.LogSoftmax(dim=0)(dg.zeros(2))
    tensor([-0.6931, -0.6931])
    """

    dim: int | None = None

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, _dim_of(self, input))
