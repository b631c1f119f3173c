"""When values are computed in deferred mode: when someone asks for them, and not before."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import jax
import numpy as np
import pytest

import dyngraph as dg
from tests.deferred.helpers import is_pending, leaf, noting_runs


def test_result_has_shape_and_dtype_and_no_value() -> None:
    with dg.deferred(), noting_runs() as runs:
        y = dg.ones(2, 3) @ dg.ones(3, 4)
        assert (y.shape, y.dtype, y.ndim, y.numel(), y.nbytes, y.device) == (
            (2, 4),
            dg.float32,
            2,
            8,
            32,
            dg.device("cpu"),
        )
        assert is_pending(y)
        assert not runs


ASKING: dict[str, Callable[[dg.Tensor], object]] = {
    "item": lambda y: y.item(),
    "bool": bool,
    "float": float,
    "repr": repr,
    "numpy": lambda y: y.detach().numpy(),
    "jax": lambda y: y.detach().jax(),
    "array": lambda y: np.asarray(y.detach()),
    "tolist": lambda y: y.tolist(),
    "format": lambda y: f"{y:.1f}",
}


@pytest.mark.parametrize("name", ASKING)
def test_asking_for_a_value_runs_what_was_put_off(name: str) -> None:
    x = leaf(2.0)
    with dg.deferred(), noting_runs() as runs:
        y = (x * 3).sum()
        before = len(runs)
        ASKING[name](y)
        assert (before, len(runs)) == (0, 1)
        assert y.item() == 6.0


def test_leaving_the_block_computes_everything() -> None:
    with dg.deferred():
        y = dg.ones(2) * 3
    assert not isinstance(y._cell.held, type(None))
    with noting_runs() as runs:
        assert y.tolist() == [3.0, 3.0]
    assert not runs


def test_an_error_that_leaves_the_block_leaves_what_came_before() -> None:
    x = dg.ones(2)
    with pytest.raises(KeyError, match="of the user's"), dg.deferred():  # noqa: PT012
        x.mul_(5)
        raise KeyError("of the user's")
    assert x.tolist() == [5.0, 5.0]


def test_what_nobody_refers_to_is_not_computed() -> None:
    with noting_runs() as runs, dg.deferred():
        y = dg.ones(2) * 3
        for _ in range(4):
            y = y + 1
    (run,) = runs
    assert len(run.kinds) == 5
    assert len(run.alive) == 1


def test_a_program_without_values_runs_once() -> None:
    x = leaf(1.0, 2.0)
    with noting_runs() as runs, dg.deferred():
        y = x * 2
        y[0].mul_(3)
        y.sum().backward()
        x.grad.add_(1)  # type: ignore[union-attr]
    assert len(runs) == 1
    assert x.grad is not None
    assert x.grad.tolist() == [7.0, 3.0]


def test_an_operator_outside_the_block_finds_the_value() -> None:
    with dg.deferred():
        y = dg.ones(2) * 3
        with dg.deferred(False):
            z = y + 1
            assert not is_pending(z)
    assert z.tolist() == [4.0, 4.0]


def test_a_decorated_function_runs_deferred() -> None:
    @dg.deferred()
    def function(x: dg.Tensor) -> tuple[bool, dg.Tensor]:
        y = x * 2
        return is_pending(y), y

    was_pending, y = function(dg.ones(1))
    assert was_pending
    assert y.item() == 2.0


def test_the_mode_is_the_threads_own_and_that_of_an_asyncio_task() -> None:
    async def task() -> bool:
        with dg.deferred():
            await asyncio.sleep(0)
            return is_pending(dg.ones(1) * 2)

    async def other() -> bool:
        await asyncio.sleep(0)
        return is_pending(dg.ones(1) * 2)

    async def both() -> tuple[bool, bool]:
        first, second = await asyncio.gather(task(), other())
        return first, second

    assert asyncio.run(both()) == (True, False)


def test_a_long_sequence_runs_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    from dyngraph import sequence

    monkeypatch.setitem(sequence.NOTES[2].__globals__, "LONGEST", 10)
    x = dg.zeros(1)
    with noting_runs() as runs, dg.deferred():
        for _ in range(35):
            x = x + 1
    assert x.item() == 35.0
    assert len(runs) == 4


def test_draws_are_those_of_ordinary_mode() -> None:
    def draw() -> list[float]:
        dg.manual_seed(3)
        x = dg.ones(4)
        return (dg.nn.functional.dropout(x, 0.5) + dg.rand(4)).tolist()

    expected = draw()
    with dg.deferred():
        got = draw()
    assert got == expected


def test_a_value_asked_while_jax_traces_is_no_tracer() -> None:
    with dg.deferred():
        y = dg.ones(2) * 3
        traced = jax.jit(lambda a: a + y.jax())(np.ones(2, np.float32))
    assert traced.tolist() == [4.0, 4.0]
    assert y.tolist() == [3.0, 3.0]


def test_tensors_of_tracers_are_computed_at_once() -> None:
    @jax.jit
    def function(a: jax.Array) -> jax.Array:
        with dg.deferred():
            return (dg.as_tensor(a) * 2).jax()

    assert function(np.ones(2, np.float32)).tolist() == [2.0, 2.0]


def test_other_modes_run_as_without() -> None:
    x = dg.tensor([1.0, 2.0])
    with dg.deferred():
        assert dg.func.vmap(lambda a: a * a)(x).tolist() == [1.0, 4.0]
        assert dg.func.jvp(lambda a: a * a, (x,), (x,))[1].tolist() == [2.0, 8.0]
        assert dg.to_jax(lambda a: a * a)(x.jax()).tolist() == [1.0, 4.0]
        with (  # noqa: PT031
            pytest.warns(UserWarning, match="Anomaly"),
            dg.autograd.detect_anomaly(),
        ):
            y = leaf(3.0)
            (y * y).backward()
    assert y.grad is not None
    assert y.grad.tolist() == [6.0]


def test_each_device_has_a_program_of_its_own() -> None:
    if jax.device_count() < 2:
        pytest.skip("needs two devices")
    there = dg.device("cpu", 1)
    with noting_runs() as runs, dg.deferred():
        here, other = dg.ones(2) * 2, dg.ones(2, device=there) * 3
        assert (here.device, other.device) == (dg.device("cpu"), there)
    assert (here.device, other.device) == (dg.device("cpu"), there)
    assert len(runs) == 2


def test_tensors_on_two_devices_are_refused_as_without() -> None:
    if jax.device_count() < 2:
        pytest.skip("needs two devices")
    with dg.deferred():
        x = dg.ones(2, device="cpu:0") * 2
        with pytest.raises(RuntimeError, match="to be on the same device"):
            x.add(dg.ones(2, device="cpu:1"))


@pytest.mark.usefixtures("x64")
def test_64_bits_stay_64_bits() -> None:
    with dg.deferred():
        y = dg.ones(2, dtype=dg.float64) * 3
        assert y.dtype == dg.float64
    assert y.numpy().dtype == np.float64
