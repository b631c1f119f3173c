"""What a demonstration learns: a model, its data, and its loss, written for dyngraph and in jnp."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import jax
import numpy as np

import dyngraph as dg

Batch = tuple[np.ndarray, ...]


class Problem(ABC):
    """A model with what it learns from.

    `loss` is ordinary Python on Tensors; `loss_in_jnp` is the same as a pure function of the
    model's parameters, by their names, for `jax.grad`.
    """

    title: str
    unit: str
    """What the loss counts."""
    rate: float
    model: dg.nn.Module
    lengths_vary = False
    """Whether a batch may have another shape than the last one."""

    @abstractmethod
    def batch(self, draws: np.random.Generator) -> Batch:
        """Some of the data, by chance."""

    @abstractmethod
    def loss(self, *batch: dg.Tensor) -> dg.Tensor:
        """The mean loss of a batch."""

    @staticmethod
    @abstractmethod
    def loss_in_jnp(parameters: dict[str, jax.Array], *batch: jax.Array) -> jax.Array:
        """The same of arrays."""

    @abstractmethod
    def validation_batches(self) -> list[tuple[Batch, float]]:
        """The data that is held out, each batch with its weight."""

    @abstractmethod
    def show(self, generator: dg.Generator) -> str:
        """What the model has learned, to be read by people."""

    @dg.no_grad()
    def validation_loss(self) -> float:
        """The mean loss over what is held out."""
        total = count = 0.0
        self.model.eval()
        for batch, weight in self.validation_batches():
            total += self.loss(*map(dg.tensor, batch)).item() * weight
            count += weight
        self.model.train()
        return total / count

    def arrays(self) -> dict[str, Any]:
        """The model's parameters as arrays, by name."""
        return {name: p.detach().jax() for name, p in self.model.named_parameters()}
