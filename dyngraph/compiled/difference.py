"""In what a new sequence of calls differs from one that was known."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from dyngraph.compiled.report import shown

if TYPE_CHECKING:
    from dyngraph.compiled.schedule import Schedule


def difference(new: Schedule, known: Iterable[Schedule]) -> str:
    """What is different in `new` from the nearest of those that are known."""
    count = f"{len(new.calls)} calls"
    nearest = max(known, key=lambda old: _alike(new, old), default=None)
    if nearest is None:
        return f"{count}, the first of their kind"
    return f"{count}; {_why(new, nearest)}"


def _alike(new: Schedule, old: Schedule) -> int:
    """How many calls at the beginning are of the same kernels."""
    count = 0
    for now, was in zip(new.calls, old.calls, strict=False):
        if now.kernel is not was.kernel:
            break
        count += 1
    return count


def _why(new: Schedule, old: Schedule) -> str:
    calls = [schedule.calls[: len(schedule.calls) - schedule.sums] for schedule in (new, old)]
    for i, (now, was) in enumerate(zip(*calls, strict=False)):
        if now.kernel is not was.kernel:
            return f"call {i} {_kernels(was.kernel, now.kernel)}"
        if now.inputs != was.inputs:
            return f"call {i}, {name(now.kernel)}, reads other values: a tensor is used elsewhere"
    if len(calls[0]) != len(calls[1]):
        return f"there were {len(calls[1])}"
    if new.sums != old.sums:
        return (
            f"{_grads(new.sums)} a .grad to add to ({old.sums} before): one structure more. "
            "Set .grad to None, or keep it, before every step"
        )
    for i, (now, was) in enumerate(zip(new.inputs, old.inputs, strict=False)):
        if now != was:
            return f"input {i}{_readers(new, i)} is {_change(_aval(was), _aval(now))}"
    return "other gradients are asked of it"


def _grads(count: int) -> str:
    return "1 leaf has" if count == 1 else f"{count or 'no'} leaves have"


def _kernels(was: Any, now: Any) -> str:
    """In what two kernels differ."""
    names = name(was), name(now)
    if names[0] != names[1]:
        return f"was {names[0]}, is {names[1]}"
    plans = _plan(was), _plan(now)
    if None in plans:
        return f"is another {names[1]}"
    statics = [plan.kernel.statics for plan in plans]
    for key, value in statics[1].items():
        if statics[0].get(key) != value:
            return f"of {names[1]}: {key} was {statics[0].get(key)!r}, is {value!r}"
    if plans[0].needed != plans[1].needed:
        needed = [", ".join(plan.needed) for plan in plans]
        return f"of {names[1]}: the gradient was needed of {needed[0]}, is of {needed[1]}"
    targets = [[_target(t) for t in kernel.__wrapped__.targets if t] for kernel in (was, now)]
    if targets[0] != targets[1]:
        return f"of {names[1]}: for {_change(', '.join(targets[0]), ', '.join(targets[1]))}"
    avals = [[_aval(a) for a in getattr(plan, "avals", ()) if a is not None] for plan in plans]
    if avals[0] != avals[1]:
        return f"of {names[1]}: of {_change(', '.join(avals[0]), ', '.join(avals[1]))}"
    return f"of {names[1]}: other outputs have a gradient"


def _change(was: str, now: str) -> str:
    return f"{now} instead of {was}"


def _plan(kernel: Any) -> Any:
    return getattr(getattr(kernel, "__wrapped__", None), "plan", None)


def _target(target: Any) -> str:
    shape, dtype = target
    return f"{dtype.name}{list(shape)}"


def _aval(aval: Any) -> str:
    return f"weak {shown(aval)}" if aval.weak_type else shown(aval)


def _readers(schedule: Schedule, number: int) -> str:
    """Which calls read an input."""
    names = dict.fromkeys(name(c.kernel) for c in schedule.calls if ~number in c.inputs)
    return f", read by {', '.join(list(names)[:3])}," if names else ""


def name(kernel: Any) -> str:
    """What a kernel is called."""
    return kernel.__name__
