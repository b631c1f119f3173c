"""Layers that take their number of input features from their first input."""

# pyright: reportIncompatibleMethodOverride=false

from __future__ import annotations

from typing import Any, ClassVar

from dyngraph import dtypes, modes
from dyngraph.nn.modules.batchnorm import BatchNorm1d, BatchNorm2d, BatchNorm3d
from dyngraph.nn.modules.conv import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from dyngraph.nn.modules.instancenorm import InstanceNorm1d, InstanceNorm2d, InstanceNorm3d
from dyngraph.nn.modules.lazy import LazyModuleMixin
from dyngraph.nn.modules.linear import Linear
from dyngraph.nn.parameter import UninitializedBuffer, UninitializedParameter
from dyngraph.ops.from_data import tensor
from dyngraph.tensor import Tensor

__all__ = [
    "LazyBatchNorm1d",
    "LazyBatchNorm2d",
    "LazyBatchNorm3d",
    "LazyConv1d",
    "LazyConv2d",
    "LazyConv3d",
    "LazyConvTranspose1d",
    "LazyConvTranspose2d",
    "LazyConvTranspose3d",
    "LazyInstanceNorm1d",
    "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
    "LazyLinear",
]


class _Lazy(LazyModuleMixin):
    """What the layers share: they draw their values when the number of features is known."""

    counted: ClassVar[str]
    """The attribute that is that number; 0 until it is known."""

    def reset_parameters(self) -> None:
        """Draws the initial values, where there is something to draw them for."""
        if not self.has_uninitialized_params() and getattr(self, self.counted) != 0:
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        """Materializes the parameters for an input, and draws them."""
        features = self._features(input)
        if self.has_uninitialized_params():
            setattr(self, self.counted, features)
            with modes.no_grad():
                for name, shape in self._shapes().items():
                    member = getattr(self, name)
                    if member is not None:
                        member.materialize(shape)
                self.reset_parameters()
        elif getattr(self, self.counted) == 0:  # a state was loaded
            setattr(self, self.counted, self._loaded(features))

    def _features(self, input: Tensor) -> int:
        return input.shape[1]

    def _loaded(self, features: int) -> int:
        """The number of features, where a state has given the parameters their shapes."""
        return features

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of what is uninitialized."""
        raise NotImplementedError

    def _await(self, *names: str, device: Any, dtype: Any) -> None:
        for name in names:
            setattr(self, name, UninitializedParameter(device=device, dtype=dtype))


class LazyLinear(_Lazy, Linear):
    """`Linear`, whose `in_features` are those of its first input.

    >>> layer = dg.nn.LazyLinear(3)
    >>> layer(dg.ones(4, 2)).shape
    dyngraph.Size([4, 3])
    >>> layer
    Linear(in_features=2, out_features=3, bias=True)
    """

    cls_to_become = Linear
    counted = "in_features"

    def __init__(
        self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(0, 0, False)
        self.out_features = out_features
        self._await("weight", *(["bias"] if bias else []), device=device, dtype=dtype)

    def _features(self, input: Tensor) -> int:
        return input.shape[-1]

    def _loaded(self, features: int) -> int:
        if features != self.weight.shape[-1]:
            raise AssertionError(
                f"The in_features inferred from input: {features} is not equal to in_features from "
                f"self.weight: {self.weight.shape[-1]}. The loaded state was for other inputs."
            )
        return features

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        return {"weight": (self.out_features, self.in_features), "bias": (self.out_features,)}


class _LazyConv(_Lazy):
    counted = "in_channels"
    dims: ClassVar[int]
    groups: int
    kernel_size: tuple[int, ...]
    in_channels: int
    out_channels: int
    transposed: ClassVar[bool]

    def __init__(
        self,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
        self._begin(out_channels, bias, device, dtype, kernel_size, padding_mode, options)

    def _begin(
        self,
        out_channels: int,
        bias: bool,
        device: Any,
        dtype: Any,
        kernel_size: Any,
        padding_mode: str,
        options: dict[str, Any],
    ) -> None:
        """Makes the layer without channels, and what waits for them."""
        super().__init__(0, 0, kernel_size, bias=False, padding_mode=padding_mode, **options)
        self.out_channels = out_channels
        self._await("weight", *(["bias"] if bias else []), device=device, dtype=dtype)

    def _features(self, input: Tensor) -> int:
        unbatched = self.dims + 1
        if input.dim() not in (unbatched, unbatched + 1):
            raise RuntimeError(
                f"Expected {unbatched}D (unbatched) or {unbatched + 1}D (batched) input to "
                f"{type(self).__name__}, but got input of size: {list(input.shape)}"
            )
        return input.shape[-unbatched]

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        if self.in_channels % self.groups:
            raise ValueError(
                f"in_channels must be divisible by groups, got {self.in_channels} and {self.groups}"
            )
        channels = (self.out_channels, self.in_channels // self.groups)
        if self.transposed:
            channels = (self.in_channels, self.out_channels // self.groups)
        return {"weight": (*channels, *self.kernel_size), "bias": (self.out_channels,)}


class LazyConv1d(_LazyConv, Conv1d):
    """`Conv1d`, whose `in_channels` are those of its first input.

    >>> dg.nn.LazyConv1d(3, 2)(dg.ones(1, 2, 4)).shape
    dyngraph.Size([1, 3, 3])
    """

    cls_to_become = Conv1d


class LazyConv2d(_LazyConv, Conv2d):
    """`Conv2d`, whose `in_channels` are those of its first input."""

    cls_to_become = Conv2d


class LazyConv3d(_LazyConv, Conv3d):
    """`Conv3d`, whose `in_channels` are those of its first input."""

    cls_to_become = Conv3d


class _LazyConvTranspose(_LazyConv):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        options = {
            "stride": stride,
            "padding": padding,
            "output_padding": output_padding,
            "groups": groups,
            "dilation": dilation,
        }
        self._begin(out_channels, bias, device, dtype, kernel_size, padding_mode, options)


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    """`ConvTranspose1d`, whose `in_channels` are those of its first input."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    """`ConvTranspose2d`, whose `in_channels` are those of its first input."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    """`ConvTranspose3d`, whose `in_channels` are those of its first input."""

    cls_to_become = ConvTranspose3d


class _LazyNorm(_Lazy):
    counted = "num_features"
    num_features: int

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(0, eps, momentum, False, False, device, dtype, bias=False)
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self._await("weight", *(["bias"] if bias else []), device=device, dtype=dtype)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)
            self.num_batches_tracked = tensor(0, dtype=dtypes.default_int(), device=device)

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        names = "weight", "bias", "running_mean", "running_var"
        return dict.fromkeys(names, (self.num_features,))


class LazyBatchNorm1d(_LazyNorm, BatchNorm1d):
    """`BatchNorm1d`, whose `num_features` are those of its first input.

    >>> dg.nn.LazyBatchNorm1d()(dg.ones(2, 3)).shape
    dyngraph.Size([2, 3])
    """

    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(_LazyNorm, BatchNorm2d):
    """`BatchNorm2d`, whose `num_features` are those of its first input."""

    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(_LazyNorm, BatchNorm3d):
    """`BatchNorm3d`, whose `num_features` are those of its first input."""

    cls_to_become = BatchNorm3d


class LazyInstanceNorm1d(_LazyNorm, InstanceNorm1d):
    """`InstanceNorm1d`, whose `num_features` are those of its first input."""

    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(_LazyNorm, InstanceNorm2d):
    """`InstanceNorm2d`, whose `num_features` are those of its first input."""

    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(_LazyNorm, InstanceNorm3d):
    """`InstanceNorm3d`, whose `num_features` are those of its first input."""

    cls_to_become = InstanceNorm3d
