"""`GradScaler`: scales a loss so that float16 gradients do not vanish, and leaves out steps whose
gradients overflow. One kernel looks at all gradients of a device and divides them."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dyngraph import autocasting, dtypes, modes
from dyngraph.devices import device as device_of
from dyngraph.storage import cell_of
from dyngraph.tensor import Tensor, new_tensor
from dyngraph.tracing import Tracer
from dyngraph.values import place_of

__all__ = ["GradScaler", "OptState"]
NOT_SCALED = (
    "This may indicate your script did not use scaler.scale(loss or outputs) earlier in the "
    "iteration."
)


class OptState(Enum):
    """What has been done with the gradients of one optimizer since the last update."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


class _OfOptimizer:
    """What one optimizer's gradients were found to be: for each device 1 if not finite, else 0."""

    def __init__(self) -> None:
        self.stage = OptState.READY
        self.found: list[jax.Array] = []


@jax.jit
def _unscaled(grads: Sequence[jax.Array], scale: jax.Array) -> tuple[list[jax.Array], jax.Array]:
    """The gradients divided by the scale, and 1.0 where any was not finite."""
    inverse = 1 / scale
    bad = jnp.array([~jnp.isfinite(g).all() for g in grads]).any()
    return [(g * inverse).astype(g.dtype) for g in grads], bad.astype(jnp.float32)


@jax.jit
def _updated(
    scale: jax.Array, tracker: jax.Array, found: Sequence[jax.Array], options: Sequence[Any]
) -> tuple[jax.Array, jax.Array]:
    """The next scale, and for how many steps in a row nothing was skipped."""
    growth, backoff, interval = options
    bad = sum(found) > 0  # type: ignore[operator]
    count = tracker + 1
    grown = scale * growth
    is_due = count == interval
    kept = jnp.where(is_due & jnp.isfinite(grown), grown, scale)
    next_scale = jnp.where(bad, scale * backoff, kept).astype(scale.dtype)
    return next_scale, jnp.where(bad | is_due, 0, count).astype(tracker.dtype)


class GradScaler:
    """Scales the loss, unscales the gradients, and leaves out steps whose gradients are not finite.

    The scale begins at `init_scale`. A step that is left out multiplies it by `backoff_factor`,
    `growth_interval` others in a row by `growth_factor`. `device` is where it is kept: "cuda" is
    the accelerator. With `enabled=False`, and where there is no such device (with a warning), it
    changes nothing. Raises AssertionError for factors that would not grow or shrink the scale.

    >>> w = dg.tensor([1.0], requires_grad=True)
    >>> optimizer = dg.optim.SGD([w], lr=0.5)
    >>> scaler = dg.amp.GradScaler("cpu", init_scale=4.0)
    >>> scaler.scale((w * w).sum()).backward()
    >>> w.grad
    tensor([8.])
    >>> scaler.step(optimizer)
    >>> scaler.update()
    >>> w.tolist(), scaler.get_scale()
    ([0.0], 4.0)
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = device
        self._enabled = enabled
        if enabled and not autocasting.is_there(autocasting.kind_of(device)):
            warnings.warn(
                f"GradScaler is enabled, but there is no device of type {device!r}. Disabling.",
                UserWarning,
                stacklevel=2,
            )
            self._enabled = False
        if growth_factor <= 1.0 and self._enabled:
            raise AssertionError(f"The growth factor must be > 1.0, got {growth_factor}.")
        if backoff_factor >= 1.0 and self._enabled:
            raise AssertionError(f"The backoff factor must be < 1.0, got {backoff_factor}.")
        self._init_scale = init_scale
        self._init_growth_tracker = 0
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._scale: Tensor | None = None
        self._growth_tracker: Tensor | None = None
        self._optimizers: defaultdict[int, _OfOptimizer] = defaultdict(_OfOptimizer)

    # --- in each iteration ------------------------------------------------------------------------

    def scale(self, outputs: Any) -> Any:
        """A tensor times the scale, or each tensor of a list, a tuple or another iterable.

        Raises ValueError for what is none of these.
        """
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            if self._scale is None:
                self._begin()
            assert self._scale is not None
            scaled = outputs * _scale_beside(self._scale, outputs)
            return scaled.to(outputs.dtype) if outputs.ndim else scaled
        if isinstance(outputs, (list, tuple)):
            return type(outputs)(map(self.scale, outputs))
        if isinstance(outputs, Iterable):
            return map(self.scale, outputs)
        raise ValueError(
            f"outputs must be a Tensor or an iterable of Tensors, got {type(outputs).__name__}."
        )

    def _begin(self) -> None:
        count = jnp.int32(self._init_growth_tracker)
        self._scale = new_tensor(cell_of(jnp.float32(self._init_scale)))
        self._growth_tracker = new_tensor(cell_of(count))

    def _begun(self, name: str) -> tuple[Tensor, Tensor]:
        if self._scale is None or self._growth_tracker is None:
            raise AssertionError(f"Attempted {name} but _scale is None. {NOT_SCALED}")
        return self._scale, self._growth_tracker

    def unscale_(self, optimizer: Any) -> None:
        """Divides the gradients of an optimizer's parameters by the scale, before they are clipped
        or looked at; `step` does it where this was not called.

        Raises RuntimeError the second time before `update`, ValueError for float16 gradients: the
        parameters must be float32.
        """
        if not self._enabled:
            return
        scale, _ = self._begun("unscale_")
        own = self._optimizers[id(optimizer)]
        if own.stage is OptState.UNSCALED:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last update(). "
                "Call it once, after the last backward()."
            )
        if own.stage is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step(). Call it before.")
        own.found = [_unscale(grads, scale) for grads in _grads_by_device(optimizer)]
        own.stage = OptState.UNSCALED

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Unscales what is not yet, and runs `optimizer.step(*args, **kwargs)` where all gradients
        are finite; its result, or None where the step is left out.

        Inside `dg.compile` the step is taken, and undone where it should not have been.

        Raises RuntimeError the second time before `update`, and for a closure; AssertionError where
        no parameter has a gradient.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError(
                "Closure use is not currently supported if GradScaler is enabled. Compute the loss "
                "and its gradients before step()."
            )
        self._begun("step")
        own = self._optimizers[id(optimizer)]
        if own.stage is OptState.STEPPED:
            raise RuntimeError(
                "step() has already been called since the last update(). Call update() at the end "
                "of each iteration."
            )
        if own.stage is OptState.READY:
            self.unscale_(optimizer)
        if not own.found:
            raise AssertionError(
                "No inf checks were recorded for this optimizer: none of its parameters has a "
                "gradient. Call backward() before step()."
            )
        own.stage = OptState.STEPPED
        if any(isinstance(found, Tracer) for found in own.found) and hasattr(optimizer, "begin"):
            return _step_or_undo(optimizer, own.found, args, kwargs)
        if any(_number(found) for found in own.found):
            return None
        return optimizer.step(*args, **kwargs)

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Makes the scale that of the next iteration; call it when all optimizers have stepped.

        Raises AssertionError where nothing was unscaled, or for a `new_scale` that is no float and
        no tensor of one element on the scaler's device.
        """
        if not self._enabled:
            return
        scale, tracker = self._begun("update")
        if new_scale is not None:
            scale._write(_as_scale(new_scale, scale, self._device))
        else:
            like = scale._cell.array
            found = [_beside(f, like) for own in self._optimizers.values() for f in own.found]
            if not found:
                raise AssertionError(
                    "No inf checks were recorded prior to update. Call step() before update()."
                )
            options = self._growth_factor, self._backoff_factor, self._growth_interval
            arrays = _updated(scale._cell.array, tracker._cell.array, found, options)
            for tensor, array in zip((scale, tracker), arrays, strict=True):
                tensor._write(array)
        self._optimizers.clear()

    # --- its options ------------------------------------------------------------------------------

    def get_scale(self) -> float:
        """The scale now; 1.0 where scaling is off."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        tracker = self._growth_tracker
        return self._init_growth_tracker if tracker is None else int(tracker.item())

    def get_growth_factor(self) -> float:
        """What the scale is multiplied by when it grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Sets what the scale is multiplied by when it grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """What the scale is multiplied by after a step that was left out."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Sets what the scale is multiplied by after a step that was left out."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """After how many steps in a row the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Sets after how many steps in a row the scale grows."""
        self._growth_interval = new_interval

    def is_enabled(self) -> bool:
        """Whether it scales at all."""
        return self._enabled

    # --- saving -----------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """The scale and what it depends on, as Python numbers, in PyTorch's layout; empty where
        scaling is off.

        >>> dg.amp.GradScaler("cpu").state_dict()["scale"]
        65536.0
        """
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continues from what `state_dict` gave; RuntimeError where that is empty."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled "
                "instance of GradScaler. Save it from one that scales."
            )
        self._init_scale = state_dict["scale"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._scale is not None and self._growth_tracker is not None:
            with modes.no_grad():
                self._scale.fill_(self._init_scale)
                self._growth_tracker.fill_(self._init_growth_tracker)

    def __getstate__(self) -> dict[str, Any]:
        if self._optimizers:
            raise AssertionError(
                "A GradScaler instance may only be pickled at the beginning of an iteration, or at "
                "the end after scaler.update()."
            )
        now = {"_init_scale": self.get_scale(), "_init_growth_tracker": self._get_growth_tracker()}
        return {**self.__dict__, **now, "_scale": None, "_growth_tracker": None}


def _grads_by_device(optimizer: Any) -> list[list[Tensor]]:
    groups: dict[Any, list[Tensor]] = {}
    for group in optimizer.param_groups:
        for param in group["params"]:
            grad = param.grad
            if grad is None:
                continue
            if grad.dtype is dtypes.float16:
                raise ValueError(
                    "Attempting to unscale FP16 gradients. Keep the parameters in float32, and run "
                    "the model under autocast."
                )
            place = place_of(grad._cell.array)
            groups.setdefault(place and frozenset(place.device_set), []).append(grad)
    return list(groups.values())


def _unscale(grads: Sequence[Tensor], scale: Tensor) -> jax.Array:
    """Divides the gradients of one device; 1.0 where any was not finite."""
    arrays = [grad._cell.array for grad in grads]
    unscaled, found = _unscaled(arrays, _beside(scale._cell.array, arrays[0]))
    for grad, array in zip(grads, unscaled, strict=True):
        grad._write(array)
    return found


def _beside(number: jax.Array, other: jax.Array) -> jax.Array:
    """An array of no dims, bound to no device where it is bound to others than another array."""
    if isinstance(number, Tracer) or isinstance(other, Tracer) or not number.committed:
        return number
    if number.devices() == other.devices():
        return number
    return jnp.asarray(np.asarray(number))


def _scale_beside(scale: Tensor, outputs: Tensor) -> Tensor:
    array = scale._cell.array
    if isinstance(array, Tracer) or not array.committed:  # in deferred mode, outputs may wait
        return scale
    moved = _beside(array, outputs._cell.array)
    return scale if moved is array else new_tensor(cell_of(moved))


def _number(found: jax.Array) -> float:
    return new_tensor(cell_of(found)).item()


def _tensors_of(optimizer: Any) -> list[Tensor]:
    """The parameters, and the tensors among an optimizer's state."""
    kept = [v for state in optimizer.state.values() for v in state.values()]
    params = [p for group in optimizer.param_groups for p in group["params"]]
    return [*params, *(v for v in kept if isinstance(v, Tensor))]


def _step_or_undo(optimizer: Any, found: Sequence[jax.Array], args: Any, kwargs: Any) -> Any:
    """Steps, then puts back what was there where a gradient was not finite; in a trace, where it
    is not known which."""
    bad = sum(found) > 0  # type: ignore[operator]
    optimizer.begin()
    before = [(t, t._cell.array) for t in _tensors_of(optimizer)]
    result = optimizer.step(*args, **kwargs)
    for tensor, array in before:
        if tensor._cell.array is not array:
            tensor._write(jnp.where(bad, array, tensor._cell.array))
    return result


def _as_scale(given: Any, scale: Tensor, device: str) -> jax.Array:
    like = scale._cell.array
    if isinstance(given, float):
        return jnp.full_like(like, given)
    kind = device_of(device).type
    if given.device.type != kind or given.numel() != 1 or given.requires_grad:
        raise AssertionError(
            "new_scale should be a float or a tensor of one element on the scaler's device, with "
            f"requires_grad=False; got {tuple(given.shape)} on {given.device}."
        )
    return _beside(given._cell.array.reshape(()).astype(like.dtype), like)
