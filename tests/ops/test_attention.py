"""What the rows can't say of attention and dropout: errors, randomness, rows that see nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dyngraph as dg
from dyngraph.nn import functional as F

ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "dropout": (
        lambda: F.dropout(dg.ones(2), 1.5),
        ValueError,
        "dropout probability has to be between 0 and 1, but got 1.5",
    ),
    "attention": (
        lambda: F.scaled_dot_product_attention(
            dg.ones(2, 3), dg.ones(2, 3), dg.ones(2, 3), dg.ones(2, 2), is_causal=True
        ),
        RuntimeError,
        "attn_mask should not be set when is_causal=True",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_wrong_arguments_raise(case: str) -> None:
    call, error, message = ERRORS[case]
    with pytest.raises(error, match=message):
        call()


def test_dropout_zeroes_in_backward_what_it_zeroed_in_forward() -> None:
    x = dg.ones(200, requires_grad=True)
    y = F.dropout(x, 0.25)
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == y.tolist()
    assert set(np.round(y.tolist(), 4)) == {0.0, 1.3333}


def test_dropout_draws_anew_each_time_and_again_after_a_seed() -> None:
    with dg.random.fork_rng():
        dg.manual_seed(0)
        first, second = F.dropout(dg.ones(64)), F.dropout(dg.ones(64))
        dg.manual_seed(0)
        again = F.dropout(dg.ones(64))
    assert first.tolist() == again.tolist() != second.tolist()


def test_dropout_outside_training_is_the_input() -> None:
    x = dg.ones(2)
    assert F.dropout(x, training=False) is x


def test_dropout_of_everything_is_zero() -> None:
    x = dg.ones(3, requires_grad=True)
    F.dropout(x, 1.0).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0.0, 0.0, 0.0]


def test_row_that_attends_to_nothing_is_zero_and_has_no_gradient() -> None:
    q = dg.ones(1, 2, requires_grad=True)
    mask = dg.tensor([[False, False]])
    out = F.scaled_dot_product_attention(q, dg.ones(2, 2), dg.ones(2, 2), mask)
    assert out.tolist() == [[0.0, 0.0]]
    out.sum().backward()
    assert q.grad is not None
    assert q.grad.tolist() == [[0.0, 0.0]]


def test_heads_of_key_and_value_repeat_if_asked() -> None:
    q, k = dg.ones(4, 1, 2), dg.ones(2, 1, 2)
    value = dg.tensor([[[1.0]], [[2.0]]])
    out = F.scaled_dot_product_attention(q, k, value, enable_gqa=True)
    assert out.flatten().tolist() == [1.0, 1.0, 2.0, 2.0]


def test_attention_drops_shares() -> None:
    out = F.scaled_dot_product_attention(
        dg.ones(50, 2), dg.ones(1, 2), dg.ones(1, 1), dropout_p=0.5
    )
    assert set(out.flatten().tolist()) == {0.0, 2.0}
