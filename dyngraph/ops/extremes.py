"""The largest and the smallest element, and where they are.

With `dim` one element is selected, and has the gradient; without it, and in `amax` and `amin`, all
elements of that value share it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from dyngraph import dtypes
from dyngraph.ops import choosing
from dyngraph.ops.arguments import reduced_dims, restore_dims
from dyngraph.ops.operator import define
from dyngraph.ops.out import write_out
from dyngraph.ops.rules import share_ties
from dyngraph.tensor import Tensor, canonical_dim


def _require_elements(where: str, array: Any, dim: Any) -> None:
    """Raises where an extreme of no elements is asked for."""
    if array.size:
        return
    if dim is None or dim == ():
        raise RuntimeError(
            f"{where}(): Expected reduction dim to be specified for input.numel() == 0. Specify "
            "the reduction dim with the 'dim' argument."
        )
    for d in reduced_dims(dim, array.ndim):
        if not array.shape[d]:
            raise IndexError(
                f"{where}(): Expected reduction dim {d} to have non-zero size. The tensor has "
                f"shape {list(array.shape)}."
            )


def _extreme(
    name: str, reduce: Callable[..., Any], node: str | None = None, doc: str = ""
) -> Callable[..., Tensor]:
    """The operator of a largest or smallest value, whose ties share the gradient."""

    def kernel(self: Any, *, dim: Any = None, keepdim: bool = False) -> Any:
        _require_elements(name, self, dim)
        return reduce(self, reduced_dims(dim, self.ndim), keepdims=keepdim)

    kernel.__module__ = __name__
    return define(name, kernel, node=node, self=share_ties, doc=doc)


amax = _extreme(
    "amax",
    jnp.max,
    doc="""The largest element, in all or along `dim`, an int or several; ties share the gradient.

    >>> dg.amax(dg.tensor([[1.0, 5.0], [3.0, 4.0]]), dim=1)
    tensor([5., 4.])
    """,
)
amin = _extreme(
    "amin",
    jnp.min,
    doc="""The smallest element, in all or along `dim`, an int or several; ties share the gradient.

    >>> dg.amin(dg.tensor([[1.0, 5.0], [3.0, 4.0]]), dim=1)
    tensor([1., 3.])
    """,
)
_max_of_all = _extreme("max", jnp.max, node="MaxBackward1")
_min_of_all = _extreme("min", jnp.min, node="MinBackward1")


def _select_along(find: Callable[[Any, int], Any], name: str) -> Callable[..., tuple[Any, Any]]:
    """The kernel that picks one element along a dim: `find(array, axis)` says which.

    `find` keeps the dim, with length 1. The kernel returns values and indices.
    """

    def kernel(self: Any, *, dim: int, keepdim: bool = False) -> tuple[Any, Any]:
        axis = canonical_dim(dim, self.ndim)
        _require_elements(name, self, axis)
        array = self if self.ndim else self[None]
        indices = find(array, axis)
        values = jnp.take_along_axis(array, indices, axis)
        shape = self.shape[:axis] + ((1,) if keepdim else ()) + self.shape[axis + 1 :]
        shape = shape if self.ndim else ()
        return values.reshape(shape), indices.reshape(shape).astype(dtypes.default_int().dtype)

    kernel.__module__ = __name__
    return kernel


def _at_indices(grads: Any, indices: Any, self_shape: Any, dim: int) -> Any:
    """The gradient of picked elements: each goes to where its element was picked."""
    if not self_shape:
        return grads[0]
    indices = restore_dims(indices, self_shape, dim)
    axis = canonical_dim(dim, len(self_shape))
    picked = lax.broadcasted_iota(indices.dtype, self_shape, axis) == indices
    return jnp.where(picked, restore_dims(grads[0], self_shape, dim), 0)


def selection(
    name: str, find: Callable[[Any, int], Any], node: str | None = None
) -> Callable[..., Any]:
    """The operator that picks one element along a dim, with the named tuple that it returns."""
    return define(
        name,
        _select_along(find, name),
        node=node,
        outputs=("values", "indices"),
        returns=name,
        self=_at_indices,
    )


_max_along = selection("max", lambda array, axis: jnp.argmax(array, axis, keepdims=True))
_min_along = selection("min", lambda array, axis: jnp.argmin(array, axis, keepdims=True))


def max(
    input: Any,
    dim: Any = None,
    keepdim: bool = False,
    *,
    other: Any = None,
    axis: int | None = None,
    keepdims: bool = False,
    out: Any = None,
) -> Any:
    """The largest of all elements; with `dim`, values and indices; with a tensor, `maximum`.

    NaN counts as largest. Ties share the gradient of the largest of all; along `dim` it goes to the
    index that is returned, the first. Raises where there are no elements.

    >>> dg.max(dg.tensor([[1.0, 5.0], [3.0, 4.0]]))
    tensor(5.)
    >>> dg.max(dg.tensor([[1.0, 5.0], [3.0, 4.0]]), dim=1).indices
    tensor([1, 1])
    """
    if out is not None:
        return write_out(
            max, out, (input, dim, keepdim or keepdims), {"other": other, "axis": axis}
        )
    if other is not None or isinstance(dim, (Tensor, jax.Array, np.ndarray)):
        return choosing.maximum(input, dim if other is None else other)
    dim = axis if dim is None else dim
    return _max_of_all(input) if dim is None else _max_along(input, dim, keepdim or keepdims)


def min(
    input: Any,
    dim: Any = None,
    keepdim: bool = False,
    *,
    other: Any = None,
    axis: int | None = None,
    keepdims: bool = False,
    out: Any = None,
) -> Any:
    """The smallest of all elements; with `dim`, values and indices; with a tensor, `minimum`.

    As `max` in everything else.

    >>> dg.min(dg.tensor([[1.0, 5.0], [3.0, 4.0]]))
    tensor(1.)
    >>> dg.min(dg.tensor([[1.0, 5.0], [3.0, 4.0]]), dim=0).values
    tensor([1., 4.])
    """
    if out is not None:
        return write_out(
            min, out, (input, dim, keepdim or keepdims), {"other": other, "axis": axis}
        )
    if other is not None or isinstance(dim, (Tensor, jax.Array, np.ndarray)):
        return choosing.minimum(input, dim if other is None else other)
    dim = axis if dim is None else dim
    return _min_of_all(input) if dim is None else _min_along(input, dim, keepdim or keepdims)


def _aminmax(self: Any, *, dim: int | None = None, keepdim: bool = False) -> tuple[Any, Any]:
    _require_elements("aminmax", self, dim)
    dims = reduced_dims(dim, self.ndim)
    return jnp.min(self, dims, keepdims=keepdim), jnp.max(self, dims, keepdims=keepdim)


aminmax = define(
    "aminmax",
    _aminmax,
    signature="self, *, dim=None, keepdim=False",
    outputs=("min", "max"),
    returns="aminmax",
    self=lambda grads, self, min, max, dim: (
        share_ties(grads[0], self, min, dim) + share_ties(grads[1], self, max, dim)
    ),
    doc="""The smallest and the largest element, in all or along `dim`; ties share the gradient.

    >>> dg.aminmax(dg.tensor([3.0, 1.0, 2.0])).max
    tensor(3.)
    """,
)


def _position(find: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The kernel of the index of a largest or smallest element."""

    def kernel(self: Any, *, dim: int | None = None, keepdim: bool = False) -> Any:
        if self.dtype == jnp.bool_:
            raise RuntimeError(f"{name}(): does not support bool input. Convert it by .int().")
        if not self.size and dim is None:
            raise IndexError(
                f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Pass a "
                "'dim' that is not empty."
            )
        axis = None if dim is None else canonical_dim(dim, self.ndim)
        _require_elements(name, self, axis)
        found = find(self, axis if self.ndim else None, keepdims=keepdim)
        return found.astype(dtypes.default_int().dtype)

    kernel.__module__ = __name__
    return kernel


argmax = define(
    "argmax",
    _position(jnp.argmax, "argmax"),
    differentiable=False,
    doc="""The index of the largest element: along `dim`, or of all in their order in memory.

    The first where several are largest; NaN counts as largest.

    >>> dg.argmax(dg.tensor([[1.0, 5.0], [3.0, 4.0]]))
    tensor(1)
    """,
)
argmin = define(
    "argmin",
    _position(jnp.argmin, "argmin"),
    differentiable=False,
    doc="""The index of the smallest element: along `dim`, or of all in their order in memory.

    The first where several are smallest; NaN counts as smallest.

    >>> dg.argmin(dg.tensor([[1.0, 5.0], [3.0, 4.0]]), dim=1)
    tensor([0, 0])
    """,
)


__all__ = [
    "amax",
    "amin",
    "aminmax",
    "argmax",
    "argmin",
    "max",
    "min",
]

METHODS = tuple(__all__)
"""The functions of this file that are methods of Tensor too."""
