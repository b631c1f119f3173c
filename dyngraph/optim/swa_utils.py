"""PyTorch's `torch.optim.swa_utils`: averages of a model's weights over its training."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any

import jax
import jax.numpy as jnp

from dyngraph import modes
from dyngraph.nn.modules.batchnorm import _BatchNorm
from dyngraph.nn.modules.module import Module
from dyngraph.ops.choosing import where
from dyngraph.ops.from_data import tensor
from dyngraph.optim.lr_scheduler.scheduler import LRScheduler, a_group
from dyngraph.optim.optimizer import Optimizer
from dyngraph.tensor import Tensor
from dyngraph.tracing import Tracer

Tensors = list[Tensor]


@jax.jit
def _moved_toward(averages: list[jax.Array], values: list[jax.Array], weight: Any) -> Any:
    return [
        (a + (v - a) * jax.lax.convert_element_type(weight, float)).astype(a.dtype)
        for a, v in zip(averages, values, strict=True)
    ]


def _move_toward(averages: Tensors, values: Tensors, weight: Any) -> None:
    """Moves each average by `weight` toward its value, all by one call."""
    arrays = [a._cell.array for a in averages], [v._cell.array for v in values]
    for a, array in zip(averages, _moved_toward(*arrays, jnp.asarray(weight)), strict=True):
        a._write(array)


def get_swa_multi_avg_fn() -> Callable[[Tensors, Tensors, Any], None]:
    """A function that moves equal averages: each model counts the same."""
    return lambda averages, values, count: _move_toward(averages, values, 1 / (int(count) + 1))


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[[Tensors, Tensors, Any], None]:
    """A function that moves averages in which a model counts `decay` times the next.

    Raises ValueError for a decay outside 0 to 1.
    """
    _check_decay(decay)
    return lambda averages, values, count: _move_toward(averages, values, 1 - decay)


def get_swa_avg_fn() -> Callable[[Tensor, Tensor, Any], Tensor]:
    """The same as `get_swa_multi_avg_fn`, for one tensor, which it returns."""
    return lambda average, value, count: average + (value - average) / (int(count) + 1)


def get_ema_avg_fn(decay: float = 0.999) -> Callable[[Tensor, Tensor, Any], Tensor]:
    """The same as `get_ema_multi_avg_fn`, for one tensor, which it returns."""
    _check_decay(decay)
    return lambda average, value, count: average * decay + value * (1 - decay)


def _check_decay(decay: float) -> None:
    if not 0 <= decay <= 1:
        raise ValueError(
            f"Invalid decay value {decay} provided. Please provide a value in [0,1] range."
        )


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of those that `update_parameters` is shown.

    `avg_fn(average, value, count)` returns an average, `multi_avg_fn(averages, values, count)`
    writes all; by default each model counts the same. With `use_buffers=True` buffers are averaged
    too, else they are the last model's.

    >>> model = dg.nn.Linear(1, 1)
    >>> average = dg.optim.swa_utils.AveragedModel(model)
    >>> for value in (1.0, 3.0):
    ...     _ = dg.nn.init.constant_(model.weight, value)
    ...     average.update_parameters(model)
    >>> average.module.weight.item()
    2.0
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Callable[[Tensor, Tensor, Any], Tensor] | None = None,
        multi_avg_fn: Callable[[Tensors, Tensors, Any], None] | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided.")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", tensor(0, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn or (None if avg_fn else get_swa_multi_avg_fn())
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the averaged model gives."""
        return self.module(*args, **kwargs)

    @modes.no_grad()
    def update_parameters(self, model: Module) -> None:
        """Takes the parameters of `model` into the averages; the first ones are copied."""
        averages, values = ([t.detach() for t in self._averaged(m)] for m in (self.module, model))
        values = [v.to(a.device) for a, v in zip(averages, values, strict=True)]
        is_traced = isinstance(self.n_averaged._cell.array, Tracer)
        if not is_traced and int(self.n_averaged) == 0:
            for average, value in zip(averages, values, strict=True):
                average.copy_(value)
        elif self.multi_avg_fn is not None:
            self.multi_avg_fn(averages, values, self.n_averaged)
        else:
            assert self.avg_fn is not None
            for average, value in zip(averages, values, strict=True):
                average.copy_(self.avg_fn(average, value, self.n_averaged))
        if is_traced:
            for average, value in zip(averages, values, strict=True):
                average.copy_(where(self.n_averaged == 0, value, average))
        if not self.use_buffers:
            for own, other in zip(self.module.buffers(), model.buffers(), strict=True):
                own.detach().copy_(other.detach().to(own.device))
        self.n_averaged += 1

    def _averaged(self, model: Module) -> Iterable[Tensor]:
        return chain(model.parameters(), model.buffers() if self.use_buffers else ())


@modes.no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Computes the running statistics of all batch norms anew, as means over a loader's batches.

    A batch is a tensor, or a list or tuple that begins with it.
    """
    norms = [m for m in model.modules() if isinstance(m, _BatchNorm)]
    if not norms:
        return
    momenta, was_training = [m.momentum for m in norms], model.training
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None
    model.train()
    try:
        for batch in loader:
            first = batch[0] if isinstance(batch, list | tuple) else batch
            model(first if device is None else first.to(device))
    finally:
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum
        model.train(was_training)


class SWALR(LRScheduler):
    """From the rate that there is to `swa_lr` in `anneal_epochs` epochs, and no further."""

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: Any,
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        rates = a_group("swa_lr", optimizer, swa_lr)
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _share(self, step: int) -> float:
        """How far the rates are from where they were, 0, to `swa_lr`, 1."""
        part = max(0, min(1, step / max(1, self.anneal_epochs)))
        return part if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * part)) / 2

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._share(step - 1), self._share(step)
        rates = []
        for group in self.optimizer.param_groups:
            last = group["swa_lr"]
            first = last if before == 1 else (group["lr"] - before * last) / (1 - before)
            rates.append(last * now + first * (1 - now))
        return rates
