"""Recurrent networks over sequences: packed and padded forms, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import dyngraph as dg
from dyngraph.ops.recurrence import LAYERS
from tests.rows.cells import affine, lstm


def draws(*shape: int) -> Any:
    return dg.tensor(np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32))


def params(gates: int, *more: Any) -> list[Any]:
    """The weights of one layer of one direction, for 3 inputs and 2 hidden units."""
    return [draws(2 * gates, 3), draws(2 * gates, 2), *more]


ONE_LAYER = (False, 1, 0.0, False, False)
x, h = draws(4, 2, 3), draws(1, 2, 2)


def test_one_step_is_that_of_the_cell() -> None:
    w, u = params(3)
    output, last = dg.gru(x[:1], h, [w, u], *ONE_LAYER, False)
    expected = dg.gru_cell(x[0], h[0], w, u)
    np.testing.assert_allclose(output[0].numpy(), expected.numpy(), rtol=1e-6)
    assert output.tolist() == last.tolist()


def test_sequences_of_equal_length_are_the_same_packed() -> None:
    padded, last = dg.rnn_tanh(x, h, params(1), *ONE_LAYER, False)
    sizes = dg.tensor([2, 2, 2, 2])
    packed, packed_last = dg.rnn_tanh(x.reshape(8, 3), sizes, h, params(1), *ONE_LAYER)
    assert packed.reshape(4, 2, 2).tolist() == padded.tolist()
    assert packed_last.tolist() == last.tolist()


@pytest.mark.parametrize("bidirectional", [False, True])
def test_packed_sequence_ends_as_it_does_by_itself(bidirectional: bool) -> None:
    directions = 2 if bidirectional else 1
    weights, start = params(1) * directions, draws(directions, 2, 2)
    data = draws(5, 3)
    options = (False, 1, 0.0, False, bidirectional)
    output, last = dg.rnn_relu(data, dg.tensor([2, 2, 1]), start, weights, *options)
    own, own_last = dg.rnn_relu(data[[1, 3], None], start[:, 1:], weights, *options)
    np.testing.assert_allclose(output.numpy()[[1, 3]], own.numpy()[:, 0], rtol=1e-6)
    np.testing.assert_allclose(last.numpy()[:, 1], own_last.numpy()[:, 0], rtol=1e-6)


def test_batch_first_exchanges_the_first_two_dims() -> None:
    output, last = dg.gru(x, h, params(3), *ONE_LAYER, False)
    other, other_last = dg.gru(x.transpose(0, 1), h, params(3), *ONE_LAYER, True)
    assert other.transpose(0, 1).tolist() == output.tolist()
    assert other_last.tolist() == last.tolist()


def test_lstm_projects_a_hidden_state_smaller_than_the_cell() -> None:
    weights = [draws(16, 3), draws(16, 2), draws(2, 4)]
    start = (draws(1, 2, 2), draws(1, 2, 4))
    output, hidden, cell = dg.lstm(x, start, weights, *ONE_LAYER, False)
    assert (output.shape, hidden.shape, cell.shape) == ((4, 2, 2), (1, 2, 2), (1, 2, 4))


def test_dropout_falls_between_layers_in_training_only() -> None:
    weights = [*params(1), draws(2, 2), draws(2, 2)]
    start = draws(2, 2, 2)

    def last_layer(p: float, train: bool) -> Any:
        return dg.rnn_tanh(x, start, weights, False, 2, p, train, False, False)[0].tolist()

    assert last_layer(0.5, False) == last_layer(0.0, True) != last_layer(0.5, True)


def test_gradient_reaches_all_that_a_network_reads() -> None:
    inputs = [dg.ones(2, 1, 3), dg.zeros(1, 1, 2), dg.zeros(1, 1, 2), *params(4)]
    for value in inputs:
        value.requires_grad_()
    output, *_ = dg.lstm(inputs[0], inputs[1:3], inputs[3:], *ONE_LAYER, False)
    output.sum().backward()
    assert all(bool((value.grad != 0).any()) for value in inputs)


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "two dims": (
        lambda: dg.gru(x[0], h, params(3), *ONE_LAYER, False),
        r"must have 3 dimensions, \(time, batch, size\), got 2. Add a batch by unsqueeze\(1\)",
    ),
    "no steps": (
        lambda: dg.gru(x[:0], h, params(3), *ONE_LAYER, False),
        "Expected sequence length to be larger than 0",
    ),
    "hidden state": (
        lambda: dg.gru(x, h[:, :1], params(3), *ONE_LAYER, False),
        r"Expected hidden size \(1, 2, hidden\), got \[1, 1, 2\]",
    ),
    "parameters": (
        lambda: dg.gru(x, h, params(3)[:1], *ONE_LAYER, False),
        "expects 2 parameters for each of 1 layers and directions, got 1",
    ),
    "weights": (
        lambda: dg.gru(x, h, params(4), *ONE_LAYER, False),
        r"expected weights \(\(6, 3\), \(6, 2\)\) in layer 0",
    ),
    "one state": (
        lambda: dg.lstm(x, [h], params(4), *ONE_LAYER, False),
        "lstm expects two hidden states, got 1",
    ),
    "rows of packed data": (
        lambda: dg.gru(x[0], dg.tensor([2, 1]), h, params(3), *ONE_LAYER),
        "expected data of 3 rows, the sum of batch_sizes",
    ),
    "batch sizes that grow": (
        lambda: dg.gru(x.reshape(8, 3), dg.tensor([3, 5]), h, params(3), *ONE_LAYER),
        r"must be positive and not grow, got \[3, 5\]. Sort sequences by length",
    ),
}


@pytest.mark.parametrize(("call", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_sizes_that_do_not_fit_are_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        call()


def test_gradient_reaches_the_input_where_no_weight_requires_one() -> None:
    value = draws(2, 1, 3).requires_grad_()
    state = [dg.zeros(1, 1, 2), dg.zeros(1, 1, 2)]
    dg.lstm(value, state, params(4), *ONE_LAYER, False)[0].sum().backward()
    assert bool((value.grad != 0).any())


SIZES = dg.tensor([2, 1])
THERE = dg.tensor([[[1.0], [1.0]], [[1.0], [0.0]]])


def stepwise(x: Any, h: Any, c: Any, w: Any, u: Any, b: Any, d: Any, r: Any) -> Any:
    """An LSTM over sequences of 2 steps and 1, from the end, one by one, in JAX: a loss of it."""
    loss = 0.0
    for row, length in enumerate((2, 1)):
        state = h[row : row + 1], c[row : row + 1]
        for t in reversed(range(length)):
            hidden, cell = lstm(x[t, row : row + 1], state, w, u, b, d)
            state = affine(hidden, r), cell
            loss += (state[0] ** 3).sum()
        loss += (state[0] * state[1][:, :2]).sum()
    return loss


def layer_loss(x: Any, h: Any, c: Any, *weights: Any) -> dg.Tensor:
    """The same with dyngraph, as one operator."""
    output, hidden, _, cell = LAYERS["lstm"](x, h, c, *weights, sizes=SIZES, reverse=True)
    # a hidden state stands still where its sequence has no step, and is not counted there
    return (output**3 * THERE).sum() + (hidden * cell[:, :2]).sum()


SHAPES = [(2, 2, 2), (2, 2), (2, 3), (12, 2), (12, 2), (12,), (12,), (2, 3)]
VALUES = [0.5 * np.random.default_rng(i).standard_normal(s) for i, s in enumerate(SHAPES)]
VALUES = [value.astype(np.float32) for value in VALUES]


def test_first_and_second_derivatives_are_those_of_steps_one_by_one() -> None:
    places = tuple(range(len(VALUES)))
    first = jax.grad(stepwise, places)
    second = jax.grad(lambda *v: sum((g**2).sum() for g in first(*v)), places)
    firsts, seconds = jax.jit(lambda *v: (first(*v), second(*v)))(*VALUES)
    tensors = [dg.tensor(value).requires_grad_() for value in VALUES]
    grads = dg.autograd.grad(layer_loss(*tensors), tensors, create_graph=True)
    for found, expected in zip(grads, firsts, strict=True):
        np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-4, atol=1e-5)
    norm: Any = sum((g**2).sum() for g in grads)
    grads = dg.autograd.grad(norm, tensors)
    for found, expected in zip(grads, seconds, strict=True):
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-3, atol=1e-4)


def test_forward_mode_is_that_of_steps_one_by_one() -> None:
    tangents = tuple(np.cos(3 * value) for value in VALUES)
    expected = jax.jit(lambda *v: jax.jvp(stepwise, v, tangents)[1])(*VALUES)
    moves = tuple(dg.tensor(tangent) for tangent in tangents)
    _, found = dg.func.jvp(layer_loss, tuple(dg.tensor(v) for v in VALUES), moves)
    np.testing.assert_allclose(float(found), expected, rtol=1e-4)


def test_gradients_under_vmap_are_those_of_one_by_one() -> None:
    values = [dg.tensor(value) for value in VALUES]
    xs = dg.stack([values[0], 2 * values[0]])
    of_input = dg.func.grad(lambda x: layer_loss(x, *values[1:]))
    found = dg.func.vmap(of_input)(xs)
    one_by_one = [of_input(x).numpy() for x in xs]
    np.testing.assert_allclose(found.numpy(), one_by_one, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("times", [1, 4])
def test_layer_of_any_length_is_one_node(times: int) -> None:
    weights = [value.requires_grad_() for value in params(4)]
    output, *_ = dg.lstm(dg.ones(times, 2, 3), (h, h), weights, *ONE_LAYER, False)
    assert output.grad_fn is not None
    assert dg.autograd.graph.graph_desc(output.grad_fn).count("Backward0") == 1
