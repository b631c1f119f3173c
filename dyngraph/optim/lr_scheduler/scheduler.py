"""LRScheduler: what changes the learning rates of an optimizer's groups from epoch to epoch.

Invariant: after a `step`, `last_epoch` counts the steps, and `get_last_lr()` are the rates in the
groups.
"""

from __future__ import annotations

import types
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from dyngraph import modes
from dyngraph.optim.optimizer import Group, Optimizer
from dyngraph.tensor import Tensor

EPOCH_WARNING = (
    "The epoch parameter in `scheduler.step()` is deprecated: it takes the closed form of the "
    "schedule, where there is one. Call `scheduler.step()` once an epoch."
)


class LRScheduler:
    """The base of all schedulers, PyTorch's own subclasses included: a subclass has `get_lr`.

    Raises TypeError for what is no Optimizer, and KeyError with `last_epoch` where the groups know
    no initial rate.
    """

    _get_lr_called_within_step = False
    _is_initial = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = check_optimizer(optimizer)
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming "
                    "scheduler with last_epoch >= 0. Load the optimizer's state_dict first, or "
                    "leave last_epoch out."
                )
        self.base_lrs = values_of(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self) -> dict[str, Any]:
        """All that the scheduler knows, but the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continues from what `state_dict` gave."""
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list[Any]:
        """The rates of the groups since the last step."""
        return self._last_lr

    def get_lr(self) -> list[Any]:
        """The rates for `last_epoch`, one a group; called by `step`."""
        raise NotImplementedError(f"{type(self).__name__} defines no get_lr()")

    def step(self, epoch: int | None = None) -> None:
        """Sets the rates of the next epoch; call it after the optimizer's step."""
        if self._step_count == 1 and not getattr(self.optimizer, "_opt_called", False):
            warnings.warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`, which skips the "
                "first value of the schedule. Call them in the opposite order.",
                UserWarning,
                stacklevel=2,
            )
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_WARNING, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        self._get_lr_called_within_step = True
        try:
            if epoch is None:
                self.last_epoch += 1
                rates = self.get_lr()
            else:
                self.last_epoch = epoch
                rates = getattr(self, "_get_closed_form_lr", self.get_lr)()
        finally:
            self._get_lr_called_within_step = False
        self._set(rates)

    def _set(self, rates: Sequence[Any]) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            set_value(group, "lr", rate)
        self._last_lr = values_of(self.optimizer, "lr")

    def _warn_outside_step(self) -> None:
        if not self._get_lr_called_within_step:
            warnings.warn(
                "get_lr() computes the next rates. To get the last learning rate computed by the "
                "scheduler, please use `get_last_lr()`.",
                UserWarning,
                stacklevel=3,
            )


def check_optimizer(optimizer: Any) -> Optimizer:
    """The optimizer; TypeError for what is none."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer. Pass one of dg.optim.")
    return optimizer


def copied(value: Any) -> Any:
    """The value; of a tensor a copy."""
    if not isinstance(value, Tensor):
        return value
    with modes.no_grad():
        return value.clone()


def values_of(optimizer: Optimizer, key: str) -> list[Any]:
    """An option of all groups."""
    return [copied(group[key]) for group in optimizer.param_groups]


def set_value(group: Group, key: str, value: Any) -> None:
    """Sets an option; of a tensor, its value."""
    if isinstance(group[key], Tensor):
        with modes.no_grad():
            group[key].fill_(value.item() if isinstance(value, Tensor) else value)
    else:
        group[key] = value


def a_group(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """One value for each group; ValueError for a list of another length."""
    count = len(optimizer.param_groups)
    if not isinstance(value, list | tuple):
        return [copied(value) for _ in range(count)]
    if len(value) != count:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} "
            f"values, param_groups has {count}."
        )
    return [copied(part) for part in value]


def state_of_function(function: Callable[..., Any] | None) -> dict[str, Any] | None:
    """What a callable object knows; None for a function, which is not saved."""
    if function is None or isinstance(function, types.FunctionType):
        return None
    return dict(vars(function)) if hasattr(function, "__dict__") else None
