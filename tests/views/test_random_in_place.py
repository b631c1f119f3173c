"""Methods that fill their tensor with random numbers."""

from __future__ import annotations

from typing import Any

import pytest

import dyngraph as dg
from tests.graph.helpers import assert_values, leaf
from tests.views.calls import RANDOM

every_random = pytest.mark.parametrize(
    "name, args, low, high",
    [(name, *bounds) for name, bounds in RANDOM.items()],
    ids=RANDOM,
)


@every_random
def test_random_numbers_are_within_their_bounds(
    name: str, args: tuple[Any, ...], low: float, high: float
) -> None:
    x = dg.full((200,), -5.0)
    assert getattr(x, name)(*args) is x
    values = x.numpy()
    assert (low <= values).all() and (values <= high).all()
    assert len(set(x.tolist())) > 1


@every_random
def test_random_numbers_fill_a_view_of_its_base(
    name: str, args: tuple[Any, ...], low: float, high: float
) -> None:
    base = dg.full((3, 50), -5.0)
    getattr(base[1], name)(*args)
    assert base[0].tolist() == base[2].tolist() == [-5.0] * 50
    assert base[1].tolist() != [-5.0] * 50
    assert base._version == 1


@every_random
def test_random_numbers_do_not_depend_on_what_was_there(
    name: str, args: tuple[Any, ...], low: float, high: float
) -> None:
    x = leaf(1.0, 2.0)
    y = x * 3
    getattr(y, name)(*args)
    y.sum().backward()
    assert_values(x.grad, [0, 0])


@every_random
def test_random_numbers_are_those_of_the_seed(
    name: str, args: tuple[Any, ...], low: float, high: float
) -> None:
    draws = []
    for _ in range(2):
        dg.manual_seed(7)
        draws.append(getattr(dg.zeros(5), name)(*args).tolist())
    assert draws[0] == draws[1]


@every_random
def test_random_numbers_may_come_from_a_generator(
    name: str, args: tuple[Any, ...], low: float, high: float
) -> None:
    draws = []
    for _ in range(2):
        generator = dg.Generator().manual_seed(7)
        draws.append(getattr(dg.zeros(5), name)(*args, generator=generator).tolist())
    assert draws[0] == draws[1]


def test_normal_has_the_mean_and_deviation_asked_for() -> None:
    dg.manual_seed(0)
    x = dg.empty(20_000).normal_(3.0, 0.5)
    assert abs(x.mean().item() - 3) < 0.02 and abs(x.std().item() - 0.5) < 0.02


def test_bernoulli_takes_a_tensor_of_probabilities() -> None:
    x = dg.empty(2, 100).bernoulli_(dg.tensor([[0.0], [1.0]]).expand(2, 100))
    assert x.sum(1).tolist() == [0, 100]


def test_random_of_integers_keeps_their_dtype() -> None:
    x = dg.zeros(100, dtype=dg.int32).random_(10)
    assert x.dtype == dg.int32 and x.min() >= 0 and x.max() < 10


@pytest.mark.parametrize("device", [None, "cpu:1"])
def test_tensor_stays_bound_to_its_device_or_to_none(device: str | None) -> None:
    x = dg.zeros(3, device=device)
    where = x._cell.array.committed, x.device
    x.normal_()
    x.exponential_()
    assert (x._cell.array.committed, x.device) == where
