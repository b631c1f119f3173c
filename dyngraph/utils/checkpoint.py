"""PyTorch's `torch.utils.checkpoint`: what backward needs is computed again instead of kept."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any

from dyngraph.errors import CheckpointError as CheckpointError
from dyngraph.random import default_generator
from dyngraph.tensor import Tensor
from dyngraph.utils.checkpoint_policies import (
    SAC_IGNORED_OPS as SAC_IGNORED_OPS,
    CheckpointPolicy as CheckpointPolicy,
    SelectiveCheckpointContext as SelectiveCheckpointContext,
    create_selective_checkpoint_contexts as create_selective_checkpoint_contexts,
)
from dyngraph.utils.recomputation import (
    Contexts,
    GraphExecGroup as GraphExecGroup,
    Region,
    noop_context_fn as noop_context_fn,
)
from dyngraph.utils.reentrant import (
    CheckpointFunction as CheckpointFunction,
    check_backward_validity as check_backward_validity,
    detach_variable as detach_variable,
)

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

_early_stop: ContextVar[bool | None] = ContextVar("dyngraph_early_stop", default=None)
_debug: ContextVar[bool | None] = ContextVar("dyngraph_checkpoint_debug", default=None)
REENTRANT_IS_OLD = (
    "the use_reentrant parameter should be passed explicitly. use_reentrant=False is recommended; "
    "without it, use_reentrant=True is taken, which does not work with autograd.grad() or "
    "backward(inputs=...)."
)


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
        region = Region(function, args, kwargs, check, preserve_rng_state=preserve_rng_state)
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
