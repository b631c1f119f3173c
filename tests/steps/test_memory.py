"""Whole steps: memory is used again, and nothing is kept alive."""

from __future__ import annotations

import gc
import weakref

import jax
import pytest

import dyngraph as dg
from tests.steps.helpers import X

pytestmark = pytest.mark.filterwarnings("error")


def test_nothing_of_a_call_is_kept_alive() -> None:
    w = dg.ones(2, requires_grad=True)
    step = dg.compile(lambda x: (w * x).sum().backward())
    step(dg.ones(2))
    gc.disable()
    try:
        seen, x = [], None
        for _ in range(3):
            x = dg.ones(2)
            step(x)
            seen.append(weakref.ref(x._cell))
        del x
        assert [reference() for reference in seen] == [None] * 3
    finally:
        gc.enable()


def test_programs_do_not_keep_what_the_function_let_go() -> None:
    tensors = {"w": dg.ones(2)}
    step = dg.compile(lambda x: tensors["w"] * x)
    for _ in range(3):
        step(dg.ones(2))
    old = weakref.ref(tensors["w"]._cell)
    tensors["w"] = dg.zeros(2)
    assert old() is None
    assert step(dg.ones(2)).tolist() == [0.0, 0.0]


def test_detached_result_of_the_first_call_is_no_view() -> None:
    step = dg.compile(lambda x: (x * 2).detach())
    assert not step(dg.ones(2, requires_grad=True))._is_view()


def test_arrays_are_as_many_after_more_steps() -> None:
    model = dg.nn.Linear(3, 2)
    optimizer = dg.optim.Adam(model.parameters())

    @dg.compile
    def step(x: dg.Tensor) -> dg.Tensor:
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    counts = []
    for _ in range(4):
        for _ in range(5):
            step(dg.tensor(X))
        counts.append(len(jax.live_arrays()))
    assert counts[1] == counts[2] == counts[3]


def test_programs_that_take_turns_use_the_same_memory() -> None:
    w = dg.zeros(4)

    @dg.compile
    def step(x: dg.Tensor) -> None:
        w.add_(x.sum())

    small, large = dg.ones(2), dg.ones(3)
    for _ in range(3):
        step(small)
        step(large)
    pointer = w._cell.array.unsafe_buffer_pointer()
    step(small)
    step(large)
    assert w._cell.array.unsafe_buffer_pointer() == pointer
    assert w.tolist() == [20.0] * 4


def test_memory_of_what_is_overwritten_is_used_again() -> None:
    w = dg.zeros(4)
    step = dg.compile(lambda: [w.add_(1)][1:])
    for _ in range(3):
        step()
    old = w._cell.array
    shown = w.detach()
    del shown
    reference = old
    step()
    assert not reference.is_deleted()  # somebody held it
    del old, reference
    pointer = w._cell.array.unsafe_buffer_pointer()
    step()
    assert w._cell.array.unsafe_buffer_pointer() == pointer
