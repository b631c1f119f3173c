"""Writes and views in inference mode: of tensors made there, and of tensors made outside."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import dyngraph as dg
from tests.graph.helpers import assert_values, leaf

OUTSIDE = "Inplace update to inference tensor outside InferenceMode"


def inference_tensor() -> dg.Tensor:
    with dg.inference_mode():
        return dg.ones(3)


def test_inference_tensor_may_be_written_inside() -> None:
    with dg.inference_mode():
        x = dg.ones(3)
        x.add_(1)
        x[0] = 7
        x[1:].mul_(5)
    assert_values(x, [7, 10, 10])


def test_inference_tensor_may_be_written_in_a_later_block() -> None:
    x = inference_tensor()
    with dg.inference_mode():
        x.add_(1)
    assert_values(x, [2, 2, 2])


def test_inference_tensor_that_requires_grad_may_be_written_inside() -> None:
    with dg.inference_mode():
        x = dg.ones(3, requires_grad=True)
        x.add_(1)
    assert_values(x, [2, 2, 2])
    assert x.requires_grad and x.is_inference()


def test_view_of_an_inference_tensor_is_one_without_a_base() -> None:
    with dg.inference_mode():
        view = dg.ones(3)[:2]
        assert view.is_inference() and not view._is_view() and view._base is None


def test_view_of_an_inference_tensor_made_outside_is_an_inference_tensor() -> None:
    view = inference_tensor()[:2]
    assert view.is_inference() and not view.requires_grad


def test_inference_tensor_has_no_version() -> None:
    with pytest.raises(RuntimeError, match="Inference tensors do not track version counter"):
        _ = inference_tensor()._version


WRITES: dict[str, Callable[[dg.Tensor], object]] = {
    "method": lambda x: x.add_(1),
    "augmented": lambda x: x.__iadd__(1),
    "setitem": lambda x: x.__setitem__(0, 5.0),
    "into a view": lambda x: x[:2].add_(1),
    "copy": lambda x: x.copy_(dg.zeros(3)),
    "with a gradient": lambda x: x.add_(leaf(1.0)),
    "random": lambda x: x.normal_(),
    "out": lambda x: dg.add(dg.ones(3), 1, out=x),
    "shape": lambda x: x.unsqueeze_(0),
}
every_write = pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)


@every_write
def test_inference_tensor_may_not_be_written_outside(write: Callable[[dg.Tensor], object]) -> None:
    x = inference_tensor()
    with pytest.raises(RuntimeError, match=OUTSIDE):
        write(x)


@every_write
def test_refused_write_leaves_an_inference_tensor_as_it_was(
    write: Callable[[dg.Tensor], object],
) -> None:
    x = inference_tensor()
    with pytest.raises(RuntimeError, match=OUTSIDE):
        write(x)
    assert_values(x, [1, 1, 1])  # PyTorch writes first and refuses then.


@every_write
def test_inference_tensor_may_not_be_written_under_no_grad(
    write: Callable[[dg.Tensor], object],
) -> None:
    x = inference_tensor()
    with pytest.raises(RuntimeError, match=OUTSIDE), dg.no_grad():
        write(x)


@every_write
def test_clone_of_an_inference_tensor_may_be_written(write: Callable[[dg.Tensor], object]) -> None:
    write(inference_tensor().clone())


def test_inference_tensor_may_be_written_from() -> None:
    x = dg.zeros(3)
    x.copy_(inference_tensor())
    x.add_(inference_tensor())
    assert_values(x, [2, 2, 2])
    assert not x.is_inference()


def test_inference_tensor_may_not_be_saved_by_a_write() -> None:
    y = dg.ones(3, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        y.mul_(inference_tensor())


def test_inference_tensor_may_not_require_grad_outside() -> None:
    with pytest.raises(RuntimeError, match="requires_grad=True on inference tensor outside"):
        inference_tensor().requires_grad_()


def test_normal_tensor_may_be_written_inside_and_counts_it() -> None:
    x = dg.ones(3)
    with dg.inference_mode():
        x.add_(1)
    assert_values(x, [2, 2, 2])
    assert x._version == 1 and not x.is_inference()


def test_result_of_writing_a_normal_tensor_inside_is_the_normal_tensor() -> None:
    x = dg.ones(3)
    with dg.inference_mode():
        y = x.add_(1)
    assert y is x
    y.add_(1)
    assert_values(x, [3, 3, 3])


def test_leaf_may_be_written_inside() -> None:
    x = leaf(1.0, 2.0)
    with dg.inference_mode():
        x.add_(1)
    assert_values(x, [2, 3])
    assert x.requires_grad and x.is_leaf


def test_interior_tensor_written_inside_keeps_its_history() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    with dg.inference_mode():
        y.mul_(10)
    y.sum().backward()
    assert_values(x.grad, [2, 2])


def test_view_of_a_normal_tensor_made_inside_is_a_normal_view() -> None:
    x = dg.ones(3)
    with dg.inference_mode():
        view = x[:2]
        view.add_(1)
    assert not view.is_inference() and view._is_view() and view._base is x
    assert_values(x, [2, 2, 1])


def test_write_inside_of_what_was_saved_is_refused_by_backward() -> None:
    y = leaf(1.0, 2.0) * 2
    loss = (y * y).sum()
    with dg.inference_mode():
        y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_view_made_inside_of_a_base_that_was_rebased_is_refused() -> None:
    base = dg.ones(3)
    with dg.inference_mode():
        view = base[:2]
    base.mul_(leaf(2.0))
    with pytest.raises(RuntimeError, match="created in inference mode and its base"):
        _ = view.grad_fn


def test_view_of_a_view_made_inside_of_a_base_that_was_rebased_is_refused() -> None:
    base = dg.ones(3)
    with dg.inference_mode():
        view = base[:2][:1]
    base.mul_(leaf(2.0))
    with pytest.raises(RuntimeError, match="created in inference mode and its base"):
        _ = view.grad_fn


def test_view_of_either_kind_takes_its_shape_from_the_other() -> None:
    given, normal = inference_tensor(), leaf(1.0, 2.0, 3.0).clone()
    view = normal.view_as(given)
    assert not view.is_inference() and view.requires_grad
    assert given.view_as(normal).is_inference()
