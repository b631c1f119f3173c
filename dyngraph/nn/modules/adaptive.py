"""AdaptiveLogSoftmaxWithLoss: a softmax over many classes, rare ones in small clusters."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from dyngraph.nn import functional as F
from dyngraph.nn.modules.container import ModuleList, Sequential
from dyngraph.nn.modules.linear import Linear
from dyngraph.nn.modules.module import Module
from dyngraph.ops.joining import cat
from dyngraph.tensor import Tensor

__all__ = ["AdaptiveLogSoftmaxWithLoss"]


class ASMoutput(NamedTuple):
    """The log-probability of each target, and their negative mean."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log-probabilities of classes that are numbered from the frequent to the rare (Grave et al.,
    2017); input: (N, in_features) or (in_features,), target: (N,) or ().

    The classes before `cutoffs[0]` are in the `head`, and so is each cluster; those between two
    cutoffs are in a cluster, a `tail` of two Linears, whose inner size is `in_features` over a
    power of `div_value`. Raises ValueError for cutoffs that are not increasing numbers between 1
    and n_classes - 1, RuntimeError for inputs that do not fit.

    >>> model = dg.nn.AdaptiveLogSoftmaxWithLoss(4, 10, cutoffs=[2, 5], div_value=2.0)
    >>> model.head
    Linear(in_features=4, out_features=4, bias=False)
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        given = list(cutoffs)
        if not given:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        increasing = all(a < b for a, b in pairwise([0, *given, n_classes]))
        if not increasing or any(int(c) != c for c in given):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing "
                f"order, where each value is between 1 and n_classes-1, got {given}"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*given, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, head_bias, device, dtype)
        self.tail = ModuleList()
        for i, (low, high) in enumerate(pairwise(self.cutoffs)):
            inner = int(in_features // div_value ** (i + 1))
            first = Linear(in_features, inner, False, device, dtype)
            second = Linear(inner, high - low, False, device, dtype)
            self.tail.append(Sequential(first, second))

    def reset_parameters(self) -> None:
        """Draws the initial values anew."""
        for module in self.modules():
            if isinstance(module, Linear):
                module.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> ASMoutput:
        self._check(input_, target_)
        batched = target_.dim() > 0
        input = input_ if batched else input_.unsqueeze(0)
        target = target_ if batched else target_.unsqueeze(0)
        least, most = int(target.min()), int(target.max())
        if least < 0 or most >= self.n_classes:
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{least}, {most}] were found. "
            )
        output = input.new_zeros(target.size(0))
        in_head = target.clone()
        for i, (low, high) in enumerate(pairwise(self.cutoffs)):
            (rows,) = ((target >= low) & (target < high)).nonzero(as_tuple=True)
            if not rows.numel():
                continue
            found = F.log_softmax(self.tail[i](input[rows]), dim=1)
            own = found.gather(1, (target[rows] - low).unsqueeze(1)).squeeze(1)
            output = output.index_copy(0, rows, own)
            in_head[rows] = self.shortlist_size + i
        head = F.log_softmax(self.head(input), dim=1)
        output = output + head.gather(1, in_head.unsqueeze(1)).squeeze(1)
        loss = -output.mean()
        return ASMoutput(output if batched else output.squeeze(0), loss)

    def _check(self, input: Tensor, target: Tensor) -> None:
        if target.dim() > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if target.dim() == 1 and input.size(0) != target.size(0):
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        if input.dim() != target.dim() + 1:
            raise RuntimeError(
                f"{target.dim()}D target tensor expects {target.dim() + 1}D input tensors, but "
                f"found inputs with size {list(input.shape)}"
            )

    def log_prob(self, input: Tensor) -> Tensor:
        """The log-probability of every class; (N, in_features) -> (N, n_classes)."""
        return self._all_log_probs(input, self.head(input))

    def _all_log_probs(self, input: Tensor, head_output: Tensor) -> Tensor:
        head = F.log_softmax(head_output, dim=1)
        size = self.shortlist_size
        parts = [head[:, :size]]
        for i, tail in enumerate(self.tail):
            parts.append(F.log_softmax(tail(input), dim=1) + head[:, size + i].unsqueeze(1))
        return cat(parts, 1)

    def predict(self, input: Tensor) -> Tensor:
        """The most likely class of each example; (N, in_features) -> (N,). The clusters are only
        looked into for examples whose most likely class is in none of the head's."""
        head_output = self.head(input)
        output = head_output.argmax(dim=1)
        (rows,) = (output >= self.shortlist_size).nonzero(as_tuple=True)
        if rows.numel():
            output[rows] = self._all_log_probs(input[rows], head_output[rows]).argmax(dim=1)
        return output
