"""How far apart, and how alike, vectors are."""

from __future__ import annotations

from dyngraph.nn import functional as F
from dyngraph.nn.modules.layer import Layer, layer
from dyngraph.nn.modules.module import Module
from dyngraph.tensor import Tensor

__all__ = ["CosineSimilarity", "PairwiseDistance"]


class PairwiseDistance(Module):
    """The norm `p` of x1 - x2 + eps; (N, D) and (N, D) -> (N,), or (N, 1) with `keepdim`.

    >>> dg.nn.PairwiseDistance(eps=0.0)(dg.tensor([[3.0, 0.0]]), dg.tensor([[0.0, 4.0]]))
    tensor([5.])
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


@layer
class CosineSimilarity(Layer):
    """x1 . x2 over the product of their norms, each at least `eps`, along `dim`.

    >>> dg.nn.CosineSimilarity()(dg.tensor([[3.0, 0.0]]), dg.tensor([[2.0, 0.0]]))
    tensor([1.])
    """

    shown = ()
    dim: int = 1
    eps: float = 1e-8

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)
