"""Flax modules as dyngraph's, and dyngraph's as Flax modules; needs the extra `flax`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jax

from dyngraph.interop.functions import as_functions
from dyngraph.interop.imported import Imported, missing, names_of
from dyngraph.nn.modules.module import Module
from dyngraph.random import draw_key

__all__ = ["from_linen", "from_nnx", "to_linen", "to_nnx", "to_variables"]


def _nnx() -> Any:
    try:
        from flax import nnx
    except ImportError:
        raise missing("Flax", "flax") from None
    return nnx


def _linen() -> Any:
    try:
        from flax import linen
    except ImportError:
        raise missing("Flax", "flax") from None
    return linen


# --- nnx --------------------------------------------------------------------------------------


class FromNnx(Imported):
    """What `from_nnx` gives."""

    @staticmethod
    def compute(structure: Any, leaves: list[Any], args: Any, kwargs: Any) -> tuple[Any, list[Any]]:
        """The module put together, called, and taken apart."""
        nnx = _nnx()
        graphdef, tree, call = structure
        module = nnx.merge(graphdef, jax.tree.unflatten(tree, leaves))
        outputs = module(*args, **kwargs) if call is None else call(module, *args, **kwargs)
        paths = _by_path(jax.tree.unflatten(tree, leaves))
        after = _by_path(nnx.state(module))
        return outputs, [after.get(path, leaf) for path, leaf in paths.items()]

    def train(self, mode: bool = True) -> Any:
        """Puts the module in training mode, or out of it, as nnx's `train()` and `eval()` do."""
        nnx = _nnx()
        graphdef, tree, call = self._structure.value
        module = nnx.merge(graphdef, jax.tree.unflatten(tree, self.leaves()))
        if mode:
            module.train()
        else:
            module.eval()
        self.set_structure((nnx.split(module)[0], tree, call))
        return super().train(mode)


def _by_path(state: Any) -> dict[Any, Any]:
    found = jax.tree_util.tree_flatten_with_path(state)[0]
    return {jax.tree_util.keystr(path): leaf for path, leaf in found}


def from_nnx(
    module: Any,
    *,
    call: Callable[..., Any] | None = None,
    static_argnames: str | Iterable[str] = (),
) -> FromNnx:
    """A Flax nnx module as a dyngraph Module, over the same arrays.

    Its `nnx.Param`s are parameters; other variables are buffers, which calls update: batch
    statistics, and the keys and counts of `nnx.Rngs`. Names are the paths in the module. A call is
    one operator, of `module(...)` or of `call(module, ...)`; keyword arguments in
    `static_argnames` are static. `train()` and `eval()` are those of nnx. The module itself stays
    as it is: `to_nnx` gives one with the values of now.

    Raises ImportError without Flax.
    """
    nnx = _nnx()
    graphdef, state = nnx.split(module)
    found, tree = jax.tree_util.tree_flatten_with_path(state)
    paths = [_without_value(names_of(path)) for path, _ in found]
    params = _by_path(nnx.state(module, nnx.Param))
    trained = [jax.tree_util.keystr(path) in params for path, _ in found]
    made = FromNnx((graphdef, tree, call), paths, [leaf for _, leaf in found], trained)
    made._static_argnames = _names(static_argnames)
    return made


def _without_value(path: tuple[str, ...]) -> tuple[str, ...]:
    """A path without the last step, from a variable to its value."""
    return path[:-1] if path[-1] == "value" else path


def _names(static_argnames: str | Iterable[str]) -> frozenset[str]:
    return frozenset([static_argnames] if isinstance(static_argnames, str) else static_argnames)


def to_nnx(module: Module, *, into: Any = None, rngs: Any = None) -> Any:
    """A dyngraph Module as an nnx module, over the same arrays.

    One that `from_nnx` made becomes a module as it was, with the values of now; `into` is an nnx
    module whose variables get them instead. Another is wrapped: its parameters are `nnx.Param`s,
    its buffers `nnx.BatchStat`s, and random operators draw from `rngs`, an `nnx.Rngs`.
    """
    nnx = _nnx()
    if isinstance(module, FromNnx):
        graphdef, tree, _ = module._structure.value
        state = jax.tree.unflatten(tree, module.leaves())
        if into is None:
            return nnx.merge(graphdef, state)
        nnx.update(into, state)
        return into
    return _wrapped_nnx()(module, rngs)


def _wrapped_nnx() -> Any:
    nnx = _nnx()

    class DyngraphModule(nnx.Module):
        """A dyngraph Module as an nnx module."""

        def __init__(self, module: Module, rngs: Any) -> None:
            variables, self.apply = as_functions(module)
            self.params = nnx.Dict({n: nnx.Param(v) for n, v in variables["params"].items()})
            self.buffers = nnx.Dict({n: nnx.BatchStat(v) for n, v in variables["buffers"].items()})
            self.names = {kind: tuple(variables[kind]) for kind in variables}
            self.rngs = nnx.data(rngs)

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            held = {"params": self.params, "buffers": self.buffers}
            variables = {
                kind: {n: held[kind][n].get_value() for n in names}
                for kind, names in self.names.items()
            }
            key = None if self.rngs is None else self.rngs()
            outputs, buffers = self.apply(variables, *args, key=key, mutable=True, **kwargs)
            for name, value in buffers.items():
                if value is not variables["buffers"][name]:
                    self.buffers[name].set_value(value)
            return outputs

    return DyngraphModule


# --- linen ------------------------------------------------------------------------------------


class FromLinen(Imported):
    """What `from_linen` gives."""

    _options: Callable[[bool], Mapping[str, Any]] | None = None
    _rngs: tuple[str, ...] = ()

    @staticmethod
    def compute(structure: Any, leaves: list[Any], args: Any, kwargs: Any) -> tuple[Any, list[Any]]:
        """`module.apply`, with all collections but the parameters mutable in training."""
        module, tree, method, training, options = structure
        kwargs = {**dict(options), **kwargs}
        rngs = kwargs.pop("_rngs", None)
        variables = jax.tree.unflatten(tree, leaves)
        mutable = [name for name in variables if name != "params"] if training else []
        outputs = module.apply(
            variables, *args, rngs=rngs, method=method, mutable=mutable or False, **kwargs
        )
        if not mutable:
            return outputs, leaves
        outputs, changed = outputs
        after = _by_path({**variables, **changed})
        return outputs, [after[path] for path in _by_path(variables)]

    def call_options(self) -> dict[str, Any]:
        """A fresh key for each name of `rngs`."""
        return {"_rngs": {name: draw_key() for name in self._rngs}} if self._rngs else {}

    def train(self, mode: bool = True) -> Any:
        """Puts the module in training mode, or out of it: what `options` gives, and whether
        collections change."""
        module, tree, method, _, _ = self._structure.value
        self.set_structure((module, tree, method, mode, _options(self._options, mode)))
        return super().train(mode)


def _options(
    options: Callable[[bool], Mapping[str, Any]] | None, training: bool
) -> tuple[tuple[str, Any], ...]:
    return () if options is None else tuple(sorted(options(training).items()))


def from_linen(
    module: Any,
    variables: Mapping[str, Any],
    *,
    options: Callable[[bool], Mapping[str, Any]] | None = None,
    rngs: str | Iterable[str] = (),
    method: Any = None,
    static_argnames: str | Iterable[str] = (),
) -> FromLinen:
    """A Flax linen module with its `variables` as a dyngraph Module, over the same arrays.

    The collection "params" is its parameters; the others are buffers, which calls update in
    training. Names are the paths in the collections. A call is one operator, `module.apply` with
    `method`. `options(training)` gives the keyword arguments by which the module knows whether it
    trains, such as `lambda training: {"train": training}`; they are static, and so are those in
    `static_argnames`. For each name in `rngs`, each call draws a key from the default generator.
    `to_variables` gives the variables of now.

    Raises ImportError without Flax, and ValueError for variables without "params".
    """
    _linen()
    if "params" not in variables:
        raise ValueError(
            f"from_linen: variables has the collections {list(variables)}, but no 'params'. Pass "
            "what module.init(...) returned."
        )
    plain = {name: dict(collection) for name, collection in variables.items()}
    found, tree = jax.tree_util.tree_flatten_with_path(plain)
    paths = [names_of(path) for path, _ in found]
    trained = [path[0] == "params" for path in paths]
    short = [path[1:] for path in paths]
    if len(set(short)) == len(short):  # the collections' names are needed only where names clash
        paths = short
    structure = (module, tree, method, True, _options(options, True))
    made = FromLinen(structure, paths, [leaf for _, leaf in found], trained)
    made._options = options
    made._rngs = tuple(sorted(_names(rngs)))
    made._static_argnames = _names(static_argnames)
    return made


def to_variables(module: FromLinen) -> dict[str, Any]:
    """The variables of a module that `from_linen` made, with the values of now."""
    if not isinstance(module, FromLinen):
        raise TypeError(
            f"to_variables expects a module that from_linen made, got {type(module).__name__}. "
            "to_linen() gives module and variables of others."
        )
    return jax.tree.unflatten(module._structure.value[1], module.leaves())


def to_linen(module: Module) -> tuple[Any, dict[str, Any]]:
    """A dyngraph Module as a linen module and its variables, over the same arrays.

    One that `from_linen` made becomes what it was, with the values of now. Of another, parameters
    are in the collection "params", buffers in "buffers", and random operators draw from the rng
    "dropout", where `apply` gets one.
    """
    linen = _linen()
    if isinstance(module, FromLinen):
        return module._structure.value[0], to_variables(module)
    found, apply = as_functions(module)

    class DyngraphModule(linen.Module):
        """A dyngraph Module as a linen module."""

        @linen.compact
        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            params = {n: self.param(n, lambda _, v=v: v) for n, v in found["params"].items()}
            held = {
                n: self.variable("buffers", n, lambda v=v: v) for n, v in found["buffers"].items()
            }
            variables = {"params": params, "buffers": {n: v.value for n, v in held.items()}}
            key = self.make_rng("dropout") if self.has_rng("dropout") else None
            outputs, buffers = apply(variables, *args, key=key, mutable=True, **kwargs)
            if self.is_mutable_collection("buffers"):
                for name, variable in held.items():
                    variable.value = buffers[name]
            return outputs

    return DyngraphModule(), {kind: values for kind, values in found.items() if values}
