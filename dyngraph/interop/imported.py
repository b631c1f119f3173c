"""Imported: a module of another library as a Module, with its arrays as parameters and buffers."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from dyngraph.interop.from_jax import from_jax
from dyngraph.interop.leaves import Leaf, describe, is_key, with_keys, without_keys
from dyngraph.kernels import is_differentiable
from dyngraph.nn.modules.module import Module
from dyngraph.nn.parameter import Parameter
from dyngraph.pure import current_pure
from dyngraph.storage import cell_of
from dyngraph.tensor import Tensor, wrap

Path = tuple[str, ...]


class Structure:
    """What a module is beside its arrays: static, and known by identity."""

    def __init__(self, value: Any) -> None:
        self.value = value


class Imported(Module):
    """A module whose `forward` is one recorded operator, a function of its arrays and arguments.

    Its arrays are parameters and buffers under their paths in the other library, and what a call
    changes of the buffers is written to them. `structure` is what the module is beside its arrays,
    and `compute` calls it.
    """

    def __init__(
        self, structure: Any, paths: Sequence[Path], leaves: Sequence[Any], trained: Sequence[bool]
    ) -> None:
        super().__init__()
        self._paths = list(paths)
        self._whats: list[Leaf] = [describe(leaf) for leaf in leaves]
        self._structures: dict[Hashable, Structure] = {}
        self._static_argnames: frozenset[str] = frozenset()
        self._recorded: Callable[..., Any] | None = None
        self.set_structure(structure)
        for path, leaf, what, train in zip(paths, leaves, self._whats, trained, strict=True):
            holder = self._holder(path, make=True)
            array = jnp.asarray(without_keys(leaf, what))
            if train:
                learns = is_differentiable(array.dtype)
                holder.register_parameter(path[-1], Parameter(wrap(array), requires_grad=learns))
            else:
                holder.register_buffer(path[-1], wrap(array))

    def set_structure(self, value: Any) -> None:
        """Makes the module another in what is static, such as whether it trains."""
        self._structure = self._structures.setdefault(value, Structure(value))

    def _holder(self, path: Path, *, make: bool = False) -> Module:
        """The module in the tree of names that has what `path` leads to."""
        holder: Module = self
        for name in path[:-1]:
            if make and name not in holder._modules:
                holder.add_module(name, Module())
            holder = holder._modules[name]
        return holder

    def tensors(self) -> list[Tensor]:
        """Parameters and buffers, in the order of the other library's leaves."""
        found = []
        for path in self._paths:
            holder = self._holder(path)
            members = holder._parameters if path[-1] in holder._parameters else holder._buffers
            found.append(members[path[-1]])
        return found

    def leaves(self) -> list[Any]:
        """The arrays as the other library has them, which share the tensors' memory."""
        pairs = zip(self.tensors(), self._whats, strict=True)
        return [with_keys(tensor._cell.array, what) for tensor, what in pairs]

    @staticmethod
    def compute(structure: Any, leaves: list[Any], args: Any, kwargs: Any) -> tuple[Any, list[Any]]:
        """The outputs and the leaves after the call; a subclass has it."""
        raise NotImplementedError

    def call_options(self) -> dict[str, Any]:
        """Further arguments by name, which are no part of the caller's."""
        return {}

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes."""
        if self._recorded is None:
            self._recorded = _recorded(type(self).compute, self._whats, self._get_name())
        names = self._static_argnames
        static = tuple((n, v) for n, v in sorted(kwargs.items()) if n in names)
        dynamic = {n: v for n, v in kwargs.items() if n not in names} | self.call_options()
        tensors = self.tensors()
        outputs, changed = self._recorded((self._structure, static), tensors, args, dynamic)
        for place, value in changed.items():
            _renew(tensors[place], value._cell.array)
        return outputs

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_recorded": None}


def _renew(buffer: Tensor, array: Any) -> None:
    """Gives a buffer another value. What a node saved of it, a key for example, stays valid: it is
    a snapshot, and the call itself made the change."""
    pure = current_pure()
    if pure is not None and pure.is_outside(buffer._cell.array):
        pure.renew(buffer._cell, array)  # which a pure function refuses
        return
    version = buffer._cell.version
    buffer._cell = cell_of(array, None if version is None else version + 1)


def _recorded(compute: Callable[..., Any], whats: list[Leaf], name: str) -> Callable[..., Any]:
    """The operator of an imported module, from its arrays, as tensors, and its arguments."""

    def module(static: Any, values: list[Any], args: Any, kwargs: dict[str, Any]) -> Any:
        structure, named = static
        leaves = [with_keys(v, w) for v, w in zip(values, whats, strict=True)]
        outputs, after = compute(structure.value, leaves, args, {**kwargs, **dict(named)})
        changed = {
            place: jax.lax.stop_gradient(jax.random.key_data(new) if is_key(new) else new)
            for place, (old, new) in enumerate(zip(leaves, after, strict=True))
            if new is not old
        }
        return outputs, changed

    module.__name__ = module.__qualname__ = name
    return from_jax(module, static_argnames="static")


def names_of(path: Iterable[Any]) -> Path:
    """The words of a path in a pytree."""
    words = []
    for key in path:
        word = getattr(key, "key", getattr(key, "name", getattr(key, "idx", key)))
        words.append(str(word).replace(".", "_"))
    return tuple(words)


def missing(package: str, extra: str) -> ImportError:
    """The error for a library that is not installed."""
    return ImportError(
        f"dyngraph.interop.{extra} needs {package}, which is not installed. Install it by "
        f"pip install 'dyngraph[{extra}]'."
    )
