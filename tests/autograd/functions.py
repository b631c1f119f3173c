"""Functions that several test files use, and a short way to make one for a single test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dyngraph as dg


def make(
    forward: Callable[..., Any],
    backward: Callable[..., Any] | None = None,
    name: str = "Custom",
    **methods: Any,
) -> Any:
    """A Function class of these static methods; what can't be called is set as it is."""
    body = {"forward": forward, **({} if backward is None else {"backward": backward}), **methods}
    static = {key: staticmethod(m) if callable(m) else m for key, m in body.items()}
    return type(name, (dg.autograd.Function,), static)


def pass_on(ctx: Any, *grads: Any) -> Any:
    """A backward that returns what it gets."""
    first, *rest = grads
    return grads if rest else first


class Double(dg.autograd.Function):
    """Saves nothing."""

    @staticmethod
    def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: dg.Tensor) -> dg.Tensor:
        return grad * 2


class Square(dg.autograd.Function):
    """Saves its input, and has a tangent."""

    @staticmethod
    def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, grad: dg.Tensor) -> dg.Tensor:
        (x,) = ctx.saved_tensors
        return grad * 2 * x

    @staticmethod
    def jvp(ctx: Any, tangent: dg.Tensor) -> dg.Tensor:
        (x,) = ctx.saved_tensors
        return tangent * 2 * x


class Exp(dg.autograd.Function):
    """Saves its output."""

    @staticmethod
    def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, grad: dg.Tensor) -> dg.Tensor:
        (y,) = ctx.saved_tensors
        return grad * y


class Product(dg.autograd.Function):
    """Two inputs, with `setup_context`."""

    @staticmethod
    def forward(x: dg.Tensor, y: dg.Tensor) -> dg.Tensor:
        return x * y

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: dg.Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: dg.Tensor) -> tuple[dg.Tensor, dg.Tensor]:
        x, y = ctx.saved_tensors
        return grad * y, grad * x


class DoubleInPlace(dg.autograd.Function):
    """Writes to its input, and says so."""

    @staticmethod
    def forward(ctx: Any, x: dg.Tensor) -> dg.Tensor:
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx: Any, grad: dg.Tensor) -> dg.Tensor:
        return grad * 2
