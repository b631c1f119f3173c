"""Tensors that were turned in place while nothing was recorded, and what they may do then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dyngraph as dg
from tests.graph.helpers import assert_values, leaf

MODES = {"no_grad": dg.no_grad, "inference_mode": dg.inference_mode}
every_mode = pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
TURNS: dict[str, Callable[[dg.Tensor], dg.Tensor]] = {
    "t_": lambda x: x.t_(),
    "transpose_": lambda x: x.transpose_(0, 1),
    "swapaxes_": lambda x: x.swapaxes_(0, 1),
    "unsqueeze_": lambda x: x.unsqueeze_(0),
    "squeeze_": lambda x: x.squeeze_(0),
    "as_strided_": lambda x: x.as_strided_((3,), (1,)),
}
every_turn = pytest.mark.parametrize("turn", TURNS.values(), ids=TURNS)
Turn = Callable[[dg.Tensor], dg.Tensor]


def turned(mode: Any, x: dg.Tensor, turn: Turn = TURNS["t_"]) -> dg.Tensor:
    with mode():
        return turn(x)


@every_mode
@every_turn
def test_constant_is_a_normal_tensor_of_its_own_afterwards(mode: Any, turn: Turn) -> None:
    x = turned(mode, dg.ones(1, 3), turn)
    assert not x._is_view() and not x.is_inference() and x._version == 1


@every_mode
@every_turn
def test_constant_may_be_written_recorded_afterwards(mode: Any, turn: Turn) -> None:
    x, factor = turned(mode, dg.ones(1, 3), turn), leaf(2.0)
    x.mul_(factor)
    x.sum().backward()
    assert_values(factor.grad, 3)


@every_mode
@every_turn
def test_interior_tensor_may_be_turned_again(mode: Any, turn: Turn) -> None:
    x = turned(mode, leaf(1.0, 2.0, 3.0).view(1, 3).clone(), turn)
    shape = x.shape
    x.unsqueeze_(0)
    assert x.shape == (1, *shape) and x.requires_grad and not x._is_view()


@every_mode
def test_interior_tensor_may_be_written_afterwards(mode: Any) -> None:
    x = leaf(1.0, 2.0)
    y = turned(mode, x * 2, lambda t: t.unsqueeze_(0))
    y.mul_(dg.tensor([3.0, 5.0]))
    y.sum().backward()
    assert_values(x.grad, [6, 10])


@every_mode
def test_interior_tensor_keeps_its_grad_fn(mode: Any) -> None:
    y = leaf(1.0, 2.0) * 2
    node = y.grad_fn
    turned(mode, y, lambda t: t.unsqueeze_(0))
    assert y.grad_fn is node


@every_mode
def test_gradient_that_does_not_fit_the_history_any_more_raises(mode: Any) -> None:
    y = turned(mode, leaf(1.0, 2.0).view(1, 2).clone())
    with pytest.raises(RuntimeError, match=r"invalid gradient.*expected shape compatible with"):
        (y * y).sum().backward()


@every_mode
@every_turn
def test_leaf_stays_a_leaf(mode: Any, turn: Turn) -> None:
    x = turned(mode, dg.ones(1, 3, requires_grad=True), turn)
    assert x.is_leaf and x.requires_grad and not x._is_view()


@every_mode
def test_leaf_gets_its_gradient_in_its_new_shape(mode: Any) -> None:
    x = turned(mode, dg.ones(1, 3, requires_grad=True))
    (x * 2).sum().backward()
    assert_values(x.grad, [[2], [2], [2]])


@every_mode
@pytest.mark.parametrize("write", [lambda x: x.mul_(2), lambda x: x.t_()], ids=["values", "shape"])
def test_leaf_may_not_be_written_recorded(mode: Any, write: Callable[[dg.Tensor], object]) -> None:
    x = turned(mode, dg.ones(1, 3, requires_grad=True))
    with pytest.raises(RuntimeError, match=r"^a leaf Variable that requires grad"):
        write(x)


@every_mode
def test_leaf_may_be_written_again_where_that_is_not_recorded(mode: Any) -> None:
    x = turned(mode, dg.ones(1, 3, requires_grad=True))
    turned(mode, x, lambda t: t.mul_(2))
    assert_values(x, [[2], [2], [2]])
    assert x.is_leaf and x.requires_grad


@every_mode
def test_view_is_put_behind_its_base_again(mode: Any) -> None:
    x = leaf(1.0, 2.0, 3.0, 4.0)
    view = turned(mode, (x * 1).view(2, 2)[:1])
    (view * dg.tensor([[3.0], [5.0]])).sum().backward()
    assert_values(x.grad, [3, 5, 0, 0])


@every_mode
def test_view_may_be_written_afterwards(mode: Any) -> None:
    x = leaf(1.0, 2.0, 3.0, 4.0)
    base = x * 1
    view = turned(mode, base.view(2, 2)[:1])
    view.mul_(dg.tensor([[3.0], [5.0]]))
    base.sum().backward()
    assert_values(base, [3, 10, 3, 4])
    assert_values(x.grad, [3, 5, 1, 1])


@every_mode
def test_view_of_a_leaf_may_not_be_written_afterwards(mode: Any) -> None:
    view = turned(mode, leaf(1.0, 2.0, 3.0, 4.0).view(2, 2)[:1])
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        view.mul_(2)


@every_mode
def test_view_that_was_made_before_follows_the_tensor(mode: Any) -> None:
    x = dg.zeros(2, 3)
    row = x[0]
    turned(mode, x)
    x.add_(leaf(1.0))
    assert_values(row, [1, 1, 1])
    assert row.requires_grad
