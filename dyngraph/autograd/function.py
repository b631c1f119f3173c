"""PyTorch's `torch.autograd.Function`: operations whose derivative the user writes."""

from __future__ import annotations

import functools
import inspect
import types
import warnings
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import jax

from dyngraph import batches, modes
from dyngraph.autograd.function_node import BackwardCFunction, FunctionCtx
from dyngraph.autograd.function_outputs import placed
from dyngraph.autograd.function_rule import apply_rule
from dyngraph.autograd.function_tangents import carried_tangents, pass_all_tangents
from dyngraph.graph.node import NO_EDGE, Edge, Node, Values, creation_numbers
from dyngraph.observed import look_at_node
from dyngraph.pure import current_pure
from dyngraph.tensor import Tensor, new_tensor

__all__ = [
    "BackwardCFunction",
    "Function",
    "FunctionCtx",
    "FunctionMeta",
    "InplaceFunction",
    "NestedIOFunction",
    "once_differentiable",
]


class FunctionMeta(type):
    """Makes, with each Function, the class of its nodes."""

    _backward_cls: type[BackwardCFunction]

    def __init__(cls, name: str, bases: tuple[type, ...], attributes: dict[str, Any]) -> None:
        super().__init__(name, bases, attributes)
        cls._backward_cls = types.new_class(
            f"{name}Backward",
            (BackwardCFunction,),
            exec_body=lambda body: body.update(_forward_cls=cls, __module__=cls.__module__),
        )


class Function(metaclass=FunctionMeta):
    """Base class of operations that say themselves how they are differentiated.

    A subclass has static methods, and is used by `apply`. `forward(ctx, *args)` computes the
    outputs, unrecorded, from tensors and anything else; `backward(ctx, *grad_outputs)` returns a
    gradient, or None, for each argument of forward. With a second method `setup_context(ctx,
    inputs, output)`, forward has no ctx. `jvp(ctx, *tangents)` serves forward mode, and `vmap(info,
    in_dims, *args)`, or `generate_vmap_rule = True`, vmap. What ctx can do is in `FunctionCtx`.

    >>> class Cube(dg.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x**3
    ...
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         (x,) = ctx.saved_tensors
    ...         return 3 * x**2 * grad
    >>> x = dg.tensor([2.0], requires_grad=True)
    >>> y = Cube.apply(x)
    >>> y
    tensor([8.], grad_fn=<CubeBackward>)
    >>> y.backward()
    >>> x.grad
    tensor([12.])
    """

    generate_vmap_rule: ClassVar[bool] = False
    """Whether vmap may run forward, backward and jvp on batches as they are."""
    clear_saved_tensors_on_access: ClassVar[bool] = False
    """Whether `ctx.saved_tensors` can be read once only, and frees what it gives."""
    boxed_grads_call: ClassVar[bool] = False
    """Whether backward gets its gradients in one list, which it may empty as it goes."""
    traceable: ClassVar[bool] = False
    """Whether compiled modes may trace forward and backward, instead of running them each time."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all "
            "static, so you should invoke them on the class itself: call its apply().",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use "
            "new-style autograd function with static forward method: call its apply()."
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Computes the outputs; to be overridden."""
        raise NotImplementedError(
            "You must implement the forward function for custom autograd.Function."
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Prepares ctx for backward, where forward does not get it."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any, **_: Any) -> Any:
        """The gradients of forward's arguments from those of its outputs; `vjp` is the same."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom "
            "autograd.Function to use it with backward mode AD."
        )

    vjp = _default_backward = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any, **_: Any) -> Any:
        """The tangents of the outputs from those of forward's arguments."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with "
            "forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *args: Any, **_: Any) -> Any:
        """The outputs for a batch of arguments, and the dims of the batch in them."""
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or "
            "set generate_vmap_rule=True."
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Runs forward, and records a node for what it returns."""
        pure = current_pure()
        if pure is not None:
            return pure.apply_function(cls, args, kwargs)
        return cls._apply(*args, **kwargs)

    @classmethod
    def _apply(cls, *args: Any, **kwargs: Any) -> Any:
        separate = cls.setup_context is not Function.setup_context
        if separate:
            bound = _signature(cls.forward).bind(*args, **kwargs)
            bound.apply_defaults()
            args, kwargs = bound.args, bound.kwargs
        flags = modes.get_flags()
        if flags & modes.MAPPED and cls.vmap is not Function.vmap:
            mapped, outputs = apply_rule(cls, args, kwargs)
            if mapped:
                return outputs
        needs = tuple([isinstance(a, Tensor) and a.requires_grad for a in args])
        recorded = modes.is_recording() and any(needs)
        ctx = cls._backward_cls(args, _edges(args) if recorded else (), next(creation_numbers))
        ctx.needs_input_grad = needs
        carried = carried_tangents(args) if flags & modes.FORWARD else ()
        modes.set_flags(flags & ~(modes.GRAD | modes.FORWARD))
        try:
            if separate:
                output = cls.forward(*args, **kwargs)
                cls.setup_context(ctx, args, output)
            else:
                output = cls.forward(ctx, *args, **kwargs)
        finally:
            modes.restore_flags(flags)
            modes.switch(modes.FORWARD, on=bool(flags & modes.FORWARD))
        outputs = output if isinstance(output, tuple) else (output,)
        outputs = placed(ctx, args, outputs, recorded=recorded, separate=separate)
        pass_all_tangents(ctx, args, outputs, carried)
        if recorded:
            ctx.save(outputs)
            look_at_node(ctx)
            if flags & modes.MAPPED:
                batches.note_nodes(args, outputs, Tensor)
        ctx.forget_marks()
        return outputs if isinstance(output, tuple) else outputs[0]


@functools.cache
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function)


def _edges(args: Sequence[Any]) -> tuple[Edge, ...]:
    tensors = [a for a in args if isinstance(a, Tensor)]
    return tuple([NO_EDGE if t._edge is None else t.gradient_edge() for t in tensors])


# --- backward functions that are not differentiable -----------------------------------------------


class Error(Node):
    """The node of a gradient that has no derivative: a backward that comes here raises."""

    __slots__ = ("message",)

    def __init__(self, message: str, shape: tuple[int, ...], dtype: Any) -> None:
        self.message = message
        self.record = ((), next(creation_numbers), ((shape, dtype),), None)

    def apply(self, grads: Sequence[Any], values: Values) -> Sequence[Any]:
        raise RuntimeError(self.message)

    def output_metadata(self) -> Any:
        raise RuntimeError(self.message)


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a `backward` that can't itself be differentiated: a second derivative raises.

    It runs unrecorded, so it may compute in any way, by numpy for example.

    >>> class Double(dg.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x * 2
    ...
    ...     @staticmethod
    ...     @dg.autograd.function.once_differentiable
    ...     def backward(ctx, grad):
    ...         return dg.tensor(grad.numpy() * 2)
    >>> x = dg.ones(2, requires_grad=True)
    >>> dg.autograd.grad(Double.apply(x).sum(), x)
    (tensor([2., 2.]),)
    """

    @functools.wraps(fn)
    def backward(ctx: Any, *args: Any) -> Any:
        with modes.no_grad():
            results = fn(ctx, *args)
        given = [g for a in args for g in (a if isinstance(a, list) else [a])]
        if not modes.is_recording() or not any(
            isinstance(g, Tensor) and g.requires_grad for g in given
        ):
            return results
        if isinstance(results, tuple):
            return tuple([_raising(r) for r in results])
        return _raising(results)

    return backward


def _raising(result: Any) -> Any:
    if not isinstance(result, Tensor) or not result.dtype.is_differentiable:
        return result
    array = result._cell.held
    message = (
        "trying to differentiate twice a function that was marked with @once_differentiable. Leave "
        "the mark out where its backward consists of dyngraph's operators."
    )
    return new_tensor(result._cell, (Error(message, array.shape, array.dtype), 0))


# --- compatibility ----------------------------------------------------------------------------


class InplaceFunction(Function):
    """An old base class: a Function with a flag `inplace`."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


class NestedIOFunction(Function):
    """An old base class of Functions whose arguments and outputs are nested tuples and lists.

    A subclass has `forward_extended(ctx, *args)` and `backward_extended(ctx, *grads)`, which are
    given and return the structures that the caller sees; None stands for what has no gradient.

    >>> class Swap(dg.autograd.NestedIOFunction):
    ...     @staticmethod
    ...     def forward_extended(ctx, pair):
    ...         return pair[1] * 2, [pair[0] * 3]
    ...
    ...     @staticmethod
    ...     def backward_extended(ctx, first, rest):
    ...         return (rest[0] * 3, first * 2)
    >>> x, y = dg.ones(1, requires_grad=True), dg.ones(1, requires_grad=True)
    >>> first, (second,) = Swap.apply((x, y))
    >>> (first + second).backward()
    >>> x.grad, y.grad
    (tensor([3.]), tensor([2.]))
    """

    @staticmethod
    def forward_extended(ctx: Any, *args: Any) -> Any:
        """Computes the outputs; to be overridden."""
        raise NotImplementedError("You must implement forward_extended.")

    @staticmethod
    def backward_extended(ctx: Any, *grads: Any) -> Any:
        """The gradients of the arguments; to be overridden."""
        raise NotImplementedError("You must implement backward_extended.")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Runs forward_extended, and records a node for what it returns."""
        leaves, structure = jax.tree_util.tree_flatten(args)
        outputs = super().apply(structure, *leaves)
        return jax.tree_util.tree_unflatten(outputs[0], outputs[1:])

    @classmethod
    def forward(cls, ctx: Any, structure: Any, *leaves: Any) -> Any:  # type: ignore[override]
        """Runs forward_extended on the nested arguments."""
        output = cls.forward_extended(ctx, *jax.tree_util.tree_unflatten(structure, leaves))
        leaves_out, ctx.nested_output = jax.tree_util.tree_flatten(output)
        return ctx.nested_output, *leaves_out

    @classmethod
    def backward(cls, ctx: Any, _: None, *grads: Any) -> Any:  # type: ignore[override]
        """Runs backward_extended on the nested gradients."""
        nested = jax.tree_util.tree_unflatten(ctx.nested_output, grads)
        nested = nested if isinstance(nested, tuple) else (nested,)
        found = cls.backward_extended(ctx, *nested)
        found = found if isinstance(found, tuple) else (found,)
        return None, *jax.tree_util.tree_leaves(found, is_leaf=lambda g: g is None)
