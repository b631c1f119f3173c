"""Autocast as dispatch sees it: which device kinds have it on, and a call with its inputs cast.

# Note [A weight is cast once]
A float32 leaf that requires grad is cast to the lower precision once in a region, and so has one
cast node for all of its uses. The copy serves while the leaf holds the same array: a write inside
the region, or a tracer in the leaf's place, makes a new one. Recorded and unrecorded copies are
kept apart. In forward mode and inside mapped functions tensors mean something else at each level,
and nothing is kept.
"""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from typing import Any, NamedTuple

import jax

from dyngraph import modes
from dyngraph.cast_policies import ON_ACCELERATORS, ON_CPU, Policy
from dyngraph.devices import device
from dyngraph.dtypes import bfloat16, dtype, float16, float32, float64
from dyngraph.tensor import LEAF, Tensor


class State(NamedTuple):
    """Autocast in one thread: for each kind of device whether it is on, and the lower precision;
    None stands for the device's own."""

    cpu: bool = False
    accelerator: bool = False
    cpu_dtype: dtype = bfloat16
    accelerator_dtype: dtype | None = None
    keeps: bool = True
    """Whether casts of weights are kept."""
    depth: int = 0
    """How many regions are open."""


_OFF = State()
_state: ContextVar[State] = ContextVar("dyngraph_autocast", default=_OFF)
_casts: ContextVar[dict[Any, Any] | None] = ContextVar("dyngraph_casts", default=None)
state = _state.get


def set_state(new: State) -> None:
    """Replaces this thread's state."""
    _state.set(new)
    modes.switch(modes.AUTOCAST, on=new.cpu or new.accelerator)


def forget_casts() -> None:
    """Forgets the kept casts of weights."""
    _casts.set(None)


def own_dtype(kind: str) -> dtype:
    """The lower precision of a device where none is set."""
    return bfloat16 if kind in ("cpu", "tpu") else float16


@contextlib.contextmanager
def casts_of_its_own() -> Iterator[None]:
    """A block that neither finds nor leaves behind casts of weights, as what is traced needs."""
    kept = _casts.get()
    _casts.set(None)
    try:
        yield
    finally:
        _casts.set(kept)


@contextlib.contextmanager
def restored(earlier: State) -> Iterator[None]:
    """A block in an earlier state, for what runs a second time."""
    now = _state.get()
    set_state(earlier)
    try:
        with casts_of_its_own():
            yield
    finally:
        set_state(now)


def policy_of(name: str, given: Mapping[str, Any]) -> tuple[Policy | None, dtype]:
    """The policy of an operator called with these arguments, and the lower precision."""
    now, kind = _state.get(), _kind_of_inputs(given)
    if kind == "cpu":
        return (ON_CPU.get(name) if now.cpu else None), now.cpu_dtype
    policy = ON_ACCELERATORS.get(name) if now.accelerator else None
    return policy, now.accelerator_dtype or own_dtype(kind)


def _kind_of_inputs(given: Mapping[str, Any]) -> str:
    """The type of device on which an operator's first tensor is."""
    if not _has_accelerator():
        return "cpu"
    return next((str(v.device.type) for v in given.values() if isinstance(v, Tensor)), "cpu")


@functools.cache
def _has_accelerator() -> bool:
    return jax.default_backend() != "cpu"


def run_cast(call: Any, given: Mapping[str, Any]) -> Any:
    """The call of an operator, with its inputs cast as its policy says, and autocast off."""
    name = call.spec.name
    policy, fast = policy_of(name, given)
    flags = modes.get_flags()
    modes.set_flags(flags & ~modes.AUTOCAST)
    try:
        return call(**(given if policy is None else cast(policy, given, fast)))
    finally:
        modes.set_flags(flags)


def run_whole(name: str, function: Any, given: Mapping[str, Any]) -> Any:
    """A function of several operators that has a policy of its own, run as one operator.

    Gives NotImplemented where it has none here: then its operators are looked at, each for itself.
    """
    policy, fast = policy_of(name, given)
    if policy is None:
        return NotImplemented
    flags = modes.get_flags()
    modes.set_flags(flags & ~modes.AUTOCAST)
    try:
        return function(**cast(policy, given, fast))
    finally:
        modes.set_flags(flags)


def cast(policy: Policy, given: Mapping[str, Any], fast: dtype) -> Mapping[str, Any]:
    """The arguments, floating point tensors in the dtype that the policy says; float64 stays."""
    tensors = {n: v for n, v in given.items() if isinstance(v, Tensor) and is_cast(v)}
    if not tensors:
        return given
    wanted = policy(given, [t.dtype for t in tensors.values()], fast)
    if wanted is None:
        return given
    keeps = wanted is fast and _state.get().keeps
    others = {
        n: _lowered(t, wanted) if keeps else t.to(wanted)
        for n, t in tensors.items()
        if t.dtype is not wanted
    }
    return {**given, **others}


def is_cast(tensor: Tensor) -> bool:
    """Whether autocast casts a tensor: a floating point one, not float64."""
    return tensor.dtype.is_floating_point and tensor.dtype is not float64


def _lowered(tensor: Tensor, wanted: dtype) -> Tensor:
    """The tensor in the lower precision; see Note [A weight is cast once]."""
    is_weight = tensor._view is None and tensor._known_edge is LEAF and tensor.dtype is float32
    flags = modes.get_flags()
    if not is_weight or flags & (modes.FORWARD | modes.MAPPED):
        return tensor.to(wanted)
    casts = _casts.get()
    if casts is None:
        casts = {}
        _casts.set(casts)
    key = id(tensor), wanted, flags & (modes.GRAD | modes.INFERENCE)
    held = tensor._cell.held
    known = casts.get(key)
    if known is not None and known[0]() is tensor and known[1] is held:
        return known[2]
    copy = tensor.to(wanted)
    casts[key] = weakref.ref(tensor), held, copy
    return copy


def kind_of(device_type: str) -> str:
    """The type of a device by its name; RuntimeError for a name that is none."""
    return str(device(device_type).type)


def is_there(kind: str) -> bool:
    """Whether this process has a device of a type."""
    if kind == "cpu":
        return True
    try:
        return bool(jax.devices(kind))
    except RuntimeError:
        return False
