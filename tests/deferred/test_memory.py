"""The memory of deferred mode: what is put off keeps alive what it reads, until it runs."""

from __future__ import annotations

import weakref

import pytest

import dyngraph as dg
from dyngraph.sequence import current_sequence
from tests.deferred.helpers import grad_of, leaf

pytestmark = pytest.mark.usefixtures("no_gc")


def test_dropping_the_loss_frees_its_graph() -> None:
    x = leaf(1.0, 2.0)
    with dg.deferred():
        y = (x * 2).exp()
        loss = y.sum()
        node = weakref.ref(loss.grad_fn)
        held = weakref.ref(y._cell.held)
        del y, loss
        assert node() is None
        assert held() is None


def test_saved_arrays_are_freed_by_backward_while_the_loss_lives() -> None:
    x = leaf(1.0, 2.0)
    with dg.deferred():
        y = x.exp()
        loss = (y * y).sum()
        array = weakref.ref(y.detach().jax())
        del y
        assert array() is not None
        loss.backward()
    assert array() is None
    assert loss.item() > 0


def test_what_has_run_keeps_nothing_alive() -> None:
    with dg.deferred():
        x = dg.ones(2) * 2
        x.tolist()
        array = weakref.ref(x.detach().jax())
        y = x + 1
        del x
        assert array() is not None
        y.tolist()
        assert array() is None
    assert not current_sequence().given


def test_an_in_place_write_frees_what_was_there() -> None:
    x = dg.ones(2)
    array = weakref.ref(x.jax())
    with dg.deferred():
        x.mul_(2)
        assert array() is not None
    assert array() is None
    assert x.tolist() == [2.0, 2.0]


def test_step_after_step_leaves_nothing_behind() -> None:
    x = leaf(1.0, 2.0)
    nodes = []
    for _ in range(3):
        x.grad = None
        with dg.deferred():
            loss = (x.sin() * x).sum()
            nodes.append(weakref.ref(loss.grad_fn))
            loss.backward()
        del loss
    assert [node() for node in nodes] == [None] * 3
    assert grad_of(x).shape == (2,)
