"""Python's own help texts, some 700 kB of English, continued character by character by a GPT."""

from __future__ import annotations

import math
import pydoc_data.topics
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import dyngraph as dg
import dyngraph.nn.functional as F
from dyngraph.demo.problem import Batch, Problem

LENGTH = 64
"""How many characters the model sees."""


class Block(dg.nn.Module):
    """Causal attention and a perceptron, each behind a norm and beside a residual."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1 = dg.nn.LayerNorm(width)
        self.to_heads = dg.nn.Linear(width, 3 * width)
        self.from_heads = dg.nn.Linear(width, width)
        self.norm2 = dg.nn.LayerNorm(width)
        self.widen = dg.nn.Linear(width, 4 * width)
        self.narrow = dg.nn.Linear(4 * width, width)

    def forward(self, x: dg.Tensor) -> dg.Tensor:
        """x: (batch, length, width)"""
        batch, length, width = x.shape
        parts = self.to_heads(self.norm1(x)).view(batch, length, 3 * self.heads, -1).transpose(1, 2)
        q, k, v = parts.chunk(3, 1)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.from_heads(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.narrow(F.gelu(self.widen(self.norm2(x))))


class GPT(dg.nn.Module):
    """Scores of the next character, for each character so far."""

    def __init__(self, symbols: int, width: int = 128, layers: int = 4, heads: int = 4) -> None:
        super().__init__()
        self.characters = dg.nn.Embedding(symbols, width)
        self.places = dg.nn.Embedding(LENGTH, width)
        self.blocks = dg.nn.Sequential(*[Block(width, heads) for _ in range(layers)])
        self.norm = dg.nn.LayerNorm(width)
        self.readout = dg.nn.Linear(width, symbols)
        for table in (self.characters, self.places):
            dg.nn.init.normal_(table.weight, std=0.02)

    def forward(self, text: dg.Tensor) -> dg.Tensor:
        """text: (batch, length) -> scores: (batch, length, symbols)"""
        x = self.characters(text) + self.places.weight[: text.shape[1]]
        return self.readout(self.norm(self.blocks(x)))


class HelpTexts(Problem):
    """The mean surprise at each next character, in nats."""

    title = "Python's help texts, a GPT"
    unit = "nats a character"
    rate = 1e-3

    def __init__(
        self, *, batch: int = 16, hidden: int = 128, layers: int = 4, seed: int = 0
    ) -> None:
        topics = pydoc_data.topics.topics
        text = "\n".join(topics[name] for name in sorted(topics))
        self.symbols = sorted(set(text))
        numbers = {symbol: i for i, symbol in enumerate(self.symbols)}
        codes = np.array([numbers[symbol] for symbol in text], np.int32)
        held_out = len(codes) // 20
        self.train, self.valid = codes[:-held_out], codes[-held_out:]
        self.size = batch
        self.model = GPT(len(self.symbols), hidden, layers)

    def batch(self, draws: np.random.Generator) -> Batch:
        starts = draws.integers(0, len(self.train) - LENGTH - 1, self.size)
        return (np.stack([self.train[i : i + LENGTH + 1] for i in starts]),)

    def loss(self, text: dg.Tensor) -> dg.Tensor:  # type: ignore[override]
        """text: (batch, length + 1)"""
        scores = self.model(text[:, :-1])
        return F.cross_entropy(scores.flatten(0, 1), text[:, 1:].reshape(-1))

    @staticmethod
    def loss_in_jnp(parameters: dict[str, jax.Array], text: jax.Array) -> jax.Array:  # type: ignore[override]
        p = parameters
        length, heads = text.shape[1] - 1, 4
        x = p["characters.weight"][text[:, :-1]] + p["places.weight"][:length]
        may_see = jnp.tril(jnp.ones((length, length), bool))
        for layer in range(sum(name.endswith("widen.weight") for name in p)):
            at = f"blocks.{layer}."
            parts = _linear(p, at + "to_heads", _norm(p, at + "norm1", x))
            parts = parts.reshape(*x.shape[:2], 3 * heads, -1).swapaxes(1, 2)
            q, k, v = jnp.split(parts, 3, axis=1)
            scores = q @ k.swapaxes(2, 3) / math.sqrt(q.shape[-1])
            mixed = jax.nn.softmax(jnp.where(may_see, scores, -jnp.inf)) @ v
            x = x + _linear(p, at + "from_heads", mixed.swapaxes(1, 2).reshape(x.shape))
            wide = _linear(p, at + "widen", _norm(p, at + "norm2", x))
            x = x + _linear(p, at + "narrow", jax.nn.gelu(wide, approximate=False))
        logits = jax.nn.log_softmax(_linear(p, "readout", _norm(p, "norm", x)))
        return -jnp.take_along_axis(logits, text[:, 1:, None], 2).mean()

    def validation_batches(self) -> list[tuple[Batch, float]]:
        rows = self.valid[: len(self.valid) // (LENGTH + 1) * (LENGTH + 1)].reshape(-1, LENGTH + 1)
        return [
            ((rows[i : i + self.size],), 1.0)
            for i in range(0, min(len(rows), 20 * self.size) - self.size + 1, self.size)
        ]

    @dg.inference_mode()
    def show(self, generator: dg.Generator) -> str:
        numbers = [self.symbols.index(symbol) for symbol in "The "]
        while len(numbers) < LENGTH:  # one shape for all, so that kernels compile once
            text = dg.tensor([numbers + [0] * (LENGTH - len(numbers))])
            scores = self.model(text)[0, len(numbers) - 1]
            chosen = dg.multinomial(scores.softmax(0), 1, generator=generator)
            numbers.append(int(chosen.item()))
        return "text that it made up:\n  " + repr("".join(self.symbols[i] for i in numbers))


def _linear(p: dict[str, Any], name: str, x: jax.Array) -> jax.Array:
    return x @ p[name + ".weight"].T + p[name + ".bias"]


def _norm(p: dict[str, Any], name: str, x: jax.Array) -> jax.Array:
    centred = x - x.mean(-1, keepdims=True)
    scale = jax.lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
    return centred * scale * p[name + ".weight"] + p[name + ".bias"]
