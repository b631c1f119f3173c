"""The first names of the US census, spelled letter by letter by an LSTM cell.

Names have different lengths, so the loop, and the graph that grows behind it, differ from step to
step.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

import jax
import jax.numpy as jnp
import names
import numpy as np

import dyngraph as dg
import dyngraph.nn.functional as F
from dyngraph.demo.problem import Batch, Problem

LETTERS = "abcdefghijklmnopqrstuvwxyz"
END = len(LETTERS)  # stands before the first letter and after the last one
State = tuple[dg.Tensor, dg.Tensor]


class Data(NamedTuple):
    """Names as rows of letter numbers, END at both ends, by length: `data[5]` has shape (n, 7)."""

    train: dict[int, np.ndarray]
    valid: dict[int, np.ndarray]


def load_names(seed: int) -> Data:
    """The first names of the census, a tenth of them kept for validation."""
    found = set()
    for kind in ("first:female", "first:male"):
        with open(names.FILES[kind], encoding="utf-8") as lines:
            found.update(line.split()[0].lower() for line in lines if line.strip())
    shuffled = np.random.default_rng(seed).permutation(sorted(found))
    held_out = len(shuffled) // 10
    return Data(by_length(shuffled[held_out:]), by_length(shuffled[:held_out]))


def by_length(words: np.ndarray) -> dict[int, np.ndarray]:
    """Words as number rows, grouped by length."""
    groups = defaultdict(list)
    for word in words:
        groups[len(word)].append([END, *(LETTERS.index(c) for c in word), END])
    return {n: np.array(rows, np.int32) for n, rows in sorted(groups.items())}


class Speller(dg.nn.Module):
    """An embedding of letters, one LSTM cell, and a readout."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        symbols = len(LETTERS) + 1
        self.hidden = hidden
        self.embedding = dg.nn.Embedding(symbols, hidden)
        self.cell = dg.nn.LSTMCell(hidden, hidden)
        self.readout = dg.nn.Linear(hidden, symbols)

    def start(self, batch: int) -> State:
        """The state before the first letter."""
        return dg.zeros(batch, self.hidden), dg.zeros(batch, self.hidden)

    def forward(self, letters: dg.Tensor, state: State) -> tuple[dg.Tensor, State]:
        """A letter in, the scores of the next one out. letters: (batch,) -> scores: (batch, 27)"""
        h, c = self.cell(self.embedding(letters), state)
        return self.readout(h), (h, c)


class FirstNames(Problem):
    """The mean surprise at each next letter of a name, in nats."""

    title = "first names, an LSTM cell unrolled over each"
    lengths_vary = True
    unit = "nats a letter"
    rate = 3e-3

    def __init__(self, *, batch: int = 64, hidden: int = 128, seed: int = 0) -> None:
        self.size = batch
        self.data = load_names(seed)
        self.model = Speller(hidden)
        self._lengths = list(self.data.train)
        shares = np.array([len(rows) for rows in self.data.train.values()], float)
        self._shares = shares / shares.sum()

    def batch(self, draws: np.random.Generator) -> Batch:
        rows = self.data.train[draws.choice(self._lengths, p=self._shares)]
        return (rows[draws.integers(0, len(rows), self.size)],)

    def loss(self, words: dg.Tensor) -> dg.Tensor:  # type: ignore[override]
        """words: (batch, length + 2)"""
        state = self.model.start(words.shape[0])
        surprise = dg.zeros(())
        for t in range(words.shape[1] - 1):
            scores, state = self.model(words[:, t], state)
            surprise = surprise + F.cross_entropy(scores, words[:, t + 1])
        return surprise / (words.shape[1] - 1)

    @staticmethod
    def loss_in_jnp(parameters: dict[str, jax.Array], words: jax.Array) -> jax.Array:  # type: ignore[override]
        p = parameters
        hidden = p["cell.weight_hh"].shape[1]
        h = c = jnp.zeros((words.shape[0], hidden))
        surprise = jnp.zeros(())
        for t in range(words.shape[1] - 1):
            x = p["embedding.weight"][words[:, t]]
            gates = x @ p["cell.weight_ih"].T + p["cell.bias_ih"]
            gates = gates + h @ p["cell.weight_hh"].T + p["cell.bias_hh"]
            i, f, g, o = jnp.split(gates, 4, axis=1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            logits = jax.nn.log_softmax(h @ p["readout.weight"].T + p["readout.bias"])
            surprise = surprise - jnp.mean(logits[jnp.arange(len(words)), words[:, t + 1]])
        return surprise / (words.shape[1] - 1)

    def validation_batches(self) -> list[tuple[Batch, float]]:
        size = self.size // 4
        return [
            ((rows[i : i + size],), float(length + 1))
            for length, rows in self.data.valid.items()
            for i in range(0, len(rows) - size + 1, size)
        ]

    def show(self, generator: dg.Generator) -> str:
        return "names that it made up:\n  " + ", ".join(self._name(generator) for _ in range(12))

    @dg.inference_mode()
    def _name(self, generator: dg.Generator) -> str:
        """One name, letter by letter, until the model says that it ends."""
        word, letter = "", END
        state = self.model.start(1)
        while len(word) < 20:
            scores, state = self.model(dg.tensor([letter]), state)
            letter = int(dg.multinomial(scores[0].softmax(0), 1, generator=generator).item())
            if letter == END:
                break
            word += LETTERS[letter]
        return word.capitalize()
