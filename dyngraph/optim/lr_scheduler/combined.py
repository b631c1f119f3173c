"""Schedulers made of schedulers, one that follows a measure, and one that follows optax."""

from __future__ import annotations

import math
import warnings
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from dyngraph.optim.lr_scheduler.scheduler import (
    EPOCH_WARNING,
    LRScheduler,
    check_optimizer,
    set_value,
    values_of,
)
from dyngraph.optim.optimizer import Optimizer


class ReduceLROnPlateau(LRScheduler):
    """Times `factor` when a measure has not improved for more than `patience` epochs.

    >>> opt = dg.optim.SGD([dg.ones(2, requires_grad=True)], lr=1.0)
    >>> scheduler = dg.optim.lr_scheduler.ReduceLROnPlateau(opt, patience=1)
    >>> for loss in [3.0, 2.0, 2.0, 2.0]:
    ...     scheduler.step(loss)
    >>> scheduler.get_last_lr()
    [0.1]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: Any = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError(f"Factor should be < 1.0, got {factor}.")
        self.factor = factor
        self.optimizer = check_optimizer(optimizer)
        count = len(optimizer.param_groups)
        several = isinstance(min_lr, list | tuple)
        if several and len(min_lr) != count:
            raise ValueError(f"expected {count} min_lrs, got {len(min_lr)}")
        self.default_min_lr = None if several else min_lr
        self.min_lrs = list(min_lr) if several else [min_lr] * count
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch = 0
        self._last_lr = values_of(optimizer, "lr")
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown! Expected 'min' or 'max'.")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(
                f"threshold mode {threshold_mode} is unknown! Expected 'rel' or 'abs'."
            )
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self._reset()

    def _reset(self) -> None:
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Looks at the measure of an epoch: a number, or a tensor of one element."""
        current = float(metrics)
        if epoch is not None:
            warnings.warn(EPOCH_WARNING, UserWarning, stacklevel=2)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(current, self.best):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr(self.last_epoch)
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = values_of(self.optimizer, "lr")

    def _reduce_lr(self, epoch: int) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"The number of param groups in the optimizer ({len(groups)}) differs from "
                    f"when ReduceLROnPlateau was initialized ({len(self.min_lrs)}). Give min_lrs "
                    "one value for each."
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(groups, self.min_lrs, strict=True):
            before = float(group["lr"])
            rate = max(before * self.factor, least)
            if before - rate > self.eps:
                set_value(group, "lr", rate)

    @property
    def in_cooldown(self) -> bool:
        """Whether bad epochs do not count yet."""
        return self.cooldown_counter > 0

    def _is_better(self, a: float, best: float) -> bool:
        if self.mode == "min":
            relative = self.threshold_mode == "rel"
            return a < (best * (1.0 - self.threshold) if relative else best - self.threshold)
        if self.threshold_mode == "rel":
            return a > best * (self.threshold + 1.0)
        return a > best + self.threshold


class _Combined(LRScheduler):
    """Several schedulers of one optimizer."""

    _schedulers: Sequence[LRScheduler]

    def _check(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer) -> None:
        name = type(self).__name__
        for i, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise TypeError(f"{name} at index {i} should have `optimizer` as its attribute.")
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(
                    f"{name} does not support `ReduceLROnPlateau` scheduler, whose step() needs a "
                    f"measure, but got one at index {i}. Step it by itself."
                )
            if scheduler.optimizer is not optimizer:
                raise ValueError(
                    f"{name} expects all schedulers to belong to the same optimizer, but got "
                    f"scheduler {type(scheduler).__name__} at index {i} of another one."
                )

    def state_dict(self) -> dict[str, Any]:
        """All but the optimizer; of the schedulers, their own."""
        states = [scheduler.state_dict() for scheduler in self._schedulers]
        return super().state_dict() | {"_schedulers": states}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continues from what `state_dict` gave."""
        schedulers = self._schedulers
        super().load_state_dict(state_dict)
        self._schedulers = schedulers
        for scheduler, state in zip(schedulers, state_dict["_schedulers"], strict=True):
            scheduler.load_state_dict(state)


class SequentialLR(_Combined):
    """One scheduler after the other, the next from each milestone on."""

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: list[LRScheduler],
        milestones: list[int],
        last_epoch: int = -1,
    ) -> None:
        if not schedulers:
            raise ValueError("SequentialLR expects at least one scheduler, but got no scheduler.")
        self._check(schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than "
                f"the number of milestone points, but got {len(schedulers)} schedulers and "
                f"{len(milestones)} milestones."
            )
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        for group in optimizer.param_groups:
            set_value(group, "lr", group["initial_lr"])
        self._undo(self)
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def _undo(self, scheduler: LRScheduler) -> None:
        """Takes back the first step of each scheduler, which only the first one is to take."""
        for part in getattr(scheduler, "_schedulers", ()):
            self._undo(part)
        if not hasattr(scheduler, "_schedulers") and hasattr(scheduler, "last_epoch"):
            scheduler.last_epoch -= 1

    def step(self) -> None:  # type: ignore[override]
        """Sets the rates of the next epoch."""
        self.last_epoch += 1
        i = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[i]
        if i > 0 and self._milestones[i - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_Combined):
    """All schedulers one after the other in each step."""

    def __init__(
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None
    ) -> None:
        if not schedulers:
            raise ValueError(
                "ChainedScheduler expects at least one scheduler to be chained, but got no "
                "scheduler."
            )
        optimizer = optimizer or schedulers[0].optimizer
        self._check(schedulers, optimizer)
        self._schedulers = schedulers
        self.optimizer = optimizer
        self._last_lr = values_of(optimizer, "lr")

    def step(self) -> None:  # type: ignore[override]
        """Sets the rates of the next epoch."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = values_of(self.optimizer, "lr")


class OptaxLR(LRScheduler):
    """The rates of an optax schedule, a function of the count of steps; one, or one a group.

    With `relative=True` the schedule's values are factors of the initial rates.

    >>> import optax
    >>> opt = dg.optim.SGD([dg.ones(2, requires_grad=True)], lr=1.0)
    >>> schedule = optax.linear_schedule(1.0, 0.0, transition_steps=4)
    >>> scheduler = dg.optim.lr_scheduler.OptaxLR(opt, schedule)
    >>> opt.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.75]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedule: Any,
        *,
        relative: bool = False,
        last_epoch: int = -1,
    ) -> None:
        count = len(check_optimizer(optimizer).param_groups)
        several = isinstance(schedule, list | tuple)
        schedules = list(schedule) if several else [schedule] * count
        if len(schedules) != count:
            raise ValueError(
                f"Expected {count} schedules, but got {len(schedules)}. Pass one, or one a group."
            )
        self._schedules = schedules
        self.relative = relative
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        rates = [float(schedule(self.last_epoch)) for schedule in self._schedules]
        if not self.relative:
            return rates
        return [rate * base for rate, base in zip(rates, self.base_lrs, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """All but the optimizer and the schedules."""
        return {key: value for key, value in super().state_dict().items() if key != "_schedules"}
