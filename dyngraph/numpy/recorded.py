"""`record`: a function of `jax.numpy` on arrays becomes one on Tensors, whatever its arguments.

The arguments are read as a pytree. Tensors and arrays in it are inputs, and so are numbers where
the function takes an array; the rest is static, and part of the kernel's key. The rules are JAX's.

# Note [How a function of arrays is run]
What a call compiles to is found by its static arguments and the shapes of its inputs, by trying, in
this order:
1. Under jit, with Python's numbers as inputs, so that another number compiles nothing.
2. Under jit, with numbers as static arguments: `ord` of a norm, the bounds of `arange`.
3. On values, outside jit, where values decide the shape of the result: `nonzero`, `unique`.
The way that worked is kept, so that later calls look it up. Functions without any array among
their arguments make new tensors, and are simply called.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
from jax.typing import ArrayLike

from dyngraph import dtypes
from dyngraph.dispatch import lift, write_dispatcher
from dyngraph.kernels import OperatorSpec
from dyngraph.numpy.arguments import Arguments, Branch, Reader
from dyngraph.numpy.concrete import run_concrete
from dyngraph.tensor import Tensor, wrap
from dyngraph.tracing import Tracer

MAX_WAYS = 8192
"""For how many kinds of call a function remembers how to run them."""
EXPONENTS = {"power", "pow"}
"""Functions for which an integer is not only a value: JAX has rules of their own for these."""


class Way(NamedTuple):
    """How calls of one kind are run: the dispatcher, or None for values, and what comes out."""

    dispatcher: Callable[..., Any] | None
    arguments: Arguments
    tree: Any
    static_numbers: bool


class Recorded:
    """What `record` keeps of one function: the ways to run it, and its dispatchers."""

    def __init__(self, function: Callable[..., Any], name: str, node_name: str) -> None:
        self.function = function
        self.name = name
        self.node_name = node_name
        self.ways: OrderedDict[Any, Way] = OrderedDict()
        self.dispatchers: dict[tuple[int, int], Callable[..., Any]] = {}

    @functools.cached_property
    def values(self) -> frozenset[Any]:
        """The parameters that take arrays, by position and name; "*" where all do."""
        if self.name.rpartition(".")[2] in EXPONENTS:
            return frozenset()
        try:
            parameters = inspect.signature(self.function).parameters
        except (TypeError, ValueError):
            return frozenset()
        found: list[Any] = []
        for i, p in enumerate(parameters.values()):
            if p.annotation in ("ArrayLike", "ArrayLike | None", ArrayLike):
                found += [i, p.name] if p.kind is not p.VAR_POSITIONAL else ["*"]
        return frozenset(found)

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """One call."""
        reader = Reader(self.values)
        read = reader.read(args, kwargs)
        if not reader.found_arrays:
            return wrapped(Arguments(*read).call(self.function, reader.inputs))
        inputs = [
            x if isinstance(x, (Tensor, jax.Array)) else lift(x, self.name, f"input {i}")
            for i, x in enumerate(reader.inputs)
        ]
        key = (read, *[_aval(x) for x in inputs])
        try:
            way = self.ways[key]
        except KeyError:
            way = self.ways[key] = self.find(read, inputs, args, kwargs)
            if len(self.ways) > MAX_WAYS:
                self.ways.popitem(last=False)
        except TypeError as error:
            raise self.unhashable(read) or error from None
        if way.static_numbers:
            way, inputs = self.with_static_numbers(args, kwargs)
        if way.dispatcher is None:
            return self.on_values(way.arguments, inputs)
        try:
            results = way.dispatcher(*inputs, way.arguments)
        except (NotImplementedError, ValueError):
            # JAX has no derivative of it, which is an error for the backward pass to raise
            return self.on_values(way.arguments, inputs)
        if way.tree is None:
            return results
        return jax.tree.unflatten(way.tree, _listed(results))

    def with_static_numbers(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Way, list[Any]]:
        """The second way of the Note, where numbers are part of the key."""
        reader = Reader(self.values, static_numbers=True)
        read = reader.read(args, kwargs)
        inputs = [x if isinstance(x, Tensor) else lift(x, self.name, "") for x in reader.inputs]
        key = (True, read, *[_aval(x) for x in inputs])
        way = self.ways.get(key)
        if way is None:
            arguments = Arguments(*read)
            way = self.ways[key] = self.traced(arguments, inputs)
        return way, inputs

    def find(
        self, read: Any, inputs: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Way:
        """The way to run calls of this kind; see Note [How a function of arrays is run]."""
        arguments = Arguments(*read)
        try:
            return self.traced(arguments, inputs)
        except Exception as error:
            first = error
        try:
            self.with_static_numbers(args, kwargs)
            return Way(None, arguments, None, True)
        except Exception:
            pass
        try:
            arguments.call(self.function, [_array(x) for x in inputs])
        except Exception as error:
            # what JAX says of values tells more than what it says of tracers
            raise self.explained(error, inputs, arguments) from None
        if not isinstance(first, jax.errors.JAXTypeError) and _has_tracer(inputs):
            raise first
        return Way(None, arguments, None, False)

    def traced(self, arguments: Arguments, inputs: list[Any]) -> Way:
        """The compiled way, if the function can be traced."""
        avals = [
            jax.ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type)
            for a in map(_array, inputs)
        ]
        out = jax.eval_shape(lambda *arrays: arguments.call(self.function, arrays), *avals)
        leaves, tree = jax.tree.flatten(out)
        bare = jax.tree.structure(0) == tree
        dispatcher = self.dispatcher(len(inputs), len(leaves))
        return Way(dispatcher, arguments, None if bare else tree, False)

    def dispatcher(self, inputs: int, outputs: int) -> Callable[..., Any]:
        """The dispatcher for so many inputs and outputs."""
        try:
            return self.dispatchers[inputs, outputs]
        except KeyError:
            pass
        function = self.function

        def kernel(*arrays: Any, arguments: Arguments) -> Any:
            leaves = jax.tree.leaves(arguments.call(function, arrays))
            return leaves[0] if outputs == 1 else tuple(leaves)

        kernel.__module__ = __name__
        spec = OperatorSpec(
            self.name.replace(".", "_"),
            kernel,
            inputs=[f"input{i}" for i in range(inputs)],
            statics=["arguments"],
            outputs=None if outputs == 1 else [f"output{i}" for i in range(outputs)],
            node_name=self.node_name,
        )
        made = write_dispatcher(spec, ", ".join([*spec.inputs, "arguments"]))
        self.dispatchers[inputs, outputs] = made
        return made

    def on_values(self, arguments: Arguments, inputs: list[Any]) -> Any:
        """The third way of the Note."""
        tree: Any = None

        def flat(*arrays: Any) -> list[Any]:
            nonlocal tree
            leaves, tree = jax.tree.flatten(arguments.call(self.function, arrays))
            return leaves

        results = run_concrete(self.name, self.node_name, flat, inputs)
        return jax.tree.unflatten(tree, results)

    def explained(self, error: Exception, inputs: list[Any], arguments: Arguments) -> Exception:
        arrays = [_array(x) for x in inputs]
        shown = ", ".join(f"{a.dtype.name}{list(a.shape)}" for a in arrays)
        error.__notes__ = [
            *getattr(error, "__notes__", ()),
            f"This happened in {self.name}({arguments!r}) on {shown}.",
        ]
        return error.with_traceback(None)

    def unhashable(self, read: Any) -> TypeError | None:
        """The error for an argument that can't be part of a key."""
        positional, named = read
        for name, part in [*enumerate(positional, 1), *named]:
            for leaf in part.parts if part.__class__ is Branch else [part]:
                try:
                    hash(leaf)
                except TypeError:
                    return TypeError(
                        f"{self.name}(): argument {name!r} must be hashable, because it is part of "
                        f"the compiled kernel; got {leaf.value!r} ({leaf.kind.__name__}). Pass "
                        "tensors, arrays, numbers, strings, dtypes, or lists of them."
                    )
        return None


def _array(value: Any) -> Any:
    return value._cell.array if isinstance(value, Tensor) else value


def _aval(value: Any) -> Any:
    array = _array(value)
    return array.shape, array.dtype, array.weak_type


def _has_tracer(inputs: list[Any]) -> bool:
    return any(isinstance(_array(x), Tracer) for x in inputs)


def _listed(results: Any) -> Any:
    return [results] if isinstance(results, Tensor) else results


def wrapped(result: Any) -> Any:
    """What a function returned, with tensors in the place of arrays."""
    return jax.tree.map(lambda o: wrap(o) if isinstance(o, jax.Array) else o, result)


def unwrapped(argument: Any) -> Any:
    """An argument with arrays in the place of tensors, and numpy's dtypes of dyngraph's."""
    if isinstance(argument, Tensor):
        return argument._cell.array
    if isinstance(argument, (list, tuple, dict)):
        return jax.tree.map(unwrapped, argument)
    return argument.dtype if isinstance(argument, dtypes.dtype) else argument


# --- the functions ----------------------------------------------------------------------------


def record(function: Callable[..., Any], name: str, module: str) -> Callable[..., Any]:
    """`function` of `jax.numpy`, on tensors and recorded. `name` is dotted: `numpy.linalg.norm`."""
    words = name.replace(".", "_").split("_")
    node_name = "".join(w[:1].upper() + w[1:] for w in words) + "Backward0"
    recorded = Recorded(function, name, node_name)

    def run(*args: Any, **kwargs: Any) -> Any:
        return recorded.run(args, kwargs)

    run.recorded = recorded  # type: ignore[attr-defined]
    return dressed(run, function, name, module, "recorded on tensors")


def plain(function: Callable[..., Any], name: str, module: str) -> Callable[..., Any]:
    """A function whose answer is no array, such as `shape`: called on the tensors' arrays."""

    def run(*args: Any, **kwargs: Any) -> Any:
        return function(*map(unwrapped, args), **{n: unwrapped(v) for n, v in kwargs.items()})

    return dressed(run, function, name, module, "on tensors")


def dressed(
    run: Callable[..., Any], function: Callable[..., Any], name: str, module: str, how: str
) -> Callable[..., Any]:
    """`run` with the signature of `function`, and a docstring that leads to its own."""
    with contextlib.suppress(TypeError, ValueError):
        run.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    run.__name__ = run.__qualname__ = name.rpartition(".")[2]
    run.__module__ = module
    first = (inspect.getdoc(function) or "").partition("\n\n")[0]
    run.__doc__ = f"`jax.{name}`, {how}. {first}\n\nArguments and conventions are JAX's."
    return run
