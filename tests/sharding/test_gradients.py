"""`.grad` is spread as its leaf is, however backward runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

import dyngraph as dg
from dyngraph.pending import Pending
from tests.sharding.helpers import data_mesh, in_each_way, repeat, sharding, spec_of

ROWS = np.arange(64, dtype=np.float32).reshape(8, 8) / 64


def batch() -> dg.Tensor:
    return sharding.shard(dg.tensor(ROWS), data_mesh(), "data")


def weight(*axes: Any) -> dg.Tensor:
    """A leaf of 8 x 4, spread over the mesh like this."""
    return sharding.shard_(dg.ones(8, 4, requires_grad=True), data_mesh(), *axes)


def slope(*, times: int) -> list[list[float]]:
    """The gradient of the sum of batch @ weight, so many times."""
    return (times * ROWS.T @ np.ones((8, 4), np.float32)).tolist()


def go_backward(way: str, w: dg.Tensor, *, times: int) -> dg.Tensor:
    x = batch()

    def step() -> Any:
        loss = (x @ w).sum()
        loss.backward()
        return loss

    repeat(way, step, times)
    assert w.grad is not None
    return w.grad


@in_each_way
def test_gradient_of_a_spread_leaf_is_spread_as_it_is(way: str) -> None:
    w = weight("data")
    grad = go_backward(way, w, times=1)
    assert spec_of(grad) == P("data")


@in_each_way
def test_sum_of_gradients_is_spread_as_the_leaf_is(way: str) -> None:
    w = weight("data")
    grad = go_backward(way, w, times=4)
    assert grad.sharding == w.sharding
    np.testing.assert_allclose(grad.tolist(), slope(times=4), rtol=1e-6)


@in_each_way
def test_sum_of_gradients_of_a_replicated_leaf_is_replicated(way: str) -> None:
    grad = go_backward(way, weight(), times=3)
    assert grad.sharding.is_fully_replicated
    np.testing.assert_allclose(grad.tolist(), slope(times=3), rtol=1e-6)


def test_gradient_of_a_spread_leaf_is_put_off_as_others_are() -> None:
    w, x = weight("data"), batch()
    with dg.deferred():
        (x @ w).sum().backward()
        assert w.grad is not None
        assert type(w.grad._cell.held) is Pending


def test_compiled_backward_has_the_leafs_sharding_in_its_program() -> None:
    dg.compiled.clear()
    go_backward("compiled", weight("data"), times=1)
    assert any("sharding_constraint" in str(program.jaxpr) for program in dg.compiled.programs())


def test_compiled_step_tells_apart_how_arguments_are_spread() -> None:
    @dg.compile
    def step(w: dg.Tensor) -> dg.Tensor:
        loss = (w * w).sum()
        loss.backward()
        return loss

    found = []
    for axes in ((), ("data",), ()):
        w = weight(*axes)
        step(w)
        assert w.grad is not None
        found.append(spec_of(w.grad))
    assert found == [P(), P("data"), P()]


def test_one_structure_on_one_device_and_on_several() -> None:
    found = []
    for axes in ((), ("data",), (None, "data"), None):
        w = dg.ones(8, 4, requires_grad=True) if axes is None else weight(*axes)
        x = dg.tensor(ROWS)

        def step(w: dg.Tensor = w, x: dg.Tensor = x) -> dg.Tensor:
            loss = (x @ w).sum()
            loss.backward()
            return loss

        repeat("compiled", step, 2)
        assert w.grad is not None
        assert w.grad.tolist() == slope(times=2)
        found.append(w.grad.sharding == w.sharding)
    assert found == [True] * 4


@pytest.mark.filterwarnings("ignore:.*reference cycle")
def test_recorded_gradient_is_spread_as_the_leaf_is() -> None:
    w = weight("data")
    ((batch() @ w) ** 2).sum().backward(create_graph=True)
    assert w.grad is not None
    assert spec_of(w.grad) == P("data")
    (second,) = dg.autograd.grad(w.grad.sum(), w)
    np.testing.assert_allclose(second.sum().item(), 2 * (ROWS.T @ ROWS).sum() * 4, rtol=1e-5)


def test_step_that_writes_a_spread_tensor_leaves_it_spread() -> None:
    total, ones = weight("data").detach(), sharding.replicate(dg.ones(8, 4), data_mesh())

    def step() -> dg.Tensor:
        total.copy_(ones * 2)
        return total.sum()

    assert repeat("whole", step, 3) == [64.0] * 3
    assert spec_of(total) == P("data")


def test_step_compiles_once_for_spread_tensors() -> None:
    w = weight("data")
    optimizer, x = dg.optim.SGD([w], lr=0.1, momentum=0.9), batch()

    @dg.compile
    def step() -> dg.Tensor:
        optimizer.zero_grad()
        loss = (x @ w).sum()
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(4):
        step()
    (program,) = step.programs
    assert program._jitted._cache_size() == 1


def test_report_says_how_gradients_are_spread() -> None:
    w = weight("data")
    go_backward("eager", w, times=1)
    assert dg.grad_report({"w": w}).grads[0].device == "P('data') over (data=4)"
