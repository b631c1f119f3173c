"""Handwritten digits of 8 by 8 pixels, told apart by a convolutional network."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.datasets import load_digits

import dyngraph as dg
import dyngraph.nn.functional as F
from dyngraph.demo.problem import Batch, Problem


def make_network(width: int) -> dg.nn.Sequential:
    """Two convolutions, each with a pool, and a readout."""
    nn = dg.nn
    return nn.Sequential(
        nn.Conv2d(1, width, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(width, 2 * width, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(8 * width, 10),
    )


class Digits(Problem):
    """The mean surprise at the right digit, in nats."""

    title = "handwritten digits, a network of two convolutions"
    unit = "nats a digit"
    rate = 3e-3

    def __init__(self, *, batch: int = 64, hidden: int = 16, seed: int = 0) -> None:
        found: Any = load_digits()
        order = np.random.default_rng(seed).permutation(len(found.images))
        images = (found.images[order, None] / 16).astype(np.float32)
        digits = found.target[order].astype(np.int32)
        held_out = len(images) // 6
        self.train = images[held_out:], digits[held_out:]
        self.valid = images[:held_out], digits[:held_out]
        self.size = batch
        self.model = make_network(hidden)

    def batch(self, draws: np.random.Generator) -> Batch:
        images, digits = self.train
        chosen = draws.integers(0, len(images), self.size)
        return images[chosen], digits[chosen]

    def loss(self, images: dg.Tensor, digits: dg.Tensor) -> dg.Tensor:  # type: ignore[override]
        """images: (batch, 1, 8, 8), digits: (batch,)"""
        return F.cross_entropy(self.model(images), digits)

    @staticmethod
    def loss_in_jnp(  # type: ignore[override]
        parameters: dict[str, jax.Array], images: jax.Array, digits: jax.Array
    ) -> jax.Array:
        p, x = parameters, images
        for layer in ("0", "3"):
            x = jax.lax.conv(x, p[layer + ".weight"], (1, 1), "SAME")
            x = jax.nn.relu(x + p[layer + ".bias"][:, None, None])
            x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
        logits = x.reshape(len(x), -1) @ p["7.weight"].T + p["7.bias"]
        return -jax.nn.log_softmax(logits)[jnp.arange(len(x)), digits].mean()

    def validation_batches(self) -> list[tuple[Batch, float]]:
        return [(self.valid, 1.0)]

    @dg.inference_mode()
    def show(self, generator: dg.Generator) -> str:
        images, digits = self.valid
        chosen = self.model(dg.tensor(images)).argmax(1).numpy()
        return f"digits that it knows: {int((chosen == digits).sum())} of {len(digits)} held out"
