"""What goes wrong in deferred mode: where it is raised, what it says, and what has happened."""

from __future__ import annotations

import threading
import traceback
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dyngraph as dg
from tests.compiled.helpers import raised_by
from tests.conftest import set_config
from tests.deferred.helpers import grad_of, leaf


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x + dg.ones(3),
        lambda x: x @ dg.ones(3, 3),
        lambda x: dg.cat([x, dg.ones(2, 2)]),
        lambda x: x.reshape(5),
        lambda x: x.sum(4),
        lambda x: x.add_(dg.ones(3, 2)),
    ],
    ids=["add", "matmul", "cat", "reshape", "sum", "add_"],
)
def test_shapes_that_do_not_fit_raise_at_the_call_with_the_same_text(call: Any) -> None:
    expected = raised_by(lambda: call(dg.ones(2)))
    assert expected is not None
    with dg.deferred():
        x = dg.ones(2) * 1
        got = raised_by(lambda: call(x))
        assert got == expected
        assert x.tolist() == [1.0, 1.0]


def fail_late() -> tuple[dg.Tensor, dg.Tensor, dg.Tensor]:
    """A call that fails when it runs, and what comes before it, of it, and after it."""
    before = dg.ones(2) * 3
    nothing = before - 3
    failing = nothing / nothing
    return before, failing * 2, before + 1


@pytest.mark.parametrize("compile_after", [1, 2], ids=["compiled", "call by call"])
def test_error_of_a_run_names_the_line_of_the_call(compile_after: int) -> None:
    with (  # noqa: PT012
        set_config(compile_after=compile_after),
        jax.debug_nans(True),
        pytest.raises(FloatingPointError, match="nan") as caught,
        dg.deferred(),
    ):
        made = fail_late()
        made[0].tolist()
    line = fail_late.__code__.co_firstlineno + 4
    notes = "\n".join(caught.value.__notes__)
    assert f"This happened in div, called at {__file__}:{line} in deferred mode" in notes


def test_what_does_not_depend_on_a_failure_has_happened() -> None:
    with jax.debug_nans(True), dg.deferred():
        before, failed, after = fail_late()
        with pytest.raises(FloatingPointError, match="nan"):
            before.tolist()
        assert before.tolist() == [3.0, 3.0]
        assert after.tolist() == [4.0, 4.0]
        with pytest.raises(FloatingPointError, match="nan"):
            failed.tolist()
        assert (after * 2).tolist() == [8.0, 8.0]


def test_kernel_in_which_python_runs_is_not_put_off() -> None:
    seen: list[float] = []

    def look(value: np.ndarray) -> np.ndarray:
        seen.append(float(value.sum()))
        return value

    kernel = dg.from_jax(
        lambda a: jax.pure_callback(look, jax.ShapeDtypeStruct(a.shape, a.dtype), a)
    )
    with dg.deferred():
        kernel(dg.ones(2) * 3).detach().jax().block_until_ready()
        assert seen == [6.0]


def test_failure_in_a_backward_leaves_the_mode_usable() -> None:
    x = leaf(4.0, 1.0)

    def hook(grad: dg.Tensor) -> None:
        raise KeyError("from a hook")

    with dg.deferred():
        y = x * 2
        y.register_hook(hook)
        with pytest.raises(KeyError, match="from a hook"):
            y.sum().backward()
        (x * 3).sum().backward()
    assert grad_of(x).tolist() == [3.0, 3.0]


def test_freed_graph_raises_as_without() -> None:
    x = leaf(1.0)
    with dg.deferred():
        y = (x * x).sum()
        y.backward()
        with pytest.raises(RuntimeError, match="retain_graph=True"):
            y.backward()
    assert grad_of(x).tolist() == [2.0]


def test_another_thread_finds_the_value() -> None:
    found: list[Any] = []
    with dg.deferred():
        y = dg.ones(2) * 3

        def look() -> None:
            found.append((y + 1).tolist())

        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        z = y * 2
    assert found == [[4.0, 4.0]]
    assert z.tolist() == [6.0, 6.0]


def test_threads_read_what_one_thread_goes_on_noting() -> None:
    shared: list[dg.Tensor] = [dg.zeros(1)]
    wrong: list[str] = []
    stop = threading.Event()

    def read() -> None:
        try:
            while not stop.is_set():
                count = len(shared)
                if shared[count - 1].item() != count - 1:
                    wrong.append(f"{count - 1}")
        except Exception:
            wrong.append(traceback.format_exc())

    threads = [threading.Thread(target=read) for _ in range(2)]
    with dg.deferred():
        for thread in threads:
            thread.start()
        for _ in range(150):
            shared.append(shared[-1] + 1)
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong
    assert shared[-1].item() == 150.0


def test_each_thread_puts_off_its_own() -> None:
    results: dict[int, float] = {}

    def work(number: int) -> None:
        with dg.deferred():
            x = leaf(float(number))
            for _ in range(3):
                (x * x).sum().backward()
        results[number] = grad_of(x).item()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {n: 6.0 * n for n in range(4)}


def test_kernel_that_asks_for_a_pending_value_gets_it() -> None:
    y = dg.ones(2)
    with dg.deferred():
        y = y * 3
        captured = y.detach()
        function = dg.from_jax(lambda a: a + jnp.asarray(2.0))
        z = function(captured)
    assert z.tolist() == [5.0, 5.0]
