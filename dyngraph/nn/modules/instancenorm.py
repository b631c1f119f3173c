"""Instance normalization."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

from dyngraph.nn import functional as F
from dyngraph.nn.modules.batchnorm import _NormBase
from dyngraph.tensor import Tensor

__all__ = ["InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"]


class _InstanceNorm(_NormBase):
    dims: ClassVar[int]

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )

    def forward(self, input: Tensor) -> Tensor:
        unbatched = self.dims + 1
        if input.dim() not in (unbatched, unbatched + 1):
            raise ValueError(
                f"expected {unbatched}D or {unbatched + 1}D input (got {input.dim()}D input)"
            )
        dim = input.dim() - unbatched
        if input.size(dim) != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={dim} to match num_features "
                    f"({self.num_features}), but got: {input.size(dim)}."
                )
            warnings.warn(
                f"input's size at dim={dim} does not match num_features, which is not used because "
                "affine=False",
                UserWarning,
                stacklevel=3,
            )
        batched = input if dim else input.unsqueeze(0)
        output = F.instance_norm(
            batched,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )
        return output if dim else output.squeeze(0)

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any], *rest: Any
    ) -> None:
        statistics = [prefix + "running_mean", prefix + "running_var"]
        found = [key for key in statistics if key in state_dict]
        if local_metadata.get("version") is None and not self.track_running_stats and found:
            *_, error_msgs = rest
            name = type(self).__name__
            error_msgs.append(
                f"Unexpected running stats buffer(s) {' and '.join(map(repr, found))} for {name} "
                "with track_running_stats=False. Remove these keys from state_dict, or set "
                f"track_running_stats=True in {name}."
            )
            for key in found:
                del state_dict[key]
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


class InstanceNorm1d(_InstanceNorm):
    """(x - mean) / sqrt(variance + eps) for each feature of each example; input: (N, C, L) or (C,
    L), C = `num_features`.

    With `affine` the result is scaled and moved by weight and bias: (C,), which start as ones and
    zeros. With `track_running_stats` there are running statistics, as in BatchNorm1d, which are
    used in evaluation. Raises ValueError for other dims, and with `affine` for other features.

    >>> dg.nn.InstanceNorm1d(1)(dg.tensor([[1.0, 3.0]])).tolist()
    [[-0.9999949932098389, 0.9999949932098389]]
    """

    dims = 1


class InstanceNorm2d(_InstanceNorm):
    """InstanceNorm1d for images; input: (N, C, H, W) or (C, H, W).

    >>> dg.nn.InstanceNorm2d(1)(dg.ones(1, 2, 2)).abs().sum().item()
    0.0
    """

    dims = 2


class InstanceNorm3d(_InstanceNorm):
    """InstanceNorm1d for volumes; input: (N, C, D, H, W) or (C, D, H, W).

    >>> dg.nn.InstanceNorm3d(1)(dg.ones(1, 1, 2, 2)).abs().sum().item()
    0.0
    """

    dims = 3
