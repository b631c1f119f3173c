"""Dropout: in training, elements or channels are drawn that become zero; in evaluation nothing is
done."""

from __future__ import annotations

from dyngraph.nn import functional as F
from dyngraph.nn.modules.layer import Layer, layer
from dyngraph.tensor import Tensor

__all__ = [
    "AlphaDropout",
    "Dropout",
    "Dropout1d",
    "Dropout2d",
    "Dropout3d",
    "FeatureAlphaDropout",
]


@layer
class _DropoutNd(Layer):
    p: float = 0.5
    inplace: bool = False

    def check(self) -> None:
        if not 0 <= self.p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {self.p}")

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """Zeroes each element with probability `p`, and divides the others by 1 - p (Hinton et al.,
    2012). Raises ValueError for a `p` that is no probability, as those below.

    >>> set(dg.nn.Dropout(0.5)(dg.ones(64)).tolist()) == {0.0, 2.0}
    True
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_DropoutNd):
    """Zeroes each channel with probability `p`; input: (N, C, L) or (C, L).

    >>> dg.nn.Dropout1d(1.0)(dg.ones(1, 2, 2)).sum()
    tensor(0.)
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_DropoutNd):
    """Zeroes each channel with probability `p`; input: (N, C, H, W) or (N, C, L).

    >>> dg.nn.Dropout2d(1.0)(dg.ones(1, 2, 2, 2)).sum()
    tensor(0.)
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_DropoutNd):
    """Zeroes each channel with probability `p`; input: (N, C, D, H, W) or (C, D, H, W).

    >>> dg.nn.Dropout3d(1.0)(dg.ones(1, 2, 1, 2, 2)).sum()
    tensor(0.)
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_DropoutNd):
    """Sets elements, with probability `p`, to SELU's lowest value, and scales all so that mean 0
    and variance 1 stay (Klambauer et al., 2017).

    >>> dg.nn.AlphaDropout(0.5).eval()(dg.ones(2))
    tensor([1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_DropoutNd):
    """AlphaDropout of whole channels; input: (N, C, ...).

    >>> dg.nn.FeatureAlphaDropout(0.5).eval()(dg.ones(2))
    tensor([1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.feature_alpha_dropout(input, self.p, self.training)
