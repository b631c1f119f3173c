"""The functions of `jax.numpy` that take a function: it is called on tensors, and recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp

from dyngraph.numpy.namespace import maker
from dyngraph.numpy.recorded import record
from dyngraph.tensor import Tensor, canonical_dim

_asarray = record(jnp.asarray, "numpy.asarray", __name__)
_astype = record(jnp.astype, "numpy.astype", __name__)
_expand_dims = record(jnp.expand_dims, "numpy.expand_dims", __name__)
_full_like = record(jnp.full_like, "numpy.full_like", __name__)
_moveaxis = record(jnp.moveaxis, "numpy.moveaxis", __name__)
_nonzero = record(jnp.nonzero, "numpy.nonzero", __name__)
_reshape = record(jnp.reshape, "numpy.reshape", __name__)
_select = record(jnp.select, "numpy.select", __name__)
_stack = record(jnp.stack, "numpy.stack", __name__)
_unstack = record(jnp.unstack, "numpy.unstack", __name__)
_indices = maker(jnp.indices)
_ones = maker(jnp.ones)


def apply_along_axis(
    func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any
) -> Tensor:
    """`func1d` of every row along `axis`, in a Python loop; its result takes the axis' place.

    >>> x = dg.tensor([[1.0, 2.0], [3.0, 5.0]])
    >>> dg.numpy.apply_along_axis(lambda row: row[1] - row[0], 1, x)
    tensor([1., 2.])
    """
    arr = _asarray(arr)
    axis = canonical_dim(axis, arr.ndim)
    last = _moveaxis(arr, axis, -1)
    lead = tuple(last.shape[:-1])
    rows = _unstack(_reshape(last, (-1, last.shape[-1])))
    results = _stack([_asarray(func1d(row, *args, **kwargs)) for row in rows])
    results = _reshape(results, (*lead, *results.shape[1:]))
    new = results.ndim - len(lead)
    return _moveaxis(results, tuple(range(len(lead), results.ndim)), tuple(range(axis, axis + new)))


def apply_over_axes(func: Callable[[Any, int], Any], a: Any, axes: Any) -> Tensor:
    """`func(a, axis)` for one axis after the other, the dims that it removes put back.

    Raises ValueError where it removes more than one.

    >>> dg.numpy.apply_over_axes(dg.numpy.sum, dg.ones(2, 3), [0, 1])
    tensor([[6.]])
    """
    a = _asarray(a)
    for axis in [axes] if isinstance(axes, int) else axes:
        result = func(a, axis)
        if result.ndim == a.ndim - 1:
            result = _expand_dims(result, axis)
        if result.ndim != a.ndim:
            raise ValueError(
                f"func must keep the {a.ndim} dims of its input or remove one, but gave a result "
                f"of {result.ndim} dims for axis {axis}. Reduce over that axis only."
            )
        a = result
    return a


def fromfunction(
    function: Callable[..., Any], shape: Any, *, dtype: Any = float, **kwargs: Any
) -> Any:
    """`function` of the indices of each element, one tensor a dim.

    >>> dg.numpy.fromfunction(lambda i, j: 10 * i + j, (2, 2), dtype=int)
    tensor([[ 0,  1],
            [10, 11]])
    """
    return function(*_indices(tuple(shape), getattr(dtype, "dtype", dtype)), **kwargs)


def mask_indices(n: int, mask_func: Callable[..., Any], k: int = 0) -> tuple[Tensor, ...]:
    """Where `mask_func`, such as `triu`, leaves elements of an n x n matrix.

    >>> dg.numpy.mask_indices(2, dg.numpy.triu)
    (tensor([0, 0, 1]), tensor([0, 1, 1]))
    """
    return _nonzero(mask_func(_ones((n, n)), k))


def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kwargs: Any) -> Tensor:
    """Each function of `funclist` where its condition holds; the last that holds wins.

    A function beyond the conditions is for the rest, which is 0 without one. Every function sees
    all of `x`, so one that is NaN or infinite elsewhere gives NaN gradients there.

    >>> x = dg.tensor([-1.0, 2.0], requires_grad=True)
    >>> dg.numpy.piecewise(x, [x < 0, x >= 0], [lambda v: -v, lambda v: v * v]).sum().backward()
    >>> x.grad
    tensor([-1.,  4.])
    """
    x = _asarray(x)
    is_list = isinstance(condlist, (list, tuple)) and not isinstance(condlist[0], bool)
    conditions = [_asarray(c) for c in (condlist if is_list else [condlist])]
    if not is_list and conditions[0].ndim > x.ndim:
        conditions = list(_unstack(conditions[0]))
    functions = list(funclist)
    if len(functions) == len(conditions) + 1:
        rest = functions.pop()
    elif len(functions) == len(conditions):
        rest = 0
    else:
        raise ValueError(
            f"with {len(conditions)} condition(s), either {len(conditions)} or "
            f"{len(conditions) + 1} functions are expected; got {len(functions)}. Give one for "
            "each condition, and at most one for the rest."
        )

    def value(function: Any) -> Tensor:
        if not callable(function):
            return _full_like(x, function)
        return _astype(_asarray(function(x, *args, **kwargs)), x.dtype)

    choices = [value(f) for f in functions]
    return _select(conditions[::-1], choices[::-1], value(rest))


__all__ = [
    "apply_along_axis",
    "apply_over_axes",
    "fromfunction",
    "mask_indices",
    "piecewise",
]
