"""where_safe: each branch of a `where` computed only from the elements that take it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dyngraph.ops.choosing import where
from dyngraph.ops.comparison import logical_not
from dyngraph.tensor import Tensor


def where_safe(
    condition: Tensor,
    f: Callable[..., Any] | Tensor | float,
    g: Callable[..., Any] | Tensor | float,
    *args: Tensor,
) -> Tensor:
    """`where(condition, f(*args), g(*args))` whose gradient no element spoils that isn't chosen.

    In `where(x > 0, x.log(), 0.0)` the logarithm of 0 is left out, but its derivative is infinite,
    and the 0 that `where` sends it makes NaN of that. Here the arguments of `f` have, where the
    condition does not hold, the value of the first element for which it does, and those of `g` the
    other way round. `f` or `g` may also be a number or a tensor. `args` must have, or broadcast
    to, the shape of the condition.

    >>> x = dg.tensor([0.0, 4.0], requires_grad=True)
    >>> y = dg.where_safe(x > 0, dg.sqrt, 0.0, x)
    >>> y
    tensor([0., 2.], grad_fn=<WhereBackward0>)
    >>> y.sum().backward()
    >>> x.grad
    tensor([0.0000, 0.2500])
    """
    first = _branch(f, condition, args)
    second = _branch(g, logical_not(condition), args)
    return where(condition, first, second)


def _branch(function: Any, chosen: Tensor, args: tuple[Tensor, ...]) -> Any:
    if not callable(function) or isinstance(function, Tensor):
        return function
    return function(*[where(chosen, a, _first_chosen(chosen, a)) for a in args])


def _first_chosen(chosen: Tensor, arg: Tensor) -> Tensor:
    """The first element of `arg` that is chosen, without history; the very first if none is."""
    if not chosen.numel():
        return arg.detach()
    values = arg.detach().expand(chosen.shape).reshape(-1)
    return values[chosen.reshape(-1).int().argmax()]


__all__ = ["where_safe"]
METHODS = ()
