"""The demo: a character-level recurrent language model learns the first names of the US census.

    python -m dyngraph.demo [--steps 1500] [--batch 64] [--hidden 128] [--seed 0]

Everything is plain Tensors and Python control flow: names have different lengths, so the loop, and
the graph that grows behind it, differ from step to step. At the end the gradients are held against
`jax.grad` of the same function written in jnp, and the model makes up some names.
"""

from __future__ import annotations

import argparse
import math
import time
from collections import defaultdict
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import dyngraph as dg
import dyngraph.nn.functional as F

try:
    import names
    import optax
    from tqdm import tqdm
except ImportError as error:
    raise SystemExit(
        f"the demo needs {error.name}, which is not installed: run `make demo`, or "
        "`pip install 'dyngraph[demo]'`"
    ) from None

LETTERS = "abcdefghijklmnopqrstuvwxyz"
END = len(LETTERS)  # stands before the first letter and after the last one
Parameters = dict[str, dg.Tensor]


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


def make_parameters(hidden: int, generator: dg.Generator) -> Parameters:
    """The weights of an embedding, one LSTM cell and a readout."""

    def normal(rows: int, columns: int) -> dg.Tensor:
        draw = dg.randn(rows, columns, generator=generator) / math.sqrt(rows)
        return draw.detach().requires_grad_()

    symbols = len(LETTERS) + 1
    return {
        "embedding": normal(symbols, hidden),
        "input": normal(hidden, 4 * hidden),
        "recurrent": normal(hidden, 4 * hidden),
        "bias": dg.zeros(4 * hidden, requires_grad=True),
        "readout": normal(hidden, symbols),
    }


State = tuple[dg.Tensor, dg.Tensor]


def start(batch: int, hidden: int) -> State:
    """The state before the first letter."""
    return dg.zeros(batch, hidden), dg.zeros(batch, hidden)


def lstm_step(p: Parameters, letters: dg.Tensor, state: State) -> tuple[dg.Tensor, State]:
    """One letter in, the scores of the next one out. letters: (batch,) -> scores: (batch, 27)"""
    h, c = state
    gates = F.embedding(letters, p["embedding"]) @ p["input"] + h @ p["recurrent"] + p["bias"]
    i, f, g, o = gates.chunk(4, 1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    h = o.sigmoid() * c.tanh()
    return h @ p["readout"], (h, c)


def loss_of(p: Parameters, words: dg.Tensor) -> dg.Tensor:
    """The mean surprise at each next letter, in nats. words: (batch, length + 2)"""
    state = start(words.shape[0], p["bias"].shape[0] // 4)
    surprise = dg.zeros(())
    for t in range(words.shape[1] - 1):
        scores, state = lstm_step(p, words[:, t], state)
        surprise = surprise + F.cross_entropy(scores, words[:, t + 1])
    return surprise / (words.shape[1] - 1)


def loss_in_jnp(p: dict[str, jax.Array], words: jax.Array) -> jax.Array:
    """`loss_of` as a pure function of arrays, for `jax.grad`."""
    h = c = jnp.zeros((words.shape[0], p["bias"].shape[0] // 4))
    surprise = jnp.zeros(())
    for t in range(words.shape[1] - 1):
        gates = p["embedding"][words[:, t]] @ p["input"] + h @ p["recurrent"] + p["bias"]
        i, f, g, o = jnp.split(gates, 4, axis=1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        logits = jax.nn.log_softmax(h @ p["readout"])
        surprise = surprise - jnp.mean(logits[jnp.arange(len(words)), words[:, t + 1]])
    return surprise / (words.shape[1] - 1)


@dg.no_grad()
def validation_loss(p: Parameters, groups: dict[int, np.ndarray], batch: int) -> float:
    """The mean surprise per letter over the held-out names, in batches of one size."""
    total = count = 0.0
    for length, rows in groups.items():
        for i in range(0, len(rows) - batch + 1, batch):
            letters = (length + 1) * batch
            total += loss_of(p, dg.tensor(rows[i : i + batch])).item() * letters
            count += letters
    return total / count


@dg.inference_mode()
def make_up_name(p: Parameters, generator: dg.Generator) -> str:
    """One name, letter by letter, until the model says that it ends."""
    word, letter = "", END
    state = start(1, p["bias"].shape[0] // 4)
    while len(word) < 20:
        scores, state = lstm_step(p, dg.tensor([letter]), state)
        letter = int(dg.multinomial(scores[0].softmax(0), 1, generator=generator).item())
        if letter == END:
            break
        word += LETTERS[letter]
    return word.capitalize()


def disagreement(p: Parameters, words: np.ndarray) -> float:
    """The greatest difference of any gradient from `jax.grad`'s, relative to the greatest entry."""
    loss = loss_of(p, dg.tensor(words))
    grads = dg.autograd.grad(loss, list(p.values()))
    arrays = {name: tensor.detach().jax() for name, tensor in p.items()}
    expected = jax.jit(jax.grad(loss_in_jnp))(arrays, jnp.asarray(words))
    worst = 0.0
    for grad, want in zip(grads, (expected[name] for name in p), strict=True):
        scale = float(jnp.abs(want).max())
        worst = max(worst, float(jnp.abs(grad.jax() - want).max()) / scale)
    return worst


class Adam:
    """optax's Adam on a dict of leaves: one jitted update for all of them."""

    def __init__(self, parameters: Parameters, rate: float) -> None:
        self.parameters = parameters
        self.rule = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(rate))
        self.state = self.rule.init(self._arrays())
        self._update = jax.jit(self._pure_update)

    def _arrays(self) -> dict[str, jax.Array]:
        return {name: p.detach().jax() for name, p in self.parameters.items()}

    def _pure_update(self, arrays: Any, grads: Any, state: Any) -> Any:
        updates, state = self.rule.update(grads, state, arrays)
        return optax.apply_updates(arrays, updates), state

    def step(self) -> None:
        """Moves every leaf against its gradient, and forgets the gradients."""
        grads = {n: p.grad.jax() for n, p in self.parameters.items() if p.grad is not None}
        arrays, self.state = self._update(self._arrays(), grads, self.state)
        for name, p in self.parameters.items():
            p.data = dg.as_tensor(arrays[name])
            p.grad = None


def main(arguments: list[str] | None = None) -> None:
    """Trains, checks, samples, and ends with a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)

    generator = dg.manual_seed(options.seed)
    draws = np.random.default_rng(options.seed)
    data = load_names(options.seed)
    valid = {n: rows for n, rows in data.valid.items() if len(rows) >= options.batch // 4}
    lengths = np.array(list(data.train))
    shares = np.array([len(rows) for rows in data.train.values()], float)
    count = int(shares.sum())
    print(f"{count} names to learn from, {sum(map(len, valid.values()))} to be tested on")
    print(f"running on {jax.devices()[0].device_kind}, jax {jax.__version__}")

    p = make_parameters(options.hidden, generator)
    optimizer = Adam(p, 3e-3)
    check = data.train[6][: options.batch]
    at_first = disagreement(p, check)
    before = validation_loss(p, valid, options.batch // 4)
    print(f"validation loss before: {before:.3f} nats a letter")

    began = time.perf_counter()
    with tqdm(range(options.steps), unit="step") as steps:
        for step in steps:
            rows = data.train[draws.choice(lengths, p=shares / count)]
            words = dg.tensor(rows[draws.integers(0, len(rows), options.batch)])
            loss = loss_of(p, words)
            loss.backward()
            optimizer.step()
            if step % (options.steps // 5 or 1) == 0 or step == options.steps - 1:
                now = validation_loss(p, valid, options.batch // 4)
                steps.write(f"step {step:5d}: validation loss {now:.3f}")
                steps.set_postfix(valid=f"{now:.3f}", names=f"{words.shape[1] - 2} letters")
    speed = options.steps / (time.perf_counter() - began)
    after = validation_loss(p, valid, options.batch // 4)
    at_last = disagreement(p, check)

    print("\nnames that it made up:")
    print("  " + ", ".join(make_up_name(p, generator) for _ in range(12)))
    print(f"""
{"validation loss before":34} {before:10.3f} nats a letter
{"validation loss after":34} {after:10.3f} nats a letter
{"training steps per second":34} {speed:10.1f}
{"gradients against jax.grad, before":34} {at_first:10.1e} of the greatest entry
{"gradients against jax.grad, after":34} {at_last:10.1e} of the greatest entry""")
    if max(at_first, at_last) > 1e-4:
        raise SystemExit("the gradients differ from jax.grad's by more than rounding")


if __name__ == "__main__":
    main()
