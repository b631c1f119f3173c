"""Recurrent networks, attention and transformers, each with one call: for PyTorch and for dyngraph.

Both have the same names, so a case is written once and runs with either as `lib`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np


class Case(NamedTuple):
    """A module, the shapes of its inputs, and how it is called with them."""

    make: Callable[[Any], Any]
    shapes: tuple[tuple[int, ...], ...]
    call: Callable[..., Any] = lambda lib, module, *inputs: module(*inputs)
    training: bool = True


def packed(lib: Any, module: Any, x: Any, *state: Any) -> Any:
    """Sequences of 2, 4 and 1 steps."""
    sequences = lib.nn.utils.rnn.pack_padded_sequence(x, [2, 4, 1], enforce_sorted=False)
    output, last = module(sequences, *((state,) if len(state) > 1 else state))
    return lib.nn.utils.rnn.pad_packed_sequence(output, padding_value=-1.0)[0], last


def with_state(lib: Any, module: Any, x: Any, *state: Any) -> Any:
    return module(x, tuple(state))


def upper(lib: Any, size: int) -> Any:
    """True above the diagonal."""
    return lib.tensor(np.triu(np.ones((size, size), bool), 1))


PADDING = np.array([[False, False, True], [False, False, False], [False, True, True]])


def with_masks(lib: Any, module: Any, x: Any) -> Any:
    masks = {"attn_mask": upper(lib, 3), "key_padding_mask": lib.tensor(PADDING)}
    return module(x, x, x, need_weights=False, **masks)[0]


def with_added_mask(lib: Any, module: Any, query: Any, key: Any, value: Any) -> Any:
    mask = lib.tensor(np.linspace(-1, 1, 8 * 9, dtype=np.float32).reshape(6, 4, 3))
    return module(query, key, value, attn_mask=mask, average_attn_weights=False)


def causal(lib: Any, module: Any, x: Any) -> Any:
    mask = lib.nn.Transformer.generate_square_subsequent_mask(4)
    return module(x, x, x, attn_mask=mask, is_causal=True)


def encode(lib: Any, module: Any, x: Any) -> Any:
    return module(x, src_key_padding_mask=lib.tensor(PADDING))


def decode(lib: Any, module: Any, x: Any, memory: Any) -> Any:
    return module(x, memory, tgt_mask=upper(lib, 4), memory_key_padding_mask=lib.tensor(PADDING))


X, H = (4, 3, 3), (4, 3, 4)
WIDE = {"dim_feedforward": 6, "dropout": 0.0}

CASES: dict[str, Case] = {
    "rnn without a batch": Case(lambda nn: nn.RNN(3, 4), ((4, 3),)),
    "rnn of two layers": Case(
        lambda nn: nn.RNN(3, 4, 2, "relu", bias=False, batch_first=True),
        ((3, 4, 3), (2, 3, 4)),
    ),
    "lstm": Case(lambda nn: nn.LSTM(3, 4), (X,)),
    "lstm in both directions": Case(
        lambda nn: nn.LSTM(3, 4, 2, bidirectional=True, dropout=0.5), (X, H, H), with_state, False
    ),
    "lstm with projections, packed": Case(
        lambda nn: nn.LSTM(3, 4, bidirectional=True, proj_size=2),
        (X, (2, 3, 2), (2, 3, 4)),
        packed,
    ),
    "gru": Case(lambda nn: nn.GRU(3, 4), (X, (1, 3, 4))),
    "gru of two layers, packed": Case(
        lambda nn: nn.GRU(3, 4, 2, bidirectional=True), (X, H), packed
    ),
    "rnn cell": Case(lambda nn: nn.RNNCell(3, 4), ((3, 3), (3, 4))),
    "rnn cell with relu": Case(lambda nn: nn.RNNCell(3, 4, nonlinearity="relu"), ((3,),)),
    "lstm cell": Case(lambda nn: nn.LSTMCell(3, 4), ((3, 3), (3, 4), (3, 4)), with_state),
    "gru cell": Case(lambda nn: nn.GRUCell(3, 4, bias=False), ((3, 3),)),
    "attention": Case(lambda nn: nn.MultiheadAttention(4, 2), ((4, 3, 4), (3, 3, 4), (3, 3, 4))),
    "attention with masks": Case(
        lambda nn: nn.MultiheadAttention(4, 2, batch_first=True, bias=False),
        ((3, 3, 4),),
        with_masks,
    ),
    "attention to others": Case(
        lambda nn: nn.MultiheadAttention(
            4, 2, add_bias_kv=True, add_zero_attn=True, kdim=3, vdim=5
        ),
        ((4, 3, 4), (3, 3, 3), (3, 3, 5)),
        with_added_mask,
    ),
    "attention without a batch": Case(lambda nn: nn.MultiheadAttention(4, 1), ((4, 4),), causal),
    "encoder": Case(
        lambda nn: nn.TransformerEncoder(
            nn.TransformerEncoderLayer(4, 1, 6, batch_first=True),
            2,
            nn.LayerNorm(4),
            enable_nested_tensor=False,
        ),
        ((3, 3, 4),),
        encode,
        False,
    ),
    "encoder layer, normalized first": Case(
        lambda nn: nn.TransformerEncoderLayer(
            4, 2, activation="gelu", norm_first=True, layer_norm_eps=1e-3, bias=False, **WIDE
        ),
        ((3, 3, 4),),
        encode,
    ),
    "decoder layer, normalized first": Case(
        lambda nn: nn.TransformerDecoderLayer(4, 2, norm_first=True, **WIDE),
        ((4, 3, 4), (3, 3, 4)),
        decode,
    ),
    "transformer": Case(lambda nn: nn.Transformer(4, 2, 1, 2, **WIDE), ((3, 3, 4), (4, 3, 4))),
}


def draws(name: str, place: int, shape: tuple[int, ...]) -> np.ndarray:
    """Values for the input at `place`, or for a parameter: the same in every run."""
    seed = [place, *name.encode()]
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def tensors_in(value: Any) -> Iterator[Any]:
    """The tensors in nested tuples."""
    if isinstance(value, (tuple, list)):
        for part in value:
            yield from tensors_in(part)
    elif value is not None:
        yield value


def run(lib: Any, module: Any, name: str) -> tuple[list[Any], list[Any]]:
    """The results of a case, and the gradients of its inputs and parameters."""
    case = CASES[name]
    module.train(case.training)
    inputs = [
        lib.tensor(draws(name, i, shape)).requires_grad_() for i, shape in enumerate(case.shapes)
    ]
    results = list(tensors_in(case.call(lib, module, *inputs)))
    loss: Any = 0
    for result in results:
        weight = np.cos(np.arange(result.numel(), dtype=np.float32)).reshape(tuple(result.shape))
        loss = loss + (result * lib.tensor(weight)).sum()
    loss.backward()
    leaves = [*inputs, *module.parameters()]
    return [r.detach().numpy() for r in results], [leaf.grad.numpy() for leaf in leaves]


def flat(arrays: list[Any]) -> np.ndarray:
    """All values of some arrays, one after the other."""
    return np.concatenate([np.asarray(array).ravel() for array in arrays])
