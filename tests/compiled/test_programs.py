"""Programs: equal structures are one, what they show of themselves, and the cache that keeps
them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dyngraph as dg
from dyngraph.compiled.program import Aval, Cache, Call, Program
from dyngraph.compiled.schedule import find_program
from tests.compiled.helpers import compilations_of, leaf
from tests.conftest import set_config

FLOAT = jnp.dtype("float32")
VECTOR = Aval((2,), FLOAT)


@jax.jit
def add(a: Any, b: Any) -> Any:
    return a + b


@jax.jit
def both(a: Any) -> Any:
    return a * 2, None, a * 3


@jax.jit
def first_if_any(a: Any, b: Any) -> Any:
    return a if b is None else b


def sum_of_both() -> Program:
    """(in0 * 2 + in0 * 3, in0 * 3)"""
    calls = [Call(both, (-1,), 2), Call(add, (0, 1), 1)]
    return Program(calls, [VECTOR], [2, 1])


def run(program: Program, *values: list[float]) -> list[list[float]]:
    return [np.asarray(r).tolist() for r in program(*[jnp.asarray(v) for v in values])]


# Running


def test_program_runs_its_calls() -> None:
    assert run(sum_of_both(), [1.0, 2.0]) == [[5.0, 10.0], [3.0, 6.0]]


def test_input_may_go_out_as_it_is() -> None:
    program = Program([Call(add, (-1, -2), 1)], [VECTOR, VECTOR], [0, -2])
    assert run(program, [1.0, 2.0], [3.0, 4.0]) == [[4.0, 6.0], [3.0, 4.0]]


def test_argument_may_be_none() -> None:
    program = Program([Call(first_if_any, (-1, None), 1)], [VECTOR], [0])
    assert run(program, [1.0, 2.0]) == [[1.0, 2.0]]


def test_program_is_compiled_when_it_first_runs() -> None:
    program = sum_of_both()
    assert not program.is_compiled
    run(program, [1.0, 2.0])
    assert program.is_compiled and program.seconds > 0


def test_failing_trace_leaves_the_program_as_it_was() -> None:
    def fail(a: Any) -> Any:
        raise ValueError("from the kernel")

    program = Program([Call(fail, (-1,), 1)], [VECTOR], [0])
    for _ in range(2):
        with pytest.raises(ValueError, match="from the kernel"):
            run(program, [1.0, 2.0])
        assert not program.is_compiled


# What it shows


def test_text_has_a_line_for_each_input_and_call() -> None:
    assert str(sum_of_both()).splitlines() == [
        "in0: float32[2]",
        "%0, %1 = both(in0)",
        "%2 = add(%0, %1)",
        "return %2, %1",
    ]


def test_repr_says_how_large_it_is_and_whether_it_is_compiled() -> None:
    program = sum_of_both()
    assert repr(program) == "<Program: 2 calls, 1 inputs, 2 outputs, not compiled>"
    run(program, [1.0, 2.0])
    assert repr(program).endswith(", compiled>")


def test_length_is_the_number_of_calls() -> None:
    assert len(sum_of_both()) == 2


def test_jaxpr_can_be_evaluated() -> None:
    jaxpr = sum_of_both().jaxpr
    assert [str(a) for a in jaxpr.in_avals] == ["float32[2]"]
    assert [str(a) for a in jaxpr.out_avals] == ["float32[2]", "float32[2]"]


def test_jaxpr_of_a_backward_reads_as_its_kernels() -> None:
    x = leaf(1.0, 2.0)
    with dg.compiled_autograd():
        x.tanh().backward(dg.ones(2))
    (program,) = dg.compiled.programs()
    assert "TanhBackward0" in str(program)
    assert "mul" in str(program.jaxpr)


def test_hlo_is_xlas_text_of_one_module() -> None:
    text = sum_of_both().hlo()
    assert text.startswith("HloModule") and "f32[2]" in text


def test_cost_counts_operations() -> None:
    assert sum_of_both().cost()["flops"] > 0


# One Program of a structure


def test_equal_structures_are_one_program() -> None:
    calls = [Call(both, (-1,), 2), Call(add, (0, 1), 1)]
    assert find_program(calls, [VECTOR], [2]) is find_program(list(calls), [VECTOR], [2])


@pytest.mark.parametrize(
    "calls, avals, outputs",
    [
        ([Call(both, (-1,), 2), Call(add, (1, 0), 1)], [VECTOR], [2]),
        ([Call(both, (-1,), 2), Call(add, (0, 1), 1)], [Aval((3,), FLOAT)], [2]),
        ([Call(both, (-1,), 2), Call(add, (0, 1), 1)], [Aval((2,), jnp.dtype("int32"))], [2]),
        ([Call(both, (-1,), 2), Call(add, (0, 1), 1)], [Aval((2,), FLOAT, True)], [2]),
        ([Call(both, (-1,), 2), Call(add, (0, 1), 1)], [VECTOR], [1]),
        ([Call(both, (-1,), 2), Call(first_if_any, (0, 1), 1)], [VECTOR], [2]),
    ],
    ids=["arguments", "shape", "dtype", "weak type", "outputs", "kernel"],
)
def test_other_structure_is_another_program(calls: Any, avals: Any, outputs: Any) -> None:
    first = find_program([Call(both, (-1,), 2), Call(add, (0, 1), 1)], [VECTOR], [2])
    assert find_program(calls, avals, outputs) is not first


def test_backwards_of_equal_graphs_share_one_program() -> None:
    with dg.compiled_autograd():
        for _ in range(3):
            (leaf(1.0, 2.0).exp() * leaf(3.0, 4.0)).sum().backward()
    assert len(dg.compiled.programs()) == 1


# The cache


def test_cache_drops_what_was_used_least_recently() -> None:
    cache = Cache(len)
    with set_config(compiled_cache_size=2):
        cache.keep("a", [1])
        cache.keep("b", [1])
        cache.find("a")
        cache.keep("c", [1])
    assert [cache.find(key) for key in "abc"] == [[1], None, [1]]
    assert cache.evictions == 1


def test_cache_keeps_what_came_first() -> None:
    cache, first, second = Cache(len), [1], [1]
    assert cache.keep("a", first) is first
    assert cache.keep("a", second) is first


def test_cache_is_bounded_in_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dyngraph.compiled.program.MOST_CALLS", 10)
    cache = Cache(len)
    cache.keep("a", [0] * 6)
    cache.keep("b", [0] * 6)
    assert [cache.find("a") is None, cache.find("b") is None] == [True, False]
    cache.keep("too large", [0] * 11)
    assert cache.find("too large") is None


def test_program_that_was_dropped_is_compiled_anew() -> None:
    functions = iter("exp sin exp sin cos tanh exp exp".split())

    def step() -> None:
        x = leaf(1.0, 2.0)
        getattr(x, next(functions))().sum().backward()

    with set_config(compiled_cache_size=2):
        assert compilations_of(step, 8) == [0, 0, 1, 1, 0, 0, 0, 1]
        assert dg.compiled.stats().evictions > 0


def test_gradients_are_right_while_the_cache_overflows() -> None:
    with set_config(compiled_cache_size=1, compile_after=1), dg.compiled_autograd():
        for _ in range(3):
            for function in ("exp", "sinh", "cosh"):
                x = leaf(1.0, 2.0)
                getattr(x, function)().sum().backward()
                slope = {"exp": np.exp, "sinh": np.cosh, "cosh": np.sinh}[function]
                assert x.grad is not None
                np.testing.assert_allclose(x.grad.numpy(), slope([1.0, 2.0]), rtol=1e-5)


# Fusion


def test_short_program_is_fused() -> None:
    program = sum_of_both()
    run(program, [1.0, 2.0])
    assert program.options == {}


def test_long_program_on_small_arrays_is_not_fused() -> None:
    calls = [Call(add, (-1, -1), 1), *[Call(add, (i, -1), 1) for i in range(256)]]
    program = Program(calls, [VECTOR], [256])
    run(program, [1.0, 2.0])
    assert program.options == {"xla_disable_hlo_passes": "fusion"}


def test_setting_decides_instead_of_the_rule() -> None:
    program = sum_of_both()
    with set_config(fusion=False):
        run(program, [1.0, 2.0])
    assert program.options == {"xla_disable_hlo_passes": "fusion"}
