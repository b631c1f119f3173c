"""Equinox modules as dyngraph's, and dyngraph's as Equinox modules; needs the extra `equinox`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import jax

from dyngraph.interop.functions import as_functions
from dyngraph.interop.imported import Imported, missing, names_of
from dyngraph.nn.modules.module import Module

__all__ = ["from_equinox", "to_equinox"]


def _equinox() -> Any:
    try:
        import equinox
    except ImportError:
        raise missing("Equinox", "equinox") from None
    return equinox


class FromEquinox(Imported):
    """What `from_equinox` gives."""

    @staticmethod
    def compute(structure: Any, leaves: list[Any], args: Any, kwargs: Any) -> tuple[Any, list[Any]]:
        """The module put together and called."""
        tree, static, call = structure
        module = _equinox().combine(jax.tree.unflatten(tree, leaves), static.value)
        outputs = module(*args, **kwargs) if call is None else call(module, *args, **kwargs)
        return outputs, leaves

    def train(self, mode: bool = True) -> Any:
        """Puts the module in training mode, or out of it, by `equinox.nn.inference_mode`."""
        module = _equinox().nn.inference_mode(to_equinox(self), value=not mode)
        _, _, structure = _taken_apart(module, self._structure.value[2])
        self.set_structure(structure)
        return super().train(mode)


class _Static:
    """The part of an Equinox module that is no array, by what it prints and consists of."""

    def __init__(self, value: Any) -> None:
        self.value = value
        leaves, tree = jax.tree.flatten(value)
        self.parts = (tree, tuple(leaves))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Static) and self.parts == other.parts

    def __hash__(self) -> int:
        return hash(self.parts)


def _taken_apart(module: Any, call: Any) -> tuple[list[tuple[Any, Any]], Any, Any]:
    """Paths and arrays of a module, their structure, and all that is static."""
    arrays, static = _equinox().partition(module, _equinox().is_array)
    found, tree = jax.tree_util.tree_flatten_with_path(arrays)
    return found, tree, (tree, _Static(static), call)


def from_equinox(
    module: Any,
    *,
    call: Callable[..., Any] | None = None,
    static_argnames: str | Iterable[str] = (),
) -> FromEquinox:
    """An Equinox module as a dyngraph Module, over the same arrays.

    Floating point and complex arrays are parameters, others buffers, under their paths in the
    module. A call is one operator, of `module(...)` or of `call(module, ...)`, such as
    `lambda module, x: jax.vmap(module)(x)` for a batch; keyword arguments in `static_argnames` are
    static. Keys are arguments as they are in Equinox, and so is an `eqx.nn.State`, whose arrays
    come back as tensors. `train()` and `eval()` are `eqx.nn.inference_mode`. `to_equinox` gives the
    module with the values of now.

    Raises ImportError without Equinox.
    """
    equinox = _equinox()
    found, _, structure = _taken_apart(module, call)
    paths = [names_of(path) for path, _ in found]
    leaves = [leaf for _, leaf in found]
    trained = [bool(equinox.is_inexact_array(leaf)) for leaf in leaves]
    made = FromEquinox(structure, paths, leaves, trained)
    names = [static_argnames] if isinstance(static_argnames, str) else static_argnames
    made._static_argnames = frozenset(names)
    return made


def to_equinox(module: Module) -> Any:
    """A dyngraph Module as an Equinox module, over the same arrays.

    One that `from_equinox` made becomes what it was, with the values of now. Another is wrapped:
    `params` are its parameters and `buffers` its buffers, by name, and a call returns the output;
    `module.call(*args, key=None, mutable=True)` the output and the module with changed buffers.
    """
    equinox = _equinox()
    if isinstance(module, FromEquinox):
        tree, static, _ = module._structure.value
        return equinox.combine(jax.tree.unflatten(tree, module.leaves()), static.value)
    variables, apply = as_functions(module)

    class DyngraphModule(equinox.Module):
        """A dyngraph Module as an Equinox module."""

        params: dict[str, Any]
        buffers: dict[str, Any]

        def call(self, *args: Any, key: Any = None, mutable: bool = False, **kwargs: Any) -> Any:
            """The output; with `mutable`, also the module with the buffers after the call."""
            held = {"params": self.params, "buffers": self.buffers}
            outputs, buffers = apply(held, *args, key=key, mutable=True, **kwargs)
            if not mutable:
                return outputs
            return outputs, equinox.tree_at(lambda m: m.buffers, self, buffers)

        def __call__(self, *args: Any, key: Any = None, **kwargs: Any) -> Any:
            return self.call(*args, key=key, **kwargs)

    return DyngraphModule(variables["params"], variables["buffers"])
