"""Packed sequences: what they hold, that they come back, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dyngraph as dg
from dyngraph.nn.utils.rnn import (
    PackedSequence,
    invert_permutation,
    pack_padded_sequence,
    pack_sequence,
    pad_packed_sequence,
    pad_sequence,
    unpack_sequence,
    unpad_sequence,
)

LENGTHS = [2, 4, 1]
x = dg.arange(24.0).reshape(4, 3, 2)


def test_packed_steps_follow_each_other_in_time() -> None:
    packed = pack_padded_sequence(x[..., 0], LENGTHS, enforce_sorted=False)
    assert packed.data.tolist() == [2, 0, 4, 8, 6, 14, 20]
    assert packed.batch_sizes.tolist() == [3, 2, 1, 1]


def test_packed_unsorted_sequences_know_their_order() -> None:
    packed = pack_padded_sequence(x, LENGTHS, enforce_sorted=False)
    assert packed.sorted_indices is not None
    assert packed.sorted_indices.tolist() == [1, 0, 2]
    assert packed.unsorted_indices is not None
    assert packed.unsorted_indices.tolist() == [1, 0, 2]


@pytest.mark.parametrize("batch_first", [False, True])
def test_padding_packed_sequences_gives_them_back(batch_first: bool) -> None:
    given = x.transpose(0, 1) if batch_first else x
    packed = pack_padded_sequence(given, LENGTHS, batch_first, enforce_sorted=False)
    padded, lengths = pad_packed_sequence(packed, batch_first, -1.0, total_length=5)
    rows = padded if batch_first else padded.transpose(0, 1)
    assert lengths.tolist() == LENGTHS
    for row, (own, length) in enumerate(zip(rows, LENGTHS, strict=True)):
        assert own[:length].tolist() == x[:length, row].tolist()
        assert (own[length:] == -1).all()


def test_gradient_reaches_the_packed_steps_only() -> None:
    value = dg.ones(3, 2).requires_grad_()
    packed = pack_padded_sequence(value, [3, 1])
    pad_packed_sequence(packed, padding_value=7.0)[0].square().sum().backward()
    assert value.grad is not None
    assert value.grad.tolist() == [[2, 2], [2, 0], [2, 0]]


def test_sequences_of_any_lengths_come_back_from_a_list() -> None:
    parts = [x[:2, 0], x[:4, 1], x[:1, 2]]
    found = unpack_sequence(pack_sequence(parts, enforce_sorted=False))
    assert [part.tolist() for part in found] == [part.tolist() for part in parts]


@pytest.mark.parametrize(("side", "second"), [("right", [5, 9]), ("left", [9, 5])])
def test_pad_sequence_pads_on_either_side(side: str, second: list[float]) -> None:
    parts = [dg.tensor([1.0, 2.0]), dg.tensor([5.0])]
    padded = pad_sequence(parts, True, 9.0, padding_side=side)
    assert padded.tolist() == [[1, 2], second]


def test_unpad_sequence_leaves_the_padded_tensor_as_it_was() -> None:
    before = x.tolist()
    assert [part.shape[0] for part in unpad_sequence(x, dg.tensor(LENGTHS))] == LENGTHS
    assert x.tolist() == before


def test_inverse_of_no_permutation_is_none() -> None:
    assert invert_permutation(None) is None


def test_packed_sequence_takes_data_and_sizes_as_a_pair() -> None:
    packed = PackedSequence((dg.ones(3), dg.tensor([2, 1])))
    assert packed.batch_sizes.tolist() == [2, 1]


def test_converting_a_packed_sequence_converts_its_data_only() -> None:
    packed = pack_padded_sequence(x, LENGTHS, enforce_sorted=False)
    half = packed.to(dg.float16)
    assert half.data.dtype == dg.float16
    assert half.batch_sizes is packed.batch_sizes
    assert packed.to(dg.float32) is packed


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "unsorted": (
        lambda: pack_padded_sequence(x, LENGTHS),
        RuntimeError,
        r"must be sorted in decreasing order .*\[2, 4, 1\]. You can pass `enforce_sorted=False`",
    ),
    "no step": (
        lambda: pack_padded_sequence(x, [2, 1, 0]),
        RuntimeError,
        "Length of all samples has to be greater than 0",
    ),
    "lengths missing": (
        lambda: pack_padded_sequence(x, [4, 2]),
        RuntimeError,
        r"Expected `len\(lengths\)` to be equal to batch_size, but got 2 \(batch_size=3\)",
    ),
    "longer than the input": (
        lambda: pack_padded_sequence(x, [5, 2, 1]),
        RuntimeError,
        r"lengths of at most 4, the steps that input has, got \[5, 2, 1\]",
    ),
    "lengths in two dims": (
        lambda: pack_padded_sequence(x, dg.tensor([[4, 2, 1]])),
        RuntimeError,
        "should be a 1D CPU int64 tensor, but got 2D",
    ),
    "no batch": (
        lambda: pack_padded_sequence(dg.ones(4), [4]),
        IndexError,
        r"expects input of \(time, batch, ...\), got 1 dims",
    ),
    "total length": (
        lambda: pad_packed_sequence(pack_padded_sequence(x, [4, 2, 1]), total_length=3),
        ValueError,
        "got total_length=3 and max sequence length being 4",
    ),
    "another side": (
        lambda: pad_sequence([x[0]], padding_side="top"),
        RuntimeError,
        "padding_side to be one of left or right, but got top",
    ),
    "no sequences": (lambda: pad_sequence([]), RuntimeError, "received an empty list of sequences"),
    "a number": (
        lambda: pad_sequence(3),  # type: ignore[arg-type]
        RuntimeError,
        "Expected iterable for input sequences, but got arg of type: <class 'int'>",
    ),
    "shapes that differ": (
        lambda: pad_sequence([dg.ones(2, 3), dg.ones(1, 4)]),
        RuntimeError,
        r"differ in their length only, got shapes \[\[2, 3\], \[1, 4\]\]",
    ),
    "no batch sizes": (
        lambda: PackedSequence(x),
        AssertionError,
        "Expected data to be a list or tuple of length 2",
    ),
    "lengths of fewer sequences": (
        lambda: unpad_sequence(x, [4]),
        ValueError,
        "a length for each of 3 sequences, got 1",
    ),
}


@pytest.mark.parametrize(("call", "error", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_sequences_that_do_not_fit_are_refused(
    call: Callable[[], Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call()
