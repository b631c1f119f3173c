"""One call of a checkpointed function, whose saved tensors are computed again when backward reads
them.

# Note [Recomputing through saved-tensor hooks]
In a checkpointed region each tensor that would be saved is packed into an empty `Slot`. When
backward reads the first of them, the function runs again, under hooks that put what it saves, in
the same order, where the slots find it; then it is stopped, as nothing after that is needed. The
graph that the second run makes is thrown away. The region's own inputs are saved under the hooks
outside, so that regions nest.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple, Self

import jax

from dyngraph import autocasting, modes
from dyngraph.autograd.function import Function
from dyngraph.errors import CheckpointError
from dyngraph.graph import engine
from dyngraph.graph.node import creation_numbers
from dyngraph.graph.packing import saved_tensors_hooks
from dyngraph.observed import OperatorLog
from dyngraph.placement import place_of
from dyngraph.random import default_generator, fork_rng
from dyngraph.storage import cell_of
from dyngraph.tensor import Tensor, new_tensor
from dyngraph.tracing import Tracer

Contexts = tuple[contextlib.AbstractContextManager[Any], contextlib.AbstractContextManager[Any]]
_group: ContextVar[GraphExecGroup | None] = ContextVar("dyngraph_graph_group", default=None)
TENSOR = object()
"""Stands for a tensor among arguments that are kept."""


def noop_context_fn() -> Contexts:
    """The default `context_fn` of `checkpoint`: two contexts that do nothing.

    >>> len(dg.utils.checkpoint.noop_context_fn())
    2
    """
    return contextlib.nullcontext(), contextlib.nullcontext()


class _Stop(BaseException):
    """Ends the second run; no `except Exception` of the function's own catches it."""


class Slot:
    """What a node saves in place of a tensor: which one it is of those of its region."""

    __slots__ = ("__weakref__", "position", "region")

    def __init__(self, region: Region, position: int) -> None:
        self.region = region
        self.position = position


class Region:
    """One call of a checkpointed function."""

    def __init__(
        self,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: dict[str, Any],
        determinism_check: str,
        *,
        preserve_rng_state: bool,
    ) -> None:
        if determinism_check not in ("default", "none"):
            raise ValueError(
                "determinism_check should be one of ['default', 'none'], but got "
                f"{determinism_check}"
            )
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.random_state = default_generator.get_state() if preserve_rng_state else None
        self.autocast = autocasting.state()
        self.checked = determinism_check == "default"
        self.early_stop = True
        self.complete = False
        self.slots: list[weakref.ref[Slot]] = []
        self.kinds: list[_Kind] = []
        self.recomputed: weakref.WeakKeyDictionary[Any, dict[int, Tensor]]
        self.recomputed = weakref.WeakKeyDictionary()
        self.logs: tuple[OperatorLog, OperatorLog] | None = None

    def run(self, context_fn: Callable[[], Contexts], *, debug: bool) -> Any:
        """The first run."""
        if debug:
            if context_fn is not noop_context_fn:
                raise ValueError("debug=True is incompatible with non-default context_fn")
            self.logs = OperatorLog(), OperatorLog()
        context, self.context = self.logs or context_fn()
        function, args = self.function, self.args
        if not modes.is_grad_enabled():
            with context:
                return function(*args, **self.kwargs)
        self.inputs = _kept(args)
        self.args = [TENSOR if isinstance(a, Tensor) else a for a in args]
        casts = autocasting.casts_of_its_own()  # the second run finds none either
        with saved_tensors_hooks(self.pack, _unpack), casts, context:
            result = function(*args, **self.kwargs)
            self.complete = True
        if not self.complete:
            raise RuntimeError(
                "checkpoint: the forward context provided by context_fn suppressed an exception "
                "raised during the checkpointed forward. This is not supported because checkpoint "
                "cannot return a value for a failed forward."
            )
        return result

    def pack(self, tensor: Tensor) -> Slot:
        """Has a node save a slot in place of the tensor."""
        slot = Slot(self, len(self.slots))
        self.slots.append(weakref.ref(slot))
        self.kinds.append(_kind(tensor))
        return slot

    def value(self, slot: Slot) -> Tensor:
        """The tensor of a slot: from the second run, of which each backward has its own."""
        key = _group.get() or engine.running_task() or _Access()
        values = self.recomputed.get(key)
        if values is None:
            values = self.recompute()
            self.recomputed[key] = values
        try:
            return values.pop(slot.position)
        except KeyError:
            raise CheckpointError(
                "checkpoint: Unpack is being triggered for a tensor that was already unpacked "
                "once in this backward. Read ctx.saved_tensors only once; inside GraphExecGroup, "
                "two backwards may not need the same saved tensor."
            ) from None

    def recompute(self) -> dict[int, Tensor]:
        """Runs the function again: what it saves, by position, where a slot still asks for it."""
        values: dict[int, Tensor] = {}
        count, expected = 0, len(self.slots)

        def pack(tensor: Tensor) -> Tensor:
            nonlocal count
            position, tensor = count, tensor.detach() if tensor.requires_grad else tensor
            count += 1
            if position >= len(self.slots) and self.complete:
                raise self.error(
                    "trying to save more tensors during recomputation than during the original "
                    f"forward pass, which saved {expected}"
                )
            if position < expected and self.slots[position]() is not None:
                values[position] = tensor
            if self.early_stop and count == expected:
                raise _Stop
            return tensor

        with (
            fork_rng(enabled=self.random_state is not None),
            saved_tensors_hooks(pack, lambda tensor: tensor),
            modes.enable_grad(),
            autocasting.restored(self.autocast),
            self.context,
            contextlib.suppress(_Stop),
        ):
            if self.random_state is not None:
                default_generator.set_state(self.random_state)
            self.function(*filled(self.args, self.inputs.saved_tensors), **self.kwargs)
        if self.complete:
            self.check(values, count)
        return values

    def check(self, values: dict[int, Tensor], count: int) -> None:
        """Raises where the second run has saved other tensors than the first."""
        if count != len(self.slots):
            raise self.error(
                "A different number of tensors was saved during the original forward and "
                f"recomputation: {len(self.slots)} and then {count}"
            )
        if not self.checked:
            return
        other = [
            f"tensor at position {position}: {self.kinds[position]}, then {_kind(value)}"
            for position, value in values.items()
            if _kind(value) != self.kinds[position]
        ]
        if other:
            raise self.error(
                "Recomputed values for the following tensors have different metadata than during "
                f"the forward pass.\n{chr(10).join(other)}\n"
            )

    def error(self, fact: str) -> CheckpointError:
        """The error that says how the two runs differ."""
        advice = (
            "The function must do the same both times: look for state that it changes, and for "
            "random draws from a generator of its own."
        )
        if self.logs is None:
            return CheckpointError(f"checkpoint: {fact}. {advice} debug=True lists what it did.")
        first, second = self.logs
        return CheckpointError(
            f"checkpoint: {fact}. {advice}\nOperations executed during the original forward:\n"
            f"{first}\nOperations executed during recomputation:\n{second}"
        )


class _Access:
    """Stands for a backward, where a saved tensor is looked at outside of one."""


def _unpack(slot: Slot) -> Tensor:
    return slot.region.value(slot)


class _Kind(NamedTuple):
    """What a saved tensor is like."""

    shape: tuple[int, ...]
    dtype: Any
    place: Any

    def __str__(self) -> str:
        return f"{self.dtype.name}{list(self.shape)} at {self.place}"


def _kind(tensor: Tensor) -> _Kind:
    array = tensor._cell.array
    return _Kind(array.shape, array.dtype, place_of(array))


class _Inputs(Function):
    """Its node keeps the tensors among a region's arguments, under the hooks outside of it."""


def _kept(args: Sequence[Any]) -> Any:
    kept = _Inputs._backward_cls(args, (), next(creation_numbers))
    kept.save_for_backward(*[a for a in args if isinstance(a, Tensor)])
    kept.save(())
    kept.forget_marks()
    return kept


def filled(args: Sequence[Any], tensors: Sequence[Any]) -> list[Any]:
    """The arguments with the tensors in their places; see Note [Barriers]."""
    given = iter(tensors)
    return [_behind_barrier(next(given)) if a is TENSOR else a for a in args]


def _behind_barrier(tensor: Tensor) -> Tensor:
    # Note [Barriers]
    # Inside one XLA program the second run computes what the first did, and XLA would merge the
    # two, which undoes the checkpoint. A barrier round what it starts from keeps them apart.
    array = tensor._cell.array
    if not isinstance(array, Tracer):
        return tensor
    return new_tensor(cell_of(jax.lax.optimization_barrier(array)), tensor._edge)


class GraphExecGroup:
    """Backwards inside share one second run of each checkpoint; each tensor may be read once.

    Raises RuntimeError inside another one.

    >>> from dyngraph.utils.checkpoint import GraphExecGroup, checkpoint
    >>> x = dg.ones(2, requires_grad=True)
    >>> y, z = checkpoint(lambda x: (x.exp(), x.sin()), x, use_reentrant=False)
    >>> with GraphExecGroup():
    ...     y.sum().backward()
    ...     z.sum().backward()
    """

    def __enter__(self) -> Self:
        if _group.get() is not None:
            raise RuntimeError(
                "GraphExecGroup contexts cannot be nested. Leave the one that is open first."
            )
        _group.set(self)
        return self

    def __exit__(self, *exception: object) -> None:
        _group.set(None)
