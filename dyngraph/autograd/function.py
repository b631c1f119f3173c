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
from dyngraph.autograd.function_node import BackwardCFunction, FunctionCtx, describe
from dyngraph.autograd.function_rule import apply_rule
from dyngraph.autograd.function_tangents import carried_tangents, pass_all_tangents
from dyngraph.errors import FunctionError
from dyngraph.graph.node import NO_EDGE, Edge, Node, Values, creation_numbers
from dyngraph.observed import look_at_node
from dyngraph.ops.shape import view_as
from dyngraph.tensor import LEAF, Tensor, new_tensor
from dyngraph.views import CUSTOM, SEVERAL, counter_of
from dyngraph.writing import rebase

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
        outputs = _placed(ctx, args, outputs, recorded=recorded, separate=separate)
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


# --- the outputs' place in the graph --------------------------------------------------------------


def _placed(
    ctx: BackwardCFunction,
    args: Sequence[Any],
    outputs: Sequence[Any],
    *,
    recorded: bool,
    separate: bool,
) -> tuple[Any, ...]:
    """The outputs as the user gets them, those that have a gradient with `ctx` as their node."""
    dirty, constant = ctx.dirty_tensors, ctx.non_differentiable
    _check_tensors("mark_dirty can only accept variables, but argument {} is", dirty)
    _check_tensors("mark_non_differentiable only accepts variable arguments, but got {},", constant)
    if not all(_is_among(t, outputs) for t in dirty):
        raise FunctionError(
            "Some elements marked as dirty during the forward method were not returned as output. "
            "The inputs that are modified inplace must all be outputs of the Function."
        )
    differentiable = [
        recorded
        and isinstance(o, Tensor)
        and o.dtype.is_differentiable
        and not _is_among(o, constant)
        for o in outputs
    ]
    ctx.returned = tuple([describe(o) if isinstance(o, Tensor) else None for o in outputs])
    ctx.outputs = tuple([None if o is None else (o.shape, o.dtype) for o in ctx.returned])
    placed = []
    for number, (output, has_gradient) in enumerate(zip(outputs, differentiable, strict=True)):
        if not isinstance(output, Tensor):
            placed.append(output)
        elif _is_among(output, dirty):
            edge = (ctx, number) if has_gradient else None
            placed.append(_place_written(output, edge, args, count=len(outputs)))
        else:
            saved = separate and _is_among(output, ctx.to_save)
            is_input = _is_among(output, args)
            if has_gradient and is_input and saved:
                raise FunctionError(
                    "An input that has been returned as-is as output is being saved for backward. "
                    "This is not supported if you override setup_context. You should return and "
                    "save a view of the input instead, e.g. with x.view_as(x) or setup ctx inside "
                    "the forward function itself."
                )
            placed.append(_place(output, (ctx, number) if has_gradient else None, is_input))
    if sum(differentiable) > 1:
        for output, has_gradient in zip(placed, differentiable, strict=True):
            if has_gradient and output._view is not None and output._view.base is not None:
                output._view.made = SEVERAL
    return tuple(placed)


def _place(output: Tensor, edge: Edge | None, is_input: bool) -> Tensor:
    """One output, at its place in the graph; an input that is returned as a view of it."""
    if edge is None and output._edge is not None:
        return output.detach() if is_input else _without_history(output)
    if is_input:
        with modes.no_grad():
            output = view_as(output, output)
    if edge is not None:
        output._edge = edge
        if output._view is not None and output._view.base is not None:
            output._view.made = CUSTOM
    return output


def _without_history(output: Tensor) -> Tensor:
    """An output whose inner graph no one follows; a view of an input keeps its own."""
    if output._view is None:
        output._edge = None
    return output


def _place_written(output: Tensor, edge: Edge | None, args: Sequence[Any], *, count: int) -> Tensor:
    """An input that was written to in place, which follows `edge` from now on."""
    root, family = counter_of(output)
    root.count_write(family)
    if edge is None:
        return output if output._edge is None else output.detach()
    if output._edge is LEAF:
        raise FunctionError(
            "a leaf Variable that requires grad has been used in an in-place operation: "
            "Only what operators made can be marked as dirty. Pass a clone() of it."
        )
    if not _is_among(output, args):
        warnings.warn(
            "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that "
            "have been mutated should be passed to ctx.mark_dirty().",
            UserWarning,
            stacklevel=4,
        )
    view = output._view
    if view is not None and view.base is not None and count > 1:
        raise FunctionError(
            "If your Function modifies inplace an input that is a view of another Tensor, your "
            "Function cannot return more than one Tensor: its base can follow one output only. "
            "Pass a clone() of the input, or split the Function into one that writes and returns "
            "one Tensor, and one for the rest."
        )
    rebase(output, edge)
    return output


def _check_tensors(message: str, given: Sequence[Any]) -> None:
    for value in given:
        if not isinstance(value, Tensor):
            fact = message.format(repr(value))
            raise FunctionError(
                f"{fact} of type {type(value).__name__}. Leave out what is no Tensor."
            )


def _is_among(value: Any, values: Sequence[Any]) -> bool:
    return any(value is v for v in values)


# --- backward functions that are not differentiable -----------------------------------------------


class Error(Node):
    """The node of a gradient that has no derivative: a backward that comes here raises."""

    __slots__ = ("message", "outputs")

    def __init__(self, message: str, shape: tuple[int, ...], dtype: Any) -> None:
        self.message = message
        self.edges, self.extra, self.sequence_nr = (), None, next(creation_numbers)
        self.outputs = ((shape, dtype),)

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
    array = result._cell.array
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
