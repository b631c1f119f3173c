"""The programs that are measured, each written once for dyngraph, jax.numpy and torch.

`lib` is the library as a namespace; dyngraph's and torch's names are the same, and `JNP` gives
jax.numpy the few that it lacks.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

# --- the same names over jax.numpy ------------------------------------------------------------


def _layer_norm(x: Any, shape: Any, weight: Any, bias: Any, eps: float = 1e-5) -> Any:
    mean = jnp.mean(x, -1, keepdims=True)
    var = jnp.mean((x - mean) ** 2, -1, keepdims=True)
    return (x - mean) / jnp.sqrt(var + eps) * weight + bias


def _cross_entropy(scores: Any, targets: Any) -> Any:
    logs = jax.nn.log_softmax(scores, 1)
    return -jnp.mean(jnp.take_along_axis(logs, targets[:, None], 1))


class _Functional:
    layer_norm = staticmethod(_layer_norm)
    cross_entropy = staticmethod(_cross_entropy)
    embedding = staticmethod(lambda indices, weight: weight[indices])
    gelu = staticmethod(lambda x: jax.nn.gelu(x, approximate=False))


class _Nn:
    functional = _Functional


class JNP:
    """jax.numpy under the names that the workloads use."""

    mul = staticmethod(jnp.multiply)
    add = staticmethod(jnp.add)
    sub = staticmethod(jnp.subtract)
    div = staticmethod(jnp.true_divide)
    tanh = staticmethod(jnp.tanh)
    sigmoid = staticmethod(jax.nn.sigmoid)
    sin = staticmethod(jnp.sin)
    relu = staticmethod(jax.nn.relu)
    softmax = staticmethod(jax.nn.softmax)
    nn = _Nn


class InputSaved(JNP):
    """JNP with a sin that keeps its input for backward, as dyngraph's and torch's do. JAX's own
    computes the cosine in forward and keeps that, so the time of its backward lacks it."""

    sin = staticmethod(jax.checkpoint(jnp.sin))


# --- (a) a chain of 200 elementwise operators on 64x64 -----------------------------------------


def chain(lib: Any, x: Any, y: Any, half: Any = 0.5, one: Any = 1.0, *, rounds: int = 20) -> Any:
    """Rounds of ten elementwise operators."""
    for _ in range(rounds):
        x = lib.mul(x, y)
        x = lib.tanh(x)
        x = lib.add(x, y)
        x = lib.sigmoid(x)
        x = lib.sub(x, y)
        x = lib.sin(x)
        x = lib.mul(x, half)
        x = lib.relu(x)
        x = lib.add(x, one)
        x = lib.div(x, y)
    return x


def shuffled(lib: Any, x: Any, y: Any, count: int) -> Any:
    """So many elementwise operators, in an order that does not repeat."""
    for choice in np.random.default_rng(0).integers(0, 6, count).tolist():
        if choice < 3:
            x = (lib.tanh, lib.sigmoid, lib.sin)[choice](x)
        else:
            x = (lib.mul, lib.add, lib.sub)[choice - 3](x, y)
    return x


class JITTED:
    """The operators of `chain` as bare jitted kernels: what a call costs without dyngraph."""

    mul = jax.jit(jnp.multiply)
    tanh = jax.jit(jnp.tanh)
    add = jax.jit(jnp.add)
    sigmoid = jax.jit(jax.nn.sigmoid)
    sub = jax.jit(jnp.subtract)
    sin = jax.jit(jnp.sin)
    relu = jax.jit(jax.nn.relu)
    div = jax.jit(jnp.true_divide)


def chain_arrays() -> list[np.ndarray]:
    """x and y, 64x64."""
    draws = np.random.default_rng(0)
    return [draws.uniform(0.5, 1.5, (64, 64)).astype(np.float32) for _ in range(2)]


# --- (c) an unrolled LSTM cell, and a GPT --------------------------------------------------------


def lstm_arrays(steps: int = 64, batch: int = 16, hidden: int = 64) -> list[np.ndarray]:
    """The inputs (steps, batch, hidden), then for each gate W, U (hidden, hidden) and b
    (hidden,)."""
    draws = np.random.default_rng(0)
    scale = 1 / math.sqrt(hidden)
    arrays = [draws.standard_normal((steps, batch, hidden))]
    for _ in range(4):
        arrays += [scale * draws.standard_normal((hidden, hidden)) for _ in range(2)]
        arrays.append(np.zeros(hidden))
    return [a.astype(np.float32) for a in arrays]


def lstm(lib: Any, inputs: list[Any], zero: Any, weights: list[Any]) -> Any:
    """The sum of the last state; every gate is made of separate small operators."""
    wi, ui, bi, wf, uf, bf, wg, ug, bg, wo, uo, bo = weights
    h = c = zero
    for x in inputs:
        i = lib.sigmoid(x @ wi + h @ ui + bi)
        f = lib.sigmoid(x @ wf + h @ uf + bf)
        g = lib.tanh(x @ wg + h @ ug + bg)
        o = lib.sigmoid(x @ wo + h @ uo + bo)
        c = f * c + i * g
        h = o * lib.tanh(c)
    return h.sum()


LETTERS, HIDDEN = 27, 64


def rnn_arrays() -> list[np.ndarray]:
    """The embedding of letters, the recurrent weights, their bias, and the readout."""
    draws = np.random.default_rng(0)
    shapes = [(LETTERS, HIDDEN), (HIDDEN, HIDDEN), (HIDDEN,), (HIDDEN, LETTERS)]
    return [(draws.standard_normal(s) / math.sqrt(HIDDEN)).astype(np.float32) for s in shapes]


def rnn(lib: Any, words: Any, weights: list[Any]) -> Any:
    """The mean surprise at each next letter of words of one length."""
    embedding, recurrent, bias, readout = weights
    f = lib.nn.functional
    h, loss = bias, 0.0
    for t in range(words.shape[1] - 1):
        h = lib.tanh(f.embedding(words[:, t], embedding) + h @ recurrent + bias)
        loss = loss + f.cross_entropy(h @ readout, words[:, t + 1])
    return loss / (words.shape[1] - 1)


LAYERS, WIDTH, HEADS, LENGTH, BATCH, VOCABULARY = 4, 128, 4, 64, 8, 256


def gpt_arrays() -> list[np.ndarray]:
    """Embeddings of symbols and places, the weights of each layer, and the readout."""
    draws = np.random.default_rng(0)

    def normal(*shape: int) -> np.ndarray:
        return 0.02 * draws.standard_normal(shape)

    arrays = [normal(VOCABULARY, WIDTH), normal(LENGTH, WIDTH)]
    for _ in range(LAYERS):
        arrays += [np.ones(WIDTH), np.zeros(WIDTH), normal(WIDTH, 3 * WIDTH), normal(WIDTH, WIDTH)]
        arrays += [np.ones(WIDTH), np.zeros(WIDTH)]
        arrays += [normal(WIDTH, 4 * WIDTH), np.zeros(4 * WIDTH)]
        arrays += [normal(4 * WIDTH, WIDTH), np.zeros(WIDTH)]
    arrays += [np.ones(WIDTH), np.zeros(WIDTH), normal(WIDTH, VOCABULARY)]
    return [a.astype(np.float32) for a in arrays]


def gpt_batch() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Symbols, the symbols that follow them, and the mask that hides the future."""
    symbols = np.random.default_rng(0).integers(0, VOCABULARY, (BATCH, LENGTH + 1))
    mask = np.triu(np.full((LENGTH, LENGTH), -1e9, np.float32), 1)
    return symbols[:, :-1].astype(np.int32), symbols[:, 1:].reshape(-1).astype(np.int32), mask


def gpt_block(lib: Any, x: Any, mask: Any, weights: list[Any]) -> Any:
    """One layer: attention, then two linear maps with gelu between."""
    f, rest = lib.nn.functional, iter(weights)
    y = f.layer_norm(x, (WIDTH,), next(rest), next(rest)) @ next(rest)
    y = y.reshape(BATCH, LENGTH, 3, HEADS, WIDTH // HEADS)
    q, k, v = (y[:, :, i].swapaxes(1, 2) for i in range(3))
    scores = q @ k.swapaxes(2, 3) * (1 / math.sqrt(WIDTH // HEADS)) + mask
    y = (lib.softmax(scores, -1) @ v).swapaxes(1, 2).reshape(BATCH, LENGTH, WIDTH)
    x = x + y @ next(rest)
    y = f.layer_norm(x, (WIDTH,), next(rest), next(rest))
    return x + f.gelu(y @ next(rest) + next(rest)) @ next(rest) + next(rest)


def gpt(
    lib: Any, symbols: Any, targets: Any, mask: Any, weights: list[Any], block: Any = gpt_block
) -> Any:
    """The cross-entropy of a small GPT."""
    f = lib.nn.functional
    readout = weights[2 + 10 * LAYERS :]
    x = f.embedding(symbols, weights[0]) + weights[1]
    for layer in range(LAYERS):
        x = block(lib, x, mask, weights[2 + 10 * layer : 12 + 10 * layer])
    x = f.layer_norm(x, (WIDTH,), readout[0], readout[1])
    return f.cross_entropy((x @ readout[2]).reshape(-1, VOCABULARY), targets)


# --- (i) a mixture of experts ---------------------------------------------------------------------

EXPERTS, MOE_WIDTH, MOE_BATCH, MOE_LAYERS = 8, 64, 64, 4


def moe_arrays() -> list[np.ndarray]:
    """The input; then for each layer the router's weights and the two matrices of each expert."""
    draws = np.random.default_rng(0)

    def normal(*shape: int) -> np.ndarray:
        return draws.standard_normal(shape) / math.sqrt(MOE_WIDTH)

    arrays = [draws.standard_normal((MOE_BATCH, MOE_WIDTH))]
    for _ in range(MOE_LAYERS):
        arrays.append(normal(MOE_WIDTH, EXPERTS))
        arrays += [normal(MOE_WIDTH, MOE_WIDTH) for _ in range(2 * EXPERTS)]
    return [a.astype(np.float32) for a in arrays]


def moe(lib: Any, x: Any, weights: list[Any]) -> Any:
    """The mean square of the last layer; every expert sees every example, weighed by a router."""
    rest = iter(weights)
    for _ in range(MOE_LAYERS):
        gates = lib.softmax(x @ next(rest), -1)
        mixed = x
        for expert in range(EXPERTS):
            y = lib.tanh(x @ next(rest)) @ next(rest)
            mixed = mixed + gates[:, expert : expert + 1] * y
        x = mixed
    return (x * x).mean()


# --- (f) a perceptron of three layers ----------------------------------------------------------

MLP_WIDTHS = (64, 128, 128, 10)


def mlp_arrays() -> list[Any]:
    """A batch of 16, then weight and bias of each layer, in 64 bits."""
    random = np.random.default_rng(0)
    shapes: list[tuple[int, ...]] = [(16, MLP_WIDTHS[0])]
    for given, made in itertools.pairwise(MLP_WIDTHS):
        shapes += [(given, made), (made,)]
    return [random.standard_normal(s) / 3 for s in shapes]


def mlp(x: Any, *weights: Any) -> Any:
    """Three layers with tanh between them."""
    last = len(weights) - 2
    for i in range(0, len(weights), 2):
        x = x @ weights[i] + weights[i + 1]
        x = x if i == last else x.tanh()
    return x


# --- (h) a function of 64 inputs with 256 outputs, for its Jacobian -------------------------------


def two_layers(lib: Any, x: Any, first: Any, second: Any) -> Any:
    """A network of two layers."""
    return lib.sin(second @ lib.tanh(first @ x))


def jacobian_arrays() -> tuple[list[np.ndarray], np.ndarray]:
    """The two layers' weights, and the input."""
    rng = np.random.default_rng(0)
    weights = [rng.standard_normal(s).astype(np.float32) / 8 for s in ((64, 64), (256, 64))]
    return weights, rng.standard_normal(64).astype(np.float32)
