"""Padding: a module adds elements at both ends of the last dims.

A padding is one number for all sides, or one for each: before and after the last dim, before and
after the one before it, and so on.
"""

from __future__ import annotations

from typing import Any, ClassVar

from dyngraph.nn import functional as F
from dyngraph.nn.modules.module import Module
from dyngraph.nn.modules.utils import _ntuple
from dyngraph.tensor import Tensor

__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]


class _Pad(Module):
    dims: ClassVar[int]
    mode: ClassVar[str]

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = _ntuple(2 * self.dims)(padding)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _CircularPad(_Pad):
    mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() - self.dims not in (1, 2):
            raise ValueError(
                f"expected {self.dims + 1}D or {self.dims + 2}D input (got {input.dim()}D input)"
            )
        return super().forward(input)


class CircularPad1d(_CircularPad):
    """Goes on at the other end; input: (C, L) or (N, C, L). Raises ValueError for others.

    >>> dg.nn.CircularPad1d(1)(dg.tensor([[1.0, 2.0, 3.0]]))
    tensor([[3., 1., 2., 3., 1.]])
    """

    dims = 1


class CircularPad2d(_CircularPad):
    """Goes on at the other end; input: (C, H, W) or (N, C, H, W). Raises ValueError for others.

    >>> dg.nn.CircularPad2d((1, 0, 0, 0))(dg.tensor([[[1.0, 2.0, 3.0]]]))
    tensor([[[3., 1., 2., 3.]]])
    """

    dims = 2


class CircularPad3d(_CircularPad):
    """Goes on at the other end; input: (C, D, H, W) or (N, C, D, H, W). Raises ValueError for
    others.

    >>> dg.nn.CircularPad3d((1, 0, 0, 0, 0, 0))(dg.tensor([[[[1.0, 2.0, 3.0]]]]))
    tensor([[[[3., 1., 2., 3.]]]])
    """

    dims = 3


class _ConstantPad(_Pad):
    mode = "constant"

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self.mode, self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPad):
    """Adds `value` at the ends of the last dim; input: (..., L).

    >>> dg.nn.ConstantPad1d(1, 9.0)(dg.tensor([[1.0, 2.0]]))
    tensor([[9., 1., 2., 9.]])
    """

    dims = 1


class ConstantPad2d(_ConstantPad):
    """Adds `value` at the ends of the last two dims; input: (..., H, W).

    >>> dg.nn.ConstantPad2d((1, 0, 0, 0), 9.0)(dg.tensor([[1.0, 2.0]]))
    tensor([[9., 1., 2.]])
    """

    dims = 2


class ConstantPad3d(_ConstantPad):
    """Adds `value` at the ends of the last three dims; input: (..., D, H, W).

    >>> dg.nn.ConstantPad3d((1, 0, 0, 0, 0, 0), 9.0)(dg.tensor([[[1.0, 2.0]]]))
    tensor([[[9., 1., 2.]]])
    """

    dims = 3


class _ZeroPad(_ConstantPad):
    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad1d(_ZeroPad, ConstantPad1d):
    """Adds zeros at the ends of the last dim; input: (..., L).

    >>> dg.nn.ZeroPad1d(1)(dg.tensor([[1.0, 2.0]]))
    tensor([[0., 1., 2., 0.]])
    """


class ZeroPad2d(_ZeroPad, ConstantPad2d):
    """Adds zeros at the ends of the last two dims; input: (..., H, W).

    >>> dg.nn.ZeroPad2d((1, 0, 0, 0))(dg.tensor([[1.0, 2.0]]))
    tensor([[0., 1., 2.]])
    """


class ZeroPad3d(_ZeroPad, ConstantPad3d):
    """Adds zeros at the ends of the last three dims; input: (..., D, H, W).

    >>> dg.nn.ZeroPad3d((1, 0, 0, 0, 0, 0))(dg.tensor([[[1.0, 2.0]]]))
    tensor([[[0., 1., 2.]]])
    """


class ReflectionPad1d(_Pad):
    """Goes back from the last element; input: (C, L) or (N, C, L).

    >>> dg.nn.ReflectionPad1d(1)(dg.tensor([[1.0, 2.0, 3.0]]))
    tensor([[2., 1., 2., 3., 2.]])
    """

    dims, mode = 1, "reflect"


class ReflectionPad2d(_Pad):
    """Goes back from the last element; input: (C, H, W) or (N, C, H, W).

    >>> dg.nn.ReflectionPad2d((1, 0, 0, 0))(dg.tensor([[[1.0, 2.0, 3.0]]]))
    tensor([[[2., 1., 2., 3.]]])
    """

    dims, mode = 2, "reflect"


class ReflectionPad3d(_Pad):
    """Goes back from the last element; input: (C, D, H, W) or (N, C, D, H, W).

    >>> dg.nn.ReflectionPad3d((1, 0, 0, 0, 0, 0))(dg.tensor([[[[1.0, 2.0, 3.0]]]]))
    tensor([[[[2., 1., 2., 3.]]]])
    """

    dims, mode = 3, "reflect"


class ReplicationPad1d(_Pad):
    """Repeats the last element; input: (C, L) or (N, C, L).

    >>> dg.nn.ReplicationPad1d(1)(dg.tensor([[1.0, 2.0, 3.0]]))
    tensor([[1., 1., 2., 3., 3.]])
    """

    dims, mode = 1, "replicate"


class ReplicationPad2d(_Pad):
    """Repeats the last element; input: (C, H, W) or (N, C, H, W).

    >>> dg.nn.ReplicationPad2d((1, 0, 0, 0))(dg.tensor([[[1.0, 2.0, 3.0]]]))
    tensor([[[1., 1., 2., 3.]]])
    """

    dims, mode = 2, "replicate"


class ReplicationPad3d(_Pad):
    """Repeats the last element; input: (C, D, H, W) or (N, C, D, H, W).

    >>> dg.nn.ReplicationPad3d((1, 0, 0, 0, 0, 0))(dg.tensor([[[[1.0, 2.0, 3.0]]]]))
    tensor([[[[1., 1., 2., 3.]]]])
    """

    dims, mode = 3, "replicate"
