"""Tensors that become another: .data, set_, detach_, requires_grad_, swap_tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dyngraph as dg
from tests.graph.helpers import assert_values, leaf

# .data


def test_data_shares_the_storage() -> None:
    x = dg.ones(2)
    x.data.mul_(3)
    assert_values(x, [3, 3])
    assert x.data.is_set_to(x)


def test_data_has_no_history() -> None:
    y = leaf(1.0, 2.0) * 2
    assert not y.data.requires_grad and y.data.is_leaf


def test_data_counts_its_writes_for_itself() -> None:
    x = dg.ones(2)
    x.add_(1)
    data = x.data
    assert data._version == 0
    data.add_(1)
    assert (x._version, data._version) == (1, 1)


def test_data_is_no_view() -> None:
    x = dg.ones(2)
    assert not x.data._is_view() and x.data._base is None


def test_leaf_may_be_written_by_its_data() -> None:
    x = leaf(1.0, 2.0)
    x.data -= 1
    x.data[0] = 5
    assert_values(x, [5, 1])
    assert x.is_leaf and x.requires_grad


def test_write_by_data_leaves_views_their_place_in_the_graph() -> None:
    x = dg.arange(4.0).reshape(2, 2).requires_grad_()
    y = x.t()
    x.data.mul_(2)
    assert_values(y, [[0, 4], [2, 6]])
    y.sum().backward()
    assert_values(x.grad, [[1, 1], [1, 1]])


def test_write_by_data_is_not_checked_by_backward() -> None:
    x = leaf(1.0, 2.0)
    loss = (x * x).sum()
    x.data.mul_(1)
    loss.backward()
    assert_values(x.grad, [2, 4])


def test_assigned_data_is_taken_without_a_copy() -> None:
    x, data = dg.ones(2), dg.tensor([3.0, 4.0])
    x.data = data
    x.mul_(2)
    assert_values(data, [6, 8])
    assert x.is_set_to(data)


def test_assigned_data_keeps_its_own_counter() -> None:
    x, data = dg.ones(2), dg.tensor([3.0, 4.0])
    x.add_(1)
    x.data = data
    assert (x._version, data._version) == (1, 0)
    x.add_(1)
    assert (x._version, data._version) == (2, 0)


def test_assigned_data_may_have_another_shape_and_dtype() -> None:
    x = dg.ones(2)
    x.data = dg.tensor([[1, 2, 3]])
    assert x.shape == (1, 3) and x.tolist() == [[1, 2, 3]]


def test_assigning_data_leaves_what_the_tensor_is() -> None:
    x = leaf(1.0, 2.0)
    seen = x
    x.extra = "kept"  # pyright: ignore
    x.data = dg.ones(3)
    assert seen is x and x.extra == "kept"  # pyright: ignore
    assert x.requires_grad and x.is_leaf and x.shape == (3,)


def test_assigning_data_leaves_the_history_of_an_interior_tensor() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    y.data = dg.tensor([9.0, 9.0])
    (y * y).sum().backward()
    assert_values(x.grad, [36, 36])


def test_assigning_data_drops_the_history_of_the_source() -> None:
    x, source = dg.zeros(2), leaf(1.0, 2.0) * 2
    x.data = source
    assert not x.requires_grad


def test_data_saved_before_another_was_assigned_is_still_right() -> None:
    x = leaf(1.0, 2.0)
    loss = (x * x.exp()).sum()
    x.data = dg.zeros(2)
    loss.backward()
    assert x.grad is not None
    assert x.grad.shape == (2,)


def test_hooks_stay_when_data_is_assigned() -> None:
    x = leaf(1.0, 2.0)
    seen: list[list[float]] = []
    x.register_hook(lambda grad: seen.append(grad.tolist()))
    x.data = dg.zeros(2)
    (x * 3).sum().backward()
    assert seen == [[3, 3]]


def test_data_of_a_view_is_cut_off_from_the_base() -> None:
    base = dg.ones(4)
    view = base[:2]
    view.data = dg.zeros(2)
    view.add_(5)
    assert_values(base, [1, 1, 1, 1])
    assert_values(view, [5, 5])


def test_views_of_old_data_stay_what_they_were() -> None:
    base = dg.ones(4)
    view = base[:2]
    base.data = dg.zeros(4)
    view.add_(5)
    assert_values(base, [0, 0, 0, 0])
    assert_values(view, [6, 6])


def test_data_of_a_leaf_must_be_able_to_have_a_gradient() -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="must be floating point"):
        x.data = dg.tensor([1, 2])
    assert_values(x, [1, 2])


@pytest.mark.parametrize("data", [None, [1.0], 1.0], ids=["None", "list", "number"])
def test_data_that_is_no_tensor_is_refused(data: Any) -> None:
    with pytest.raises(TypeError, match="data"):
        dg.ones(2).data = data


# set_


def test_set_shares_the_storage_of_the_source() -> None:
    x, source = dg.ones(2), dg.ones(3)
    assert x.set_(source) is x
    x.add_(1)
    assert_values(source, [2, 2, 2])
    assert x.is_set_to(source)


def test_set_counts_as_a_write() -> None:
    x = dg.ones(2)
    x.set_(dg.ones(3))
    assert x._version == 1


def test_set_of_a_leaf_is_refused() -> None:
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        leaf(1.0, 2.0).set_(dg.ones(3))


# detach_


def test_detach_makes_a_leaf_of_an_interior_tensor() -> None:
    y = leaf(1.0, 2.0) * 2
    assert y.detach_() is y
    assert y.is_leaf and not y.requires_grad and y.grad_fn is None


def test_detach_of_a_leaf_stops_its_requiring_grad() -> None:
    x = leaf(1.0, 2.0)
    x.detach_()
    assert not x.requires_grad


def test_detach_counts_as_no_write() -> None:
    y = leaf(1.0, 2.0) * 2
    y.detach_()
    assert y._version == 0


def test_detach_cuts_what_is_computed_after_it() -> None:
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    product = x * 2
    (y + product).sum().backward(retain_graph=True)
    product.detach_()
    (y + product).sum().backward()
    assert_values(x.grad, [2, 2])
    assert_values(y.grad, [2, 2])


def test_detach_of_an_argument_that_was_saved_leaves_the_graph() -> None:
    # PyTorch refuses: its saved variable has lost its history. Here the node has that itself.
    x = leaf(1.0, 2.0)
    y = x * 2
    loss = (y * y).sum()
    y.detach_()
    loss.backward()
    assert_values(x.grad, [8, 16])


def test_detach_of_an_argument_that_was_not_saved_leaves_the_graph() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    loss = y.exp().sum()
    y.detach_()
    loss.backward()
    assert x.grad is not None


VIEWS: dict[str, Callable[[], dg.Tensor]] = {
    "slice": lambda: (leaf(1.0, 2.0) * 2)[:1],
    "slice of a constant": lambda: dg.ones(3)[:1],
    "one of several": lambda: (leaf(1.0, 2.0) * 2).split(1)[0],
}


@pytest.mark.parametrize("make", VIEWS.values(), ids=VIEWS)
def test_detach_of_a_view_is_refused(make: Callable[[], dg.Tensor]) -> None:
    with pytest.raises(RuntimeError, match=r"Can't detach views in-place.*detach\(\)"):
        make().detach_()


# requires_grad_


def test_requires_grad_makes_a_leaf_of_a_constant() -> None:
    x = dg.ones(2)
    assert x.requires_grad_() is x
    assert x.requires_grad and x.is_leaf


def test_requires_grad_counts_as_no_write() -> None:
    x = dg.ones(2)
    x.requires_grad_()
    assert x._version == 0


def test_requires_grad_may_be_taken_back() -> None:
    x = leaf(1.0, 2.0)
    assert not x.requires_grad_(False).requires_grad


def test_requires_grad_after_writes_makes_the_leaf_of_their_result() -> None:
    x = dg.zeros(2)
    x[0] = 3
    x.requires_grad_()
    (x * x).sum().backward()
    assert_values(x.grad, [6, 0])


def test_requires_grad_of_a_view_of_a_constant_makes_a_leaf() -> None:
    base = dg.ones(4)
    view = base[:2].requires_grad_()
    (view * 3).sum().backward()
    assert_values(view.grad, [3, 3])
    assert not base.requires_grad


# swap_tensors


def test_swap_exchanges_what_the_tensors_are() -> None:
    a, b = leaf(1.0, 2.0), dg.ones(3)
    dg.utils.swap_tensors(a, b)
    assert_values(a, [1, 1, 1])
    assert_values(b, [1, 2])
    assert (a.requires_grad, b.requires_grad) == (False, True)


def test_swap_exchanges_grads_and_history() -> None:
    x = leaf(1.0, 2.0)
    a, b = x * 3, leaf(5.0)
    (b * 2).backward()
    dg.utils.swap_tensors(a, b)
    assert_values(a.grad, 2)
    b.sum().backward()
    assert_values(x.grad, [3, 3])


def test_swap_exchanges_versions() -> None:
    a, b = dg.ones(2), dg.ones(2)
    a.add_(1)
    dg.utils.swap_tensors(a, b)
    assert (a._version, b._version) == (0, 1)


def test_swap_exchanges_attributes() -> None:
    a, b = dg.ones(2), dg.zeros(2)
    a.name_of_mine = "a"  # pyright: ignore
    dg.utils.swap_tensors(a, b)
    assert b.name_of_mine == "a" and not hasattr(a, "name_of_mine")  # pyright: ignore


# .grad that looks into another tensor


def test_gradient_adds_into_the_memory_that_grad_looks_at() -> None:
    x, flat = leaf(1.0, 2.0), dg.zeros(4)
    x.grad = flat[1:3]
    (x * 3).sum().backward()
    assert_values(flat, [0, 3, 3, 0])


def test_leaf_that_is_set_to_a_part_of_itself_keeps_its_gradient() -> None:
    x = leaf(1.0, 2.0, 3.0, 4.0)
    for size in [3, 2]:
        with dg.no_grad():
            x.set_(x[1:])
            x.grad = None
        dg.cat([x, x]).sum().backward()
        assert_values(x.grad, [2.0] * size)
