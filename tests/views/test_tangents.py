"""Tangents of forward mode across views and in-place writes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import dyngraph as dg
from tests.graph.helpers import assert_values

fw = dg.autograd.forward_ad


@pytest.fixture(autouse=True)
def level() -> Iterator[None]:
    with fw.dual_level():
        yield


def dual() -> dg.Tensor:
    """One, two, three with the tangent ten, twenty, thirty."""
    return fw.make_dual(dg.tensor([1.0, 2.0, 3.0]), dg.tensor([10.0, 20.0, 30.0]))


def tangent(tensor: dg.Tensor) -> Any:
    return fw.unpack_dual(tensor).tangent


def test_view_shows_the_tangent_of_its_base() -> None:
    assert_values(tangent(dual()[1:]), [20, 30])


def test_write_gives_the_tangent_of_the_result() -> None:
    d = dual()
    d.mul_(dg.tensor([1.0, 2.0, 3.0]))
    assert_values(tangent(d), [10, 40, 90])


def test_write_into_a_view_writes_the_tangent_of_the_base() -> None:
    d = dual()
    d[1:].mul_(2)
    assert_values(d, [1, 4, 6])
    assert_values(tangent(d), [10, 40, 60])


def test_write_to_the_base_is_seen_in_the_tangent_of_a_view() -> None:
    d = dual()
    view = d[1:]
    d.mul_(2)
    assert_values(tangent(view), [40, 60])


def test_write_into_a_view_is_seen_in_the_tangent_of_another() -> None:
    d = dual()
    first, second = d[:2], d[1:]
    first.mul_(2)
    assert_values(tangent(second), [40, 30])


def test_write_with_a_dual_makes_a_constant_carry_a_tangent() -> None:
    x = dg.zeros(3)
    x.add_(dual())
    assert_values(tangent(x), [10, 20, 30])


def test_write_into_a_view_with_a_dual_makes_the_base_carry_a_tangent() -> None:
    x = dg.zeros(4)
    x[1:].copy_(dual())
    assert_values(tangent(x), [0, 10, 20, 30])


def test_assignment_carries_the_tangent_of_the_value() -> None:
    x = dg.zeros(4)
    x[1:] = dual()
    assert_values(tangent(x), [0, 10, 20, 30])


def test_copy_takes_the_tangent_of_its_source() -> None:
    d = dual()
    d.copy_(fw.make_dual(dg.zeros(3), dg.ones(3)))
    assert_values(tangent(d), [1, 1, 1])


@pytest.mark.parametrize("write", ["zero_", "normal_"])
def test_write_of_a_constant_leaves_a_tangent_of_zeros(write: str) -> None:
    d = dual()
    getattr(d, write)()
    assert_values(tangent(d), [0, 0, 0])


def test_assignment_of_a_number_clears_that_part_of_the_tangent() -> None:
    d = dual()
    d[0] = 5.0
    assert_values(tangent(d), [0, 20, 30])


def test_detach_has_no_tangent() -> None:
    assert tangent(dual().detach()) is None


def test_change_of_shape_in_place_changes_the_tangent_too() -> None:
    d = dual()
    d.unsqueeze_(0)
    assert_values(tangent(d), [[10, 20, 30]])


def test_write_is_recorded_through_its_tangent() -> None:
    x = dg.ones(3, requires_grad=True)
    y = x * 2
    y.mul_(dual())
    (grad,) = dg.autograd.grad(tangent(y).sum(), x)
    assert_values(grad, [20, 40, 60])


def test_copy_broadcasts_the_tangent_with_its_source() -> None:
    x = dg.ones(2, 3)
    x.copy_(dual())
    assert_values(tangent(x), [[10, 20, 30], [10, 20, 30]])


def test_copied_tangent_is_another_tensor() -> None:
    d = dual()
    x = dg.zeros(3)
    x.copy_(d)
    assert tangent(x) is not tangent(d)
    tangent(x).zero_()
    assert_values(tangent(d), [10, 20, 30])
