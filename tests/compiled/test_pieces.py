"""Cutting long sequences: the pieces make up the whole, and those of a loop are the same ones."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import dyngraph as dg
from dyngraph.compiled.pieces import LONGEST, MOST_KNOWN, TARGET, KnownPieces, boundaries, cut
from dyngraph.compiled.program import Call, run_calls
from tests.compiled.helpers import assert_same, compilations_of, grad_of, leaf, same_in_both_modes
from tests.conftest import set_config

bodies = st.lists(st.integers(0, 6), min_size=1, max_size=40)
# Once or several times a body, between other calls: what a program with loops looks like.
sequences = st.lists(
    st.tuples(bodies, st.integers(1, 30)).map(lambda loop: loop[0] * loop[1]), max_size=5
).map(lambda parts: [kernel for part in parts for kernel in part])


# Where to cut


@given(sequences)
def test_cuts_go_from_the_first_call_to_the_last(kernels: list[int]) -> None:
    cuts = boundaries(kernels)
    assert (cuts[0], cuts[-1]) == (0, len(kernels))
    assert all(before < after for before, after in pairwise(cuts))


@given(sequences)
def test_no_piece_is_longer_than_the_bound(kernels: list[int]) -> None:
    assert all(after - before <= LONGEST for before, after in pairwise(boundaries(kernels)))


@given(st.lists(st.integers(0, 3), max_size=TARGET))
def test_short_sequence_is_not_cut(kernels: list[int]) -> None:
    assert boundaries(kernels) == sorted({0, len(kernels)})


@given(st.integers(2 * TARGET, 6 * TARGET), st.integers(3, 20))
def test_pieces_of_a_loop_are_equal_but_for_few(period: int, times: int) -> None:
    period //= 4
    kernels = list(range(period)) * times
    cuts = boundaries(kernels)
    pieces = {tuple(kernels[before:after]) for before, after in pairwise(cuts)}
    assert len(pieces) <= 6


def test_loop_of_another_length_needs_few_pieces_more() -> None:
    def pieces(times: int) -> set[tuple[int, ...]]:
        kernels = [100, 101, *(list(range(20)) * times), 102]
        return {tuple(kernels[a:b]) for a, b in pairwise(boundaries(kernels))}

    assert len(pieces(80) - pieces(64)) <= 2


def test_work_grows_linearly_with_what_repeats_nowhere() -> None:
    cuts = boundaries(list(range(10_000)))
    assert len(cuts) == 10_000 // LONGEST + 1


# Pieces that are known


def known(*pieces: str) -> KnownPieces:
    found = KnownPieces()
    for piece in pieces:
        found.remember(piece, [0, len(piece)])
    return found


def test_sequence_of_known_pieces_is_cut_into_them() -> None:
    assert known("head", "body", "tail").cuts("headbodytail") == [0, 4, 8, 12]


def test_sequence_of_known_pieces_is_cut_into_few() -> None:
    cuts = known("ab", "abab", "c").cuts("abababc")
    assert cuts is not None
    assert len(cuts) == 4


def test_sequence_with_an_unknown_part_is_not_cut() -> None:
    assert known("head", "body").cuts("headbodytail") is None


def test_of_too_many_known_pieces_the_oldest_are_forgotten() -> None:
    pieces = known("first", "second")
    pieces.remember(range(MOST_KNOWN - 1), range(MOST_KNOWN))
    assert (pieces.cuts("first"), pieces.cuts("second")) == (None, [0, 6])


# What the pieces compute


@st.composite
def programs(draw: st.DrawFn) -> tuple[list[Call], list[int]]:
    """Calls on three inputs that read what was made before, and which values go out."""
    calls: list[Call] = []
    made = 0
    for kernel in draw(sequences):
        inputs = [draw(st.integers(-3, made - 1)) for _ in range(2)]
        calls.append(Call(KERNELS[kernel], tuple(inputs), 2 if kernel == 3 else 1))
        made += calls[-1].made
    outputs = draw(st.lists(st.integers(0, made - 1), unique=True)) if made else []
    return calls, outputs


KERNELS: list[Any] = [
    lambda a, b: a + b,
    lambda a, b: a - b,
    lambda a, b: a * b % 7,
    lambda a, b: (b, a + 1),
    lambda a, b: np.maximum(a, b),
    lambda a, b: a,
    lambda a, b: -b,
]


@settings(max_examples=25)
@given(programs(), st.lists(st.integers(0, 1000), max_size=4))
def test_pieces_make_what_the_whole_makes(
    program: tuple[list[Call], list[int]], places: list[int]
) -> None:
    calls, outputs = program
    given_values = [np.float64(i) for i in (2, 3, 5)]
    expected = run_calls(calls, given_values)
    somewhere = sorted({0, len(calls), *[place % (len(calls) + 1) for place in places]})
    for cuts in (boundaries([call.kernel for call in calls]), somewhere):
        values: dict[int, Any] = {~i: value for i, value in enumerate(given_values)}
        pieces = cut(calls, outputs, cuts)
        for piece in pieces:
            made = run_calls(piece.calls, [values[i] for i in piece.inputs])
            results = [made[i] for i in piece.local_outputs()]
            values.update(zip(piece.outputs, results, strict=True))
        assert [call.kernel for p in pieces for call in p.calls] == [c.kernel for c in calls]
        assert [values[i] for i in outputs] == [expected[i] for i in outputs]


@settings(max_examples=25)
@given(programs())
def test_piece_hands_on_only_what_is_read_later(program: tuple[list[Call], list[int]]) -> None:
    calls, outputs = program
    pieces = cut(calls, outputs, boundaries([call.kernel for call in calls]))
    for number, piece in enumerate(pieces):
        later = {i for other in pieces[number + 1 :] for i in other.inputs}
        assert set(piece.outputs) <= later | set(outputs)


# Loops


def lstm(length: int, x: jax.Array, wih: dg.Tensor, whh: dg.Tensor, bias: dg.Tensor) -> dg.Tensor:
    """The loss of an LSTM cell that is applied `length` times."""
    size = whh.shape[1]
    hidden = cell = dg.zeros(1, size)
    inputs = dg.tensor(x)
    for i in range(length):
        gates = inputs[i : i + 1] @ wih.T + hidden @ whh.T + bias
        entry, forget, new, out = gates.chunk(4, 1)
        cell = forget.sigmoid() * cell + entry.sigmoid() * new.tanh()
        hidden = out.sigmoid() * cell.tanh()
    return hidden.square().sum()


@pytest.fixture(scope="module")
def weights() -> list[Any]:
    draws = np.random.default_rng(0)
    return [
        jnp.asarray(draws.standard_normal(shape) / 2, jnp.float32)
        for shape in ((32, 2), (8, 2), (8, 2), (8,))
    ]


def gradients(length: int, weights: list[Any]) -> list[dg.Tensor]:
    leaves = [dg.tensor(w, requires_grad=True) for w in weights[1:]]
    lstm(length, weights[0], *leaves).backward()
    return [grad_of(leaf) for leaf in leaves]


def test_lstm_of_another_length_compiles_two_pieces_more_at_most(weights: list[Any]) -> None:
    lengths = iter([16, 16, 20, 25, 16, 20, 25])
    with set_config(compile_whole_after=100):
        made = compilations_of(lambda: gradients(next(lengths), weights), 7)
    assert made[0] == 0
    assert 0 < made[1] <= 6
    assert sum(made[2:]) <= 2


@pytest.mark.parametrize("length", [2, 3])
def test_lstm_of_few_steps_compiles_nothing_after_longer_ones(
    length: int, weights: list[Any]
) -> None:
    lengths = iter([16, 17, 18, 19, length])
    with set_config(compile_after=1, compile_whole_after=100):
        made = compilations_of(lambda: gradients(next(lengths), weights), 5)
    assert made[-1] == 0


def test_lstm_of_twice_the_length_compiles_no_longer(weights: list[Any]) -> None:
    with set_config(compile_after=1):
        compiled = [compilations_of(lambda n=n: gradients(n, weights), 1)[0] for n in (16, 32)]
    assert compiled[1] <= 2


def test_lstm_in_pieces_has_eagers_gradients(weights: list[Any]) -> None:
    with dg.compiled_autograd(False):
        expected = gradients(20, weights)
    with set_config(compile_after=1), dg.compiled_autograd():
        for _ in range(2):
            assert_same(gradients(20, weights), expected)
    assert len(dg.compiled.programs()) > 1


def test_structure_that_keeps_coming_back_is_compiled_whole() -> None:
    def step() -> dg.Tensor:
        x = dg.ones(2, requires_grad=True)
        y = x
        for _ in range(50):
            y = y.sin() * x
        y.sum().backward()
        return grad_of(x)

    with dg.compiled_autograd(False):
        expected = step()
    with set_config(compile_whole_after=4):
        made = compilations_of(step, 6)
        assert made[3] == 1
        assert made[4:] == [0, 0]
        dg.compiled.reset()
        with dg.compiled_autograd():
            assert_same(step(), expected)
        assert dg.compiled.stats().segments == 1


# The whole, made of pieces


def recurrence(steps: int) -> tuple[dg.Tensor, dg.Tensor]:
    """The loss of an unrolled loop, and its weight."""
    weight, h = leaf(0.5, -0.5), dg.ones(2)
    for _ in range(steps):
        h = ((h * weight).tanh() * h.sin() + weight).sigmoid()
    return h.sum(), weight


def test_whole_of_several_pieces_gives_what_they_give() -> None:
    def program() -> dg.Tensor:
        loss, weight = recurrence(12)
        return dg.autograd.grad(loss, weight)[0]

    with set_config(compile_after=1, compile_whole_after=2):
        same_in_both_modes(program)
    assert dg.compiled.programs()[-1].of_pieces


def test_whole_traces_equal_pieces_once() -> None:
    with set_config(compile_after=1, compile_whole_after=2), dg.compiled_autograd():
        for _ in range(2):
            loss, weight = recurrence(40)
            dg.autograd.grad(loss, weight)
    whole = dg.compiled.programs()[-1]
    assert len(set(call.kernel for call in whole.calls)) < len(whole.calls) / 2


def test_structure_that_is_rare_stays_in_pieces() -> None:
    with set_config(compile_after=1, compile_whole_after=4), dg.compiled_autograd():
        for turn in range(12):
            loss, weight = recurrence(12 + turn % 2)
            dg.autograd.grad(loss, weight)
    assert not any(program.of_pieces for program in dg.compiled.programs())
