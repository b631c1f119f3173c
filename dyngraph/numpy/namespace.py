"""Which names of `jax.numpy` dyngraph has, and as what: recorded, passed on, or left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any

import jax.numpy as jnp

from dyngraph.numpy.recorded import plain, record, wrapped
from dyngraph.tensor import Tensor

LEFT_OUT = {
    "frompyfunc": "it makes a ufunc of a Python function on scalars. Write the function on tensors",
    "vectorize": "it maps a function over examples. Write the function on tensors",
    "fromiter": "JAX refuses it. Pass numpy.fromiter(...) to dyngraph.from_numpy",
    "fromfile": "it reads files. Pass numpy.fromfile(...) to dyngraph.from_numpy",
    "load": "it reads files. Pass numpy.load(...) to dyngraph.from_numpy",
    "save": "it writes files. Pass tensor.numpy() to numpy.save",
    "savez": "it writes files. Pass tensor.numpy() to numpy.savez",
    "get_printoptions": "it is about numpy's arrays. Tensors have dyngraph.set_printoptions",
    "printoptions": "it is about numpy's arrays. Tensors have dyngraph.set_printoptions",
    "set_printoptions": "it is about numpy's arrays. Tensors have dyngraph.set_printoptions",
}
"""Public callables of `jax.numpy` that dyngraph does not have, and why."""

PLAIN = frozenset(
    """
    array_repr array_str broadcast_shapes can_cast einsum_path iscomplexobj isdtype isrealobj
    isscalar issubdtype iterable ndim promote_types result_type shape size
    """.split()
)
"""Functions whose answer is no array: numbers, shapes, dtypes, text."""


class Ufunc:
    """A function of each element, recorded, with the methods of `jax.numpy.ufunc`.

    >>> dg.numpy.add.reduce(dg.tensor([1.0, 2.0]))
    tensor(3.)
    """

    def __init__(self, function: Any, name: str, module: str) -> None:
        self.twin = function
        self._call = record(function, name, module)
        self.__name__, self.__doc__ = self._call.__name__, self._call.__doc__
        self.__signature__ = self._call.__signature__  # type: ignore[attr-defined]
        self.recorded = self._call.recorded  # type: ignore[attr-defined]
        for method in ("accumulate", "at", "outer", "reduce", "reduceat"):
            setattr(self, method, record(getattr(function, method), f"{name}.{method}", module))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<dyngraph.numpy.ufunc '{self.__name__}'>"

    def __reduce__(self) -> str:
        return self.__name__

    @property
    def nin(self) -> int:
        """How many arrays it takes."""
        return self.twin.nin

    @property
    def nout(self) -> int:
        """How many it returns."""
        return self.twin.nout

    @property
    def nargs(self) -> int:
        """Both together."""
        return self.twin.nargs

    @property
    def identity(self) -> Any:
        """What `reduce` gives for no elements."""
        return self.twin.identity


class Subscripted:
    """`r_`, `c_`, `mgrid` and `ogrid`, which are written with brackets."""

    def __init__(self, twin: Any, name: str) -> None:
        def subscript(key: Any) -> Any:
            return twin[key]

        self._get = record(subscript, name, __name__)

    def __getitem__(self, key: Any) -> Any:
        return self._get(key)


def names(module: ModuleType, left_out: Iterable[str] = ()) -> list[str]:
    """The public names of a module of JAX that dyngraph has, sorted."""
    return sorted({n for n in dir(module) if not n.startswith("_")} - set(left_out))


def member(module: ModuleType, name: str, ours: str, left_out: Mapping[str, str]) -> Any:
    """What dyngraph's module `ours` has by the name of a member of JAX's `module`."""
    if name.startswith("_") or name not in dir(module):
        raise AttributeError(f"module {ours!r} has no attribute {name!r}")
    if name in left_out:
        raise AttributeError(f"{ours} leaves out {name!r}: {left_out[name]}.")
    value = getattr(module, name)
    dotted = f"{module.__name__.removeprefix('jax.')}.{name}"
    if value is jnp.ndarray:
        return Tensor
    if value is jnp.ufunc:
        return Ufunc
    if isinstance(value, jnp.ufunc):
        return Ufunc(value, dotted, ours)
    if name in ("c_", "mgrid", "ogrid", "r_"):
        return Subscripted(value, dotted)
    if not is_function(value):
        return value
    return plain(value, dotted, ours) if name in PLAIN else record(value, dotted, ours)


def is_function(value: Any) -> bool:
    """Whether a member is a function: not a constant, a dtype, a class or a module."""
    is_dtype = isinstance(getattr(value, "dtype", None), jnp.dtype)
    return callable(value) and not isinstance(value, type) and not is_dtype


def maker(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of plain arguments, whose arrays become tensors."""
    return lambda *args, **kwargs: wrapped(function(*args, **kwargs))
