"""Which tensors have one storage, and where in it they begin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dyngraph as dg

SHARING: dict[str, Callable[[dg.Tensor], Any]] = {
    "slice": lambda x: x[1:],
    "transpose": lambda x: x.t(),
    "view": lambda x: x.view(-1),
    "view of a view": lambda x: x.view(-1)[2:],
    "expand": lambda x: x.expand(5, 2, 3),
    "one of several": lambda x: x.unbind()[1],
    "detach": lambda x: x.detach(),
    "data": lambda x: x.data,
}
COPYING: dict[str, Callable[[dg.Tensor], Any]] = {
    "clone": lambda x: x.clone(),
    "operator": lambda x: x + 0,
    "index array": lambda x: x[dg.tensor([0, 1])],
    "mask": lambda x: x[x > -1],
    "reshape of what is not contiguous": lambda x: x.t().reshape(-1),
    "contiguous of what is not": lambda x: x.t().contiguous(),
    "another dtype": lambda x: x.to(dg.bfloat16),
    "repeat": lambda x: x.repeat(1, 1),
}
sharing = pytest.mark.parametrize("make", SHARING.values(), ids=SHARING)
copying = pytest.mark.parametrize("make", COPYING.values(), ids=COPYING)


def same_storage(a: dg.Tensor, b: dg.Tensor) -> bool:
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


@sharing
def test_views_and_aliases_share_the_storage(make: Callable[[dg.Tensor], Any]) -> None:
    x = dg.zeros(2, 3)
    assert same_storage(x, make(x))


@copying
def test_copies_have_their_own_storage(make: Callable[[dg.Tensor], Any]) -> None:
    x = dg.zeros(2, 3)
    assert not same_storage(x, make(x))


@copying
def test_copies_do_not_see_writes(make: Callable[[dg.Tensor], Any]) -> None:
    x = dg.zeros(2, 3)
    copy = make(x)
    x.add_(1)
    assert copy.sum().item() == 0
    assert not copy._is_view()


def test_storage_stays_through_writes() -> None:
    x = dg.zeros(2)
    before = x.untyped_storage().data_ptr(), x.data_ptr()
    x.add_(1)
    x[0] = 5
    assert (x.untyped_storage().data_ptr(), x.data_ptr()) == before


def test_storages_of_two_living_tensors_differ() -> None:
    tensors = [dg.zeros(2) for _ in range(10)]
    assert len({x.untyped_storage().data_ptr() for x in tensors}) == 10


def test_data_ptr_of_a_view_of_all_is_that_of_the_base() -> None:
    x = dg.zeros(2, 3)
    assert x.data_ptr() == x.view(-1).data_ptr() == x.t().data_ptr() == x.detach().data_ptr()


def test_data_ptr_of_a_part_lies_as_far_behind_as_its_offset() -> None:
    x = dg.zeros(2, 3)
    view = x[1, 1:]
    assert view.data_ptr() - x.data_ptr() == view.storage_offset() * x.element_size() == 16


def test_storage_has_the_size_of_the_base() -> None:
    view = dg.zeros(2, 3)[0]
    assert view.untyped_storage().nbytes() == 24
    assert len(view.untyped_storage()) == 24


SET_TO: dict[str, Callable[[dg.Tensor], Any]] = {
    "itself": lambda x: x,
    "detach": lambda x: x.detach(),
    "whole slice": lambda x: x[:],
    "data": lambda x: x.data,
    "view_as": lambda x: x.view_as(x),
}
NOT_SET_TO: dict[str, Callable[[dg.Tensor], Any]] = {
    "part": lambda x: x[1:],
    "other shape": lambda x: x.view(-1),
    "other strides": lambda x: x.t(),
    "clone": lambda x: x.clone(),
}


@pytest.mark.parametrize("make", SET_TO.values(), ids=SET_TO)
def test_is_set_to_what_has_the_same_elements_in_the_same_shape(
    make: Callable[[dg.Tensor], Any],
) -> None:
    x = dg.zeros(2, 2)
    assert x.is_set_to(make(x))


@pytest.mark.parametrize("make", NOT_SET_TO.values(), ids=NOT_SET_TO)
def test_is_not_set_to_anything_else(make: Callable[[dg.Tensor], Any]) -> None:
    x = dg.zeros(2, 2)
    assert not x.is_set_to(make(x))


def test_storage_of_set_is_that_of_the_source() -> None:
    x, source = dg.zeros(2), dg.ones(3)
    x.set_(source)
    assert same_storage(x, source)


def test_storage_of_assigned_data_is_that_of_the_source() -> None:
    x, source = dg.zeros(2), dg.ones(3)
    x.data = source
    assert same_storage(x, source)
