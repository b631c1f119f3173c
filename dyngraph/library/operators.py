"""PyTorch's `torch.library`: a user's function as an operator that autograd and JAX see as a whole.

# Note [Bodies run on values]
The body may do what it likes with the values of its tensors: numpy, scipy, a foreign library. Under
`jax.jit`, `jax.vmap` and their like there are no values, so there `register_fake` says what the
results look like, and JAX calls the body back when the values are there (`jax.pure_callback`).
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from dyngraph import modes
from dyngraph.autograd.function import Function
from dyngraph.errors import FunctionError
from dyngraph.storage import are_inference, cell_of
from dyngraph.tensor import Tensor, new_tensor, wrap
from dyngraph.tracing import Tracer
from dyngraph.views import memory_of

__all__ = [
    "CustomOpDef",
    "custom_op",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_vmap",
]

_operators: dict[str, CustomOpDef] = {}


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: Any = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Makes a function of tensors (and anything else) an operator; a decorator, or a call with fn.

    `name` is "namespace::name". The function computes, unrecorded, one tensor or a tuple of them,
    which may not share memory with its arguments; those that it writes to in place are named in
    `mutates_args`. On the operator that this returns, `register_autograd` gives the derivative,
    `register_fake` what results look like, `register_vmap` the rule for batches. `device_types`
    names the kinds of devices that the function serves (None: all); `schema` and `tags` are taken
    for compatibility.

    Raises ValueError for a name without namespace, and for parameters in `mutates_args` that the
    function does not have.

    >>> import numpy as np
    >>> @dg.library.custom_op("examples::sine", mutates_args=())
    ... def sine(x: dg.Tensor) -> dg.Tensor:
    ...     return dg.tensor(np.sin(x.detach().numpy()))
    >>> sine.register_autograd(
    ...     lambda ctx, grad: grad * ctx.saved_tensors[0].cos(),
    ...     setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
    ... )
    >>> x = dg.zeros(2, requires_grad=True)
    >>> sine(x).sum().backward()
    >>> x.grad
    tensor([1., 1.])
    """

    def make(fn: Callable[..., Any]) -> CustomOpDef:
        return CustomOpDef(name, fn, mutates_args, device_types)

    return make if fn is None else make(fn)


class CustomOpDef:
    """An operator that `custom_op` made: call it as the function."""

    def __init__(
        self,
        name: str,
        fn: Callable[..., Any],
        mutates_args: str | Iterable[str],
        device_types: Any = None,
    ) -> None:
        namespace, separator, own = name.partition("::")
        if not (namespace and separator and own):
            raise ValueError(
                f"custom_op(name={name!r}): expected a name with its namespace, such as "
                f"'mylib::{own or namespace}'."
            )
        self._name, self._qualname = own, name
        self._signature = inspect.signature(fn)
        self._written = _written(mutates_args, self._signature, name)
        self._kernels = {kind: fn for kind in _listed(device_types) or [None]}
        self._fake: Callable[..., Any] | None = None
        self._vmap: Callable[..., Any] | None = None
        self._backward: Callable[..., Any] | None = None
        self._setup_context: Callable[..., Any] | None = None
        self._functions: dict[Any, type[Function]] = {}
        self.__doc__ = fn.__doc__
        self.__name__ = own
        _operators[name] = self

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        for name, value in bound.arguments.items():
            if self._signature.parameters[name].annotation in (Tensor, "Tensor"):
                self._check_tensor(name, value)
        if self._written:
            with modes.no_grad():
                return self._run(bound.args, bound.kwargs)
        leaves, structure = jax.tree_util.tree_flatten((bound.args, bound.kwargs))
        cells = [leaf._cell for leaf in leaves if isinstance(leaf, Tensor)]
        if cells and are_inference(cells):  # recorded is what the body does, as in PyTorch
            return self._run(bound.args, bound.kwargs)
        return self._function(structure).apply(*leaves)

    def _check_tensor(self, name: str, value: Any) -> None:
        if not isinstance(value, Tensor):
            raise RuntimeError(
                f"{self._qualname}() Expected a value of type 'Tensor' for argument '{name}' but "
                f"instead found type '{type(value).__name__}'. Make one by dg.tensor(...)."
            )

    # --- what can be registered -----------------------------------------------------------------

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """Gives the derivative: `backward(ctx, *grads)` returns a gradient for each argument.

        `setup_context(ctx, inputs, output)` prepares ctx, as that of a Function; for operators with
        keyword-only arguments, `setup_context(ctx, inputs, keyword_only_inputs, output)`. The
        gradient of an argument that is a list is a list. Raises RuntimeError for an operator that
        writes to its arguments.
        """
        if self._written:
            raise RuntimeError(
                "Cannot register autograd formula for non-functional operator "
                f"{self}: it writes to {sorted(self._written)}. Please create a functional "
                "operator and register an autograd formula for that."
            )
        self._backward, self._setup_context = backward, setup_context
        self._functions.clear()

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """Gives a function that makes results of the right shapes and dtypes without reading
        values: with it the operator works under `jax.jit`, `jax.vmap` and the like."""
        self._fake = fn
        return fn

    def register_vmap(self, func: Callable[..., Any] | None = None) -> Any:
        """Gives the rule for batches: `func(info, in_dims, *args)` returns (outputs, out_dims)."""
        if func is None:
            return self.register_vmap
        self._vmap = func
        self._functions.clear()
        return func

    def register_kernel(
        self, device_types: Any, fn: Callable[..., Any] | None = None, /
    ) -> Callable[..., Any]:
        """Gives a body of its own for some kinds of devices, "cpu", "cuda" or "tpu"."""

        def register(fn: Callable[..., Any]) -> Callable[..., Any]:
            for kind in _listed(device_types) or [None]:
                self._kernels[kind] = fn
            return fn

        return register if fn is None else register(fn)

    # --- running ----------------------------------------------------------------------------------

    def _function(self, structure: Any) -> type[Function]:
        """The Function of calls whose arguments have that structure."""
        if structure not in self._functions:
            self._functions[structure] = _function_of(self, structure)
        return self._functions[structure]

    def _run(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """What the body returns."""
        tensors = list(tensors_of((args, kwargs)))
        if any(isinstance(t._cell.array, Tracer) for t in tensors):
            return self._call_back(args, kwargs)
        results = self._body(tensors)(*args, **kwargs)
        memories = [memory_of(t)[0] for t in tensors]
        for result in tensors_of(results):
            if any(memory_of(result)[0] is memory for memory in memories):
                raise RuntimeError(
                    f"{self._name}: The output of this custom operator (1) must not also be an "
                    "input to this custom operator and (2) may not alias any inputs to this custom "
                    "operator or other returns. Return a clone() of it."
                )
            memories.append(memory_of(result)[0])
        return results

    def _body(self, tensors: Sequence[Tensor]) -> Callable[..., Any]:
        return self._kernel(tensors[0].device.type if tensors else "cpu")

    def _kernel(self, kind: str | None) -> Callable[..., Any]:
        """The body for that kind of device; NotImplementedError where there is none."""
        body = self._kernels.get(kind, self._kernels.get(None))
        if body is None:
            raise NotImplementedError(
                f"{self._qualname} has no kernel for device '{kind}', but for "
                f"{sorted(map(str, self._kernels))}. Register one by register_kernel()."
            )
        return body

    def _call_back(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """The results under a JAX transformation; see Note [Bodies run on values]."""
        if self._fake is None:
            raise RuntimeError(
                f"{self._qualname} was called under a JAX transformation such as jax.jit or vmap, "
                "where tensors have no values yet, and there is no fake impl registered that says "
                "what its results look like. Add one by register_fake()."
            )
        if self._written:
            raise RuntimeError(
                f"{self._qualname} writes to its arguments, which it can't do under a JAX "
                "transformation. Make an operator that returns what it would write."
            )
        arrays = [t._cell.array for t in tensors_of((args, kwargs))]
        shapes = jax.eval_shape(on_arrays(self._fake, args, kwargs), *arrays)
        body = on_arrays(self._kernel("cpu"), args, kwargs)  # JAX calls back on the host
        found = jax.pure_callback(body, shapes, *arrays, vmap_method="sequential")
        return jax.tree.map(lambda a: new_tensor(cell_of(a)), found)


def _function_of(op: CustomOpDef, structure: Any) -> type[Function]:
    """The Function of one operator, for arguments of one structure, which it gets flat."""

    def forward(*leaves: Any) -> Any:
        return op._run(*jax.tree_util.tree_unflatten(structure, leaves))

    def setup_context(ctx: Any, leaves: Sequence[Any], output: Any) -> None:
        if op._setup_context is None:
            return
        args, kwargs = jax.tree_util.tree_unflatten(structure, leaves)
        if kwargs:
            op._setup_context(ctx=ctx, inputs=args, keyword_only_inputs=kwargs, output=output)
        else:
            op._setup_context(ctx=ctx, inputs=args, output=output)

    def backward(ctx: Any, *grads: Any) -> Any:
        if op._backward is None:
            raise RuntimeError(
                f"Trying to backward through {op._qualname} but no autograd formula was "
                "registered. Please use register_autograd to add one."
            )
        args, _ = jax.tree_util.tree_unflatten(structure, range(structure.num_leaves))
        found = op._backward(ctx, *grads)
        found = found if isinstance(found, tuple) else (found,)
        if len(found) != len(args):
            raise FunctionError(
                f"{op._qualname}: expected backward to return {len(args)} gradients, one for each "
                f"argument, got {len(found)}. Return None for those that have none."
            )
        flat: list[Any] = [None] * structure.num_leaves
        for places, gradient in zip(args, found, strict=True):
            leaves = jax.tree_util.tree_leaves(places)
            several = isinstance(gradient, (list, tuple))
            parts = gradient if several else [gradient] * len(leaves)
            for place, part in zip(leaves, parts, strict=True):
                flat[place] = part
        return tuple(flat)

    body: dict[str, Any] = {
        "forward": staticmethod(forward),
        "setup_context": staticmethod(setup_context),
        "backward": staticmethod(backward),
        "__module__": __name__,
    }
    if op._vmap is not None:
        body["vmap"] = staticmethod(functools.partial(_vmap_rule, op, structure))
    name = op._qualname.replace("::", "_")
    return types.new_class(name, (Function,), exec_body=lambda own: own.update(body))


def _vmap_rule(op: CustomOpDef, structure: Any, info: Any, in_dims: Any, *leaves: Any) -> Any:
    args, kwargs = jax.tree_util.tree_unflatten(structure, leaves)
    dims, _ = jax.tree_util.tree_unflatten(structure, in_dims)
    assert op._vmap is not None
    return op._vmap(info, dims, *args, **kwargs)


def _written(mutates_args: Any, signature: inspect.Signature, name: str) -> frozenset[str]:
    if mutates_args == "unknown":
        return frozenset(signature.parameters)
    names = frozenset([mutates_args] if isinstance(mutates_args, str) else mutates_args)
    missing = names - set(signature.parameters)
    if missing:
        raise ValueError(
            f"custom_op({name!r}): mutates_args names {sorted(missing)}, but the parameters are "
            f"{list(signature.parameters)}."
        )
    return names


def _listed(kinds: Any) -> list[str]:
    return [] if kinds is None else [kinds] if isinstance(kinds, str) else list(kinds)


def on_arrays(
    function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> Callable[..., Any]:
    """`function(*args, **kwargs)` as a function of the arrays of the tensors among its arguments,
    which returns arrays."""
    leaves, structure = jax.tree_util.tree_flatten((tuple(args), kwargs))

    def run(*arrays: Any) -> Any:
        left = iter(arrays)
        given = [wrap(jnp.asarray(next(left))) if isinstance(v, Tensor) else v for v in leaves]
        positional, named = jax.tree_util.tree_unflatten(structure, given)
        return jax.tree.map(lambda t: t.detach().jax(), function(*positional, **named))

    return run


def tensors_of(tree: Any) -> Iterator[Tensor]:
    return (leaf for leaf in jax.tree_util.tree_leaves(tree) if isinstance(leaf, Tensor))


# --- by name ------------------------------------------------------------------------------------


def _find(op: str | CustomOpDef) -> CustomOpDef:
    if isinstance(op, CustomOpDef):
        return op
    if op not in _operators:
        raise AttributeError(
            f"there is no operator {op!r}: expected one of {sorted(_operators)}. Make it by "
            "custom_op()."
        )
    return _operators[op]


def register_autograd(
    op: str | CustomOpDef,
    backward: Callable[..., Any],
    /,
    *,
    setup_context: Callable[..., Any] | None = None,
    lib: Any = None,
) -> None:
    """`CustomOpDef.register_autograd` of the operator of that name; AttributeError if there is
    none."""
    _find(op).register_autograd(backward, setup_context=setup_context)


def register_fake(
    op: str | CustomOpDef, func: Callable[..., Any] | None = None, /, *, lib: Any = None
) -> Any:
    """`CustomOpDef.register_fake` of the operator of that name; a decorator, or a call with
    func."""
    register = _find(op).register_fake
    return register if func is None else register(func)


def register_vmap(
    op: str | CustomOpDef, func: Callable[..., Any] | None = None, /, *, lib: Any = None
) -> Any:
    """`CustomOpDef.register_vmap` of the operator of that name; a decorator, or a call with
    func."""
    return _find(op).register_vmap(func)


def register_kernel(
    op: str | CustomOpDef,
    device_types: Any,
    func: Callable[..., Any] | None = None,
    /,
    *,
    lib: Any = None,
) -> Any:
    """`CustomOpDef.register_kernel` of the operator of that name; a decorator, or a call with
    func."""
    return _find(op).register_kernel(device_types, func)
