"""Forward mode through a user's Function: its `jvp` makes the outputs' tangents."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import jax.numpy as jnp

from dyngraph import modes
from dyngraph.autograd.function_node import BackwardCFunction
from dyngraph.errors import FunctionError
from dyngraph.placement import place_of, put
from dyngraph.storage import cell_of
from dyngraph.tangents import Level, current_level, give_tangent, open_level, tangent_of
from dyngraph.tensor import Tensor, new_tensor
from dyngraph.views import View, copy_slices, memory_of, run_through

_NOT_IN_PLACE = (
    "An inplace custom Function is not modifying the forward mode gradients inplace. If the "
    "forward is modifying an input inplace, then the jvp function must modify the corresponding "
    "gradient inplace, and return it."
)


def carried_tangents(args: Sequence[Any]) -> list[tuple[Level, list[Tensor | None]]]:
    """For each open level, innermost first, the tangent that each argument carries."""
    found, level = [], current_level()
    while level is not None:
        with _at(level):
            found.append((level, [tangent_of(a) if isinstance(a, Tensor) else None for a in args]))
        level = level.outer
    return found


def pass_all_tangents(
    ctx: BackwardCFunction,
    args: Sequence[Any],
    outputs: Sequence[Any],
    carried: Sequence[tuple[Level, Sequence[Tensor | None]]],
) -> None:
    """Gives the outputs the tangents of every level that `jvp` makes of those of the arguments."""
    for level, tangents in carried:
        with _at(level):
            pass_tangents(ctx, args, outputs, tangents)


def pass_tangents(
    ctx: BackwardCFunction,
    args: Sequence[Any],
    outputs: Sequence[Any],
    carried: Sequence[Tensor | None],
) -> None:
    """Gives the outputs the tangents that `jvp` makes of those that the arguments carried."""
    if all(t is None for t in carried):
        return
    given = list(carried)
    if ctx.materialize_grads:
        given = [t if t is not None else _zeros(a) for t, a in zip(carried, args, strict=True)]
    with _no_tangents():
        made = ctx._forward_cls.jvp(ctx, *given)
    made = made if isinstance(made, tuple) else (made,)
    if len(made) != len(outputs):
        raise FunctionError(
            "Function's jvp returned an invalid number of forward gradients (expected "
            f"{len(outputs)} but got {len(made)}). Return one for each output of forward."
        )
    for position, (output, tangent) in enumerate(zip(outputs, made, strict=True)):
        dirty = any(output is d for d in ctx.dirty_tensors)
        if not isinstance(tangent, Tensor):
            if tangent is None and dirty and any(output is a for a in args):
                raise FunctionError(_NOT_IN_PLACE)
            if tangent is not None:
                raise FunctionError(
                    f"expected Variable or None (got {type(tangent).__name__}) for grad output "
                    f"{position} of {ctx._forward_cls.__name__}.jvp"
                )
            continue
        constant = any(output is c for c in ctx.non_differentiable)
        if constant or not isinstance(output, Tensor) or not output.dtype.is_differentiable:
            raise FunctionError(
                f"Function's jvp returned a gradient at position {position}, but the corresponding "
                "forward output is not a differentiable Tensor. You should return None at that "
                "position instead."
            )
        _check(output, tangent, args, carried, dirty=dirty)
        give_tangent(output, tangent)
        if dirty and output._view is not None and output._view.base is not None:
            _write_through(output._view, tangent)


def _write_through(view: View, tangent: Tensor) -> None:
    """Gives the base of a view that was written to the view's tangent, there where it looks."""
    base = view.base
    assert base is not None
    own = tangent_of(base)
    with _no_tangents():
        whole = run_through(
            copy_slices, view.steps, own if own is not None else _zeros(base), tangent
        )
    give_tangent(base, whole)
    for other in view.root.lookers():
        other._forget_edge()


@contextlib.contextmanager
def _at(level: Level | None) -> Iterator[None]:
    """Inside, `level` is the innermost one."""
    before, flags = current_level(), modes.get_flags()
    open_level(level)
    try:
        yield
    finally:
        open_level(before)
        modes.set_flags(flags)


@contextlib.contextmanager
def _no_tangents() -> Iterator[None]:
    """Tensors carry no tangents of this level inside: what is made of tangents is none of a dual's
    business."""
    level = current_level()
    with _at(level if level is None or level.outer is None else level.outer):
        if level is None or level.outer is None:  # a level stays open, as users see it
            modes.switch(modes.FORWARD, on=False)
        yield


def _zeros(arg: Any) -> Tensor | None:
    if not isinstance(arg, Tensor) or not arg.dtype.is_differentiable:
        return None
    array = arg._cell.array
    return new_tensor(cell_of(put(jnp.zeros(array.shape, array.dtype), place_of(array))))


def _shares_memory(view: Tensor, other: Tensor) -> bool:
    return view._view is not None and memory_of(view)[0] is memory_of(other)[0]


def _check(
    output: Tensor,
    tangent: Tensor,
    args: Sequence[Any],
    carried: Sequence[Tensor | None],
    *,
    dirty: bool,
) -> None:
    """Raises where a tangent does not fit its output, or does not alias what its output does."""
    if tangent.shape != output.shape:
        raise FunctionError(
            "Trying to set a forward gradient that has a different size than that of the original "
            f"Tensor, this is not supported. Tensor is of size {list(output.shape)} while the "
            f"given forward gradient is of size {list(tangent.shape)}."
        )
    if not tangent.dtype.is_differentiable:
        raise FunctionError(
            f"Function's jvp returned a tangent of {tangent.dtype} for an output of "
            f"{output.dtype}. Convert it by .float()."
        )
    for arg, own in zip(args, carried, strict=True):
        if own is None:
            continue
        if output is arg and dirty:
            if tangent is not own:
                raise FunctionError(_NOT_IN_PLACE)
        elif _shares_memory(output, arg) and not _shares_memory(tangent, own):
            raise FunctionError(
                "A custom Function's forward is returning a view (or an input as-is) but the "
                "jvp is not returning a view. Return the same view of the tangent."
            )
