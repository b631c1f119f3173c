"""Methods that change the shape of their tensor in place: the elements stay where they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dyngraph as dg
from tests.graph.helpers import assert_values, leaf

# name: (shape before, method, arguments, the same on numpy)
SHAPES: dict[str, tuple[tuple[int, ...], str, tuple[Any, ...], Callable[[Any], Any]]] = {
    "t_": ((2, 3), "t_", (), lambda a: a.T),
    "t_ of one dim": ((3,), "t_", (), lambda a: a),
    "transpose_": ((2, 3, 2), "transpose_", (0, -1), lambda a: a.swapaxes(0, 2)),
    "swapaxes_": ((2, 3), "swapaxes_", (0, 1), lambda a: a.T),
    "swapdims_": ((2, 3), "swapdims_", (1, 0), lambda a: a.T),
    "squeeze_": ((1, 3, 1), "squeeze_", (), lambda a: a.reshape(3)),
    "squeeze_ of a dim": ((1, 3, 1), "squeeze_", (0,), lambda a: a.reshape(3, 1)),
    "squeeze_ of dims": ((1, 3, 1), "squeeze_", ((0, 2),), lambda a: a.reshape(3)),
    "unsqueeze_": ((2, 3), "unsqueeze_", (1,), lambda a: a[:, None]),
    "as_strided_": ((2, 3), "as_strided_", ((2, 2), (3, 1), 1), lambda a: a[:, 1:]),
}
every_change = pytest.mark.parametrize("shape, name, args, twin", SHAPES.values(), ids=SHAPES)


def numbered(shape: tuple[int, ...]) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape) + 1


@every_change
def test_tensor_itself_takes_the_shape(
    shape: tuple[int, ...], name: str, args: tuple[Any, ...], twin: Callable[[Any], Any]
) -> None:
    x = dg.tensor(numbered(shape))
    assert getattr(x, name)(*args) is x
    assert_values(x, twin(numbered(shape)))


@every_change
def test_change_of_shape_counts_as_a_write(
    shape: tuple[int, ...], name: str, args: tuple[Any, ...], twin: Callable[[Any], Any]
) -> None:
    x = dg.tensor(numbered(shape))
    getattr(x, name)(*args)
    assert x._version == 1


@every_change
def test_what_shares_the_storage_keeps_its_shape_and_sees_later_writes(
    shape: tuple[int, ...], name: str, args: tuple[Any, ...], twin: Callable[[Any], Any]
) -> None:
    x, expected = dg.tensor(numbered(shape)), numbered(shape)
    alias = x.detach()
    getattr(x, name)(*args)
    x.mul_(10)
    part = twin(expected)
    part *= 10
    assert_values(alias, expected)


@every_change
def test_gradient_goes_through_the_change_of_shape(
    shape: tuple[int, ...], name: str, args: tuple[Any, ...], twin: Callable[[Any], Any]
) -> None:
    x = dg.tensor(numbered(shape), requires_grad=True)
    y = x * 1
    getattr(y, name)(*args)
    (y * y).sum().backward()
    expected = np.zeros(shape, np.float32)
    part = twin(expected)
    part += 2 * twin(numbered(shape))
    assert_values(x.grad, expected)


@every_change
def test_view_that_changed_its_shape_writes_to_its_base(
    shape: tuple[int, ...], name: str, args: tuple[Any, ...], twin: Callable[[Any], Any]
) -> None:
    expected = np.stack([numbered(shape)] * 2)
    base = dg.tensor(expected)
    view = base[1]
    if name == "as_strided_":  # Its offset is one into the storage.
        args = (*args[:2], args[2] + view.storage_offset())
    getattr(view, name)(*args)
    view.mul_(10)
    part = twin(expected[1])
    part *= 10
    assert view._is_view() and view._base is base
    assert_values(base, expected)


@pytest.mark.parametrize(
    "alias_of", [lambda x: x.detach(), lambda x: x.data], ids=["detach", "data"]
)
def test_alias_that_changed_its_shape_and_its_source_see_each_others_writes(alias_of: Any) -> None:
    x = dg.tensor([1.0, 2.0])
    alias = alias_of(x)
    alias.unsqueeze_(0)
    x.add_(1)
    assert_values(alias, [[2, 3]])
    alias.mul_(10)
    assert_values(x, [20, 30])


BEFORE_A_WRITE = {name: case for name, case in SHAPES.items() if name != "as_strided_"}


@pytest.mark.parametrize(
    "shape, name, args, twin", BEFORE_A_WRITE.values(), ids=BEFORE_A_WRITE.keys()
)
def test_gradient_of_a_write_into_a_view_that_changed_its_shape(
    shape: tuple[int, ...], name: str, args: tuple[Any, ...], twin: Callable[[Any], Any]
) -> None:
    x = dg.tensor(np.stack([numbered(shape)] * 2), requires_grad=True)
    base = x * 1
    view = base[1]
    getattr(view, name)(*args)
    view.mul_(10)
    base.sum().backward()
    assert_values(x.grad, np.stack([np.ones(shape), np.full(shape, 10)]))


@every_change
def test_leaf_keeps_its_shape_while_recording(
    shape: tuple[int, ...], name: str, args: tuple[Any, ...], twin: Callable[[Any], Any]
) -> None:
    x = dg.tensor(numbered(shape), requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        getattr(x, name)(*args)
    assert x.shape == shape and x._version == 0


def test_change_of_shape_after_the_tensor_was_saved_is_refused_by_backward() -> None:
    x = dg.ones(2, 3, requires_grad=True)
    y = x * 2
    loss = (y * y).sum()
    y.t_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


# resize_


def test_resize_changes_the_shape() -> None:
    x = dg.tensor([1.0, 2.0, 3.0, 4.0])
    assert x.resize_(2, 2) is x
    assert_values(x, [[1, 2], [3, 4]])


def test_resize_to_fewer_elements_keeps_the_first() -> None:
    assert_values(dg.tensor([[1.0, 2.0], [3.0, 4.0]]).resize_(3), [1, 2, 3])


def test_resize_to_more_elements_keeps_those_there() -> None:
    x = dg.tensor([1.0, 2.0]).resize_(2, 2)
    assert x.shape == (2, 2)
    assert_values(x[0], [1, 2])


def test_resize_takes_a_shape() -> None:
    assert dg.empty(0).resize_((2, 3)).shape == (2, 3)


def test_resize_as_takes_the_shape_of_another_tensor() -> None:
    x = dg.ones(4)
    assert x.resize_as_(dg.zeros(2, 2)) is x
    assert_values(x, [[1, 1], [1, 1]])


def test_resize_of_a_view_reads_on_in_its_storage() -> None:
    base = dg.tensor([1.0, 2.0, 3.0, 4.0])
    view = base[1:2].resize_(3)
    assert_values(view, [2, 3, 4])


def test_resize_to_another_shape_counts_as_a_write() -> None:
    x = dg.ones(2)
    x.resize_(1, 2)
    assert x._version == 1
    x.resize_as_(dg.ones(3))
    assert x._version == 2


def test_resize_to_the_same_shape_counts_as_none() -> None:
    x = dg.ones(2)
    x.resize_(2)
    x.resize_as_(dg.zeros(2))
    assert x._version == 0


RESIZED: dict[str, Callable[[], dg.Tensor]] = {
    "leaf": lambda: leaf(1.0, 2.0),
    "interior": lambda: leaf(1.0, 2.0) * 2,
    "view": lambda: (leaf(1.0, 2.0) * 2)[:1],
}


@pytest.mark.parametrize("make", RESIZED.values(), ids=RESIZED)
def test_resize_of_a_tensor_that_requires_grad_is_refused(make: Callable[[], dg.Tensor]) -> None:
    with pytest.raises(RuntimeError, match="cannot resize variables that require grad"):
        make().resize_(3)
