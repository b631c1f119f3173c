"""`autocast`: operators choose the precision that they compute in; and what asks and sets it."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self

from dyngraph import autocasting, dtypes
from dyngraph.autocasting import State
from dyngraph.tensor import Tensor

__all__ = [
    "autocast",
    "autocast_decrement_nesting",
    "autocast_increment_nesting",
    "clear_autocast_cache",
    "get_autocast_dtype",
    "is_autocast_cache_enabled",
    "is_autocast_enabled",
    "set_autocast_cache_enabled",
    "set_autocast_dtype",
    "set_autocast_enabled",
]
LOWER = (dtypes.bfloat16, dtypes.float16)


class autocast:  # noqa: N801 - PyTorch's name
    """Operators compute in the precision that suits them, inside or in a decorated function.

    Matrix products and convolutions cast float32 inputs to `dtype` (bfloat16; on CUDA float16),
    losses and what overflows easily compute in float32, the rest on what it is given. The lists are
    PyTorch's, for tensors of `device_type`: "cpu", or "cuda", "gpu" or "tpu" for the accelerator.
    Parameters stay as they are, and their gradients have their dtype. A weight is cast once in a
    region, unless `cache_enabled` is False. Wrap forward and loss in it, not backward.

    Warns, and does nothing, where there is no such device, or for another dtype than bfloat16 and
    float16. Raises ValueError for a device type that is no string, RuntimeError for one that is
    unknown.

    >>> layer = dg.nn.Linear(2, 2)
    >>> with dg.autocast("cpu"):
    ...     y = layer(dg.ones(1, 2))
    ...     loss = dg.nn.functional.mse_loss(y, dg.zeros(1, 2))
    >>> y.dtype, loss.dtype
    (dyngraph.bfloat16, dyngraph.float32)
    >>> loss.backward()
    >>> layer.weight.grad.dtype
    dyngraph.float32
    """

    def __init__(
        self,
        device_type: str,
        dtype: Any = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        kind = _kind(device_type)
        self.device = device_type
        self.fast_dtype = _lower_of(device_type) if dtype is None else dtypes.as_dtype(dtype)
        self._keeps = cache_enabled
        why_not = None
        if not autocasting.is_there(kind):
            why_not = f"there is no device of type {device_type!r}"
        elif self.fast_dtype not in LOWER:
            why_not = f"{self.fast_dtype} is no lower precision, which are bfloat16 and float16"
        if enabled and why_not is not None:
            warnings.warn(f"autocast: {why_not}. Disabling autocast.", UserWarning, stacklevel=2)
        self._enabled = bool(enabled) and why_not is None
        self._before: list[State] = []

    def __enter__(self) -> Self:
        before = autocasting.state()
        self._before.append(before)
        state = _switched(before, self.device, on=self._enabled, dtype=self.fast_dtype)
        keeps = before.keeps if self._keeps is None else self._keeps
        autocasting.set_state(state._replace(keeps=keeps, depth=before.depth + 1))
        return self

    def __exit__(self, *exception: object) -> None:
        before = self._before.pop()
        if before.depth == 0:
            autocasting.forget_casts()
        autocasting.set_state(before)

    def _copy(self) -> autocast:
        """The same with a state of its own: one for each call of a function."""
        copy = object.__new__(autocast)
        copy.__dict__.update(self.__dict__, _before=[])
        return copy

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        if not callable(func):
            raise TypeError(
                f"autocast()(func) requires a callable, but got {type(func).__name__}. As a "
                "context manager it is: with dg.autocast(device_type): ..."
            )

        @functools.wraps(func)
        def cast(*args: Any, **kwargs: Any) -> Any:
            with self._copy():
                return func(*args, **kwargs)

        return cast


def _kind(device_type: Any) -> str:
    if not isinstance(device_type, str):
        raise ValueError(
            f"Expected `device_type` of type `str`, got: `{type(device_type)}`. Pass 'cpu' or "
            "'cuda'; a tensor's is x.device.type."
        )
    return autocasting.kind_of(device_type)


def _lower_of(device_type: str) -> dtypes.dtype:
    kind, state = _kind(device_type), autocasting.state()
    set_one = state.cpu_dtype if kind == "cpu" else state.accelerator_dtype
    return set_one or autocasting.own_dtype(kind)


def _switched(state: State, device_type: str, *, on: bool, dtype: dtypes.dtype | None) -> State:
    if _kind(device_type) == "cpu":
        return state._replace(cpu=on, cpu_dtype=dtype)
    return state._replace(accelerator=on, accelerator_dtype=dtype)


# --- asking and setting -------------------------------------------------------------------------


def is_autocast_available(device_type: str) -> bool:
    """Whether autocast knows a type of device, be there one or not.

    >>> dg.amp.is_autocast_available("cuda")
    True
    """
    return bool(_kind(device_type))


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether autocast is on in this thread, for a type of device.

    >>> with dg.autocast("cpu"):
    ...     dg.is_autocast_enabled("cpu")
    True
    """
    state = autocasting.state()
    return state.cpu if _kind(device_type) == "cpu" else state.accelerator


def set_autocast_enabled(device_type: str, enabled: bool) -> None:
    """Switches autocast in this thread, for a type of device; `autocast` is the safer way.

    >>> dg.set_autocast_enabled("cpu", False)
    """
    dtype = _lower_of(device_type)
    state = autocasting.state()
    autocasting.set_state(_switched(state, device_type, on=bool(enabled), dtype=dtype))


def get_autocast_dtype(device_type: str) -> dtypes.dtype:
    """The lower precision of a type of device.

    >>> dg.get_autocast_dtype("cpu"), dg.get_autocast_dtype("cuda")
    (dyngraph.bfloat16, dyngraph.float16)
    """
    return _lower_of(device_type)


def set_autocast_dtype(device_type: str, dtype: Any) -> None:
    """Sets the lower precision of a type of device, in this thread.

    >>> dg.set_autocast_dtype("cpu", dg.bfloat16)
    """
    on, dtype = is_autocast_enabled(device_type), dtypes.as_dtype(dtype)
    autocasting.set_state(_switched(autocasting.state(), device_type, on=on, dtype=dtype))


def is_autocast_cache_enabled() -> bool:
    """Whether a weight is cast once in a region, and not at each use.

    >>> dg.is_autocast_cache_enabled()
    True
    """
    return autocasting.state().keeps


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Sets whether a weight is cast once in a region, in this thread.

    >>> dg.set_autocast_cache_enabled(True)
    """
    autocasting.set_state(autocasting.state()._replace(keeps=bool(enabled)))


def clear_autocast_cache() -> None:
    """Forgets the casts of weights that this thread keeps.

    >>> dg.clear_autocast_cache()
    """
    autocasting.forget_casts()


def autocast_increment_nesting() -> int:
    """Counts a region that is entered by hand; the count.

    >>> dg.autocast_increment_nesting(), dg.autocast_decrement_nesting()
    (1, 0)
    """
    return _count(1)


def autocast_decrement_nesting() -> int:
    """Counts a region that is left by hand; the count."""
    return _count(-1)


def _count(step: int) -> int:
    state = autocasting.state()
    autocasting.set_state(state._replace(depth=state.depth + step))
    return state.depth + step


# --- custom Functions ---------------------------------------------------------------------------


def custom_fwd(
    fwd: Callable[..., Any] | None = None, *, device_type: str, cast_inputs: Any = None
) -> Any:
    """Decorates the forward of a Function, so that it knows what to do under autocast.

    With `cast_inputs`, a dtype, floating point tensors are cast to it, and forward runs without
    autocast; without it, with autocast as it is. Outside of autocast it changes nothing. Raises
    ValueError for a device type that is no string.

    >>> class Double(dg.autograd.Function):
    ...     @staticmethod
    ...     @dg.amp.custom_fwd(device_type="cpu", cast_inputs=dg.float32)
    ...     def forward(ctx, x):
    ...         return x + x
    ...
    ...     @staticmethod
    ...     @dg.amp.custom_bwd(device_type="cpu")
    ...     def backward(ctx, grad):
    ...         return grad + grad
    >>> with dg.autocast("cpu"):
    ...     Double.apply(dg.ones(2, dtype=dg.bfloat16)).dtype
    dyngraph.float32
    """
    kind = _kind(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        on = is_autocast_enabled(device_type)
        ctx._dtype = get_autocast_dtype(device_type)
        ctx._fwd_used_autocast = on and cast_inputs is None
        if not on or cast_inputs is None:
            return fwd(ctx, *args, **kwargs)
        with autocast(device_type, enabled=False):
            args, kwargs = _cast((args, kwargs), kind, cast_inputs)
            return fwd(ctx, *args, **kwargs)

    return forward


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Any:
    """Decorates the backward of a Function with `custom_fwd`: it runs under autocast as that did.

    Raises ValueError for a device type that is no string.
    """
    _kind(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        with autocast(device_type, enabled=ctx._fwd_used_autocast, dtype=ctx._dtype):
            return bwd(ctx, *args, **kwargs)

    return backward


def _cast(value: Any, kind: str, dtype: Any) -> Any:
    """The tensors in nested containers that autocast casts, cast."""
    if isinstance(value, Tensor):
        is_meant = (value.device.type == "cpu") == (kind == "cpu")
        return value.to(dtype) if is_meant and autocasting.is_cast(value) else value
    if isinstance(value, Mapping):
        return {_cast(k, kind, dtype): _cast(v, kind, dtype) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_cast(v, kind, dtype) for v in value)
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
        return value if hasattr(value, "__array__") else (_cast(v, kind, dtype) for v in value)
    return value
