"""from_jax: a function of jax arrays as one recorded operator on tensors.

# Note [A traced function is the operator]
A call's structure, its static values, and the shapes and dtypes of its arrays decide what is
traced. The function runs once for each of these, in `jax.make_jaxpr`; the jaxpr then is the kernel,
and what its backward and its tangents are made from, by JAX's own rules: those of `custom_vjp`,
`custom_jvp` and Pallas kernels among them. A jaxpr holds nothing that the function closed over but
constants.
"""

from __future__ import annotations

import functools
import inspect
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import jax

from dyngraph import modes
from dyngraph.dispatch import lift, write_dispatcher
from dyngraph.interop.leaves import (
    Key,
    Leaf,
    Static,
    describe,
    fill,
    name_of,
    with_keys,
    without_keys,
)
from dyngraph.kernels import OperatorSpec
from dyngraph.tensor import Tensor
from dyngraph.tracing import Tracer, jaxpr_as_fun
from dyngraph.ways_out import closed_over, refusing_tensors

MAX_WAYS = 1024
"""For how many kinds of call a function remembers what it traced."""


class Way(NamedTuple):
    """How calls of one kind are run: the dispatcher, and what comes out."""

    dispatcher: Callable[..., Any] | None
    tree: Any
    leaves: tuple[Leaf, ...]


def from_jax(
    fn: Callable[..., Any] | None = None, *, static_argnames: str | Iterable[str] = ()
) -> Any:
    """The function of jax arrays `fn` as one operator on tensors; also a decorator.

    Arguments and results are pytrees. Tensors, arrays and Python's numbers are inputs, and so are
    PRNG keys; other values (None, strings, functions) are static, as are all that are given for the
    parameters in `static_argnames`: they must be hashable, and others compile anew. The function
    is traced once for each structure, set of static values, shapes and dtypes. Arrays in the
    results are tensors; keys, and what is no array, are given as they are.

    A call is one node of the graph, with JAX's derivative of any order, and saves those inputs
    which that reads. Complex gradients are the conjugate of JAX's, as everywhere. Tensors that `fn`
    closes over would be constants, so they are refused: pass them as arguments.

    Raises TypeError for a static value that can't be hashed, a tensor that `fn` closes over or
    returns, and a name in `static_argnames` that is no parameter; and what JAX raises of `fn`.

    >>> softplus = dg.from_jax(lambda p: jnp.logaddexp(p["x"], 0.0))
    >>> x = dg.zeros(2, requires_grad=True)
    >>> softplus({"x": x}).sum().backward()
    >>> x.grad
    tensor([0.5000, 0.5000])
    """
    if fn is None:
        return functools.partial(from_jax, static_argnames=static_argnames)
    recorded = Recorded(fn, static_argnames)

    @functools.wraps(fn, updated=())
    def run(*args: Any, **kwargs: Any) -> Any:
        return recorded.run(args, kwargs)

    run.recorded = recorded  # type: ignore[attr-defined]
    return run


class Recorded:
    """What `from_jax` keeps of one function: what it traced."""

    def __init__(self, function: Callable[..., Any], static_argnames: str | Iterable[str]) -> None:
        self.function = function
        self.name = name_of(function)
        names = [static_argnames] if isinstance(static_argnames, str) else list(static_argnames)
        self.static_names = frozenset(names)
        self.static_places = _places(function, self.name, names)
        self.ways: OrderedDict[Any, Way] = OrderedDict()

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """One call."""
        if self.static_names:
            args, kwargs = self.with_statics(args, kwargs)
        leaves, tree = jax.tree.flatten((args, kwargs))
        whats = tuple([describe(leaf) for leaf in leaves])
        inputs = [
            leaf if isinstance(leaf, Tensor) else lift(without_keys(leaf, w), self.name, "leaf")
            for leaf, w in zip(leaves, whats, strict=True)
            if type(w) is not Static
        ]
        arrays = [x._cell.array if isinstance(x, Tensor) else x for x in inputs]
        key = (tree, whats, _settings(), *[(a.shape, a.dtype, a.weak_type) for a in arrays])
        try:
            way = self.ways.get(key)
        except TypeError:
            raise self.unhashable(leaves, whats) from None
        if way is None:
            way = self.trace(key, tree, whats, arrays)
        try:
            results = way.dispatcher(*inputs) if way.dispatcher else ()
        except Exception as error:
            if modes.is_recording():
                error.add_note(
                    f"This happened in from_jax({self.name}), while its derivative was traced. "
                    "Where JAX has none, define one by jax.custom_vjp, or call it under no_grad()."
                )
            raise
        values = [
            with_keys(r._cell.array, w) if type(w) is Key else r
            for r, w in zip(
                [results] if isinstance(results, Tensor) else results,
                [w for w in way.leaves if type(w) is not Static],
                strict=True,
            )
        ]
        rest = iter(values)
        return jax.tree.unflatten(
            way.tree, [w.value if type(w) is Static else next(rest) for w in way.leaves]
        )

    def with_statics(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments, those that are static each as one leaf."""
        places, names = self.static_places, self.static_names
        return (
            tuple([_Whole(a) if i in places else a for i, a in enumerate(args)]),
            {n: _Whole(a) if n in names else a for n, a in kwargs.items()},
        )

    def trace(self, key: Any, tree: Any, whats: tuple[Leaf, ...], arrays: list[Any]) -> Way:
        """The way to run calls of this kind; see Note [A traced function is the operator]."""
        found: list[Any] = []

        def flat(*values: Any) -> list[Any]:
            args, kwargs = jax.tree.unflatten(tree, fill(whats, values))
            args = tuple([a.value if type(a) is _Whole else a for a in args])
            kwargs = {n: a.value if type(a) is _Whole else a for n, a in kwargs.items()}
            with refusing_tensors(self.name):
                results, tree_out = jax.tree.flatten(self.function(*args, **kwargs))
            for result in results:
                if isinstance(result, Tensor):
                    raise TypeError(
                        f"from_jax({self.name}): the function returned a Tensor, so it computes "
                        "with dyngraph's operators. Call it as it is, or make it a function of "
                        "arrays by to_jax()."
                    )
            outs = tuple([describe(r) for r in results])
            found[:] = [tree_out, outs]
            pairs = zip(results, outs, strict=True)
            return [without_keys(r, w) for r, w in pairs if type(w) is not Static]

        avals = [jax.ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in arrays]
        try:
            closed = jax.make_jaxpr(flat)(*avals)
        except ValueError as error:
            if "__jax_array__" in str(error):  # what JAX says of a Tensor among its arguments
                raise closed_over(self.name) from None
            raise
        tree_out, outs = found
        way = Way(self.dispatcher(closed), tree_out, outs)
        if not any(isinstance(c, Tracer) for c in closed.consts):
            self.ways[key] = way
            if len(self.ways) > MAX_WAYS:
                self.ways.popitem(last=False)
        return way

    def dispatcher(self, closed: Any) -> Callable[..., Any] | None:
        """The dispatcher that runs a traced function; None for one that returns no array."""
        call, inputs, outputs = jaxpr_as_fun(closed), len(closed.in_avals), len(closed.out_avals)
        if not outputs:
            return None

        def kernel(*arrays: Any) -> Any:
            results = call(*arrays)
            return results[0] if outputs == 1 else tuple(results)

        spec = OperatorSpec(
            self.name,
            kernel,
            inputs=[f"input{i}" for i in range(inputs)],
            outputs=None if outputs == 1 else [f"output{i}" for i in range(outputs)],
        )
        return write_dispatcher(spec, ", ".join(spec.inputs))

    def unhashable(self, leaves: list[Any], whats: tuple[Leaf, ...]) -> TypeError:
        """The error for a static value that can't be part of a key."""
        for what in whats:
            try:
                hash(what)
            except TypeError:
                value = what.value.value if what.kind is _Whole else what.value  # type: ignore[union-attr]
                return TypeError(
                    f"from_jax({self.name}): a static value must be hashable, because it is part "
                    f"of what was compiled; got {value!r} ({type(value).__name__}). Pass numbers, "
                    "strings, or tuples of them, or arrays as inputs."
                )
        raise AssertionError("every static value can be hashed")


class _Whole:
    """A static argument, which is not looked into."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        if type(other) is not _Whole:
            return False
        mine, its = self.value, other.value
        if type(mine) is not type(its) or mine != its:
            return False
        return not isinstance(mine, float) or repr(mine) == repr(its)  # 0.0 is not -0.0

    def __hash__(self) -> int:
        return hash(self.value)


def _settings() -> Any:
    """The settings of JAX that change what is traced."""
    config: Any = jax.config
    return config.jax_enable_x64, config.jax_default_matmul_precision


def _places(function: Callable[..., Any], name: str, static: list[str]) -> frozenset[int]:
    """The places of parameters of these names that can be given by position."""
    if not static:
        return frozenset()
    parameters = inspect.signature(function).parameters
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    unknown = [n for n in static if n not in parameters and not takes_any]
    if unknown:
        raise TypeError(
            f"from_jax({name}): static_argnames has {unknown}, but the parameters are "
            f"{list(parameters)}. Name some of these."
        )
    positional = [
        p.name
        for p in parameters.values()
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    return frozenset(positional.index(n) for n in static if n in positional)


__all__ = ["from_jax"]
