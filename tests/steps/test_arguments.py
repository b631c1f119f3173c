"""Whole steps: what goes in and comes out."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import dyngraph as dg
from tests.steps.helpers import CALLS, X, both, grad_of

pytestmark = pytest.mark.filterwarnings("error")


def test_arguments_may_be_nested_and_of_every_kind() -> None:
    def make() -> Any:
        def step(batch: dict[str, Any], scale: float, *, name: str, array: Any) -> Any:
            assert name == "a"
            return {"y": batch["x"] * scale + dg.tensor(array), "n": 3}

        return step, lambda: None

    def call(step: Any) -> Any:
        return step({"x": dg.tensor(X)}, 2.0, name="a", array=X)

    step = dg.compile(make()[0])
    found = [call(step) for _ in range(CALLS)][-1]
    np.testing.assert_allclose(found["y"].numpy(), X * 3, rtol=1e-6)
    assert found["n"] == 3
    assert len(step.programs) == 1


def test_number_is_part_of_the_key() -> None:
    step = dg.compile(lambda x, n: x * n)
    for n in (1, 1, 2, 2, 3.0, 3.0, True, True, 2):
        np.testing.assert_allclose(step(dg.ones(2), n).numpy(), [n, n])


def test_shape_is_part_of_the_key() -> None:
    step = dg.compile(lambda x: x.sum() * x.shape[0])
    for n in (2, 2, 3, 2, 3):
        assert step(dg.ones(n)).item() == n * n
    assert len(step.programs) == 2


def test_argument_that_is_returned_is_itself() -> None:
    step = dg.compile(lambda x: (x, x.add_(1)))
    x = dg.zeros(2)
    for _ in range(CALLS):
        first, second = step(x)
        assert first is x is second
    assert x.tolist() == [CALLS, CALLS]


def test_one_result_twice_is_one_tensor() -> None:
    step = dg.compile(lambda x: [x + 1] * 2)
    for _ in range(CALLS):
        first, second = step(dg.ones(2))
        assert first is second


def test_parameter_that_is_returned_is_itself() -> None:
    w = dg.ones(2, requires_grad=True)
    step = dg.compile(lambda x: (w, (w * x).detach(), w.grad))
    for _ in range(CALLS):
        assert step(dg.ones(2))[0] is w


def test_leaf_argument_gets_its_grad() -> None:
    step = dg.compile(lambda x: x.square().sum().backward())
    for _ in range(CALLS):
        x = dg.ones(2, requires_grad=True)
        step(x)
        assert grad_of(x) == [2.0, 2.0]


def test_argument_may_be_made_a_leaf_inside() -> None:
    step = dg.compile(lambda x: x.requires_grad_().square().sum().backward())
    for _ in range(CALLS):
        x = dg.ones(2)
        step(x)
        assert x.requires_grad
        assert grad_of(x) == [2.0, 2.0]


def test_parameter_may_be_frozen_inside() -> None:
    def make() -> Any:
        w, v = (dg.ones(3, requires_grad=True) for _ in range(2))

        def step(x: dg.Tensor) -> None:
            w.grad = v.grad = None
            v.requires_grad_(not v.requires_grad)
            (w * v * x).sum().backward()

        return step, lambda: [w.grad, v.grad, v.requires_grad]

    both(make, dg.tensor(X))


def test_argument_with_the_memory_of_a_parameter_counts_as_it() -> None:
    w = dg.ones(2)

    @dg.compile
    def step(x: dg.Tensor) -> dg.Tensor:
        w.add_(1)
        return x * w

    assert step(dg.ones(2)).tolist() == [2.0, 2.0]
    assert step(dg.ones(2)).tolist() == [3.0, 3.0]
    assert step(w).tolist() == [16.0, 16.0]
    assert step(w).tolist() == [25.0, 25.0]
    assert step(dg.ones(2)).tolist() == [6.0, 6.0]


def test_views_among_the_arguments_may_look_at_other_places() -> None:
    data = dg.tensor(X)
    step = dg.compile(lambda row: row * 2 + data.sum())
    for i in (0, 0, 1, 1):
        np.testing.assert_allclose(step(data[i]).numpy(), X[i] * 2 + X.sum(), rtol=1e-6)


def test_method_is_compiled_for_each_object() -> None:
    class Counter:
        def __init__(self) -> None:
            self.total = dg.zeros(2)

        @dg.compile
        def add(self, x: dg.Tensor) -> dg.Tensor:
            return self.total.add_(x)

    first, second = Counter(), Counter()
    for _ in range(CALLS):
        first.add(dg.ones(2))
    second.add(dg.ones(2))
    assert (first.total.tolist(), second.total.tolist()) == ([CALLS] * 2, [1, 1])


def test_copy_of_an_object_has_a_step_of_its_own() -> None:
    class Scale(dg.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = dg.nn.Parameter(dg.ones(2))

        @dg.compile
        def move(self) -> None:
            with dg.no_grad():
                self.w.add_(1)

    first = Scale()
    for _ in range(3):
        first.move()
    second = copy.deepcopy(first)
    for _ in range(3):
        second.move()
    assert (first.w.tolist(), second.w.tolist()) == ([4.0, 4.0], [7.0, 7.0])


def test_value_written_over_itself_stays() -> None:
    w, v = dg.ones(2), dg.zeros(2)

    @dg.compile
    def step(x: dg.Tensor) -> dg.Tensor:
        w.copy_(w)
        v.copy_(x)
        return x

    for i in range(4):
        x = dg.full((2,), float(i))
        assert step(x) is x
        assert (w.tolist(), v.tolist(), x.tolist()) == ([1.0, 1.0], [i, i], [i, i])


def test_generator_that_is_gone_is_another_next_time() -> None:
    own = {"generator": dg.Generator().manual_seed(1)}
    step = dg.compile(lambda: dg.rand(2, generator=own["generator"]))
    first = [step().tolist() for _ in range(3)]
    own["generator"] = dg.Generator().manual_seed(1)
    assert [step().tolist() for _ in range(3)] == first
