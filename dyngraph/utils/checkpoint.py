"""PyTorch's `torch.utils.checkpoint`: what backward needs is computed again instead of kept.

# Note [Recomputing through saved-tensor hooks]
In a checkpointed region each tensor that would be saved is packed into an empty `Slot`. When
backward reads the first of them, the function runs again, under hooks that put what it saves, in
the same order, where the slots find it; then it is stopped, as nothing after that is needed. The
graph that the second run makes is thrown away. The region's own inputs are saved under the hooks
outside, so that regions nest.
"""

from __future__ import annotations

import contextlib
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple, Self

import jax

from dyngraph import modes
from dyngraph.autograd.function import Function
from dyngraph.backward import backward
from dyngraph.errors import CheckpointError
from dyngraph.graph import engine
from dyngraph.graph.node import creation_numbers
from dyngraph.graph.packing import saved_tensors_hooks
from dyngraph.observed import OperatorLog
from dyngraph.random import default_generator, fork_rng
from dyngraph.storage import Storage
from dyngraph.tensor import Tensor, new_tensor
from dyngraph.tracing import Tracer
from dyngraph.utils.checkpoint_policies import (
    SAC_IGNORED_OPS as SAC_IGNORED_OPS,
    CheckpointPolicy as CheckpointPolicy,
    SelectiveCheckpointContext as SelectiveCheckpointContext,
    create_selective_checkpoint_contexts as create_selective_checkpoint_contexts,
)
from dyngraph.values import place_of

__all__ = [
    "CheckpointError",
    "CheckpointFunction",
    "CheckpointPolicy",
    "DefaultDeviceType",
    "GraphExecGroup",
    "SAC_IGNORED_OPS",
    "SelectiveCheckpointContext",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "create_selective_checkpoint_contexts",
    "detach_variable",
    "get_device_states",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
    "set_device_states",
]

Contexts = tuple[contextlib.AbstractContextManager[Any], contextlib.AbstractContextManager[Any]]
_early_stop: ContextVar[bool | None] = ContextVar("dyngraph_early_stop", default=None)
_debug: ContextVar[bool | None] = ContextVar("dyngraph_checkpoint_debug", default=None)
_group: ContextVar[GraphExecGroup | None] = ContextVar("dyngraph_graph_group", default=None)
_TENSOR = object()
"""Stands for a tensor among arguments that are kept."""
REENTRANT_IS_OLD = (
    "the use_reentrant parameter should be passed explicitly. use_reentrant=False is recommended; "
    "without it, use_reentrant=True is taken, which does not work with autograd.grad() or "
    "backward(inputs=...)."
)


def noop_context_fn() -> Contexts:
    """The default `context_fn` of `checkpoint`: two contexts that do nothing.

    >>> len(dg.utils.checkpoint.noop_context_fn())
    2
    """
    return contextlib.nullcontext(), contextlib.nullcontext()


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], Contexts] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """`function(*args, **kwargs)`, of which backward keeps the arguments alone: it runs again.

    With `use_reentrant=False` (pass it) everything works as without a checkpoint, but for time and
    memory. `context_fn()` gives two contexts, for the first run and for the second;
    `create_selective_checkpoint_contexts` makes such pairs. `determinism_check="none"` leaves out
    the comparison of shapes and dtypes of both runs; `debug` lists the operators of both when they
    differ. `early_stop` ends the second run when all is there that backward needs. Random draws are
    the same in both runs, unless `preserve_rng_state` is off.

    With `use_reentrant=True`, PyTorch's older way, the function runs without recording, and then in
    a backward of its own: only positional arguments that require grad get a gradient.

    Raises ValueError for options that don't go together; in backward CheckpointError, a
    RuntimeError, where the second run saves other tensors than the first.

    >>> from dyngraph.utils.checkpoint import checkpoint
    >>> x = dg.tensor([0.5, 1.0], requires_grad=True)
    >>> y = checkpoint(lambda x: x.exp().sin(), x, use_reentrant=False)
    >>> y.sum().backward()
    >>> bool((x.grad == x.exp().cos() * x.exp()).all())
    True
    """
    if use_reentrant is None:
        warnings.warn(f"checkpoint: {REENTRANT_IS_OLD}", UserWarning, stacklevel=2)
        use_reentrant = True
    if not use_reentrant:
        check = determinism_check
        region = _Region(function, args, kwargs, check, preserve_rng_state=preserve_rng_state)
        enabled = _early_stop.get()
        region.early_stop = early_stop if enabled is None else enabled
        enabled = _debug.get()
        return region.run(context_fn, debug=debug if enabled is None else enabled)
    if kwargs:
        raise ValueError(
            f"Unexpected keyword arguments: {','.join(kwargs)}. Pass them by position, or with "
            "use_reentrant=False."
        )
    if context_fn is not noop_context_fn or debug:
        raise ValueError(
            "Passing `context_fn` or `debug` is only supported when use_reentrant=False."
        )
    return CheckpointFunction.apply(function, preserve_rng_state, *args)


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """A sequence of functions, one after the other, in `segments` parts that are checkpointed.

    `functions` is a list of functions or modules, or a module with `children()`. The last part is
    not checkpointed, as backward needs it first.

    >>> from dyngraph.utils.checkpoint import checkpoint_sequential
    >>> x = dg.tensor([0.5], requires_grad=True)
    >>> y = checkpoint_sequential([dg.exp, dg.sin, dg.exp], 3, x, use_reentrant=False)
    >>> bool(y == x.exp().sin().exp())
    True
    """
    if use_reentrant is None:
        warnings.warn(f"checkpoint_sequential: {REENTRANT_IS_OLD}", UserWarning, stacklevel=2)
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError(
            f"Unexpected keyword arguments: {','.join(kwargs)}. Only preserve_rng_state is known."
        )
    steps = list(functions.children() if hasattr(functions, "children") else functions)
    size = len(steps) // segments
    start = 0
    for _ in range(segments - 1):
        part = _in_turn(steps[start : start + size])
        input = checkpoint(part, input, use_reentrant=use_reentrant, preserve_rng_state=preserve)
        start += size
    return _in_turn(steps[start:])(input)


def _in_turn(steps: Sequence[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    def run(input: Any) -> Any:
        for step in steps:
            input = step(input)
        return input

    return run


# --- by saved-tensor hooks ------------------------------------------------------------------------


class _Stop(BaseException):
    """Ends the second run; no `except Exception` of the function's own catches it."""


class Slot:
    """What a node saves in place of a tensor: which one it is of those of its region."""

    __slots__ = ("__weakref__", "position", "region")

    def __init__(self, region: _Region, position: int) -> None:
        self.region = region
        self.position = position


class _Region:
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
        self.args = [_TENSOR if isinstance(a, Tensor) else a for a in args]
        with saved_tensors_hooks(self.pack, _unpack), context:
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
            position = count
            if tensor.requires_grad:  # a constant stays itself, as without a checkpoint
                tensor = tensor.detach()
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
            self.context,
            contextlib.suppress(_Stop),
        ):
            if self.random_state is not None:
                default_generator.set_state(self.random_state)
            self.function(*_filled(self.args, self.inputs.saved_tensors), **self.kwargs)
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


def _filled(args: Sequence[Any], tensors: Sequence[Any]) -> list[Any]:
    """The arguments with the tensors in their places; see Note [Barriers]."""
    given = iter(tensors)
    return [_behind_barrier(next(given)) if a is _TENSOR else a for a in args]


def _behind_barrier(tensor: Tensor) -> Tensor:
    # Note [Barriers]
    # Inside one XLA program the second run computes what the first did, and XLA would merge the
    # two, which undoes the checkpoint. A barrier round what it starts from keeps them apart.
    array = tensor._cell.array
    if not isinstance(array, Tracer):
        return tensor
    return new_tensor(Storage(jax.lax.optimization_barrier(array)), tensor._edge)


# --- by a backward of its own ---------------------------------------------------------------------


class CheckpointFunction(Function):
    """The Function behind `checkpoint(use_reentrant=True)`."""

    @staticmethod
    def forward(ctx: Any, run_function: Any, preserve_rng_state: bool, *args: Any) -> Any:
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.random_state = default_generator.get_state() if preserve_rng_state else None
        ctx.inputs = [_TENSOR if isinstance(a, Tensor) else a for a in args]
        ctx.save_for_backward(*[a for a in args if isinstance(a, Tensor)])
        return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        if engine.current_task().needed is not None:
            raise RuntimeError(
                "When use_reentrant=True, checkpoint is incompatible with .grad() or passing an "
                "`inputs` parameter to .backward(). To resolve this error, you can either set "
                "use_reentrant=False, or call .backward() without passing the `inputs` argument."
            )
        inputs = detach_variable(tuple(_filled(ctx.inputs, ctx.saved_tensors)))
        with fork_rng(enabled=ctx.random_state is not None), modes.enable_grad():
            if ctx.random_state is not None:
                default_generator.set_state(ctx.random_state)
            outputs = ctx.run_function(*inputs)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        pairs = [
            (o, g)
            for o, g in zip(outputs, grads, strict=True)
            if isinstance(o, Tensor) and o.requires_grad
        ]
        if not pairs:
            raise RuntimeError(
                "none of output has requires_grad=True, this checkpoint() is not necessary"
            )
        backward([o for o, _ in pairs], [g for _, g in pairs])
        return (None, None, *[i.grad if isinstance(i, Tensor) else None for i in inputs])


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The inputs, the tensors without history, requiring grad as they did.

    Raises RuntimeError for what is no tuple.

    >>> x = dg.ones(2, requires_grad=True) * 2
    >>> dg.utils.checkpoint.detach_variable((x, 3))
    (tensor([2., 2.], requires_grad=True), 3)
    """
    if not isinstance(inputs, tuple):
        raise RuntimeError(
            "Only tuple of tensors is supported. Got Unsupported input type: "
            f"{type(inputs).__name__}"
        )
    return tuple(
        [i.detach().requires_grad_(i.requires_grad) if isinstance(i, Tensor) else i for i in inputs]
    )


def check_backward_validity(inputs: Sequence[Any]) -> None:
    """Warns where no tensor of `inputs` requires grad: a reentrant checkpoint gives none then.

    >>> dg.utils.checkpoint.check_backward_validity([dg.ones(2, requires_grad=True)])
    """
    if not any(i.requires_grad for i in inputs if isinstance(i, Tensor)):
        warnings.warn(
            "None of the inputs have requires_grad=True. Gradients will be None",
            UserWarning,
            stacklevel=2,
        )


# --- switches -----------------------------------------------------------------------------------


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Whether checkpoints that are made inside end their second run early, whatever they say.

    >>> with dg.utils.checkpoint.set_checkpoint_early_stop(False):
    ...     pass
    """
    token = _early_stop.set(enable)
    try:
        yield
    finally:
        _early_stop.reset(token)


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Whether checkpoints that are made inside list their operators in errors; None: as they say.

    >>> with dg.utils.checkpoint.set_checkpoint_debug_enabled(True):
    ...     pass
    """
    token = _debug.set(enabled)
    try:
        yield
    finally:
        _debug.reset(token)


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


class DefaultDeviceType:
    """The device type that is assumed where no argument tells: "cuda", unless it is set."""

    _type = "cuda"

    @staticmethod
    def get_device_type() -> str:
        """The device type.

        >>> dg.utils.checkpoint.DefaultDeviceType.get_device_type()
        'cuda'
        """
        return DefaultDeviceType._type

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Sets the device type."""
        DefaultDeviceType._type = device


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """The numbers of the devices, beside the CPU, of the tensors among `args`, and the random state
    of each: that of the one generator which serves all.

    >>> dg.utils.checkpoint.get_device_states(dg.ones(2))
    ([], [])
    """
    found = {
        a.device.index or 0: None for a in args if isinstance(a, Tensor) and a.device.type != "cpu"
    }
    return list(found), [default_generator.get_state() for _ in found]


def set_device_states(
    devices: Sequence[int], states: Sequence[Tensor], *, device_type: str | None = None
) -> None:
    """Continues the generator from states that `get_device_states` gave.

    >>> dg.utils.checkpoint.set_device_states([], [])
    """
    for state in states:
        default_generator.set_state(state)
