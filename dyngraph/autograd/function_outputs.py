"""The place in the graph of what a Function returns: new tensors, inputs, written inputs, views."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from dyngraph import modes
from dyngraph.autograd.function_node import BackwardCFunction, describe
from dyngraph.errors import FunctionError
from dyngraph.graph.node import Edge
from dyngraph.ops.shape import view_as
from dyngraph.tensor import LEAF, Tensor
from dyngraph.views import CUSTOM, SEVERAL, counter_of
from dyngraph.writing import rebase


def placed(
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
    if not ctx._materialize_non_diff_grads:
        pairs = zip(outputs, ctx.returned, strict=True)
        ctx.returned = tuple([None if _is_among(o, constant) else known for o, known in pairs])
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
