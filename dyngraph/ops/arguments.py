"""What operator families share in reading arguments: dims, shapes, dtypes, lists of tensors.

These run while a kernel is traced, so what they check costs a call nothing.
"""

from __future__ import annotations

import functools
import inspect
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from dyngraph import dtypes
from dyngraph.dispatch import write_dispatcher
from dyngraph.kernels import OperatorSpec, Rule
from dyngraph.storage import Place
from dyngraph.tensor import Tensor, canonical_dim, new_tensor

MAX_COUNTS = 256
"""For how many lengths of its list a variadic operator keeps dispatchers."""


def titled(function: Callable[..., Any], name: str, doc: str) -> Callable[..., Any]:
    """The function under a name and docstring of its own: one of several that are written once."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


# --- dims -------------------------------------------------------------------------------------


def as_ints(value: Any) -> tuple[int, ...]:
    """An argument that may be one int or several, as a tuple; TypeError for anything else."""
    try:
        if isinstance(value, (tuple, list)):
            return tuple(operator.index(v) for v in value)
        return (operator.index(value),)
    except TypeError:
        raise TypeError(
            f"expected an int or a tuple of ints, got {value!r} ({type(value).__name__}). "
            "Pass whole numbers, by int() where need be."
        ) from None


def distinct_dims(dims: Any, ndim: int) -> tuple[int, ...]:
    """Dims counted from the front, in the order given; RuntimeError where one is named twice."""
    found = tuple(canonical_dim(d, ndim) for d in as_ints(dims))
    for position, dim in enumerate(found):
        if dim in found[:position]:
            raise RuntimeError(
                f"dim {dim} appears multiple times in the list of dims {list(as_ints(dims))}. Name "
                "each dim once."
            )
    return found


def reduced_dims(dim: Any, ndim: int) -> tuple[int, ...]:
    """The dims that a reduction removes, counted from the front: all of them for None and ()."""
    if dim is None or dim == ():
        return tuple(range(ndim))
    dims = distinct_dims(dim, ndim)
    return dims if ndim else ()


def reduced_count(dim: Any, shape: Sequence[int]) -> int:
    """How many elements of a tensor of `shape` a reduction makes one of."""
    return math.prod(shape[d] for d in reduced_dims(dim, len(shape)))


def restore_dims(reduced: jax.Array, shape: Sequence[int], dim: Any) -> jax.Array:
    """What a reduction over `dim` of a tensor of `shape` gave, with length 1 at each such dim."""
    dims = reduced_dims(dim, len(shape))
    return reduced.reshape([1 if d in dims else n for d, n in enumerate(shape)])


def spread(grad: jax.Array, shape: Sequence[int], dim: Any) -> jax.Array:
    """The gradient of a sum over `dim`: the same for each element that was added up."""
    return jnp.broadcast_to(restore_dims(grad, shape, dim), shape)


# --- dtypes -----------------------------------------------------------------------------------


def summed_dtype(array: jax.Array, dtype: Any) -> Any:
    """What a sum or product is computed in: `dtype`, else the widest integer for integers."""
    if dtype is not None:
        return dtypes.as_dtype(dtype).dtype
    return array.dtype if is_inexact(array) else dtypes.default_int().dtype


def is_inexact(array: jax.Array) -> bool:
    """Whether the dtype is floating point or complex."""
    return bool(jnp.issubdtype(array.dtype, jnp.inexact))


def require_float(where: str, array: jax.Array) -> None:
    """RuntimeError for integers and bools."""
    if not is_inexact(array):
        raise RuntimeError(
            f"{where}() is not implemented for {array.dtype}: expected a floating point dtype. "
            "Convert the input by .float()."
        )


def widened(array: jax.Array) -> jax.Array:
    """16-bit floats as float32, so that sums of many of them are right; others as they are."""
    return array.astype(jnp.float32) if array.dtype.itemsize == 2 else array


def floating(array: Any) -> Any:
    """Integers and bools in the default dtype, as PyTorch has them in functions of real numbers."""
    return array if is_inexact(array) else array.astype(dtypes.get_default_dtype().dtype)


def computed_wide(function: Callable[..., Any], home: str) -> Callable[[Any], Any]:
    """A kernel of one array, computed in float32 at least; `home` is the file it belongs to."""

    def kernel(self: Any) -> Any:
        self = floating(self)
        return function(widened(self)).astype(self.dtype)

    kernel.__module__ = home
    return kernel


def float_pair(a: Any, b: Any) -> tuple[Any, Any, Any]:
    """Both operands in one floating point dtype, at least float32; and the result's dtype."""
    dtype = jnp.result_type(a, b)
    if not jnp.issubdtype(dtype, jnp.inexact):
        dtype = dtypes.get_default_dtype().dtype
    return widened(a.astype(dtype)), widened(b.astype(dtype)), dtype


# --- parameters -------------------------------------------------------------------------------


def with_parameters(
    function: Callable[..., Any], inputs: Sequence[str], statics: Sequence[str] = ()
) -> Callable[..., Any]:
    """`function`, which takes `*inputs, **statics`, with these parameters for `define` to read."""

    def named(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    kind = inspect.Parameter
    named.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [kind(n, kind.POSITIONAL_OR_KEYWORD) for n in inputs]
        + [kind(n, kind.KEYWORD_ONLY) for n in statics]
    )
    named.__module__ = function.__module__
    return named


@functools.lru_cache(maxsize=8192)
def place(*numbers: int) -> Tensor:
    """Positions that change from call to call, as an input of an operator."""
    return new_tensor(Place(numbers))


# --- lists of tensors -------------------------------------------------------------------------


def define_variadic(
    name: str, function: Callable[..., Any], rule: Callable[[int], Rule] | None = None
) -> Callable[..., Tensor]:
    """An operator on a list of tensors, from `function(*tensors, <statics>)`.

    It is called with the list, then the statics. Dispatchers have their inputs written out, so
    there is one for each length of the list. `rule(i)` makes the rule of the tensor at position i;
    without it the rules are JAX's.
    """
    parameters = inspect.signature(function).parameters.values()
    statics = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]

    @functools.lru_cache(MAX_COUNTS)
    def dispatcher(count: int) -> Callable[..., Tensor]:
        names = [f"tensor{i}" for i in range(count)]
        rules = {n: rule(i) for i, n in enumerate(names)} if rule is not None else {}
        spec = OperatorSpec(name, function, inputs=names, statics=statics, rules=rules)
        return write_dispatcher(spec, ", ".join([*names, *statics]))

    def run(tensors: Sequence[Any], *given: Any) -> Tensor:
        if isinstance(tensors, Tensor):
            raise TypeError(
                f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor. "
                "Put the tensors into a list; unbind() makes one of the rows of a tensor."
            )
        return dispatcher(len(tensors))(*tensors, *given)

    return run
