"""Batch normalization, and what it shares with instance normalization: running statistics."""

from __future__ import annotations

from typing import Any, ClassVar

from dyngraph import dtypes
from dyngraph.nn import functional as F, init
from dyngraph.nn.modules.linear import register_bias
from dyngraph.nn.modules.module import Module
from dyngraph.nn.parameter import Parameter
from dyngraph.ops.filled import empty, ones, zeros
from dyngraph.ops.from_data import tensor
from dyngraph.tensor import Tensor

__all__ = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm"]


class _NormBase(Module):
    _version = 2  # 1 had no num_batches_tracked
    weight: Parameter | None
    bias: Parameter | None
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        weight = Parameter(empty(num_features, device=device, dtype=dtype)) if affine else None
        self.register_parameter("weight", weight)
        register_bias(self, num_features if affine and bias else None, device, dtype)
        tracked = track_running_stats
        mean = zeros(num_features, device=device, dtype=dtype) if tracked else None
        var = ones(num_features, device=device, dtype=dtype) if tracked else None
        count = tensor(0, dtype=dtypes.default_int(), device=device) if tracked else None
        self.register_buffer("running_mean", mean)
        self.register_buffer("running_var", var)
        self.register_buffer("num_batches_tracked", count)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Sets the running statistics back to mean 0, variance 1, of no batches."""
        if self.track_running_stats:
            for statistic, value in (
                (self.running_mean, 0),
                (self.running_var, 1),
                (self.num_batches_tracked, 0),
            ):
                assert statistic is not None
                statistic.fill_(value)

    def reset_parameters(self) -> None:
        """Sets weight to ones, bias to zeros, and the running statistics back."""
        self.reset_running_stats()
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.affine}, bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(  # type: ignore[override]
        self, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any], *rest: Any
    ) -> None:
        key = prefix + "num_batches_tracked"
        old = (local_metadata.get("version") or 1) < 2
        if old and self.track_running_stats and key not in state_dict:
            state_dict[key] = self.num_batches_tracked
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


class _BatchNorm(_NormBase):
    ranks: ClassVar[tuple[int, ...]] = ()

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in self.ranks:
            expected = " or ".join(f"{n}D" for n in self.ranks)
            raise ValueError(f"expected {expected} input (got {input.dim()}D input)")

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        momentum = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # the mean over all batches
                momentum = 1.0 / float(self.num_batches_tracked)
        uses_running = not self.training or self.track_running_stats
        return F.batch_norm(
            input,
            self.running_mean if uses_running else None,
            self.running_var if uses_running else None,
            self.weight,
            self.bias,
            self.training or (self.running_mean is None and self.running_var is None),
            momentum,
            self.eps,
        )


class BatchNorm1d(_BatchNorm):
    """(x - mean) / sqrt(variance + eps) * weight + bias for each feature, over the batch.

    input: (N, C) or (N, C, L), C = `num_features`; weight and bias: (C,) start as ones and zeros,
    and are there with `affine`, bias only with `bias`. In training, mean and variance are the
    batch's, and `running_mean` and `running_var` move towards them by `momentum`, or are the mean
    over all batches where that is None; in evaluation they are what is used. Without
    `track_running_stats` the batch's are always used. Raises ValueError for other dims.

    >>> norm = dg.nn.BatchNorm1d(1)
    >>> norm(dg.tensor([[1.0], [3.0]])).tolist()
    [[-0.9999949932098389], [0.9999949932098389]]
    >>> norm.running_mean
    tensor([0.2000])
    """

    ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """BatchNorm1d for images; input: (N, C, H, W), normalized over N, H and W.

    >>> dg.nn.BatchNorm2d(1)(dg.ones(1, 1, 2, 2)).abs().sum().item()
    0.0
    """

    ranks = (4,)


class BatchNorm3d(_BatchNorm):
    """BatchNorm1d for volumes; input: (N, C, D, H, W), normalized over N, D, H and W.

    >>> dg.nn.BatchNorm3d(1)(dg.ones(1, 1, 1, 2, 2)).abs().sum().item()
    0.0
    """

    ranks = (5,)


class SyncBatchNorm(_BatchNorm):
    """BatchNorm over a batch that is spread over devices; input: (N, C, ...).

    The statistics of every BatchNorm here are those of the whole batch, wherever its parts are, so
    this is BatchNorm for any number of dims, under the name that programs for several devices use.
    `process_group` must be None: the sharding of the batch says which devices have it. Raises
    ValueError for another, and for input of fewer than 2 dims.

    >>> dg.nn.SyncBatchNorm(1)(dg.tensor([[1.0], [3.0]])).tolist()
    [[-0.9999949932098389], [0.9999949932098389]]
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        _check_group(process_group)
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """The module with a SyncBatchNorm, which takes over parameters and statistics, in place of
        each BatchNorm in it; of a BatchNorm itself, the SyncBatchNorm.

        >>> net = dg.nn.Sequential(dg.nn.Linear(2, 3), dg.nn.BatchNorm1d(3))
        >>> type(dg.nn.SyncBatchNorm.convert_sync_batchnorm(net)[1]).__name__
        'SyncBatchNorm'
        """
        _check_group(process_group)
        converted = module
        if isinstance(module, _BatchNorm):
            converted = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                bias=module.bias is not None,
            )
            converted._parameters.update(module._parameters)
            converted._buffers.update(module._buffers)
            converted.training = module.training
        for name, child in module.named_children():
            converted.add_module(name, cls.convert_sync_batchnorm(child))
        return converted


def _check_group(process_group: Any) -> None:
    if process_group is not None:
        raise ValueError(
            f"process_group must be None, got {process_group!r}: statistics are those of the whole "
            "batch. Normalize a part of it by itself for those of a part."
        )
