"""Recurrent networks, attention and transformers give what PyTorch gives.

`sequences.npz` was recorded from PyTorch 2.13 by `record_sequences.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dyngraph as dg
from tests.conftest import COMPILED
from tests.nn.sequence_cases import CASES, flat, run

RECORDED = np.load(Path(__file__).with_name("sequences.npz"))
every_case = pytest.mark.parametrize("name", CASES)


def made(name: str) -> dg.nn.Module:
    """The module of a case with the recorded parameters."""
    module = CASES[name].make(dg.nn)
    values, state = RECORDED[f"{name}/state"], {}
    for key, value in module.state_dict().items():
        state[key] = dg.tensor(values[: value.numel()].reshape(value.shape))
        values = values[value.numel() :]
    module.load_state_dict(state)
    return module


@functools.cache
def ran(name: str) -> tuple[list[Any], list[Any]]:
    return run(dg, made(name), name)


@every_case
def test_state_dict_has_pytorchs_keys_and_shapes(name: str) -> None:
    found = [f"{k} {[*v.shape]}" for k, v in CASES[name].make(dg.nn).state_dict().items()]
    assert found == RECORDED[f"{name}/keys"].tolist()


@every_case
def test_results_are_pytorchs(name: str) -> None:
    expected = RECORDED[f"{name}/results"]
    np.testing.assert_allclose(flat(ran(name)[0]), expected, rtol=2e-5, atol=2e-6)


@every_case
def test_gradients_are_pytorchs(name: str) -> None:
    expected = RECORDED[f"{name}/grads"]
    np.testing.assert_allclose(flat(ran(name)[1]), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("backward_mode", [COMPILED], indirect=True)
@pytest.mark.parametrize("name", ["lstm with projections, packed", "attention with masks"])
def test_gradients_of_a_compiled_backward_are_pytorchs(name: str) -> None:
    expected = RECORDED[f"{name}/grads"]
    found = flat(run(dg, made(name), name)[1])
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


X, H = dg.ones(4, 3, 2), dg.ones(1, 3, 3)
rnn, gru, lstm = dg.nn.RNN(2, 3), dg.nn.GRU(2, 3), dg.nn.LSTM(2, 3)
attention = dg.nn.MultiheadAttention(4, 2)
REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "dropout": (lambda: dg.nn.GRU(2, 3, 2, dropout=1.5), ValueError, r"range \[0, 1\] .*got 1.5"),
    "bias": (lambda: dg.nn.GRU(2, 3, bias=1), TypeError, "bias should be of type bool, got: int"),
    "input_size": (lambda: dg.nn.GRU(0, 3), ValueError, "input_size must be greater than zero"),
    "hidden_size": (lambda: dg.nn.GRU(2, 3.0), TypeError, "hidden_size should be of type int"),
    "num_layers": (lambda: dg.nn.GRU(2, 3, 0), ValueError, "num_layers must be greater than zero"),
    "proj_size": (
        lambda: dg.nn.LSTM(2, 3, proj_size=3),
        ValueError,
        "proj_size has to be smaller than hidden_size",
    ),
    "proj_size of a gru": (
        lambda: dg.nn.GRU(2, 3, proj_size=2),
        ValueError,
        "proj_size argument is only supported for LSTM",
    ),
    "nonlinearity": (
        lambda: dg.nn.RNN(2, 3, nonlinearity="sin"),
        ValueError,
        "Unknown nonlinearity 'sin'. Select from 'tanh' or 'relu'",
    ),
    "dims": (lambda: rnn(dg.ones(2)), ValueError, "RNN: Expected input to be 2D or 3D, got 1D"),
    "features": (
        lambda: gru(X[..., :1]),
        RuntimeError,
        r"input.size\(-1\) must be equal to input_size. Expected 2, got 1",
    ),
    "dtype": (
        lambda: gru(X.half()),
        ValueError,
        r"RNN input dtype \(.*float16\) does not match weight dtype \(.*float32\)",
    ),
    "batch of the state": (
        lambda: gru(X, H[:, :2]),
        RuntimeError,
        r"Expected hidden size \(1, 3, 3\), got \[1, 2, 3\]",
    ),
    "unbatched state": (
        lambda: gru(X, H[0]),
        RuntimeError,
        "For batched 3-D input, hx should also be 3-D but got 2-D tensor",
    ),
    "batched states": (
        lambda: lstm(X[:, 0], (H, H)),
        RuntimeError,
        r"For unbatched 2-D input, hx and cx should also be 2-D but got \(3-D, 3-D\) tensors",
    ),
    "cell": (
        lambda: lstm(X, (H, H[..., :2])),
        RuntimeError,
        r"Expected hidden\[1\] size \(1, 3, 3\), got \[1, 3, 2\]",
    ),
    "cell's input": (
        lambda: dg.nn.RNNCell(2, 3)(X),
        ValueError,
        "RNNCell: Expected input to be 1D or 2D, got 3D instead",
    ),
    "cell's state": (
        lambda: dg.nn.LSTMCell(2, 3)(X[0], (H[0], H)),
        ValueError,
        r"LSTMCell: Expected hx\[1\] to be 1D or 2D, got 3D instead",
    ),
    "heads": (
        lambda: dg.nn.MultiheadAttention(4, 3),
        AssertionError,
        "embed_dim must be divisible by num_heads, got 4 and 3",
    ),
    "no heads": (
        lambda: dg.nn.MultiheadAttention(4, 0),
        ValueError,
        "embed_dim and num_heads must be greater than 0",
    ),
    "causal without a mask": (
        lambda: attention(*[dg.ones(3, 1, 4)] * 3, is_causal=True),
        RuntimeError,
        "Need attn_mask if specifying the is_causal hint",
    ),
    "activation": (
        lambda: dg.nn.TransformerEncoderLayer(4, 2, activation="sin"),
        RuntimeError,
        "activation should be relu/gelu, not sin",
    ),
}


@pytest.mark.parametrize(("call", "error", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_does_not_fit_is_refused(
    call: Callable[[], Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ((3, 2, 4), (3, 1, 4), "the batch number of src and tgt must be equal, got 2 and 1"),
        ((3, 1, 3), (3, 1, 4), "must be equal to d_model, got 3, 4 and 4"),
    ],
)
def test_transformer_refuses_sizes_that_do_not_fit(
    source: tuple[int, ...], target: tuple[int, ...], message: str
) -> None:
    model = dg.nn.Transformer(4, 2, 1, 1, 4)
    with pytest.raises(RuntimeError, match=message):
        model(dg.ones(source), dg.ones(target))


def test_dropout_of_one_layer_warns() -> None:
    with pytest.warns(UserWarning, match="non-zero dropout expects num_layers greater than 1"):
        dg.nn.GRU(2, 3, dropout=0.5)


def test_initial_values_are_drawn_within_the_bound_of_hidden_size() -> None:
    values = dg.cat([p.detach().flatten() for p in dg.nn.LSTM(8, 16).parameters()]).numpy()
    assert abs(values).max() <= 0.25
    np.testing.assert_allclose(values.std(), 0.25 / np.sqrt(3), rtol=0.1)


def test_initial_biases_of_attention_are_zero() -> None:
    state = attention.state_dict()
    assert not state["in_proj_bias"].any()
    assert not state["out_proj.bias"].any()


def test_text_of_a_network_names_what_is_not_the_default() -> None:
    text = "LSTM(2, 3, proj_size=2, num_layers=2, batch_first=True)"
    assert str(dg.nn.LSTM(2, 3, 2, batch_first=True, proj_size=2)) == text


def test_parameter_that_is_replaced_is_used() -> None:
    module = dg.nn.RNN(2, 3, bias=False)
    module.weight_hh_l0 = dg.nn.Parameter(dg.zeros(3, 3))
    module.weight_ih_l0 = dg.nn.Parameter(dg.zeros(3, 2))
    assert not module(X)[0].any()
