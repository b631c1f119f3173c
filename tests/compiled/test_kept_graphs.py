"""The walk of a graph that backwards keep: found once, and looked at anew after any change."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dyngraph as dg
from dyngraph.compiled import walk
from dyngraph.graph.node import kept_graphs
from tests.compiled.helpers import assert_same, grad_of, leaf, raised_by
from tests.graph.helpers import node_of

pytestmark = pytest.mark.usefixtures("compiled_mode")


@pytest.fixture
def compiled_mode() -> Any:
    kept_graphs.clear()
    with dg.compiled_autograd():
        yield


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Grows by one for each time that a graph's nodes are looked at."""
    found: list[Any] = []
    look = walk._look

    def counted(*args: Any, **named: Any) -> Any:
        found.append(None)
        return look(*args, **named)

    monkeypatch.setattr(walk, "_look", counted)
    return found


def gradient(root: dg.Tensor, x: dg.Tensor, start: dg.Tensor | None = None) -> dg.Tensor:
    return dg.autograd.grad(root, x, start, retain_graph=True)[0]


def looks_of(action: Callable[[], object], looks: list[Any], times: int) -> list[int]:
    counts = []
    for _ in range(times):
        looks.clear()
        action()
        counts.append(len(looks))
    return counts


# When it is looked at


def test_third_backward_of_a_kept_graph_looks_at_no_node(looks: list[Any]) -> None:
    x = leaf(1.0, 2.0)
    loss = (x.exp() * x).sum()
    assert looks_of(lambda: gradient(loss, x), looks, 4) == [1, 1, 0, 0]


def test_backward_into_grad_is_remembered_as_well(looks: list[Any]) -> None:
    x = leaf(1.0, 2.0)
    loss = (x.exp() * x).sum()
    assert looks_of(lambda: loss.backward(retain_graph=True), looks, 4) == [1, 1, 0, 0]
    expected = 4 * (1 + x) * x.exp()
    np.testing.assert_allclose(grad_of(x).numpy(), expected.detach().numpy(), rtol=1e-5)


def test_other_starting_gradients_are_no_change(looks: list[Any]) -> None:
    x = leaf(1.0, 2.0)
    y = x * x
    rows = []
    for _ in range(3):
        rows = [gradient(y, x, row) for row in dg.eye(2)]
    looks.clear()
    np.testing.assert_allclose(dg.stack(rows).numpy(), [[2.0, 0.0], [0.0, 4.0]])
    gradient(y, x, dg.ones(2))
    assert looks == []


def test_several_roots_are_remembered(looks: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jax.device_count", lambda: 1)  # roots on several devices are not walked
    x = leaf(1.0, 2.0)
    roots = [x.exp().sum(), (x * x).sum()]

    def both() -> Any:
        return dg.autograd.grad(roots, x, retain_graph=True)[0]

    assert looks_of(both, looks, 4) == [1, 1, 0, 0]
    assert_same(both(), (x.exp() + 2 * x).detach())


def test_a_graph_that_is_freed_is_not_remembered() -> None:
    x = leaf(1.0, 2.0)
    for _ in range(3):
        (x.exp() * x).sum().backward()
    assert len(kept_graphs) == 0


# What is looked at anew


def add_tensor_hook(x: dg.Tensor, y: dg.Tensor) -> None:
    y.register_hook(lambda grad: grad * 3)


def add_leaf_hook(x: dg.Tensor, y: dg.Tensor) -> None:
    x.register_hook(lambda grad: grad * 5)


def add_node_hook(x: dg.Tensor, y: dg.Tensor) -> None:
    node_of(y).register_hook(lambda inputs, outputs: (inputs[0] * 7,))


def add_prehook(x: dg.Tensor, y: dg.Tensor) -> None:
    node_of(y).register_prehook(lambda grads: (grads[0] * 2,))


def add_saved_hook(x: dg.Tensor, y: dg.Tensor) -> None:
    node_of(y)._raw_saved_result.register_hooks(lambda t: t * 2, lambda t: t)


def retain(x: dg.Tensor, y: dg.Tensor) -> None:
    y.retain_grad()


def accumulate_with_hook(x: dg.Tensor, y: dg.Tensor) -> None:
    x.register_post_accumulate_grad_hook(lambda leaf: setattr(leaf, "note", True))


CHANGES = [
    add_tensor_hook,
    add_leaf_hook,
    add_node_hook,
    add_prehook,
    add_saved_hook,
    retain,
    accumulate_with_hook,
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_what_is_added_after_the_walk_is_seen(change: Callable[..., None]) -> None:
    def results(*, is_compiled: bool) -> Any:
        x = leaf(1.0, 2.0)
        y = x.exp()
        loss = (y * 2).sum()
        with dg.compiled_autograd(is_compiled):
            for _ in range(4):
                x.grad = None
                loss.backward(retain_graph=True)
            change(x, y)
            x.grad = None
            loss.backward(retain_graph=True)
        retained = y.grad if y.retains_grad else None
        return [grad_of(x), retained, hasattr(x, "note")]

    assert_same(results(is_compiled=True), results(is_compiled=False))


def remembered(x: dg.Tensor) -> tuple[dg.Tensor, dg.Tensor]:
    """An interior tensor and a loss that has saved it, whose walk is known."""
    y = x.exp()
    loss = (y * y).sum()
    for _ in range(3):
        gradient(loss, x)
    return y, loss


def test_a_write_to_what_was_saved_raises() -> None:
    x = leaf(1.0, 2.0)
    y, loss = remembered(x)
    with dg.no_grad():
        y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        gradient(loss, x)


def test_a_graph_freed_by_another_root_raises() -> None:
    x = leaf(1.0, 2.0)
    y, loss = remembered(x)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        gradient(loss, x)


def test_another_input_that_is_asked_is_another_walk() -> None:
    x = leaf(1.0, 2.0)
    y, loss = remembered(x)
    assert_same(gradient(loss, y), (2 * y).detach())
    assert_same(gradient(loss, x), (2 * y * y).detach())


def test_inputs_of_backward_are_told_from_none() -> None:
    x, z = leaf(1.0, 2.0), leaf(3.0, 4.0)
    loss = (x * z).sum()
    for _ in range(3):
        loss.backward(retain_graph=True)
    z.grad = None
    loss.backward(retain_graph=True, inputs=[x])
    assert z.grad is None


def test_a_leaf_of_another_shape_gets_its_error() -> None:
    def program() -> Any:
        x = leaf(1.0, 2.0)
        loss = (x * 2).sum()
        for _ in range(3):
            x.grad = None
            loss.backward(retain_graph=True)
        x.grad = None
        x.data = dg.ones(3)
        return raised_by(lambda: loss.backward(retain_graph=True))

    compiled = program()
    with dg.compiled_autograd(False):
        assert compiled == program()


# What it holds


@pytest.mark.usefixtures("no_gc")
def test_nothing_outlives_the_last_node() -> None:
    x = leaf(1.0, 2.0)
    y, loss = remembered(x)
    alive = [weakref.ref(o) for o in (node_of(loss), node_of(y), y._cell.array)]
    assert len(kept_graphs) == 1
    del y, loss
    assert [ref() for ref in alive] == [None, None, None]
    assert len(kept_graphs) == 0


@pytest.mark.usefixtures("no_gc")
@pytest.mark.parametrize("is_leaf_asked", [True, False])
def test_a_root_that_is_asked_itself_goes(is_leaf_asked: bool) -> None:
    x = leaf(1.0, 2.0)
    loss = x.exp().sum()
    for _ in range(3):
        dg.autograd.grad(loss, [loss, x] if is_leaf_asked else [loss], retain_graph=True)
        loss.backward(retain_graph=True, inputs=[loss])
    node = weakref.ref(node_of(loss))
    del loss
    assert node() is None


@pytest.mark.usefixtures("no_gc")
@pytest.mark.parametrize("is_compiled", [True, False])
def test_a_backward_that_frees_leaves_nothing_saved(is_compiled: bool) -> None:
    x = leaf(1.0, 2.0)
    y, loss = remembered(x)
    array = weakref.ref(y._cell.array)
    del y
    with dg.compiled_autograd(is_compiled):
        loss.backward()
    assert array() is None


@pytest.mark.usefixtures("no_gc")
def test_what_a_hook_packs_is_let_go() -> None:
    x = leaf(1.0, 2.0)
    y, loss = remembered(x)
    array = weakref.ref(y._cell.array)
    for field in ("self", "other"):
        handle = getattr(node_of(loss).next_functions[0][0], f"_raw_saved_{field}")
        handle.register_hooks(lambda t: t.numpy().copy(), dg.tensor)
    node_of(y)._raw_saved_result.register_hooks(lambda t: t.numpy().copy(), dg.tensor)
    del y, handle
    assert array() is None
