"""Operators that give several views: where each lies, writes both ways, gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dyngraph as dg
from tests.views.view_calls import FLOAT, assert_same, numbered

# name: (shape, operator, numpy's views)
SEVERAL: dict[str, tuple[tuple[int, ...], Callable[[Any], Any], Callable[[Any], Any]]] = {
    "unbind": ((2, 3), lambda x: x.unbind(), lambda a: list(a)),
    "unbind of a dim": ((2, 3), lambda x: x.unbind(1), lambda a: list(a.T)),
    "iteration": ((2, 3), lambda x: list(x), lambda a: list(a)),
    "split": ((5, 2), lambda x: x.split(2), lambda a: [a[:2], a[2:4], a[4:]]),
    "split of a dim": ((2, 3), lambda x: x.split(2, dim=1), lambda a: [a[:, :2], a[:, 2:]]),
    "split of sizes": ((3, 2), lambda x: x.split([1, 2]), lambda a: [a[:1], a[1:]]),
    "split_with_sizes": ((3,), lambda x: x.split_with_sizes([2, 1]), lambda a: [a[:2], a[2:]]),
    "tensor_split": ((5,), lambda x: x.tensor_split(2), lambda a: [a[:3], a[3:]]),
    "tensor_split at indices": (
        (5,),
        lambda x: x.tensor_split((1, 3)),
        lambda a: [a[:1], a[1:3], a[3:]],
    ),
    "chunk": ((5,), lambda x: x.chunk(2), lambda a: [a[:3], a[3:]]),
    "hsplit": ((2, 4), lambda x: x.hsplit(2), lambda a: np.hsplit(a, 2)),
    "vsplit": ((4, 2), lambda x: x.vsplit(2), lambda a: np.vsplit(a, 2)),
    "dsplit": ((1, 2, 4), lambda x: x.dsplit(2), lambda a: np.dsplit(a, 2)),
}

several = pytest.mark.parametrize("shape, of, twin", SEVERAL.values(), ids=SEVERAL)


@several
def test_values_of_several_views_are_those_of_the_base(shape: Any, of: Any, twin: Any) -> None:
    a = numbered(shape)
    results = of(dg.tensor(a))
    assert len(results) == len(twin(a))
    for result, part in zip(results, twin(a)):
        assert_same(result, part)


@several
def test_several_views_have_the_base(shape: Any, of: Any, twin: Any) -> None:
    base = dg.tensor(numbered(shape))
    assert all(result._is_view() and result._base is base for result in of(base))


@several
def test_several_views_lie_where_those_of_numpy_lie(shape: Any, of: Any, twin: Any) -> None:
    a = numbered(shape)
    origin = a.__array_interface__["data"][0]
    for result, part in zip(of(dg.tensor(a)), twin(a)):
        assert result.storage_offset() * 4 == part.__array_interface__["data"][0] - origin
        assert result.is_contiguous() == part.flags.c_contiguous


@several
def test_writes_into_several_views_of_a_constant_are_seen_in_the_base(
    shape: Any, of: Any, twin: Any
) -> None:
    a = numbered(shape)
    base = dg.tensor(a)
    for factor, (result, part) in enumerate(zip(of(base), twin(a)), 2):
        result.mul_(factor)
        part *= factor
    assert_same(base, a)


@several
def test_write_into_the_base_is_seen_in_several_views(shape: Any, of: Any, twin: Any) -> None:
    a = numbered(shape)
    base = dg.tensor(a)
    results = of(base)
    base.add_(10)
    a += 10
    for result, part in zip(results, twin(a)):
        assert_same(result, part)


@several
def test_gradients_of_several_views_add_up_in_the_base(shape: Any, of: Any, twin: Any) -> None:
    x = dg.tensor(numbered(shape), requires_grad=True)
    results = of(x * 1)
    loss: Any = sum((result * factor).sum() for factor, result in enumerate(results, 2))
    loss.backward()
    expected = np.zeros(shape, FLOAT)
    for factor, part in enumerate(twin(expected), 2):
        part += factor
    assert x.grad is not None
    assert_same(x.grad, expected)
